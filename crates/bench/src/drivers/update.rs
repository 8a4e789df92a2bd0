//! What changes cost: small and large transactions over HTTP, updates beside queries, and
//! opening after a kill. Six figures, each beside its bar.

use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::store::{table_of, write_data};
use super::{Bar, BenchError, Binary, ExploreOptions, LoadOptions, RESULTS_JSON, explore, load};
use crate::bsbm::parameters::ParameterPool;
use crate::bsbm::update::Updates;
use crate::bsbm::{Catalog, GenerateOptions};
use crate::http_client::{HttpClient, HttpError};
use crate::report::{Times, with_thousands};

const LOAD_MEMORY: &str = "4G";
/// Quads of a large batch.
const BATCH_QUADS: u64 = 1_000;
/// Quads that one `DELETE`/`INSERT` touches: so many go, so many come.
const TOUCHED_QUADS: u64 = 100_000;
/// Quads in the log when the server is killed.
const LOG_QUADS: u64 = 1_000_000;
/// Settings under which the log is never cut.
const WITHOUT_CHECKPOINTS: [&str; 6] = [
    "--compact-quads",
    "1000000000",
    "--checkpoint-quads",
    "1000000000",
    "--checkpoint-bytes",
    "1T",
];
/// Runs of fdatasync alone.
const SYNC_RUNS: usize = 200;

/// What to measure.
#[derive(Clone, Debug)]
pub struct UpdateBenchOptions {
    /// The BSBM data set that is updated.
    pub data: GenerateOptions,
    /// Where data and databases are kept; databases are removed.
    pub cache: PathBuf,
    /// How long each rate is measured.
    pub seconds: u64,
    /// Mixes of the explore queries, with and without updates.
    pub mixes: u32,
}

/// Everything that was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UpdateReport {
    /// Triples of the BSBM data set.
    pub products: u32,
    /// The figures and their bars.
    pub bars: Vec<Bar>,
    /// `fdatasync` of a short record, alone.
    pub sync: Times,
    /// Single-quad transactions of one client.
    pub one_client: Times,
    /// Explore query mixes an hour, alone.
    pub explore_mixes_per_hour: f64,
    /// The same with an insertion and a deletion before each mix, their time counted.
    pub update_mixes_per_hour: f64,
}

/// Measures. `progress` is told what comes next.
///
/// # Errors
/// When any of it fails.
pub fn update(
    binary: &Binary,
    options: &UpdateBenchOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<UpdateReport, BenchError> {
    let file = |source| BenchError::File {
        path: options.cache.clone(),
        source,
    };
    let home = tempfile::tempdir_in(&options.cache).map_err(file)?;
    let seconds = Duration::from_secs(options.seconds);
    progress("fdatasync alone");
    let sync = sync_alone(home.path()).map_err(file)?;

    progress("single-quad transactions");
    let empty = home.path().join("empty.db");
    make_empty(binary, &empty)?;
    let server = binary.serve(&empty)?;
    let many = rate(server.endpoint(), 64, 1, seconds, "single")?;
    let one_client = one_client(server.endpoint(), seconds)?;
    progress("batches of a thousand quads");
    let batches = rate(server.endpoint(), 4, BATCH_QUADS, seconds, "batch")?;
    progress("DELETE/INSERT of 100,000 quads");
    let modify = modify(server.endpoint())?;
    drop(server);

    progress("reopening after a kill");
    let reopen = reopen(binary, &home.path().join("log.db"))?;

    progress("loading the BSBM data");
    let (alone, beside) = beside_updates(binary, options, home.path(), progress)?;
    let beside_sync = one_client.median_ms - sync.median_ms;
    Ok(UpdateReport {
        products: options.data.products,
        bars: vec![
            Bar::at_least("single-quad transactions, 64 clients", "1/s", many, 5_000.0),
            Bar::at_most("one client, beside its fdatasync", "ms", beside_sync, 1.0),
            Bar::at_least(
                "INSERT DATA of 1,000 quads, 4 clients",
                "quads/s",
                batches,
                200_000.0,
            ),
            Bar::at_most("DELETE/INSERT WHERE of 100,000 quads", "s", modify, 1.0),
            Bar::at_least(
                "BSBM with updates, against without",
                "",
                beside / alone,
                0.8,
            ),
            Bar::at_most(
                "reopening with 1,000,000 quads in the log",
                "s",
                reopen,
                3.0,
            ),
        ],
        sync,
        one_client,
        explore_mixes_per_hour: alone,
        update_mixes_per_hour: beside,
    })
}

fn failed(what: &str) -> impl FnOnce(HttpError) -> BenchError {
    let what = what.to_owned();
    move |source| BenchError::Query { what, source }
}

/// What the disk alone takes for a commit's record.
fn sync_alone(directory: &Path) -> std::io::Result<Times> {
    let mut file = File::create(directory.join("sync"))?;
    let mut runs = Vec::with_capacity(SYNC_RUNS);
    for _ in 0..SYNC_RUNS {
        let start = Instant::now();
        file.write_all(&[7; 200])?;
        file.sync_data()?;
        runs.push(start.elapsed());
    }
    Ok(Times::of(&runs))
}

fn make_empty(binary: &Binary, database: &Path) -> Result<(), BenchError> {
    let path = database.to_string_lossy();
    binary
        .run(&["update", "--db", path.as_ref(), "INSERT DATA {}"])
        .map(drop)
}

/// Quads a second that clients insert, each in transactions of so many.
fn rate(
    endpoint: &str,
    clients: u64,
    quads: u64,
    duration: Duration,
    name: &str,
) -> Result<f64, BenchError> {
    let inserted = AtomicU64::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|client| {
                let inserted = &inserted;
                scope.spawn(move || -> Result<(), BenchError> {
                    let mut connection = HttpClient::new(endpoint)?;
                    let mut body = Vec::new();
                    let mut number = 0;
                    while start.elapsed() < duration {
                        let text = batch(&format!("{name}/{client}"), number, quads);
                        connection.update(&text, &mut body).map_err(failed(name))?;
                        number += quads;
                        inserted.fetch_add(quads, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap_or_else(|_| {
                Err(BenchError::Result {
                    what: format!("a client of {name} panicked"),
                })
            })?;
        }
        Ok::<_, BenchError>(())
    })?;
    Ok(inserted.into_inner() as f64 / start.elapsed().as_secs_f64())
}

/// Quads that nobody has inserted before: ten of each subject.
fn batch(name: &str, first: u64, quads: u64) -> String {
    use fmt::Write;
    let mut text = String::with_capacity(32 + quads as usize * 100);
    text.push_str("INSERT DATA {\n");
    for number in first..first + quads {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "<http://example.com/{name}/{}> <http://example.com/property/{}> \"value {number} of {name}\" .",
            number / 10,
            number % 10
        );
    }
    text.push('}');
    text
}

fn one_client(endpoint: &str, duration: Duration) -> Result<Times, BenchError> {
    let mut connection = HttpClient::new(endpoint)?;
    let mut body = Vec::new();
    let mut runs = Vec::new();
    let start = Instant::now();
    for number in 0.. {
        if start.elapsed() >= duration {
            break;
        }
        let text = batch("one", number, 1);
        let begin = Instant::now();
        connection
            .update(&text, &mut body)
            .map_err(failed("one client"))?;
        runs.push(begin.elapsed());
    }
    Ok(Times::of(&runs))
}

/// Seconds of an update that replaces half of its quads by others.
fn modify(endpoint: &str) -> Result<f64, BenchError> {
    let mut connection = HttpClient::new(endpoint)?;
    let mut body = Vec::new();
    for first in (0..TOUCHED_QUADS / 2).step_by(10_000) {
        let text: String = (first..first + 10_000)
            .map(|n| format!("<http://example.com/m/{n}> <http://example.com/old> {n} .\n"))
            .collect();
        let text = format!("INSERT DATA {{\n{text}}}");
        connection
            .update(&text, &mut body)
            .map_err(failed("the data to be changed"))?;
    }
    let start = Instant::now();
    let text = "DELETE { ?s <http://example.com/old> ?n } INSERT { ?s <http://example.com/new> ?n } \
                WHERE { ?s <http://example.com/old> ?n }";
    connection
        .update(text, &mut body)
        .map_err(failed("DELETE/INSERT"))?;
    Ok(start.elapsed().as_secs_f64())
}

/// Seconds until a killed server answers again.
fn reopen(binary: &Binary, database: &Path) -> Result<f64, BenchError> {
    make_empty(binary, database)?;
    let server = binary.serve_with(database, &WITHOUT_CHECKPOINTS)?;
    let mut connection = HttpClient::new(server.endpoint())?;
    let mut body = Vec::new();
    for first in (0..LOG_QUADS).step_by(10_000) {
        connection
            .update(&batch("log", first, 10_000), &mut body)
            .map_err(failed("filling the log"))?;
    }
    // Ends it by SIGKILL.
    drop(server);
    let start = Instant::now();
    let server = binary.serve_with(database, &WITHOUT_CHECKPOINTS)?;
    let mut connection = HttpClient::new(server.endpoint())?;
    let count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
    connection
        .query(count, RESULTS_JSON, &mut body)
        .map_err(failed("the count after reopening"))?;
    let seconds = start.elapsed().as_secs_f64();
    let expected = format!("\"{LOG_QUADS}\"");
    match String::from_utf8_lossy(&body).contains(&expected) {
        true => Ok(seconds),
        false => Err(BenchError::Result {
            what: format!("the count after reopening is not {LOG_QUADS}"),
        }),
    }
}

/// Explore mixes an hour without and with updates.
fn beside_updates(
    binary: &Binary,
    options: &UpdateBenchOptions,
    home: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(f64, f64), BenchError> {
    let name = format!("bsbm-{}-{}.nt", options.data.products, options.data.seed);
    let data = options.cache.join(name);
    write_data(&options.data, &data)?;
    let database = home.join("bsbm.db");
    load(
        binary,
        &LoadOptions {
            database: database.clone(),
            files: vec![data],
            memory: LOAD_MEMORY.to_owned(),
        },
    )?;
    let server = binary.serve(&database)?;
    let pool = ParameterPool::from_catalog(&Catalog::new(&options.data))?;
    let explore_options = ExploreOptions {
        mixes: options.mixes,
        pool: Some(pool),
        ..ExploreOptions::new(server.endpoint())
    };
    progress("BSBM explore alone");
    let alone = explore(&explore_options)?.query_mixes_per_hour;
    progress("BSBM explore and update");
    let mut updates = Updates::new(&options.data, options.mixes);
    let beside = super::mixed::explore_and_update(&explore_options, &mut updates)?;
    Ok((alone, beside))
}

impl fmt::Display for UpdateReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        table_of(&self.bars).fmt(formatter)?;
        writeln!(
            formatter,
            "one client {:.2} ms (median), fdatasync alone {:.2} ms; \
             BSBM with {} products: {} mixes an hour alone, {} with updates",
            self.one_client.median_ms,
            self.sync.median_ms,
            with_thousands(u64::from(self.products)),
            with_thousands(self.explore_mixes_per_hour.round() as u64),
            with_thousands(self.update_mixes_per_hour.round() as u64),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_quads_of_their_own() {
        let (first, second) = (batch("x", 0, 10), batch("x", 10, 10));
        assert_eq!(first.matches(" .\n").count(), 10);
        assert!(first.contains("value 9 of x") && !first.contains("value 10 of x"));
        assert!(second.contains("/x/1> "));
    }
}
