//! The soak test of updates: readers and writers beside checkpoints, compactions and loads. Nobody
//! may get an error or a wrong answer.
//!
//! ```text
//! writers       transfers between accounts, one transaction each: the sum of all balances stays
//! turnover      a new graph of 500 quads comes and an old one goes, in one transaction
//! loader        20,000 quads into a graph of their own, through the bulk path
//! maintenance   checkpoint, compaction, checkpoint, ... as fast as they go
//! readers       queries whose answers are known whatever the order of the others (see `checks`)
//! ```
//!
//! At the end the server is killed and opened anew, and all acknowledged transfers must be there.

use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::store::table_of;
use super::{Bar, BenchError, Binary, LoadOptions, load};
use crate::http_client::HttpClient;
use crate::report::{Times, with_thousands};
use orrery_bsbm::Random;

mod checks;
mod shape;

use checks::Check;
use shape::{ACCOUNTS, BALANCE, FILLER_QUADS, LOAD_QUADS, TURNOVER_GRAPHS, TURNOVER_QUADS};

/// Bulk loads grow the database; so many are enough.
const LOADS_MAX: u64 = 100;
/// Failures that are told in full.
const FAILURES_TOLD: usize = 10;

/// How to soak.
#[derive(Clone, Debug)]
pub struct SoakUpdatesOptions {
    /// Where the database is made; it is removed at the end.
    pub cache: PathBuf,
    /// For how long.
    pub seconds: u64,
    /// Clients that query.
    pub readers: u32,
    /// Clients that transfer.
    pub writers: u32,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SoakUpdatesReport {
    /// The figures that have to be nought.
    pub bars: Vec<Bar>,
    /// Queries, from the first byte sent to the last received.
    pub reads: Times,
    /// Transfers.
    pub writes: Times,
    /// Checkpoints that were asked for and made.
    pub checkpoints: u64,
    /// Compactions that were asked for and made.
    pub compactions: u64,
    /// Bulk loads.
    pub loads: Times,
    /// The first failures.
    pub failures: Vec<String>,
}

impl SoakUpdatesReport {
    /// Whether there was no failure.
    pub fn is_clean(&self) -> bool {
        self.bars.iter().all(|bar| bar.is_met)
    }
}

/// What all threads share.
struct Soak {
    endpoint: String,
    until: Instant,
    is_over: AtomicBool,
    transfers: AtomicU64,
    turnovers: AtomicU64,
    failed_reads: AtomicU64,
    wrong_answers: AtomicU64,
    failed_writes: AtomicU64,
    failed_maintenance: AtomicU64,
    checkpoints: AtomicU64,
    compactions: AtomicU64,
    reads: Mutex<Vec<Duration>>,
    writes: Mutex<Vec<Duration>>,
    loads: Mutex<Vec<Duration>>,
    failures: Mutex<Vec<String>>,
}

/// Soaks. `progress` is told what comes next.
///
/// # Errors
/// When it cannot be set up. What fails later is counted.
pub fn soak_updates(
    binary: &Binary,
    options: &SoakUpdatesOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<SoakUpdatesReport, BenchError> {
    let file = |source| BenchError::File {
        path: options.cache.clone(),
        source,
    };
    let home = tempfile::tempdir_in(&options.cache).map_err(file)?;
    let data = home.path().join("accounts.nt");
    write_accounts(&data).map_err(file)?;
    let database = home.path().join("soak.db");
    progress("loading the accounts");
    load(
        binary,
        &LoadOptions {
            database: database.clone(),
            files: vec![data],
            memory: "1G".to_owned(),
        },
    )?;
    // Small limits: checkpoints and compactions come by themselves, too.
    let limits = ["--checkpoint-quads", "20000", "--compact-quads", "40000"];
    let server = binary.serve_with(&database, &limits)?;
    progress("readers, writers, loads, checkpoints and compactions");
    let soak = Soak::new(server.endpoint(), options.seconds);
    soak.turn_over_first_graphs()?;
    soak.run(binary, options, home.path());
    // By SIGKILL, as all servers of these drivers.
    drop(server);
    progress("opening it again after the kill");
    let server = binary.serve_with(&database, &limits)?;
    soak.check_after_reopening(server.endpoint())?;
    Ok(soak.report())
}

fn write_accounts(path: &Path) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for account in 0..ACCOUNTS {
        writeln!(
            file,
            "<urn:account:{account}> <urn:balance> \"{BALANCE}\"^^<http://www.w3.org/2001/XMLSchema#integer> ."
        )?;
    }
    for number in 0..FILLER_QUADS {
        writeln!(
            file,
            "<urn:filler:{}> <urn:about:{}> \"text {number} of the filler\" .",
            number / 10,
            number % 10
        )?;
    }
    file.flush()
}

impl Soak {
    fn new(endpoint: &str, seconds: u64) -> Self {
        Self {
            endpoint: endpoint.to_owned(),
            until: Instant::now() + Duration::from_secs(seconds),
            is_over: AtomicBool::new(false),
            transfers: AtomicU64::new(0),
            turnovers: AtomicU64::new(0),
            failed_reads: AtomicU64::new(0),
            wrong_answers: AtomicU64::new(0),
            failed_writes: AtomicU64::new(0),
            failed_maintenance: AtomicU64::new(0),
            checkpoints: AtomicU64::new(0),
            compactions: AtomicU64::new(0),
            reads: Mutex::default(),
            writes: Mutex::default(),
            loads: Mutex::default(),
            failures: Mutex::default(),
        }
    }

    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed) && Instant::now() < self.until
    }

    fn fail(&self, counter: &AtomicU64, what: String) {
        counter.fetch_add(1, Ordering::Relaxed);
        let mut failures = lock(&self.failures);
        if failures.len() < FAILURES_TOLD {
            failures.push(what);
        }
    }

    fn run(&self, binary: &Binary, options: &SoakUpdatesOptions, home: &Path) {
        thread::scope(|scope| {
            for number in 0..options.readers {
                scope.spawn(move || self.read(number));
            }
            for number in 0..options.writers {
                scope.spawn(move || self.transfer(number));
            }
            scope.spawn(|| self.turn_over());
            scope.spawn(|| self.maintain());
            scope.spawn(|| self.load(binary, home));
        });
    }

    /// Asks one question after the other; a failure does not end it.
    fn read(&self, number: u32) {
        let Ok(mut client) = HttpClient::new(&self.endpoint) else {
            return self.fail(&self.failed_reads, "no client".to_owned());
        };
        let mut times = Vec::new();
        for check in Check::ALL.into_iter().cycle().skip(number as usize) {
            if !self.goes_on() {
                break;
            }
            let acknowledged = self.transfers.load(Ordering::SeqCst);
            let mut body = Vec::new();
            let start = Instant::now();
            let answered = client.query(check.text(), super::RESULTS_JSON, &mut body);
            times.push(start.elapsed());
            match answered {
                Err(error) => self.fail(&self.failed_reads, format!("{check:?}: {error}")),
                Ok(()) => {
                    if let Err(what) = check.look_at(&body, acknowledged) {
                        self.fail(&self.wrong_answers, format!("{check:?}: {what}"));
                    }
                }
            }
        }
        lock(&self.reads).extend(times);
    }

    /// Moves money.
    fn transfer(&self, writer: u32) {
        let mut random = Random::new(u64::from(writer) + 1);
        let mut times = Vec::new();
        let mut number = 0;
        while self.goes_on() {
            let from = random.below(ACCOUNTS);
            let to = (from + random.between(1, ACCOUNTS - 1)) % ACCOUNTS;
            let amount = random.between(1, 10);
            number += 1;
            let name = format!("urn:transfer:{writer}:{number}");
            let text = format!(
                "DELETE {{ ?from <urn:balance> ?x . ?to <urn:balance> ?y }} \
                 INSERT {{ ?from <urn:balance> ?less . ?to <urn:balance> ?more . \
                 <{name}> <urn:from> ?from ; <urn:to> ?to ; <urn:note> \"transfer {number} by {writer}\" }} \
                 WHERE {{ VALUES (?from ?to) {{ (<urn:account:{from}> <urn:account:{to}>) }} \
                 ?from <urn:balance> ?x . ?to <urn:balance> ?y . \
                 BIND(?x - {amount} AS ?less) BIND(?y + {amount} AS ?more) }}"
            );
            if self.update(&text, &mut times) {
                self.transfers.fetch_add(1, Ordering::SeqCst);
            }
        }
        lock(&self.writes).extend(times);
    }

    /// On a connection of its own, as short-lived clients do. Whether it was acknowledged.
    fn update(&self, text: &str, times: &mut Vec<Duration>) -> bool {
        let start = Instant::now();
        let done = HttpClient::new(&self.endpoint)
            .and_then(|mut client| client.update(text, &mut Vec::new()));
        times.push(start.elapsed());
        if let Err(error) = &done {
            self.fail(&self.failed_writes, error.to_string());
        }
        done.is_ok()
    }

    fn turn_over_first_graphs(&self) -> Result<(), BenchError> {
        let mut client = HttpClient::new(&self.endpoint)?;
        for _ in 0..TURNOVER_GRAPHS {
            let text = turnover(self.turnovers.fetch_add(1, Ordering::Relaxed));
            client.update(&text, &mut Vec::new())?;
        }
        Ok(())
    }

    fn turn_over(&self) {
        let mut times = Vec::new();
        while self.goes_on() {
            let text = turnover(self.turnovers.fetch_add(1, Ordering::Relaxed));
            self.update(&text, &mut times);
        }
        lock(&self.writes).extend(times);
    }

    fn maintain(&self) {
        let paths = [
            ("checkpoint", &self.checkpoints),
            ("compact", &self.compactions),
        ];
        for (path, counter) in paths.into_iter().cycle() {
            if !self.goes_on() {
                break;
            }
            let endpoint = self.endpoint.replace("/sparql", &format!("/{path}"));
            let done = HttpClient::new(&endpoint)
                .and_then(|mut client| client.update("", &mut Vec::new()));
            match done {
                Ok(()) => drop(counter.fetch_add(1, Ordering::Relaxed)),
                Err(error) => self.fail(&self.failed_maintenance, format!("{path}: {error}")),
            }
        }
    }

    fn load(&self, binary: &Binary, home: &Path) {
        let server = self.endpoint.replace("/sparql", "");
        let mut times = Vec::new();
        for number in 0..LOADS_MAX {
            if !self.goes_on() {
                break;
            }
            let path = home.join("load.nt");
            let graph = format!("urn:load:{number}");
            let arguments = [
                "load",
                "--server",
                &server,
                "--graph",
                &graph,
                &path.to_string_lossy(),
            ]
            .map(str::to_owned);
            let start = Instant::now();
            let done = write_load(&path, number)
                .map_err(|error| error.to_string())
                .and_then(|()| binary.run(&arguments).map_err(|error| error.to_string()));
            times.push(start.elapsed());
            if let Err(error) = done {
                self.fail(&self.failed_maintenance, format!("load: {error}"));
            }
        }
        lock(&self.loads).extend(times);
    }

    /// What was acknowledged is there, and the sums are right.
    fn check_after_reopening(&self, endpoint: &str) -> Result<(), BenchError> {
        let mut client = HttpClient::new(endpoint)?;
        let transfers = self.transfers.load(Ordering::SeqCst);
        for check in Check::ALL {
            let mut body = Vec::new();
            match client.query(check.text(), super::RESULTS_JSON, &mut body) {
                Err(error) => self.fail(&self.failed_reads, format!("{check:?}: {error}")),
                Ok(()) => {
                    if let Err(what) = check.look_at(&body, transfers) {
                        let what = format!("after the kill, {check:?}: {what}");
                        self.fail(&self.wrong_answers, what);
                    }
                }
            }
        }
        Ok(())
    }

    fn report(&self) -> SoakUpdatesReport {
        let nought = |what: &str, counter: &AtomicU64| {
            Bar::at_most(what, "", counter.load(Ordering::SeqCst) as f64, 0.0)
        };
        SoakUpdatesReport {
            bars: vec![
                nought("failed reads", &self.failed_reads),
                nought("wrong answers", &self.wrong_answers),
                nought("failed writes", &self.failed_writes),
                nought(
                    "failed checkpoints, compactions, loads",
                    &self.failed_maintenance,
                ),
            ],
            reads: Times::of(&lock(&self.reads)),
            writes: Times::of(&lock(&self.writes)),
            checkpoints: self.checkpoints.load(Ordering::SeqCst),
            compactions: self.compactions.load(Ordering::SeqCst),
            loads: Times::of(&lock(&self.loads)),
            failures: lock(&self.failures).clone(),
        }
    }
}

/// A new graph comes, and one of the older ones goes.
fn turnover(number: u64) -> String {
    use fmt::Write;
    let mut text = format!("INSERT DATA {{ GRAPH <urn:turnover:{number}> {{\n");
    for quad in 0..TURNOVER_QUADS {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "<urn:item:{number}:{quad}> <urn:turned> \"item {quad} of {number}\" ."
        );
    }
    text.push_str("} }");
    if let Some(old) = number.checked_sub(TURNOVER_GRAPHS) {
        let _ = write!(text, " ;\nDROP GRAPH <urn:turnover:{old}>");
    }
    text
}

fn write_load(path: &Path, number: u64) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for quad in 0..LOAD_QUADS {
        writeln!(
            file,
            "<urn:loaded:{number}:{quad}> <urn:loads> \"value {quad} of load {number}\" ."
        )?;
    }
    file.flush()
}

/// A thread that panicked leaves its figures as they were.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl fmt::Display for SoakUpdatesReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        table_of(&self.bars).fmt(formatter)?;
        for (what, times) in [
            ("reads", &self.reads),
            ("writes", &self.writes),
            ("bulk loads", &self.loads),
        ] {
            writeln!(
                formatter,
                "{} {what}: median {:.1} ms, 95 % within {:.1} ms, the longest {:.1} ms",
                with_thousands(times.runs as u64),
                times.median_ms,
                times.p95_ms,
                times.max_ms
            )?;
        }
        writeln!(
            formatter,
            "{} checkpoints and {} compactions by hand",
            self.checkpoints, self.compactions
        )?;
        for failure in &self.failures {
            writeln!(formatter, "{failure}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turnover_brings_one_graph_and_removes_another() {
        assert!(!turnover(0).contains("DROP"));
        let text = turnover(TURNOVER_GRAPHS);
        assert!(text.ends_with("DROP GRAPH <urn:turnover:0>"));
        assert_eq!(text.matches(" .\n").count() as u64, TURNOVER_QUADS);
    }
}
