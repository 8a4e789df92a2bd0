//! Tests of given rows, graph names, exact counts, and duties of all plan nodes.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use datafusion_execution::TaskContext;
use datafusion_physical_plan::empty::EmptyExec;
use datafusion_physical_plan::{ExecutionPlan, displayable};
use futures::StreamExt;
use orrery_term::TermId;
use proptest::prelude::*;

use crate::context::QueryContext;
use crate::count::{CountExec, exact_count, exact_distinct_count};
use crate::graph_names::GraphNamesExec;
use crate::pattern::{GraphScope, PatternExec, PatternSpecification, QuadPattern, Slot};
use crate::rows::RowsExec;
use crate::run_counts::{RunCountsExec, RunCountsSpecification};
use crate::test_support::{
    Quad, Solution, context_of, contexts_of, extend, in_memory_changed, in_memory_with, names, run,
    term, try_run, var,
};

fn solution(entries: &[(&str, TermId)]) -> Solution {
    let entries = entries.iter();
    entries
        .map(|(name, id)| ((*name).to_owned(), *id))
        .collect()
}

#[test]
fn rows_come_out_as_they_were_given() {
    let plan = RowsExec::try_new(
        &names(&["a", "b"]),
        &[vec![Some(term(1)), None], vec![None, None]],
    );
    let expected = vec![solution(&[]), solution(&[("a", term(1))])];
    assert_eq!(run(plan.unwrap()), expected);
    assert_eq!(run(RowsExec::single_empty_row().unwrap()), [solution(&[])]);
    assert!(run(RowsExec::none(&names(&["a"])).unwrap()).is_empty());
}

#[test]
fn each_graph_is_named_once_and_the_default_graph_never() {
    let mut quads: Vec<Quad> = Vec::new();
    for graph in [TermId::DEFAULT_GRAPH, term(7), term(8), term(9)] {
        quads.extend((0..3_000).map(|object| [term(1), term(2), term(object), graph]));
    }
    let context = context_of(&quads);
    let of = |allowed: Option<&[TermId]>| {
        let allowed = allowed.map(Arc::from);
        run(GraphNamesExec::try_new(Arc::clone(&context), Arc::from("g"), allowed).unwrap())
    };
    let named = |graphs: &[i64]| -> Vec<Solution> {
        let graphs = graphs.iter();
        graphs
            .map(|&graph| solution(&[("g", term(graph))]))
            .collect()
    };
    assert_eq!(of(None), named(&[7, 8, 9]));
    let allowed = [term(9), TermId::DEFAULT_GRAPH, term(7), term(5), term(9)];
    assert_eq!(of(Some(&allowed)), named(&[7, 9]));
    let plain = context_of(&[[term(1), term(2), term(3), TermId::DEFAULT_GRAPH]]);
    let plan = GraphNamesExec::try_new(plain, Arc::from("g"), None).unwrap();
    assert!(run(plan).is_empty());
}

fn any_quads() -> impl Strategy<Value = Vec<Quad>> {
    let graph = prop_oneof![3 => Just(TermId::DEFAULT_GRAPH), 1 => (0..2i64).prop_map(term)];
    let quad =
        (0..4i64, 0..3i64, 0..4i64, graph).prop_map(|(s, p, o, g)| [term(s), term(p), term(o), g]);
    proptest::collection::vec(quad, 0..30)
}

fn any_slot() -> impl Strategy<Value = Slot> {
    prop_oneof![
        proptest::sample::select(&["a", "b", "c"][..]).prop_map(var),
        (0..4i64).prop_map(|number| Slot::Constant(term(number))),
    ]
}

fn any_scope() -> impl Strategy<Value = GraphScope> {
    prop_oneof![
        Just(GraphScope::Default),
        Just(GraphScope::AllUnion),
        (0..2i64).prop_map(|graph| GraphScope::Named(term(graph))),
        Just(GraphScope::Union(Arc::from([term(0), term(1)]))),
    ]
}

proptest! {
    #[test]
    fn an_exact_count_is_the_number_of_solutions(
        mut quads in any_quads(),
        subject in any_slot(),
        predicate in any_slot(),
        object in any_slot(),
        graph in any_scope(),
    ) {
        quads.sort();
        quads.dedup();
        let pattern = QuadPattern { subject, predicate, object, graph };
        let context = context_of(&quads);
        if let Some(count) = exact_count(context.view(), &pattern).unwrap() {
            let expected = extend(&Solution::new(), &pattern, &quads).len();
            prop_assert_eq!(count, expected as u64);
            let plan = CountExec::try_new(&context, &pattern, Arc::from("n")).unwrap();
            let id = term(expected as i64);
            prop_assert_eq!(run(plan.unwrap()), vec![solution(&[("n", id)])]);
        }
    }
}

#[test]
fn the_count_of_everything_is_known_without_reading() {
    let quads: Vec<Quad> = (0..5_000)
        .map(|object| {
            [
                term(object % 7),
                term(2),
                term(object),
                TermId::DEFAULT_GRAPH,
            ]
        })
        .collect();
    let context = context_of(&quads);
    let pattern = |predicate| QuadPattern {
        subject: var("s"),
        predicate,
        object: var("o"),
        graph: GraphScope::Default,
    };
    let count = |pattern: &QuadPattern| exact_count(context.view(), pattern).unwrap();
    assert_eq!(count(&pattern(var("p"))), Some(5_000));
    assert_eq!(count(&pattern(Slot::Constant(term(2)))), Some(5_000));
    assert_eq!(count(&pattern(Slot::Constant(term(3)))), Some(0));
    // A variable that stands twice restricts the rows.
    assert_eq!(count(&pattern(var("s"))), None);
}

#[test]
fn a_plan_with_its_children_replaced_gives_the_same() {
    let context = context_of(&[[term(1), term(2), term(3), TermId::DEFAULT_GRAPH]]);
    let input = RowsExec::try_new(&names(&["s"]), &[vec![Some(term(1))], vec![None]]).unwrap();
    let pattern = QuadPattern {
        subject: var("s"),
        predicate: Slot::Constant(term(2)),
        object: var("o"),
        graph: GraphScope::Default,
    };
    let specification = PatternSpecification::inner(vec![pattern], names(&["s", "o"]));
    let plan: Arc<dyn ExecutionPlan> =
        PatternExec::try_new(context, Some(Arc::clone(&input)), specification).unwrap();
    let expected = run(Arc::clone(&plan));
    assert_eq!(expected.len(), 2);
    #[expect(deprecated, reason = "what DataFusion's own rules call")]
    let replaced = Arc::clone(&plan).with_new_children(vec![input]).unwrap();
    assert_eq!(run(replaced), expected);
    let shown = displayable(&*plan).indent(false).to_string();
    assert!(shown.starts_with("PatternExec: inner"), "{shown}");
    assert!(shown.contains("\n  RowsExec: 2 rows ?s"), "{shown}");
    // The plan that is shown counts what its copies did: some run it once for each piece of an
    // input.
    let metrics = plan.metrics().unwrap();
    assert_eq!(metrics.output_rows(), Some(4));
    assert_eq!(metrics.sum_by_name("step1_rows").unwrap().as_usize(), 4);
}

#[test]
fn a_stream_without_end_gives_way_in_between() {
    let quads: Vec<Quad> = (0..20_000)
        .map(|object| [term(1), term(2), term(object), TermId::DEFAULT_GRAPH])
        .collect();
    let pattern = |object| QuadPattern {
        subject: Slot::Constant(term(1)),
        predicate: Slot::Constant(term(2)),
        object: var(object),
        graph: GraphScope::Default,
    };
    let patterns = vec![pattern("a"), pattern("b"), pattern("c")];
    let specification = PatternSpecification::inner(patterns, names(&["a", "b", "c"]));
    let plan = PatternExec::try_new(context_of(&quads), None, specification).unwrap();
    // 8 x 10^12 solutions: a consumer that takes them all must still return to the scheduler.
    let mut stream = plan.execute(0, Arc::new(TaskContext::default())).unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let mut batches = 0;
    while let Poll::Ready(batch) = stream.poll_next_unpin(&mut context) {
        let rows = batch.unwrap().unwrap().num_rows();
        assert!((1..=65_536).contains(&rows));
        batches += 1;
        assert!(batches < 1_000_000, "the stream never gives way");
    }
}

#[test]
fn an_empty_input_gives_nothing_and_a_failing_one_its_error() {
    let pattern = QuadPattern {
        subject: var("s"),
        predicate: var("p"),
        object: var("o"),
        graph: GraphScope::Default,
    };
    let of = |input| {
        let specification = PatternSpecification::inner(vec![pattern.clone()], names(&["s", "o"]));
        let plan = PatternExec::try_new(context_of(&[]), Some(input), specification).unwrap();
        try_run(plan, Arc::new(TaskContext::default()))
    };
    let schema = crate::solution_schema(&names(&["s"]));
    assert!(
        of(Arc::new(EmptyExec::new(Arc::clone(&schema))))
            .unwrap()
            .is_empty()
    );
    let no_partition = EmptyExec::new(schema).with_partitions(0);
    assert!(of(Arc::new(no_partition)).is_err());
}

#[test]
fn runs_longer_and_shorter_than_a_window_are_counted() {
    let lengths = [5_000, 1, 4_096, 4_095, 1, 1, 9_000, 3];
    let mut quads: Vec<Quad> = Vec::new();
    for (value, length) in lengths.into_iter().enumerate() {
        let rows = 0..length;
        quads.extend(rows.map(|s| [term(s), term(1), term(value as i64), TermId::DEFAULT_GRAPH]));
    }
    quads.push([term(1), term(2), term(0), TermId::DEFAULT_GRAPH]);
    let context = context_of(&quads);
    let pattern = QuadPattern {
        subject: var("s"),
        predicate: Slot::Constant(term(1)),
        object: var("o"),
        graph: GraphScope::Default,
    };
    let specification = RunCountsSpecification {
        patterns: vec![pattern],
        key: Arc::from("o"),
        counts: names(&["n", "m"]),
    };
    let plan = RunCountsExec::try_new(&context, specification).unwrap();
    let expected: Vec<Solution> = lengths
        .into_iter()
        .enumerate()
        .map(|(value, length)| {
            let count = term(length);
            solution(&[("o", term(value as i64)), ("n", count), ("m", count)])
        })
        .collect();
    let mut found = run(plan.unwrap());
    found.sort_by_key(|solution| solution["o"]);
    assert_eq!(found, expected);
}

fn small_quads() -> impl Strategy<Value = Vec<Quad>> {
    let quad = (
        0..6i64,
        0..3i64,
        0..6i64,
        prop_oneof![4 => Just(0i64), 1 => 1..3i64],
    );
    proptest::collection::vec(quad, 0..40).prop_map(|quads| {
        let graph = |number| match number {
            0 => TermId::DEFAULT_GRAPH,
            number => term(number),
        };
        let quads = quads.into_iter();
        quads
            .map(|(s, p, o, g)| [term(s), term(p), term(o), graph(g)])
            .collect()
    })
}

fn small_slot(name: &'static str, other: &'static str) -> impl Strategy<Value = Slot> {
    prop_oneof![
        4 => Just(var(name)),
        1 => Just(var(other)),
        3 => (0..6i64).prop_map(|number| Slot::Constant(term(number))),
    ]
}

fn small_scope() -> impl Strategy<Value = GraphScope> {
    prop_oneof![
        Just(GraphScope::Default),
        Just(GraphScope::AllUnion),
        (1..3i64).prop_map(|graph| GraphScope::Named(term(graph))),
        Just(GraphScope::NamedVariable {
            variable: Arc::from("g"),
            allowed: None,
        }),
    ]
}

#[test]
fn long_runs_are_counted_by_triples_and_by_graphs() {
    // Each triple of predicate 1 with object 0 stands in two graphs, each second one also in the
    // default graph; what predicate 2 has is in a third graph alone.
    let mut quads: Vec<Quad> = Vec::new();
    for s in 0..6_000 {
        quads.push([term(s), term(1), term(0), term(100)]);
        quads.push([term(s), term(1), term(0), term(101)]);
        quads.push([term(s), term(2), term(0), term(102)]);
        if s % 2 == 0 {
            quads.push([term(s), term(1), term(0), TermId::DEFAULT_GRAPH]);
        }
    }
    quads.push([term(1), term(1), term(1), TermId::DEFAULT_GRAPH]);
    quads.push([term(2), term(1), term(2), term(100)]);
    let context = context_of(&quads);
    let any_named = GraphScope::NamedVariable {
        variable: Arc::from("g"),
        allowed: None,
    };
    for (predicate, graph, expected) in [
        (
            1,
            GraphScope::AllUnion,
            Some(vec![(0, 6_000), (1, 1), (2, 1)]),
        ),
        (1, any_named, Some(vec![(0, 12_000), (2, 1)])),
        (2, GraphScope::Named(term(102)), Some(vec![(0, 6_000)])),
        // The graphs have fewer rows than the predicate: they are read in the graph's own order.
        (1, GraphScope::Named(term(100)), None),
        (1, GraphScope::Default, None),
    ] {
        let pattern = QuadPattern {
            subject: var("s"),
            predicate: Slot::Constant(term(predicate)),
            object: var("o"),
            graph: graph.clone(),
        };
        let specification = RunCountsSpecification {
            patterns: vec![pattern],
            key: Arc::from("o"),
            counts: names(&["n"]),
        };
        let plan = RunCountsExec::try_new(&context, specification).unwrap();
        let found = plan.map(|plan| {
            let mut found = run(plan);
            found.sort_by_key(|solution| solution["o"]);
            found
        });
        let expected = expected.map(|groups| {
            let groups = groups.into_iter();
            let groups = groups.map(|(o, n)| solution(&[("o", term(o)), ("n", term(n))]));
            groups.collect::<Vec<_>>()
        });
        assert_eq!(found, expected, "{graph:?}");
    }
}

/// A graph with rows for a key in a hundred, and a key with more rows than two turns read, whose
/// rows are elsewhere.
#[test]
fn counting_gives_way_however_few_rows_count() {
    let mut quads: Vec<Quad> = Vec::new();
    for s in 0..9_000 {
        quads.push([term(s), term(1), term(7), term(100)]);
        let graph = if s % 100 == 0 { 102 } else { 101 };
        quads.push([term(s), term(1), term(1_000 + s), term(graph)]);
        quads.push([term(s), term(3), term(0), term(102)]);
        quads.push([term(s), term(3), term(1), term(102)]);
    }
    let context = context_of(&quads);
    let pattern = |predicate, subject, object| QuadPattern {
        subject: var(subject),
        predicate: Slot::Constant(term(predicate)),
        object: var(object),
        graph: GraphScope::Named(term(102)),
    };
    let counted = |patterns, key: &str| {
        let specification = RunCountsSpecification {
            patterns,
            key: Arc::from(key),
            counts: names(&["n"]),
        };
        let plan = RunCountsExec::try_new(&context, specification).unwrap();
        let plan = plan.expect("runs");
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(async move {
            let mut stream = plan.execute(0, Arc::new(TaskContext::default())).unwrap();
            let (mut waits, mut groups) = (0, 0);
            std::future::poll_fn(|cx| {
                loop {
                    match stream.poll_next_unpin(cx) {
                        Poll::Pending => {
                            waits += 1;
                            return Poll::Pending;
                        }
                        Poll::Ready(Some(batch)) => groups += batch.unwrap().num_rows(),
                        Poll::Ready(None) => return Poll::Ready(()),
                    }
                }
            })
            .await;
            (groups, waits)
        })
    };
    // 18,000 rows in turns of 4,096, whether they count or not.
    let (groups, waits) = counted(vec![pattern(1, "s", "k")], "k");
    assert_eq!(groups, 90);
    assert!(waits >= 3, "{waits}");
    // Of two, both of which give way, either may be behind.
    let both = vec![pattern(1, "a", "k"), pattern(3, "k", "b")];
    let (groups, _) = counted(both, "k");
    assert_eq!(groups, (1_000..9_000).step_by(100).count());
}

proptest! {
    /// Whatever it agrees to count, it counts right; and it agrees where it can.
    #[test]
    fn counts_by_runs_are_those_of_the_solutions(
        quads in small_quads(),
        slots in (small_slot("s", "o"), small_slot("p", "s"), small_slot("o", "p")),
        key in proptest::sample::select(vec!["s", "p", "o"]),
        graph in small_scope(),
    ) {
        let context = context_of(&quads);
        let (subject, predicate, object) = slots;
        let pattern = QuadPattern { subject, predicate, object, graph };
        let specification = RunCountsSpecification {
            patterns: vec![pattern.clone()],
            key: Arc::from(key),
            counts: names(&["n"]),
        };
        let plan = RunCountsExec::try_new(&context, specification);
        let mut expected: std::collections::BTreeMap<TermId, i64> = Default::default();
        for solution in extend(&Solution::new(), &pattern, &quads) {
            if let Some(value) = solution.get(key) {
                *expected.entry(*value).or_default() += 1;
            }
        }
        let variables = pattern.variables();
        let is_plain = quads.iter().all(|quad| quad[3] == TermId::DEFAULT_GRAPH)
            && matches!(pattern.graph, GraphScope::Default | GraphScope::AllUnion)
            || matches!(pattern.graph, GraphScope::AllUnion);
        let repeats = [&pattern.subject, &pattern.predicate, &pattern.object]
            .iter()
            .filter(|slot| slot.variable().is_some())
            .count() != variables.len();
        match plan.unwrap() {
            Some(plan) => {
                let expected: Vec<Solution> = expected
                    .into_iter()
                    .map(|(value, count)| solution(&[(key, value), ("n", term(count))]))
                    .collect();
                let mut found = run(plan);
                found.sort_by_key(|solution| solution[key]);
                prop_assert_eq!(found, expected);
            }
            None => {
                let is_asked = variables.iter().any(|name| &***name == key);
                prop_assert!(!is_plain || repeats || !is_asked || variables.len() > 1);
            }
        }
    }

    /// The products of runs are the numbers of solutions of the join, in any state of the database;
    /// whoever is behind leaps.
    #[test]
    fn products_of_runs_are_counts_of_the_join(
        quads in proptest::collection::vec((0..40i64, 0..3i64, 0..40i64), 0..400),
        shapes in proptest::collection::vec((0..3i64, 0..4usize), 1..4),
        gap in prop_oneof![Just(1i64), Just(1_000i64)],
    ) {
        let of_default = |(s, p, o): (i64, i64, i64)| {
            [term(s % 7 * gap + s), term(p), term(o % 5 * gap + o), TermId::DEFAULT_GRAPH]
        };
        let quads: Vec<Quad> = quads.into_iter().map(of_default).collect();
        let own = |number: usize| var(["x", "y", "z"][number]);
        let patterns: Vec<QuadPattern> = shapes
            .iter()
            .enumerate()
            .map(|(number, &(predicate, shape))| {
                let predicate = Slot::Constant(term(predicate));
                let (subject, object) = match shape {
                    0 => (var("k"), own(number)),
                    1 => (own(number), var("k")),
                    2 => (var("k"), Slot::Constant(term(3))),
                    _ => (Slot::Constant(term(8)), var("k")),
                };
                QuadPattern { subject, predicate, object, graph: GraphScope::Default }
            })
            .collect();
        let mut solutions = vec![Solution::new()];
        for pattern in &patterns {
            solutions = solutions.iter().flat_map(|it| extend(it, pattern, &quads)).collect();
        }
        let mut expected: std::collections::BTreeMap<TermId, i64> = Default::default();
        for solution in &solutions {
            *expected.entry(solution["k"]).or_default() += 1;
        }
        let expected: Vec<Solution> = expected
            .into_iter()
            .map(|(value, count)| solution(&[("k", value), ("n", term(count))]))
            .collect();
        for context in contexts_of(&quads) {
            let specification = RunCountsSpecification {
                patterns: patterns.clone(),
                key: Arc::from("k"),
                counts: names(&["n"]),
            };
            let plan = RunCountsExec::try_new(&context, specification).unwrap();
            let mut found = run(plan.expect("runs"));
            found.sort_by_key(|solution| solution["k"]);
            prop_assert_eq!(&found, &expected);
        }
    }
}

#[test]
fn numbers_of_different_values_are_known_until_something_changes() {
    let quad = |s, p, o, g| [term(s), term(p), term(o), g];
    let mut quads: Vec<Quad> = (0..60)
        .map(|n| quad(n % 20, n % 2, n % 7, TermId::DEFAULT_GRAPH))
        .collect();
    let pattern = |predicate: Slot, graph: GraphScope| QuadPattern {
        subject: var("s"),
        predicate,
        object: var("o"),
        graph,
    };
    for is_plain in [true, false] {
        if !is_plain {
            quads.push(quad(99, 0, 98, term(7)));
        }
        let [base, _, changed] = contexts_of(&quads);
        for (graph, is_known) in [
            (GraphScope::Default, is_plain),
            (GraphScope::AllUnion, true),
        ] {
            for predicate in [var("p"), Slot::Constant(term(0)), Slot::Constant(term(55))] {
                let pattern = pattern(predicate.clone(), graph.clone());
                for key in ["s", "o"] {
                    let solutions = extend(&Solution::new(), &pattern, &quads);
                    let values = solutions.iter().map(|solution| solution[key]);
                    let values: std::collections::BTreeSet<TermId> = values.collect();
                    let expected = is_known.then_some(values.len() as u64);
                    assert_eq!(exact_distinct_count(base.view(), &pattern, key), expected);
                    assert_eq!(exact_distinct_count(changed.view(), &pattern, key), None);
                }
                assert_eq!(exact_distinct_count(base.view(), &pattern, "p"), None);
                assert_eq!(exact_distinct_count(base.view(), &pattern, "x"), None);
            }
        }
    }
    let twice = QuadPattern {
        object: var("s"),
        ..pattern(var("p"), GraphScope::AllUnion)
    };
    let context = context_of(&quads);
    assert_eq!(exact_distinct_count(context.view(), &twice, "s"), None);
}

#[test]
fn a_product_beyond_64_bits_is_exact() {
    let quads: Vec<Quad> = (0..65_536)
        .map(|s| [term(s), term(1), term(0), TermId::DEFAULT_GRAPH])
        .collect();
    let context = context_of(&quads);
    let pattern = |name: &'static str| QuadPattern {
        subject: var(name),
        predicate: Slot::Constant(term(1)),
        object: var("o"),
        graph: GraphScope::Default,
    };
    let specification = RunCountsSpecification {
        patterns: ["a", "b", "c", "d", "e"].map(pattern).to_vec(),
        key: Arc::from("o"),
        counts: names(&["n"]),
    };
    let plan = RunCountsExec::try_new(&context, specification).unwrap();
    let found = run(plan.unwrap());
    let product = context.term(found[0]["n"]).unwrap().to_string();
    assert!(product.contains(&(1_u128 << 80).to_string()), "{product}");
}

#[test]
fn keys_between_those_of_lists_in_memory_are_not_looked_at() {
    const KEYS: i64 = 200_000;
    let quad = |s, p, o| [term(s), term(p), term(o), TermId::DEFAULT_GRAPH];
    // Many keys with a row each, and three with more rows than all of them.
    let each = (0..KEYS).map(|key| quad(key, 1, 0));
    let three = [3, 1_000, 2_000];
    let rows = KEYS / 3 + 1;
    let many = three
        .into_iter()
        .flat_map(|key| (0..rows).map(move |o| quad(key, 2, o)));
    let quads: Vec<Quad> = each.chain(many).collect();
    let pattern = |predicate, object| QuadPattern {
        subject: var("k"),
        predicate: Slot::Constant(term(predicate)),
        object: var(object),
        graph: GraphScope::Default,
    };
    let keys_looked_at = |context: &Arc<QueryContext>, expected: &[(i64, i64)]| {
        let specification = RunCountsSpecification {
            patterns: vec![pattern(1, "a"), pattern(2, "b")],
            key: Arc::from("k"),
            counts: names(&["n"]),
        };
        let plan = RunCountsExec::try_new(context, specification).unwrap();
        let plan = plan.unwrap();
        let expected: Vec<_> = expected
            .iter()
            .map(|&(key, n)| solution(&[("k", term(key)), ("n", term(n))]))
            .collect();
        assert_eq!(run(Arc::clone(&plan)), expected);
        let in_memory = plan.metrics().unwrap().sum_by_name("in_memory");
        in_memory.unwrap().as_usize()
    };
    let context = in_memory_with(&quads, 1 << 30);
    let expected = three.map(|key| (key, rows));
    let looked_at = keys_looked_at(&context, &expected);
    assert!((3..10).contains(&looked_at), "{looked_at}");

    // A change adds a key and takes one away: the adjacency in memory does not know the next key.
    let deleted: Vec<Quad> = (0..rows).map(|o| quad(1_000, 2, o)).collect();
    let added = quad(KEYS / 4, 2, 9);
    let context = in_memory_changed(&quads, &deleted, &[added]);
    let expected = [(3, rows), (2_000, rows), (KEYS / 4, 1)];
    let looked_at = keys_looked_at(&context, &expected);
    assert!((3..100).contains(&looked_at), "{looked_at}");
}

#[test]
fn few_keys_among_many_rows_are_counted_by_the_lengths_of_lists_in_memory() {
    let quad = |s, p, o| [term(s), term(p), term(o), TermId::DEFAULT_GRAPH];
    let many = (0..300).map(|s| quad(s, 1, s % 30));
    // Two rows of each key, and a key that the others lack.
    let few = [0, 2, 7, 29, 99]
        .into_iter()
        .flat_map(|key| [quad(key, 2, 4), quad(key, 2, 5)]);
    let quads: Vec<Quad> = many.chain(few).collect();
    let pattern = |subject, predicate, object| QuadPattern {
        subject: var(subject),
        predicate: Slot::Constant(term(predicate)),
        object: var(object),
        graph: GraphScope::Default,
    };
    let expected = [0, 2, 7, 29].map(|key| solution(&[("k", term(key)), ("n", term(20))]));
    let [in_permutations, in_memory, changed] = contexts_of(&quads);
    let looked_up = |context: &Arc<QueryContext>| {
        let specification = RunCountsSpecification {
            patterns: vec![pattern("s", 1, "k"), pattern("k", 2, "o")],
            key: Arc::from("k"),
            counts: names(&["n"]),
        };
        let plan = RunCountsExec::try_new(context, specification).unwrap();
        let plan = plan.unwrap();
        assert_eq!(run(Arc::clone(&plan)), expected);
        let in_memory = plan.metrics().unwrap().sum_by_name("in_memory");
        in_memory.unwrap().as_usize()
    };
    assert_eq!(looked_up(&in_permutations), 0);
    assert_eq!(looked_up(&in_memory), 5);
    assert!(
        looked_up(&changed) < 5,
        "keys that changes touch are not in memory"
    );
}
