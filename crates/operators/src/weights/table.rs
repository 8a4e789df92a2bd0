//! The table of node pairs and their weights.
//!
//! ```text
//! sorted     start, end, weight     by start and end; and their places by end and start
//! changed    start, end -> weight, or none any more     since then; sorted anew when it is an eighth
//! ```
//!
//! A table never changes: a later one shares what is sorted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;
use orrery_term::{Term, TermId, TermKind};

/// Changes up to which nothing is sorted anew.
const CHANGES_MIN: usize = 4_096;
/// Sorted pairs for each change from which on they are.
const PAIRS_PER_CHANGE: usize = 8;
/// Bytes of a change: its entries in both trees.
const CHANGE_BYTES: usize = 96;
/// Bytes of a weight that fits into no id.
const OWN_BYTES: usize = 96;

/// A start and an end, as ids.
type Pair = [u64; 2];

/// A weight as a query computed it.
#[derive(Clone, Debug, PartialEq)]
pub enum Weight {
    /// One whose id is the same in all queries over the state.
    Id(TermId),
    /// One that only that query has an id for.
    Own(Term<'static>),
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct WeightTable {
    sorted: Arc<Sorted>,
    changed: BTreeMap<Pair, Option<u64>>,
    /// The changed pairs, end first.
    changed_back: BTreeSet<Pair>,
    /// Weights without an id: in their place stands that of a query's own term, with the place here
    /// as its number.
    own: Arc<Vec<Term<'static>>>,
    pairs: usize,
}

#[derive(Debug, Default)]
struct Sorted {
    pairs: Vec<[u64; 3]>,
    by_end: Vec<u32>,
}

impl Sorted {
    /// `None` if there are more than are numbered.
    fn of(pairs: Vec<[u64; 3]>) -> Option<Self> {
        let count = u32::try_from(pairs.len()).ok()?;
        let mut by_end: Vec<u32> = (0..count).collect();
        by_end.sort_unstable_by_key(|&place| {
            let [start, end, _] = pairs[place as usize];
            [end, start]
        });
        Some(Self { pairs, by_end })
    }

    fn from(&self, start: u64) -> &[[u64; 3]] {
        let first = self.pairs.partition_point(|pair| pair[0] < start);
        let count = self.pairs[first..].partition_point(|pair| pair[0] == start);
        &self.pairs[first..first + count]
    }

    fn to(&self, end: u64) -> impl Iterator<Item = &[u64; 3]> {
        let pair = |place: &u32| &self.pairs[*place as usize];
        let first = self.by_end.partition_point(|place| pair(place)[1] < end);
        let count = self.by_end[first..].partition_point(|place| pair(place)[1] == end);
        self.by_end[first..first + count].iter().map(pair)
    }

    fn find(&self, pair: Pair) -> Option<u64> {
        let place = self
            .pairs
            .binary_search_by_key(&pair, |&[start, end, _]| [start, end]);
        Some(self.pairs[place.ok()?][2])
    }
}

impl WeightTable {
    /// A table of these pairs, each of which comes once. `None` if they are more than 4 billion.
    pub fn of(weights: Vec<(Pair, Weight)>) -> Option<Self> {
        let mut own = Owned::default();
        let mut pairs: Vec<[u64; 3]> = weights
            .into_iter()
            .map(|([start, end], weight)| [start, end, own.bits(weight)])
            .collect();
        pairs.sort_unstable();
        Some(Self {
            pairs: pairs.len(),
            sorted: Arc::new(Sorted::of(pairs)?),
            own: Arc::new(own.terms),
            ..Self::default()
        })
    }

    /// The table with changed weights, or none, for some pairs. `None` if it became too large.
    pub fn with(&self, changes: impl IntoIterator<Item = (Pair, Option<Weight>)>) -> Option<Self> {
        let mut own = Owned::of(&self.own);
        let mut next = self.clone();
        for (pair, weight) in changes {
            let weight = weight.map(|weight| own.bits(weight));
            let had_one = next.weight(pair).is_some();
            next.pairs = next.pairs + usize::from(weight.is_some()) - usize::from(had_one);
            next.changed.insert(pair, weight);
            next.changed_back.insert([pair[1], pair[0]]);
        }
        if own.terms.len() > self.own.len() {
            next.own = Arc::new(own.terms);
        }
        let changes_max = CHANGES_MIN.max(next.sorted.pairs.len() / PAIRS_PER_CHANGE);
        if next.changed.len() > changes_max {
            let pairs = next.all().collect();
            next.sorted = Arc::new(Sorted::of(pairs)?);
            next.changed.clear();
            next.changed_back.clear();
        }
        Some(next)
    }

    /// The number of pairs.
    pub fn len(&self) -> usize {
        self.pairs
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pairs == 0
    }

    /// Bytes of memory, of what is shared with earlier tables too.
    pub fn bytes(&self) -> u64 {
        let sorted = self.sorted.pairs.len() * (size_of::<[u64; 3]>() + size_of::<u32>());
        let text = |term: &Term<'_>| match term {
            Term::Literal(literal) => literal.lexical.len(),
            Term::Iri(_) | Term::BlankNode(_) | Term::Triple(_) => 0,
        };
        let own: usize = self.own.iter().map(|term| OWN_BYTES + text(term)).sum();
        (sorted + self.changed.len() * CHANGE_BYTES + own) as u64
    }

    /// The term of a weight that has no id of its own.
    pub(super) fn own_term(&self, weight: u64) -> Option<&Term<'static>> {
        let id = TermId::from_bits(weight);
        match id.kind() {
            TermKind::QueryLocal => self.own.get(usize::try_from(id.payload()).ok()?),
            _ => None,
        }
    }

    /// The weight of a pair.
    pub(super) fn weight(&self, pair: Pair) -> Option<u64> {
        match self.changed.get(&pair) {
            Some(weight) => *weight,
            None => self.sorted.find(pair),
        }
    }

    /// The pairs of a start, in no order.
    pub(super) fn from(&self, start: u64) -> impl Iterator<Item = [u64; 3]> {
        let changed = self.changed.range([start, 0]..=[start, u64::MAX]);
        let sorted = self.sorted.from(start).iter().copied();
        self.unchanged(sorted).chain(present(changed))
    }

    /// The pairs of an end, in no order.
    pub(super) fn to(&self, end: u64) -> impl Iterator<Item = [u64; 3]> {
        let changed = self.changed_back.range([end, 0]..=[end, u64::MAX]);
        let changed = changed.filter_map(|&[end, start]| {
            let weight = self.changed.get(&[start, end]).copied().flatten();
            Some([start, end, weight?])
        });
        self.unchanged(self.sorted.to(end).copied()).chain(changed)
    }

    /// All pairs, ascending.
    pub(super) fn all(&self) -> impl Iterator<Item = [u64; 3]> {
        let mut sorted = self.sorted.pairs.iter().copied().peekable();
        let mut changed = self.changed.iter().peekable();
        std::iter::from_fn(move || {
            loop {
                let of_sorted = sorted.peek().map(|&[start, end, _]| [start, end]);
                let of_changed = changed.peek().map(|(pair, _)| **pair);
                let takes_sorted = match (of_sorted, of_changed) {
                    (None, None) => return None,
                    (Some(sorted), Some(changed)) => sorted < changed,
                    (sorted, None) => sorted.is_some(),
                    (None, Some(_)) => false,
                };
                if takes_sorted {
                    return sorted.next();
                }
                if of_sorted == of_changed {
                    sorted.next();
                }
                if let Some((&[start, end], Some(weight))) = changed.next() {
                    return Some([start, end, *weight]);
                }
            }
        })
    }

    fn unchanged(&self, pairs: impl Iterator<Item = [u64; 3]>) -> impl Iterator<Item = [u64; 3]> {
        pairs.filter(|[start, end, _]| {
            self.changed.is_empty() || !self.changed.contains_key(&[*start, *end])
        })
    }
}

fn present<'t>(
    changed: impl Iterator<Item = (&'t Pair, &'t Option<u64>)>,
) -> impl Iterator<Item = [u64; 3]> {
    changed.filter_map(|(&[start, end], weight)| Some([start, end, (*weight)?]))
}

/// Weights without an id, each once.
#[derive(Default)]
struct Owned {
    terms: Vec<Term<'static>>,
    places: HashMap<String, u64>,
}

impl Owned {
    fn of(terms: &[Term<'static>]) -> Self {
        let places = terms.iter().enumerate();
        let places = places.map(|(place, term)| (term.to_string(), place as u64));
        Self {
            places: places.collect(),
            terms: terms.to_vec(),
        }
    }

    fn bits(&mut self, weight: Weight) -> u64 {
        let term = match weight {
            Weight::Id(id) => return id.bits(),
            Weight::Own(term) => term,
        };
        let next = self.terms.len() as u64;
        let place = *self.places.entry(term.to_string()).or_insert(next);
        if place == next {
            self.terms.push(term);
        }
        TermId::query_local(place).bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(number: u64) -> Weight {
        match number % 3 {
            0 => Weight::Own(Term::string(format!("a long text without an id {number}"))),
            _ => Weight::Id(TermId::blank_node(number)),
        }
    }

    fn read(table: &WeightTable, [start, end, weight]: [u64; 3]) -> (Pair, Weight) {
        let weight = match table.own_term(weight) {
            Some(term) => Weight::Own(term.clone()),
            None => Weight::Id(TermId::from_bits(weight)),
        };
        ([start, end], weight)
    }

    proptest! {
        #[test]
        fn a_table_that_is_changed_is_the_table_of_what_is_left(
            first in prop::collection::btree_map((0..9_u64, 0..9_u64), 0..30_u64, 0..40),
            rounds in prop::collection::vec(prop::collection::vec(((0..9_u64, 0..9_u64), prop::option::of(0..30_u64)), 0..12), 0..6),
        ) {
            let mut model = first;
            let of_model = |model: &BTreeMap<(u64, u64), u64>| -> Vec<(Pair, Weight)> {
                model.iter().map(|(&(a, b), &weight)| ([a, b], id(weight))).collect()
            };
            let mut table = WeightTable::of(of_model(&model)).unwrap();
            for round in rounds {
                for &((a, b), weight) in &round {
                    match weight {
                        Some(weight) => model.insert((a, b), weight),
                        None => model.remove(&(a, b)),
                    };
                }
                table = table
                    .with(round.iter().map(|&((a, b), weight)| ([a, b], weight.map(id))))
                    .unwrap();
                let expected = of_model(&model);
                let all: Vec<_> = table.all().map(|pair| read(&table, pair)).collect();
                prop_assert_eq!(&all, &expected);
                prop_assert_eq!(table.len(), expected.len());
                for node in 0..9 {
                    let mut from: Vec<_> = table.from(node).map(|pair| read(&table, pair)).collect();
                    from.sort_by_key(|it| it.0);
                    let of_start: Vec<_> = expected.iter().filter(|it| it.0[0] == node).cloned().collect();
                    prop_assert_eq!(from, of_start);
                    let mut to: Vec<_> = table.to(node).map(|pair| read(&table, pair)).collect();
                    to.sort_by_key(|it| it.0);
                    let of_end: Vec<_> = expected.iter().filter(|it| it.0[1] == node).cloned().collect();
                    prop_assert_eq!(to, of_end);
                }
            }
        }
    }

    #[test]
    fn many_changes_are_sorted_in() {
        let pairs = (0..10_u64).map(|number| ([number, number], id(number)));
        let table = WeightTable::of(pairs.collect()).unwrap();
        let changes = (0..2 * CHANGES_MIN as u64).map(|number| ([number, 7], Some(id(1))));
        let table = table.with(changes).unwrap();
        assert!(table.changed.is_empty());
        assert_eq!(table.len(), 2 * CHANGES_MIN + 9);
        assert_eq!(table.to(7).count(), 2 * CHANGES_MIN);
    }
}
