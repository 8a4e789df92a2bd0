//! Tests of join order and partitioned joins, with the same answers for all.

use crate::common::House;
use datafusion::physical_plan::displayable;
use futures::TryStreamExt;
use orrery_sql::{Outcome, Session};
use std::time::{Duration, Instant};

fn plan(house: &House, session: &Session, text: &str) -> String {
    let planned = house.threads.block_on(session.plan(text)).unwrap();
    displayable(planned.plan().as_ref())
        .indent(false)
        .to_string()
}

/// Where the scan of a table stands in a plan, from above.
fn place(plan: &str, table: &str) -> usize {
    let scan = format!("table={table},");
    let mut lines = plan.lines();
    lines
        .position(|line| line.contains(&scan))
        .unwrap_or_else(|| panic!("{table}: {plan}"))
}

/// A chain of tables, each ten times as long as the one before it.
fn chain() -> House {
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table region (r int primary key, name text not null);
         create table city (c int primary key, r int not null references region);
         create table person (p int primary key, c int not null references city, age int not null);
         insert into region select value, 'region' || value from generate_series(0, 9);
         insert into city select value, value % 10 from generate_series(0, 99);
         insert into person select value, value % 100, value % 70 from generate_series(0, 9999)",
    );
    house
}

#[test]
fn tables_are_joined_from_the_few_rows_on_whatever_is_written_first() {
    let house = chain();
    let session = house.session();
    let conditions = "person.c = city.c and city.r = region.r and region.name = 'region3'";
    for from in ["person, city, region", "region, city, person"] {
        let text = format!("select count(*), sum(age) from {from} where {conditions}");
        assert_eq!(house.rows(&session, &text), ["1000 32970"]);
        let plan = plan(&house, &session, &text);
        assert!(place(&plan, "region") < place(&plan, "city"), "{plan}");
        assert!(place(&plan, "city") < place(&plan, "person"), "{plan}");
    }
}

#[test]
fn rows_that_exists_drops_are_dropped_before_they_are_joined() {
    let house = chain();
    let session = house.session();
    let text = "select count(*) from person, city, region
         where person.c = city.c and city.r = region.r
           and exists (select * from region few where few.r = city.r and few.name = 'region3')";
    assert_eq!(house.rows(&session, text), ["1000"]);
    let plan = plan(&house, &session, text);
    // The join of persons is above the semi join of cities.
    let semi = plan.lines().position(|line| line.contains("Semi")).unwrap();
    let inner = plan
        .lines()
        .position(|line| line.contains("join_type=Inner"));
    assert!(inner.unwrap() < semi, "{plan}");
    let anti = text.replace("exists (", "not exists (");
    assert_eq!(house.rows(&session, &anti), ["9000"]);
}

#[test]
fn conditions_of_all_kinds_hold_in_any_order() {
    let house = chain();
    let session = house.session();
    for (text, expected) in [
        // Two columns of one table are equal to one of another.
        (
            "select count(*) from person, city, region where person.c = region.r and person.age = region.r and city.c = region.r",
            "150",
        ),
        // Equal through a third table, and a condition about three.
        (
            "select count(*) from city a, city b, region where a.r = region.r and b.r = region.r and a.c + b.c < region.r + 20",
            "30",
        ),
        // Columns of the same name out of a subquery.
        (
            "select count(*) from (select c, count(*) as n from person group by c) counted, city, region
             where counted.c = city.c and city.r = region.r and counted.n = 100 and region.r < 2",
            "20",
        ),
        // What a semi join compares beyond its key.
        (
            "select count(*) from person, city, region where person.c = city.c and city.r = region.r and region.r = 1
               and exists (select * from person other where other.c = person.c and other.p <> person.p and other.age > 60)",
            "1000",
        ),
        // NULL is equal to nothing.
        (
            "select count(*) from person, city, (select nullif(r, 3) as r from region) few
             where person.c = city.c and city.r = few.r",
            "9000",
        ),
        (
            "select count(*) from person left join city on person.c = city.c and city.c > 10, region
             where region.r = person.age",
            "1430",
        ),
    ] {
        assert_eq!(house.rows(&session, text), [expected], "{text}");
    }
}

/// Two large tables, the second of which refers to the first with the first column of its key.
fn divided() -> House {
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table orders (o int primary key, customer int not null);
         create table line (o int not null references orders, n int not null, price int not null, primary key (o, n));
         create table some as select value from generate_series(0, 199999);
         create table many as select value from generate_series(0, 599999);
         insert into orders select value * 10, value % 1000 from some;
         insert into line select value / 3 * 10, value % 3, 1 from many",
    );
    house
}

#[test]
fn tables_that_are_divided_alike_are_joined_and_grouped_where_their_rows_are() {
    let house = divided();
    let session = house.session();
    let grouped = "select o, sum(price) as s from line group by o having sum(price) <> 3";
    assert_eq!(house.rows(&session, grouped).len(), 0);
    let plan_of = plan(&house, &session, grouped);
    assert!(!plan_of.contains("Repartition"), "{plan_of}");
    assert!(plan_of.contains("mode=SinglePartitioned"), "{plan_of}");
    let joined =
        "select count(*), sum(price) from orders, line where orders.o = line.o and customer < 500";
    assert_eq!(house.rows(&session, joined), ["300000 300000"]);
    let plan_of = plan(&house, &session, joined);
    assert!(!plan_of.contains("Repartition"), "{plan_of}");
}

#[test]
fn new_rows_where_a_table_is_divided_are_counted_once() {
    let house = divided();
    let session = house.session();
    // The middle of the orders, with what stands around it.
    house.done(
        &session,
        "insert into orders select value, 5000 from generate_series(999950, 1000050) where value % 10 <> 0;
         insert into line select value, 7, 10 from generate_series(999950, 1000050) where value % 10 <> 0;
         delete from line where o = 1000000; delete from orders where o = 1000000;
         delete from line where o = 999990 and n = 2; insert into line values (999990, 9, 1)",
    );
    let counted =
        "select count(*), sum(s) from (select o, sum(price) as s from line group by o) grouped";
    assert_eq!(house.rows(&session, counted), ["200089 600897"]);
    let joined =
        "select count(*), sum(price) from orders, line where orders.o = line.o and customer = 5000";
    assert_eq!(house.rows(&session, joined), ["90 900"]);
    let missing =
        "select count(*) from orders where not exists (select * from line where line.o = orders.o)";
    assert_eq!(house.rows(&session, missing), ["0"]);
}

#[test]
fn a_load_finds_what_it_refers_to_among_many_keys_and_tells_what_is_missing() {
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table pair (a bigint, b bigint, primary key (a, b));
         create table sparse (k bigint primary key);
         create table child (id int primary key, a bigint, b bigint, k bigint references sparse,
                             foreign key (a, b) references pair);
         create table many as select value from generate_series(0, 199999);
         create table more as select value from generate_series(200000, 400000);
         insert into pair select value % 1000, value / 1000 from generate_series(0, 149999);
         insert into sparse select value * 1000000007 from generate_series(-1000, 1000);
         insert into child select value, value % 1000, value / 1000 % 150, (value % 2001 - 1000) * 1000000007
           from many",
    );
    assert_eq!(
        house.rows(&session, "select count(*) from child"),
        ["200000"]
    );
    for (columns, missing) in [
        ("value, 1000 as a, 0 as b, 0 as k", "child_a_b_fkey"),
        ("value, 0 as a, 150 as b, 0 as k", "child_a_b_fkey"),
        ("value, 0 as a, 0 as b, value - 200000", "child_k_fkey"),
    ] {
        let text = format!("insert into child select {columns} from more");
        let (code, message) = house.refused(&session, &text);
        assert_eq!(code, "23503", "{message}");
        assert!(message.contains(missing), "{message}");
    }
    // NULL refers to nothing.
    house.done(
        &session,
        "insert into child select value, null as a, value as b, null as k from more",
    );
}

#[test]
fn a_file_is_a_table_for_those_alone_who_may_read_files() {
    let house = chain();
    let text = "select * from '/nowhere/at/all.parquet'";
    let (code, _) = house.refused(&house.session(), text);
    assert_eq!(code, "42501");
}

#[test]
fn semi_joins_that_look_for_another_value_look_at_one_row_of_each_key() {
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table number as select value from generate_series(0, 39999);
         create table line (o int, n int, s int, late boolean not null, primary key (o, n));
         insert into line select value / 4, value % 4, case when value % 13 = 0 then null else value % 7 % 3 end, value % 3 <> 0
             from number",
    );
    let limited = "(select * from line limit 1000000)";
    for exists in ["exists", "not exists"] {
        for condition in ["a.s <> b.s", "b.s <> a.s and b.late"] {
            let text = |table: &str| {
                format!(
                    "select count(*), sum(a.n), sum(a.o) from {table} a where {exists} (select * from {table} b where a.o = b.o and {condition})"
                )
            };
            let rows = house.rows(&session, &text("line"));
            assert_eq!(
                rows,
                house.rows(&session, &text(limited)),
                "{exists} {condition}"
            );
            assert_ne!(rows, ["0 NULL NULL"]);
            let plan = plan(&house, &session, &text("line"));
            assert!(plan.contains("__least"), "{plan}");
        }
        // Few rows of each key, another question.
        for condition in [
            "a.o = b.o and a.n = b.n and a.s <> b.s",
            "a.o = b.o and a.s < b.s",
        ] {
            let text = format!(
                "select count(*) from line a where {exists} (select * from line b where {condition})"
            );
            assert!(!plan(&house, &session, &text).contains("__least"));
            house.done(&session, &text);
        }
    }
}

#[test]
fn views_of_joins_without_an_order_are_planned_in_no_time() {
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table t (a int); create table u (a int); create table w (a int); insert into t values (1); insert into u values (2), (3); insert into w values (3), (4)",
    );
    // Each takes the one before and joins it by what no table of hashes is for: if parts were
    // planned again for each join, this would not end.
    let mut before = "t".to_owned();
    for number in 0..24 {
        house.done(
            &session,
            &format!(
                "create view v{number} as select {before}.a, count(*) n from {before}, u, w where {before}.a < u.a and u.a < w.a group by {before}.a"
            ),
        );
        before = format!("v{number}");
    }
    assert_eq!(
        house.rows(&session, &format!("select * from {before}")),
        ["1 3"]
    );
}

#[test]
fn filters_are_asked_of_their_own_column_where_two_have_its_name() {
    let house = House::new();
    let session = house.session();
    house.done(
        &session,
        "create table a (id int primary key, x int); create table b (id int primary key, y int);
         insert into a values (1, 10), (2, 20), (3, null); insert into b values (5, 10), (6, 30), (7, null)",
    );
    for (text, expected) in [
        (
            "select b.id from a right join b on a.x = b.y where a.id is null order by 1",
            vec!["6", "7"],
        ),
        (
            "select a.id from a left join b on a.x = b.y where b.id is null order by 1",
            vec!["2", "3"],
        ),
        (
            "select a.id, b.id from a full join b on a.x = b.y where a.id is null or b.id is null order by 1, 2",
            vec!["2 NULL", "3 NULL", "NULL 6", "NULL 7"],
        ),
        (
            "select c.id from (select a.id as k, b.id from a right join b on a.x = b.y) c where c.k is null order by c.id desc limit 1",
            vec!["7"],
        ),
        (
            "select a.id, b.id, c.id from a join b on a.id < b.id join a c on c.id = a.id where b.id > 6 order by b.id, a.id limit 2",
            vec!["1 7 1", "2 7 2"],
        ),
    ] {
        assert_eq!(house.rows(&session, text), expected, "{text}");
    }
}

/// Joins of millions of rows with hundreds of thousands each, whose pairs are many or few that
/// hold, and which are asked for directly or by other threads.
#[test]
fn joins_end_when_nobody_waits_for_their_rows_any_more() {
    const LONG_MAX: Duration = Duration::from_secs(30);
    let house = House::new();
    let memory = std::sync::Arc::clone(house.runtime.memory().operators());
    let held_until = |holds: bool, what: &str| {
        let began = Instant::now();
        while (memory.reserved() > 0) != holds {
            if began.elapsed() > LONG_MAX {
                return Err(format!("{what} after {LONG_MAX:?}"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    };
    let (a, b) = (
        "generate_series(1, 500000) a(i)",
        "generate_series(1, 500000) b(i)",
    );
    for text in [
        format!("select a.i from {a} join {b} on a.i % 10 = b.i % 10 order by 1 limit 1"),
        format!("select count(*) from {a} join {b} on a.i % 10 = b.i % 10 and a.i + b.i = -1"),
        format!("select count(*) from {a} left join {b} on a.i % 10 = b.i % 10 and a.i + b.i = -1"),
        format!("select count(*) from {a}, {b} where a.i * b.i = -1"),
        format!("select sum(a.i + b.i) from {a}, {b}"),
        format!("select count(distinct a.i % 7) from {a} join {b} on a.i % 10 = b.i % 10"),
        format!("select count(*) from {a} where exists (select 1 from {b} where b.i * a.i = -1)"),
        format!(
            "select count(*) from {a} where not exists (select 1 from {b} where b.i % 10 = a.i % 10 and b.i + a.i = -1)"
        ),
    ] {
        let session = house.session();
        let statement = session.statements(&text).unwrap().remove(0);
        let running = house.threads.spawn(async move {
            match session.execute(&statement).await.unwrap() {
                Outcome::Query(rows) => rows.try_collect::<Vec<_>>().await.map(|rows| rows.len()),
                other => panic!("{other:?}"),
            }
        });
        let ended = held_until(true, "it has no memory").and_then(|()| {
            std::thread::sleep(Duration::from_millis(100));
            assert!(
                !running.is_finished(),
                "{text}: it is too short for this test"
            );
            running.abort();
            held_until(false, "it goes on")
        });
        if let Err(what) = ended {
            // Its threads would be waited for.
            std::mem::forget(house);
            panic!("{text}: {what}");
        }
    }
}
