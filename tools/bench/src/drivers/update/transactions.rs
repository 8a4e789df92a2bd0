//! Small and large transactions over HTTP, and opening after a kill.

use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::super::{Bar, BenchError, Binary, RESULTS_JSON};
use super::failures::{at, failed};
use crate::http_client::HttpClient;
use crate::report::Times;

/// Quads of a large batch.
const BATCH_QUADS: u64 = 1_000;
/// Quads that one `DELETE`/`INSERT` touches: so many go, so many come.
const TOUCHED_QUADS: u64 = 100_000;
/// Quads in the log when the server is killed.
const LOG_QUADS: u64 = 1_000_000;
/// Settings under which the log is never cut.
pub(super) const WITHOUT_CHECKPOINTS: [&str; 6] = [
    "--compact-quads",
    "1000000000",
    "--checkpoint-quads",
    "1000000000",
    "--checkpoint-bytes",
    "1T",
];
/// Runs of fdatasync alone.
const SYNC_RUNS: usize = 200;

/// Transactions without anybody who reads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransactionReport {
    /// `fdatasync` of a short record, alone.
    pub sync: Times,
    /// Single-quad transactions of one client.
    pub one_client: Times,
    /// Single-quad transactions of 64 clients, a second.
    pub singles_per_second: f64,
    /// Quads a second of four clients that insert a thousand at a time.
    pub batch_quads_per_second: f64,
    /// A `DELETE`/`INSERT` that touches 100,000 quads.
    pub modify_seconds: f64,
    /// From the start of a killed server with a million quads in its log to its first answer.
    pub reopen_seconds: f64,
}

impl TransactionReport {
    pub(super) fn bars(&self) -> [Bar; 5] {
        let beside_sync = self.one_client.median_ms - self.sync.median_ms;
        [
            Bar::at_least(
                "single-quad transactions, 64 clients",
                "1/s",
                self.singles_per_second,
                5_000.0,
            ),
            Bar::at_most("one client, beside its fdatasync", "ms", beside_sync, 1.0),
            Bar::at_least(
                "INSERT DATA of 1,000 quads, 4 clients",
                "quads/s",
                self.batch_quads_per_second,
                200_000.0,
            ),
            Bar::at_most(
                "DELETE/INSERT WHERE of 100,000 quads",
                "s",
                self.modify_seconds,
                1.0,
            ),
            Bar::at_most(
                "reopening with 1,000,000 quads in the log",
                "s",
                self.reopen_seconds,
                3.0,
            ),
        ]
    }
}

/// Measures all of it in a directory.
pub(super) fn transactions(
    binary: &Binary,
    home: &Path,
    seconds: Duration,
    progress: &mut dyn FnMut(&str),
) -> Result<TransactionReport, BenchError> {
    progress("fdatasync alone");
    let sync = sync_alone(home).map_err(at(home))?;
    progress("single-quad transactions");
    let empty = home.join("empty.db");
    make_empty(binary, &empty)?;
    let server = binary.serve(&empty)?;
    let singles_per_second = rate(server.endpoint(), 64, 1, seconds, "single")?;
    let one_client = one_client(server.endpoint(), seconds)?;
    progress("batches of a thousand quads");
    let batch_quads_per_second = rate(server.endpoint(), 4, BATCH_QUADS, seconds, "batch")?;
    progress("DELETE/INSERT of 100,000 quads");
    let modify_seconds = modify(server.endpoint())?;
    drop(server);
    progress("reopening after a kill");
    let reopen_seconds = reopen(binary, &home.join("log.db"))?;
    Ok(TransactionReport {
        sync,
        one_client,
        singles_per_second,
        batch_quads_per_second,
        modify_seconds,
        reopen_seconds,
    })
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
