//! Tests of power cuts at any moment: unsynced data are lost, kept or torn. Then life goes on, and
//! the power goes once more.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use orrery_storage::io::FileSystem;
use orrery_storage::io::testing::{PowerCuts, RecordingFileSystem, Unsynced};
use orrery_storage::{Database, verify_with};

use crate::crash::setting;
use crate::crash::workload::{Session, Step, Workload};
use crate::crash::world::{DIRECTORY, content, open};

const STEPS: usize = 30;
const RANDOM_PER_MOMENT: u64 = 3;
/// Of so many states one is checked byte by byte, and written to.
const THOROUGH_EVERY: u64 = 16;
/// Of a workload with an index of texts one of so many moments is looked at.
const WITH_TEXTS: usize = 8;

/// A finished workload: what must be there from which operation on.
struct Recorded {
    disk: RecordingFileSystem,
    workload: Workload,
    /// Number of operations when the database was there.
    created: usize,
    /// Number of operations when a commit was acknowledged, and its number.
    acknowledged: Vec<(usize, u64)>,
}

/// Whether a workload has an index of texts.
fn has_texts(seed: u64) -> bool {
    seed % 8 == 2
}

fn record(seed: u64) -> Recorded {
    let disk = RecordingFileSystem::new();
    let mut workload = Workload::create(Arc::new(disk.clone()), seed, has_texts(seed)).unwrap();
    let created = disk.operations();
    let mut acknowledged = vec![(created, workload.acknowledged)];
    workload.disk = Some(disk.clone());
    for _ in 0..STEPS {
        workload.step().unwrap();
        acknowledged.append(&mut workload.acknowledged_within);
        acknowledged.push((disk.operations(), workload.acknowledged));
    }
    workload.session = None;
    workload.disk = None;
    Recorded {
        disk,
        workload,
        created,
        acknowledged,
    }
}

impl Recorded {
    /// The last commit that was acknowledged before a moment.
    fn last_acknowledged(&self, position: usize) -> u64 {
        let before = self.acknowledged.iter().rev();
        let mut before = before.filter(|(operations, _)| *operations <= position);
        before.next().map_or(0, |(_, commit)| *commit)
    }

    fn check(&self, cuts: &PowerCuts, unsynced: Unsynced, is_thorough: bool) {
        let disk = cuts.state(unsynced);
        let state: Arc<dyn FileSystem> = Arc::new(disk.clone());
        if cuts.position() < self.created {
            // Perhaps there is none yet; one can be made then.
            Database::create_or_open_with(Arc::clone(&state), Path::new(DIRECTORY)).unwrap();
        }
        let database = open(&state).unwrap();
        let snapshot = database.snapshot();
        let commit = snapshot.commit();
        assert!(commit >= self.last_acknowledged(cuts.position()));
        let expected = &self.workload.states[&commit];
        assert_eq!(&content(&snapshot).unwrap(), expected);
        if is_thorough {
            let damage = verify_with(&*state, Path::new(DIRECTORY), |_| {}).unwrap();
            assert!(damage.is_empty(), "{damage:?}");
            let copy = disk.copy();
            self.go_on(&state);
            self.cut_again(&copy, cuts.position() as u64);
        }
    }

    /// The power goes again at some moments after the first cut, when the log was cut off and
    /// written on: what comes back of it then must not be taken for a commit.
    fn cut_again(&self, disk: &RecordingFileSystem, seed: u64) {
        let file_system: Arc<dyn FileSystem> = Arc::new(disk.clone());
        let session = Session::open(&file_system).unwrap();
        let last = session.database.snapshot().commit();
        let mut again = Workload::continued(file_system, session, last);
        again.states = self.workload.states.clone();
        again.states.split_off(&(last + 1));
        again.disk = Some(disk.clone());
        let mut acknowledged = vec![(0, last)];
        for step in [Step::Commit, Step::Mixed, Step::Commit] {
            again.run(step).unwrap();
            acknowledged.append(&mut again.acknowledged_within);
            acknowledged.push((disk.operations(), again.acknowledged));
        }
        again.session = None;
        let mut cuts = disk.power_cuts();
        while cuts.advance() {
            let seed = seed * 1_000 + cuts.position() as u64;
            let state: Arc<dyn FileSystem> = Arc::new(cuts.state(Unsynced::Stale(seed)));
            let snapshot = open(&state).unwrap().snapshot();
            let before = acknowledged.iter().rev();
            let mut before = before.filter(|(operations, _)| *operations <= cuts.position());
            let expected = before.next().map_or(last, |(_, commit)| *commit);
            assert!(snapshot.commit() >= expected);
            let state = &again.states[&snapshot.commit()];
            assert_eq!(&content(&snapshot).unwrap(), state);
        }
    }

    /// Life goes on after the power cut: the database can be written, and keeps what is written.
    fn go_on(&self, state: &Arc<dyn FileSystem>) {
        let session = Session::open(state).unwrap();
        let last = session.database.snapshot().commit();
        let mut again = Workload::continued(Arc::clone(state), session, last);
        for (commit, state) in &self.workload.states {
            again.states.insert(*commit, state.clone());
        }
        again.states.split_off(&(last + 1));
        for _ in 0..3 {
            again.step().unwrap();
        }
        again.reopen().unwrap();
        let damage = verify_with(&**state, Path::new(DIRECTORY), |_| {}).unwrap();
        assert!(damage.is_empty(), "{damage:?}");
    }

    /// Goes through all moments; returns the number of states that were looked at.
    fn check_all(&self, seed: u64) -> usize {
        let mut cuts = self.disk.power_cuts();
        let mut states = 0;
        while cuts.advance() {
            if has_texts(seed) && !cuts.position().is_multiple_of(WITH_TEXTS) {
                continue;
            }
            let moment = seed.wrapping_mul(1_000_003) + cuts.position() as u64 * 16;
            let random = (0..RANDOM_PER_MOMENT).map(|number| Unsynced::Random(moment + number));
            let fixed = [
                Unsynced::Dropped,
                Unsynced::Kept,
                Unsynced::Torn(moment),
                Unsynced::Stale(moment),
            ];
            for (number, unsynced) in fixed.into_iter().chain(random).enumerate() {
                let is_thorough = (states as u64).is_multiple_of(THOROUGH_EVERY);
                let place = (seed, cuts.position(), unsynced, number);
                let checked =
                    std::panic::AssertUnwindSafe(|| self.check(&cuts, unsynced, is_thorough));
                if let Err(panic) = std::panic::catch_unwind(checked) {
                    eprintln!("seed, operation, what became of the unsynced: {place:?}");
                    std::panic::resume_unwind(panic);
                }
                states += 1;
            }
        }
        states
    }
}

#[test]
fn after_a_power_cut_every_acknowledged_commit_is_there_and_nothing_half_done() {
    let wanted = setting("ORRERY_CRASH_STATES", 5_000);
    let states = AtomicUsize::new(0);
    let next_seed = AtomicUsize::new(1);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while states.load(Ordering::Relaxed) < wanted {
                    let seed = next_seed.fetch_add(1, Ordering::Relaxed) as u64;
                    let checked = record(seed).check_all(seed);
                    states.fetch_add(checked, Ordering::Relaxed);
                }
            });
        }
    });
    let (states, workloads) = (states.into_inner(), next_seed.into_inner() - 1);
    println!("{states} states after power cuts, of {workloads} workloads, all right");
    assert!(states >= wanted);
}
