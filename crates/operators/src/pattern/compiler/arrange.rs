//! The grouping of patterns that bind the same variable, which are intersected.
//!
//! ```text
//! ?a :p ?b . ?b :p ?c . ?a :q ?d . ?c :p ?a       the order of the specification
//! [?a :p ?b] [?b :p ?c, ?c :p ?a] [?a :q ?d]      groups: the second binds ?c by an intersection
//! ```
//!
//! A pattern whose only unknown is one variable matches a sorted range of its values. All patterns
//! of which that is so are taken together, also those that the order has later: each of them can
//! only make the solutions fewer. What is left stays alone and in its order. The
//! [intersection](crate::pattern::intersection) does the work.

use std::sync::Arc;

use crate::pattern::specification::{GraphScope, ObjectRanges, PatternStep, QuadPattern, Slot};

/// The numbers of the steps, in groups and in the order of execution; the steps of a group stand in
/// ascending order. Costs about as much as the steps have variables.
pub(crate) fn arrange(
    steps: &[PatternStep],
    input: &[&Arc<str>],
    has_named_graphs: bool,
    intersects: bool,
) -> Vec<Vec<usize>> {
    if !intersects || steps.len() < 2 {
        return (0..steps.len()).map(|step| vec![step]).collect();
    }
    let mut state = State::new(steps, input);
    let mut is_taken = vec![false; steps.len()];
    let mut groups = Vec::with_capacity(steps.len());
    for first in 0..steps.len() {
        if is_taken[first] {
            continue;
        }
        let mut group = vec![first];
        if let Some(variable) = state.only_unknown(&steps[first], has_named_graphs) {
            for step in state.steps_with(variable) {
                let is_alike = step > first
                    && !is_taken[step]
                    && state.only_unknown(&steps[step], has_named_graphs) == Some(variable);
                if is_alike {
                    group.push(step);
                }
            }
        }
        for &step in &group {
            is_taken[step] = true;
            for name in steps[step].pattern.variables() {
                let number = state.number(name);
                state.is_bound[number] = true;
            }
        }
        groups.push(group);
    }
    groups
}

/// The variables of some steps, and which of them are bound so far.
struct State<'s> {
    /// In ascending order; their places are their numbers.
    names: Vec<&'s str>,
    is_bound: Vec<bool>,
    /// Each variable of each step, in ascending order.
    places: Vec<(&'s str, usize)>,
}

impl<'s> State<'s> {
    fn new(steps: &'s [PatternStep], input: &[&'s Arc<str>]) -> Self {
        let mut places: Vec<(&str, usize)> = Vec::with_capacity(3 * steps.len());
        for (number, step) in steps.iter().enumerate() {
            let variables = step.pattern.variables().into_iter();
            places.extend(variables.map(|name| (&**name, number)));
        }
        places.sort_unstable();
        let mut names: Vec<&str> = places.iter().map(|(name, _)| *name).collect();
        names.dedup();
        let mut is_bound = vec![false; names.len()];
        for name in input {
            if let Ok(number) = names.binary_search(&&***name) {
                is_bound[number] = true;
            }
        }
        Self {
            names,
            is_bound,
            places,
        }
    }

    /// The steps that have a variable, in ascending order.
    fn steps_with(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        let name = self.names[number];
        let first = self.places.partition_point(|(other, _)| *other < name);
        let places = self.places[first..].iter();
        let alike = places.take_while(move |(other, _)| *other == name);
        alike.map(|(_, step)| *step)
    }

    fn number(&self, name: &str) -> usize {
        // All names of the steps are there.
        self.names.binary_search(&name).unwrap_or_default()
    }

    /// The variable that a step binds, if it is the only one, stands once, and its values are a
    /// range.
    fn only_unknown(&self, step: &PatternStep, has_named_graphs: bool) -> Option<usize> {
        let QuadPattern {
            subject,
            predicate,
            object,
            graph,
        } = &step.pattern;
        let is_unknown = |number: &usize| !self.is_bound[*number];
        let mut unknown = [subject, predicate, object]
            .into_iter()
            .filter_map(Slot::variable)
            .map(|name| self.number(name))
            .filter(is_unknown);
        let (Some(variable), None) = (unknown.next(), unknown.next()) else {
            return None;
        };
        let is_graph_known = match graph {
            GraphScope::Default | GraphScope::AllUnion | GraphScope::Named(_) => true,
            GraphScope::Union(graphs) => !graphs.is_empty(),
            GraphScope::NamedVariable { variable, .. } => {
                has_named_graphs && !is_unknown(&self.number(variable))
            }
        };
        let is_narrowable = step.object_ranges.is_none()
            || object.variable().map(|name| self.number(name)) == Some(variable);
        (is_graph_known && is_narrowable).then_some(variable)
    }
}

/// What all bounds on the object leave, if there are any.
pub(crate) fn common_ranges<'a>(
    steps: impl Iterator<Item = &'a PatternStep>,
) -> Option<ObjectRanges> {
    steps
        .filter_map(|step| step.object_ranges.clone())
        .reduce(|all, more| all.intersection(&more))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{names, term, var};

    fn step(subject: &str, predicate: i64, object: &str) -> PatternStep {
        PatternStep::new(QuadPattern {
            subject: var(subject),
            predicate: Slot::Constant(term(predicate)),
            object: var(object),
            graph: GraphScope::Default,
        })
    }

    #[test]
    fn the_edges_that_close_a_cycle_are_matched_with_the_one_that_opens_it() {
        let steps = [
            step("a", 1, "b"),
            step("b", 1, "c"),
            step("a", 2, "d"),
            step("c", 1, "a"),
            step("d", 1, "c"),
        ];
        let groups = arrange(&steps, &[], false, true);
        assert_eq!(groups, [vec![0], vec![1, 3], vec![2, 4]]);
        let alone = arrange(&steps, &[], false, false);
        assert_eq!(alone, [[0], [1], [2], [3], [4]]);
    }

    #[test]
    fn a_variable_that_stands_twice_or_two_unknowns_are_no_range() {
        let steps = [step("a", 1, "a"), step("a", 2, "b"), step("c", 1, "c")];
        let groups = arrange(&steps, &[], false, true);
        assert_eq!(groups, [[0], [1], [2]]);
    }

    #[test]
    fn input_variables_are_known() {
        let steps = [step("a", 1, "c"), step("b", 1, "c")];
        let input = names(&["a", "b"]);
        let input: Vec<&Arc<str>> = input.iter().collect();
        assert_eq!(arrange(&steps, &input, false, true), [[0, 1]]);
    }

    #[test]
    fn the_graph_must_be_known_too() {
        let in_graph = |graph: &str| {
            let mut inside = step("a", 1, "c");
            inside.pattern.graph = GraphScope::NamedVariable {
                variable: Arc::from(graph),
                allowed: None,
            };
            inside
        };
        let input = names(&["a", "b"]);
        let input: Vec<&Arc<str>> = input.iter().collect();
        let steps = [in_graph("g"), step("b", 1, "c")];
        assert_eq!(arrange(&steps, &input, true, true), [[0], [1]]);
        let steps = [in_graph("b"), step("b", 1, "c")];
        assert_eq!(arrange(&steps, &input, true, true), [[0, 1]]);
        let steps = [in_graph("c"), step("b", 1, "c")];
        assert_eq!(arrange(&steps, &input, true, true), [[0], [1]]);
    }
}
