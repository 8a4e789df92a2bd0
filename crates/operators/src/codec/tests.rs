//! Tests of plans in other processes: what they need, what is refused, and what is shared.
//!
//! That every kind of node comes back is held beside the nodes (`node_tests.rs`).

use datafusion_execution::TaskContext;
use datafusion_physical_plan::{collect_partitioned, displayable};
use orrery_storage::{
    Asker, CommitOptions, GraphNames, ReadScope, ReadView, WriterOptions, build_small,
};
use orrery_term::{Term, TermId};
use proptest::prelude::*;
use serde_json::Value;
use spargebra::algebra::{Expression, Function};
use spargebra::term::Variable;

use super::*;
use crate::dealing::{Dealing, Spread};
use crate::node_tests::{one_of_each_with_contexts, run, service_options, travelled};
use crate::nodes::{AppendExec, SharedExec};
use crate::pattern::{
    GraphScope, ObjectRanges, PatternExec, PatternSpecification, PatternStep, QuadPattern, Slot,
};
use crate::rows::RowsExec;
use crate::test_support::{
    Quad, Solution, context_of, directory, names, small_quads, solutions, term, var,
};

/// Subjects with two predicates; every third subject in two graphs at once.
fn quads() -> Vec<Quad> {
    let rows = (0..3_000).flat_map(|number| {
        let (subject, group) = (term(number), term(number % 50));
        let named = term(10_000 + number % 3);
        let default = [subject, term(100_000), group, TermId::DEFAULT_GRAPH];
        let further = [group, term(200_000), term(number), TermId::DEFAULT_GRAPH];
        let twice = [subject, term(100_000), group, named];
        [default, further, twice]
    });
    rows.collect()
}

fn pattern(subject: &str, predicate: i64, object: &str, graph: GraphScope) -> PatternStep {
    PatternStep::new(QuadPattern {
        subject: var(subject),
        predicate: Slot::Constant(term(predicate)),
        object: var(object),
        graph,
    })
}

fn scan(context: &Arc<QueryContext>, steps: Vec<PatternStep>, output: &[&str]) -> Plan {
    let mut specification = PatternSpecification::inner(Vec::new(), names(output));
    specification.steps = steps;
    PatternExec::try_new(Arc::clone(context), None, specification).unwrap()
}

fn to(processes: u32) -> Destination {
    Destination {
        processes,
        has_shares: false,
    }
}

fn decoded(bytes: &[u8], snapshot: &Arc<Snapshot>, process: u32) -> Result<DecodedPlan> {
    let options = ContextOptions::default();
    let service = service_options();
    EncodedPlan::read(bytes)?.build(Arc::clone(snapshot), options, Some(&service), process)
}

fn simple(context: &Arc<QueryContext>) -> Plan {
    let step = pattern("s", 100_000, "o", GraphScope::Default);
    scan(context, vec![step], &["s", "o"])
}

#[test]
fn a_plan_for_another_database_commit_or_dictionary_is_refused_with_a_sentence() {
    let context = context_of(&quads()[..9]);
    let bytes = encode(&simple(&context), &context, to(1)).unwrap();
    let other = context_of(&quads()[..9]);
    let error = decoded(&bytes, other.snapshot(), 1).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the plan is for the database "),
        "{error}"
    );
    let plan = || EncodedPlan::read(&bytes).unwrap();
    let refused = |plan: EncodedPlan| {
        let bytes = plan.bytes().unwrap();
        decoded(&bytes, context.snapshot(), 1)
            .unwrap_err()
            .to_string()
    };
    let change = |name: &str, value: Value| {
        let mut json = serde_json::to_value(plan()).unwrap();
        json["head"][name] = value;
        refused(serde_json::from_value(json).unwrap())
    };
    let error = change("commit", 99.into());
    assert!(
        error.contains("reads commit 99, this state is commit"),
        "{error}"
    );
    let error = change("base", "b9".into());
    assert!(error.contains("has to be planned again"), "{error}");
    let error = change("delta_terms", 7.into());
    assert!(error.contains("has to be planned again"), "{error}");
}

#[test]
fn a_past_state_is_read_as_long_as_it_is_kept() {
    let directory = directory();
    let few = &quads()[..9];
    drop(build_small(directory.path(), &small_quads(few)).unwrap());
    let database = Arc::new(Database::open(directory.path()).unwrap());
    let context = QueryContext::new(database.view_of_process(), ContextOptions::default());
    let context = context.unwrap();
    let plan = simple(&context);
    let bytes = encode(&plan, &context, to(1)).unwrap();
    let expected = run(&plan);
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    let mut transaction = writer.begin().unwrap();
    transaction.delete(&mut few.to_vec()).unwrap();
    let pending = transaction.commit(CommitOptions::default()).unwrap();
    pending.wait().unwrap();
    assert!(decoded(&bytes, &database.snapshot(), 1).is_err());
    let state = EncodedPlan::read(&bytes)
        .unwrap()
        .snapshot(&database)
        .unwrap();
    let there = decoded(&bytes, &state, 1).unwrap();
    assert_eq!(run(&there.plan), expected);
    // A commit that was never there.
    let mut json = serde_json::to_value(EncodedPlan::read(&bytes).unwrap()).unwrap();
    json["head"]["commit"] = 1_000.into();
    let future: EncodedPlan = serde_json::from_value(json).unwrap();
    let error = future.snapshot(&database).unwrap_err().to_string();
    assert!(error.contains("1000"), "{error}");
}

#[test]
fn who_asks_and_what_they_see_travels_along() {
    let whole = context_of(&quads()[..30]);
    let inline = |id: TermId| id.to_inline_term().unwrap();
    let graphs = GraphNames {
        has_default: false,
        named: [inline(term(10_001))].into(),
        below: ["http://example.org/".to_owned()].into_iter().collect(),
    };
    let scope = ReadScope::only(Asker::Anonymous, graphs);
    let view = ReadView::new(Arc::clone(whole.snapshot()), scope.clone()).unwrap();
    let context = QueryContext::new(view, ContextOptions::default()).unwrap();
    let all = |context: &Arc<QueryContext>| {
        let step = pattern("s", 100_000, "o", GraphScope::AllUnion);
        scan(context, vec![step], &["s", "o"])
    };
    let plan = all(&context);
    let bytes = encode(&plan, &context, to(1)).unwrap();
    let there = decoded(&bytes, whole.snapshot(), 1).unwrap();
    assert_eq!(*there.context.view().scope(), scope);
    let seen = run(&there.plan);
    assert_eq!(seen, run(&plan));
    assert!(seen.len() < run(&all(&whole)).len());
}

#[test]
fn the_querys_own_terms_keep_their_numbers_and_all_parts_have_one_time() {
    let context = context_of(&quads()[..9]);
    let own = Term::string("a text that no dictionary knows");
    let id = context.intern(&own).unwrap();
    let plan = RowsExec::try_new(&names(&["x"]), &[vec![Some(id)], vec![None]]).unwrap();
    let bytes = encode(&plan, &context, to(2)).unwrap();
    let parts = [1, 2].map(|part| decoded(&bytes, context.snapshot(), part).unwrap());
    let mut made = vec![context.fresh_blank_node()];
    for there in &parts {
        assert_eq!(run(&there.plan), run(&plan));
        assert_eq!(there.context.term(id).unwrap(), own);
        assert_eq!(
            there.context.expressions().now(),
            context.expressions().now()
        );
        made.extend((0..5).map(|_| there.context.fresh_blank_node()));
    }
    made.sort_unstable();
    made.dedup();
    assert_eq!(made.len(), 11);
    let error = decoded(&bytes, context.snapshot(), 3).unwrap_err();
    assert!(matches!(error, CodecError::Damaged(_)), "{error}");
    // An id of the query's own that it does not have.
    let unknown = TermId::query_local(1);
    let plan = RowsExec::try_new(&names(&["x"]), &[vec![Some(unknown)]]).unwrap();
    let bytes = encode(&plan, &context, to(0)).unwrap();
    let error = decoded(&bytes, context.snapshot(), 0)
        .unwrap_err()
        .to_string();
    assert!(error.contains("node 0: there is no id"), "{error}");
}

#[test]
fn what_several_nodes_read_is_one_node_again() {
    let context = context_of(&quads()[..9]);
    let call = Expression::FunctionCall(Function::Rand, Vec::new());
    let schema = crate::solution_schema(&names(&["s", "o"]));
    let random = orrery_expressions::TermExpression::compile(&call, &schema, context.expressions());
    let column = datafusion_physical_plan::projection::ProjectionExpr {
        expr: random.unwrap().into_value(),
        alias: "r".to_owned(),
    };
    let input = simple(&context);
    let random =
        datafusion_physical_plan::projection::ProjectionExec::try_new([column], input).unwrap();
    let shared: Plan = Arc::new(SharedExec::new(Arc::new(random)));
    let inner: Plan = Arc::new(AppendExec::new(Arc::clone(&shared), [Arc::clone(&shared)]));
    let plan: Plan = Arc::new(AppendExec::new(inner, [shared]));
    let bytes = encode(&plan, &context, to(1)).unwrap();
    assert_eq!(EncodedPlan::read(&bytes).unwrap().nodes.len(), 5);
    let there = decoded(&bytes, context.snapshot(), 1).unwrap().plan;
    let outer = there.children();
    let inner = outer[0].children();
    assert!(Arc::ptr_eq(inner[0], inner[1]) && Arc::ptr_eq(inner[0], outer[1]));
    // What is another each time comes three times the same.
    let rows = run(&there);
    assert!(
        rows.chunks(3)
            .all(|three| three[0] == three[1] && three[1] == three[2])
    );
    assert_eq!(rows.len(), 3 * run(&simple(&context)).len());
}

#[test]
fn a_plan_that_asks_others_is_refused_where_nobody_may() {
    let plans = one_of_each_with_contexts();
    let (plan, context) = plans
        .iter()
        .find(|(plan, _)| plan.name() == "ServiceExec")
        .unwrap();
    let bytes = encode(plan, context, to(1)).unwrap();
    let there = EncodedPlan::read(&bytes).unwrap();
    let snapshot = Arc::clone(context.snapshot());
    let there = there.build(snapshot, ContextOptions::default(), None, 1);
    assert!(matches!(there.unwrap_err(), CodecError::NoEndpoints));
}

#[test]
fn a_node_without_description_is_refused_when_it_is_written() {
    let context = context_of(&quads()[..9]);
    let limit = datafusion_physical_plan::limit::LocalLimitExec::new(simple(&context), 1);
    let plan: Plan = Arc::new(limit);
    let error = encode(&plan, &context, to(1)).unwrap_err().to_string();
    assert!(error.contains("LocalLimitExec"), "{error}");
}

/// Patterns with first steps of all kinds: ranges of one permutation, of several objects, and of
/// graphs that are merged.
fn spreadable(context: &Arc<QueryContext>) -> Vec<Plan> {
    let of_group = |low, high| Some(ObjectRanges::new(vec![(term(low), term(high))]));
    let graphs = [term(10_000), term(10_002)];
    let mut within = pattern("s", 100_000, "o", GraphScope::Default);
    within.object_ranges = Some(ObjectRanges::new(vec![
        (term(3), term(5)),
        (term(20), term(20)),
        (term(44), term(60)),
    ]));
    let mut small = pattern("s", 100_000, "o", GraphScope::Default);
    small.object_ranges = of_group(49, 49);
    let everything = PatternStep::new(QuadPattern {
        subject: var("s"),
        predicate: var("p"),
        object: var("o"),
        graph: GraphScope::AllUnion,
    });
    vec![
        simple(context),
        scan(context, vec![within], &["s", "o"]),
        scan(context, vec![small], &["s", "o"]),
        scan(context, vec![everything], &["s", "p", "o"]),
        scan(
            context,
            vec![pattern("s", 100_000, "o", GraphScope::Union(graphs.into()))],
            &["s", "o"],
        ),
        scan(
            context,
            vec![
                pattern("s", 100_000, "o", GraphScope::Default),
                pattern("o", 200_000, "x", GraphScope::Default),
            ],
            &["s", "x"],
        ),
        // Of nothing, each share is nothing.
        scan(
            context,
            vec![pattern("s", 300_000, "o", GraphScope::Default)],
            &["s", "o"],
        ),
    ]
}

/// What each partition gives.
fn of_partitions(plan: &Plan) -> Vec<Vec<Solution>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let task = Arc::new(TaskContext::default());
    let partitions = runtime
        .block_on(collect_partitioned(Arc::clone(plan), task))
        .unwrap();
    partitions
        .iter()
        .map(|batches| solutions(batches))
        .collect()
}

#[test]
fn the_shares_of_all_processes_are_the_whole_each_row_once() {
    let context = context_of(&quads());
    for whole in spreadable(&context) {
        let expected = run(&whole);
        for partitions in [1, 2, 3, 7] {
            let pattern = whole.downcast_ref::<PatternExec>().unwrap();
            let spread = Spread {
                partitions,
                dealing: Dealing::Queue,
            };
            let spread = pattern.spread(spread).unwrap();
            let to = Destination {
                processes: 2,
                has_shares: true,
            };
            let bytes = encode(&spread, &context, to).unwrap();
            // One process runs the even partitions, the other one the odd ones.
            let there = [1, 2].map(|part| decoded(&bytes, context.snapshot(), part).unwrap().plan);
            let parts = there.each_ref().map(of_partitions);
            assert_eq!(
                parts[0], parts[1],
                "a share is the same wherever it is read"
            );
            let halves = (0..partitions).map(|at| parts[at % 2][at].clone());
            let mut all = halves.collect::<Vec<_>>().concat();
            all.sort();
            assert_eq!(all, expected, "{partitions} partitions");
            // No share of a scan is much larger than another.
            let longest = parts[0].iter().map(Vec::len).max().unwrap();
            let is_join = pattern.specification().steps.len() > 1;
            assert!(is_join || longest <= expected.len().div_ceil(partitions) + 1_024);
            let shown = displayable(&*there[0]).one_line().to_string();
            assert!(shown.contains("a share each"), "{shown}");
        }
    }
}

#[test]
fn a_share_is_read_as_often_as_one_likes() {
    let context = context_of(&quads());
    let whole = simple(&context);
    let spread = Spread {
        partitions: 3,
        dealing: Dealing::Shares,
    };
    let spread = whole
        .downcast_ref::<PatternExec>()
        .unwrap()
        .spread(spread)
        .unwrap();
    let first = of_partitions(&spread);
    assert_eq!(of_partitions(&spread), first);
    assert!(first.iter().all(|share| share.len() >= 900));
    // A queue gives each row once, so that nobody reads a partition of it twice.
    assert_eq!(travelled(&spread, &context).name(), "PatternExec");
}

#[test]
fn versions_and_other_bytes_are_told_apart() {
    let context = context_of(&quads()[..9]);
    let bytes = encode(&simple(&context), &context, to(1)).unwrap();
    let error = EncodedPlan::read(b"PK and others").unwrap_err();
    assert!(matches!(error, CodecError::NotAPlan));
    let mut newer = bytes.clone();
    newer[4] = VERSION + 1;
    let error = EncodedPlan::read(&newer).unwrap_err().to_string();
    let newer = VERSION + 1;
    let expected = format!(
        "the plan is in version {newer} of the format, this program reads version {VERSION}"
    );
    assert_eq!(error, expected);
    let error = EncodedPlan::read(&vec![0; PLAN_BYTES_MAX + 1]).unwrap_err();
    assert!(matches!(error, CodecError::TooLarge { .. }));
}

/// The JSON of all nodes, over whole and over plain databases.
fn bodies() -> Vec<(Value, Arc<Snapshot>)> {
    let plans = one_of_each_with_contexts().into_iter();
    let body = |(plan, context): (Plan, Arc<QueryContext>)| {
        let bytes = encode(&plan, &context, to(0)).unwrap();
        let json = serde_json::from_slice(&bytes[PREAMBLE_BYTES..]).unwrap();
        (json, Arc::clone(context.snapshot()))
    };
    plans.map(body).collect()
}

/// The places of all values of a document.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{number}"), found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                places(field, &format!("{at}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// Reads damaged bytes, and shows what came of it, if something did.
fn read_damaged(bytes: &[u8], snapshot: &Arc<Snapshot>) -> Option<String> {
    match decoded(bytes, snapshot, 0) {
        Ok(there) => Some(displayable(&*there.plan).indent(true).to_string()),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

fn sealed(body: &[u8]) -> Vec<u8> {
    let checksum = crc32c::crc32c(body).to_le_bytes();
    [MAGIC, &[VERSION][..], &checksum, body].concat()
}

#[test]
fn no_damage_panics() {
    let bodies = bodies();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 4_000,
        ..ProptestConfig::default()
    });
    let damage = (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        any::<u8>(),
        0..6_u8,
    );
    let outcome = runner.run(&damage, |(which, at, other, byte, kind)| {
        let (body, snapshot): &(Value, Arc<Snapshot>) = which.get(&bodies);
        let bytes = serde_json::to_vec(body).unwrap();
        match kind {
            // Cut off, or flipped: the checksum tells.
            0 => {
                let whole = sealed(&bytes);
                let cut = &whole[..at.index(whole.len())];
                prop_assert!(EncodedPlan::read(cut).is_err());
            }
            1 => {
                let mut whole = sealed(&bytes);
                let place = at.index(whole.len());
                whole[place] ^= byte.max(1);
                prop_assert!(EncodedPlan::read(&whole).is_err());
            }
            // Written so: whatever it says.
            2 => {
                let mut bytes = bytes;
                let place = at.index(bytes.len());
                bytes[place] = byte;
                read_damaged(&sealed(&bytes), snapshot);
            }
            _ => {
                let mut places_of = Vec::new();
                places(body, "", &mut places_of);
                let (from, _) = other.get(&bodies);
                let mut places_from = Vec::new();
                places(from, "", &mut places_from);
                let value = match kind {
                    3 => from
                        .pointer(&places_from[other.index(places_from.len())])
                        .unwrap()
                        .clone(),
                    4 => [0, 1, 7, u64::MAX][usize::from(byte) % 4].into(),
                    _ => Value::Null,
                };
                let mut body = body.clone();
                *body
                    .pointer_mut(&places_of[at.index(places_of.len())])
                    .unwrap() = value;
                read_damaged(&sealed(&serde_json::to_vec(&body).unwrap()), snapshot);
            }
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_filter_over_a_variable_that_is_nowhere_stays_one() {
    let context = context_of(&quads()[..9]);
    let unbound = Expression::Bound(Variable::new_unchecked("nowhere"));
    let keep = Expression::Not(Box::new(unbound));
    let schema = crate::solution_schema(&names(&["s", "o"]));
    let keep = orrery_expressions::TermExpression::compile(&keep, &schema, context.expressions());
    let input = simple(&context);
    let plan: Plan = Arc::new(
        datafusion_physical_plan::filter::FilterExec::try_new(keep.unwrap().into_filter(), input)
            .unwrap(),
    );
    assert_eq!(run(&travelled(&plan, &context)), run(&plan));
    assert!(!run(&plan).is_empty());
}
