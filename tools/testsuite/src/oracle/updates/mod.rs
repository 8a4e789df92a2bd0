//! The oracle of updates: random requests against a model of sets of quads.
//!
//! ```text
//!   seed -> data set, endpoints -> requests of some operations
//!     ours:   one transaction a request, other endpoints (in memory) asked between two turns; now and then a
//!             checkpoint, a compaction with commits beside it, a request that is rolled back
//!     model:  spargebra's operations over a set of quads; WHERE by the reference, SERVICE as GRAPH over the endpoint's data
//!   after each request: the same quads.   At the end: the state after each commit that is still kept is what it was then.
//! ```
//!
//! Under rules ([`under_rules`]) updates over all quads are compared with those over what their
//! author sees.

mod model;
mod requests;
mod store;
mod under_rules;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use self::model::{Failure, Model, State};
use self::store::ChangingStore;
pub use self::under_rules::UpdatesUnderRules;
pub(super) use self::under_rules::updates_under_rules;
use super::data::{DataSet, Kind};
use super::grammar::PREFIXES;
use super::random::Random;
use super::threads::on_threads;
use crate::Error;

/// Requests of one case.
const REQUESTS_MAX: usize = 10;
/// What has another seed than queries have.
const SEED_OF_UPDATES: u64 = 0x0bda_7e5e;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct UpdateOptions {
    /// How many cases, each a database with some requests.
    pub cases: u64,
    /// Another seed, other cases.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
    /// Differences after which the run ends.
    pub differences_max: usize,
}

/// What became of a run.
#[derive(Clone, Debug, Default)]
pub struct UpdateReport {
    /// Requests that were compared.
    pub requests: u64,
    /// Those that changed something.
    pub changed: u64,
    /// Those that asked other endpoints.
    pub with_service: u64,
    /// Those that both sides refused.
    pub refused: u64,
    /// Those that the model could not answer, because a `WHERE` has too many solutions.
    pub left_out: u64,
    /// Compactions.
    pub compactions: u64,
    /// Commits that were made while a compaction was under way.
    pub beside_compactions: u64,
    /// Old states that were compared.
    pub old_states: u64,
    /// Old states that are not kept any more.
    pub forgotten_states: u64,
    /// What differed.
    pub differences: Vec<String>,
}

impl UpdateReport {
    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.changed += other.changed;
        self.with_service += other.with_service;
        self.refused += other.refused;
        self.left_out += other.left_out;
        self.compactions += other.compactions;
        self.beside_compactions += other.beside_compactions;
        self.old_states += other.old_states;
        self.forgotten_states += other.forgotten_states;
        self.differences.extend(other.differences);
    }
}

/// Runs the oracle of updates; `progress` is called after each case with the number of cases done.
pub fn run_updates(
    options: UpdateOptions,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<UpdateReport, Error> {
    let next = AtomicU64::new(0);
    let done = AtomicU64::new(0);
    let report = Mutex::new(UpdateReport::default());
    let work = || -> Result<(), Error> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= options.cases {
                return Ok(());
            }
            let of_case = Case::new(options.seed, number)?.run()?;
            let Ok(mut report) = report.lock() else {
                return Ok(());
            };
            report.add(of_case);
            if report.differences.len() >= options.differences_max {
                next.store(options.cases, Ordering::Relaxed);
            }
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    on_threads(options.threads, work)?;
    report
        .into_inner()
        .map_err(|_| Error::Reference("a thread panicked".to_owned()))
}

/// A database, its model, and what has happened to both.
struct Case {
    number: u64,
    random: Random,
    data: DataSet,
    model: Model,
    store: ChangingStore,
    /// The state after each commit.
    states: Vec<(u64, State)>,
    requests: Vec<String>,
    report: UpdateReport,
}

impl Case {
    fn new(seed: u64, number: u64) -> Result<Self, Error> {
        let mut random = Random::new(seed ^ SEED_OF_UPDATES, number);
        let mut data = DataSet::random(&mut random);
        while data.kind != Kind::Canonical {
            data = DataSet::random(&mut random);
        }
        let endpoints = requests::endpoint_data(&mut random);
        let model = Model::new(&data.quads, &endpoints);
        let store = ChangingStore::new(&data.quads, endpoints)?;
        let states = vec![(store.commit(), model.state())];
        Ok(Self {
            number,
            random,
            data,
            model,
            store,
            states,
            requests: Vec::new(),
            report: UpdateReport::default(),
        })
    }

    fn run(mut self) -> Result<UpdateReport, Error> {
        let requests = 1 + self.random.below(REQUESTS_MAX);
        for _ in 0..requests {
            match self.random.below(10) {
                0 => {
                    self.requests.push("# a checkpoint".to_owned());
                    self.store.checkpoint()?;
                }
                1 => self.compact()?,
                _ => {}
            }
            if !self.request() {
                return Ok(self.report);
            }
        }
        self.look_back()?;
        Ok(self.report)
    }

    /// One request on both sides; false where they differ.
    fn request(&mut self) -> bool {
        let request = requests::request(&mut self.random, &self.data);
        let text = format!("{PREFIXES}{request}");
        let mut changed = self.model.clone();
        let expected = changed.apply(&text);
        if let Err(Failure::LeftOut) = expected {
            self.report.left_out += 1;
            return true;
        }
        let is_rolled_back = self.random.chance(10);
        let note = if is_rolled_back {
            "# rolled back\n"
        } else {
            ""
        };
        self.requests.push(format!("{note}{request}"));
        let before = self.store.commit();
        let done = self.store.update(&text, !is_rolled_back);
        self.report.requests += 1;
        self.report.with_service += u64::from(text.contains("SERVICE"));
        match (expected, done) {
            (Err(_), Err(_)) => self.report.refused += 1,
            (Ok(()), Ok(())) if is_rolled_back => {}
            (Ok(()), Ok(())) => self.model = changed,
            (Err(failure), Ok(())) => {
                return self.differs(&format!("it went through: {failure:?}"));
            }
            (Ok(()), Err(error)) => return self.differs(&format!("an error: {error}")),
        }
        let commit = self.store.commit();
        if commit != before {
            self.report.changed += 1;
            self.states.push((commit, self.model.state()));
        }
        match self.store.state() {
            Ok(state) => self.is_same(&state, "after the last request"),
            Err(error) => self.differs(&format!("reading: {error}")),
        }
    }

    /// A compaction, with requests beside it.
    fn compact(&mut self) -> Result<(), Error> {
        self.report.compactions += 1;
        let mut beside = Vec::new();
        for _ in 0..self.random.below(3) {
            let request = requests::data_request(&mut self.random);
            let text = format!("{PREFIXES}{request}");
            let mut changed = self.model.clone();
            if changed.apply(&text).is_ok() {
                self.model = changed;
                beside.push((text, self.model.state()));
                self.requests
                    .push(format!("# beside the compaction\n{request}"));
            }
        }
        self.requests.push("# a compaction".to_owned());
        let texts: Vec<String> = beside.iter().map(|(text, _)| text.clone()).collect();
        let commits = self.store.compact(&texts)?;
        let mut last = self.states.last().map_or(0, |(commit, _)| *commit);
        for (commit, (_, state)) in commits.into_iter().zip(beside) {
            if commit != last {
                self.report.beside_compactions += 1;
                self.states.push((commit, state));
                last = commit;
            }
        }
        Ok(())
    }

    /// The old states that are kept are what they were.
    fn look_back(&mut self) -> Result<(), Error> {
        for (commit, then) in std::mem::take(&mut self.states) {
            match self.store.state_at(commit)? {
                None => self.report.forgotten_states += 1,
                Some(state) => {
                    self.report.old_states += 1;
                    if state != then {
                        self.differs(&format!(
                            "the state after commit {commit}: {}",
                            difference(&then, &state)
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    fn is_same(&mut self, state: &State, when: &str) -> bool {
        let expected = self.model.state();
        if *state == expected {
            return true;
        }
        self.differs(&format!("{when}: {}", difference(&expected, state)))
    }

    fn differs(&mut self, what: &str) -> bool {
        let data: String = self
            .data
            .quads
            .iter()
            .map(|quad| format!("{quad} .\n"))
            .collect();
        self.report.differences.push(format!(
            "case {}, {what}\ndata:\n{data}requests:\n{PREFIXES}{}",
            self.number,
            self.requests.join("\n;;\n")
        ));
        false
    }
}

/// The quads that are missing, and those that are too many.
fn difference(expected: &State, found: &State) -> String {
    let missing = expected.difference(found).map(|quad| format!("\n- {quad}"));
    let more = found.difference(expected).map(|quad| format!("\n+ {quad}"));
    missing.chain(more).collect()
}
