//! A whole cached plan.

use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;

use super::node::{Keeping, KeptNode};
use super::parameters::{Bindings, Parameter, PassingIds};
use crate::context::QueryContext;
use crate::error::Result;
use crate::pattern::ObjectRanges;

/// More nodes than this above each other are not kept: the walk recurses.
const DEPTH_MAX: usize = 64;

/// A plan without its query.
#[derive(Debug)]
pub struct KeptPlan {
    root: KeptNode,
    /// Conditions and ranges that depend on parameters.
    patterns: usize,
}

impl KeptPlan {
    /// The cacheable form of a plan; none if one of its nodes cannot be cached.
    pub fn of(
        plan: &Arc<dyn ExecutionPlan>,
        parameters: &[Parameter],
        passing_ids: &mut PassingIds<'_>,
    ) -> Option<Self> {
        let mut keeping = Keeping {
            parameters,
            passing_ids,
            patterns: 0,
            shared: Vec::new(),
        };
        let root = keeping.node(plan, DEPTH_MAX)?;
        Some(Self {
            root,
            patterns: keeping.patterns,
        })
    }

    /// The conditions and ranges for other parameters, as many as there were. Nothing where the
    /// plan is none for these: a condition that bounded ids no longer does.
    pub fn bind(
        &self,
        parameters: Vec<Parameter>,
        replaced: &[Parameter],
        passing_ids: &mut PassingIds<'_>,
    ) -> Option<Bindings> {
        let mut bindings = Bindings {
            patterns: Vec::with_capacity(self.patterns),
            shared: Vec::new(),
            parameters,
        };
        self.root.bind(&mut bindings, replaced, passing_ids)?;
        Some(bindings)
    }

    /// The pairs of a range of ids as it was when the plan was kept, and as it is now.
    pub fn ranges<'r>(
        &'r self,
        bindings: &'r Bindings,
    ) -> Vec<(&'r ObjectRanges, &'r ObjectRanges)> {
        let mut pairs = Vec::new();
        self.root.ranges(bindings, &mut pairs);
        pairs
    }

    /// The plan for a query.
    pub fn build(
        &self,
        bindings: &mut Bindings,
        replaced: &[Parameter],
        context: &Arc<QueryContext>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.root.build(bindings, replaced, context)
    }
}
