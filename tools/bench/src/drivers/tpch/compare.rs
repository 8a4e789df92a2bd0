//! The 22 queries on our tables and on DuckDB's, loaded from the same Parquet files.

use std::fmt;
use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

use super::database::{Client, TpchDatabase};
use super::files::TpchFiles;
use super::{TpchOptions, bytes_of};
use crate::drivers::BenchError;
use crate::drivers::duckdb::{Answering, Script, Timed};
use crate::report::{Table, with_thousands};
use crate::tpch::{Answer, QUERIES, Query, TpchTable};

/// The bars: DuckDB's time by ours in all and in the mean, ours by DuckDB's for the worst query;
/// bytes at scale 1.
const TOTAL_MIN: f64 = 1.0;
const MEAN_MIN: f64 = 1.0;
const SINGLE_MAX: f64 = 2.5;
const LOAD_MIN: f64 = 1.0;
const BYTES_MAX: f64 = 250e6;

/// One query at both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TpchPair {
    /// Its number.
    pub number: u8,
    /// The specification's name for it.
    pub name: &'static str,
    /// Ours, the quickest run.
    pub ours_ms: f64,
    /// DuckDB's.
    pub duckdb_ms: f64,
    /// DuckDB's by ours: above one, ours is quicker.
    pub factor: f64,
}

/// Both sides, and whether their answers agree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TpchCompareReport {
    /// How large the database is.
    pub scale: f64,
    /// Threads, at both.
    pub threads: usize,
    /// The queries.
    pub pairs: Vec<TpchPair>,
    /// DuckDB's time for all of them by ours.
    pub total_factor: f64,
    /// The geometric mean of the factors.
    pub mean_factor: f64,
    /// Seconds to load from Parquet: ours, DuckDB's.
    pub load_seconds: [f64; 2],
    /// Bytes of the databases: ours, DuckDB's.
    pub database_bytes: [u64; 2],
    /// Where answers differ.
    pub differences: Vec<String>,
}

/// Loads both and asks both everything. `script` is the one that runs DuckDB.
///
/// # Errors
/// When any of it fails; answers that differ are no error but stand in the report.
pub fn compare_duckdb(
    options: &TpchOptions,
    script: PathBuf,
    progress: &mut dyn FnMut(&str),
) -> Result<TpchCompareReport, BenchError> {
    progress("making the files");
    let files = TpchFiles::new(&options.cache, options.scale)?;
    files.write_tables()?;
    // Neither side is to be the first that reads them from the disk.
    files.read_all()?;
    progress("setting up DuckDB");
    let script = Script::new(script, options.cache.join("python"));
    script.setup()?;
    progress("loading DuckDB");
    let theirs = options.cache.join(format!("tpch-{}.duckdb", options.scale));
    let schema = files.folder().join("duckdb.sql");
    write_schema(&schema)?;
    let loaded = script.load(&theirs, &schema, files.folder(), options.threads)?;
    progress("loading ours");
    let directory = options.cache.join(format!("tpch-{}.orrery", options.scale));
    let begin = Instant::now();
    let database = TpchDatabase::create(&directory, options.threads, options.memory_bytes)?;
    let client = database.client();
    client.load(&files)?;
    let load_seconds = begin.elapsed().as_secs_f64();
    let ours_bytes = bytes_of(&directory)?;

    let mut answering = script.ask(&theirs, options.threads)?;
    let mut pairs = Vec::new();
    let mut differences = Vec::new();
    for query in &QUERIES {
        progress(&format!("Q{}", query.number));
        let (pair, difference) = ask(query, options, &client, &mut answering)?;
        pairs.push(pair);
        differences.extend(difference.map(|it| format!("Q{}: {it}", query.number)));
    }
    let sum = |time: fn(&TpchPair) -> f64| pairs.iter().map(time).sum::<f64>();
    let logarithms = pairs.iter().map(|pair| pair.factor.ln()).sum::<f64>();
    Ok(TpchCompareReport {
        scale: options.scale.factor(),
        threads: options.threads,
        total_factor: sum(|pair| pair.duckdb_ms) / sum(|pair| pair.ours_ms),
        mean_factor: (logarithms / pairs.len() as f64).exp(),
        pairs,
        load_seconds: [load_seconds, loaded.seconds],
        database_bytes: [ours_bytes, loaded.bytes],
        differences,
    })
}

/// The tables as DuckDB makes them from the files, without keys: its indexes are for look-ups and
/// would cost it time and place.
fn write_schema(path: &std::path::Path) -> Result<(), BenchError> {
    let tables = TpchTable::ALL.map(|table| {
        let name = table.name();
        format!(
            "create table {name} as from read_parquet(getvariable('csv') || '/{name}.parquet');\n"
        )
    });
    std::fs::write(path, tables.concat()).map_err(|source| BenchError::File {
        path: path.to_owned(),
        source,
    })
}

fn ask(
    query: &Query,
    options: &TpchOptions,
    client: &Client<'_>,
    answering: &mut Answering,
) -> Result<(TpchPair, Option<String>), BenchError> {
    let text = query.text(options.scale);
    let mut ours_ms = f64::INFINITY;
    for _ in 0..options.runs {
        let begin = Instant::now();
        client.run(&text)?;
        ours_ms = ours_ms.min(begin.elapsed().as_secs_f64() * 1e3);
    }
    let theirs = answering.ask(&text, options.runs, Timed::Columns)?;
    let duckdb_ms = theirs.best().as_secs_f64() * 1e3;
    let rows = theirs
        .rows
        .iter()
        .map(|row| row.iter().map(text_of).collect());
    let expected = Answer::of_texts(rows.collect());
    let difference = client.ask(&text)?.difference(&expected, query);
    let pair = TpchPair {
        number: query.number,
        name: query.name,
        ours_ms,
        duckdb_ms,
        factor: duckdb_ms / ours_ms,
    };
    Ok((pair, difference.map(|it| it.to_string())))
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.trim_end().to_owned(),
        other => other.to_string(),
    }
}

impl TpchCompareReport {
    /// The bars that are missed.
    fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        let mut least = |what: &str, found: f64, bar: f64| {
            if found < bar {
                missed.push(format!("{what} {found:.2} (bar {bar:.1})"));
            }
        };
        least("total", self.total_factor, TOTAL_MIN);
        least("geometric mean", self.mean_factor, MEAN_MIN);
        least(
            "load",
            self.load_seconds[1] / self.load_seconds[0],
            LOAD_MIN,
        );
        let at_one = self.database_bytes[0] as f64 / self.scale;
        if at_one > BYTES_MAX {
            missed.push(format!(
                "size {:.0} MB (bar {:.0})",
                at_one / 1e6,
                BYTES_MAX / 1e6
            ));
        }
        for pair in self.pairs.iter().filter(|it| it.factor * SINGLE_MAX < 1.0) {
            missed.push(format!(
                "Q{} {:.1} times DuckDB's time (bar {SINGLE_MAX})",
                pair.number,
                1.0 / pair.factor
            ));
        }
        missed
    }
}

impl fmt::Display for TpchCompareReport {
    /// A table in Markdown, as it stands in `docs/performance.md`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "TPC-H at scale {}, {} threads\n",
            self.scale, self.threads
        )?;
        let mut table = Table::markdown(["query", "", "ours (ms)", "DuckDB (ms)", "DuckDB / ours"]);
        for pair in &self.pairs {
            table.row([
                format!("Q{}", pair.number),
                pair.name.to_owned(),
                format!("{:.1}", pair.ours_ms),
                format!("{:.1}", pair.duckdb_ms),
                format!("{:.2}", pair.factor),
            ]);
        }
        let mut row = |what: &str, unit: &str, ours: f64, duckdb: f64| {
            table.row([
                what.to_owned(),
                unit.to_owned(),
                format!("{ours:.1}"),
                format!("{duckdb:.1}"),
                format!("{:.2}", duckdb / ours),
            ]);
        };
        let sum = |time: fn(&TpchPair) -> f64| self.pairs.iter().map(time).sum::<f64>();
        row(
            "all",
            "",
            sum(|pair| pair.ours_ms),
            sum(|pair| pair.duckdb_ms),
        );
        let [ours, duckdb] = self.load_seconds;
        row("load from Parquet", "seconds", ours, duckdb);
        let [ours, duckdb] = self.database_bytes.map(|bytes| bytes as f64 / 1e6);
        row("size", "MB", ours, duckdb);
        table.fmt(formatter)?;
        let missed = self.missed();
        writeln!(
            formatter,
            "\nTotal {:.2}, geometric mean {:.2}. {}. {} answers compared, {} differ.",
            self.total_factor,
            self.mean_factor,
            match missed.is_empty() {
                true => "All bars are met".to_owned(),
                false => format!("Missed: {}", missed.join(", ")),
            },
            with_thousands(self.pairs.len() as u64),
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

    fn report(factors: &[f64], bytes: u64) -> TpchCompareReport {
        let pairs = factors.iter().zip(1..).map(|(factor, number)| TpchPair {
            number,
            name: "query",
            ours_ms: 10.0,
            duckdb_ms: 10.0 * factor,
            factor: *factor,
        });
        TpchCompareReport {
            scale: 1.0,
            threads: 2,
            pairs: pairs.collect(),
            total_factor: 1.2,
            mean_factor: 1.1,
            load_seconds: [4.0, 5.0],
            database_bytes: [bytes, 281_000_000],
            differences: Vec::new(),
        }
    }

    #[test]
    fn a_query_that_is_too_slow_and_a_database_that_is_too_large_are_told() {
        let text = report(&[1.5, 0.5], 240_000_000).to_string();
        assert!(text.contains("All bars are met"), "{text}");
        let text = report(&[1.5, 0.3], 260_000_000).to_string();
        assert!(
            text.contains("Missed: size 260 MB (bar 250), Q2 3.3 times DuckDB's time (bar 2.5)"),
            "{text}"
        );
    }
}
