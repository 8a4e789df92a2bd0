//! Batched look-ups of keys by rank, in windows, so that memory latencies overlap.
//!
//! Keys that stand far apart in a large dictionary cost one wait after the other: for the page, the
//! head of the group, the lengths behind it, the suffix. So each of these steps is done for all
//! ranks of a window before the next one begins: the steps of different ranks do not depend on each
//! other, and the processor waits for many at once.
//!
//! ```text
//! ranks -> entries of the directory -> pages -> groups -> keys
//! ```

use std::hint::black_box;
use std::ops::Range;

use super::directory::{DirectoryBlock, DirectoryEntry};
use super::kept::KeptKeys;
use super::page::{GROUP_KEYS, Group};
use super::{ANNOUNCED_RANKS, Dictionary, KeyCursor, OpenPage};
use crate::Result;
use crate::files::block_file::BlockNumber;

/// Ranks whose steps are done together; the processor has some 20 waits under way at most.
const WINDOW_RANKS: usize = 32;

/// Reads keys of ranks that should ascend; see the module's documentation.
pub(super) struct BatchReader<'a> {
    dictionary: &'a Dictionary,
    directory: DirectoryCursor<'a>,
    cursor: KeyCursor<'a>,
    /// The pages of a window with their bytes, in the order of the ranks, each once in a row.
    found: Vec<(DirectoryEntry, &'a [u8])>,
    pages: Vec<OpenPage<'a>>,
    groups: Vec<Group<'a>>,
    places: Vec<KeyPlace>,
}

/// Where the key of a rank stands.
#[derive(Clone, Copy)]
struct KeyPlace {
    rank: u64,
    /// Which page of the window.
    page: u32,
    /// Which group of the window.
    group: u32,
    /// Which key of the page.
    within: usize,
}

impl KeyPlace {
    /// Which group of its page.
    fn group_number(&self) -> usize {
        self.within / GROUP_KEYS
    }
}

impl Dictionary {
    /// Calls `found` with the place in `ranks` and the key, for each rank. The ranks should ascend
    /// (duplicates are fine): neighbours then share the work. In any other order the answers are
    /// right, too.
    pub fn keys(&self, ranks: &[u64], mut found: impl FnMut(usize, &[u8])) -> Result<()> {
        if let Some(kept) = &self.beside.kept
            && ranks.len() <= ANNOUNCED_RANKS
        {
            return self.keys_beside(kept, ranks, found);
        }
        if let &[rank] = ranks {
            found(0, self.iter(0).at(rank)?);
            return Ok(());
        }
        self.visit_keys(ranks, |cursor, place, number| {
            let key = cursor.at_group(place.page, place.within, place.group)?;
            found(number, key);
            Ok(())
        })
    }

    /// As [`keys`](Self::keys), where some may be kept: of the others alone the pages are read.
    /// What reads very much does not come here, so it drives out nothing.
    fn keys_beside(
        &self,
        kept: &KeptKeys,
        ranks: &[u64],
        mut found: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        let mut bytes = Vec::new();
        // Where each key stands in `bytes`.
        let mut places = vec![0..0; ranks.len()];
        let (mut missing, mut numbers) = (Vec::new(), Vec::new());
        for (number, &rank) in ranks.iter().enumerate() {
            let start = bytes.len();
            if kept.append(rank, &mut bytes) {
                places[number] = start..bytes.len();
            } else {
                missing.push(rank);
                numbers.push(number);
            }
        }
        self.visit_keys(&missing, |cursor, place, number| {
            let key = cursor.at_group(place.page, place.within, place.group)?;
            kept.keep(missing[number], key);
            let start = bytes.len();
            bytes.extend_from_slice(key);
            places[numbers[number]] = start..bytes.len();
            Ok(())
        })?;
        for (number, place) in places.into_iter().enumerate() {
            found(number, &bytes[place]);
        }
        Ok(())
    }

    /// Calls `visit` with where the key of each rank stands, and its number among the ranks.
    pub(super) fn visit_keys<'a>(
        &'a self,
        ranks: &[u64],
        mut visit: impl FnMut(&mut KeyCursor<'a>, &KeyInPage<'a, '_>, usize) -> Result<()>,
    ) -> Result<()> {
        let mut reader = BatchReader::new(self);
        for (number, part) in ranks.chunks(ANNOUNCED_RANKS).enumerate() {
            self.will_read(part)?;
            reader.visit(part, |cursor, place, at| {
                visit(cursor, place, number * ANNOUNCED_RANKS + at)
            })?;
        }
        Ok(())
    }
}

/// Where a key stands: its page and its group, opened, and which of the page's keys it is.
pub(super) struct KeyInPage<'a, 'r> {
    pub(super) page: &'r OpenPage<'a>,
    pub(super) group: &'r Group<'a>,
    pub(super) within: usize,
}

impl<'a> BatchReader<'a> {
    pub(super) fn new(dictionary: &'a Dictionary) -> Self {
        Self {
            dictionary,
            directory: DirectoryCursor::new(dictionary),
            cursor: KeyCursor::new(dictionary, 0),
            found: Vec::new(),
            pages: Vec::new(),
            groups: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Calls `visit` with where the key of each rank stands, and its number among the ranks.
    fn visit(
        &mut self,
        ranks: &[u64],
        mut visit: impl FnMut(&mut KeyCursor<'a>, &KeyInPage<'a, '_>, usize) -> Result<()>,
    ) -> Result<()> {
        for (number, window) in ranks.chunks(WINDOW_RANKS).enumerate() {
            self.find_pages(window)?;
            self.open_pages()?;
            self.open_groups()?;
            for (at, place) in self.places.iter().enumerate() {
                let found = KeyInPage {
                    page: &self.pages[place.page as usize],
                    group: &self.groups[place.group as usize],
                    within: place.within,
                };
                visit(&mut self.cursor, &found, number * WINDOW_RANKS + at)?;
            }
        }
        Ok(())
    }

    /// Looks the ranks up in the directory. Nothing of the pages is touched.
    fn find_pages(&mut self, ranks: &[u64]) -> Result<()> {
        self.found.clear();
        self.places.clear();
        for &rank in ranks {
            let entry = self.directory.find(rank)?;
            if self.found.last().is_none_or(|(last, _)| *last != entry) {
                let bytes = self.dictionary.terms.block(entry.block)?;
                self.found.push((entry, bytes));
            }
            self.places.push(KeyPlace {
                rank,
                page: (self.found.len() - 1) as u32,
                group: 0,
                within: 0,
            });
        }
        Ok(())
    }

    fn open_pages(&mut self) -> Result<()> {
        let touched = self.found.iter().fold(0, |touched, (_, bytes)| {
            touched ^ bytes.first().copied().unwrap_or(0)
        });
        black_box(touched);
        // The decoder of the last page serves its whole chapter.
        let mut last = self.pages.last().copied();
        self.pages.clear();
        for (entry, bytes) in &self.found {
            let page = self.dictionary.open_page_like(*entry, bytes, last)?;
            last = Some(page);
            self.pages.push(page);
        }
        for place in &mut self.places {
            let page = &self.pages[place.page as usize];
            place.within = self.dictionary.place_in_page(page, place.rank)?;
        }
        Ok(())
    }

    fn open_groups(&mut self) -> Result<()> {
        let pages = &self.pages;
        let head = |place: &KeyPlace| pages[place.page as usize].page.head(place.group_number());
        let start = |place: &KeyPlace| {
            pages[place.page as usize]
                .page
                .first_byte(place.group_number())
        };
        let touched = self.places.iter().fold(0, |all, place| all ^ start(place));
        black_box(touched);
        let touched = self.places.iter().fold(0, |all, place| match head(place) {
            Ok((_, rest)) => all ^ rest.first().copied().unwrap_or(0),
            Err(_) => all,
        });
        black_box(touched);
        self.groups.clear();
        let mut last = None;
        for place in &mut self.places {
            let number = place.group_number();
            if last != Some((place.page, number)) {
                last = Some((place.page, number));
                let page = &pages[place.page as usize];
                let group = page.page.group(number);
                self.groups
                    .push(group.map_err(|fault| self.dictionary.error(page.block, fault))?);
            }
            place.group = (self.groups.len() - 1) as u32;
        }
        let groups = &self.groups;
        let touched = self.places.iter().fold(0, |all, place| {
            let encoded = groups[place.group as usize].encoded(place.within % GROUP_KEYS);
            all ^ encoded.first().copied().unwrap_or(0)
        });
        black_box(touched);
        Ok(())
    }
}

/// A place in the directory that moves forward: the next rank's page is mostly near the last one's.
struct DirectoryCursor<'a> {
    dictionary: &'a Dictionary,
    /// A block of the lowest level, and the entry where the last rank was found.
    leaf: Option<(DirectoryBlock<'a>, usize)>,
    entry: DirectoryEntry,
    /// The ranks of that entry, as far as the leaf knows.
    ranks: Range<u64>,
}

impl<'a> DirectoryCursor<'a> {
    fn new(dictionary: &'a Dictionary) -> Self {
        Self {
            dictionary,
            leaf: None,
            entry: DirectoryEntry {
                first_rank: 0,
                block: BlockNumber(0),
            },
            ranks: 0..0,
        }
    }

    /// The page that holds a rank.
    fn find(&mut self, rank: u64) -> Result<DirectoryEntry> {
        if self.ranks.contains(&rank) {
            return Ok(self.entry);
        }
        let near = self
            .leaf
            .filter(|_| rank >= self.ranks.end && !self.ranks.is_empty())
            .and_then(|(leaf, at)| Some((leaf, leaf.find_rank_after(at, rank)?)));
        let (leaf, at) = match near {
            Some(near) => near,
            None => self.dictionary.leaf_of_rank(rank)?,
        };
        self.leaf = Some((leaf, at));
        self.entry = leaf.entry(at);
        self.ranks =
            self.entry.first_rank..leaf.first_rank(at + 1).unwrap_or(self.entry.first_rank);
        Ok(self.entry)
    }
}
