//! The oracle of SQL under rules: an asker learns nothing of hidden graphs and tables.
//!
//! ```text
//! two databases that differ in what is hidden -> tables beside the quads: some that are seen, and others,
//!                                                or none, or more, that are not
//!   a statement -> each: columns, rows in their order, or the error with its code; the plan with its estimates;
//!                        the touches -> the same text
//! ```
//!
//! A statement that changes something is within a transaction that is rolled back, so that the next
//! one finds what this one found.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::physical_plan::displayable;
use futures::TryStreamExt as _;
use orrery_runtime::{Spending, Touched as _};
use orrery_sparql::{Engine, EngineOptions};
use orrery_sparql_in_sql::EngineGraphs;
use orrery_sql::{Error as SqlError, Outcome, Session, SessionOptions, SqlScope};
use orrery_storage::table::TableNames;
use orrery_storage::{ReadScope, Writer};
use oxrdf::{NamedNode, Quad, Term};
use tokio::runtime::Runtime;

use super::data::{GRAPHS, NODES, named};
use super::random::Random;
use super::weights;
use super::{derived, grammar};
use crate::Error;

const CLASSES: [&str; 2] = ["C", "D"];
/// Attempts at a query with the variables that are asked for.
const ATTEMPTS_MAX: usize = 5;
/// Rows of a hidden table where there is much of it.
const CROWD: usize = 3_000;

/// Tables that are seen. What a statement may change is in the schema `desk`.
const SHOWN: [&str; 6] = [
    "CREATE SCHEMA desk",
    "CREATE TABLE desk.node (iri text PRIMARY KEY, n int NOT NULL)",
    "INSERT INTO desk.node VALUES ('http://example.org/a', 1), ('http://example.org/b', 2), ('http://example.org/g1', 3), ('a', 2), ('http://example.org/secret0', 5)",
    "CREATE TABLE word (text text, n numeric(6,2))",
    "INSERT INTO word VALUES ('a', 1), ('a longer string', 2.5), ('secret', 0.5), ('1', 0)",
    "CREATE INDEX ON word (text)",
];
/// What is made between and after them where something is hidden.
const HIDDEN: [&str; 4] = [
    "CREATE SCHEMA vault",
    "CREATE TABLE vault.secret (iri text PRIMARY KEY, n int)",
    "CREATE TABLE secret (text text, n numeric(6,2))",
    "INSERT INTO secret VALUES ('secret', 7)",
];

/// Classes of some subjects of a data set, in the graphs of these.
pub(super) fn classes(quads: &[Quad]) -> Vec<Quad> {
    let some = quads.iter().enumerate().step_by(2);
    let mut classes: Vec<Quad> = some
        .map(|(number, quad)| {
            let class = named(CLASSES[usize::from(number % 8 == 0)]);
            let is_a = NamedNode::from(oxrdf::vocab::rdf::TYPE);
            Quad::new(
                quad.subject.clone(),
                is_a,
                Term::from(class),
                quad.graph_name.clone(),
            )
        })
        .collect();
    classes.sort_by_key(ToString::to_string);
    classes.dedup();
    classes
}

/// Whoever asks in SQL, of one database.
pub(super) struct SqlAsker {
    session: Session,
    scope: Arc<SqlScope>,
    threads: Runtime,
}

impl SqlAsker {
    /// Makes the tables of a database, and a session of somebody who sees these graphs and some of
    /// the tables. `amount` is that of what is hidden: as much as is seen, nothing, something else,
    /// or very much.
    pub(super) fn new(
        writer: &Writer,
        graphs: &ReadScope,
        amount: Option<usize>,
    ) -> Result<Self, Error> {
        let options = EngineOptions {
            // So that rows come in one order, and nothing is done twice by chance.
            threads: 1,
            ..EngineOptions::default()
        };
        let database = Arc::clone(writer.database());
        let engine = Arc::new(Engine::new(Arc::clone(&database), options)?);
        let session = Session::new(
            engine.runtime(),
            database,
            Some(writer.clone()),
            SessionOptions::default(),
        );
        let graphs_of = EngineGraphs::new(Arc::clone(&engine));
        let session = session.with_graphs(Arc::new(graphs_of));
        let threads = Runtime::new().map_err(|source| Error::Io {
            path: "tokio runtime".into(),
            source,
        })?;
        let mut tables = TableNames::default();
        tables.schemas.insert("desk".to_owned());
        let writes = tables.clone();
        tables.insert("public".to_owned(), "word".to_owned());
        let scope = SqlScope {
            reads: Some(tables),
            writes: Some(writes),
            graphs: graphs.clone(),
            writes_all_graphs: false,
        };
        let asker = Self {
            session,
            scope: Arc::new(scope),
            threads,
        };
        // One commit, whatever is hidden.
        let all = format!("BEGIN; {}; COMMIT", tables_with(amount).join("; "));
        asker
            .ask(&asker.session, &all, &mut String::new())
            .map_err(|error| Error::Reference(format!("tables of the oracle: {error}")))?;
        Ok(asker)
    }

    /// All that is told about a statement but times.
    pub(super) fn told(&self, sql: &str) -> String {
        let run = || {
            let mut session = self.session.another();
            session.set_scope(Some(Arc::clone(&self.scope)));
            let mut told = String::new();
            // What changes something has no plan to be shown.
            match self.threads.block_on(session.plan(sql)) {
                Ok(planned) => {
                    let plan = displayable(planned.plan().as_ref());
                    told += &plan.indent(false).to_string();
                }
                Err(error) => told += &format!("no plan: {error}\n"),
            }
            let spending = Spending::new(None);
            session.set_spending(Some(Arc::clone(&spending)));
            if let Err(error) = self.ask(&session, sql, &mut told) {
                told += &of_error(&error);
            }
            told += &format!("\ncost {}\n", spending.touches());
            told
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(told) => told,
            Err(panic) => format!("panic: {}", super::refusals::message(&panic)),
        }
    }

    fn ask(&self, session: &Session, sql: &str, told: &mut String) -> Result<(), SqlError> {
        for statement in session.statements(sql)? {
            self.threads.block_on(async {
                match session.execute(&statement).await? {
                    Outcome::Query(mut rows) | Outcome::Returned(mut rows, _) => {
                        let schema = rows.schema();
                        for field in schema.fields() {
                            _ = write!(told, "{} {};", field.name(), field.data_type());
                        }
                        told.push('\n');
                        let mut of_rows = String::new();
                        while let Some(batch) = rows
                            .try_next()
                            .await
                            .map_err(|error| SqlError::of_run(&error))?
                        {
                            shown(&batch, &mut of_rows)?;
                        }
                        // Which of two threads gives its rows first is chance.
                        let mut lines: Vec<&str> = of_rows.lines().collect();
                        if !sql.contains("ORDER BY") {
                            lines.sort_unstable();
                        }
                        for line in lines {
                            _ = writeln!(told, "{line}");
                        }
                    }
                    Outcome::Done(tag) => _ = writeln!(told, "{tag}"),
                    Outcome::CopyIn(_) | Outcome::CopyOut(_) => told.push_str("copy\n"),
                }
                Ok::<_, SqlError>(())
            })?;
        }
        Ok(())
    }
}

fn shown(batch: &RecordBatch, told: &mut String) -> Result<(), SqlError> {
    let options = FormatOptions::default().with_null("NULL");
    let cells = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column, &options));
    let cells = cells
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| SqlError::of_run(&error.into()))?;
    for row in 0..batch.num_rows() {
        for cell in &cells {
            _ = write!(told, "  {}", cell.value(row));
        }
        told.push('\n');
    }
    Ok(())
}

/// What somebody is told of an error: also its code, and what it is about.
fn of_error(error: &SqlError) -> String {
    format!(
        "{}{:?} {error} ({:?})",
        super::refusals::REFUSED,
        error.state,
        error.objects
    )
}

fn tables_with(amount: Option<usize>) -> Vec<String> {
    let (first, rest) = SHOWN.split_at(2);
    let mut made: Vec<String> = first.iter().map(|it| (*it).to_owned()).collect();
    match amount {
        Some(0) => {}
        Some(1) => made.push("CREATE TABLE vault_of_others (a int, b text)".to_owned()),
        None | Some(_) => made.extend(HIDDEN.map(str::to_owned)),
    }
    if amount.is_some_and(|amount| amount > 1) {
        made.push(format!(
            "INSERT INTO vault.secret SELECT 'http://example.org/b' || n, n FROM generate_series(1, {CROWD}) AS s(n)"
        ));
        made.push("CREATE VIEW desk_of_all AS SELECT iri FROM vault.secret".to_owned());
    }
    made.extend(rest.iter().map(|it| (*it).to_owned()));
    if amount != Some(0) {
        made.push("CREATE TABLE last_secret (iri text, n int)".to_owned());
    }
    made
}

/// A statement. `query` is a query of SPARQL over the data, without prefixes.
pub(super) fn statement(random: &mut Random, query: &str) -> String {
    match random.below(20) {
        0..=6 => of_solutions(random, query),
        7..=11 => of_quads(random),
        12..=14 => of_classes(random),
        15 => format!(
            "SELECT t.*, w.n FROM text_search('{}', {}) AS t LEFT JOIN word AS w ON w.text = t.literal",
            random.pick(&["longer", "string", "secret", "a", "nowhere"]),
            1 + random.below(4)
        ),
        16 => of_catalog(random).to_owned(),
        _ => of_change(random, query),
    }
}

/// `sparql(...)`, as a table. `has_subjects`: with the column `s`, if that can be had.
fn solutions(random: &mut Random, query: &str, has_subjects: bool) -> String {
    let text = match random.below(6) {
        0 if !has_subjects => query.to_owned(),
        1 | 2 => solutions_of(random, weights::reading, has_subjects),
        3 => "SELECT ?s ?o { ?s ?p ?o }".to_owned(),
        _ => solutions_of(random, derived::query, has_subjects),
    };
    let text = match text.contains("weight:") {
        true => format!("PREFIX weight: <https://orrery-db.org/weight#> {text}"),
        false => text,
    };
    let text = format!("{}{text}", grammar::PREFIXES);
    format!("sparql('{}')", text.replace('\'', "''"))
}

/// A query that mostly selects.
fn solutions_of(
    random: &mut Random,
    draw: fn(&mut Random) -> String,
    has_subjects: bool,
) -> String {
    for _ in 0..ATTEMPTS_MAX {
        let text = draw(random);
        let is_of_subjects = text.contains("SELECT *") && text.contains("?s ");
        if is_of_subjects || !has_subjects && !text.contains("ASK") {
            return text;
        }
    }
    draw(random)
}

fn of_solutions(random: &mut Random, query: &str) -> String {
    let kind = random.below(8);
    let solutions = solutions(random, query, (2..=5).contains(&kind));
    match kind {
        0 => format!("SELECT count(*) FROM {solutions} AS t"),
        1 => format!("SELECT * FROM {solutions} AS t LIMIT 2"),
        2 => format!("SELECT s, count(*) FROM {solutions} AS t GROUP BY s ORDER BY 2 DESC, 1"),
        3 => format!("SELECT t.*, d.n FROM {solutions} AS t JOIN desk.node AS d ON d.iri = t.s"),
        4 => format!(
            "SELECT d.iri FROM desk.node AS d WHERE {}EXISTS (SELECT FROM {solutions} AS t WHERE t.s = d.iri)",
            random.pick(&["", "NOT "])
        ),
        5 => format!(
            "SELECT o::{} FROM {solutions} AS t WHERE s = 'http://example.org/{}'",
            random.pick(&["int", "numeric", "date"]),
            random.pick(&NODES)
        ),
        _ => format!("SELECT * FROM {solutions} AS t"),
    }
}

fn of_quads(random: &mut Random) -> String {
    let mut tests = Vec::new();
    if random.chance(50) {
        let predicate = random.pick(&["p", "q", "k", "l", "secret0"]);
        tests.push(format!("q.p = 'http://example.org/{predicate}'"));
    }
    if random.chance(25) {
        tests.push(format!(
            "q.s = 'http://example.org/{}'",
            random.pick(&NODES)
        ));
    }
    if random.chance(25) {
        tests.push(match random.below(3) {
            0 => "q.g IS NULL".to_owned(),
            1 => "q.g IN ('http://example.org/g1', 'http://example.org/z')".to_owned(),
            _ => format!("q.g = 'http://example.org/{}'", random.pick(&GRAPHS)),
        });
    }
    if random.chance(25) {
        tests.push(
            random
                .pick(&[
                    "q.language = 'en'",
                    "q.o LIKE '%longer%'",
                    "q.o > 'a'",
                    "q.datatype IS NOT NULL",
                    "q.o::int > 1",
                ])
                .to_owned(),
        );
    }
    let tests = match tests.is_empty() {
        true => String::new(),
        false => format!(" WHERE {}", tests.join(" AND ")),
    };
    let from = random.pick(&[
        "quads AS q",
        "quads AS q",
        "quads AS q JOIN desk.node AS d ON d.iri = q.s",
        "quads AS q JOIN quads AS r ON r.s = q.o",
        "quads AS q LEFT JOIN word AS w ON w.text = q.o",
    ]);
    match random.below(6) {
        0 => format!("SELECT count(*), count(DISTINCT q.s), min(q.o) FROM {from}{tests}"),
        1 => {
            format!("SELECT q.g, q.p, count(*) FROM {from}{tests} GROUP BY q.g, q.p ORDER BY 1, 2")
        }
        2 => format!("SELECT q.s, q.o FROM {from}{tests} ORDER BY 1, 2 LIMIT 3"),
        3 => format!("SELECT q.s FROM {from}{tests} LIMIT 2"),
        _ => format!("SELECT q.* FROM {from}{tests}"),
    }
}

fn of_classes(random: &mut Random) -> String {
    let class = random.pick(&["C", "C", "D", "None"]);
    match random.below(6) {
        0 => "SELECT * FROM classes() ORDER BY entities DESC, class".to_owned(),
        1 => format!(
            "SELECT * FROM class_properties('http://example.org/{class}') ORDER BY 2 DESC, 1"
        ),
        2 => format!(
            "BEGIN; CREATE VIEW desk.thing FROM CLASS <http://example.org/{class}>; SELECT * FROM desk.thing; SELECT column_name, data_type FROM information_schema.columns \
             WHERE table_name = 'thing' ORDER BY ordinal_position; ROLLBACK"
        ),
        number => {
            let columns = random.pick(&[
                "\"k\" bigint <http://example.org/k>",
                "\"q\" text <http://example.org/q>, \"l\" iri <http://example.org/l>",
                "\"k\" int <http://example.org/k>, \"v\" text <http://example.org/v>",
            ]);
            let (what, test) = match number {
                3 => ("count(*)", ""),
                4 => (
                    "*",
                    " WHERE iri IN ('http://example.org/a', 'http://example.org/secret0')",
                ),
                _ => ("*", ""),
            };
            format!(
                "SELECT {what} FROM class('http://example.org/{class}', '{columns}') AS c{test}"
            )
        }
    }
}

fn of_catalog(random: &mut Random) -> &'static str {
    random.pick(&[
        "SELECT oid, relname, relkind, reltuples, relpages FROM pg_class WHERE relnamespace <> 11 ORDER BY oid",
        "SELECT table_schema, table_name FROM information_schema.tables ORDER BY 1, 2",
        "SELECT * FROM vault.secret",
        "SELECT * FROM secret",
        "SELECT * FROM last_secret",
        "SELECT * FROM desk_of_all",
        "SELECT 'vault.secret'::regclass",
        "SELECT nspname FROM pg_namespace ORDER BY 1",
        "SELECT pg_relation_size('desk.node'), pg_database_size(current_database())",
        "DELETE FROM word",
        "DROP TABLE secret",
        "BEGIN; CREATE TABLE desk.made (a int); SELECT oid FROM pg_class WHERE relname = 'made'; ROLLBACK",
    ])
}

/// A change of a table that reads graphs, or one of graphs that it may not do.
fn of_change(random: &mut Random, query: &str) -> String {
    let solutions = solutions(random, query, true);
    let statement = match random.below(6) {
        0 => format!(
            "INSERT INTO desk.node SELECT s, 7 FROM {solutions} AS t ON CONFLICT DO NOTHING RETURNING iri"
        ),
        1 => format!("INSERT INTO desk.node SELECT s, 7 FROM {solutions} AS t"),
        2 => {
            "UPDATE desk.node SET n = (SELECT count(*) FROM quads AS q WHERE q.s = iri)".to_owned()
        }
        3 => format!("DELETE FROM desk.node WHERE iri IN (SELECT s FROM {solutions} AS t)"),
        4 => format!("CREATE TABLE desk.made AS SELECT * FROM {solutions} AS t"),
        _ => format!(
            "CREATE VIEW desk.made AS SELECT * FROM {solutions} AS t; SELECT * FROM desk.made"
        ),
    };
    format!("BEGIN; {statement}; SELECT * FROM desk.node ORDER BY iri; ROLLBACK")
}
