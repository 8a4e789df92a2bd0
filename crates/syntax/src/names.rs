//! The variables of a text: numbers, scopes, and fresh names.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::hash_table::Entry;
use hashbrown::{HashSet, HashTable};

/// A variable's number, in the order of first appearance.
pub(crate) type VariableId = u32;

/// Names up to this many are searched one by one.
const LISTED_MAX: usize = 16;

/// Numbers by name.
#[derive(Debug, Default)]
pub(crate) struct Names<'t> {
    list: Vec<&'t str>,
    /// Numbers by the hashes of their names, once the list is long;
    places: HashTable<VariableId>,
    /// and the hashes by number, so that a table that grows reads no names.
    hashes: Vec<u64>,
}

impl<'t> Names<'t> {
    pub(crate) fn id(&mut self, name: &'t str) -> VariableId {
        if self.list.len() < LISTED_MAX {
            let place = self.list.iter().position(|it| *it == name);
            return place.map_or_else(|| self.add(name), |place| place as VariableId);
        }
        for id in self.hashes.len()..self.list.len() {
            let hash = hash_of(self.list[id]);
            self.hashes.push(hash);
            let hashes = &self.hashes;
            self.places
                .insert_unique(hash, id as VariableId, |id| hashes[*id as usize]);
        }
        let hash = hash_of(name);
        let (list, hashes) = (&self.list, &self.hashes);
        let entry = self.places.entry(
            hash,
            |id| list[*id as usize] == name,
            |id| hashes[*id as usize],
        );
        match entry {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                let id = list.len() as VariableId;
                free.insert(id);
                self.hashes.push(hash);
                self.add(name)
            }
        }
    }

    fn add(&mut self, name: &'t str) -> VariableId {
        self.list.push(name);
        (self.list.len() - 1) as VariableId
    }

    pub(crate) fn name(&self, id: VariableId) -> &'t str {
        self.list.get(id as usize).copied().unwrap_or_default()
    }

    /// All of them, in the order of their numbers.
    pub(crate) fn all(&self) -> &[&'t str] {
        &self.list
    }
}

fn hash_of(name: &str) -> u64 {
    FixedState::default().hash_one(name)
}

const NONE: u32 = u32::MAX;

/// Which variables groups bring into scope: a stack of occurrences, each of which knows the one
/// before it.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    seen: Vec<(VariableId, u32)>,
    /// For each variable, where it was seen last.
    last: Vec<u32>,
}

impl Scope {
    /// The place from which on what comes now is seen.
    pub(crate) fn mark(&self) -> usize {
        self.seen.len()
    }

    pub(crate) fn see(&mut self, id: VariableId) {
        let place = id as usize;
        if self.last.len() <= place {
            self.last.resize(place + 1, NONE);
        }
        let at = self.seen.len() as u32;
        let before = std::mem::replace(&mut self.last[place], at);
        self.seen.push((id, before));
    }

    /// Whether it was seen from a mark on.
    pub(crate) fn has(&self, id: VariableId, mark: usize) -> bool {
        let last = self.last.get(id as usize).copied().unwrap_or(NONE);
        last != NONE && last as usize >= mark
    }

    /// What was seen between two marks, each once, in the order of numbers.
    pub(crate) fn between(&self, from: usize, to: usize) -> Vec<VariableId> {
        distinct(self.seen.get(from..to).unwrap_or_default())
    }

    /// Forgets what was seen from a mark on.
    pub(crate) fn forget(&mut self, mark: usize) {
        while self.seen.len() > mark {
            if let Some((id, before)) = self.seen.pop() {
                self.last[id as usize] = before;
            }
        }
    }

    /// What was seen from a mark on, each once, in the order of numbers.
    pub(crate) fn since(&self, mark: usize) -> Vec<VariableId> {
        distinct(self.seen.get(mark..).unwrap_or_default())
    }
}

fn distinct(seen: &[(VariableId, u32)]) -> Vec<VariableId> {
    let mut ids: Vec<VariableId> = seen.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// What names begin with that are made up.
const STEM: &str = "_g";

/// Whether a name looks as those do that the parser makes up, of aggregates, `[]` and the like.
pub fn is_made_up(name: &str) -> bool {
    let number = name
        .strip_prefix(STEM)
        .map(|rest| rest.trim_start_matches('_'));
    number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Makes up names of variables and blank nodes that the text does not have. The same text gives the
/// same names.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    /// The numbers behind a stem anywhere in the text; none before the first name is made.
    taken: Option<HashSet<u64, FixedState>>,
    count: u64,
}

impl Fresh {
    pub(crate) fn name(&mut self, text: &str) -> String {
        let taken = self.taken.get_or_insert_with(|| numbers_in(text));
        self.count += 1;
        while taken.contains(&self.count) {
            self.count += 1;
        }
        format!("{STEM}{}", self.count)
    }
}

/// The numbers behind a stem. Those that are too large for a number are none that a name could get.
fn numbers_in(text: &str) -> HashSet<u64, FixedState> {
    let number_behind = |(place, stem): (usize, &str)| {
        let rest = text.get(place + stem.len()..).unwrap_or_default();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest[..digits].parse().ok()
    };
    text.match_indices(STEM).filter_map(number_behind).collect()
}
