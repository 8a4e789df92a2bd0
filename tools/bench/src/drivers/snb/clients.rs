//! The clients that run a schedule, each operation at its time or as soon as one is free.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::schedule::Scheduled;
use super::walk::{Remembered, Walk};
use crate::snb::operation::Kind;
use crate::snb::session::{Session, SessionError};
use orrery_bsbm::Random;

/// How late an operation may start and still be on time: the specification's second.
const LATE_MAX: Duration = Duration::from_secs(1);

/// How a schedule is run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    /// Each operation as soon as a client is free, until so much time has gone by.
    FullSpeed(Duration),
    /// The schedule's time takes so many times as long as it does in the network.
    Compressed(f64),
}

/// What a run came to.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// The times of each kind.
    pub(super) times: BTreeMap<Kind, Vec<Duration>>,
    /// Operations of the schedule that were run: short reads follow them.
    pub(super) scheduled: usize,
    /// Those that started on time.
    pub(super) on_time: usize,
    /// From the beginning to the last answer.
    pub(super) elapsed: Duration,
}

impl Run {
    fn add(&mut self, other: Self) {
        for (kind, times) in other.times {
            self.times.entry(kind).or_default().extend(times);
        }
        self.scheduled += other.scheduled;
        self.on_time += other.on_time;
    }

    /// All operations.
    pub(super) fn operations(&self) -> usize {
        self.times.values().map(Vec::len).sum()
    }
}

/// What clients share.
struct Shared<'s> {
    schedule: &'s [Scheduled],
    queue: Mutex<Queue>,
    /// An update is done, or nobody goes on.
    done: Condvar,
    remembered: Mutex<Remembered>,
    pace: Pace,
    start: Instant,
}

#[derive(Default)]
struct Queue {
    next: usize,
    /// Updates that were taken and are not done, by when they are due.
    running: BTreeMap<i64, u32>,
    is_over: bool,
}

/// Runs operations from the beginning of a schedule.
pub(super) fn run(
    sessions: &mut [Session],
    schedule: &[Scheduled],
    pace: Pace,
    seed: u64,
) -> Result<Run, (Kind, SessionError)> {
    let shared = Shared {
        schedule,
        queue: Mutex::default(),
        done: Condvar::new(),
        remembered: Mutex::default(),
        pace,
        start: Instant::now(),
    };
    let runs = thread::scope(|scope| {
        let shared = &shared;
        let clients: Vec<_> = (seed..)
            .zip(sessions.iter_mut())
            .map(|(seed, session)| scope.spawn(move || shared.client(session, Random::new(seed))))
            .collect();
        let joined = clients.into_iter().map(|client| client.join());
        joined.collect::<Vec<_>>()
    });
    let mut all = Run::default();
    for run in runs {
        match run {
            Ok(run) => all.add(run?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    all.elapsed = shared.start.elapsed();
    Ok(all)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'s> Shared<'s> {
    fn client(
        &self,
        session: &mut Session,
        mut random: Random,
    ) -> Result<Run, (Kind, SessionError)> {
        let mut run = Run::default();
        let mut begins_with_person = true;
        while let Some(scheduled) = self.take() {
            let due = self.wait_for_time(scheduled);
            self.wait_for_dependency(scheduled);
            let lateness = Instant::now().saturating_duration_since(due);
            run.scheduled += 1;
            run.on_time += usize::from(lateness <= LATE_MAX);
            let outcome = self.one(session, &scheduled.operation, &mut run);
            self.give_back(scheduled, outcome.is_err());
            outcome?;
            if matches!(scheduled.operation.kind(), Kind::Complex(_)) {
                let mut walk = Walk::new(begins_with_person);
                begins_with_person = !begins_with_person;
                while let Some(short) = {
                    let mut remembered = locked(&self.remembered);
                    walk.next(&mut remembered, &mut random)
                } {
                    let outcome = self.one(session, &short, &mut run);
                    if outcome.is_err() {
                        locked(&self.queue).is_over = true;
                        self.done.notify_all();
                    }
                    outcome?;
                }
            }
        }
        Ok(run)
    }

    fn one(
        &self,
        session: &mut Session,
        operation: &crate::snb::operation::Operation,
        run: &mut Run,
    ) -> Result<(), (Kind, SessionError)> {
        let kind = operation.kind();
        let start = Instant::now();
        let result = session.run(operation).map_err(|error| (kind, error))?;
        run.times.entry(kind).or_default().push(start.elapsed());
        if !matches!(kind, Kind::Insert(_)) {
            locked(&self.remembered).add(&result);
        }
        Ok(())
    }

    /// The next operation; updates count as running from then on.
    fn take(&self) -> Option<&'s Scheduled> {
        let mut queue = locked(&self.queue);
        if let Pace::FullSpeed(length) = self.pace
            && self.start.elapsed() > length
        {
            queue.is_over = true;
        }
        if queue.is_over {
            return None;
        }
        let scheduled = self.schedule.get(queue.next)?;
        queue.next += 1;
        if scheduled.depends_on.is_some() {
            *queue.running.entry(scheduled.due).or_default() += 1;
        }
        Some(scheduled)
    }

    /// When it is due, at full speed at once; waits until then.
    fn wait_for_time(&self, scheduled: &Scheduled) -> Instant {
        let (Pace::Compressed(ratio), Some(first)) = (self.pace, self.schedule.first()) else {
            return Instant::now();
        };
        let since = (scheduled.due - first.due) as f64 * ratio / 1e3;
        let due = self.start + Duration::from_secs_f64(since.max(0.0));
        thread::sleep(due.saturating_duration_since(Instant::now()));
        due
    }

    /// Waits until all updates are done upon which one depends. Those were taken before it, so that
    /// one of them is always running.
    fn wait_for_dependency(&self, scheduled: &Scheduled) {
        let Some(depends_on) = scheduled.depends_on else {
            return;
        };
        let last = depends_on.min(scheduled.due - 1);
        let queue = locked(&self.queue);
        let waited = self.done.wait_while(queue, |queue| {
            !queue.is_over
                && queue
                    .running
                    .keys()
                    .next()
                    .is_some_and(|first| *first <= last)
        });
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn give_back(&self, scheduled: &Scheduled, is_over: bool) {
        let mut queue = locked(&self.queue);
        queue.is_over |= is_over;
        if scheduled.depends_on.is_some()
            && let Some(count) = queue.running.get_mut(&scheduled.due)
        {
            *count -= 1;
            if *count == 0 {
                queue.running.remove(&scheduled.due);
            }
        }
        drop(queue);
        self.done.notify_all();
    }
}
