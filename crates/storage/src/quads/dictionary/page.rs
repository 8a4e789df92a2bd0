//! Pages: some hundred keys in groups of 16, each key readable by itself.
//!
//! ```text
//! u8  'P'
//! u8  0
//! u16 keys
//! u16 groups
//! u16 large keys
//! u32 block of the chapter's symbol table
//! u32 the chapter's first block in the file of large keys
//! u16 start[groups]                  of each group within the body
//! { u16 key, u16 slot, u32 block }   for each large key: which key of the page it is, where it stands
//! body
//! ```
//!
//! Every group has 16 keys, but for the last of a page. The first key of a group, its head, is
//! written whole; of the others only what follows the prefix that they share with the head. No key
//! depends on its neighbour, so one key costs one head (as far as shared) and one suffix:
//!
//! ```text
//! length of the encoded head                          LEB128
//! encoded head
//! { shared with the head, length encoded }[keys - 1]  LEB128
//! encoded suffixes
//! ```
//!
//! A large key stands here with its first [`LARGE_PREFIX_BYTES`] bytes.

use super::codec::{Decoder, Encoder};
use super::fault::{Decoded, Fault};
use super::vocabulary::Words;
use crate::files::block_file::BlockNumber;
use crate::files::varint;

/// Keys in a group. 8 cost 5 % more space, 32 make a look-up 1.5 times as slow.
pub(super) const GROUP_KEYS: usize = 16;
/// Keys longer than this stand in a file of their own.
pub(super) const LARGE_KEY_BYTES: usize = 4096;
/// As much of a large key stands in its page.
pub(super) const LARGE_PREFIX_BYTES: usize = 256;

/// A page is closed when its body has so many bytes.
const PAGE_BYTES: usize = 16 * 1024;
const PAGE_KIND: u8 = b'P';
const HEADER_BYTES: usize = 16;

/// Number of bytes that two byte strings have in common at their start.
#[inline]
pub(super) fn shared_prefix(left: &[u8], right: &[u8]) -> usize {
    let mut shared = 0;
    let chunks = left.as_chunks::<8>().0.iter();
    for (a, b) in chunks.zip(right.as_chunks::<8>().0) {
        let difference = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if difference != 0 {
            return shared + (difference.trailing_zeros() / 8) as usize;
        }
        shared += 8;
    }
    let equal = left[shared..].iter().zip(&right[shared..]);
    shared + equal.take_while(|(a, b)| a == b).count()
}

/// Where a large key stands: a block of the file of large keys, and which key in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LargeKey {
    pub(super) block: u32,
    pub(super) slot: u16,
}

/// Collects the groups of one page.
#[derive(Default)]
pub(super) struct PageBuilder {
    keys: usize,
    starts: Vec<u16>,
    large: Vec<(u16, LargeKey)>,
    body: Vec<u8>,
    encoded: Vec<u8>,
}

impl PageBuilder {
    /// Appends a group of 1 to 16 keys, large ones as their prefix.
    pub(super) fn push_group(&mut self, keys: &[&[u8]], encoder: &mut Encoder<'_>) {
        debug_assert!(self.keys.is_multiple_of(GROUP_KEYS) && keys.len() <= GROUP_KEYS);
        let Some((&head, others)) = keys.split_first() else {
            return;
        };
        // A page is closed at 16 KiB, so a group starts below that.
        self.starts.push(self.body.len() as u16);
        self.encoded.clear();
        encoder.encode(head, 0, &mut self.encoded);
        varint::write(self.encoded.len() as u64, &mut self.body);
        self.body.append(&mut self.encoded);
        for key in others {
            let shared = encoder.align(key, shared_prefix(head, key));
            let start = self.encoded.len();
            encoder.encode(key, shared, &mut self.encoded);
            varint::write(shared as u64, &mut self.body);
            varint::write((self.encoded.len() - start) as u64, &mut self.body);
        }
        self.body.append(&mut self.encoded);
        self.keys += keys.len();
    }

    /// Says where the large key stands that is `place` keys after the ones pushed so far.
    pub(super) fn push_large(&mut self, place: usize, large: LargeKey) {
        // A page has at most some thousand keys, see `is_full`.
        self.large.push(((self.keys + place) as u16, large));
    }

    /// Number of keys pushed.
    pub(super) fn keys(&self) -> usize {
        self.keys
    }

    /// Whether the page is to be closed.
    pub(super) fn is_full(&self) -> bool {
        self.body.len() >= PAGE_BYTES || self.keys + GROUP_KEYS > usize::from(u16::MAX)
    }

    /// The page, and the builder empty again.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let mut page = Vec::with_capacity(
            HEADER_BYTES + 2 * self.starts.len() + 8 * self.large.len() + self.body.len(),
        );
        page.extend_from_slice(&[PAGE_KIND, 0]);
        page.extend_from_slice(&(self.keys as u16).to_le_bytes());
        page.extend_from_slice(&(self.starts.len() as u16).to_le_bytes());
        page.extend_from_slice(&(self.large.len() as u16).to_le_bytes());
        page.extend_from_slice(&[0; 8]);
        for start in self.starts.drain(..) {
            page.extend_from_slice(&start.to_le_bytes());
        }
        for (key, large) in self.large.drain(..) {
            page.extend_from_slice(&key.to_le_bytes());
            page.extend_from_slice(&large.slot.to_le_bytes());
            page.extend_from_slice(&large.block.to_le_bytes());
        }
        page.append(&mut self.body);
        self.keys = 0;
        page
    }
}

/// Fills in the two block numbers that are known only when a page is written.
pub(super) fn set_blocks(page: &mut [u8], symbol_table: BlockNumber, first_large_block: u32) {
    page[8..12].copy_from_slice(&symbol_table.0.to_le_bytes());
    page[12..16].copy_from_slice(&first_large_block.to_le_bytes());
}

/// A page where it lies in its block.
#[derive(Clone, Copy)]
pub(super) struct Page<'a> {
    keys: usize,
    starts: &'a [[u8; 2]],
    large: &'a [[u8; 8]],
    body: &'a [u8],
    /// The chapter's symbol table.
    pub(super) symbol_table: BlockNumber,
    first_large_block: u32,
}

impl<'a> Page<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Decoded<Self> {
        let bad = || Fault::Malformed("the page's header makes no sense");
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or_else(bad)?;
        let short = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let long = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (keys, groups, large_keys) = (short(2), short(4), short(6));
        if header[0] != PAGE_KIND || keys == 0 || groups != keys.div_ceil(GROUP_KEYS) {
            return Err(bad());
        }
        let (starts, rest) = rest.split_at_checked(2 * groups).ok_or_else(bad)?;
        let (large, body) = rest.split_at_checked(8 * large_keys).ok_or_else(bad)?;
        Ok(Self {
            keys,
            starts: starts.as_chunks().0,
            large: large.as_chunks().0,
            body,
            symbol_table: BlockNumber(long(8)),
            first_large_block: long(12),
        })
    }

    /// Number of keys.
    #[inline]
    pub(super) fn keys(&self) -> usize {
        self.keys
    }

    /// Number of groups.
    #[inline]
    pub(super) fn groups(&self) -> usize {
        self.starts.len()
    }

    /// The encoded head of a group, and the rest of the page's body after it.
    #[inline]
    pub(super) fn head(&self, group: usize) -> Decoded<(&'a [u8], &'a [u8])> {
        let bad = || Fault::Malformed("a group of keys makes no sense");
        let start = usize::from(u16::from_le_bytes(*self.starts.get(group).ok_or_else(bad)?));
        let mut rest = self.body.get(start..).ok_or_else(bad)?;
        let length = varint::read_length(&mut rest).ok_or_else(bad)?;
        rest.split_at_checked(length).ok_or_else(bad)
    }

    /// The first byte of a group; 0 if there is none. Only touches it, for what will be read from
    /// there.
    #[inline]
    pub(super) fn first_byte(&self, group: usize) -> u8 {
        let start = self.starts.get(group).copied().unwrap_or_default();
        let first = self.body.get(usize::from(u16::from_le_bytes(start)));
        first.copied().unwrap_or(0)
    }

    /// A group.
    #[inline]
    pub(super) fn group(&self, index: usize) -> Decoded<Group<'a>> {
        let bad = || Fault::Malformed("a group of keys makes no sense");
        let (head, mut rest) = self.head(index)?;
        let count = GROUP_KEYS.min(self.keys - index * GROUP_KEYS);
        let mut group = Group {
            count,
            head,
            shared: [0; GROUP_KEYS],
            ends: [0; GROUP_KEYS],
            suffixes: &[],
        };
        // Nearly always all lengths have one byte: looking at them together takes a third of the
        // time.
        let (short, others) = rest.split_at_checked(2 * (count - 1)).unwrap_or_default();
        if short.len() == 2 * (count - 1) && short.iter().fold(0, |all, byte| all | byte) < 0x80 {
            for (key, lengths) in (1..count).zip(short.as_chunks::<2>().0) {
                group.shared[key] = u32::from(lengths[0]);
                group.ends[key] = group.ends[key - 1] + u32::from(lengths[1]);
            }
            rest = others;
        } else {
            let mut next = || {
                let length = varint::read_length(&mut rest).ok_or_else(bad)?;
                u32::try_from(length).map_err(|_| bad())
            };
            for key in 1..count {
                group.shared[key] = next()?;
                group.ends[key] = group.ends[key - 1].saturating_add(next()?);
            }
        }
        group.suffixes = rest.get(..group.ends[count - 1] as usize).ok_or_else(bad)?;
        Ok(group)
    }

    /// Where the key stands if it is a large one.
    #[inline]
    pub(super) fn large(&self, key: usize) -> Option<LargeKey> {
        if self.large.is_empty() {
            return None;
        }
        let key_of = |entry: &[u8; 8]| usize::from(u16::from_le_bytes([entry[0], entry[1]]));
        let place = self.large.binary_search_by_key(&key, key_of).ok()?;
        let [_, _, slot_low, slot_high, block @ ..] = self.large[place];
        Some(LargeKey {
            block: self
                .first_large_block
                .checked_add(u32::from_le_bytes(block))?,
            slot: u16::from_le_bytes([slot_low, slot_high]),
        })
    }
}

/// A group of keys within a page.
#[derive(Clone, Copy)]
pub(super) struct Group<'a> {
    count: usize,
    head: &'a [u8],
    /// The first of both is 0: the head's.
    shared: [u32; GROUP_KEYS],
    ends: [u32; GROUP_KEYS],
    suffixes: &'a [u8],
}

impl<'a> Group<'a> {
    /// Number of keys.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// How much a key shares with the head; 0 for the head.
    #[inline]
    pub(super) fn shared(&self, key: usize) -> usize {
        self.shared[key] as usize
    }

    /// The encoded bytes of a key: the whole head, the suffix of another.
    #[inline]
    pub(super) fn encoded(&self, key: usize) -> &'a [u8] {
        match key {
            0 => self.head,
            // `ends` ascend and the last lies within `suffixes`, see `Page::group`.
            _ => &self.suffixes[self.ends[key - 1] as usize..self.ends[key] as usize],
        }
    }

    /// Puts a key into `out` (a large one: its prefix).
    #[inline]
    pub(super) fn key<W: Words>(
        &self,
        key: usize,
        decoder: &Decoder<'_, W>,
        out: &mut Vec<u8>,
    ) -> Decoded<()> {
        out.clear();
        if key == 0 {
            return decoder.decode(self.encoded(0), out, usize::MAX);
        }
        let shared = self.shared(key);
        decoder.decode(self.encoded(0), out, shared)?;
        if out.len() < shared {
            return Err(Fault::Malformed("a key shares more than there is"));
        }
        out.truncate(shared);
        decoder.decode(self.encoded(key), out, usize::MAX)
    }

    /// Puts a key into `out`, given the group's whole head.
    #[inline]
    pub(super) fn key_with_head<W: Words>(
        &self,
        key: usize,
        head: &[u8],
        decoder: &Decoder<'_, W>,
        out: &mut Vec<u8>,
    ) -> Decoded<()> {
        out.clear();
        if key == 0 {
            out.extend_from_slice(head);
            return Ok(());
        }
        let shared = head
            .get(..self.shared(key))
            .ok_or(Fault::Malformed("a key shares more than there is"))?;
        out.extend_from_slice(shared);
        decoder.decode(self.encoded(key), out, usize::MAX)
    }
}
