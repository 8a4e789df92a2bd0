//! Constants that differ from one query to the next, and where they stand in conditions.

use orrery_term::TermId;
use spargebra::algebra::Expression;

use crate::pattern::ObjectRanges;

/// A constant that is another one each time.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The term, as conditions have it.
    pub term: Expression,
    /// Its id, if it stands in patterns.
    pub id: Option<TermId>,
}

/// The ids of a variable that can pass these conditions; nothing if they do not say.
pub type PassingIds<'p> = dyn FnMut(&str, &[Expression]) -> Option<ObjectRanges> + 'p;

/// What differs from one query to the next.
#[derive(Debug)]
pub struct Bindings {
    pub(super) parameters: Vec<Parameter>,
    /// Of each pattern with conditions or ranges that depend on parameters.
    pub(super) patterns: Vec<BoundPattern>,
}

/// Conditions and bounds of a pattern, for one query.
#[derive(Debug, Default)]
pub(super) struct BoundPattern {
    pub(super) filters: Vec<Expression>,
    /// The number of the step, and what its object is bound to.
    pub(super) ranges: Vec<(usize, ObjectRanges)>,
}

/// Puts the terms of parameters in the place of those that they replace.
pub(super) fn replace(
    expression: &mut Expression,
    replaced: &[Parameter],
    parameters: &[Parameter],
) {
    orrery_expressions::for_each_constant_mut(expression, &mut |constant| {
        let place = replaced.iter().position(|old| old.term == *constant);
        if let Some(new) = place.and_then(|place| parameters.get(place)) {
            constant.clone_from(&new.term);
        }
    });
}

/// Whether a condition has a parameter in it.
pub(super) fn has_parameter(expression: &Expression, parameters: &[Parameter]) -> bool {
    let is_parameter = parameters
        .iter()
        .any(|parameter| parameter.term == *expression);
    let mut found = is_parameter;
    orrery_expressions::for_each_child(expression, &mut |child| {
        found = found || has_parameter(child, parameters);
    });
    found
}
