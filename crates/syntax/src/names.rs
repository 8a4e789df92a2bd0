//! The variables of a text: a number for each name, which of them are in scope, and names for new ones.

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

/// A variable's number, in the order of first appearance.
pub(crate) type VariableId = u32;

/// Names up to this many are searched one by one.
const LISTED_MAX: usize = 16;

/// Numbers by name.
#[derive(Debug, Default)]
pub(crate) struct Names<'t> {
    list: Vec<&'t str>,
    /// Filled once the list is long.
    places: HashMap<&'t str, VariableId, FixedState>,
}

impl<'t> Names<'t> {
    pub(crate) fn id(&mut self, name: &'t str) -> VariableId {
        if self.list.len() <= LISTED_MAX {
            if let Some(place) = self.list.iter().position(|it| *it == name) {
                return place as VariableId;
            }
        } else if let Some(id) = self.places.get(name) {
            return *id;
        }
        let id = self.list.len() as VariableId;
        self.list.push(name);
        if self.list.len() > LISTED_MAX {
            if self.places.is_empty() {
                let known = self.list.iter().zip(0..);
                self.places.extend(known.map(|(name, id)| (*name, id)));
            }
            self.places.insert(name, id);
        }
        id
    }

    pub(crate) fn name(&self, id: VariableId) -> &'t str {
        self.list.get(id as usize).copied().unwrap_or_default()
    }

    /// All of them, in the order of their numbers.
    pub(crate) fn all(&self) -> &[&'t str] {
        &self.list
    }
}

const NONE: u32 = u32::MAX;

/// Which variables groups bring into scope: a stack of occurrences, each of which knows the one before it.
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
        let seen = self.seen.get(mark..).unwrap_or_default();
        let mut ids: Vec<VariableId> = seen.iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
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

/// Makes up names of variables and blank nodes that the text does not have. The same text gives the same names.
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
