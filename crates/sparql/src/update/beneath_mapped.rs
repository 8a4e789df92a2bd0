//! The check for quads stored beneath a mapped graph, where nobody would see them.
//!
//! ```text
//! state before, state after -> mapped graphs that have stored quads after -> has one of these come? -> refused
//! ```
//!
//! Quads may be there from before: of a load that does not look, or older than the mapping. They
//! cost a look-up for each mapped graph; and where a graph has some, what changed between the two
//! states is looked at. Where the states are not over the same base, as after a load in bulk, the
//! graph's quads after it are looked up in the state before.

use std::sync::Arc;

use orrery_storage::{COLUMNS, DeltaEntry, Permutation, ReadView, Snapshot};
use orrery_term::{Term, TermId};

use super::graphs;
use crate::error::QueryError;

/// Whether a quad of a named graph is there after a change that was not there before.
pub(super) fn has_come(
    [before, after]: [&Arc<Snapshot>; 2],
    name: &str,
) -> Result<bool, QueryError> {
    let graph = Term::iri(name);
    let Some(of_after) = after.term_id(&graph)? else {
        return Ok(false);
    };
    let view = ReadView::of_process(Arc::clone(after));
    if !graphs::has_quads(&view, of_after)? {
        return Ok(false);
    }
    let Some(of_before) = before.term_id(&graph)? else {
        return Ok(true);
    };
    let was = ReadView::of_process(Arc::clone(before));
    if graphs::quads_of(&view, of_after)? > graphs::quads_of(&was, of_before)? {
        return Ok(true);
    }
    match after.quads_changed_since(before)? {
        Some(changes) => {
            let of_graph = of_after.bits();
            let has_come = |it: &DeltaEntry| it.is_insertion && it.row.last() == Some(&of_graph);
            Ok(changes.iter().any(has_come))
        }
        None => is_one_new(&view, of_after, &was),
    }
}

/// Whether a quad of a graph stands in one state only. Their ids need not be the same.
fn is_one_new(view: &ReadView, graph: TermId, was: &ReadView) -> Result<bool, QueryError> {
    let (Some(index), Some(old)) = (view.index(Permutation::Gspo), was.index(Permutation::Gspo))
    else {
        // Where there are quads of a named graph in both, both have it.
        return Ok(true);
    };
    let mut old = old.cursor();
    let mut scan = index.scan(index.range(&[graph])?, [true; COLUMNS]);
    while let Some(vector) = scan.next_vector()? {
        for row in 0..vector.column(0).len() {
            let mut prefix = [TermId::DEFAULT_GRAPH; COLUMNS];
            for (column, id) in prefix.iter_mut().enumerate() {
                let bits = vector.column(column).get(row).copied().unwrap_or_default();
                let term = view.snapshot().term(TermId::from_bits(bits))?;
                let Some(known) = was.snapshot().term_id(&term)? else {
                    return Ok(true);
                };
                *id = known;
            }
            if old.seek(&prefix)?.is_empty() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
