//! Which steps are matched together: the patterns that bind one and the same variable.
//!
//! ```text
//! ?a :p ?b . ?b :p ?c . ?a :q ?d . ?c :p ?a       the order of the specification
//! [?a :p ?b] [?b :p ?c, ?c :p ?a] [?a :q ?d]      groups: the second binds ?c by an intersection
//! ```
//!
//! A pattern whose only unknown is one variable matches a sorted range of its values. All patterns of
//! which that is so are taken together, also those that the order has later: each of them can only make the
//! solutions fewer. What is left stays alone and in its order. The [intersection](super::intersection) does the work.

use std::sync::Arc;

use super::{GraphScope, ObjectRanges, PatternStep, QuadPattern, Slot};

/// The numbers of the steps, in groups and in the order of execution; the steps of a group stand in
/// ascending order.
pub(super) fn arrange(
    steps: &[PatternStep],
    input: &[&Arc<str>],
    has_named_graphs: bool,
    intersects: bool,
) -> Vec<Vec<usize>> {
    let mut bound: Vec<&Arc<str>> = input.to_vec();
    let mut pending: Vec<usize> = (0..steps.len()).collect();
    let mut groups = Vec::with_capacity(steps.len());
    while let Some(&first) = pending.first() {
        let mut group = vec![first];
        let binds = |step: usize, bound: &[&Arc<str>]| {
            only_unknown(&steps[step], bound, has_named_graphs).cloned()
        };
        if intersects && let Some(variable) = binds(first, &bound) {
            let others = pending[1..].iter().copied();
            group.extend(others.filter(|&step| binds(step, &bound).as_ref() == Some(&variable)));
        }
        pending.retain(|step| !group.contains(step));
        for &step in &group {
            bound.extend(steps[step].pattern.variables());
        }
        groups.push(group);
    }
    groups
}

/// The variable that a step binds, if it is the only one, stands once, and its values are a range.
fn only_unknown<'a>(
    step: &'a PatternStep,
    bound: &[&Arc<str>],
    has_named_graphs: bool,
) -> Option<&'a Arc<str>> {
    let QuadPattern {
        subject,
        predicate,
        object,
        graph,
    } = &step.pattern;
    let is_unknown = |name: &&Arc<str>| !bound.contains(name);
    let mut unknown = [subject, predicate, object]
        .into_iter()
        .filter_map(Slot::variable)
        .filter(is_unknown);
    let (Some(variable), None) = (unknown.next(), unknown.next()) else {
        return None;
    };
    let is_graph_known = match graph {
        GraphScope::Default | GraphScope::AllUnion | GraphScope::Named(_) => true,
        GraphScope::Union(graphs) => !graphs.is_empty(),
        GraphScope::NamedVariable { variable, .. } => has_named_graphs && !is_unknown(&variable),
    };
    let is_narrowable = step.object_ranges.is_none() || object.variable() == Some(variable);
    (is_graph_known && is_narrowable).then_some(variable)
}

/// What all bounds on the object leave, if there are any.
pub(super) fn common_ranges<'a>(
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
