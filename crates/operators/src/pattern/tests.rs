//! Tests of random patterns over random quads, against a naive evaluator.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use datafusion_physical_plan::ExecutionPlan;
use orrery_term::TermId;
use proptest::prelude::*;
use spargebra::algebra::Expression;
use spargebra::term::Variable;

use super::*;
use crate::context::QueryContext;
use crate::rows::RowsExec;
use crate::test_support::{
    Quad, Solution, context_of, contexts_of, extend, in_memory_with, names, project, run, term, var,
};

const VARIABLES: [&str; 4] = ["a", "b", "c", "d"];
const INPUT: [&str; 3] = ["a", "c", "x"];

fn any_term() -> impl Strategy<Value = TermId> {
    (0..5i64).prop_map(term)
}

fn any_graph() -> impl Strategy<Value = TermId> {
    prop_oneof![
        3 => Just(TermId::DEFAULT_GRAPH),
        2 => (0..4i64).prop_map(term),
    ]
}

fn any_quads() -> impl Strategy<Value = Vec<Quad>> {
    let quad =
        (any_term(), 0..3i64, any_term(), any_graph()).prop_map(|(s, p, o, g)| [s, term(p), o, g]);
    let quads = proptest::collection::vec(quad, 0..40);
    // Half of the databases have no named graph: other code paths.
    (quads, any::<bool>()).prop_map(|(mut quads, only_default)| {
        if only_default {
            for quad in &mut quads {
                quad[3] = TermId::DEFAULT_GRAPH;
            }
        }
        quads.sort();
        quads.dedup();
        quads
    })
}

fn any_variable() -> impl Strategy<Value = Slot> {
    proptest::sample::select(&VARIABLES[..]).prop_map(var)
}

fn any_slot() -> impl Strategy<Value = Slot> {
    prop_oneof![
        3 => any_variable(),
        1 => any_term().prop_map(Slot::Constant),
    ]
}

fn any_predicate() -> impl Strategy<Value = Slot> {
    prop_oneof![
        1 => any_variable(),
        3 => (0..3i64).prop_map(|number| Slot::Constant(term(number))),
    ]
}

fn any_graphs() -> impl Strategy<Value = Arc<[TermId]>> {
    proptest::collection::vec(any_graph(), 0..4).prop_map(Arc::from)
}

fn any_scope() -> impl Strategy<Value = GraphScope> {
    prop_oneof![
        4 => Just(GraphScope::Default),
        1 => any_graphs().prop_map(GraphScope::Union),
        1 => Just(GraphScope::AllUnion),
        1 => (0..4i64).prop_map(|graph| GraphScope::Named(term(graph))),
        2 => (
            proptest::sample::select(&["g", "a", "b"][..]),
            proptest::option::of(any_graphs())
        ).prop_map(|(name, allowed)| GraphScope::NamedVariable {
            variable: Arc::from(name),
            allowed,
        }),
    ]
}

fn any_step() -> impl Strategy<Value = PatternStep> {
    let ranges = proptest::collection::vec((any_term(), any_term()), 0..3);
    (
        any_slot(),
        any_predicate(),
        any_slot(),
        any_scope(),
        proptest::option::weighted(0.2, ranges),
    )
        .prop_map(|(subject, predicate, object, graph, ranges)| PatternStep {
            pattern: QuadPattern {
                subject,
                predicate,
                object,
                graph,
            },
            object_ranges: ranges.map(ObjectRanges::new),
            estimated_rows: None,
        })
}

fn any_filter() -> impl Strategy<Value = Expression> {
    let variable =
        || proptest::sample::select(&["a", "b", "c", "x"][..]).prop_map(Variable::new_unchecked);
    prop_oneof![
        (variable(), variable())
            .prop_map(|(a, b)| Expression::SameTerm(Box::new(a.into()), Box::new(b.into()))),
        (variable(), variable()).prop_map(|(a, b)| Expression::Not(Box::new(
            Expression::SameTerm(Box::new(a.into()), Box::new(b.into()))
        ))),
        variable().prop_map(Expression::Bound),
        variable().prop_map(|a| Expression::Not(Box::new(Expression::Bound(a)))),
    ]
}

/// The value of a filter; `None` is an error.
fn holds(filter: &Expression, solution: &Solution) -> Option<bool> {
    let value = |expression: &Expression| match expression {
        Expression::Variable(variable) => solution.get(variable.as_str()).copied(),
        other => panic!("no such filter here: {other}"),
    };
    match filter {
        Expression::SameTerm(a, b) => Some(value(a)? == value(b)?),
        Expression::Not(inner) => holds(inner, solution).map(|value| !value),
        Expression::Bound(variable) => Some(solution.contains_key(variable.as_str())),
        other => panic!("no such filter here: {other}"),
    }
}

fn any_mode() -> impl Strategy<Value = PatternMode> {
    prop_oneof![
        2 => Just(PatternMode::Inner),
        2 => Just(PatternMode::Optional),
        1 => Just(PatternMode::Semi),
        1 => Just(PatternMode::Anti),
        1 => Just(PatternMode::Mark(Arc::from("mark"))),
    ]
}

type InputRows = Option<Vec<Vec<Option<TermId>>>>;

fn any_input() -> impl Strategy<Value = InputRows> {
    let cell = proptest::option::weighted(0.8, any_term());
    let row = proptest::collection::vec(cell, INPUT.len());
    proptest::option::of(proptest::collection::vec(row, 0..12))
}

#[derive(Clone, Debug)]
struct Case {
    quads: Vec<Quad>,
    input: InputRows,
    steps: Vec<PatternStep>,
    filters: Vec<Expression>,
    given: Vec<GivenIds>,
    mode: PatternMode,
}

/// No ids, one, some, all that there are, and many more; close together or far apart.
fn any_given() -> impl Strategy<Value = Vec<GivenIds>> {
    let some = proptest::collection::vec(any_term(), 0..4);
    let ids = prop_oneof![
        4 => some,
        1 => Just((0..5).map(term).collect::<Vec<_>>()),
        1 => Just((-3_000..3_000).map(term).collect::<Vec<_>>()),
        1 => (0..5i64).prop_map(|one| (0..400).map(|far| term(one + far * 1_000_000_007)).collect::<Vec<_>>()),
    ];
    let name = proptest::sample::select(&["a", "b", "c", "x", "g", "nowhere"][..]);
    let given = (name, ids).prop_map(|(name, ids)| GivenIds::new(Arc::from(name), ids));
    prop_oneof![
        2 => Just(Vec::new()),
        1 => proptest::collection::vec(given, 1..3),
    ]
}

fn any_case() -> impl Strategy<Value = Case> {
    (
        any_quads(),
        any_input(),
        proptest::collection::vec(any_step(), 0..4),
        proptest::collection::vec(any_filter(), 0..2),
        any_given(),
        any_mode(),
    )
        .prop_map(|(quads, input, steps, filters, given, mode)| Case {
            quads,
            input,
            steps,
            filters,
            given,
            mode,
        })
}

/// Dense graphs with few predicates, and patterns among few variables: nearly all of them close
/// cycles.
fn any_cycle() -> impl Strategy<Value = Case> {
    let node = || (0..9i64).prop_map(term);
    let graph = prop_oneof![3 => Just(TermId::DEFAULT_GRAPH), 1 => any_graph()];
    let quad = (node(), 0..2i64, node(), graph).prop_map(|(s, p, o, g)| [s, term(p), o, g]);
    let corner = || {
        prop_oneof![
            8 => any_variable(),
            1 => node().prop_map(Slot::Constant),
        ]
    };
    let ranges = proptest::collection::vec((node(), node()), 1..3).prop_map(ObjectRanges::new);
    let edge = (
        corner(),
        0..2i64,
        corner(),
        prop_oneof![4 => Just(GraphScope::Default), 1 => any_scope()],
        proptest::option::weighted(0.1, ranges),
    );
    let edge = edge.prop_map(
        |(subject, predicate, object, graph, object_ranges)| PatternStep {
            pattern: QuadPattern {
                subject,
                predicate: Slot::Constant(term(predicate)),
                object,
                graph,
            },
            object_ranges,
            estimated_rows: None,
        },
    );
    (
        proptest::collection::vec(quad, 0..60),
        any_input(),
        proptest::collection::vec(edge, 2..6),
        any_given(),
        any_mode(),
        any::<bool>(),
    )
        .prop_map(|(mut quads, input, steps, given, mode, only_default)| {
            if only_default {
                for quad in &mut quads {
                    quad[3] = TermId::DEFAULT_GRAPH;
                }
            }
            quads.sort();
            quads.dedup();
            Case {
                quads,
                input,
                steps,
                filters: Vec::new(),
                given,
                mode,
            }
        })
}

impl Case {
    fn output(&self) -> Vec<Arc<str>> {
        match &self.mode {
            PatternMode::Inner | PatternMode::Optional => names(&["b", "x", "a", "g", "c"]),
            PatternMode::Semi | PatternMode::Anti => names(&["x", "a", "c"]),
            PatternMode::Mark(_) => names(&["x", "mark", "a", "c"]),
        }
    }

    fn inputs(&self) -> Vec<Solution> {
        let Some(rows) = &self.input else {
            return vec![Solution::new()];
        };
        rows.iter()
            .map(|row| {
                let cells = INPUT.iter().zip(row);
                cells
                    .filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?)))
                    .collect()
            })
            .collect()
    }

    fn matches(&self, input: &Solution) -> Vec<Solution> {
        let mut solutions = vec![input.clone()];
        for step in &self.steps {
            let object = &step.pattern.object;
            solutions = solutions
                .iter()
                .flat_map(|solution| extend(solution, &step.pattern, &self.quads))
                .filter(|solution| {
                    let value = match object {
                        Slot::Constant(term) => *term,
                        Slot::Variable(name) => solution[&**name],
                    };
                    step.object_ranges
                        .as_ref()
                        .is_none_or(|ranges| ranges.contains(value))
                })
                .collect();
        }
        solutions.retain(|solution| {
            let mut filters = self.filters.iter();
            let mut given = self.given.iter();
            let has_given = |ids: &GivenIds| {
                let value = solution.get(&**ids.variable());
                value.is_some_and(|value| ids.ids().contains(value))
            };
            filters.all(|filter| holds(filter, solution) == Some(true)) && given.all(has_given)
        });
        solutions
    }

    fn expected(&self) -> Vec<Solution> {
        let output = self.output();
        let mut solutions = Vec::new();
        for input in self.inputs() {
            let matches = self.matches(&input);
            match &self.mode {
                PatternMode::Inner => solutions.extend(matches),
                PatternMode::Optional if matches.is_empty() => solutions.push(input),
                PatternMode::Optional => solutions.extend(matches),
                PatternMode::Semi if matches.is_empty() => {}
                PatternMode::Semi => solutions.push(input),
                PatternMode::Anti if matches.is_empty() => solutions.push(input),
                PatternMode::Anti => {}
                PatternMode::Mark(mark) => {
                    let mut marked = input;
                    marked.insert(mark.to_string(), TermId::boolean(!matches.is_empty()));
                    solutions.push(marked);
                }
            }
        }
        let mut solutions: Vec<Solution> = solutions
            .iter()
            .map(|solution| project(solution, &output))
            .collect();
        solutions.sort();
        solutions
    }

    fn plan(
        &self,
        context: &Arc<QueryContext>,
        vector_rows: Option<usize>,
        fetch: Option<usize>,
        intersects: bool,
    ) -> Arc<dyn ExecutionPlan> {
        let input = self
            .input
            .as_ref()
            .map(|rows| RowsExec::try_new(&names(&INPUT), rows).unwrap());
        let specification = PatternSpecification {
            mode: self.mode.clone(),
            steps: self.steps.clone(),
            filters: self.filters.clone(),
            given: self.given.clone(),
            found: Vec::new(),
            output: self.output(),
            fetch,
            vector_rows,
            intersects,
        };
        PatternExec::try_new(Arc::clone(context), input, specification).unwrap()
    }
}

proptest! {
    #[test]
    fn a_pattern_gives_what_nested_loops_give(case in any_case()) {
        let expected = case.expected();
        for (way, context) in contexts_of(&case.quads).iter().enumerate() {
            for vector_rows in [Some(1), Some(7), Some(1_024), None] {
                for intersects in [true, false] {
                    let actual = run(case.plan(context, vector_rows, None, intersects));
                    prop_assert_eq!(
                        &actual, &expected,
                        "way {}, vectors of {:?}, {}", way, vector_rows, intersects
                    );
                }
            }
        }
    }

    #[test]
    fn a_cycle_gives_what_nested_loops_give(case in any_cycle()) {
        let expected = case.expected();
        for (way, context) in contexts_of(&case.quads).iter().enumerate() {
            for vector_rows in [Some(1), Some(7), None] {
                let actual = run(case.plan(context, vector_rows, None, true));
                prop_assert_eq!(&actual, &expected, "way {}, vectors of {:?}", way, vector_rows);
            }
        }
    }

    #[test]
    fn a_limit_gives_that_many_of_the_solutions(case in any_case(), fetch in 0usize..6) {
        for context in contexts_of(&case.quads) {
            let mut expected = case.expected();
            let actual = run(case.plan(&context, Some(3), Some(fetch), true));
            prop_assert_eq!(actual.len(), expected.len().min(fetch));
            for solution in actual {
                let found = expected.iter().position(|other| *other == solution);
                prop_assert!(found.is_some(), "{:?} is no solution", solution);
                expected.swap_remove(found.unwrap());
            }
        }
    }
}

#[test]
fn a_key_with_many_matches_comes_out_in_bounded_batches() {
    let quads: Vec<Quad> = (0..100_000)
        .map(|object| [term(1), term(2), term(object), TermId::DEFAULT_GRAPH])
        .collect();
    let context = context_of(&quads);
    let pattern = |object| QuadPattern {
        subject: Slot::Constant(term(1)),
        predicate: Slot::Constant(term(2)),
        object: var(object),
        graph: GraphScope::Default,
    };
    // 10^10 solutions: only the first may ever be made.
    let mut specification =
        PatternSpecification::inner(vec![pattern("a"), pattern("b")], names(&["a", "b"]));
    specification.fetch = Some(100_000);
    let plan = PatternExec::try_new(context, None, specification).unwrap();
    assert_eq!(run(plan).len(), 100_000);
}

#[test]
fn the_node_is_told_in_one_line_and_its_steps_by_reports() {
    let context = context_of(&[[term(1), term(2), term(3), TermId::DEFAULT_GRAPH]]);
    let mut specification = PatternSpecification::inner(
        vec![QuadPattern {
            subject: var("s"),
            predicate: Slot::Constant(term(2)),
            object: Slot::Constant(term(3)),
            graph: GraphScope::Default,
        }],
        names(&["s"]),
    );
    specification.steps[0].estimated_rows = Some(1.0);
    let plan = PatternExec::try_new(context, None, specification).unwrap();
    let text = datafusion_physical_plan::displayable(&*plan)
        .one_line()
        .to_string();
    assert_eq!(text.trim(), "PatternExec: inner");
    let reports = plan.downcast_ref::<PatternExec>().unwrap().reports();
    let [report] = reports.as_slice() else {
        panic!("{reports:?}");
    };
    assert_eq!(report.estimated_rows, Some(1.0));
    let pattern = &report.patterns[0];
    assert_eq!(
        (pattern.permutation, pattern.prefix_columns),
        (orrery_storage::Permutation::Posg, 2)
    );
    assert_eq!(
        pattern.text,
        "?s \"2\"^^<http://www.w3.org/2001/XMLSchema#integer> \
         \"3\"^^<http://www.w3.org/2001/XMLSchema#integer>"
    );
}

/// `?a 1 ?b`, and for every third `?b` also `?b 2 7`: each of `subjects` subjects has the numbers
/// up to `fan` behind its own.
fn set_join(subjects: i64, fan: i64) -> (Arc<QueryContext>, [QuadPattern; 3]) {
    let mut quads = Vec::new();
    for subject in 0..subjects {
        quads.push([term(subject), term(0), term(9), TermId::DEFAULT_GRAPH]);
        for object in subject..subject + fan {
            quads.push([term(subject), term(1), term(object), TermId::DEFAULT_GRAPH]);
        }
    }
    for object in (0..subjects).step_by(3) {
        quads.push([term(object), term(2), term(7), TermId::DEFAULT_GRAPH]);
    }
    let pattern = |subject, predicate, object| QuadPattern {
        subject,
        predicate: Slot::Constant(term(predicate)),
        object,
        graph: GraphScope::Default,
    };
    let patterns = [
        pattern(var("a"), 0, Slot::Constant(term(9))),
        pattern(var("a"), 1, var("b")),
        pattern(var("b"), 2, Slot::Constant(term(7))),
    ];
    (context_of(&quads), patterns)
}

#[test]
fn a_pattern_that_is_the_same_for_all_rows_becomes_a_set_for_the_scan_of_another() {
    let (context, patterns) = set_join(300, 4);
    let specification = PatternSpecification::inner(patterns.to_vec(), names(&["a", "b"]));
    let plan = PatternExec::try_new(context, None, specification).unwrap();
    let expected: Vec<Solution> = (0..300i64)
        .flat_map(|a| (a..a + 4).map(move |b| (a, b)))
        .filter(|(_, b)| b % 3 == 0 && *b < 300)
        .map(|(a, b)| Solution::from([("a".to_owned(), term(a)), ("b".to_owned(), term(b))]))
        .collect();
    let mut actual = run(Arc::clone(&plan));
    let by_number = |solution: &Solution| (solution["a"], solution["b"]);
    actual.sort_by_key(by_number);
    assert_eq!(actual, expected);
    let plan: &dyn std::any::Any = plan.as_ref();
    let reports = plan.downcast_ref::<PatternExec>().unwrap().reports();
    let sets: Vec<_> = reports[1].patterns.iter().map(|p| p.set_ids).collect();
    assert_eq!(sets, [None, Some(100)]);
    assert_eq!(reports[1].seeks, 0, "no key is looked up by itself");
}

#[test]
fn rows_that_lie_far_apart_are_not_scanned_for_a_set() {
    // One key in a hundred, each with many rows: scanning would touch them all.
    let (context, [_, edge, kind]) = set_join(60, 200);
    let input = RowsExec::try_new(
        &names(&["a"]),
        &[0, 30, 59].map(|subject| vec![Some(term(subject))]),
    );
    let specification = PatternSpecification::inner(vec![edge, kind], names(&["a", "b"]));
    let plan = PatternExec::try_new(context, Some(input.unwrap()), specification).unwrap();
    assert_eq!(run(Arc::clone(&plan)).len(), 20 + 10);
    let plan: &dyn std::any::Any = plan.as_ref();
    let reports = plan.downcast_ref::<PatternExec>().unwrap().reports();
    assert!(reports[0].seeks > 0);
}

#[test]
fn a_pattern_is_a_description_until_it_is_compiled_or_run() {
    let context = context_of(&[[term(1), term(2), term(3), TermId::DEFAULT_GRAPH]]);
    let pattern = QuadPattern {
        subject: var("a"),
        predicate: Slot::Constant(term(2)),
        object: var("b"),
        graph: GraphScope::Default,
    };
    let mut specification = PatternSpecification::inner(vec![pattern], names(&["a", "b"]));
    let node = |specification: &PatternSpecification| {
        PatternExec::try_new(Arc::clone(&context), None, specification.clone()).unwrap()
    };
    let right = node(&specification);
    let right = right.downcast_ref::<PatternExec>().unwrap();
    assert!(right.plan.bound.get().is_none(), "nothing was compiled");
    right.compile().unwrap();
    let program = Arc::clone(right.plan.bound.get().unwrap());
    right.compile().unwrap();
    assert!(
        Arc::ptr_eq(&program, right.plan.bound.get().unwrap()),
        "compiled once"
    );

    // A function that nobody knows: the node can be made, not compiled, and not run.
    let unknown = spargebra::algebra::Function::Custom(spargebra::term::NamedNode::new_unchecked(
        "http://example.com/unknown",
    ));
    specification.filters = vec![Expression::FunctionCall(unknown, Vec::new())];
    let wrong = node(&specification);
    let pattern = wrong.downcast_ref::<PatternExec>().unwrap();
    assert!(pattern.reports().is_empty());
    assert!(pattern.compile().is_err());
    assert!(wrong.execute(0, Arc::default()).is_err());
}

#[test]
fn given_ids_are_sorted_and_told() {
    let ids = GivenIds::new(Arc::from("a"), [3, 1, 3, 2].map(term).into());
    assert_eq!(ids.ids(), [1, 2, 3].map(term));
    assert_eq!(
        ids,
        GivenIds::new(Arc::from("a"), [1, 2, 3].map(term).into())
    );
    let mut specification = PatternSpecification::inner(
        vec![QuadPattern {
            subject: var("a"),
            predicate: Slot::Constant(term(0)),
            object: var("b"),
            graph: GraphScope::Default,
        }],
        names(&["a", "b"]),
    );
    specification.given = vec![ids];
    let context = context_of(&[[term(1), term(0), term(2), TermId::DEFAULT_GRAPH]]);
    let plan = PatternExec::try_new(context, None, specification).unwrap();
    let text = datafusion_physical_plan::displayable(&*plan)
        .one_line()
        .to_string();
    assert!(text.contains("?a among 3 ids"), "{text}");
    assert_eq!(run(plan).len(), 1);
}

/// The batches of a plan.
fn batches_of(plan: Arc<dyn ExecutionPlan>) -> Vec<RecordBatch> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.build().unwrap();
    let task = Arc::new(datafusion_execution::TaskContext::default());
    let batches = runtime.block_on(datafusion_physical_plan::collect(plan, task));
    batches.unwrap()
}

#[test]
fn optional_values_in_memory_keep_the_rows_in_their_order_and_batch() {
    let quad = |s, p, o| [term(s), term(p), term(o), TermId::DEFAULT_GRAPH];
    // One value of every second subject; two of one of them.
    let one = (0..40).step_by(2).map(|s| quad(s, 1, 100 + s));
    let two = (0..40).step_by(2).map(|s| quad(s, 2, 100 + s));
    let quads: Vec<Quad> = one.chain(two).chain([quad(4, 2, 7)]).collect();
    let subjects: Vec<i64> = (0..9).rev().collect();
    let rows: Vec<_> = subjects.iter().map(|&s| vec![Some(term(s))]).collect();
    let [_, in_memory, _] = contexts_of(&quads);
    let ask = |predicate: i64| {
        let pattern = QuadPattern {
            subject: var("s"),
            predicate: Slot::Constant(term(predicate)),
            object: var("o"),
            graph: GraphScope::Default,
        };
        let specification = PatternSpecification {
            mode: PatternMode::Optional,
            ..PatternSpecification::inner(vec![pattern], names(&["o", "s"]))
        };
        let input = RowsExec::try_new(&names(&["s"]), &rows).unwrap();
        PatternExec::try_new(Arc::clone(&in_memory), Some(input), specification).unwrap()
    };
    for (predicate, of_four) in [(1, vec![104]), (2, vec![7, 104])] {
        // It is built by the first.
        batches_of(ask(predicate));
        let plan = ask(predicate);
        let batches = batches_of(Arc::clone(&plan));
        assert_eq!(
            batches.len(),
            1,
            "rows without a match are no batch of their own"
        );
        let column = |at: usize| -> Vec<Option<TermId>> {
            let ids = batches[0].column(at).as_primitive::<UInt64Type>();
            ids.iter().map(|id| id.map(TermId::from_bits)).collect()
        };
        let expected: Vec<(Option<TermId>, Option<TermId>)> = subjects
            .iter()
            .flat_map(|&s| {
                let values: Vec<Option<i64>> = match s {
                    4 => of_four.iter().copied().map(Some).collect(),
                    _ => vec![(s % 2 == 0).then_some(100 + s)],
                };
                values
                    .into_iter()
                    .map(move |o| (o.map(term), Some(term(s))))
            })
            .collect();
        let found: Vec<_> = column(0).into_iter().zip(column(1)).collect();
        assert_eq!(found, expected);
        let pattern = plan.downcast_ref::<PatternExec>().unwrap();
        let report = &pattern.reports()[0];
        assert_eq!((report.in_memory, report.seeks), (subjects.len(), 0));
        assert_eq!(report.rows, 4 + of_four.len());
    }
}

/// `OPTIONAL { ?s <1> ?o }` after these subjects, with a limit on the rows: the batches, and what
/// its step did. It is in memory by then.
fn optional_after(
    context: &Arc<QueryContext>,
    subjects: &[i64],
    fetch: Option<usize>,
) -> (Vec<RecordBatch>, StepReport) {
    let ask = || {
        let pattern = QuadPattern {
            subject: var("s"),
            predicate: Slot::Constant(term(1)),
            object: var("o"),
            graph: GraphScope::Default,
        };
        let specification = PatternSpecification {
            mode: PatternMode::Optional,
            fetch,
            ..PatternSpecification::inner(vec![pattern], names(&["s", "o"]))
        };
        let rows: Vec<_> = subjects.iter().map(|&s| vec![Some(term(s))]).collect();
        let input = RowsExec::try_new(&names(&["s"]), &rows).unwrap();
        PatternExec::try_new(Arc::clone(context), Some(input), specification).unwrap()
    };
    batches_of(ask());
    let plan = ask();
    let batches = batches_of(Arc::clone(&plan));
    let pattern = plan.downcast_ref::<PatternExec>().unwrap();
    (batches, pattern.reports().remove(0))
}

/// The subjects and values of batches.
fn rows_of(batches: &[RecordBatch]) -> Vec<(u64, Option<u64>)> {
    let rows = batches.iter().flat_map(|batch| {
        let [subjects, values] = [0, 1].map(|at| batch.column(at).as_primitive::<UInt64Type>());
        subjects.values().iter().copied().zip(values.iter())
    });
    rows.collect()
}

#[test]
fn of_optional_values_in_memory_no_more_are_copied_than_rows_are_wanted() {
    let quad = |s, o| [term(s), term(1), term(o), TermId::DEFAULT_GRAPH];
    // Subject 5 has many values, 6 one, 7 none.
    let many = (0..5_000).map(|o| quad(5, o));
    let several: Vec<Quad> = many.chain([quad(6, 1)]).collect();
    let each_one: Vec<Quad> = (0..20).map(|s| quad(s, s + 100)).collect();
    let id = |number| term(number).bits();
    let context = in_memory_with(&several, 1 << 30);
    for (fetch, keys, expected) in [
        (1, 1, vec![(7, None)]),
        (2, 2, vec![(7, None), (6, Some(1))]),
        (
            4,
            3,
            vec![(7, None), (6, Some(1)), (5, Some(0)), (5, Some(1))],
        ),
    ] {
        let (batches, report) = optional_after(&context, &[7, 6, 5, 5, 6], Some(fetch));
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(s, o): (i64, Option<i64>)| (id(s), o.map(id)))
            .collect();
        assert_eq!(rows_of(&batches), expected);
        let bound = expected.iter().filter(|(_, o)| o.is_some()).count();
        assert_eq!((report.rows, report.in_memory), (bound, keys), "{fetch}");
    }
    // As many rows as input rows, but not one of each.
    let (batches, _) = optional_after(&context, &[5, 5], Some(2));
    assert_eq!(
        rows_of(&batches),
        [(id(5), Some(id(0))), (id(5), Some(id(1)))]
    );

    let context = in_memory_with(&each_one, 1 << 30);
    let (batches, report) = optional_after(&context, &[30, 3, 2, 1], Some(2));
    assert_eq!(rows_of(&batches), [(id(30), None), (id(3), Some(id(103)))]);
    assert_eq!((report.rows, report.in_memory), (1, 2));
}

#[test]
fn optional_values_in_memory_come_at_once_only_if_there_is_room_for_them() {
    let quad = |s| [term(s), term(1), term(s + 1), TermId::DEFAULT_GRAPH];
    let quads: Vec<Quad> = (0..2_000).step_by(2).map(quad).collect();
    let subjects: Vec<i64> = (0..2_000).collect();
    let asked = |bytes: usize| {
        let context = in_memory_with(&quads, bytes);
        let (batches, _) = optional_after(&context, &subjects, None);
        let mut rows = rows_of(&batches);
        rows.sort_unstable();
        (batches.len(), rows)
    };
    let (batches, expected) = asked(1 << 30);
    assert_eq!((batches, expected.len()), (1, 2_000));
    let (batches, rows) = asked(64);
    assert!(batches > 1, "no room for a batch of 2,000 rows");
    assert_eq!(rows, expected);
}
