//! The search of a key's rank.
//!
//! The directory leads to the page; there the groups' heads are searched by halving, then the keys
//! of one group. Keys are decoded only as far as they agree with the one sought.

use std::cmp::Ordering;

use super::codec::Decoder;
use super::fault::Decoded;
use super::large::LargeCache;
use super::page::{GROUP_KEYS, Group, shared_prefix};
use super::vocabulary::Words;
use super::{Dictionary, OpenPage};
use crate::Result;

/// Bytes decoded for a first comparison beyond what the last compared key shared: the next one will
/// share about as much.
const GLANCE_BYTES: usize = 8;

/// A search that reuses its buffers.
#[derive(Default)]
struct Search {
    decoded: Vec<u8>,
    large: LargeCache,
    /// How much the last compared head shared with the key sought.
    last_shared: usize,
}

impl Dictionary {
    /// The rank of a key, or `None` if it is not there.
    pub fn find(&self, key: &[u8]) -> Result<Option<u64>> {
        if let Some(rank) = self.beside.found.rank(key) {
            return Ok(Some(rank));
        }
        let (rank, is_found) = self.search(key)?;
        if is_found {
            self.beside.found.keep(key, rank);
        }
        Ok(is_found.then_some(rank))
    }

    /// The rank of the first key that is not less than the given one; the number of keys if there
    /// is none.
    pub fn lower_bound(&self, key: &[u8]) -> Result<u64> {
        Ok(self.search(key)?.0)
    }

    fn search(&self, key: &[u8]) -> Result<(u64, bool)> {
        let Some(root) = self.root else {
            return Ok((0, false));
        };
        let mut search = Search::default();
        let (leaf, at) = self.descend(root, |directory| {
            directory.find_key(key, |entry| {
                let page = self.page_of_rank(entry.first_rank)?;
                let within = (entry.first_rank - page.first_rank) as usize;
                // An entry begins with a page, and so with the head of a group.
                let order = search
                    .compare_head(self, &page, within / GROUP_KEYS, key)?
                    .0;
                Ok(order.is_gt())
            })
        })?;
        let page = self.open_page_of(&leaf, at)?;
        let (within, is_found) = search
            .in_page(self, &page, key)
            .map_err(|fault| self.error(page.block, fault))?;
        Ok((page.first_rank + within as u64, is_found))
    }
}

impl Search {
    /// The first key of the page that is not less than `key`, and whether it is equal.
    fn in_page(
        &mut self,
        dictionary: &Dictionary,
        page: &OpenPage<'_>,
        key: &[u8],
    ) -> Decoded<(usize, bool)> {
        // The last group whose head is not greater, and what that shares with the key.
        let mut found = None;
        let (mut low, mut high) = (0, page.page.groups());
        while low < high {
            let middle = low.midpoint(high);
            match self.compare_head(dictionary, page, middle, key)? {
                (Ordering::Equal, _) => return Ok((middle * GROUP_KEYS, true)),
                (Ordering::Greater, _) => high = middle,
                (Ordering::Less, shared) => {
                    found = Some((middle, shared));
                    low = middle + 1;
                }
            }
        }
        let Some((number, shared)) = found else {
            return Ok((0, false));
        };
        let (first, group) = (number * GROUP_KEYS, page.page.group(number)?);
        let (mut low, mut high) = (1, group.count());
        while low < high {
            let middle = low.midpoint(high);
            let at = (first + middle, middle);
            match self.compare_other(dictionary, page, &group, at, shared, key)? {
                Ordering::Equal => return Ok((first + middle, true)),
                Ordering::Greater => high = middle,
                Ordering::Less => low = middle + 1,
            }
        }
        Ok((first + low, false))
    }

    /// Compares a group's head with the key; also how much they share.
    fn compare_head(
        &mut self,
        dictionary: &Dictionary,
        page: &OpenPage<'_>,
        group: usize,
        key: &[u8],
    ) -> Decoded<(Ordering, usize)> {
        let (head, _) = page.page.head(group)?;
        let (order, shared, is_prefix) = self.compare(&page.decoder, head, key)?;
        self.last_shared = shared;
        let order = self.decide(
            dictionary,
            page,
            group * GROUP_KEYS,
            (order, is_prefix),
            key,
        )?;
        Ok((order, shared))
    }

    /// Compares another key of a group, given how much the head, which is less, shares with the
    /// key.
    fn compare_other(
        &mut self,
        dictionary: &Dictionary,
        page: &OpenPage<'_>,
        group: &Group<'_>,
        (within, place): (usize, usize),
        head_shared: usize,
        key: &[u8],
    ) -> Decoded<Ordering> {
        let shared = group.shared(place);
        if shared > head_shared {
            // It has the head's byte where the head is less than the key.
            return Ok(Ordering::Less);
        }
        let rest = &key[shared..];
        self.last_shared = head_shared - shared;
        let (order, _, is_prefix) = self.compare(&page.decoder, group.encoded(place), rest)?;
        self.decide(dictionary, page, within, (order, is_prefix), key)
    }

    /// Compares what `encoded` stands for with `key`: the order, how much is shared, and whether it
    /// is a prefix of the key.
    fn compare<W: Words>(
        &mut self,
        decoder: &Decoder<'_, W>,
        encoded: &[u8],
        key: &[u8],
    ) -> Decoded<(Ordering, usize, bool)> {
        let glance_bytes = self.last_shared + GLANCE_BYTES;
        self.decoded.clear();
        decoder.decode(encoded, &mut self.decoded, glance_bytes)?;
        let mut shared = shared_prefix(&self.decoded, key);
        if shared == self.decoded.len() && shared >= glance_bytes {
            self.decoded.clear();
            decoder.decode(encoded, &mut self.decoded, usize::MAX)?;
            shared = shared_prefix(&self.decoded, key);
        }
        let order = self.decoded[shared..].cmp(&key[shared..]);
        Ok((order, shared, shared == self.decoded.len()))
    }

    /// A large key stands in the page with its prefix only: where that decides nothing, the whole
    /// is compared.
    fn decide(
        &mut self,
        dictionary: &Dictionary,
        page: &OpenPage<'_>,
        within: usize,
        (order, is_prefix): (Ordering, bool),
        key: &[u8],
    ) -> Decoded<Ordering> {
        match page.page.large(within) {
            Some(large) if is_prefix => self.large.compare(&dictionary.large, large, key),
            _ => Ok(order),
        }
    }
}
