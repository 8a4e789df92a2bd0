//! Tests of distributed queries on three workers: the answers and costs of one process.

use std::sync::Arc;

use futures::TryStreamExt as _;
use orrery_distributed::{InProcess, Workers};
use orrery_runtime::{Runtime, RuntimeOptions, Spending, Touched as _};
use orrery_sql::{
    DataType, Error, Outcome, Prepared, RuledScope, ScalarValue, Session, SessionOptions, SqlScope,
};
use orrery_storage::table::TableNames;
use orrery_storage::{Asker, GraphNames, ReadScope};

use crate::common::House;

// What is inserted goes to files, which are divided, where the plan knows how many rows there are.
const TABLES: &str = "
    create table numbers as select value as n from generate_series(1, 150000);
    create table item (id int primary key, kind int, price int, name text);
    insert into item select n, n % 7, n * 13 % 1000, 'item ' || n from numbers;
    create table kind (id int primary key, name text);
    insert into kind select n, 'kind ' || n from generate_series(0, 6) as s(n);
    create table secret (id int primary key, price int);
    insert into secret select n, n % 100 from numbers;
    create view cheap as select id, kind, price from item where price < 500;
    create view told as select item.id from item join secret on item.id = secret.id;
";

/// Sessions over one database: one whose queries run by themselves, and three whose queries are
/// divided among them.
struct Processes {
    house: House,
    alone: Session,
    workers: Vec<Arc<Workers>>,
    sessions: Vec<Session>,
}

impl Processes {
    fn new() -> Self {
        let house = House::new();
        house.done(&house.session(), TABLES);
        let (_network, workers) = InProcess::members(3, 10_000.0);
        let session = |worker: Option<&Arc<Workers>>| {
            let runtime = Runtime::new(&RuntimeOptions {
                memory_bytes: 256 << 20,
                is_process_bound: false,
                temp_dir: house.directory.path().to_owned(),
                batch_rows: 1_024,
                threads: 1,
            });
            let runtime = runtime.unwrap();
            if let Some(worker) = worker {
                runtime.divide_among(Arc::clone(worker));
            }
            let database = Arc::clone(house.writer.as_ref().unwrap().database());
            let session = Session::new(&runtime, database, None, SessionOptions::default());
            if let Some(worker) = worker {
                session.divide_among(worker, house.threads.handle().clone());
            }
            session
        };
        Self {
            alone: session(None),
            sessions: workers.iter().map(|it| session(Some(it))).collect(),
            workers,
            house,
        }
    }

    /// Queries that the first one was asked and that were divided; none were to be, and were not.
    fn divided(&self) -> u64 {
        let figures = self.workers[0].figures();
        assert_eq!((figures.alone, figures.begun_anew), (0, 0), "{figures:?}");
        figures.divided
    }

    /// The rows of a text, which are those of one process, and how many queries were divided for
    /// them.
    fn asked(&self, text: &str) -> (Vec<String>, u64) {
        let before = self.divided();
        let mut expected = self.house.rows(&self.alone, text);
        let mut found = self.house.rows(&self.sessions[0], text);
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{text}");
        (found, self.divided() - before)
    }

    /// What a text costs in one process, and divided.
    fn costs(&mut self, text: &str) -> (u64, u64) {
        let mut costs = [0; 2];
        let sessions = [&mut self.alone, &mut self.sessions[0]];
        for (session, cost) in sessions.into_iter().zip(&mut costs) {
            let spending = Spending::new(None);
            session.set_spending(Some(Arc::clone(&spending)));
            self.house.done(session, text);
            session.set_spending(None);
            *cost = spending.touches();
        }
        costs.into()
    }

    /// The rows of a statement that is prepared, run three times.
    fn run(&self, text: &str, told: &[Option<DataType>], values: &[ScalarValue]) -> Vec<String> {
        let prepared = |session: &Session| {
            let prepared = self
                .house
                .threads
                .block_on(session.prepare_told(text, told));
            prepared.unwrap().unwrap()
        };
        let expected = lines(&self.house, &self.alone, &prepared(&self.alone), values).unwrap();
        let session = &self.sessions[0];
        let prepared = prepared(session);
        for run in 1..=3 {
            let before = self.divided();
            let found = lines(&self.house, session, &prepared, values).unwrap();
            assert_eq!(found, expected, "{text}");
            assert_eq!(self.divided(), before + 1, "{text}, run {run}");
        }
        expected
    }
}

/// Sorted lines of the answer to a prepared statement.
fn lines(
    house: &House,
    session: &Session,
    prepared: &Prepared,
    values: &[ScalarValue],
) -> Result<Vec<String>, Error> {
    house.threads.block_on(async {
        let Outcome::Query(rows) = session.run(prepared, values).await? else {
            panic!("a query");
        };
        let batches: Vec<_> = rows.try_collect().await.unwrap();
        let shown = datafusion::arrow::util::pretty::pretty_format_batches(&batches).unwrap();
        let mut lines: Vec<String> = shown.to_string().lines().map(str::to_owned).collect();
        lines.sort();
        Ok(lines)
    })
}

#[test]
fn queries_with_parameters_are_divided() {
    let processes = Processes::new();
    let by_kind = "select kind, count(*), sum(price) from item where price > $1 and name like $2 group by kind";
    for price in [100, 300] {
        let values = [ScalarValue::from(price), ScalarValue::from("%7%")];
        assert_eq!(processes.run(by_kind, &[], &values).len(), 7 + 4);
    }
    let or_else = "select kind, count(*) from item where price > coalesce($1, 7) group by kind";
    processes.run(or_else, &[Some(DataType::Int32)], &[ScalarValue::Null]);
    // What is told of a type is what the plan is made with.
    let text = "select $1 as given, kind, max(id) from item where price >= $1 group by kind";
    let told = [Some(DataType::Int64)];
    let rows = processes.run(text, &told, &[ScalarValue::Int64(Some(400))]);
    assert!(rows.iter().any(|row| row.contains("400")), "{rows:?}");
    let numbers = [ScalarValue::Decimal128(Some(12_345), 6, 2)];
    processes.run(
        "select kind, count(*) from item where price > $1 group by kind",
        &[],
        &numbers,
    );
}

#[test]
fn statements_of_prepare_are_divided() {
    let processes = Processes::new();
    let text = "prepare few(int, text) as select kind, count(*) from item where price > $1 and name <> $2 group by kind";
    let whole = "prepare whole as select kind, count(*) from item group by kind";
    for text in [text, whole] {
        processes.house.done(&processes.alone, text);
        processes.house.done(&processes.sessions[0], text);
    }
    for text in [
        "execute few(500, 'item 3')",
        "execute few(7, 'x')",
        "execute whole",
    ] {
        let (rows, divided) = processes.asked(text);
        assert_eq!((rows.len(), divided), (7, 1), "{text}");
    }
}

fn reading(tables: &[&str]) -> Arc<SqlScope> {
    let mut reads = TableNames::default();
    for table in tables {
        reads.insert("public".to_owned(), (*table).to_owned());
    }
    Arc::new(SqlScope {
        reads: Some(reads),
        writes: Some(TableNames::default()),
        graphs: ReadScope::only(Asker::Anonymous, GraphNames::default()),
        writes_all_graphs: false,
    })
}

#[test]
fn queries_of_who_may_read_some_tables_are_divided_over_these() {
    let mut processes = Processes::new();
    let scope = reading(&["item", "kind", "cheap", "told"]);
    processes.alone.set_scope(Some(Arc::clone(&scope)));
    processes.sessions[0].set_scope(Some(scope));
    for text in [
        "select kind, count(*), sum(price) from item group by kind",
        "select kind.name, count(*) from item join kind on item.kind = kind.id group by kind.name",
        // A view over what they see.
        "select kind, count(*) from cheap group by kind",
    ] {
        let (rows, divided) = processes.asked(text);
        assert_eq!((rows.len(), divided), (7, 1), "{text}");
    }
    let before = processes.divided();
    for text in [
        "select count(*) from secret",
        // A view that tells what they do not see.
        "select count(*) from told",
        "select count(*) from item where price > (select avg(price) from secret)",
    ] {
        let expected = processes.house.refused(&processes.alone, text);
        assert_eq!(expected.0, "42P01", "{text}");
        let found = processes.house.refused(&processes.sessions[0], text);
        assert_eq!(found, expected, "{text}");
    }
    assert_eq!(processes.divided(), before);
}

#[test]
fn queries_under_rules_by_query_are_divided_over_the_state_of_these() {
    let mut processes = Processes::new();
    let database = Arc::clone(processes.house.writer.as_ref().unwrap().database());
    let scope = reading(&["item"]);
    // Rules by query that were asked in an earlier state.
    let found = Arc::clone(&scope);
    let ruled = Arc::new(RuledScope {
        state: database.snapshot(),
        scope_in: Box::new(move |_| {
            let found = Arc::clone(&found);
            Box::pin(async { Some(found) })
        }),
    });
    for session in [&mut processes.alone, &mut processes.sessions[0]] {
        session.set_scope(Some(Arc::clone(&scope)));
        session.set_ruled(Some(Arc::clone(&ruled)));
    }
    let text = "select kind, count(*), sum(price) from item group by kind";
    let before = processes.asked(text);
    assert_eq!((before.0.len(), before.1), (7, 1));
    let writer = processes.house.session();
    let change = "update item set price = price + 1 where id <= 100";
    processes.house.done(&writer, change);
    assert_ne!(processes.house.rows(&writer, text), before.0);
    assert_eq!(processes.asked(text), before);
}

#[test]
fn scalar_subqueries_run_first_and_the_rest_is_divided() {
    let processes = Processes::new();
    // How many queries are divided: the subqueries that read many rows, and the rest.
    for (text, queries) in [
        (
            "select kind, count(*) from item where price > (select avg(price) from item) group by kind",
            2,
        ),
        (
            "select kind, count(*) from item where kind > (select min(id) + 2 from kind) group by kind",
            1,
        ),
        (
            "select kind, sum(price) from item group by kind having sum(price) > (select sum(price) / 8 from item)",
            2,
        ),
        (
            "select kind, count(*), (select max(name) from kind) as last from item group by kind",
            1,
        ),
        // No row is NULL.
        (
            "select count(*) from item where price > (select id from kind where id > 1000)",
            1,
        ),
        (
            "select kind, coalesce((select name from kind where id > 1000), 'none') as last, max(price) from item group by kind",
            1,
        ),
        // One within another one.
        (
            "select count(*) from item where price > (select avg(price) from item where kind = (select max(id) from kind))",
            2,
        ),
        // Two that are one, and another one before them.
        (
            "select count(*) from item where id > (select max(price) from item where kind > 0) and price < (select avg(price) from item) and kind < (select avg(price) from item)",
            3,
        ),
        // The subquery alone is large.
        (
            "select name from kind where id < (select count(*) / 20000 from item where price < 500)",
            1,
        ),
        // In both sides of a join, whose order is found.
        (
            "select count(*) from item a join item b on a.id = b.id join kind on kind.id = a.kind where a.price > (select avg(price) from item where kind = 1) and kind.id > (select min(kind) + 1 from item where price > 3)",
            3,
        ),
    ] {
        let (_, divided) = processes.asked(text);
        assert_eq!(divided, queries, "{text}");
    }
    let values = [ScalarValue::from(3)];
    // The subquery reads few rows.
    let text = "select kind, count(*) from item where price > (select avg(id) * $1 from kind) group by kind";
    processes.run(text, &[], &values);
}

#[test]
fn scalar_subqueries_cost_what_they_cost_in_one_process() {
    let mut processes = Processes::new();
    // A group of all rows that is made of what several processes have is not counted.
    let (alone, divided) = processes.costs("select avg(price) from item");
    assert_eq!(alone - divided, 1);
    for (text, all_rows) in [
        (
            "select kind, count(*) from item where price > (select avg(price) from item) group by kind",
            1,
        ),
        (
            "select kind, count(*), (select max(name) from kind) as last from item group by kind",
            0,
        ),
        (
            "select count(*) from item where price > (select avg(price) from item where kind = (select max(id) from kind))",
            2,
        ),
    ] {
        let (alone, divided) = processes.costs(text);
        assert_eq!(alone - divided, all_rows, "{text}");
    }
}

#[test]
fn a_scalar_subquery_of_many_rows_fails_as_in_one_process() {
    let processes = Processes::new();
    for text in [
        "select kind, count(*) from item where price > (select id from kind) group by kind",
        "select kind, count(*) from item where price > (select price from item) group by kind",
        // It is run whether or not its value is asked for.
        "select count(case when price < 0 then (select id from kind) end) from item",
    ] {
        let expected = processes.house.refused(&processes.alone, text);
        assert_eq!(expected.0, "21000", "{text}");
        let found = processes.house.refused(&processes.sessions[0], text);
        assert_eq!(found, expected, "{text}");
    }
}
