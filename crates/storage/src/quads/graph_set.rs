//! A set of graphs, the operand of changes to whole graphs.

use orrery_term::TermId;
use serde::{Deserialize, Serialize};

use crate::files::varint;

const FLAG_ALL_NAMED: u8 = 1;

/// Graphs of one database, by the ids of their names; [`TermId::DEFAULT_GRAPH`] is one of them.
///
/// Invariants: the listed ids ascend; beside all named graphs only the default graph is listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphSet {
    all_named: bool,
    listed: Vec<u64>,
}

impl GraphSet {
    /// One graph.
    pub fn one(graph: TermId) -> Self {
        Self {
            all_named: false,
            listed: vec![graph.bits()],
        }
    }

    /// These graphs, which ascend.
    pub fn listing(graphs: impl IntoIterator<Item = TermId>) -> Self {
        let listed: Vec<u64> = graphs.into_iter().map(TermId::bits).collect();
        debug_assert!(listed.is_sorted_by(|a, b| a < b));
        Self {
            all_named: false,
            listed,
        }
    }

    /// All graphs but the default graph.
    pub fn named() -> Self {
        Self {
            all_named: true,
            listed: Vec::new(),
        }
    }

    /// All graphs.
    pub fn all() -> Self {
        Self {
            all_named: true,
            listed: vec![TermId::DEFAULT_GRAPH.bits()],
        }
    }

    /// Whether there is no graph in it.
    pub fn is_empty(&self) -> bool {
        !self.all_named && self.listed.is_empty()
    }

    /// Whether all graphs are in it, whichever there are.
    pub fn is_all(&self) -> bool {
        self.all_named && self.contains(TermId::DEFAULT_GRAPH)
    }

    /// Whether all graphs but the default graph are in it.
    pub fn has_all_named(&self) -> bool {
        self.all_named
    }

    /// Whether a graph is in it.
    pub fn contains(&self, graph: TermId) -> bool {
        self.contains_bits(graph.bits())
    }

    /// The same, for the bits of an id.
    #[inline]
    pub(crate) fn contains_bits(&self, graph: u64) -> bool {
        (self.all_named && graph != TermId::DEFAULT_GRAPH.bits())
            || self.listed.binary_search(&graph).is_ok()
    }

    /// The graphs that are listed one by one, ascending: all, or the default graph beside all named
    /// ones.
    pub fn listed(&self) -> impl Iterator<Item = TermId> {
        self.listed.iter().map(|&bits| TermId::from_bits(bits))
    }

    /// The graphs that are in one of both.
    pub fn union(&self, other: &Self) -> Self {
        let all_named = self.all_named || other.all_named;
        let mut listed = [&self.listed[..], &other.listed[..]].concat();
        listed.sort_unstable();
        listed.dedup();
        if all_named {
            listed.retain(|&graph| graph == TermId::DEFAULT_GRAPH.bits());
        }
        Self { all_named, listed }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(if self.all_named { FLAG_ALL_NAMED } else { 0 });
        varint::write(self.listed.len() as u64, out);
        for &graph in &self.listed {
            varint::write(graph, out);
        }
    }

    /// `None` where the bytes do not begin with a set.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (&flags, rest) = bytes.split_first()?;
        *bytes = rest;
        let count = varint::read_length(bytes)?;
        if flags > FLAG_ALL_NAMED || count > bytes.len() {
            return None;
        }
        let listed: Vec<u64> = (0..count)
            .map(|_| varint::read(bytes))
            .collect::<Option<_>>()?;
        let are_ids = listed
            .iter()
            .all(|&graph| TermId::from_bits(graph).checked_kind().is_some());
        let set = Self {
            all_named: flags == FLAG_ALL_NAMED,
            listed,
        };
        let is_sound = are_ids
            && set.listed.is_sorted_by(|a, b| a < b)
            && (!set.all_named || set.listed().all(|graph| graph == TermId::DEFAULT_GRAPH));
        is_sound.then_some(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets() -> Vec<GraphSet> {
        let [a, b] = [1, 2].map(|n| GraphSet::one(TermId::blank_node(n)));
        let default = GraphSet::one(TermId::DEFAULT_GRAPH);
        vec![
            GraphSet::default(),
            a.union(&b),
            a,
            default,
            GraphSet::named(),
            GraphSet::all(),
        ]
    }

    #[test]
    fn a_union_has_what_is_in_one_of_both() {
        let graphs = [
            TermId::DEFAULT_GRAPH,
            TermId::blank_node(1),
            TermId::blank_node(2),
            TermId::blank_node(3),
        ];
        for a in sets() {
            for b in sets() {
                let both = a.union(&b);
                for graph in graphs {
                    assert_eq!(
                        both.contains(graph),
                        a.contains(graph) || b.contains(graph),
                        "{a:?} {b:?} {graph:?}"
                    );
                }
                assert_eq!(both, b.union(&a));
            }
        }
        let default = GraphSet::one(TermId::DEFAULT_GRAPH);
        assert!(default.union(&GraphSet::named()).is_all());
    }

    #[test]
    fn a_set_comes_back_from_its_bytes_and_no_other_bytes_make_one() {
        for set in sets() {
            let mut bytes = Vec::new();
            set.encode(&mut bytes);
            let mut rest = &bytes[..];
            assert_eq!(GraphSet::decode(&mut rest), Some(set));
            assert!(rest.is_empty());
            assert_eq!(GraphSet::decode(&mut &bytes[..bytes.len() - 1]), None);
        }
        let one = TermId::blank_node(1).bits();
        let wrong = [
            GraphSet {
                all_named: true,
                listed: vec![one],
            },
            GraphSet {
                all_named: false,
                listed: vec![one, one],
            },
        ];
        for set in wrong {
            let mut bytes = Vec::new();
            set.encode(&mut bytes);
            assert_eq!(GraphSet::decode(&mut &bytes[..]), None);
        }
        assert_eq!(GraphSet::decode(&mut &[2u8, 0][..]), None);
    }
}
