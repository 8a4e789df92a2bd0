//! Tests of sideways information: which rows a pattern drops, and that answers stay the same.

use std::sync::Arc;

use datafusion_common::{JoinType, NullEquality};
use datafusion_execution::TaskContext;
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::expressions::Column;
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion_physical_plan::{ExecutionPlan, collect};
use orrery_term::TermId;

use super::KeysExec;
use crate::context::QueryContext;
use crate::dealing::{Dealing, Spread};
use crate::node_tests::travelled;
use crate::pattern::{FoundIds, GraphScope, PatternExec, PatternSpecification, QuadPattern, Slot};
use crate::rows::RowsExec;
use crate::test_support::{Solution, context_of, names, solutions, term, var};

type Plan = Arc<dyn ExecutionPlan>;

const SUBJECTS: i64 = 300;

/// Each subject with the predicates 1 and 2.
fn context() -> Arc<QueryContext> {
    let quad = |subject: i64, predicate| {
        let object = term(subject * 10 + predicate);
        [
            term(subject),
            term(predicate),
            object,
            TermId::DEFAULT_GRAPH,
        ]
    };
    let quads = (0..SUBJECTS).flat_map(|it| [quad(it, 1), quad(it, 2)]);
    context_of(&quads.collect::<Vec<_>>())
}

fn scan(context: &Arc<QueryContext>) -> Plan {
    let pattern = |predicate, object: &str| QuadPattern {
        subject: var("s"),
        predicate: Slot::Constant(term(predicate)),
        object: var(object),
        graph: GraphScope::Default,
    };
    let patterns = vec![pattern(1, "a"), pattern(2, "b")];
    let specification = PatternSpecification::inner(patterns, names(&["s", "a", "b"]));
    PatternExec::try_new(Arc::clone(context), None, specification).unwrap()
}

fn thinned(scan: &Plan, found: &FoundIds) -> Plan {
    let pattern = scan.downcast_ref::<PatternExec>().unwrap();
    pattern.thinned_by(found.clone()).unwrap().unwrap()
}

/// Rows of `?s`.
fn rows(subjects: &[Option<i64>]) -> Plan {
    let rows: Vec<_> = subjects.iter().map(|it| vec![it.map(term)]).collect();
    RowsExec::try_new(&names(&["s"]), &rows).unwrap()
}

fn place() -> FoundIds {
    FoundIds::new(Arc::from("s"), 3)
}

fn joined(build: Plan, probe: Plan, kind: JoinType) -> Plan {
    let column = || Arc::new(Column::new("s", 0));
    let join = HashJoinExec::try_new(
        build,
        probe,
        vec![(column(), column())],
        None,
        &kind,
        None,
        PartitionMode::CollectLeft,
        NullEquality::NullEqualsNothing,
        false,
    );
    Arc::new(join.unwrap())
}

fn run_in(plan: &Plan, task: &Arc<TaskContext>) -> Vec<Solution> {
    let plan: Plan = match plan.properties().partitioning.partition_count() {
        1 => Arc::clone(plan),
        _ => Arc::new(CoalescePartitionsExec::new(Arc::clone(plan))),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    solutions(&runtime.block_on(collect(plan, Arc::clone(task))).unwrap())
}

fn run(plan: &Plan) -> Vec<Solution> {
    run_in(plan, &Arc::default())
}

/// The rows after each step of the pattern so far.
fn step_rows(plan: &Plan) -> Vec<usize> {
    let pattern = plan.downcast_ref::<PatternExec>().unwrap();
    pattern.reports().iter().map(|step| step.rows).collect()
}

#[test]
fn later_steps_look_up_only_rows_with_keys_of_the_join() {
    let context = context();
    let kinds = [
        JoinType::Inner,
        JoinType::Left,
        JoinType::LeftSemi,
        JoinType::LeftAnti,
        JoinType::RightSemi,
    ];
    for kind in kinds {
        let build = || rows(&[Some(7), None, Some(250), Some(7), Some(9_999)]);
        let plain = joined(build(), scan(&context), kind);
        let found = place();
        let keys = KeysExec::try_new(build(), found.clone(), 8).unwrap();
        let probe = thinned(&scan(&context), &found);
        let join = joined(keys, Arc::clone(&probe), kind);
        let expected = run(&plain);
        assert!(!expected.is_empty());
        assert_eq!(run(&join), expected, "{kind}");
        assert_eq!(step_rows(&probe), [2, 2], "{kind}");
    }
}

#[test]
fn too_many_keys_thin_out_nothing() {
    let context = context();
    let subjects: Vec<_> = (0..20).map(Some).collect();
    for (keys_max, kept) in [(20, 20), (19, SUBJECTS as usize)] {
        let found = place();
        let keys = KeysExec::try_new(rows(&subjects), found.clone(), keys_max).unwrap();
        let probe = thinned(&scan(&context), &found);
        let join = joined(keys, Arc::clone(&probe), JoinType::Inner);
        assert_eq!(run(&join).len(), 20);
        assert_eq!(step_rows(&probe), [kept, kept]);
    }
}

#[test]
fn keys_are_seen_in_their_own_execution_only() {
    let context = context();
    let found = place();
    let keys = KeysExec::try_new(rows(&[Some(1), Some(2)]), found.clone(), 8).unwrap();
    let probe = thinned(&scan(&context), &found);
    let (first, second) = (Arc::new(TaskContext::default()), Arc::default());
    assert_eq!(run_in(&keys, &first).len(), 2);
    assert_eq!(run_in(&probe, &first).len(), 2);
    assert_eq!(run_in(&probe, &second).len(), SUBJECTS as usize);
    // Those of the execution that began last are there; the other one goes without.
    assert_eq!(run_in(&keys, &second).len(), 2);
    assert_eq!(run_in(&probe, &second).len(), 2);
    assert_eq!(run_in(&probe, &first).len(), SUBJECTS as usize);
}

#[test]
fn partitions_of_a_pattern_see_the_keys_and_so_does_a_plan_that_travelled() {
    let context = context();
    let found = place();
    let keys = KeysExec::try_new(rows(&[Some(1), Some(299)]), found.clone(), 8).unwrap();
    let probe = thinned(&scan(&context), &found);
    let probe = probe.downcast_ref::<PatternExec>().unwrap();
    let spread = Spread {
        partitions: 3,
        dealing: Dealing::Turns(2),
    };
    let join = joined(keys, probe.spread(spread).unwrap(), JoinType::Inner);
    let there = travelled(&join, &context);
    for join in [join, there] {
        assert_eq!(run(&join).len(), 2);
        assert_eq!(step_rows(join.children()[1]), [2, 2]);
    }
}

#[test]
fn what_is_no_plain_match_or_has_no_further_steps_is_not_thinned_out() {
    let context = context();
    let scan = scan(&context);
    let pattern = scan.downcast_ref::<PatternExec>().unwrap();
    // No variable of the pattern, and one that the last step binds.
    for name in ["x", "b"] {
        let other = FoundIds::new(Arc::from(name), 0);
        assert!(pattern.thinned_by(other).unwrap().is_none());
    }
    let limited = scan.with_fetch(Some(3)).unwrap();
    let limited = limited.downcast_ref::<PatternExec>().unwrap();
    assert!(limited.thinned_by(place()).unwrap().is_none());
}
