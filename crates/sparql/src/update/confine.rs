//! Updates confined to one graph, for `PATCH` of the graph store protocol.
//!
//! The graph takes the place of the default graph in all operations; one that would change another
//! graph is refused. Reading others is fine.

use orrery_term::Term;
use spargebra::GraphUpdateOperation;
use spargebra::algebra::{GraphTarget, QueryDataset};
use spargebra::term::{GraphNamePattern, NamedNode};

use super::{Operation, ParsedUpdate, Statements};

impl ParsedUpdate {
    /// Confines the operations to one graph, the default graph if unnamed. Else says which
    /// operation cannot.
    pub fn confine(&mut self, graph: Option<&str>) -> Result<(), String> {
        let graph = graph.map(NamedNode::new_unchecked);
        for (number, operation) in self.operations.iter_mut().enumerate() {
            if !confine(operation, graph.as_ref()) {
                return Err(format!(
                    "operation {} of the update names another graph than the one that is patched",
                    number + 1
                ));
            }
        }
        Ok(())
    }
}

/// Whether it could be done.
fn confine(operation: &mut Operation, graph: Option<&NamedNode>) -> bool {
    match operation {
        Operation::InsertData(data) | Operation::DeleteData(data) | Operation::Loaded(data) => {
            statements(data, graph)
        }
        Operation::Other(GraphUpdateOperation::DeleteInsert {
            delete,
            insert,
            using,
            ..
        }) => {
            let of_delete = delete.iter_mut().map(|quad| &mut quad.graph_name);
            let of_insert = insert.iter_mut().map(|quad| &mut quad.graph_name);
            let is_done = of_delete
                .chain(of_insert)
                .all(|name| graph_name(name, graph));
            if let (Some(graph), None) = (graph, &using) {
                *using = Some(QueryDataset {
                    default: vec![graph.clone()],
                    named: None,
                });
            }
            is_done
        }
        Operation::Other(
            GraphUpdateOperation::Clear { graph: target, .. }
            | GraphUpdateOperation::Drop { graph: target, .. },
        ) => match (&target, graph) {
            (GraphTarget::DefaultGraph, Some(graph)) => {
                *target = GraphTarget::NamedNode(graph.clone());
                true
            }
            (GraphTarget::DefaultGraph, None) => true,
            (GraphTarget::NamedNode(node), graph) => Some(node) == graph,
            (GraphTarget::NamedGraphs | GraphTarget::AllGraphs, _) => false,
        },
        // It is of the database, not of a graph.
        Operation::Weight(_) => false,
        Operation::Other(GraphUpdateOperation::Create { graph: node, .. }) => Some(&*node) == graph,
        Operation::Other(
            GraphUpdateOperation::InsertData { .. }
            | GraphUpdateOperation::DeleteData { .. }
            | GraphUpdateOperation::Load { .. },
        ) => false,
    }
}

fn statements(data: &mut Statements, graph: Option<&NamedNode>) -> bool {
    match graph {
        None => !data.has_named_graphs(),
        Some(graph) => data
            .move_to_graph(&Term::iri(graph.as_str()))
            .unwrap_or(false),
    }
}

fn graph_name(name: &mut GraphNamePattern, graph: Option<&NamedNode>) -> bool {
    match (&name, graph) {
        (GraphNamePattern::DefaultGraph, Some(graph)) => {
            *name = graph.clone().into();
            true
        }
        (GraphNamePattern::DefaultGraph, None) => true,
        (GraphNamePattern::NamedNode(node), graph) => Some(node) == graph,
        (GraphNamePattern::Variable(_), _) => false,
    }
}
