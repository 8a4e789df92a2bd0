//! The write scope: the graphs an asker may change, the counterpart of [`ReadScope`].

use std::sync::Arc;

use orrery_storage::{GraphNames, ReadScope};
use orrery_term::Term;

use crate::error::QueryError;

/// The graphs that may be changed. Cheap to copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteScope {
    /// All graphs if there is no list.
    graphs: Option<Arc<GraphNames>>,
}

impl WriteScope {
    /// All graphs, also those to come.
    pub fn all_graphs() -> Self {
        Self { graphs: None }
    }

    /// These graphs and no others.
    pub fn only(graphs: GraphNames) -> Self {
        Self {
            graphs: Some(Arc::new(graphs)),
        }
    }

    /// The default write scope of an asker: all graphs if all are readable, else none.
    pub fn of(scope: &ReadScope) -> Self {
        match scope.graphs() {
            None => Self::all_graphs(),
            Some(_) => Self::only(GraphNames::default()),
        }
    }

    /// Whether all graphs may be changed.
    pub fn is_all(&self) -> bool {
        self.graphs.is_none()
    }

    /// Whether none may be.
    pub fn is_none(&self) -> bool {
        let graphs = self.graphs.as_deref();
        graphs.is_some_and(GraphNames::is_empty)
    }

    /// Whether a graph may be changed; the default graph has no name.
    pub fn allows(&self, graph: Option<&Term<'static>>) -> bool {
        let graphs = self.graphs.as_deref();
        graphs.is_none_or(|graphs| graphs.contains(graph))
    }

    /// Whether the graph of an IRI may be changed.
    pub fn allows_iri(&self, graph: Option<&str>) -> bool {
        let name = graph.map(|iri| Term::iri(iri.to_owned()));
        self.allows(name.as_ref())
    }

    /// Refuses a graph that may not be changed.
    ///
    /// # Errors
    /// [`QueryError::Forbidden`].
    pub fn require(&self, graph: Option<&Term<'static>>) -> Result<(), QueryError> {
        match (self.allows(graph), graph) {
            (true, _) => Ok(()),
            (false, None) => Err(QueryError::forbidden(
                "you may not change the default graph",
            )),
            (false, Some(name)) => Err(QueryError::forbidden(format!(
                "you may not change the graph {name}"
            ))),
        }
    }
}
