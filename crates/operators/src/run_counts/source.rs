//! The source of a pattern's runs: a permutation, leading constants, and a filter of rows.

use std::sync::Arc;

use orrery_storage::{IndexView, Permutation};
use orrery_term::TermId;

use crate::context::QueryContext;
use crate::pattern::{GraphScope, QuadPattern, Slot};

/// Where the runs of a pattern are.
#[derive(Debug)]
pub(crate) struct RunSource {
    pub(crate) index: IndexView,
    /// The constants that lead the permutation; the key comes next.
    pub(crate) prefix: Vec<TermId>,
    pub(crate) counted: CountedRows,
}

/// Which rows of a run are solutions: where there are named graphs, a triple may have several rows,
/// next to each other but for the permutation that begins with the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedRows {
    All,
    /// The first row of each triple.
    Triples,
    /// Those in one graph.
    InGraph(TermId),
    /// Those in graphs that have names.
    InNamedGraphs,
}

/// The permutation in which the rows of each value stand together, the constants that lead it, and
/// which of the rows count.
pub(super) fn runs_of(
    context: &QueryContext,
    pattern: &QuadPattern,
    key: &Arc<str>,
) -> Option<RunSource> {
    let view = context.view();
    let source = |permutation, prefix, counted| {
        Some(RunSource {
            index: view.index(permutation)?,
            prefix,
            counted,
        })
    };
    let slots = [&pattern.subject, &pattern.predicate, &pattern.object];
    let variables = slots.iter().filter(|slot| slot.variable().is_some());
    let mut occurrences = variables.count();
    let constants = slots.len() - occurrences;
    let counted = match &pattern.graph {
        GraphScope::NamedVariable {
            variable,
            allowed: None,
        } if variable == key => {
            return match is_everything(pattern) {
                true => source(Permutation::Gspo, Vec::new(), CountedRows::All),
                false => None,
            };
        }
        GraphScope::NamedVariable { allowed: None, .. } => {
            occurrences += 1;
            CountedRows::InNamedGraphs
        }
        GraphScope::Default | GraphScope::AllUnion if !view.has_named_graphs() => CountedRows::All,
        GraphScope::Default => CountedRows::InGraph(TermId::DEFAULT_GRAPH),
        GraphScope::Named(graph) => CountedRows::InGraph(*graph),
        GraphScope::AllUnion => CountedRows::Triples,
        GraphScope::Union(_) | GraphScope::NamedVariable { .. } => return None,
    };
    if pattern.variables().len() != occurrences {
        return None;
    }
    let (permutation, prefix) = [
        Permutation::Psog,
        Permutation::Posg,
        Permutation::Spog,
        Permutation::Ospg,
    ]
    .into_iter()
    .find_map(|permutation| {
        let columns = permutation.columns().map(|position| pattern.slot(position));
        let prefix: Vec<TermId> = columns
            .iter()
            .map_while(|slot| match slot {
                Some(Slot::Constant(term)) => Some(*term),
                Some(Slot::Variable(_)) | None => None,
            })
            .take(constants)
            .collect();
        let next = columns.get(prefix.len()).copied().flatten();
        let is_run = prefix.len() == constants && next.and_then(Slot::variable) == Some(key);
        is_run.then_some((permutation, prefix))
    })?;
    let source = source(permutation, prefix, counted)?;
    is_read_gladly(context, &source).then_some(source)
}

/// Whether no more rows are read than the graphs in question have, which a join would read at
/// worst. (An error is told by whoever reads.)
fn is_read_gladly(context: &QueryContext, source: &RunSource) -> bool {
    let (graph, is_named) = match source.counted {
        CountedRows::All | CountedRows::Triples => return true,
        CountedRows::InGraph(graph) => (graph, true),
        CountedRows::InNamedGraphs => (TermId::DEFAULT_GRAPH, false),
    };
    let Some(graphs) = context.view().index(Permutation::Gspo) else {
        return false;
    };
    let rows = |index: &IndexView, prefix: &[TermId]| index.range(prefix).map(|rows| rows.len());
    let (Ok(of_graph), Ok(all), Ok(read)) = (
        rows(&graphs, &[graph]),
        rows(&graphs, &[]),
        rows(&source.index, &source.prefix),
    ) else {
        return false;
    };
    let wanted = match is_named {
        true => of_graph,
        false => all.saturating_sub(of_graph),
    };
    read <= wanted
}

/// Whether a pattern in a graph matches all that is in it: all its variables are different.
fn is_everything(pattern: &QuadPattern) -> bool {
    pattern.variables().len() == 4
}
