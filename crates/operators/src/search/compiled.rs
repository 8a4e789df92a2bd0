//! The state of a path search that all executions of its node share.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_physical_plan::ExecutionPlan;
use orrery_term::{Term, TermId, Triple};

use super::specification::SearchSpecification;
use crate::context::QueryContext;
use crate::touch_counter::TouchCounter;

type Plan = Arc<dyn ExecutionPlan>;

/// What all executions share.
#[derive(Debug)]
pub(super) struct CompiledSearch {
    pub(super) context: Arc<QueryContext>,
    pub(super) specification: SearchSpecification,
    pub(super) schema: SchemaRef,
    pub(super) edges: Plan,
    pub(super) from: Option<Plan>,
    pub(super) to: Option<Plan>,
    /// The input's column of each column of the output.
    pub(super) input_columns: Vec<Option<usize>>,
    /// The input's columns of the two ends.
    pub(super) end_columns: [Option<usize>; 2],
    /// Whether both ends are the same variable.
    pub(super) has_one_end: bool,
    /// Beginnings of paths that are held at most, where it is not what memory allows.
    pub(super) beginnings_max: Option<usize>,
    pub(super) touches: TouchCounter,
}

impl CompiledSearch {
    /// Whether what is looked for ends where it begins.
    pub(super) fn is_loop(&self) -> bool {
        self.specification.is_cyclic || self.has_one_end
    }

    /// The id of a number.
    pub(super) fn integer(&self, value: u64) -> Result<u64> {
        Ok(self.context.intern_count(value)?.bits())
    }

    /// The id of a cost.
    pub(super) fn cost(&self, cost: f64, is_integral: bool) -> Result<u64> {
        const EXACT_MAX: f64 = 9e15;
        if is_integral && cost <= EXACT_MAX {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a sum of integers, none of them negative"
            )]
            return self.integer(cost as u64);
        }
        Ok(self.context.intern_double(cost)?.bits())
    }

    /// The id of a triple term; no value where the parts make none.
    pub(super) fn triple(&self, parts: [u64; 3]) -> Result<u64> {
        if parts.contains(&u64::MAX) {
            return Ok(u64::MAX);
        }
        let mut terms = Vec::with_capacity(3);
        for part in parts {
            terms.push(self.context.term(TermId::from_bits(part))?);
        }
        let [subject, predicate, object] = match <[Term<'_>; 3]>::try_from(terms) {
            Ok(terms) => terms,
            Err(_) => return Ok(u64::MAX),
        };
        match Triple::new(subject, predicate, object) {
            Ok(triple) => {
                let id = self.context.intern(&Term::Triple(Box::new(triple)));
                Ok(id?.bits())
            }
            Err(_) => Ok(u64::MAX),
        }
    }
}
