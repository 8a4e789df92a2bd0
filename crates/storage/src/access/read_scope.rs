//! The read scope: the asker and the readable graphs, passed from the protocols down to every read.
//!
//! Graphs are told by their names, for ids change when a base is written anew: a scope is good for
//! all states of a database, the past ones too. A [`ReadView`](crate::ReadView) resolves it against
//! one snapshot.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use orrery_term::Term;

use crate::asker::Asker;
use crate::{Error, Result};

/// Graphs by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphNames {
    /// Whether the default graph is one of them.
    pub has_default: bool,
    /// The names of the others.
    pub named: BTreeSet<Term<'static>>,
    /// How the IRIs of others begin.
    pub below: IriPrefixes,
}

impl GraphNames {
    /// Whether a graph is one of them; the default graph has no name.
    pub fn contains(&self, graph: Option<&Term<'static>>) -> bool {
        match graph {
            Some(name) => self.named.contains(name) || self.below.contains(name),
            None => self.has_default,
        }
    }

    /// Whether there are none, whichever graphs there are.
    pub fn is_empty(&self) -> bool {
        !self.has_default && self.named.is_empty() && self.below.is_empty()
    }

    /// Adds the prefixes of another list.
    pub fn extend(&mut self, other: Self) {
        self.has_default |= other.has_default;
        self.named.extend(other.named);
        other
            .below
            .texts
            .into_iter()
            .for_each(|text| self.below.insert(text));
    }
}

/// A set of IRI prefixes. None of the texts is the beginning of another, so that an IRI begins with
/// the one before it, if with any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IriPrefixes {
    texts: BTreeSet<String>,
}

impl FromIterator<String> for IriPrefixes {
    fn from_iter<T: IntoIterator<Item = String>>(texts: T) -> Self {
        let mut prefixes = Self::default();
        texts.into_iter().for_each(|text| prefixes.insert(text));
        prefixes
    }
}

impl IriPrefixes {
    /// Adds a prefix.
    pub fn insert(&mut self, text: String) {
        if self.has_beginning_of(&text) {
            return;
        }
        let behind = self
            .texts
            .range::<str, _>((Bound::Excluded(text.as_str()), Bound::Unbounded));
        let covered = behind.take_while(|other| other.starts_with(&text));
        let covered: Vec<String> = covered.cloned().collect();
        for other in covered {
            self.texts.remove(&other);
        }
        self.texts.insert(text);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// All, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }

    /// Whether a term is an IRI that begins with one of them.
    pub fn contains(&self, term: &Term<'_>) -> bool {
        match term {
            Term::Iri(iri) => self.has_beginning_of(iri),
            Term::BlankNode(_) | Term::Literal(_) | Term::Triple(_) => false,
        }
    }

    fn has_beginning_of(&self, iri: &str) -> bool {
        let mut before = self
            .texts
            .range::<str, _>((Bound::Unbounded, Bound::Included(iri)));
        before
            .next_back()
            .is_some_and(|text| iri.starts_with(text.as_str()))
    }
}

/// The asker, and the graphs the asker may read. Cheap to copy.
///
/// There is no default: whoever shows all graphs says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadScope {
    asker: Asker,
    /// All graphs if there is no list.
    graphs: Option<Arc<Listed>>,
}

/// The graphs of a scope, and what was made of them.
#[derive(Debug)]
struct Listed {
    names: Arc<GraphNames>,
    /// No other list of this process has it.
    number: u64,
    digest: OnceLock<String>,
}

impl PartialEq for Listed {
    /// Whether a digest was asked for makes no difference.
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names
    }
}

impl Eq for Listed {}

impl ReadScope {
    /// All graphs.
    pub fn all_graphs(asker: Asker) -> Self {
        Self {
            asker,
            graphs: None,
        }
    }

    /// These graphs and no others.
    pub fn only(asker: Asker, graphs: GraphNames) -> Self {
        static LISTS: AtomicU64 = AtomicU64::new(1);
        Self {
            asker,
            graphs: Some(Arc::new(Listed {
                names: Arc::new(graphs),
                number: LISTS.fetch_add(1, Ordering::Relaxed),
                digest: OnceLock::new(),
            })),
        }
    }

    /// The asker.
    pub fn asker(&self) -> Asker {
        self.asker
    }

    /// The graphs that may be seen; `None` if all.
    pub fn graphs(&self) -> Option<&GraphNames> {
        self.list().map(|names| &**names)
    }

    /// A value computed once per list of readable graphs, shared by copies of the scope; `None` if
    /// all graphs are readable.
    pub fn digest(&self, make: impl FnOnce(&GraphNames) -> String) -> Option<&str> {
        let listed = self.graphs.as_ref()?;
        Some(listed.digest.get_or_init(|| make(&listed.names)))
    }

    /// The list's number in this process, a key for caches; `None` if all graphs are readable.
    /// Copies of a scope have the same.
    pub fn number(&self) -> Option<u64> {
        self.graphs.as_ref().map(|listed| listed.number)
    }

    /// The same, to be known again.
    pub(crate) fn list(&self) -> Option<&Arc<GraphNames>> {
        self.graphs.as_ref().map(|listed| &listed.names)
    }

    /// Fails where graphs are hidden: some work takes data as a whole, without asking of which
    /// graph they are. `work` is a verb and its object, such as "change data".
    pub fn require_all_graphs(&self, work: &'static str) -> Result<()> {
        match self.graphs {
            None => Ok(()),
            Some(_) => Err(Error::HiddenGraphs {
                asker: self.asker,
                work,
            }),
        }
    }

    /// Whether a graph may be seen; the default graph has no name.
    pub fn sees(&self, graph: Option<&Term<'static>>) -> bool {
        self.graphs().is_none_or(|graphs| graphs.contains(graph))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iris_begin_with_the_shortest_that_was_taken_in() {
        let all = ["x:a", "x:ab", "x:abc/", "x:b", "y:", "x:a\u{10ffff}", "x:"];
        // In any order they cover the same.
        for turn in 0..all.len() {
            for count in 1..=all.len() {
                let taken: Vec<&str> = all.iter().cycle().skip(turn).take(count).copied().collect();
                let mut prefixes = IriPrefixes::default();
                for text in &taken {
                    prefixes.insert((*text).to_owned());
                }
                for iri in [
                    "x:a",
                    "x:ab",
                    "x:abb",
                    "x:abc/d",
                    "x:b",
                    "x:",
                    "y:z",
                    "z:",
                    "x",
                    "x:a\u{10ffff}b",
                ] {
                    let expected = taken.iter().any(|text| iri.starts_with(text));
                    assert_eq!(
                        prefixes.contains(&Term::iri(iri)),
                        expected,
                        "{iri} of {taken:?}"
                    );
                }
                assert!(!prefixes.contains(&Term::BlankNode(1)));
            }
        }
    }

    #[test]
    fn lists_are_joined() {
        let mut one = GraphNames {
            has_default: false,
            ..GraphNames::default()
        };
        one.below.insert("x:a/b".to_owned());
        let mut other = GraphNames {
            has_default: true,
            named: [Term::iri("y:g")].into(),
            ..GraphNames::default()
        };
        other.below.insert("x:a/".to_owned());
        one.extend(other);
        assert!(one.contains(None) && one.contains(Some(&Term::iri("y:g"))));
        assert_eq!(one.below.iter().collect::<Vec<_>>(), ["x:a/"]);
    }
}
