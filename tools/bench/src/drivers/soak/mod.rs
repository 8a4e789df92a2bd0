//! The soak test: clients of every kind for hours, without faults, wrong answers or growing memory.
//!
//! ```text
//! static data    BSBM in the default graph: each question about it is asked once at the beginning, and compared from then on
//! rings          each client changes its own, in a graph and in a table, by SPARQL, the graph store and SQL (`changes`)
//!                -> what it was after which commit is in a journal (`model`)
//! questions      of all clients about all rings, now and at old states: each answer names its commit, and has to be what the journal has
//!                for it, as far as who asks may see it (`questions`)
//! limits         of some users, and of unknown askers: 429, parts of answers; what is no stated limit ends the run (`verdict`)
//! memory         of the server, each second (`memory`); the figures of its pools and caches in `/metrics`,
//!                at half-time and at the end (`figures`)
//! upkeep         checkpoints and compactions that administrators ask for: the rings are too small for the server to compact by itself
//! ```
//!
//! At the end the server is killed amid the work and opened anew: each ring has to be what was
//! acknowledged last, or what the change under way at that time would have made of it.
//!
//! With `heavy` some of the clients ask nothing but queries that need more memory than there is;
//! what they answer is not compared.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::binary::{Binary, ServerProcess};
use super::load::{LoadOptions, load};
use super::store::{LOAD_MEMORY, table_of, write_data};
use super::{Bar, BenchError};
use crate::http_client::{HttpClient, Request};
use crate::report::{Table, Times, with_thousands};

mod changes;
mod client;
mod figures;
mod lock;
mod memory;
mod model;
mod options;
mod places;
mod questions;
mod setup;
mod shared;
mod verdict;

pub use figures::Figure;
pub use memory::MemoryReport;
pub use options::SoakOptions;

use client::Client;
use figures::Figures;
use lock::lock;
use memory::Samples;
use places::{Place, Role};
use questions::Question;
use setup::PASSWORD;
use shared::Soak;
use verdict::Kind;

/// From so many seconds on memory has to be flat over the last half. What is shorter fills caches,
/// logs and old states all the while, and the memory of requests under way comes and goes by a
/// tenth within minutes: runs of 600 s told growths from -14 to +13 % where there was none over an
/// hour.
const FLAT_SECONDS_MIN: u64 = 3_000;
/// Over the last half of the run.
const GROWTH_PERCENT_MAX: f64 = 1.0;
/// The server may hold so many times its `--memory`.
const PEAK_MAX: f64 = 1.1;
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
const MIB: f64 = (1 << 20) as f64;

/// How often something was done, and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SoakCount {
    /// What.
    pub what: &'static str,
    /// How it ended.
    pub ended: &'static str,
    /// How long it took.
    #[serde(flatten)]
    pub times: Times,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SoakReport {
    /// The figures that are held to something.
    pub bars: Vec<Bar>,
    /// By what was done.
    pub counts: Vec<SoakCount>,
    /// Answers that were compared with what they had to be.
    pub checked: u64,
    /// Changes that were acknowledged.
    pub commits: u64,
    /// The server's memory.
    pub memory: MemoryReport,
    /// What `/metrics` said at half-time and at the end; nothing if it said nothing.
    pub figures: Vec<Figure>,
    /// What ended the run, if something did, with the request.
    pub failure: Option<String>,
}

impl SoakReport {
    /// Whether nothing failed and all bars are met.
    pub fn is_clean(&self) -> bool {
        self.failure.is_none() && self.bars.iter().all(|bar| bar.is_met)
    }
}

/// Soaks. `progress` is told what comes next.
///
/// # Errors
/// When it cannot be set up. What fails later is in the report.
pub fn soak(
    binary: &Binary,
    options: &SoakOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<SoakReport, BenchError> {
    let file = |source| BenchError::File {
        path: options.cache.clone(),
        source,
    };
    std::fs::create_dir_all(&options.cache).map_err(file)?;
    let name = format!("bsbm-{}-{}.nt", options.data.products, options.data.seed);
    let data = options.cache.join(name);
    progress("data");
    write_data(&options.data, &data)?;
    let home = tempfile::tempdir_in(&options.cache).map_err(file)?;
    let database = home.path().join("soak.db");
    progress("load");
    load(
        binary,
        &LoadOptions {
            database: database.clone(),
            files: vec![data],
            memory: LOAD_MEMORY.to_owned(),
        },
    )?;
    let key = setup::add_users(&database)?;
    let memory = options.memory_bytes.to_string();
    let log = home.path().join("queries").to_string_lossy().into_owned();
    let audit = home
        .path()
        .join("audit.jsonl")
        .to_string_lossy()
        .into_owned();
    // Checkpoints come by themselves, and logs are written, as in a server that is looked after.
    let arguments = [
        "--memory",
        &memory,
        "--query-log",
        &log,
        "--audit-log",
        &audit,
        "--checkpoint-quads",
        "20000",
        "--compact-quads",
        "40000",
    ];
    let mut server = binary.serve_with(&database, &arguments)?;
    progress("the first answers");
    let soak = Soak::prepare(server.endpoint(), key, options)?;
    progress("clients");
    let (samples, figures) = soak.run(options, &mut server);
    drop(server);
    progress("opening it again after the kill");
    let server = binary.serve_with(&database, &arguments)?;
    let mut failure = lock(&soak.failure).take();
    if failure.is_none() {
        let checked = soak.check_after_reopening(server.endpoint());
        failure = checked.err().map(|what| format!("after the kill: {what}"));
    }
    Ok(soak.report(options, &samples, figures, failure))
}

impl Soak {
    /// Lets all clients work, and looks at the server's memory. At the end the server is killed,
    /// while they still work.
    fn run(&self, options: &SoakOptions, server: &mut ServerProcess) -> (Samples, Vec<Figure>) {
        let process = server.process();
        let mut samples = Samples::default();
        let mut half_time = None;
        let mut figures = Vec::new();
        std::thread::scope(|scope| {
            for number in 0..self.clients {
                scope.spawn(move || match Client::new(self, number) {
                    Ok(client) => client.run(),
                    Err(what) => self.fail(what),
                });
            }
            let start = Instant::now();
            let whole = Duration::from_secs(options.seconds);
            let mut failure = lock(&self.failure);
            while failure.is_none() && start.elapsed() < whole {
                samples.take(process, start.elapsed().as_secs_f64());
                if half_time.is_none() && start.elapsed() >= whole / 2 {
                    half_time = Some(self.figures());
                }
                let left = whole.saturating_sub(start.elapsed()).min(SAMPLE_INTERVAL);
                failure = match self.failed.wait_timeout(failure, left) {
                    Ok((failure, _)) => failure,
                    Err(poisoned) => poisoned.into_inner().0,
                };
            }
            drop(failure);
            figures = Figures::compared(&half_time.unwrap_or_default(), &self.figures());
            self.is_over.store(true, Ordering::SeqCst);
            server.kill();
        });
        (samples, figures)
    }

    /// What `/metrics` says now; nothing where it is not answered.
    fn figures(&self) -> Figures {
        let page = self.connect(Role::Administrator).and_then(|mut root| {
            root.send(&Request {
                method: "GET",
                path: "/metrics".to_owned(),
                ..Request::default()
            })
        });
        match page {
            Ok(page) if page.status == 200 => Figures::of(&String::from_utf8_lossy(&page.body)),
            Ok(_) | Err(_) => Figures::default(),
        }
    }

    /// What was acknowledged is there.
    fn check_after_reopening(&self, endpoint: &str) -> Result<(), String> {
        let client = HttpClient::new(endpoint).map_err(|error| error.to_string())?;
        let mut root = client.with_password(Role::Administrator.user(), PASSWORD);
        for number in 0..self.clients {
            for (ring, question) in [
                (number, Question::List(Place::of(number))),
                (self.clients + number, Question::TableList(number)),
            ] {
                let answer = root
                    .send(&question.request(""))
                    .map_err(|error| error.to_string())?;
                let commit = verdict::commit_of(&answer)?;
                if commit < self.journal.floor() {
                    return Err(format!(
                        "its last commit is {commit}, acknowledged were {}",
                        self.journal.floor()
                    ));
                }
                let body = String::from_utf8_lossy(&answer.body);
                let mut lines: Vec<&str> = body.lines().collect();
                lines.sort_unstable();
                let last = self.journal.last(ring, commit);
                let states = std::iter::once(last.acknowledged).chain(last.pending);
                let mut expected = states.filter_map(|members| {
                    let members = |_: usize| Some(members.clone());
                    question.expected(
                        Role::Administrator,
                        self.clients,
                        &self.statics.products,
                        &members,
                        &members,
                    )
                });
                if !expected.any(|expected| expected == lines) {
                    return Err(format!(
                        "{question:?} is not what was acknowledged up to commit {commit}, nor what was under way: {body}"
                    ));
                }
                self.checked();
            }
        }
        for asked in &self.statics.explore {
            let answer = root
                .send(&asked.request)
                .map_err(|error| error.to_string())?;
            asked.check(&String::from_utf8_lossy(&answer.body), false)?;
            self.checked();
        }
        Ok(())
    }

    fn report(
        &self,
        options: &SoakOptions,
        samples: &Samples,
        figures: Vec<Figure>,
        failure: Option<String>,
    ) -> SoakReport {
        let memory = samples.report();
        let peak_mib = memory.peak_bytes as f64 / MIB;
        let checked = self.checked.load(Ordering::Relaxed);
        let mut bars = vec![
            Bar::at_most(
                "faults and wrong answers",
                "",
                f64::from(u8::from(failure.is_some())),
                0.0,
            ),
            Bar::at_most(
                "anonymous memory, at most",
                "MiB",
                peak_mib,
                options.memory_bytes as f64 / MIB * PEAK_MAX,
            ),
        ];
        if options.heavy < options.clients {
            bars.push(Bar::at_least("answers compared", "", checked as f64, 1.0));
        }
        if self.compacts() {
            let compactions = self.done(Kind::Compaction) as f64;
            bars.push(Bar::at_least("compactions", "", compactions, 1.0));
        }
        if options.seconds >= FLAT_SECONDS_MIN && options.heavy == 0 {
            let what = "growth of it over the last half";
            bars.push(Bar::at_most(
                what,
                "%",
                memory.growth_percent,
                GROWTH_PERCENT_MAX,
            ));
        }
        let counts = lock(&self.counts);
        let counts = counts.iter().map(|((kind, ended), times)| SoakCount {
            what: kind.shown(),
            ended: ended.shown(),
            times: Times::of(times),
        });
        SoakReport {
            bars,
            counts: counts.collect(),
            checked,
            commits: self.journal.commits(),
            memory,
            figures,
            failure,
        }
    }
}

impl fmt::Display for SoakReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(["what", "ended", "times", "median ms", "p95 ms", "max ms"]);
        for count in &self.counts {
            table.row([
                count.what.to_owned(),
                count.ended.to_owned(),
                with_thousands(count.times.runs as u64),
                format!("{:.1}", count.times.median_ms),
                format!("{:.1}", count.times.p95_ms),
                format!("{:.1}", count.times.max_ms),
            ]);
        }
        table.fmt(formatter)?;
        writeln!(
            formatter,
            "\n{} commits, {} answers compared\nanonymous memory: at most {:.0} MiB, {:.0} MiB in the mean of the last half, growth over it {:+.2} %\n",
            with_thousands(self.commits),
            with_thousands(self.checked),
            self.memory.peak_bytes as f64 / MIB,
            self.memory.mean_bytes as f64 / MIB,
            self.memory.growth_percent,
        )?;
        if !self.figures.is_empty() {
            figures::table(&self.figures).fmt(formatter)?;
            writeln!(formatter)?;
        }
        table_of(&self.bars).fmt(formatter)?;
        match &self.failure {
            Some(failure) => writeln!(formatter, "\n{failure}"),
            None => Ok(()),
        }
    }
}
