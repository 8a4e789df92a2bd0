//! Tests of the spatial join against a loop over all pairs.

use std::sync::Arc;

use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::GreedyMemoryPool;
use datafusion_execution::runtime_env::RuntimeEnvBuilder;
use datafusion_physical_plan::{ExecutionPlan, collect};
use orrery_geo::{Notation, Relation, Shape, WKT_LITERAL, from_text};
use orrery_term::{Term, TermId};
use proptest::prelude::*;
use tokio::runtime::Runtime;

use super::{Nearness, PlacesCondition, PlacesJoinExec};
use crate::context::QueryContext;
use crate::rows::RowsExec;
use crate::test_support::{context_of, names, solutions, term};

/// Literals, of which some are no geometry; none is an unbound variable.
type Places = Vec<Option<String>>;

fn term_of(context: &QueryContext, text: &str) -> TermId {
    let term = Term::typed(text.to_owned(), WKT_LITERAL);
    context.expressions().intern(&term).unwrap()
}

/// Rows of a number and a place.
fn rows(context: &QueryContext, variables: [&str; 2], places: &Places) -> Arc<dyn ExecutionPlan> {
    let rows = places.iter().enumerate().map(|(number, place)| {
        vec![
            Some(term(number as i64)),
            place.as_ref().map(|text| term_of(context, text)),
        ]
    });
    RowsExec::try_new(&names(&variables), &rows.collect::<Vec<_>>()).unwrap()
}

fn condition(nearness: Nearness, is_turned: bool) -> PlacesCondition {
    PlacesCondition {
        left: Arc::from("a"),
        right: Arc::from("b"),
        nearness,
        is_turned,
    }
}

fn join(left: &Places, right: &Places, condition: PlacesCondition) -> Arc<dyn ExecutionPlan> {
    let context = context_of(&[]);
    let (one, other) = (
        rows(&context, ["x", "a"], left),
        rows(&context, ["y", "b"], right),
    );
    PlacesJoinExec::try_new(context, one, other, condition, &names(&["y", "x"])).unwrap()
}

/// The numbers of the rows that belong together, sorted.
fn joined(left: &Places, right: &Places, condition: PlacesCondition) -> Vec<(TermId, TermId)> {
    let plan = join(left, right, condition);
    let batches = runtime().block_on(collect(plan, Arc::default())).unwrap();
    let solutions = solutions(&batches).into_iter();
    let mut pairs: Vec<_> = solutions.map(|it| (it["x"], it["y"])).collect();
    pairs.sort_unstable();
    pairs
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
}

fn by_all_pairs(
    left: &Places,
    right: &Places,
    condition: &PlacesCondition,
) -> Vec<(TermId, TermId)> {
    let shapes = |places: &Places| -> Vec<Option<Shape>> {
        let shape = |text: &Option<String>| from_text(text.as_ref()?, Notation::Wkt);
        places.iter().map(shape).collect()
    };
    let (left, right) = (shapes(left), shapes(right));
    let mut pairs = Vec::new();
    for (x, one) in left.iter().enumerate() {
        for (y, other) in right.iter().enumerate() {
            if let (Some(one), Some(other)) = (one, other)
                && condition.holds(one, other)
            {
                pairs.push((term(x as i64), term(y as i64)));
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

fn place() -> impl Strategy<Value = Option<String>> {
    // Some are written beyond a pole or a turn.
    let longitude = || prop_oneof![12 => -190_i32..190, 1 => 300_i32..800, 1 => -800_i32..-300];
    let latitude = || prop_oneof![12 => -90_i32..=90, 1 => 91_i32..200, 1 => -200_i32..-90];
    let at = move || (longitude(), latitude());
    prop_oneof![
        6 => at().prop_map(|(x, y)| Some(format!("POINT({x} {y})"))),
        4 => (at(), 1_i32..60, 1_i32..40).prop_map(|((x, y), width, height)| {
            let (right, top) = (x + width, (y + height).min(90));
            Some(format!("POLYGON(({x} {y}, {right} {y}, {right} {top}, {x} {top}, {x} {y}))"))
        }),
        3 => (at(), at()).prop_map(|((x, y), (to_x, to_y))| {
            Some(format!("LINESTRING({x} {y}, {to_x} {to_y})"))
        }),
        1 => at().prop_map(|(x, y)| Some(format!("<http://example.com/plan> POINT({x} {y})"))),
        1 => Just(Some("POINT EMPTY".to_owned())),
        1 => Just(Some("no geometry".to_owned())),
        1 => Just(None),
    ]
}

fn nearness() -> impl Strategy<Value = Nearness> {
    let relations = Relation::ALL.iter().map(|(_, relation)| *relation);
    let close: Vec<Relation> = relations.filter(|it| it.is_close()).collect();
    prop_oneof![
        prop::sample::select(close).prop_map(Nearness::Relation),
        (0.0..8_000.0_f64, any::<bool>()).prop_map(|(distance, is_strict)| Nearness::Within {
            distance,
            unit_m: 1_000.0,
            is_strict,
        }),
    ]
}

proptest! {
    #[test]
    fn the_pairs_are_those_of_a_loop_over_all(
        left in prop::collection::vec(place(), 0..30),
        right in prop::collection::vec(place(), 0..30),
        nearness in nearness(),
        is_turned in any::<bool>(),
    ) {
        let condition = condition(nearness, is_turned);
        let expected = by_all_pairs(&left, &right, &condition);
        prop_assert_eq!(joined(&left, &right, condition), expected);
    }
}

#[test]
fn many_rows_of_one_place_come_in_several_batches() {
    let point = || Some("POINT(1 1)".to_owned());
    let (left, right): (Places, Places) = (vec![point(); 150], vec![point(); 150]);
    let same = condition(Nearness::Relation(Relation::SfEquals), false);
    assert_eq!(joined(&left, &right, same).len(), 22_500);
}

#[test]
fn what_does_not_fit_is_refused() {
    let places: Places = (0..2_000)
        .map(|number| Some(format!("POINT({} {})", number % 100, number / 100)))
        .collect();
    let same = condition(Nearness::Relation(Relation::SfEquals), false);
    let plan = join(&places, &places, same);
    let pool = Arc::new(GreedyMemoryPool::new(100_000));
    let environment = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc();
    let task = TaskContext::default().with_runtime(environment.unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let error = runtime.block_on(collect(plan, Arc::new(task))).unwrap_err();
    assert!(error.to_string().contains("join of places"), "{error}");
}
