//! A builder of small databases from quads in memory, without the bulk loader.
//!
//! For tests of everything above the storage, and for examples. It goes the loader's way
//! (dictionary, sorted permutations, statistics, publish), only that everything is held and sorted
//! in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use orrery_term::{Term, TermId, inline, write_key};

use crate::database::segment::{PublishedCounts, SegmentBuilder};
use crate::files::io::{FileSystem, LocalFileSystem};
use crate::quads::index::{Permutation, QuadRow};
use crate::{Database, Result, StatisticsBuilder, WriterLock};

/// Subject, predicate, object, and the graph's name if it is not the default graph.
pub type SmallQuad = (
    Term<'static>,
    Term<'static>,
    Term<'static>,
    Option<Term<'static>>,
);

/// Creates a database in a directory, or replaces the content of the one there, so that it holds
/// exactly the given quads (duplicates count once).
pub fn build_small(directory: impl AsRef<Path>, quads: &[SmallQuad]) -> Result<Database> {
    build_small_with(Arc::new(LocalFileSystem), directory, quads)
}

/// Builds through a given file system, for tests that inject faults.
pub fn build_small_with(
    file_system: Arc<dyn FileSystem>,
    directory: impl AsRef<Path>,
    quads: &[SmallQuad],
) -> Result<Database> {
    let database = Database::create_or_open_with(Arc::clone(&file_system), directory)?;
    let lock = WriterLock::acquire_with(&file_system, database.directory())?;
    let builder = SegmentBuilder::begin(&database, &lock)?;
    let ids = write_dictionary(&builder, quads)?;
    let rows: BTreeSet<[u64; 4]> = quads
        .iter()
        .map(|(subject, predicate, object, graph)| {
            let graph = graph
                .as_ref()
                .map_or(TermId::DEFAULT_GRAPH, |graph| ids.id(graph));
            [ids.id(subject), ids.id(predicate), ids.id(object), graph].map(TermId::bits)
        })
        .collect();
    let has_named_graphs = quads.iter().any(|quad| quad.3.is_some());
    let mut statistics = StatisticsBuilder::default();
    for permutation in Permutation::ALL {
        if permutation == Permutation::Gspo && !has_named_graphs {
            continue;
        }
        let mut sorted: Vec<QuadRow> = rows.iter().map(|&quad| permutation.arrange(quad)).collect();
        sorted.sort_unstable();
        let mut index = builder.files().index(permutation)?;
        index.push_rows(&sorted)?;
        index.finish()?;
        statistics.observe(permutation, &sorted);
    }
    let counts = PublishedCounts {
        quads: rows.len() as u64,
        terms: ids.ranks.len() as u64,
        next_blank_node: next_blank_node(quads),
    };
    builder.publish(counts, &statistics.finish())?;
    drop(lock);
    Ok(database)
}

/// The ranks of the terms that stand in the dictionary.
struct Ids {
    ranks: BTreeMap<Vec<u8>, u64>,
    iris: u64,
}

impl Ids {
    fn id(&self, term: &Term<'_>) -> TermId {
        if let Term::BlankNode(number) = term {
            return TermId::blank_node(*number);
        }
        if let Some(id) = inline(term) {
            return id;
        }
        let mut key = Vec::new();
        write_key(term, &mut key);
        // All terms of the quads were entered.
        match self.ranks.get(&key) {
            Some(&rank) if rank < self.iris => TermId::iri(rank),
            Some(&rank) if matches!(term, Term::Triple(_)) => TermId::triple_term(rank),
            Some(&rank) => TermId::literal(rank),
            None => TermId::DEFAULT_GRAPH,
        }
    }
}

fn write_dictionary(builder: &SegmentBuilder<'_>, quads: &[SmallQuad]) -> Result<Ids> {
    let mut keys = BTreeSet::new();
    for term in quads.iter().flat_map(terms_of) {
        if !matches!(term, Term::BlankNode(_)) && inline(term).is_none() {
            let mut key = Vec::new();
            write_key(term, &mut key);
            keys.insert(key);
        }
    }
    let mut writer = builder.files().dictionary()?;
    let mut ranks = BTreeMap::new();
    for key in keys {
        let rank = writer.push(&key)?;
        ranks.insert(key, rank);
    }
    let summary = writer.finish()?;
    Ok(Ids {
        ranks,
        iris: summary.iris,
    })
}

fn terms_of(quad: &SmallQuad) -> impl Iterator<Item = &Term<'static>> {
    [&quad.0, &quad.1, &quad.2].into_iter().chain(&quad.3)
}

fn next_blank_node(quads: &[SmallQuad]) -> u64 {
    let numbers = quads.iter().flat_map(terms_of).filter_map(blank_node_limit);
    numbers.max().unwrap_or(0)
}

/// The first number above those of the blank nodes in a term.
fn blank_node_limit(term: &Term<'_>) -> Option<u64> {
    match term {
        Term::BlankNode(number) => Some(number + 1),
        Term::Iri(_) | Term::Literal(_) => None,
        Term::Triple(triple) => triple
            .parts()
            .into_iter()
            .filter_map(blank_node_limit)
            .max(),
    }
}
