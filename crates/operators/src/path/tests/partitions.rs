//! Tests of paths with unbound ends in several partitions.

use std::task::{Context, Poll, Waker};

use datafusion_execution::memory_pool::MemoryPool;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use futures::StreamExt;
use orrery_runtime::Workers;
use orrery_storage::{ReadView, build_small};

use super::*;
use crate::context::ContextOptions;
use crate::test_support::directory;

const LINKS: i64 = 100_000;

/// Nodes of which each leads to the next.
fn chain() -> Vec<Quad> {
    let link = |node| [term(node), term(0), term(node + 1), TermId::DEFAULT_GRAPH];
    (0..LINKS).map(link).collect()
}

fn two_links() -> PathExpression {
    let link = || Box::new(PathExpression::NamedNode(predicate(0)));
    PathExpression::Sequence(link(), link())
}

fn spread(
    plan: &Arc<dyn ExecutionPlan>,
    partitions: usize,
    dealing: Dealing,
) -> Arc<dyn ExecutionPlan> {
    let path = plan.downcast_ref::<PathExec>().unwrap();
    let spread = Spread {
        partitions,
        dealing,
    };
    path.spread(spread).unwrap()
}

fn from_everywhere(context: Arc<QueryContext>, path: PathExpression) -> Arc<dyn ExecutionPlan> {
    let specification = PathSpecification {
        subject: var("s"),
        path,
        object: var("o"),
        graph: GraphScope::Default,
        is_set: false,
        output: names(&["s", "o"]),
    };
    PathExec::try_new(context, None, specification).unwrap()
}

/// A task whose memory is told.
fn task() -> (Arc<TaskContext>, Arc<GreedyMemoryPool>) {
    let pool = Arc::new(GreedyMemoryPool::new(1 << 30));
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::clone(&pool) as Arc<dyn MemoryPool>)
        .build_arc()
        .unwrap();
    let context = Arc::new(TaskContext::default().with_runtime(runtime));
    (context, pool)
}

/// Rows of the next batch; none at the end.
fn next(stream: &mut SendableRecordBatchStream) -> Option<usize> {
    let batch = futures::executor::block_on(stream.next())?;
    Some(batch.unwrap().num_rows())
}

fn is_waiting(stream: &mut SendableRecordBatchStream) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    matches!(stream.poll_next_unpin(&mut context), Poll::Pending)
}

#[test]
fn the_nodes_to_walk_from_are_one_list_that_is_counted_once_and_given_back() {
    let list_bytes = LINKS as usize * size_of::<u64>();
    let plan = from_everywhere(context_of(&chain(), 1), two_links());
    for dealing in [Dealing::Queue, Dealing::Turns(64)] {
        let (context, pool) = task();
        let plan = spread(&plan, 3, dealing);
        let execute = |partition| plan.execute(partition, Arc::clone(&context)).unwrap();
        let mut first = execute(0);
        assert_eq!(pool.reserved(), 0);
        assert!(next(&mut first).is_some());
        let with_one = pool.reserved();
        assert!(with_one >= list_bytes && with_one < 3 * list_bytes);
        let mut others = [execute(1), execute(2)];
        if dealing != Dealing::Queue {
            assert!(others.iter_mut().all(|other| next(other).is_some()));
            assert!(pool.reserved() < with_one + list_bytes / 2);
        }
        // Who comes later reads what is there, whoever made it.
        drop(first);
        assert!(next(&mut others[0]).is_some());
        assert!(pool.reserved() >= list_bytes);
        drop(others);
        assert_eq!(pool.reserved(), 0, "{dealing:?}");
    }
}

#[test]
fn a_further_partition_waits_while_the_engine_has_no_thread_for_it() {
    let database = build_small(directory().path(), &terms(&chain(), 1)).unwrap();
    let workers = Workers::new(2);
    let options = ContextOptions {
        workers: Arc::clone(&workers),
        ..ContextOptions::default()
    };
    let view = ReadView::of_process(database.snapshot());
    let context = QueryContext::new(view, options).unwrap();
    let plan = spread(&from_everywhere(context, two_links()), 2, Dealing::Queue);
    let _query = workers.begin_query();
    let other = workers.begin_query();
    let (task, _) = task();
    let mut first = plan.execute(0, Arc::clone(&task)).unwrap();
    let mut second = plan.execute(1, Arc::clone(&task)).unwrap();
    let mut rows = next(&mut first).unwrap();
    assert!(is_waiting(&mut second));
    rows += next(&mut first).unwrap();
    assert!(is_waiting(&mut second));
    drop(other);
    // It counts while it works, and no longer than that.
    rows += next(&mut second).unwrap();
    assert!(workers.try_extra().is_none());
    while let Some(more) = next(&mut second) {
        rows += more;
    }
    assert!(workers.try_extra().is_some());
    while let Some(more) = next(&mut first) {
        rows += more;
    }
    assert_eq!(rows, LINKS as usize - 1);
}

#[test]
fn partitions_that_are_dropped_on_the_way_leave_nothing_behind() {
    let context = context_of(&chain(), 1);
    let plan = spread(
        &from_everywhere(Arc::clone(&context), two_links()),
        2,
        Dealing::Queue,
    );
    let (task, pool) = task();
    let mut streams = [0, 1].map(|partition| plan.execute(partition, Arc::clone(&task)).unwrap());
    // The list is being made, or the first block is walked from.
    for stream in &mut streams {
        let _ = is_waiting(stream);
    }
    drop(streams);
    assert_eq!(pool.reserved(), 0);
    let workers = context.workers();
    let all: Vec<_> = (0..workers.threads())
        .map(|_| workers.try_extra())
        .collect();
    assert!(all.iter().all(Option::is_some));
}

#[test]
fn without_memory_for_the_nodes_every_partition_ends_with_that_error() {
    let plan = from_everywhere(context_of(&chain(), 1), two_links());
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(500_000)))
        .build_arc()
        .unwrap();
    let context = Arc::new(TaskContext::default().with_runtime(runtime));
    let error = try_run(spread(&plan, 3, Dealing::Queue), context).unwrap_err();
    let is_exhausted = matches!(
        error.find_root(),
        datafusion_common::DataFusionError::ResourcesExhausted(_)
    );
    assert!(is_exhausted, "{error}");
}

#[test]
fn an_end_that_is_the_name_of_the_graph_is_walked_from_once() {
    let quads: Vec<Quad> = (0..4)
        .flat_map(|graph| {
            (0..4).map(move |node| [term(node), term(0), term((node + 1) % 4), term(graph)])
        })
        .collect();
    let context = context_of(&quads, 1);
    for (subject, object) in [("g", "o"), ("s", "g"), ("g", "g"), ("s", "o")] {
        let specification = PathSpecification {
            subject: var(subject),
            path: one_or_more(),
            object: var(object),
            graph: GraphScope::NamedVariable {
                variable: Arc::from("g"),
                allowed: None,
            },
            is_set: false,
            output: names(&["g", subject, object]),
        };
        let plan = PathExec::try_new(Arc::clone(&context), None, specification).unwrap();
        let path = plan.downcast_ref::<PathExec>().unwrap();
        assert_eq!(path.spreadable_starts().unwrap(), None);
        let spread = Spread {
            partitions: 3,
            dealing: Dealing::Queue,
        };
        assert!(path.spread(spread).is_err());
    }
}

#[test]
fn how_many_nodes_are_walked_from_is_bounded_by_the_first_link() {
    let mut quads = chain();
    quads.truncate(1_000);
    quads.extend((0..3).map(|node| [term(node), term(1), term(7), TermId::DEFAULT_GRAPH]));
    let context = context_of(&quads, 2);
    let starts = |path| {
        let plan = from_everywhere(Arc::clone(&context), path);
        let path = plan.downcast_ref::<PathExec>().unwrap();
        path.spreadable_starts().unwrap().unwrap()
    };
    let link = |number| Box::new(PathExpression::NamedNode(predicate(number)));
    assert_eq!(starts(PathExpression::OneOrMore(link(1))), 3);
    assert_eq!(starts(PathExpression::OneOrMore(link(3))), 0);
    let either = PathExpression::Alternative(link(1), link(0));
    assert_eq!(starts(either), 1_003);
    assert_eq!(starts(PathExpression::Sequence(link(1), link(0))), 3);
    assert_eq!(starts(PathExpression::ZeroOrMore(link(1))), 2 * 1_003);
}

#[test]
fn nodes_that_stand_in_no_order_are_walked_from_once_each() {
    // In a graph's rows the objects come by their subjects: several pieces, merged.
    let nodes = 150_000;
    let quads: Vec<Quad> = (0..nodes)
        .flat_map(|node| {
            let far = node * 77_773 % nodes + 40_000;
            [far, far + 1].map(|object| [term(node), term(0), term(object), term(0)])
        })
        .collect();
    let expected: BTreeSet<TermId> = quads.iter().flat_map(|quad| [quad[0], quad[2]]).collect();
    let specification = PathSpecification {
        subject: var("s"),
        path: PathExpression::ZeroOrOne(Box::new(PathExpression::NamedNode(predicate(3)))),
        object: var("o"),
        graph: GraphScope::Named(term(0)),
        is_set: false,
        output: names(&["s"]),
    };
    let plan = PathExec::try_new(context_of(&quads, 1), None, specification).unwrap();
    let plans = [spread(&plan, 3, Dealing::Queue), plan];
    for plan in plans {
        let walked = run(plan).into_iter();
        let walked: Vec<TermId> = walked.map(|solution| solution["s"]).collect();
        assert!(walked.iter().eq(&expected));
    }
}
