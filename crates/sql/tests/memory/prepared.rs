//! Memory tests of many small prepared statements.

use orrery_sql::{Kept, Session};
use std::sync::Arc;

use crate::common::House;
use crate::{alone, anonymous_bytes};

const MEMORY_BYTES: u64 = 2 << 30;
const COUNT: usize = 5_000;
/// What the allocator keeps beside what it was asked for.
const SLACK_BYTES: usize = 8 << 20;

/// What preparing so many has taken, and what was counted of it.
fn taken(house: &House, session: &Session, text: &str) -> (usize, usize) {
    let counted = || house.runtime.memory().operators().reserved();
    let prepare = |number: usize| {
        let text = text.replace("%", &number.to_string());
        let prepared = house.threads.block_on(session.prepare(&text)).unwrap();
        let kept = Kept {
            prepared: Some(Arc::new(prepared)),
            types: None,
        };
        session.keep(&format!("s{number}"), kept).unwrap();
    };
    (0..COUNT / 5).for_each(prepare);
    let before = (anonymous_bytes(), counted());
    (COUNT / 5..COUNT).for_each(prepare);
    (
        anonymous_bytes().saturating_sub(before.0),
        counted() - before.1,
    )
}

#[test]
fn prepared_statements_take_what_is_counted() {
    let _alone = alone();
    let house = House::with_memory(MEMORY_BYTES);
    let session = house.session();
    let create = "create table t (id int primary key, a int, b text, c numeric(10, 2))";
    house.run(&session, create).unwrap();
    let texts = [
        "select %",
        "select a from t where id = $1 + %",
        "select * from t where b = $1 order by c limit %",
        "select count(*) from t x join t y on x.id = y.a where x.b = $1 group by y.c having count(*) > %",
        "insert into t values ($1, $2, $3, %)",
        "update t set a = $1 where id = %",
        "delete from t where id = %",
        "fetch % from c",
        "commit -- %",
    ];
    let mut wrong = Vec::new();
    // All stay until the end, so that none takes what another has given back.
    let sessions: Vec<Session> = texts.iter().map(|_| house.session()).collect();
    for (text, session) in texts.iter().zip(&sessions) {
        let (taken, counted) = taken(&house, session, text);
        println!(
            "{text}: {} B taken, {} B counted each",
            taken * 5 / 4 / COUNT,
            counted * 5 / 4 / COUNT
        );
        if taken > counted + SLACK_BYTES {
            wrong.push(format!("{text}: {taken} > {counted}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
