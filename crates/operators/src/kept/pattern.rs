//! Patterns in cached plans.

use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;
use spargebra::algebra::Expression;

use super::parameters::{
    BoundPattern, Parameter, PassingIds, has_parameter, has_stray_term, parameter_of, replace,
};
use crate::context::QueryContext;
use crate::pattern::{DetachedPattern, ObjectRanges, PatternExec, PatternSpecification, Slot};

/// A pattern with the places of its parameters.
#[derive(Debug)]
pub(super) struct KeptPattern {
    detached: DetachedPattern,
    /// Where ids of parameters stand.
    slots: Vec<ParameterSlot>,
    /// Which conditions have terms of parameters.
    filters: Vec<usize>,
    /// The steps whose bounds follow from such conditions.
    ranged_steps: Vec<usize>,
    /// The place of what differs among that of all patterns, if anything but ids does.
    pub(super) place: Option<usize>,
}

#[derive(Debug)]
struct ParameterSlot {
    step: usize,
    is_object: bool,
    parameter: usize,
}

impl KeptPattern {
    /// What is kept of a pattern. Of patterns with parameters, `places` were seen before.
    pub(super) fn of(
        pattern: &PatternExec,
        parameters: &[Parameter],
        passing_ids: &mut PassingIds<'_>,
        places: &mut usize,
    ) -> Option<Self> {
        let detached = pattern.detached()?;
        let specification = detached.specification();
        let mut slots = Vec::new();
        for (step, it) in specification.steps.iter().enumerate() {
            for (is_object, slot) in [(false, &it.pattern.subject), (true, &it.pattern.object)] {
                let parameter = match slot {
                    Slot::Constant(id) => parameter_of(*id, parameters),
                    Slot::Variable(_) => None,
                };
                slots.extend(parameter.map(|parameter| ParameterSlot {
                    step,
                    is_object,
                    parameter,
                }));
            }
        }
        if (specification.filters.iter()).any(|it| has_stray_term(it, parameters)) {
            return None;
        }
        let filters: Vec<usize> = (0..specification.filters.len())
            .filter(|&at| has_parameter(&specification.filters[at], parameters))
            .collect();
        // The planner takes ranges from all conditions of a group, wherever these are asked.
        let is_any_compared = parameters.iter().any(|it| it.is_in_conditions);
        let mut ranged_steps = Vec::new();
        for (step, it) in specification.steps.iter().enumerate() {
            let (Some(ranges), Some(object)) = (&it.object_ranges, it.pattern.object.variable())
            else {
                continue;
            };
            if !is_any_compared {
                continue;
            }
            // What the conditions of the pattern itself say must be all that is known; else the
            // ranges may follow from a parameter in a condition that is asked elsewhere, and cannot
            // be made anew here.
            let again = passing_ids(object, &specification.filters)?;
            if again != *ranges {
                return None;
            }
            if !filters.is_empty() {
                ranged_steps.push(step);
            }
        }
        let place = (!filters.is_empty()).then(|| {
            *places += 1;
            *places - 1
        });
        Some(Self {
            detached,
            slots,
            filters,
            ranged_steps,
            place,
        })
    }

    /// The conditions and bounds with other parameters.
    pub(super) fn bind(
        &self,
        (parameters, replaced): (&[Parameter], &[Parameter]),
        passing_ids: &mut PassingIds<'_>,
    ) -> Option<BoundPattern> {
        let specification = self.detached.specification();
        let mut filters: Vec<Expression> = specification.filters.clone();
        for &filter in &self.filters {
            replace(&mut filters[filter], replaced, parameters);
        }
        let mut ranges = Vec::with_capacity(self.ranged_steps.len());
        for &step in &self.ranged_steps {
            let object = specification.steps[step].pattern.object.variable()?;
            ranges.push((step, passing_ids(object, &filters)?));
        }
        Some(BoundPattern { filters, ranges })
    }

    /// The bounds as they were, and as they are.
    pub(super) fn ranges<'r>(
        &'r self,
        bound: &'r BoundPattern,
    ) -> impl Iterator<Item = (&'r ObjectRanges, &'r ObjectRanges)> {
        let steps = &self.detached.specification().steps;
        let now = bound.ranges.iter();
        now.filter_map(|(step, now)| Some((steps[*step].object_ranges.as_ref()?, now)))
    }

    /// The pattern for a query.
    pub(super) fn build(
        &self,
        parameters: &[Parameter],
        bound: Option<BoundPattern>,
        input: Option<Arc<dyn ExecutionPlan>>,
        context: &Arc<QueryContext>,
    ) -> Arc<dyn ExecutionPlan> {
        let mut specification: PatternSpecification = self.detached.specification().clone();
        for slot in &self.slots {
            let id = parameters
                .get(slot.parameter)
                .and_then(|parameter| parameter.id);
            let pattern = &mut specification.steps[slot.step].pattern;
            let place = match slot.is_object {
                true => &mut pattern.object,
                false => &mut pattern.subject,
            };
            if let Some(id) = id {
                *place = Slot::Constant(id);
            }
        }
        if let Some(bound) = bound {
            specification.filters = bound.filters;
            for (step, ranges) in bound.ranges {
                specification.steps[step].object_ranges = Some(ranges);
            }
        }
        self.detached.attached(context, input, specification)
    }
}
