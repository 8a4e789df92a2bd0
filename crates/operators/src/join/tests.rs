//! Tests of random joins against nested loops over the definition of compatibility.

use std::sync::Arc;

use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::GreedyMemoryPool;
use datafusion_execution::runtime_env::RuntimeEnvBuilder;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::union::UnionExec;
use orrery_term::TermId;
use proptest::prelude::*;
use spargebra::algebra::Expression;
use spargebra::term::Variable;

use super::*;
use crate::rows::RowsExec;
use crate::test_support::{Solution, context_of, names, project, run, term, try_run};

const LEFT: [&str; 3] = ["a", "b", "l"];
const RIGHT: [&str; 3] = ["b", "r", "a"];

type Rows = Vec<Vec<Option<TermId>>>;

fn any_rows() -> impl Strategy<Value = Rows> {
    let cell = proptest::option::weighted(0.7, (0..3i64).prop_map(term));
    proptest::collection::vec(proptest::collection::vec(cell, 3), 0..10)
}

fn any_mode() -> impl Strategy<Value = JoinMode> {
    prop_oneof![
        Just(JoinMode::Inner),
        Just(JoinMode::Left),
        Just(JoinMode::Anti),
        Just(JoinMode::Semi),
        Just(JoinMode::Minus(Vec::new())),
        Just(JoinMode::Minus(vec![uncounted("a", None)])),
        Just(JoinMode::Minus(vec![
            uncounted("a", Some("l")),
            uncounted("b", None)
        ])),
        Just(JoinMode::Minus(vec![uncounted("b", Some("b"))])),
        Just(JoinMode::Mark(Arc::from("mark"))),
    ]
}

fn uncounted(variable: &str, witness: Option<&str>) -> Uncounted {
    Uncounted {
        variable: Arc::from(variable),
        witness: witness.map(Arc::from),
    }
}

fn solutions(variables: &[&str], rows: &Rows) -> Vec<Solution> {
    let solution = |row: &Vec<Option<TermId>>| {
        let cells = variables.iter().zip(row);
        cells
            .filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?)))
            .collect()
    };
    rows.iter().map(solution).collect()
}

fn compatible(left: &Solution, right: &Solution) -> bool {
    right
        .iter()
        .all(|(name, value)| left.get(name).is_none_or(|other| other == value))
}

fn shares_a_variable(left: &Solution, right: &Solution, uncounted: &[Uncounted]) -> bool {
    let is_term = |name: &String| {
        uncounted.iter().any(|it| {
            let witness = it.witness.as_deref();
            *it.variable == **name && witness.is_none_or(|witness| left.contains_key(witness))
        })
    };
    right
        .keys()
        .any(|name| left.contains_key(name) && !is_term(name))
}

/// The filter of the tests: ?l and ?r are the same term.
fn l_is_r() -> Expression {
    Expression::SameTerm(
        Box::new(Variable::new_unchecked("l").into()),
        Box::new(Variable::new_unchecked("r").into()),
    )
}

fn expected(
    mode: &JoinMode,
    is_filtered: bool,
    left: &[Solution],
    right: &[Solution],
    output: &[Arc<str>],
) -> Vec<Solution> {
    let mut solutions: Vec<Solution> = Vec::new();
    for left in left {
        let mut matches: Vec<Solution> = Vec::new();
        for right in right {
            let meets = match mode {
                JoinMode::Minus(uncounted) => shares_a_variable(left, right, uncounted),
                _ => true,
            };
            if !compatible(left, right) || !meets {
                continue;
            }
            let mut merged = right.clone();
            merged.extend(left.clone());
            let fits = merged.contains_key("l") && merged.get("l") == merged.get("r");
            if !is_filtered || fits {
                matches.push(merged);
            }
        }
        match (mode, matches.is_empty()) {
            (JoinMode::Inner | JoinMode::Left, false) => solutions.extend(matches),
            (JoinMode::Left | JoinMode::Anti | JoinMode::Minus(_), true)
            | (JoinMode::Semi, false) => solutions.push(left.clone()),
            (JoinMode::Inner | JoinMode::Semi, true)
            | (JoinMode::Anti | JoinMode::Minus(_), false) => {}
            (JoinMode::Mark(mark), no_match) => {
                let mut marked = left.clone();
                marked.insert(mark.to_string(), TermId::boolean(!no_match));
                solutions.push(marked);
            }
        }
    }
    let mut solutions: Vec<Solution> = solutions
        .iter()
        .map(|solution| project(solution, output))
        .collect();
    solutions.sort();
    solutions
}

fn join(mode: &JoinMode, is_filtered: bool, left: &Rows, right: &Rows) -> Arc<dyn ExecutionPlan> {
    SolutionJoinExec::try_new(
        context_of(&[]),
        RowsExec::try_new(&names(&LEFT), left).unwrap(),
        RowsExec::try_new(&names(&RIGHT), right).unwrap(),
        JoinSpecification {
            mode: mode.clone(),
            filters: is_filtered.then(l_is_r).into_iter().collect(),
            output: output_of(mode),
        },
    )
    .unwrap()
}

fn output_of(mode: &JoinMode) -> Vec<Arc<str>> {
    match mode {
        JoinMode::Inner | JoinMode::Left => names(&["r", "a", "b", "l"]),
        JoinMode::Semi | JoinMode::Anti | JoinMode::Minus(_) => names(&["l", "a", "b"]),
        JoinMode::Mark(_) => names(&["l", "mark", "a", "b"]),
    }
}

proptest! {
    #[test]
    fn a_join_gives_the_compatible_solutions(
        mode in any_mode(),
        is_filtered in any::<bool>(),
        left in any_rows(),
        right in any_rows(),
    ) {
        let is_filtered = is_filtered && !matches!(mode, JoinMode::Minus(_));
        let expected = expected(
            &mode,
            is_filtered,
            &solutions(&LEFT, &left),
            &solutions(&RIGHT, &right),
            &output_of(&mode),
        );
        prop_assert_eq!(run(join(&mode, is_filtered, &left, &right)), expected);
    }
}

#[test]
fn large_sides_join_in_bounded_pieces() {
    // Every key 20 times on both sides: 400 pairs for each of 5,000 keys.
    let rows: Rows = (0..100_000)
        .map(|row| vec![Some(term(row % 5_000)), Some(term(1)), None])
        .collect();
    let right: Rows = rows.iter().map(|row| vec![row[1], None, row[0]]).collect();
    assert_eq!(
        run(join(&JoinMode::Semi, false, &rows, &right)).len(),
        100_000
    );
    assert_eq!(run(join(&JoinMode::Anti, false, &rows, &right)).len(), 0);
    let plan = join(&JoinMode::Inner, false, &rows[..1_000].to_vec(), &right);
    assert_eq!(run(plan).len(), 20_000);
}

/// A runtime with so much memory for operators.
fn with_memory(bytes: usize) -> Arc<TaskContext> {
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(bytes)))
        .build_arc()
        .unwrap();
    Arc::new(TaskContext::default().with_runtime(runtime))
}

/// In batches of some rows.
fn in_batches(variables: &[&str], rows: &Rows, size: usize) -> Arc<dyn ExecutionPlan> {
    let batches = rows
        .chunks(size)
        .map(|rows| RowsExec::try_new(&names(variables), rows).unwrap());
    let union = UnionExec::try_new(batches.collect()).unwrap();
    Arc::new(CoalescePartitionsExec::new(union))
}

#[test]
fn a_right_side_beyond_the_memory_limit_is_joined_block_by_block() {
    let cell = |row: usize, of: usize, null: usize| match row.is_multiple_of(null) {
        true => None,
        false => Some(term((row % of) as i64)),
    };
    let rows = |count: usize, shift: usize| -> Rows {
        let row = |row| {
            vec![
                cell(row + shift, 97, 53),
                cell(row, 71, 31),
                cell(row, 5, 7),
            ]
        };
        (0..count).map(row).collect()
    };
    let (left, right) = (rows(300, 0), rows(400, 20));
    for mode in [
        JoinMode::Inner,
        JoinMode::Left,
        JoinMode::Anti,
        JoinMode::Semi,
        JoinMode::Minus(vec![uncounted("a", Some("l"))]),
        JoinMode::Mark(Arc::from("mark")),
    ] {
        let is_filtered = !matches!(mode, JoinMode::Minus(_));
        for is_filtered in [false, is_filtered] {
            let expected = expected(
                &mode,
                is_filtered,
                &solutions(&LEFT, &left),
                &solutions(&RIGHT, &right),
                &output_of(&mode),
            );
            let plan = SolutionJoinExec::try_new(
                context_of(&[]),
                in_batches(&LEFT, &left, 32),
                in_batches(&RIGHT, &right, 16),
                JoinSpecification {
                    mode: mode.clone(),
                    filters: is_filtered.then(l_is_r).into_iter().collect(),
                    output: output_of(&mode),
                },
            )
            .unwrap();
            let found = try_run(Arc::clone(&plan), with_memory(6_000)).unwrap();
            assert_eq!(found, expected, "{mode:?}, filtered: {is_filtered}");
            let spilled = plan.metrics().unwrap().spilled_rows().unwrap();
            assert_eq!(spilled, left.len() + right.len(), "{mode:?}");
        }
    }
    // Nothing fits: the limit is said.
    let plan = join(&JoinMode::Inner, false, &left, &right);
    let error = try_run(plan, with_memory(1_000)).unwrap_err();
    assert!(
        matches!(
            error,
            datafusion_common::DataFusionError::ResourcesExhausted(_)
        ),
        "{error}"
    );
}
