//! Parameters of cached plans: constants that differ between queries, and their places in
//! conditions.

use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;
use orrery_term::TermId;
use spargebra::algebra::Expression;

use crate::pattern::{ObjectRanges, Slot};

/// A constant that is another one each time.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The term, as conditions have it.
    pub term: Expression,
    /// Its id, if it stands in patterns.
    pub id: Option<TermId>,
    /// Whether it stands in conditions.
    pub is_in_conditions: bool,
    /// The place of the first parameter of the query with the same term; its own if there is none
    /// before.
    pub first_equal: usize,
}

/// The ids of a variable that can pass these conditions; nothing if they do not say.
pub type PassingIds<'p> = dyn FnMut(&str, &[Expression]) -> Option<ObjectRanges> + 'p;

/// The parameters of a cached plan for one query.
#[derive(Debug)]
pub struct Bindings {
    pub(super) parameters: Vec<Parameter>,
    /// Of each pattern with conditions or ranges that depend on parameters.
    pub(super) patterns: Vec<BoundPattern>,
    /// The relations that several nodes read, as far as they are made.
    pub(super) shared: Vec<Arc<dyn ExecutionPlan>>,
}

/// Conditions and bounds of a pattern, for one query.
#[derive(Debug, Default)]
pub(super) struct BoundPattern {
    pub(super) filters: Vec<Expression>,
    /// The number of the step, and what its object is bound to.
    pub(super) ranges: Vec<(usize, ObjectRanges)>,
}

/// Which parameters the two ends of a path are.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParameterEnds([Option<usize>; 2]);

impl ParameterEnds {
    pub(super) fn of(ends: [&Slot; 2], parameters: &[Parameter]) -> Self {
        Self(ends.map(|end| match end {
            Slot::Constant(id) => parameter_of(*id, parameters),
            Slot::Variable(_) => None,
        }))
    }

    /// Puts other parameters in their places.
    pub(super) fn put(self, ends: [&mut Slot; 2], parameters: &[Parameter]) {
        for (place, end) in self.0.into_iter().zip(ends) {
            let parameter = place.and_then(|place| parameters.get(place));
            if let Some(id) = parameter.and_then(|parameter| parameter.id) {
                *end = Slot::Constant(id);
            }
        }
    }
}

/// The parameter that an id is of.
pub(super) fn parameter_of(id: TermId, parameters: &[Parameter]) -> Option<usize> {
    parameters
        .iter()
        .position(|parameter| parameter.id == Some(id))
}

/// Puts the terms of parameters in the place of those that they replace.
pub(super) fn replace(
    expression: &mut Expression,
    replaced: &[Parameter],
    parameters: &[Parameter],
) {
    orrery_expressions::for_each_constant_mut(expression, &mut |constant| {
        let place = replaced
            .iter()
            .position(|old| old.is_in_conditions && old.term == *constant);
        if let Some(new) = place.and_then(|place| parameters.get(place)) {
            constant.clone_from(&new.term);
        }
    });
}

/// Whether an expression has a parameter in it that stands in conditions.
pub(super) fn has_parameter(expression: &Expression, parameters: &[Parameter]) -> bool {
    has_constant(expression, &|constant| {
        let mut compared = parameters.iter().filter(|it| it.is_in_conditions);
        compared.any(|parameter| parameter.term == *constant)
    })
}

/// Whether an expression has a term in it that is one of a parameter, but of none that stands in
/// conditions. It is not known then whether another parameter makes it another term.
pub(super) fn has_stray_term(expression: &Expression, parameters: &[Parameter]) -> bool {
    has_constant(expression, &|constant| {
        let mut of_it = parameters.iter().filter(|it| it.term == *constant);
        of_it.clone().next().is_some() && !of_it.any(|it| it.is_in_conditions)
    })
}

fn has_constant(expression: &Expression, is_it: &dyn Fn(&Expression) -> bool) -> bool {
    let mut found = is_it(expression);
    orrery_expressions::for_each_child(expression, &mut |child| {
        found = found || has_constant(child, is_it);
    });
    found
}
