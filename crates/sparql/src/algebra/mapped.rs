//! Items of groups over mapped graphs, whose rows come from elsewhere.

use std::sync::Arc;

use orrery_term::TermId;

use super::{Var, VarSet};
use crate::mapped::{MappedCondition, MappedDataset, MappedRows};

/// The mapped graphs of a query, with the ids of their names.
pub(crate) struct SeenMapped {
    pub(crate) dataset: Arc<dyn MappedDataset>,
    pub(crate) graphs: Vec<(TermId, Arc<str>)>,
}

impl SeenMapped {
    /// The id of the name of a mapped graph.
    pub(crate) fn id(&self, name: &str) -> Option<TermId> {
        let found = self.graphs.iter().find(|(_, graph)| **graph == *name);
        found.map(|(id, _)| *id)
    }
}

/// A leaf over a mapped graph.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    pub(crate) rows: Arc<dyn MappedRows>,
    /// What each solution binds.
    pub(crate) variables: Vec<Var>,
    /// What is known of the variables by filters, which look again.
    pub(crate) conditions: Vec<MappedCondition>,
}

impl Mapped {
    pub(crate) fn visible(&self) -> VarSet {
        VarSet::of(self.variables.iter().copied())
    }

    pub(crate) fn expected_rows(&self) -> f64 {
        // A condition leaves a few.
        const LEFT: f64 = 0.1;
        let conditions = i32::try_from(self.conditions.len()).unwrap_or(i32::MAX);
        (self.rows.expected_rows() * LEFT.powi(conditions.min(10))).max(1.0)
    }
}
