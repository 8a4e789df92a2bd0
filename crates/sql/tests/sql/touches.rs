//! The cost of a statement: the same however often it is asked, on however many threads, whatever is in memory by then.

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
fn what_nobody_pays_for_is_not_counted() {
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
