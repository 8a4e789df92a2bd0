//! Memory tests of windows that hold rows, and of aggregates over windows.

use crate::common::House;
use crate::{Peak, alone};

const MEMORY_BYTES: usize = 256 << 20;

#[test]
fn aggregates_that_grow_over_windows_are_counted() {
    let peak = Peak::since(alone());
    let house = House::with_memory(MEMORY_BYTES as u64);
    let session = house.session();
    let rows = "generate_series(1, 6000) t(i)";
    for call in [
        "string_agg(repeat('x', 300), ',') over (order by i)",
        "string_agg(repeat('x', 300), ',') over (order by i rows between unbounded preceding and 1 following)",
        "array_agg(i) over (order by i rows between unbounded preceding and current row)",
        "array_agg(repeat('x', 300)) over (order by i rows between 4000 preceding and 4000 following)",
        "string_agg(repeat('x', 300), ',') over (order by i desc rows between current row and unbounded following)",
    ] {
        // Of which one row is asked for in the end.
        let text = format!(
            "select count(*) from (select i, {call} as v from {rows}) s where v is not null and i > 0"
        );
        match house.run(&session, &text) {
            Ok(answer) => assert_eq!(answer.lines(), ["6000"], "{call}"),
            Err(error) => assert_eq!(error.state.code(), "53200", "{call}: {error}"),
        }
    }
    peak.require_at_most(MEMORY_BYTES);
}

#[test]
fn aggregates_that_grow_over_windows_are_refused_beyond_the_memory() {
    let _alone = alone();
    let house = House::with_memory(MEMORY_BYTES as u64);
    let session = house.session();
    let text = "select max(length(v)) from (select string_agg(repeat('x', 300), ',') over (order by i) as v from generate_series(1, 6000) t(i)) s";
    let (code, message) = house.refused(&session, text);
    assert_eq!(code, "53200", "{message}");
    // And give back what they had.
    assert_eq!(house.runtime.memory().operators().reserved(), 0);
}

#[test]
fn aggregates_over_windows_answer_as_before() {
    let _alone = alone();
    let house = House::new();
    let session = house.session();
    let rows = "(values (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')) t(i, v)";
    for (call, expected) in [
        (
            "string_agg(v, '-') over (order by i)",
            "a a-b a-b-c a-b-c-d",
        ),
        (
            "string_agg(v, '-') over (order by i desc)",
            "d-c-b-a d-c-b d-c d",
        ),
        (
            "string_agg(v, '-') over ()",
            "a-b-c-d a-b-c-d a-b-c-d a-b-c-d",
        ),
        (
            "string_agg(v, '-') over (partition by i % 2 order by i)",
            "a b a-c b-d",
        ),
        (
            "array_to_string(array_agg(v) over (order by i rows between 1 preceding and current row), '')",
            "a ab bc cd",
        ),
        (
            "array_to_string(array_agg(v) filter (where i > 1) over (order by i), '')",
            "NULL b bc bcd",
        ),
    ] {
        let text = format!("select {call} from {rows} order by i");
        assert_eq!(house.rows(&session, &text).join(" "), expected, "{call}");
    }
    assert_eq!(house.runtime.memory().operators().reserved(), 0);
}

/// `sum(...) over ()` has to have read all rows before it gives one.
#[test]
fn rows_that_a_window_holds_are_counted() {
    let peak = Peak::since(alone());
    let house = House::with_memory(MEMORY_BYTES as u64);
    let session = house.session();
    let long = "select i, repeat('x', 1000) as t from generate_series(1, 600000) t(i)";
    let text = format!(
        "select max(length(t) + n) from (select t, count(*) over () as n from ({long}) r) s"
    );
    let (code, message) = house.refused(&session, &text);
    assert_eq!(code, "53200", "{message}");
    peak.require_at_most(MEMORY_BYTES);
    let few = text.replace("600000", "1000");
    assert_eq!(house.rows(&session, &few), ["2000"]);
    assert_eq!(house.runtime.memory().operators().reserved(), 0);
}
