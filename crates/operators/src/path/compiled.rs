//! A compiled path, and the bindings of its ends.

use std::sync::Arc;

use arrow::array::{Array, UInt64Array};
use arrow::datatypes::SchemaRef;
use orrery_term::TermId;

use super::compile::Path;
use super::edges::{ActiveGraph, Edges};
use super::specification::PathSpecification;
use crate::context::QueryContext;
use crate::pattern::{GraphScope, Slot};
use crate::touch_counter::TouchCounter;

/// A compiled path.
#[derive(Debug)]
pub(super) struct CompiledPath {
    pub(super) context: Arc<QueryContext>,
    pub(super) specification: PathSpecification,
    pub(super) input_variables: Vec<Arc<str>>,
    pub(super) schema: SchemaRef,
    pub(super) forward: Path,
    pub(super) backward: Path,
    pub(super) touches: TouchCounter,
}

impl CompiledPath {
    /// What looks up neighbours in a graph, or merge of graphs.
    pub(super) fn edges(&self, graph: ActiveGraph) -> Edges {
        Edges::new(Arc::clone(self.context.view()), graph, &self.touches)
    }

    /// The input column of a variable.
    pub(super) fn input_column(&self, name: &Arc<str>) -> Option<usize> {
        let mut variables = self.input_variables.iter();
        variables.position(|variable| variable == name)
    }

    /// The graph, or merge of graphs, to walk in; none where a variable stands for one.
    pub(super) fn active_graph(&self) -> Option<ActiveGraph> {
        ActiveGraph::of(&self.specification.graph, self.context.view())
    }

    /// Whether the path leads from a bound end to itself only if that is a node of the graph:
    /// between two variables, while a constant end need not be one (SPARQL 1.1, 18.4,
    /// `ZeroLengthPath`).
    pub(super) fn is_among_nodes(&self) -> bool {
        let ends = [&self.specification.subject, &self.specification.object];
        ends.iter().all(|end| end.variable().is_some()) && self.forward.can_be_empty()
    }

    /// Whether an end can have a value before the path is walked.
    pub(super) fn may_be_bound(&self, slot: &Slot) -> bool {
        match (slot, &self.specification.graph) {
            (Slot::Constant(_), _) => true,
            (Slot::Variable(name), GraphScope::NamedVariable { variable, .. })
                if variable == name =>
            {
                true
            }
            (Slot::Variable(name), _) => self.input_column(name).is_some(),
        }
    }

    /// The value that an end has in an input row, in a graph.
    pub(super) fn value(
        &self,
        columns: &[UInt64Array],
        slot: &Slot,
        graph_name: Option<TermId>,
        row: u32,
    ) -> Option<u64> {
        match slot {
            Slot::Constant(term) => Some(term.bits()),
            Slot::Variable(name) => {
                if let GraphScope::NamedVariable { variable, .. } = &self.specification.graph
                    && variable == name
                {
                    return graph_name.map(TermId::bits);
                }
                value(columns, self.input_column(name), row)
            }
        }
    }
}

/// The value of a column that may not be there.
pub(super) fn value(columns: &[UInt64Array], column: Option<usize>, row: u32) -> Option<u64> {
    let column = &columns[column?];
    let row = row as usize;
    column.is_valid(row).then(|| column.value(row))
}
