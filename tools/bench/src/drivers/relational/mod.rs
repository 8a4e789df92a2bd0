//! The comparison of triples in SPARQL over HTTP with tables in DuckDB's SQL, over the same data.
//!
//! The tables are made from the triples (CSV files that the store itself writes), normalised as one
//! who knows the data would do it, with numbers as keys. Each question is asked several times of
//! one and then of the other, question by question, so that a busy hour of the machine falls on
//! both; the quickest run counts. The answers are compared row by row.

mod questions;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

use self::questions::{QUESTIONS, Question, SCHEMA, TABLES};
use super::answers::Rows;
use super::duckdb::{Answering, Script, Timed};

use super::store::write_data;
use super::{BenchError, Binary, LoadOptions, RESULTS_JSON, load};
use crate::http_client::HttpClient;
use crate::report::{Table, with_thousands};
use orrery_bsbm::GenerateOptions;

const LOAD_MEMORY: &str = "4G";
const CSV: &str = "text/csv";
/// What the geometric mean of the ratios is to be at most, and every single one.
const MEAN_BAR: f64 = 1.0;
const SINGLE_BAR: f64 = 2.0;

/// What to compare.
#[derive(Clone, Debug)]
pub struct RelationalOptions {
    /// The data set.
    pub data: GenerateOptions,
    /// Where data and databases are kept.
    pub cache: PathBuf,
    /// The script that runs DuckDB.
    pub script: PathBuf,
    /// How often each question is asked.
    pub runs: u32,
    /// Threads of one query, at both.
    pub threads: usize,
}

/// The times of one question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RelationalTimes {
    /// The question's name.
    pub name: &'static str,
    /// Rows of the answer.
    pub rows: usize,
    /// Ours, over the triples.
    pub triples_ms: f64,
    /// DuckDB's, over the tables.
    pub tables_ms: f64,
    /// Ours by DuckDB's: below one, ours is quicker.
    pub ratio: f64,
}

/// Both sides' times, and whether their answers agree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RelationalReport {
    /// Triples in our database.
    pub triples: u64,
    /// Bytes of our database.
    pub triples_bytes: u64,
    /// Bytes of DuckDB's.
    pub tables_bytes: u64,
    /// Threads of one query, at both.
    pub threads: usize,
    /// The questions.
    pub questions: Vec<RelationalTimes>,
    /// The geometric mean of the ratios.
    pub mean_ratio: f64,
    /// Where answers differ: question and difference.
    pub differences: Vec<String>,
}

/// Loads the triples, makes the tables from them, and asks both everything.
///
/// # Errors
/// When any of it fails; answers that differ are no error but stand in the report.
pub fn relational(
    binary: &Binary,
    options: &RelationalOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<RelationalReport, BenchError> {
    let name = format!("bsbm-{}-{}", options.data.products, options.data.seed);
    let data = options.cache.join(format!("{name}.nt"));
    progress("generating the data");
    write_data(&options.data, &data)?;
    progress("setting up DuckDB");
    let script = Script::new(options.script.clone(), options.cache.join("python"));
    script.setup()?;

    progress("loading the triples");
    let database = options.cache.join(format!("{name}.db"));
    let loaded = load(
        binary,
        &LoadOptions {
            database: database.clone(),
            files: vec![data],
            memory: LOAD_MEMORY.to_owned(),
        },
    )?;
    let threads = options.threads.to_string();
    let server = binary.serve_with(&database, &["--read-only", "--threads", &threads])?;
    let mut client = HttpClient::new(server.endpoint())?;

    progress("making the tables");
    let folder = options.cache.join(format!("{name}.tables"));
    let schema = write_tables(&mut client, &folder)?;
    let tables = options.cache.join(format!("{name}.duckdb"));
    let tables_bytes = script
        .load(&tables, &schema, &folder, options.threads)?
        .bytes;
    let mut answering = script.ask(&tables, options.threads)?;

    let mut report = RelationalReport {
        triples: loaded.triples,
        triples_bytes: loaded.database_bytes,
        tables_bytes,
        threads: options.threads,
        questions: Vec::new(),
        mean_ratio: 0.0,
        differences: Vec::new(),
    };
    for question in &QUESTIONS {
        progress(question.name);
        let (times, difference) = ask(question, options.runs, &mut client, &mut answering)?;
        report.questions.push(times);
        report
            .differences
            .extend(difference.map(|difference| format!("{}: {difference}", question.name)));
    }
    let logarithms = report.questions.iter().map(|times| times.ratio.ln());
    report.mean_ratio = (logarithms.sum::<f64>() / QUESTIONS.len() as f64).exp();
    Ok(report)
}

/// Writes the CSV files and the script that makes tables of them; the script's path.
fn write_tables(client: &mut HttpClient, folder: &Path) -> Result<PathBuf, BenchError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| BenchError::File { path, source }
    };
    fs::create_dir_all(folder).map_err(at(folder))?;
    let mut body = Vec::new();
    for table in &TABLES {
        client
            .query(table.sparql, CSV, &mut body)
            .map_err(|source| BenchError::Query {
                what: format!("table {}", table.name),
                source,
            })?;
        let path = folder.join(format!("{}.csv", table.name));
        fs::write(&path, &body).map_err(at(&path))?;
    }
    let schema = folder.join("schema.sql");
    fs::write(&schema, SCHEMA).map_err(at(&schema))?;
    Ok(schema)
}

/// The times of one question at both, and the first difference of their answers.
fn ask(
    question: &Question,
    runs: u32,
    client: &mut HttpClient,
    answering: &mut Answering,
) -> Result<(RelationalTimes, Option<String>), BenchError> {
    let failed = |source| BenchError::Query {
        what: question.name.to_owned(),
        source,
    };
    let accept = if question.is_exported {
        CSV
    } else {
        RESULTS_JSON
    };
    let mut body = Vec::new();
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        client
            .query(question.sparql, accept, &mut body)
            .map_err(failed)?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    let timed = match question.is_exported {
        true => Timed::File,
        false => Timed::Rows,
    };
    let tables = answering.ask(question.sql, runs, timed)?;
    client
        .query(question.sparql, RESULTS_JSON, &mut body)
        .map_err(failed)?;
    let ours = Rows::read(&body).ok_or_else(|| BenchError::Result {
        what: question.name.to_owned(),
    })?;
    let theirs = Rows::of_values(&tables.rows);
    let tables_ms = tables.best().as_secs_f64() * 1e3;
    let times = RelationalTimes {
        name: question.name,
        rows: ours.len(),
        triples_ms: best * 1e3,
        tables_ms,
        ratio: best * 1e3 / tables_ms,
    };
    Ok((times, ours.difference(&theirs)))
}

impl RelationalReport {
    /// Whether the mean and every single ratio are within their bars.
    fn is_met(&self) -> bool {
        self.mean_ratio <= MEAN_BAR
            && self
                .questions
                .iter()
                .all(|question| question.ratio <= SINGLE_BAR)
    }
}

impl fmt::Display for RelationalReport {
    /// A table in Markdown, as it stands in `docs/performance.md`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{} triples ({} MB) against the same as tables ({} MB), {} threads\n",
            with_thousands(self.triples),
            with_thousands(self.triples_bytes / 1_000_000),
            with_thousands(self.tables_bytes / 1_000_000),
            self.threads,
        )?;
        let mut table = Table::markdown([
            "question",
            "rows",
            "triples, SPARQL (ms)",
            "tables, DuckDB (ms)",
            "ratio",
            "",
        ]);
        for question in &self.questions {
            table.row([
                question.name.to_owned(),
                with_thousands(question.rows as u64),
                format!("{:.1}", question.triples_ms),
                format!("{:.1}", question.tables_ms),
                format!("{:.2}", question.ratio),
                if question.ratio <= SINGLE_BAR {
                    ""
                } else {
                    "missed"
                }
                .to_owned(),
            ]);
        }
        table.fmt(formatter)?;
        writeln!(
            formatter,
            "\nGeometric mean of the ratios: {:.2} (bar {MEAN_BAR:.1}, and {SINGLE_BAR:.1} for every single one: {}). {} answers compared, {} differ.",
            self.mean_ratio,
            if self.is_met() { "met" } else { "missed" },
            self.questions.len(),
            self.differences.len()
        )?;
        for difference in &self.differences {
            writeln!(formatter, "\n{difference}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(name: &'static str, ratio: f64) -> RelationalTimes {
        RelationalTimes {
            name,
            rows: 1_000,
            triples_ms: ratio * 10.0,
            tables_ms: 10.0,
            ratio,
        }
    }

    fn report(questions: Vec<RelationalTimes>, mean_ratio: f64) -> RelationalReport {
        RelationalReport {
            triples: 1_000_000,
            triples_bytes: 20_000_000,
            tables_bytes: 30_000_000,
            threads: 2,
            questions,
            mean_ratio,
            differences: Vec::new(),
        }
    }

    #[test]
    fn one_question_above_its_bar_is_a_miss() {
        let both = vec![times("quick", 0.5), times("slow", 2.5)];
        let report_of_both = report(both, 0.9);
        assert!(!report_of_both.is_met());
        let text = report_of_both.to_string();
        assert!(
            text.contains("| slow | 1,000 | 25.0 | 10.0 | 2.50 | missed |"),
            "{text}"
        );
        assert!(report(vec![times("quick", 0.5)], 0.9).is_met());
        assert!(!report(vec![times("quick", 0.5)], 1.1).is_met());
    }

    #[test]
    fn every_question_says_what_it_asks_in_both_languages() {
        for question in &QUESTIONS {
            let sparql = question.sparql.lines().next().unwrap_or_default();
            let sql = question.sql.lines().next().unwrap_or_default();
            assert_eq!(
                sparql.strip_prefix("# "),
                sql.strip_prefix("-- "),
                "{}",
                question.name
            );
        }
    }
}
