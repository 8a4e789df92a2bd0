//! Tests of a statement's cost: the same for every run, number of threads and cache state.

use std::sync::Arc;

use crate::common::House;
use orrery_runtime::{Runtime, RuntimeOptions, Spending, Touched};
use orrery_sql::{Session, SessionOptions};

/// Rows of the large table: more than one morsel.
const ROWS: u64 = 100_000;

const TABLES: [&str; 7] = [
    "create table item (id int primary key, kind int, price int, name text)",
    "insert into item select n, n % 7, n * 13 % 1000, 'item ' || n from generate_series(1, 100000) as s(n)",
    "create table kind (id int primary key, name text)",
    "insert into kind select n, 'kind ' || n from generate_series(0, 6) as s(n)",
    "create index by_price on item (price)",
    // Some that are not in the files.
    "insert into item select n, n % 7, n * 13 % 1000, 'item ' || n from generate_series(100001, 100200) as s(n)",
    "update item set name = 'other' where id between 500 and 700",
];

const QUERIES: &[&str] = &[
    "select * from item where id = 77",
    "select * from item where id between 1000 and 3000 and price > 500",
    "select count(*) from item where name like '%99%'",
    "select id, price from item where price = 13",
    "select kind, count(*), sum(price) from item group by kind order by kind",
    "select name, count(*) from item where price < 20 group by name order by name",
    "select distinct kind from item order by kind",
    "select item.name, kind.name from item join kind on item.kind = kind.id where item.price = 26 order by 1",
    "select kind.name, sum(item.price) from item join kind on item.kind = kind.id group by kind.name order by 1",
    "select * from item order by price desc, id limit 10",
    "select id from item where price < 5 order by name, id",
    "select count(*) from item a join item b on a.price = b.price and a.id < b.id where a.id < 2000 and b.id < 2000",
    "select count(*) from item a, kind b where a.id < 1000 and a.price > b.id * 100",
    "select count(*) from item where kind in (select id from kind where name < 'kind 3')",
    "select count(*) from item where not exists (select from kind where kind.id = item.kind)",
    "select id, rank() over (partition by kind order by price, id) from item where id < 3000 order by id",
    "select kind, price from item where id < 500 union all select id, 0 from kind order by 1, 2",
    "select max(price) from item where kind = 3",
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < 100) select sum(i) from n",
    "select * from (values (1, 'a'), (2, 'b')) as v(a, b) order by a",
];

fn runtime(house: &House, threads: usize) -> Runtime {
    Runtime::new(&RuntimeOptions {
        memory_bytes: 512 << 20,
        is_process_bound: false,
        temp_dir: house.directory.path().to_owned(),
        batch_rows: 8_192,
        threads,
    })
    .unwrap()
}

fn session(house: &House, runtime: &Runtime) -> Session {
    let writer = house.writer.clone().unwrap();
    let database = Arc::clone(writer.database());
    Session::new(runtime, database, Some(writer), SessionOptions::default())
}

fn house() -> House {
    let house = House::new();
    let session = house.session();
    for statement in TABLES {
        house.done(&session, statement);
    }
    house
}

fn cost(house: &House, session: &mut Session, statement: &str) -> u64 {
    let spending = Spending::new(None);
    session.set_spending(Some(Arc::clone(&spending)));
    house.done(session, statement);
    session.set_spending(None);
    spending.touches()
}

#[test]
fn a_statement_costs_the_same_each_time_and_everywhere() {
    let mut house = house();
    let mut costs: Vec<Option<u64>> = vec![None; QUERIES.len()];
    for threads in [1, 4] {
        // Cold: nothing of the files was read.
        house.open();
        let runtime = runtime(&house, threads);
        let mut session = session(&house, &runtime);
        for round in 0..4 {
            for (query, first) in QUERIES.iter().zip(&mut costs) {
                let cost = cost(&house, &mut session, query);
                assert!(cost > 0, "{query}");
                let first = *first.get_or_insert(cost);
                assert_eq!(cost, first, "{query}, {threads} threads, round {round}");
            }
        }
    }
}

#[test]
fn cost_follows_the_work_and_not_the_answer() {
    let house = house();
    let runtime = runtime(&house, 2);
    let mut session = session(&house, &runtime);
    let mut cost = |statement| cost(&house, &mut session, statement);
    // A row and its four values.
    assert!(cost("select * from item where id = 77") < 20);
    let all = cost("select count(*) from item where name like '%never%'");
    assert!((ROWS..ROWS + 1_000).contains(&all), "{all}");
    // As many pairs are looked at as there are, whatever comes out.
    let pairs = cost(
        "select count(*) from item a, item b where a.id < 1000 and b.id < 1000 and a.price + b.price < 0",
    );
    assert!(pairs > 900_000, "{pairs}");
    let joined = cost(
        "select count(*) from item a join item b on a.kind = b.kind where a.id < 700 and b.id < 700",
    );
    assert!((60_000..90_000).contains(&joined), "{joined}");
    // A sort of its own, and the values of the answer.
    let few = cost("select id from item where id < 2000");
    let sorted = cost("select id from item where id < 2000 order by price, id");
    assert!(
        (few + 1_900..few + 2_100).contains(&sorted),
        "{few} {sorted}"
    );
    assert_eq!(cost("begin"), 0);
    assert_eq!(cost("rollback"), 0);
}

#[test]
fn changes_cost_what_they_read_and_what_they_change() {
    let house = house();
    let runtime = runtime(&house, 2);
    let mut session = session(&house, &runtime);
    let mut cost = |statement| cost(&house, &mut session, statement);
    let none = cost("update item set price = 0 where name like '%nothing%'");
    assert!(none >= ROWS, "{none}");
    let some = cost("update item set price = price + 1 where id <= 300");
    assert!((600..2_000).contains(&some), "{some}");
    assert!((600..2_000).contains(&cost("delete from item where id <= 300")));
    let copied = cost("create table copy as select * from item where id <= 5000");
    assert!((9_000..30_000).contains(&copied), "{copied}");
    // In bulk.
    let loaded = cost("insert into copy select id + 1000000, kind, price, name from item");
    assert!(loaded >= 2 * (ROWS - 300), "{loaded}");
    assert!(cost("insert into kind values (100, 'x'), (101, 'y')") >= 2);
}

#[test]
fn definitions_cost_what_they_read_and_what_they_write() {
    let house = house();
    let runtime = runtime(&house, 2);
    let mut session = session(&house, &runtime);
    let mut cost = |statement: &str| cost(&house, &mut session, statement);
    // Few rows: none in a file, and indexes are filled in memory.
    cost("create table small as select * from item where id <= 5000");
    for (statement, expected) in [
        ("create index by_name on small (name)", 10_000),
        ("drop index by_name", 1),
        (
            "alter table small add constraint c check (price >= 0)",
            5_000,
        ),
        ("alter table small drop constraint c", 1),
        (
            "alter table small add foreign key (kind) references kind (id)",
            5_000,
        ),
        ("alter table small add unique (id)", 10_000),
        // Looked for NULL, and written.
        ("alter table small add primary key (id)", 15_000),
        ("alter table small drop constraint small_pkey", 10_000),
        ("alter table small alter column price type bigint", 10_000),
        // The rows that are in memory are laid out anew.
        ("alter table small add column more int default 7", 5_000),
        ("alter table small rename column more to less", 1),
        ("create table other (id int primary key)", 1),
        ("create view seen as select * from other", 1),
        ("drop view seen", 1),
        ("truncate small", 1),
        ("drop table small", 1),
    ] {
        assert_eq!(cost(statement), expected, "{statement}");
    }
    // Many: all projections are written anew.
    let rows = ROWS + 200;
    for (statement, expected) in [
        ("create index large_name on item (name)", 3 * 2 * rows),
        ("drop index large_name", 1),
        (
            "alter table item add constraint u unique (id, name)",
            3 * 2 * rows,
        ),
        ("alter table item add constraint c check (price >= 0)", rows),
        (
            "alter table item add constraint f foreign key (kind) references kind (id)",
            rows,
        ),
        // Of a column that an index has.
        (
            "alter table item alter column price set not null",
            rows + 3 * 2 * rows,
        ),
    ] {
        assert_eq!(cost(statement), expected, "{statement}");
    }
    let (rows, keys) = (
        "select count(*) from item where price >= 0",
        "select count(*) from item where id = 77 and name = 'item 77'",
    );
    for (query, expected) in [(rows, "100200"), (keys, "1")] {
        assert_eq!(
            house.run(&house.session(), query).unwrap().lines(),
            [expected]
        );
    }
}

#[test]
fn a_definition_that_costs_more_than_there_is_is_not_made() {
    let house = house();
    let runtime = runtime(&house, 2);
    let mut session = session(&house, &runtime);
    let statements = [
        "create index large_name on item (name)",
        "create table copied as select * from item",
        "alter table item add constraint u unique (id, name)",
        "alter table item add constraint c check (price >= 0)",
        "alter table item add constraint f foreign key (kind) references kind (id)",
        "alter table item alter column name set not null",
        "alter table item alter column price type bigint",
        "alter table item drop constraint item_pkey",
        "alter table item add column more int unique",
    ];
    for statement in statements {
        let spending = Spending::new(None);
        spending.limit_by(|touches| match touches <= 20_000 {
            true => Ok(()),
            false => Err("used up".to_owned()),
        });
        session.set_spending(Some(Arc::clone(&spending)));
        let refused = house.run(&session, statement).unwrap_err();
        assert_eq!(refused.state.code(), "53400", "{statement}");
        // It has ended where nothing was left, or before it began.
        assert!(
            spending.touches() < 120_000,
            "{statement}: {}",
            spending.touches()
        );
    }
    // Nothing of them is there.
    session.set_spending(None);
    for statement in statements {
        house.done(&session, statement);
    }
}

#[test]
fn what_is_run_by_execute_costs_what_it_costs_by_itself() {
    let house = house();
    let runtime = runtime(&house, 2);
    let mut session = session(&house, &runtime);
    let mut cost = |statement: &str| cost(&house, &mut session, statement);
    let update = |price| format!("update item set price = {price} where id between 300 and 399");
    // Rows that were changed before cost more to find.
    cost(&update(0));
    let by_itself = cost(&update(1));
    assert_eq!(cost(&format!("prepare p as {}", update(2))), 0);
    assert_eq!(cost("execute p"), by_itself);
}

#[test]
fn rows_that_a_change_or_a_fetch_gives_cost_one_for_each_value() {
    let house = house();
    let runtime = runtime(&house, 2);
    let mut session = session(&house, &runtime);
    let mut cost = |statement: &str| cost(&house, &mut session, statement);
    let update = "update item set price = 1 where id between 300 and 399";
    // Rows that were changed before cost more to find.
    cost(update);
    let without = cost(update);
    assert_eq!(
        cost(&format!("{update} returning id, price, name")),
        without + 300
    );
    let (mut rows, mut costs) = (Vec::new(), Vec::new());
    for columns in ["id", "id, price", "id, price, name"] {
        cost("begin");
        cost(&format!(
            "declare c cursor for select {columns} from item where id <= 100"
        ));
        costs.push(cost("fetch all from c"));
        rows.push(cost("fetch all from c"));
        cost("rollback");
    }
    assert_eq!(rows, [0, 0, 0]);
    assert_eq!([costs[1] - costs[0], costs[2] - costs[1]], [100, 100]);
}

#[test]
fn statements_without_an_account_are_not_counted() {
    let house = house();
    let mut session = house.session();
    let spending = Spending::new(None);
    session.set_spending(Some(Arc::clone(&spending)));
    house.done(&session, "select * from kind");
    let before = spending.touches();
    assert!(before > 7);
    session.set_spending(None);
    house.done(&session, "select * from kind");
    // Another session has no part in it either.
    house.done(&session.another(), "select * from kind");
    assert_eq!(spending.touches(), before);
}
