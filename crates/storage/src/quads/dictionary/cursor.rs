//! A cursor over keys in rank order.
//!
//! A group's head is decoded as far as the keys that are asked for share it: of a group with one
//! label among descriptions of half a kilobyte, that is a few bytes. When a second key wants more,
//! all of it is.

use super::fault::{Decoded, Fault};
use super::large::{self, LargeCache};
use super::page::{GROUP_KEYS, Group};
use super::streamed::StreamedKey;
use super::{Dictionary, OpenPage};
use crate::Result;

/// A place in the dictionary that moves forward. It keeps the page, the group and the decoded head
/// where it stands, so that the next key costs only its suffix.
pub struct KeyCursor<'a> {
    dictionary: &'a Dictionary,
    next_rank: u64,
    page: Option<OpenPage<'a>>,
    /// The group within the page, by its number.
    group: Option<(usize, Group<'a>)>,
    head: DecodedHead,
    key: Vec<u8>,
    large: LargeCache,
}

/// What was decoded of a group's head.
#[derive(Default)]
struct DecodedHead {
    bytes: Vec<u8>,
    state: HeadState,
}

/// How much of a head is decoded.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum HeadState {
    #[default]
    Nothing,
    Part,
    Whole,
}

impl DecodedHead {
    fn clear(&mut self) {
        self.bytes.clear();
        self.state = HeadState::Nothing;
    }

    /// Sees to it that so many bytes are there, if the head has them.
    fn decode(&mut self, page: &OpenPage<'_>, group: &Group<'_>, wanted: usize) -> Decoded<()> {
        if self.bytes.len() >= wanted || self.state == HeadState::Whole {
            return Ok(());
        }
        let wanted = match self.state {
            HeadState::Nothing => wanted,
            HeadState::Part | HeadState::Whole => usize::MAX,
        };
        // Should decoding fail, the head is begun anew.
        self.clear();
        page.decoder
            .decode(group.encoded(0), &mut self.bytes, wanted)?;
        self.state = match self.bytes.len() < wanted {
            true => HeadState::Whole,
            false => HeadState::Part,
        };
        Ok(())
    }
}

impl std::fmt::Debug for KeyCursor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyCursor")
            .field("next_rank", &self.next_rank)
            .finish_non_exhaustive()
    }
}

impl Dictionary {
    /// Reads the keys one after the other from a rank on.
    pub fn iter(&self, from_rank: u64) -> KeyCursor<'_> {
        KeyCursor::new(self, from_rank)
    }
}

impl<'a> KeyCursor<'a> {
    pub(super) fn new(dictionary: &'a Dictionary, next_rank: u64) -> Self {
        Self {
            dictionary,
            next_rank,
            page: None,
            group: None,
            head: DecodedHead::default(),
            key: Vec::new(),
            large: LargeCache::default(),
        }
    }

    /// The rank that [`next`](Self::next) reads.
    pub fn next_rank(&self) -> u64 {
        self.next_rank
    }

    /// The next key, or `None` behind the last one.
    #[expect(
        clippy::should_implement_trait,
        reason = "the key borrows from the cursor, as an Iterator's items cannot"
    )]
    pub fn next(&mut self) -> Result<Option<&[u8]>> {
        if self.next_rank >= self.dictionary.len() {
            return Ok(None);
        }
        let rank = self.next_rank;
        self.next_rank += 1;
        self.at(rank).map(Some)
    }

    /// The key of a rank; quick if it is near the last one.
    pub fn at(&mut self, rank: u64) -> Result<&[u8]> {
        let dictionary = self.dictionary;
        let page = self.page_of(rank)?;
        let within = (rank - page.first_rank) as usize;
        let number = within / GROUP_KEYS;
        if self.group.is_none_or(|(current, _)| current != number) {
            let group = page.page.group(number);
            let group = group.map_err(|fault| dictionary.error(page.block, fault))?;
            self.set_group(number, group);
        }
        self.read(&page, within)
    }

    /// The key of a rank if it is a streamed one; reads no more of it than its head.
    pub fn streamed(&mut self, rank: u64) -> Result<Option<StreamedKey>> {
        let page = self.page_of(rank)?;
        let Some(key) = page.page.large((rank - page.first_rank) as usize) else {
            return Ok(None);
        };
        let file = &self.dictionary.large;
        match large::extent(file, key) {
            Ok(extent) => Ok(extent.map(|extent| StreamedKey::new(file, extent))),
            Err(fault) => Err(self.dictionary.error(page.block, fault)),
        }
    }

    /// The page of a rank; quick if it is that of the last one.
    fn page_of(&mut self, rank: u64) -> Result<OpenPage<'a>> {
        match self.page {
            Some(page) if (page.first_rank..page.end_rank()).contains(&rank) => Ok(page),
            _ => {
                self.group = None;
                Ok(*self.page.insert(self.dictionary.page_of_rank(rank)?))
            }
        }
    }

    /// A key of a page and its group, which were found already.
    pub(super) fn at_group(
        &mut self,
        page: &OpenPage<'a>,
        within: usize,
        group: &Group<'a>,
    ) -> Result<&[u8]> {
        self.go_to(page, within, group);
        self.read(page, within)
    }

    /// What a key of a page and its group, which were found already, shares with the group's head.
    /// A large key has no such part.
    pub(super) fn shared_at_group(
        &mut self,
        page: &OpenPage<'a>,
        within: usize,
        group: &Group<'a>,
    ) -> Decoded<&[u8]> {
        self.go_to(page, within, group);
        let shared = group.shared(within % GROUP_KEYS);
        self.head.decode(page, group, shared)?;
        self.head
            .bytes
            .get(..shared)
            .ok_or(Fault::Malformed("a key shares more than there is"))
    }

    /// Makes a page and a group of it the present ones.
    fn go_to(&mut self, page: &OpenPage<'a>, within: usize, group: &Group<'a>) {
        if self.page.is_none_or(|current| current.block != page.block) {
            self.page = Some(*page);
            self.group = None;
        }
        let number = within / GROUP_KEYS;
        if self.group.is_none_or(|(current, _)| current != number) {
            self.set_group(number, *group);
        }
    }

    fn set_group(&mut self, number: usize, group: Group<'a>) {
        self.group = Some((number, group));
        self.head.clear();
    }

    /// A key of the page, in the group that is set.
    fn read(&mut self, page: &OpenPage<'a>, within: usize) -> Result<&[u8]> {
        let dictionary = self.dictionary;
        if let Some(large) = page.page.large(within) {
            return self
                .large
                .key(&dictionary.large, large)
                .map_err(|fault| dictionary.error(page.block, fault));
        }
        self.decode(page, within % GROUP_KEYS)
            .map_err(|fault| dictionary.error(page.block, fault))?;
        Ok(&self.key)
    }

    fn decode(&mut self, page: &OpenPage<'a>, place: usize) -> Decoded<()> {
        let Some((_, group)) = &self.group else {
            return Err(Fault::Malformed("no group is open"));
        };
        let wanted = match place {
            0 => usize::MAX,
            _ => group.shared(place),
        };
        self.head.decode(page, group, wanted)?;
        group.key_with_head(place, &self.head.bytes, &page.decoder, &mut self.key)
    }
}
