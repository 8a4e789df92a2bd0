//! The choice of the permutation that a step reads.

use std::sync::Arc;

use datafusion_common::Result;
use orrery_storage::{IndexView, Permutation, QuadPosition, ReadView};
use orrery_term::TermId;

use crate::pattern::program::Key;
use crate::solutions::storage_error;

/// What is known about one position of a quad when a step begins.
#[derive(Clone, Debug)]
pub(crate) enum KnownPosition {
    /// A constant or a column of the incoming chunk.
    Fixed(Key),
    /// A variable that this step binds.
    Free(Arc<str>),
    /// Not asked for: the graph, when it does not matter.
    Ignored,
}

impl KnownPosition {
    fn key(&self) -> Option<Key> {
        match self {
            Self::Fixed(key) => Some(*key),
            Self::Free(_) | Self::Ignored => None,
        }
    }

    fn constant(&self) -> Option<TermId> {
        match self {
            Self::Fixed(Key::Constant(term)) => Some(*term),
            Self::Fixed(Key::Column(_)) | Self::Free(_) | Self::Ignored => None,
        }
    }
}

/// The four positions of a step's pattern: subject, predicate, object, graph.
#[derive(Clone, Debug)]
pub(crate) struct Positions(pub(crate) [KnownPosition; 4]);

impl Positions {
    pub(crate) fn at(&self, position: QuadPosition) -> &KnownPosition {
        &self.0[position_number(position)]
    }

    /// The known leading columns of a permutation.
    pub(crate) fn prefix(&self, permutation: Permutation) -> Vec<Key> {
        permutation
            .columns()
            .into_iter()
            .map_while(|position| self.at(position).key())
            .collect()
    }

    fn constant_prefix(&self, permutation: Permutation) -> Vec<TermId> {
        permutation
            .columns()
            .into_iter()
            .map_while(|position| self.at(position).constant())
            .collect()
    }

    /// Whether every known position is a constant.
    fn is_constant(&self) -> bool {
        self.0
            .iter()
            .all(|known| !matches!(known, KnownPosition::Fixed(Key::Column(_))))
    }
}

/// Subject 0, predicate 1, object 2, graph 3.
pub(crate) const fn position_number(position: QuadPosition) -> usize {
    match position {
        QuadPosition::Subject => 0,
        QuadPosition::Predicate => 1,
        QuadPosition::Object => 2,
        QuadPosition::Graph => 3,
    }
}

/// What the choice depends on besides the known positions.
pub(crate) struct AccessNeeds<'a> {
    /// There are bounds on the object.
    pub(crate) has_object_ranges: bool,
    /// The variables that the next step looks up: best read in their order.
    pub(crate) next_keys: &'a [Arc<str>],
    /// The variables of which a filter of this step reads the terms: best read in their own order,
    /// for then each page of the dictionary is read once and equal terms are neighbours.
    pub(crate) read_terms: &'a [&'a str],
    /// Equal triples must come out side by side, so the graph must be the last column.
    pub(crate) merges_graphs: bool,
}

/// Among equals the earlier one is taken. Those that start with the predicate come first: with it
/// known the rows asked for lie closest together.
const GRAPH_LAST: [Permutation; 4] = [
    Permutation::Psog,
    Permutation::Posg,
    Permutation::Spog,
    Permutation::Ospg,
];

/// The permutation with the longest known prefix; see the comments for ties and for GSPO.
pub(crate) fn choose(
    view: &ReadView,
    positions: &Positions,
    needs: &AccessNeeds<'_>,
) -> Result<IndexView> {
    let mut best: Option<(Score, Permutation)> = None;
    for permutation in GRAPH_LAST {
        if !view.has_index(permutation) {
            continue;
        }
        let score = score(positions, permutation, needs);
        if best.is_none_or(|(best_score, _)| score > best_score) {
            best = Some((score, permutation));
        }
    }
    let Some(best) = best.and_then(|(_, best)| view.index(best)) else {
        return Err(datafusion_common::DataFusionError::Internal(
            "the database has no sorted permutation".to_owned(),
        ));
    };
    if !needs.merges_graphs
        && let Some(by_graph) = view.index(Permutation::Gspo)
        && prefers_graph_first(positions, &best, &by_graph)?
    {
        return Ok(by_graph);
    }
    Ok(best)
}

/// The higher the better, from the first element on.
type Score = (usize, usize, bool, bool, bool);

/// Prefix length; then constants before looked-up columns (neighbouring keys stay close together);
/// then a prefix that bounds on the object can narrow; then the order of the next step's keys; then
/// that of terms that a filter reads.
fn score(positions: &Positions, permutation: Permutation, needs: &AccessNeeds<'_>) -> Score {
    let columns = permutation.columns();
    let prefix = positions.prefix(permutation).len();
    let constants = positions.constant_prefix(permutation).len();
    let next = columns.get(prefix);
    let narrows =
        needs.has_object_ranges && prefix == constants && next == Some(&QuadPosition::Object);
    let bound = next.and_then(|&position| match positions.at(position) {
        KnownPosition::Free(variable) => Some(variable),
        KnownPosition::Fixed(_) | KnownPosition::Ignored => None,
    });
    let sorts = bound.is_some_and(|variable| needs.next_keys.contains(variable));
    let reads = bound.is_some_and(|variable| needs.read_terms.contains(&&**variable));
    (prefix, constants, narrows, sorts, reads)
}

/// Whether to walk GSPO instead of the best of the others.
fn prefers_graph_first(
    positions: &Positions,
    best: &IndexView,
    by_graph: &IndexView,
) -> Result<bool> {
    let best_prefix = positions.prefix(best.permutation());
    if matches!(positions.at(QuadPosition::Graph), KnownPosition::Free(_)) {
        // A scan of everything but the default graph: one range in GSPO.
        return Ok(best_prefix.is_empty());
    }
    let graph_prefix = positions.prefix(Permutation::Gspo);
    if graph_prefix.is_empty() {
        return Ok(false);
    }
    if positions.is_constant() {
        let rows = best
            .range(&positions.constant_prefix(best.permutation()))
            .map_err(storage_error)?
            .len();
        let rows_by_graph = by_graph
            .range(&positions.constant_prefix(Permutation::Gspo))
            .map_err(storage_error)?
            .len();
        return Ok(rows_by_graph < rows);
    }
    // Looked up by a column: only when the others know less than the subject and the predicate.
    Ok(best_prefix.len() < 2 && graph_prefix.len() > best_prefix.len())
}
