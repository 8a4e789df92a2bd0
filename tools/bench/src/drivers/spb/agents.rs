//! The agents: editors and aggregators that run side by side until time is over.
//!
//! An operation counts if it begins after the warm-up and ends before the end. Its text is made
//! before its time begins. An operation that fails is counted as such, and its agent goes on, as
//! the official driver's does; but an agent that gets nothing but failures ends the run. Times are
//! kept one by one: 16 bytes an operation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::client::{Client, query_text};
use super::options::SpbOptions;
use crate::drivers::BenchError;
use crate::drivers::target::failed;
use crate::http_client::HttpError;
use crate::spb::creative_work::deletion;
use crate::spb::maker::{Maker, Preset};
use crate::spb::pool::Pool;
use crate::spb::templates::{Edit, Kind, round};
use orrery_bsbm::Random;

/// An agent that fails so often in a row has no server.
const FAILURES_IN_A_ROW_MAX: u32 = 20;
/// Failures that are told in full.
const TOLD_MAX: usize = 5;

/// What became of the operations of a kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Operations {
    pub(super) times: Vec<Duration>,
    /// Answers with nothing in them.
    pub(super) empty: usize,
    pub(super) failures: usize,
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) kinds: BTreeMap<Kind, Operations>,
    /// The first failures.
    pub(super) told: Vec<String>,
    /// The length of what counted.
    pub(super) seconds: f64,
}

impl Outcome {
    fn add(&mut self, other: Self) {
        for (kind, operations) in other.kinds {
            let own = self.kinds.entry(kind).or_default();
            own.times.extend(operations.times);
            own.empty += operations.empty;
            own.failures += operations.failures;
        }
        self.told.extend(other.told);
        self.told.truncate(TOLD_MAX);
    }
}

/// What agents share.
struct Shared<'s> {
    endpoint: &'s str,
    pool: &'s Pool,
    maker: Maker,
    /// Works that are there.
    works: Mutex<Vec<u64>>,
    next_work: AtomicU64,
    is_over: AtomicBool,
    begins: Instant,
    ends: Instant,
    seed: u64,
}

/// Runs all agents until the time is over.
pub(super) fn run(
    endpoint: &str,
    pool: &Pool,
    options: &SpbOptions,
    warm_up: Duration,
    measured: Duration,
) -> Result<Outcome, BenchError> {
    let begins = Instant::now() + warm_up;
    let shared = Shared {
        endpoint,
        pool,
        maker: Maker::new(options.seed),
        works: Mutex::new(pool.works().to_vec()),
        next_work: AtomicU64::new(pool.next_work()),
        is_over: AtomicBool::new(false),
        begins,
        ends: begins + measured,
        seed: options.seed,
    };
    let outcomes = thread::scope(|scope| {
        let shared = &shared;
        let editors =
            (0..options.editors).map(|agent| scope.spawn(move || shared.agent(agent, true)));
        let editors: Vec<_> = editors.collect();
        let readers = options.editors..options.editors + options.aggregators;
        let readers = readers.map(|agent| scope.spawn(move || shared.agent(agent, false)));
        let readers: Vec<_> = readers.collect();
        let joined = editors.into_iter().chain(readers).map(|agent| agent.join());
        joined.collect::<Vec<_>>()
    });
    let mut all = Outcome {
        seconds: measured.as_secs_f64(),
        ..Outcome::default()
    };
    for outcome in outcomes {
        match outcome {
            Ok(outcome) => all.add(outcome?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    Ok(all)
}

impl Shared<'_> {
    fn works(&self) -> MutexGuard<'_, Vec<u64>> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn agent(&self, number: u32, is_editor: bool) -> Result<Outcome, BenchError> {
        let mut agent = Agent {
            shared: self,
            client: Client::new(self.endpoint)?,
            random: Random::new(
                self.seed
                    .wrapping_mul(1_000)
                    .wrapping_add(u64::from(number)),
            ),
            outcome: Outcome::default(),
            failures_in_a_row: 0,
        };
        let result = agent.run(is_editor);
        if result.is_err() {
            self.is_over.store(true, Ordering::Relaxed);
        }
        result.map(|()| agent.outcome)
    }
}

struct Agent<'s> {
    shared: &'s Shared<'s>,
    client: Client,
    random: Random,
    outcome: Outcome,
    failures_in_a_row: u32,
}

impl Agent<'_> {
    fn run(&mut self, is_editor: bool) -> Result<(), BenchError> {
        loop {
            if is_editor {
                if self.is_over() {
                    return Ok(());
                }
                self.edit()?;
                continue;
            }
            for number in round(&mut self.random) {
                if self.is_over() {
                    return Ok(());
                }
                let pool = self.shared.pool;
                let parameters = pool.draw(number, &mut self.random);
                let text = query_text(number, pool.search(), &parameters)?;
                let start = Instant::now();
                let result = self.client.query(number, &text);
                self.done(Kind::Query(number), start, result)?;
            }
        }
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.shared.ends || self.shared.is_over.load(Ordering::Relaxed)
    }

    /// One editorial operation. A work that is being updated or deleted is nobody else's meanwhile.
    fn edit(&mut self) -> Result<(), BenchError> {
        let drawn = Edit::draw(&mut self.random);
        let taken = match drawn {
            Edit::Insert => None,
            Edit::Update | Edit::Delete => {
                let mut works = self.shared.works();
                let index = match works.len() {
                    0 => None,
                    length => Some(self.random.below(u32::try_from(length).unwrap_or(u32::MAX))),
                };
                index.map(|index| works.swap_remove(index as usize))
            }
        };
        let (edit, number) = match taken {
            Some(number) => (drawn, number),
            // Nothing is left to change.
            None => (
                Edit::Insert,
                self.shared.next_work.fetch_add(1, Ordering::Relaxed),
            ),
        };
        let text = match edit {
            Edit::Delete => deletion(number),
            Edit::Insert => self.work(number).insertion(),
            Edit::Update => self.work(number).replacement(),
        };
        let start = Instant::now();
        let result = self.client.update(&text);
        let is_there = match edit {
            Edit::Insert => result.is_ok(),
            Edit::Update => true,
            Edit::Delete => result.is_err(),
        };
        if is_there {
            self.shared.works().push(number);
        }
        self.done(Kind::Edit(edit), start, result.map(|()| false))
    }

    fn work(&mut self, number: u64) -> crate::spb::creative_work::CreativeWork {
        let preset = Preset {
            created_ms: self.shared.pool.draw_created_ms(&mut self.random),
            ..Preset::default()
        };
        let entities = self.shared.pool.entities();
        self.shared
            .maker
            .work(number, entities, &preset, &mut self.random)
    }

    /// Counts an operation, if it is of the time that counts. The result says whether there was
    /// nothing in it.
    fn done(
        &mut self,
        kind: Kind,
        start: Instant,
        result: Result<bool, HttpError>,
    ) -> Result<(), BenchError> {
        let end = Instant::now();
        let counts = start >= self.shared.begins && end <= self.shared.ends;
        let operations = self.outcome.kinds.entry(kind).or_default();
        match result {
            Ok(is_empty) => {
                self.failures_in_a_row = 0;
                if counts {
                    operations.times.push(end - start);
                    operations.empty += usize::from(is_empty);
                }
                Ok(())
            }
            // Those of the warm-up too: they are no less wrong.
            Err(error) => {
                operations.failures += 1;
                self.failures_in_a_row += 1;
                if self.outcome.told.len() < TOLD_MAX {
                    self.outcome.told.push(format!("{kind}: {error}"));
                }
                match self.failures_in_a_row {
                    FAILURES_IN_A_ROW_MAX => Err(failed(kind, error)),
                    _ => Ok(()),
                }
            }
        }
    }
}
