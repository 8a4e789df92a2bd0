//! Joins without equal columns whose sides do not fit.

use crate::common::House;
use crate::{Peak, alone};

const MEMORY_BYTES: usize = 128 << 20;

/// 3,000 rows of 60 kB against themselves: the collected side is read a second time, from its first row on.
#[test]
fn a_nested_loop_join_that_does_not_fit_is_right_or_out_of_memory() {
    let alone = alone();
    let house = House::with_memory(MEMORY_BYTES as u64);
    let session = house.session();
    house.done(&session, "create table long (id int primary key, t text)");
    for part in 0..30 {
        let (first, last) = (part * 100 + 1, part * 100 + 100);
        let insert = format!(
            "insert into long select i, lpad(i::text, 8, '0') || repeat('x', 60000) from generate_series({first}, {last}) s(i)"
        );
        house.done(&session, &insert);
    }
    let peak = Peak::since(alone);
    for (text, expected) in [
        (
            "select count(*) from long a, long b where a.t > b.t",
            3_000 * 2_999 / 2,
        ),
        // The row of the least text has no other.
        (
            "select count(*) from long a left join long b on a.t > b.t",
            3_000 * 2_999 / 2 + 1,
        ),
    ] {
        match house.run(&session, text) {
            Ok(answer) => assert_eq!(answer.lines(), [expected.to_string()], "{text}"),
            Err(error) => assert_eq!(error.state.code(), "53200", "{text}: {error}"),
        }
    }
    peak.require_at_most(2 * MEMORY_BYTES);
}
