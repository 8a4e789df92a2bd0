//! Memory tests of joins without equal columns.

use crate::alone;
use crate::common::House;

const MEMORY_BYTES: usize = 128 << 20;

/// Rows of 60 kB against themselves, from few to more than fit: where the collected side does not,
/// it is read a second time, from its first row on.
#[test]
fn a_nested_loop_join_that_does_not_fit_is_right_or_out_of_memory() {
    let _alone = alone();
    let house = House::with_memory(MEMORY_BYTES as u64);
    let session = house.session();
    house.done(&session, "create table long (id int primary key, t text)");
    for part in 0..100 {
        let (first, last) = (part * 30 + 1, part * 30 + 30);
        let insert = format!(
            "insert into long select i, lpad(i::text, 8, '0') || repeat('x', 60000) from generate_series({first}, {last}) s(i)"
        );
        house.done(&session, &insert);
    }
    let mut right = Vec::new();
    for rows in [250_u64, 500, 1_000, 1_500, 2_000, 3_000] {
        let long = format!("(select t from long where id <= {rows})");
        let pairs = rows * (rows - 1) / 2;
        for (text, expected) in [
            (
                format!("select count(*) from {long} a, {long} b where a.t > b.t"),
                pairs,
            ),
            // The row of the least text has no other.
            (
                format!("select count(*) from {long} a left join {long} b on a.t > b.t"),
                pairs + 1,
            ),
        ] {
            match house.run(&session, &text) {
                Ok(answer) => {
                    assert_eq!(answer.lines(), [expected.to_string()], "{text}");
                    right.push(rows);
                }
                Err(error) => assert_eq!(error.state.code(), "53200", "{text}: {error}"),
            }
        }
    }
    // 60 MB, of which less than half fits.
    assert!(right.contains(&1_000), "{right:?}");
}
