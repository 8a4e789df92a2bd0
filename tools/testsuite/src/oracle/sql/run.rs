//! The run of many data sets on several threads, and its summary.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use orrery_sql::{Error, SqlState};

use super::super::random::Random;
use super::SqlOracleError;
use super::compare::difference;
use super::duckdb::DuckDb;
use super::grammar::Grammar;
use super::ours::Ours;
use super::query::Query;
use super::tables::{DataSet, Step};

/// Queries over one data set, so that making tables costs little.
const QUERIES_PER_DATA_SET: u64 = 50;
/// What queries within a transaction go back to when they fail.
const BLOCK: &str = "savepoint here";
/// Rows of an answer that are compared; larger ones are left out.
const ROWS_MAX: usize = 20_000;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct SqlOptions {
    /// How many queries.
    pub queries: u64,
    /// Another seed, other tables and queries.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
    /// Differences after which the run ends.
    pub differences_max: usize,
}

/// What became of a run.
#[derive(Clone, Debug, Default)]
pub struct SqlReport {
    /// DuckDB's version; empty if there is none, and nothing was compared.
    pub version: String,
    /// Queries whose answers were compared.
    pub compared: u64,
    /// Of these, with at least one row.
    pub with_rows: u64,
    /// Rows in all.
    pub rows: u64,
    /// Queries that both refused.
    pub refused_by_both: u64,
    /// Queries that DuckDB alone refused, by the first words that it said.
    pub refused_by_duckdb: BTreeMap<String, u64>,
    /// Queries that we do not plan, by what we said.
    pub not_supported: BTreeMap<String, u64>,
    /// Queries that were left out because their answers are too large.
    pub too_large: u64,
    /// What differs.
    pub differences: Vec<SqlDifference>,
}

/// A difference that was found.
#[derive(Clone, Debug)]
pub struct SqlDifference {
    /// Which data set.
    pub set: u64,
    /// Which query of it.
    pub query: u64,
    /// What we were asked.
    pub ours: String,
    /// What DuckDB was asked, if that is not the same.
    pub theirs: String,
    /// What differs.
    pub what: String,
}

impl fmt::Display for SqlDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "data set {}, query {}:\n{}",
            self.set, self.query, self.ours
        )?;
        if self.ours != self.theirs {
            writeln!(f, "to DuckDB:\n{}", self.theirs)?;
        }
        f.write_str(&self.what)
    }
}

impl fmt::Display for SqlReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in &self.differences {
            writeln!(f, "{difference}\n----")?;
        }
        writeln!(
            f,
            "{} queries compared with DuckDB {}",
            self.compared, self.version
        )?;
        writeln!(f, "{} had rows, {} rows in all", self.with_rows, self.rows)?;
        writeln!(f, "{} were refused by both", self.refused_by_both)?;
        for (words, count) in &self.refused_by_duckdb {
            writeln!(f, "{count} DuckDB alone did not answer: {words}")?;
        }
        for (words, count) in &self.not_supported {
            writeln!(f, "{count} are not supported: {words}")?;
        }
        writeln!(f, "{} left out: too many rows", self.too_large)?;
        write!(f, "{} differences", self.differences.len())
    }
}

/// Compares answers to random queries. Without DuckDB nothing is compared, and the report has no
/// version.
///
/// # Errors
/// When tables cannot be made, or DuckDB's process ends.
pub fn run_sql(
    options: SqlOptions,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<SqlReport, SqlOracleError> {
    let report = Mutex::new(SqlReport::default());
    let failed = Mutex::new(None);
    let next = AtomicU64::new(0);
    let sets = options.queries.div_ceil(QUERIES_PER_DATA_SET);
    let work = || -> Result<(), SqlOracleError> {
        let Some(mut peer) = DuckDb::start()? else {
            return Ok(());
        };
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let is_enough =
                |report: &SqlReport| report.differences.len() >= options.differences_max;
            if number >= sets || report.lock().is_ok_and(|report| is_enough(&report)) {
                return Ok(());
            }
            let of_set = check(options.seed, number, &mut peer)?;
            if let Ok(mut report) = report.lock() {
                report.version.clone_from(&peer.version);
                report.add(of_set);
            }
            progress((number + 1) * QUERIES_PER_DATA_SET);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.threads.max(1) {
            scope.spawn(|| {
                if let Err(error) = work()
                    && let Ok(mut failed) = failed.lock()
                {
                    *failed = Some(error);
                }
            });
        }
    });
    if let Ok(Some(error)) = failed.into_inner() {
        return Err(error);
    }
    let mut report = report.into_inner().unwrap_or_default();
    report.differences.sort_by_key(|it| (it.set, it.query));
    report.differences.truncate(options.differences_max);
    Ok(report)
}

/// What makes the tables of a data set, as a script of ours, and its queries.
pub fn sql_of_data_set(seed: u64, number: u64) -> String {
    let mut random = Random::new(seed, number);
    let set = DataSet::new(&mut random);
    let mut script = String::new();
    for step in &set.steps {
        script.push_str(&match step {
            Step::Both(sql) => format!("{};\n", sql.ours),
            Step::Ours(sql) => format!("{sql};\n"),
            Step::Block => format!("{BLOCK};\n"),
            Step::Compact(table) => {
                format!("-- what changed in {table} is brought into its files\n")
            }
        });
    }
    for query in queries(&mut random, &set) {
        script.push_str(&format!("{};\n", query.sql.ours));
    }
    script
}

fn queries(random: &mut Random, set: &DataSet) -> Vec<Query> {
    let mut grammar = Grammar::new(random, &set.tables);
    (0..QUERIES_PER_DATA_SET).map(|_| grammar.query()).collect()
}

fn check(seed: u64, number: u64, peer: &mut DuckDb) -> Result<SqlReport, SqlOracleError> {
    let mut random = Random::new(seed, number);
    let set = DataSet::new(&mut random);
    let threads = 1 + (number % 2) as usize;
    let batch_rows = [8_192, 1_024, 64][(number % 3) as usize];
    let ours = Ours::new(threads, batch_rows)?;
    let failed = |what: String| SqlOracleError::Tables { number, what };
    let ours_failed = |sql: &str, error: &Error| {
        let sql: String = sql.chars().take(300).collect();
        failed(format!("{error}\n{sql}"))
    };
    peer.new_database()?;
    for step in &set.steps {
        match step {
            Step::Both(sql) => {
                ours.ask(&sql.ours)
                    .map_err(|error| ours_failed(&sql.ours, &error))?;
                peer.run(&sql.theirs)?.map_err(failed)?;
            }
            Step::Ours(sql) => {
                ours.ask(sql).map_err(|error| ours_failed(sql, &error))?;
            }
            Step::Block => {
                ours.ask(BLOCK)
                    .map_err(|error| ours_failed(BLOCK, &error))?;
            }
            Step::Compact(table) => ours.compact(table)?,
        }
    }
    let mut report = SqlReport::default();
    let whole = set.tables.iter().map(|table| Query {
        sql: super::dual::Sql::same(format!("select * from {}", table.name)),
        is_ordered: false,
        limit: None,
    });
    let all: Vec<Query> = whole.chain(queries(&mut random, &set)).collect();
    for (at, query) in all.iter().enumerate() {
        let refused = report.compare(query, (number, at as u64), &ours, peer)?;
        if refused && set.is_within_block {
            let back = "rollback to here";
            ours.ask(back).map_err(|error| ours_failed(back, &error))?;
        }
    }
    Ok(report)
}

/// In how many plans of the queries of a data set each of some words stands.
///
/// # Errors
/// When tables cannot be made.
pub fn sql_plans_with(
    words: &[&'static str],
    seed: u64,
    number: u64,
) -> Result<BTreeMap<&'static str, u64>, SqlOracleError> {
    let mut random = Random::new(seed, number);
    let set = DataSet::new(&mut random);
    let ours = Ours::new(2, 1_024)?;
    for step in &set.steps {
        let sql = match step {
            Step::Both(sql) => &sql.ours,
            Step::Ours(sql) => sql,
            Step::Block => continue,
            Step::Compact(table) => {
                ours.compact(table)?;
                continue;
            }
        };
        ours.ask(sql).map_err(|error| SqlOracleError::Tables {
            number,
            what: error.to_string(),
        })?;
    }
    let mut found = BTreeMap::new();
    for query in queries(&mut random, &set) {
        // What is refused has no plan.
        let plan = ours.plan(&query.sql.ours).unwrap_or_default();
        for word in words.iter().filter(|word| plan.contains(**word)) {
            *found.entry(*word).or_default() += 1;
        }
    }
    Ok(found)
}

impl SqlReport {
    fn compare(
        &mut self,
        query: &Query,
        (set, number): (u64, u64),
        ours: &Ours,
        peer: &mut DuckDb,
    ) -> Result<bool, SqlOracleError> {
        let answer = ours.ask(&query.sql.ours);
        let is_refused = answer.is_err();
        let reference = peer.ask(&query.sql.theirs)?;
        let what = match (answer, reference) {
            (Err(error), Err(_)) if error.state == SqlState::InternalError => {
                Some(format!("we say {}: {error}", error.state))
            }
            (Err(_), Err(_)) => {
                self.refused_by_both += 1;
                return Ok(is_refused);
            }
            (Ok(_), Err(error)) => {
                let words = error.lines().next().unwrap_or_default();
                *self
                    .refused_by_duckdb
                    .entry(first_words(words))
                    .or_default() += 1;
                return Ok(is_refused);
            }
            (Err(error), Ok(_)) if is_not_supported(&error) => {
                *self
                    .not_supported
                    .entry(first_words(&error.message))
                    .or_default() += 1;
                return Ok(is_refused);
            }
            (Err(error), Ok(rows)) => Some(format!(
                "we say {}: {error}\n  DuckDB has {} rows",
                error.state,
                rows.len()
            )),
            (Ok(_), Ok(theirs)) if query.limit.is_some_and(|limit| theirs.len() > limit) => {
                let words = "more rows than the LIMIT of a query with two windows".to_owned();
                *self.refused_by_duckdb.entry(words).or_default() += 1;
                return Ok(is_refused);
            }
            (Ok(ours), Ok(theirs)) if theirs.len().max(ours.len()) > ROWS_MAX => {
                self.too_large += 1;
                (theirs.len() <= ROWS_MAX || ours.len() <= ROWS_MAX)
                    .then(|| format!("{} rows, DuckDB has {}", ours.len(), theirs.len()))
            }
            (Ok(ours), Ok(theirs)) => {
                self.compared += 1;
                self.with_rows += u64::from(!theirs.is_empty());
                self.rows += theirs.len() as u64;
                difference(&ours, &theirs, query.is_ordered)
            }
        };
        self.differences.extend(what.map(|what| SqlDifference {
            set,
            query: number,
            ours: query.sql.ours.clone(),
            theirs: query.sql.theirs.clone(),
            what,
        }));
        Ok(is_refused)
    }

    fn add(&mut self, other: Self) {
        self.compared += other.compared;
        self.with_rows += other.with_rows;
        self.rows += other.rows;
        self.refused_by_both += other.refused_by_both;
        self.too_large += other.too_large;
        self.differences.extend(other.differences);
        for (of, more) in [
            (&mut self.refused_by_duckdb, other.refused_by_duckdb),
            (&mut self.not_supported, other.not_supported),
        ] {
            for (words, count) in more {
                *of.entry(words).or_default() += count;
            }
        }
    }
}

fn first_words(text: &str) -> String {
    text.chars().take(90).collect()
}

/// What we say we cannot do is no wrong answer; it is counted.
/// What is refused by its name, and what needs more than the little memory that there is.
fn is_not_supported(error: &Error) -> bool {
    matches!(
        error.state,
        SqlState::FeatureNotSupported | SqlState::OutOfMemory
    )
}
