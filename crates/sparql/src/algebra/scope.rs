//! The graph scope of a part of a query.

use std::sync::Arc;

use orrery_term::TermId;

use super::Var;

/// The graphs of a pattern, with the planner's variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The default graph of the store.
    Default,
    /// The merge of the graphs of `FROM`; may be empty.
    Union(Arc<[TermId]>),
    /// The merge of all graphs.
    AllUnion,
    /// `GRAPH <g>`.
    Named(TermId),
    /// `GRAPH ?g`.
    NamedVariable {
        variable: Var,
        allowed: Option<Arc<[TermId]>>,
    },
}

impl Scope {
    pub(crate) fn variable(&self) -> Option<Var> {
        match self {
            Self::NamedVariable { variable, .. } => Some(*variable),
            Self::Default | Self::Union(_) | Self::AllUnion | Self::Named(_) => None,
        }
    }

    /// Whether no graph is in it.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Union(graphs) => graphs.is_empty(),
            Self::NamedVariable { allowed, .. } => allowed.as_ref().is_some_and(|a| a.is_empty()),
            Self::Default | Self::AllUnion | Self::Named(_) => false,
        }
    }
}

/// The RDF dataset of a query (SPARQL 1.1 Query, 13).
#[derive(Clone, Debug)]
pub(crate) struct Dataset {
    /// What patterns outside `GRAPH` match.
    pub(crate) default: Scope,
    /// The graphs that `GRAPH` may see; all where there is no list.
    pub(crate) named: Option<Arc<[TermId]>>,
}

impl Dataset {
    /// The graphs that are in it; all where there is no list.
    pub(crate) fn graphs(&self) -> Option<Arc<[TermId]>> {
        let default: &[TermId] = match &self.default {
            Scope::Union(graphs) => graphs,
            Scope::Default | Scope::AllUnion | Scope::Named(_) | Scope::NamedVariable { .. } => &[],
        };
        let named = self.named.as_ref()?;
        Some(default.iter().chain(named.iter()).copied().collect())
    }

    /// The scope of `GRAPH <name>`; the merge of no graphs where the dataset excludes it.
    pub(crate) fn named_graph(&self, name: Option<TermId>) -> Scope {
        match (name, &self.named) {
            (Some(graph), Some(list)) if list.contains(&graph) => Scope::Named(graph),
            (Some(graph), None) => Scope::Named(graph),
            (Some(_), Some(_)) | (None, _) => Scope::Union(Arc::from([])),
        }
    }

    /// The scope of `GRAPH ?variable`.
    pub(crate) fn any_named_graph(&self, variable: Var) -> Scope {
        Scope::NamedVariable {
            variable,
            allowed: self.named.clone(),
        }
    }
}
