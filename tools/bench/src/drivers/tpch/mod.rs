//! TPC-H on our tables, in process: load, answers, power test, throughput test, and a comparison
//! with DuckDB.
//!
//! ```text
//! files      Parquet files of the tables and the refresh sets, kept in the cache
//!   -> database  CREATE TABLE with all keys, INSERT ... SELECT from the files       (load time, size)
//!   -> validate  the 22 queries once, their answers beside the right ones
//!   -> power     RF1, the 22 in the order of stream 0, RF2, one after the other     (Power)
//!   -> throughput  streams of the 22, each in its order, and pairs of RF1 and RF2 beside them   (Throughput)
//! ```
//!
//! In the end the tables must have the rows that the refreshes leave, by each way to read them.
//! Times are wall times of a client: parsing, planning, running, taking all rows.

mod compare;
mod database;
mod files;
mod held;
mod throughput;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

use self::database::Client;
use self::held::Held;
use super::BenchError;
use super::load::folder_bytes;
use crate::report::{Table, with_thousands};
use crate::tpch::{
    Answer, Metrics, PowerTimes, QUERIES, Query, Scale, ThroughputTimes, query_order,
};

pub use compare::{TpchCompareReport, TpchPair, compare_duckdb};

pub(in crate::drivers) use self::database::TpchDatabase;
pub(in crate::drivers) use self::files::TpchFiles;

/// What to measure.
#[derive(Clone, Debug)]
pub struct TpchOptions {
    /// How large the database is.
    pub scale: Scale,
    /// Where files and databases are kept.
    pub cache: PathBuf,
    /// A folder with the right answers, `q01.csv` to `q22.csv`; without it they are not looked at.
    pub answers: Option<PathBuf>,
    /// Streams of the throughput test; 0 leaves it out.
    pub streams: usize,
    /// Threads of the engine.
    pub threads: usize,
    /// Memory of the engine.
    pub memory_bytes: u64,
    /// How often each query is asked where it is compared; the quickest run counts.
    pub runs: u32,
}

/// What one query took in the power test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TpchQueryTimes {
    /// Its number.
    pub number: u8,
    /// The specification's name for it.
    pub name: &'static str,
    /// In the power test.
    pub milliseconds: f64,
    /// Rows of the answer before any refresh.
    pub rows: usize,
}

/// Everything that was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TpchReport {
    /// How large the database is.
    pub scale: f64,
    /// Threads of the engine.
    pub threads: usize,
    /// Making the tables and loading them from Parquet, to the last commit.
    pub load_seconds: f64,
    /// The database after that.
    pub database_bytes: u64,
    /// The power test, from Q1 on.
    pub queries: Vec<TpchQueryTimes>,
    /// RF1 and RF2 in the power test.
    pub refresh_seconds: [f64; 2],
    /// Streams of the throughput test, and how long it took.
    pub throughput: Option<ThroughputTimes>,
    /// Power, Throughput, QphH; where there was a throughput test.
    pub metrics: Option<Metrics>,
    /// How many answers were looked at.
    pub answers_compared: usize,
    /// What was wrong.
    pub mistakes: Vec<String>,
}

/// Loads, validates and measures. `progress` is told what comes next.
///
/// # Errors
/// When any of it fails; a wrong answer is no error but stands in the report.
pub fn tpch(
    options: &TpchOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<TpchReport, BenchError> {
    progress("making the files");
    let files = TpchFiles::new(&options.cache, options.scale)?;
    files.write_tables()?;
    progress("loading");
    let directory = options.cache.join(format!("tpch-{}.orrery", options.scale));
    let begin = Instant::now();
    let database = TpchDatabase::create(&directory, options.threads, options.memory_bytes)?;
    let client = database.client();
    client.load(&files)?;
    let load_seconds = begin.elapsed().as_secs_f64();
    let database_bytes = bytes_of(&directory)?;

    progress("validating the answers");
    let mut mistakes = Vec::new();
    let mut answered = Vec::new();
    for query in &QUERIES {
        let answer = client.ask(&query.text(options.scale))?;
        if let Some(folder) = &options.answers {
            let right = Answer::read_file(&folder.join(format!("q{:02}.csv", query.number)))?;
            let difference = answer.difference(&right, query);
            mistakes.extend(difference.map(|it| format!("Q{}: {it}", query.number)));
        }
        answered.push(answer.rows());
    }
    let mut held = Held::now(&client)?;
    progress("power test");
    let power = power(&client, &files, options.scale, &mut held)?;
    let throughput = match options.streams {
        0 => None,
        streams => {
            progress("throughput test");
            Some(throughput::run(
                &database,
                &files,
                options.scale,
                streams,
                &mut held,
            )?)
        }
    };
    mistakes.extend(held.mistakes(&client)?);
    let times = QUERIES.iter().zip(power.queries).zip(answered);
    let queries = times.map(|((query, seconds), rows)| TpchQueryTimes {
        number: query.number,
        name: query.name,
        milliseconds: seconds * 1e3,
        rows,
    });
    Ok(TpchReport {
        scale: options.scale.factor(),
        threads: options.threads,
        load_seconds,
        database_bytes,
        queries: queries.collect(),
        refresh_seconds: power.refreshes,
        metrics: throughput.map(|throughput| Metrics::new(options.scale, &power, &throughput)),
        throughput,
        answers_compared: options.answers.as_ref().map_or(0, |_| QUERIES.len()),
        mistakes,
    })
}

fn bytes_of(directory: &Path) -> Result<u64, BenchError> {
    folder_bytes(directory).map_err(|source| BenchError::File {
        path: directory.to_owned(),
        source,
    })
}

/// RF1, the queries in the order of stream 0, RF2.
fn power(
    client: &Client<'_>,
    files: &TpchFiles,
    scale: Scale,
    held: &mut Held,
) -> Result<PowerTimes, BenchError> {
    let refresh = files.refresh(1)?;
    let mut times = PowerTimes {
        queries: [0.0; 22],
        refreshes: [0.0; 2],
    };
    let begin = Instant::now();
    held.lines += client.insert(&refresh)?;
    times.refreshes[0] = begin.elapsed().as_secs_f64();
    for query in query_order(0)
        .iter()
        .filter_map(|number| Query::numbered(*number))
    {
        let text = query.text(scale);
        let begin = Instant::now();
        client.run(&text)?;
        times.queries[usize::from(query.number) - 1] = begin.elapsed().as_secs_f64();
    }
    let begin = Instant::now();
    held.lines -= client.delete(&refresh)?;
    times.refreshes[1] = begin.elapsed().as_secs_f64();
    Ok(times)
}

impl fmt::Display for TpchReport {
    /// As it stands in `docs/performance.md`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "TPC-H at scale {}, {} threads: loaded in {:.1} s, {:.1} MB\n",
            self.scale,
            self.threads,
            self.load_seconds,
            self.database_bytes as f64 / 1e6,
        )?;
        let mut table = Table::markdown(["query", "", "rows", "power test (ms)"]);
        for query in &self.queries {
            table.row([
                format!("Q{}", query.number),
                query.name.to_owned(),
                with_thousands(query.rows as u64),
                format!("{:.1}", query.milliseconds),
            ]);
        }
        for (name, seconds) in ["RF1", "RF2"].into_iter().zip(self.refresh_seconds) {
            table.row([
                name.to_owned(),
                String::new(),
                String::new(),
                format!("{:.1}", seconds * 1e3),
            ]);
        }
        table.fmt(formatter)?;
        if let (Some(throughput), Some(metrics)) = (&self.throughput, &self.metrics) {
            writeln!(
                formatter,
                "\nThroughput test: {} streams with refreshes beside them, {:.2} s.\nPower {:.0}, Throughput {:.0}, QphH {:.0}.",
                throughput.streams,
                throughput.elapsed,
                metrics.power,
                metrics.throughput,
                metrics.composite,
            )?;
        }
        writeln!(
            formatter,
            "\n{} answers compared, {} mistakes.",
            self.answers_compared,
            self.mistakes.len()
        )?;
        for mistake in &self.mistakes {
            writeln!(formatter, "\n{mistake}")?;
        }
        Ok(())
    }
}
