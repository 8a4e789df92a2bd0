//! A database of so many rows as the benches read, written without the loader.

use std::path::Path;

use orrery_storage::{
    Database, IndexView, Permutation, PublishedCounts, QuadRow, Result, SegmentBuilder,
    StatisticsBuilder, WriterLock,
};
use orrery_term::TermId;

pub(crate) const ROWS: u64 = 2_000_000;
pub(crate) const PREDICATES: u64 = 20;
const SUBJECTS: u64 = ROWS / PREDICATES;

pub(crate) fn scrambled(n: u64) -> u64 {
    (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 8
}

pub(crate) fn predicate(n: u64) -> TermId {
    TermId::iri(100 + n % PREDICATES)
}

pub(crate) fn subject(n: u64) -> TermId {
    TermId::iri(1000 + 3 * (n % SUBJECTS))
}

/// Each subject once under each predicate, with a random object; in the order of PSOG.
pub(crate) fn rows() -> Vec<QuadRow> {
    let mut rows: Vec<QuadRow> = (0..ROWS)
        .map(|n| {
            let object = TermId::literal(scrambled(n) % 3_000_000);
            let graph = TermId::DEFAULT_GRAPH;
            [predicate(n / SUBJECTS), subject(n), object, graph].map(TermId::bits)
        })
        .collect();
    rows.sort_unstable();
    rows
}

/// PSOG of a database with these rows. Its dictionary is empty: nothing asks for a term.
pub(crate) fn psog(directory: &Path, rows: &[QuadRow]) -> Result<IndexView> {
    let database = Database::create_or_open(directory)?;
    let lock = WriterLock::acquire(directory)?;
    let builder = SegmentBuilder::begin(&database, &lock)?;
    builder.files().dictionary()?.finish()?;
    let mut statistics = StatisticsBuilder::default();
    for permutation in Permutation::ALL {
        if permutation == Permutation::Gspo {
            continue;
        }
        let quads = rows.iter().map(|&row| Permutation::Psog.quad(row));
        let mut sorted: Vec<QuadRow> = quads.map(|quad| permutation.arrange(quad)).collect();
        sorted.sort_unstable();
        let mut writer = builder.files().index(permutation)?;
        writer.push_rows(&sorted)?;
        writer.finish()?;
        statistics.observe(permutation, &sorted);
    }
    let counts = PublishedCounts {
        quads: rows.len() as u64,
        terms: 0,
        next_blank_node: 0,
    };
    builder.publish(counts, &statistics.finish())?;
    drop(lock);
    let missing = || orrery_storage::Error::Corrupt {
        path: directory.to_owned(),
        offset: 0,
        what: "PSOG is missing".to_owned(),
    };
    database
        .view_of_process()
        .index(Permutation::Psog)
        .ok_or_else(missing)
}
