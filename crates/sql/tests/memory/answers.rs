//! Memory tests of long values on their way to a client.

use futures::StreamExt;
use orrery_sql::Outcome;

use crate::alone;
use crate::common::House;

const LONG_BYTES: usize = 12_000_000;

#[test]
fn long_values_are_counted_until_they_were_taken() {
    let _alone = alone();
    let house = House::with_memory(512 << 20);
    let session = house.session();
    house.done(
        &session,
        &format!("create table long (t text); insert into long select repeat('x', {LONG_BYTES}) from generate_series(1, 4)"),
    );
    let memory = house.runtime.memory().operators();
    let before = memory.reserved();
    let statement = session.statements("select t from long").unwrap().remove(0);
    house.threads.block_on(async {
        let Outcome::Query(mut rows) = session.execute(&statement).await.unwrap() else {
            panic!("a query");
        };
        let mut taken = 0;
        while let Some(batch) = rows.next().await {
            taken += batch.unwrap().num_rows();
            // The value, and what its client reads of it.
            assert!(memory.reserved() >= before + 4 * LONG_BYTES);
        }
        assert_eq!(taken, 4);
    });
    assert_eq!(memory.reserved(), before);
    // Where there is not so much it is said before anything of it is sent.
    let few = house.session_in(96 << 20);
    let (code, message) = house.refused(&few, "select t from long");
    assert_eq!(code, "53200", "{message}");
    assert!(message.contains("the rows of an answer"), "{message}");
    assert_eq!(
        house.rows(&few, "select max(length(t)) from long"),
        [LONG_BYTES.to_string()]
    );
}
