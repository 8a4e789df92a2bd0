//! The check of write rights before an update changes graphs ([`WriteScope`]).
//!
//! ```text
//! graphs that the text names (data, templates, CLEAR, CREATE, LOAD INTO) -> before the first operation
//! graphs that solutions name (GRAPH ?g in a template)                    -> as their quads are made
//! CLEAR ALL, CLEAR NAMED: the graphs that the asker sees                 -> as they are listed
//! ```
//!
//! What is refused is a name that the asker wrote, or a graph that the asker sees; whether a graph
//! that is hidden has quads makes no difference.

use orrery_term::Term;
use spargebra::GraphUpdateOperation;
use spargebra::algebra::GraphTarget;
use spargebra::term::{GraphName, GraphNamePattern, NamedNode};

use super::{Operation, UpdateOptions};
use crate::edge_weights::definition::DEFINITIONS;
use crate::error::QueryError;
use crate::write_scope::WriteScope;

impl UpdateOptions {
    /// Whether all graphs are seen and may be changed: then nothing is asked of any of them.
    pub(super) fn are_of_all_graphs(&self) -> bool {
        self.writes.is_all() && self.query.scope.graphs().is_none()
    }

    /// Fails where nothing may be changed.
    pub(super) fn check_may_write(&self) -> Result<(), QueryError> {
        if !self.writes.is_none() {
            return Ok(());
        }
        self.query.scope.require_all_graphs("change data")?;
        Err(QueryError::forbidden("you may not change any graph"))
    }
}

impl Operation {
    /// Refuses an operation that names a graph that may not be changed.
    pub(super) fn check(&self, writes: &WriteScope) -> Result<(), QueryError> {
        if writes.is_all() {
            return Ok(());
        }
        let of_pattern = |graph: &GraphNamePattern| match graph {
            GraphNamePattern::DefaultGraph => writes.require(None),
            GraphNamePattern::NamedNode(name) => require_node(writes, Some(name)),
            GraphNamePattern::Variable(_) => Ok(()),
        };
        let of_name = |graph: &GraphName| match graph {
            GraphName::DefaultGraph => writes.require(None),
            GraphName::NamedNode(name) => require_node(writes, Some(name)),
        };
        match self {
            Self::InsertData(data) | Self::DeleteData(data) | Self::Loaded(data) => data
                .graphs()?
                .iter()
                .try_for_each(|graph| writes.require(graph.as_ref())),
            Self::Weight(_) => writes.require(Some(&Term::iri(DEFINITIONS))),
            Self::Other(operation) => match operation {
                GraphUpdateOperation::DeleteInsert { delete, insert, .. } => {
                    delete
                        .iter()
                        .try_for_each(|quad| of_pattern(&quad.graph_name))?;
                    insert
                        .iter()
                        .try_for_each(|quad| of_pattern(&quad.graph_name))
                }
                GraphUpdateOperation::Clear { graph, .. }
                | GraphUpdateOperation::Drop { graph, .. } => match graph {
                    GraphTarget::NamedNode(name) => require_node(writes, Some(name)),
                    GraphTarget::DefaultGraph => writes.require(None),
                    // Those that are there are asked for one by one.
                    GraphTarget::NamedGraphs | GraphTarget::AllGraphs => Ok(()),
                },
                GraphUpdateOperation::Create { graph, .. } => require_node(writes, Some(graph)),
                GraphUpdateOperation::Load { destination, .. } => of_name(destination),
                GraphUpdateOperation::InsertData { data } => {
                    data.iter().try_for_each(|quad| of_name(&quad.graph_name))
                }
                GraphUpdateOperation::DeleteData { data } => {
                    data.iter().try_for_each(|quad| of_name(&quad.graph_name))
                }
            },
        }
    }
}

fn require_node(writes: &WriteScope, graph: Option<&NamedNode>) -> Result<(), QueryError> {
    let name = graph.map(|node| Term::iri(node.as_str().to_owned()));
    writes.require(name.as_ref())
}
