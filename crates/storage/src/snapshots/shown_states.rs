//! The filter that reduces a snapshot to the graphs an asker may read.
//!
//! Filtering a state costs a list of graphs what was committed since the last state that this list
//! asked for, in time and in memory: the filtered changes that are cached beside the files
//! ([`crate::snapshots::shown_files`]) are reused. The names of graphs alone decide what is
//! visible, so the visible changes of a state are always those of graphs on the list, whichever
//! state they were made from. This needs ids that stand for the same name in both states, as those
//! of committed terms do over the same files. An open transaction may still give an id to another
//! term, so nothing is cached of its filtered state.

use std::sync::Arc;

use hashbrown::HashMap;
use orrery_term::TermId;

use crate::Result;
use crate::access::read_scope::GraphNames;
use crate::quads::changes::has_named_graph;
use crate::quads::delta::{DeltaEntry, DeltaIndex};
use crate::quads::graph_set::GraphSet;
use crate::quads::index::{COLUMNS, Permutation};
use crate::snapshots::shown_files::{ShownChanges, ShownList};
use crate::snapshots::snapshot::Snapshot;

/// What a list of graphs shows of a state that is whole, and about how many bytes that takes beside
/// the state.
pub(crate) fn shown_to(graphs: &Arc<GraphNames>, state: &Snapshot) -> Result<(Snapshot, u64)> {
    let files = state.shown_files();
    let list = match files.find(graphs) {
        Some(list) => list,
        None => files.add(graphs, hidden_in_files(state, graphs)?, state.stored())?,
    };
    let left = Arc::new(changes_of(&list, state)?);
    if !state.is_of_transaction() {
        list.note(Arc::clone(&left));
    }
    files.shrink(state.commit());
    let sampled = Arc::clone(&left.sampled);
    let shown = state.showing(&list.files, left.deltas.clone(), sampled)?;
    let changes_bytes = if left.is_whole { 0 } else { left.bytes };
    Ok((shown, list.files_bytes + changes_bytes))
}

/// What is left of the changes of a state, made from what was left of another one.
fn changes_of(list: &ShownList, state: &Snapshot) -> Result<ShownChanges> {
    let last = list.last();
    let whole = state.deltas().get(Permutation::Spog).cloned();
    let whole = whole.unwrap_or_else(|| DeltaIndex::new(Permutation::Spog));
    let all = whole.changes_since(&last.whole)?;
    let changes = shown_of(&all, &list.graphs, state, last.delta_terms)?;
    let is_whole = last.is_whole && changes.len() == all.len();
    let deltas = match is_whole {
        true => state.deltas().clone(),
        false => {
            let has_gspo = list.files.indexes.get(Permutation::Gspo).is_some()
                || last.deltas.get(Permutation::Gspo).is_some();
            let with_gspo = has_gspo || has_named_graph(&changes);
            last.deltas.apply(&changes, None, with_gspo)?
        }
    };
    Ok(ShownChanges {
        commit: state.commit(),
        delta_terms: state.delta_terms(),
        bytes: whole.memory_bytes() + deltas.memory_bytes(),
        whole,
        deltas,
        is_whole,
        sampled: match changes.is_empty() {
            true => Arc::clone(&last.sampled),
            false => Arc::default(),
        },
    })
}

/// Those of some changes that are in graphs of a list.
fn shown_of(
    changes: &[DeltaEntry],
    graphs: &GraphNames,
    state: &Snapshot,
    delta_terms: u64,
) -> Result<Vec<DeltaEntry>> {
    let mut known: HashMap<u64, bool> = HashMap::new();
    let mut shown = Vec::new();
    for change in changes {
        let graph = change.row[COLUMNS - 1];
        let is_shown = match known.get(&graph) {
            Some(is_shown) => *is_shown,
            None => {
                let is_shown = has(graphs, TermId::from_bits(graph), state, delta_terms)?;
                known.insert(graph, is_shown);
                is_shown
            }
        };
        if is_shown {
            shown.push(*change);
        }
    }
    Ok(shown)
}

/// Whether a graph is in a list: one that the state knows, or another one with so many terms of the
/// delta dictionary.
fn has(graphs: &GraphNames, graph: TermId, state: &Snapshot, delta_terms: u64) -> Result<bool> {
    if graph == TermId::DEFAULT_GRAPH {
        return Ok(graphs.has_default);
    }
    if graphs.named.is_empty() && graphs.below.is_empty() {
        return Ok(false);
    }
    let name = state.term_of_any(graph, delta_terms)?;
    Ok(graphs.contains(Some(&name)))
}

/// The graphs of the files below a state that a list does not have.
fn hidden_in_files(state: &Snapshot, visible: &GraphNames) -> Result<GraphSet> {
    let hidden = match visible.has_default {
        true => GraphSet::default(),
        false => GraphSet::one(TermId::DEFAULT_GRAPH),
    };
    let Some(gspo) = state.stored().indexes.get(Permutation::Gspo) else {
        // There is nothing but the default graph.
        return Ok(match visible.has_default {
            true => hidden,
            false => GraphSet::all(),
        });
    };
    if visible.named.is_empty() && visible.below.is_empty() {
        return Ok(hidden.union(&GraphSet::named()));
    }
    let mut shown = Vec::with_capacity(visible.named.len());
    for name in &visible.named {
        shown.extend(state.term_id(name)?);
    }
    shown.sort_unstable();
    let (mut cursor, mut last) = (gspo.cursor(), TermId::DEFAULT_GRAPH);
    let mut others = Vec::new();
    while let Some(graph) = cursor.distinct_next(&[], Some(last))? {
        let is_shown = shown.binary_search(&graph).is_ok()
            || !visible.below.is_empty() && visible.below.contains(&state.term(graph)?);
        if !is_shown {
            others.push(graph);
        }
        last = graph;
    }
    Ok(hidden.union(&GraphSet::listing(others)))
}
