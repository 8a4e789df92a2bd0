//! Removing all quads of graphs.

use orrery_storage::{Permutation, QuadPosition, RowRange, Snapshot, Transaction};
use orrery_term::{Term, TermId};
use spargebra::algebra::GraphTarget;

use crate::error::QueryError;

/// Quads of named graphs that are read and deleted at a time.
const RUN_ROWS: u64 = 1 << 16;

/// Deletes the quads that a `CLEAR` or `DROP` means.
pub(super) fn clear(target: &GraphTarget, transaction: &mut Transaction) -> Result<(), QueryError> {
    match target {
        GraphTarget::AllGraphs => drop(transaction.clear_all()?),
        GraphTarget::DefaultGraph => drop(transaction.clear_graph(TermId::DEFAULT_GRAPH)?),
        GraphTarget::NamedNode(node) => {
            let graph = transaction.snapshot()?.term_id(&Term::iri(node.as_str()))?;
            if let Some(graph) = graph {
                transaction.clear_graph(graph)?;
            }
        }
        GraphTarget::NamedGraphs => clear_named(transaction)?,
    }
    Ok(())
}

/// There may be as many graphs as quads, so they go by rows and not one by one.
fn clear_named(transaction: &mut Transaction) -> Result<(), QueryError> {
    let snapshot = transaction.snapshot()?;
    let Some(index) = snapshot.index(Permutation::Gspo) else {
        return Ok(());
    };
    let mut cursor = index.cursor();
    // The mark of the default graph is less than every term.
    let mut start = cursor.seek(&[TermId::DEFAULT_GRAPH])?.end;
    let places = [
        QuadPosition::Subject,
        QuadPosition::Predicate,
        QuadPosition::Object,
        QuadPosition::Graph,
    ]
    .map(|position| Permutation::Gspo.column_of(position));
    let mut columns: [Vec<u64>; 4] = Default::default();
    while start < index.rows() {
        let run = RowRange::new(start, index.rows().min(start + RUN_ROWS));
        for (place, column) in columns.iter_mut().enumerate() {
            column.clear();
            cursor.read(run, place, column)?;
        }
        let quad = |row: usize| places.map(|place| TermId::from_bits(columns[place][row]));
        let mut quads: Vec<[TermId; 4]> = (0..columns[0].len()).map(quad).collect();
        transaction.delete(&mut quads)?;
        start = run.end;
    }
    Ok(())
}

/// Whether a graph has quads.
pub(super) fn has_quads(snapshot: &Snapshot, graph: TermId) -> Result<bool, QueryError> {
    match snapshot.index(Permutation::Gspo) {
        Some(index) => Ok(!index.cursor().seek(&[graph])?.is_empty()),
        // There is the default graph only.
        None => Ok(graph == TermId::DEFAULT_GRAPH && snapshot.quad_count() > 0),
    }
}
