//! Tests of all simple paths against naive enumeration, with much and little memory. Whole queries
//! are in `sparql/tests/sparql/paths.rs`.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::UInt64Array;
use datafusion_execution::TaskContext;
use datafusion_physical_plan::{ExecutionPlan, collect};
use orrery_term::TermId;
use proptest::prelude::*;

use super::{
    FrontierExec, PathKind, PlainEdges, PlainStep, SearchColumn, SearchExec, SearchInputs,
    SearchSpecification,
};
use crate::context::QueryContext;
use crate::pattern::{GraphScope, PatternExec, PatternSpecification, QuadPattern, Slot};
use crate::solutions::id_columns;
use crate::test_support::{Quad, context_of, names, term, var};

const PREDICATE: i64 = 100;

type Edge = (u8, u8);

/// What is asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    from: u8,
    to: Option<u8>,
    length_min: u32,
    length_max: Option<u32>,
    is_cyclic: bool,
}

fn search(context: &Arc<QueryContext>, asked: Asked, is_plain: bool) -> Arc<dyn ExecutionPlan> {
    let pattern = QuadPattern {
        subject: var("a"),
        predicate: Slot::Constant(term(PREDICATE)),
        object: var("b"),
        graph: GraphScope::Default,
    };
    let edges = |input| {
        let specification = PatternSpecification::inner(vec![pattern.clone()], names(&["a", "b"]));
        PatternExec::try_new(Arc::clone(context), input, specification).unwrap()
    };
    let at = |name: &str| edges(Some(FrontierExec::leaf(&Arc::from(name))));
    let end = |node: u8| Slot::Constant(term(i64::from(node)));
    let column = |name: &str, column| (Arc::from(name), column);
    let specification = SearchSpecification {
        kind: PathKind::All,
        is_cyclic: asked.is_cyclic,
        is_weighted: false,
        is_bidirectional: false,
        allows_empty: false,
        is_by_path: false,
        source: end(asked.from),
        destination: asked.to.map_or(var("end"), end),
        length_min: asked.length_min,
        length_max: asked.length_max,
        offset: 0,
        limit: None,
        begins_whole: false,
        plain: is_plain.then(|| PlainEdges {
            steps: [PlainStep {
                predicate: term(PREDICATE),
                is_turned: false,
            }]
            .into(),
            graph: GraphScope::Default,
        }),
        exported: 0,
        output: vec![
            column("path", SearchColumn::PathIndex),
            column("from", SearchColumn::Start),
            column("to", SearchColumn::End),
        ],
    };
    let inputs = SearchInputs {
        input: None,
        edges: edges(None),
        by_frontier: (!is_plain).then(|| [at("a"), at("b")]),
    };
    SearchExec::try_new(Arc::clone(context), inputs, specification).unwrap()
}

/// The paths, in the order in which they come.
fn run(plan: &Arc<dyn ExecutionPlan>) -> Vec<Vec<Edge>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let batches = collect(Arc::clone(plan), Arc::new(TaskContext::default()));
    let mut paths: Vec<Vec<Edge>> = Vec::new();
    for batch in runtime.block_on(batches).unwrap() {
        let columns: Vec<UInt64Array> = id_columns(&batch).unwrap();
        let number = |column: usize, row: usize| {
            let id = TermId::from_bits(columns[column].value(row));
            id.integer_value().unwrap()
        };
        for row in 0..batch.num_rows() {
            let path = number(0, row) as usize;
            paths.resize(paths.len().max(path + 1), Vec::new());
            paths[path].push((number(1, row) as u8, number(2, row) as u8));
        }
    }
    paths
}

/// All of them, by trying each edge.
fn naive(edges: &BTreeSet<Edge>, asked: Asked) -> BTreeSet<Vec<Edge>> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        let last: &[Edge] = &path;
        let at = last.last().map_or(asked.from, |edge| edge.1);
        for &edge in edges.iter().filter(|edge| edge.0 == at) {
            let closes = edge.1 == asked.from;
            let comes_again = closes || path.iter().any(|it| it.1 == edge.1);
            let longer = [&path[..], &[edge]].concat();
            let is_end = match asked.is_cyclic {
                true => closes,
                false => !comes_again && asked.to.is_none_or(|to| to == edge.1),
            };
            let length = longer.len() as u32;
            if asked
                .length_max
                .is_some_and(|length_max| length > length_max)
            {
                continue;
            }
            if is_end && length >= asked.length_min {
                found.insert(longer.clone());
            }
            if !comes_again {
                waiting.push(longer);
            }
        }
    }
    found
}

fn check(edges: &BTreeSet<Edge>, asked: Asked) {
    let quad = |&(a, b): &Edge| -> Quad {
        let [a, b] = [a, b].map(|node| term(i64::from(node)));
        [a, term(PREDICATE), b, TermId::DEFAULT_GRAPH]
    };
    let context = context_of(&edges.iter().map(quad).collect::<Vec<_>>());
    let expected = naive(edges, asked);
    for (is_plain, room) in [
        (true, None),
        (false, None),
        (true, Some(1)),
        (true, Some(7)),
        (false, Some(30)),
    ] {
        let plan = SearchExec::with_room(&search(&context, asked, is_plain), room);
        let paths = run(&plan);
        let lengths: Vec<usize> = paths.iter().map(Vec::len).collect();
        assert!(lengths.is_sorted(), "{asked:?} {room:?} {lengths:?}");
        assert_eq!(paths.len(), expected.len(), "{asked:?} {room:?}");
        let paths: BTreeSet<_> = paths.into_iter().collect();
        assert_eq!(paths, expected, "{asked:?} {room:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn all_simple_paths_come_by_their_length_whatever_room_there_is(
        edges in prop::collection::btree_set((0_u8..7, 0_u8..7), 1..24),
        to in prop::option::of(1_u8..7),
        (length_min, length_max) in (0_u32..3, prop::option::of(1_u32..7)),
        is_cyclic: bool,
    ) {
        let to = to.filter(|_| !is_cyclic);
        check(&edges, Asked { from: 0, to, length_min, length_max, is_cyclic });
    }
}

/// A ladder that leads nowhere hangs on a way of two: without room the lengths that no path has
/// were looked for one by one.
#[test]
fn lengths_that_no_path_has_are_not_looked_for() {
    // From each step of the part that leads nowhere the target is reached over a node of the path
    // only: further away with each length.
    let mut edges = BTreeSet::from([(0, 1), (1, 2), (1, 10)]);
    for node in 10..210 {
        edges.extend([(node, node + 1), (node, 1)]);
    }
    let quad = |&(a, b): &Edge| -> Quad {
        let [a, b] = [a, b].map(|node| term(i64::from(node)));
        [a, term(PREDICATE), b, TermId::DEFAULT_GRAPH]
    };
    let context = context_of(&edges.iter().map(quad).collect::<Vec<_>>());
    let asked = Asked {
        from: 0,
        to: Some(2),
        length_min: 0,
        length_max: None,
        is_cyclic: false,
    };
    let plan = search(&context, asked, true);
    assert_eq!(run(&plan), [[(0, 1), (1, 2)]]);
    let touches = crate::touches(&plan);
    assert!(touches < 5_000, "{touches} edges were looked at");
}
