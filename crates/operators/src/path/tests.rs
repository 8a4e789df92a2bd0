//! Tests of random paths over random graphs, against relations computed by fixpoint; and of large
//! graphs.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::GreedyMemoryPool;
use datafusion_execution::runtime_env::RuntimeEnvBuilder;
use datafusion_physical_plan::{ExecutionPlan, collect};
use orrery_storage::SmallQuad;
use orrery_term::{Term, TermId};
use proptest::prelude::*;
use spargebra::algebra::PropertyPathExpression as PathExpression;
use spargebra::term::NamedNode;

use super::*;
use crate::context::QueryContext;
use crate::dealing::{Dealing, Spread};
use crate::pattern::{GraphScope, Slot};
use crate::rows::RowsExec;
use crate::test_support::{
    Quad, Solution, context_of_terms, names, project, run, scope_triples, term, try_run, unify, var,
};

mod partitions;

const INPUT: [&str; 3] = ["a", "x", "g"];

/// Predicates are IRIs; in the quads of these tests a number stands for each.
fn predicate(number: i64) -> NamedNode {
    NamedNode::new_unchecked(format!("http://p/{number}"))
}

fn context_of(quads: &[Quad], predicates: i64) -> Arc<QueryContext> {
    context_of_terms(&terms(quads, predicates))
}

fn terms(quads: &[Quad], predicates: i64) -> Vec<SmallQuad> {
    let inline = |id: TermId| id.to_inline_term().unwrap();
    let iri = |id: TermId| {
        let number = (0..predicates).find(|&number| term(number) == id).unwrap();
        Term::Iri(predicate(number).into_string().into())
    };
    let quads = quads.iter().map(|&[s, p, o, g]| {
        let graph = (g != TermId::DEFAULT_GRAPH).then(|| inline(g));
        (inline(s), iri(p), inline(o), graph)
    });
    quads.collect()
}

fn any_node() -> impl Strategy<Value = TermId> {
    (0..5i64).prop_map(term)
}

fn any_graph() -> impl Strategy<Value = TermId> {
    prop_oneof![2 => Just(TermId::DEFAULT_GRAPH), 1 => (0..3i64).prop_map(term)]
}

fn any_quads() -> impl Strategy<Value = Vec<Quad>> {
    let quad =
        (any_node(), 0..3i64, any_node(), any_graph()).prop_map(|(s, p, o, g)| [s, term(p), o, g]);
    (proptest::collection::vec(quad, 0..20), any::<bool>()).prop_map(|(mut quads, is_plain)| {
        for quad in &mut quads {
            if is_plain {
                quad[3] = TermId::DEFAULT_GRAPH;
            }
        }
        quads
    })
}

fn any_path() -> impl Strategy<Value = PathExpression> {
    let predicate = (0..4i64).prop_map(predicate);
    let leaf = prop_oneof![
        3 => predicate.clone().prop_map(PathExpression::NamedNode),
        1 => proptest::collection::vec(predicate, 1..3).prop_map(PathExpression::NegatedPropertySet),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            inner
                .clone()
                .prop_map(|path| PathExpression::Reverse(Box::new(path))),
            pair.clone()
                .prop_map(|(a, b)| PathExpression::Sequence(Box::new(a), Box::new(b))),
            pair.prop_map(|(a, b)| PathExpression::Alternative(Box::new(a), Box::new(b))),
            inner
                .clone()
                .prop_map(|path| PathExpression::ZeroOrMore(Box::new(path))),
            inner
                .clone()
                .prop_map(|path| PathExpression::OneOrMore(Box::new(path))),
            inner.prop_map(|path| PathExpression::ZeroOrOne(Box::new(path))),
        ]
    })
}

fn any_end() -> impl Strategy<Value = Slot> {
    prop_oneof![
        3 => proptest::sample::select(&["a", "b", "g"][..]).prop_map(var),
        1 => (0..7i64).prop_map(|number| Slot::Constant(term(number))),
    ]
}

fn any_scope() -> impl Strategy<Value = GraphScope> {
    let graphs = || proptest::collection::vec(any_graph(), 0..3).prop_map(Arc::from);
    prop_oneof![
        3 => Just(GraphScope::Default),
        1 => graphs().prop_map(GraphScope::Union),
        1 => Just(GraphScope::AllUnion),
        1 => (0..3i64).prop_map(|graph| GraphScope::Named(term(graph))),
        2 => proptest::option::of(graphs()).prop_map(|allowed| GraphScope::NamedVariable {
            variable: Arc::from("g"),
            allowed,
        }),
    ]
}

fn any_input() -> impl Strategy<Value = Option<Vec<Vec<Option<TermId>>>>> {
    let cell = proptest::option::weighted(0.6, (0..7i64).prop_map(term));
    let row = proptest::collection::vec(cell, INPUT.len());
    proptest::option::of(proptest::collection::vec(row, 0..6))
}

fn any_dealing() -> impl Strategy<Value = Dealing> {
    prop_oneof![
        Just(Dealing::Queue),
        (1..4u64).prop_map(Dealing::Turns),
        Just(Dealing::Shares),
    ]
}

type Pair = (TermId, TermId);

/// All pairs that a path connects; a path of length zero connects each node of the universe with
/// itself.
fn relation(
    path: &PathExpression,
    triples: &[[TermId; 3]],
    universe: &BTreeSet<TermId>,
) -> Vec<Pair> {
    let of = |path: &PathExpression| relation(path, triples, universe);
    let number = |node: &NamedNode| (0..4).find(|&number| predicate(number) == *node).map(term);
    let identity = || universe.iter().map(|&node| (node, node));
    match path {
        PathExpression::NamedNode(node) => triples
            .iter()
            .filter(|triple| Some(triple[1]) == number(node))
            .map(|triple| (triple[0], triple[2]))
            .collect(),
        PathExpression::NegatedPropertySet(nodes) => triples
            .iter()
            .filter(|triple| !nodes.iter().any(|node| Some(triple[1]) == number(node)))
            .map(|triple| (triple[0], triple[2]))
            .collect(),
        PathExpression::Reverse(inner) => of(inner).into_iter().map(|(a, b)| (b, a)).collect(),
        PathExpression::Sequence(first, second) => {
            let second = of(second);
            let continued = |(a, b): Pair| {
                let next = second.iter().filter(move |pair| pair.0 == b);
                next.map(move |pair| (a, pair.1)).collect::<Vec<_>>()
            };
            of(first).into_iter().flat_map(continued).collect()
        }
        PathExpression::Alternative(a, b) => of(a).into_iter().chain(of(b)).collect(),
        PathExpression::ZeroOrOne(inner) => distinct(identity().chain(of(inner))),
        PathExpression::OneOrMore(inner) => closure(&of(inner)),
        PathExpression::ZeroOrMore(inner) => distinct(identity().chain(closure(&of(inner)))),
    }
}

fn distinct(pairs: impl Iterator<Item = Pair>) -> Vec<Pair> {
    pairs.collect::<BTreeSet<_>>().into_iter().collect()
}

fn closure(pairs: &[Pair]) -> Vec<Pair> {
    let mut all: BTreeSet<Pair> = pairs.iter().copied().collect();
    loop {
        let longer: Vec<Pair> = all
            .iter()
            .flat_map(|&(a, b)| {
                pairs
                    .iter()
                    .filter(move |pair| pair.0 == b)
                    .map(move |pair| (a, pair.1))
            })
            .collect();
        let before = all.len();
        all.extend(longer);
        if all.len() == before {
            return all.into_iter().collect();
        }
    }
}

/// The solutions of a path for an input row, by the definition.
fn expected(input: &Solution, specification: &PathSpecification, quads: &[Quad]) -> Vec<Solution> {
    let GraphScope::NamedVariable { variable, allowed } = &specification.graph else {
        return in_graph(
            input,
            specification,
            &scope_triples(quads, &specification.graph),
        );
    };
    let graphs: BTreeSet<TermId> = quads
        .iter()
        .map(|quad| quad[3])
        .filter(|graph| *graph != TermId::DEFAULT_GRAPH)
        .filter(|graph| allowed.as_ref().is_none_or(|list| list.contains(graph)))
        .collect();
    let mut solutions = Vec::new();
    for graph in graphs {
        let mut bound = input.clone();
        if unify(&mut bound, &Slot::Variable(Arc::clone(variable)), graph) {
            let triples = scope_triples(quads, &GraphScope::Named(graph));
            solutions.extend(in_graph(&bound, specification, &triples));
        }
    }
    solutions
}

fn in_graph(
    input: &Solution,
    specification: &PathSpecification,
    triples: &[[TermId; 3]],
) -> Vec<Solution> {
    let ends = [&specification.subject, &specification.object];
    let mut universe: BTreeSet<TermId> = triples
        .iter()
        .flat_map(|triple| [triple[0], triple[2]])
        .collect();
    // A constant end may be no node of the graph; between variables the path stays among its nodes.
    universe.extend(ends.iter().filter_map(|slot| match slot {
        Slot::Constant(term) => Some(*term),
        Slot::Variable(_) => None,
    }));
    let pairs = relation(&specification.path, triples, &universe);
    pairs
        .into_iter()
        .filter_map(|(start, end)| {
            let mut solution = input.clone();
            let fits = unify(&mut solution, ends[0], start) && unify(&mut solution, ends[1], end);
            fits.then_some(solution)
        })
        .collect()
}

proptest! {
    #[test]
    fn a_path_gives_what_its_definition_says(
        quads in any_quads(),
        input in any_input(),
        subject in any_end(),
        path in any_path(),
        object in any_end(),
        graph in any_scope(),
        is_set: bool,
        partitions in 1..4usize,
        dealing in any_dealing(),
    ) {
        let specification = PathSpecification {
            subject,
            path,
            object,
            graph,
            is_set,
            output: names(&["b", "x", "g", "a"]),
        };
        let rows: Vec<Solution> = match &input {
            None => vec![Solution::new()],
            Some(rows) => rows
                .iter()
                .map(|row| {
                    let cells = INPUT.iter().zip(row);
                    cells.filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?))).collect()
                })
                .collect(),
        };
        let mut expected: Vec<Solution> = rows
            .iter()
            .flat_map(|row| expected(row, &specification, &quads))
            .map(|solution| project(&solution, &specification.output))
            .collect();
        expected.sort();
        let has_equal_rows = input.as_ref().is_some_and(|input| {
            (1..input.len()).any(|row| input[..row].contains(&input[row]))
        });
        let input = input.map(|rows| RowsExec::try_new(&names(&INPUT), &rows).unwrap());
        let plan = PathExec::try_new(context_of(&quads, 3), input, specification).unwrap();
        let path = plan.downcast_ref::<PathExec>().unwrap();
        let plan = match path.spreadable_starts().unwrap() {
            Some(_) if partitions > 1 => path.spread(Spread { partitions, dealing }).unwrap(),
            _ => plan,
        };
        let mut actual = run(plan);
        if is_set {
            // Each solution once for each row of the input; which rows those are is not seen here.
            if !has_equal_rows {
                prop_assert!(actual.len() <= expected.len());
            }
            actual.dedup();
            expected.dedup();
        }
        prop_assert_eq!(actual, expected);
    }
}

fn path_plan(
    context: Arc<QueryContext>,
    subject: Slot,
    path: PathExpression,
) -> Arc<dyn ExecutionPlan> {
    let specification = PathSpecification {
        subject,
        path,
        object: var("o"),
        graph: GraphScope::Default,
        is_set: false,
        output: names(&["o"]),
    };
    PathExec::try_new(context, None, specification).unwrap()
}

/// The number of solutions.
fn count(plan: Arc<dyn ExecutionPlan>) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let batches = runtime
        .block_on(collect(plan, Arc::new(TaskContext::default())))
        .unwrap();
    batches.iter().map(|batch| batch.num_rows()).sum()
}

fn one_or_more() -> PathExpression {
    PathExpression::OneOrMore(Box::new(PathExpression::NamedNode(predicate(0))))
}

#[test]
fn a_chain_of_a_million_nodes_is_walked_to_its_end() {
    let quads: Vec<Quad> = (0..1_000_000)
        .map(|node| [term(node), term(0), term(node + 1), TermId::DEFAULT_GRAPH])
        .collect();
    let plan = path_plan(
        context_of(&quads, 1),
        Slot::Constant(term(0)),
        one_or_more(),
    );
    assert_eq!(count(plan), 1_000_000);
}

#[test]
fn a_dense_graph_with_cycles_ends() {
    let quads: Vec<Quad> = (0..200)
        .flat_map(|a| (0..200).map(move |b| [term(a), term(0), term(b), TermId::DEFAULT_GRAPH]))
        .collect();
    let context = context_of(&quads, 1);
    let plan = path_plan(Arc::clone(&context), Slot::Constant(term(7)), one_or_more());
    assert_eq!(run(plan).len(), 200);
    assert_eq!(count(path_plan(context, var("s"), one_or_more())), 40_000);
}

#[test]
fn chains_of_repetitions_stay_small_where_duplicates_do_not_matter() {
    // Every node leads to every other in each of six steps: 60 to the power of six ways.
    let quads: Vec<Quad> = (0..60)
        .flat_map(|a| (0..60).map(move |b| [term(a), term(0), term(b), TermId::DEFAULT_GRAPH]))
        .collect();
    let link = || PathExpression::NamedNode(predicate(0));
    let mut path = one_or_more();
    for _ in 0..5 {
        path = PathExpression::Sequence(Box::new(path), Box::new(link()));
    }
    let specification = PathSpecification {
        subject: var("s"),
        path,
        object: var("o"),
        graph: GraphScope::Default,
        is_set: true,
        output: names(&["s", "o"]),
    };
    let plan = PathExec::try_new(context_of(&quads, 1), None, specification).unwrap();
    assert_eq!(count(plan), 60 * 60);
}

#[test]
fn where_memory_is_short_fewer_seeds_are_walked_from_at_a_time() {
    // 64 seeds have 64 * 40 * 40 walks of 16 bytes, one has 1,600.
    let quads: Vec<Quad> = (0..64)
        .flat_map(|a| {
            (0..40).map(move |way| {
                let b = (a + way) % 64;
                [term(a), term(0), term(b), TermId::DEFAULT_GRAPH]
            })
        })
        .collect();
    let link = || Box::new(PathExpression::NamedNode(predicate(0)));
    let specification = PathSpecification {
        subject: var("s"),
        path: PathExpression::Sequence(link(), link()),
        object: var("o"),
        graph: GraphScope::Default,
        is_set: false,
        output: names(&["s", "o"]),
    };
    let plan = PathExec::try_new(context_of(&quads, 1), None, specification).unwrap();
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(200_000)))
        .build_arc()
        .unwrap();
    let context = Arc::new(TaskContext::default().with_runtime(runtime));
    assert_eq!(try_run(plan, context).unwrap().len(), 64 * 40 * 40);
}

#[test]
fn a_path_beyond_the_memory_limit_is_an_error() {
    let quads: Vec<Quad> = (0..20_000)
        .map(|node| [term(node), term(0), term(node + 1), TermId::DEFAULT_GRAPH])
        .collect();
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(500_000)))
        .build_arc()
        .unwrap();
    let context = Arc::new(TaskContext::default().with_runtime(runtime));
    let plan = path_plan(
        context_of(&quads, 1),
        Slot::Constant(term(0)),
        one_or_more(),
    );
    let error = try_run(plan, context).unwrap_err();
    assert!(
        matches!(
            error,
            datafusion_common::DataFusionError::ResourcesExhausted(_)
        ),
        "{error}"
    );
}
