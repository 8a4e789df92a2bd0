//! Memory tests of definitions that read all rows: `CREATE INDEX`, constraints, type changes.

use crate::common::House;
use crate::{Peak, alone};

const MEMORY_BYTES: usize = 64 << 20;

/// Few rows with long texts: 9,000 of 16,000 characters, in the table's file.
#[test]
fn an_index_of_long_texts_is_made_within_the_memory_or_not_at_all() {
    let alone = alone();
    let house = House::with_memory(MEMORY_BYTES as u64);
    let session = house.session();
    house.done(&session, "create table long (id int primary key, t text)");
    for first in (0..9_000).step_by(100) {
        let text = format!(
            "insert into long select i, i || repeat(chr(65 + (i % 26)::int), 16000) from generate_series({first}, {first} + 99) t(i)"
        );
        house.done(&session, &text);
    }
    // Rows that no file has yet are the database's, not the statement's.
    house.compact();
    let peak = Peak::since(alone);
    for statement in [
        "create index by_text on long (t)",
        "alter table long add unique (t, id)",
        "alter table long alter column t type varchar(20000)",
    ] {
        match house.run(&session, statement) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.state.code(), "53200", "{statement}: {error}"),
        }
    }
    drop(session);
    // What waits to be written, and is encoded, is beside what sorts hold.
    peak.require_at_most(2 * MEMORY_BYTES);
}
