//! Tests of retained history across compactions, failed checkpoints and its removal.

use std::collections::BTreeMap;
use std::time::Duration;

use super::updates::{commit, open, options, quads, set};
use super::*;
use crate::files::io::testing::{FailingFileSystem, Fault, RecordingFileSystem};
use crate::files::io::{Clock, FileSystem};
use crate::snapshots::base::BASE_PERMUTATIONS;

type States = BTreeMap<u64, BTreeSet<SmallQuad>>;

/// Finishes a base without quads, which is right while the state that it began from has none.
fn publish_empty(rebase: Rebase<'_>) -> Arc<Snapshot> {
    try_publish_empty(rebase).unwrap()
}

pub(super) fn try_publish_empty(rebase: Rebase<'_>) -> Result<Arc<Snapshot>> {
    rebase.files().dictionary()?.finish()?;
    for permutation in BASE_PERMUTATIONS {
        rebase.files().index(permutation)?.finish()?;
    }
    let statistics = StatisticsBuilder::default().finish();
    rebase.publish(PublishedCounts::default(), &statistics)
}

/// Commits one more quad.
fn grow(writer: &Writer, states: &mut States) -> u64 {
    let (&last, state) = states.last_key_value().unwrap();
    let more = quads(last..last + 1);
    let mut state = state.clone();
    state.extend(more.clone());
    assert_eq!(commit(writer, &[], &more), last + 1);
    states.insert(last + 1, state);
    last + 1
}

/// Every commit is what it was, or not kept. Returns those that are kept.
fn check_all(database: &Database, states: &States) -> Vec<u64> {
    let mut kept = Vec::new();
    for (&number, expected) in states {
        match database.snapshot_at(At::Commit(number)) {
            Ok(old) => {
                assert_eq!(old.commit(), number);
                assert_eq!(&dump(&old).unwrap(), expected, "commit {number}");
                kept.push(number);
            }
            Err(Error::NoSuchCommit { .. }) => {}
            Err(error) => panic!("commit {number}: {error}"),
        }
    }
    kept
}

#[test]
fn old_states_are_right_across_a_compaction_that_carried_commits() {
    for commits_max in [2, 3, 6, 100] {
        let directory = tempfile::tempdir().unwrap();
        let database = Arc::new(Database::create_or_open(directory.path()).unwrap());
        let retention = Retention {
            commits_max,
            age_max: Duration::from_secs(1 << 40),
        };
        let writer = database
            .open_writer(WriterOptions {
                retention,
                ..options()
            })
            .unwrap();
        let mut states = States::from([(0, BTreeSet::new())]);
        let rebase = writer.begin_compaction().unwrap();
        for _ in 0..3 {
            grow(&writer, &mut states);
        }
        publish_empty(rebase);
        check_all(&database, &states);
        for _ in 0..9 {
            let last = grow(&writer, &mut states);
            assert!(writer.checkpoint().unwrap());
            let kept = check_all(&database, &states);
            let wanted = last.min(commits_max) as usize;
            assert!(kept.len() >= wanted, "{kept:?} of {commits_max}");
            let reader = Database::open(directory.path()).unwrap();
            assert_eq!(check_all(&reader, &states), kept);
        }
        assert!(is_whole(directory.path()));
    }
}

#[test]
fn commits_that_cancel_each_other_during_a_compaction_keep_their_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    let rebase = writer.begin_compaction().unwrap();
    commit(&writer, &[], &quads(0..5));
    commit(&writer, &quads(0..5), &[]);
    publish_empty(rebase);
    assert_eq!(database.snapshot().commit(), 2);
    assert_eq!(commit(&writer, &[], &quads(3..8)), 3);
    drop((database, writer));
    assert!(is_whole(directory.path()));
    let reader = Database::open(directory.path()).unwrap();
    let states = States::from([
        (0, BTreeSet::new()),
        (1, set(&quads(0..5))),
        (2, BTreeSet::new()),
        (3, set(&quads(3..8))),
    ]);
    assert_eq!(check_all(&reader, &states), [0, 1, 2, 3]);
}

#[test]
fn a_history_that_is_given_up_is_not_readable_from_memory_either() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    for number in 0..4 {
        commit(&writer, &[], &quads(number..number + 1));
    }
    writer.checkpoint().unwrap();
    let old = database.snapshot_at(At::Commit(2)).unwrap();
    let held = Arc::downgrade(&old);
    drop(old);
    let nothing = Retention {
        commits_max: 0,
        age_max: Duration::ZERO,
    };
    assert!(writer.forget_history(&nothing).unwrap());
    assert!(matches!(
        database.snapshot_at(At::Commit(2)),
        Err(Error::NoSuchCommit { .. })
    ));
    assert!(held.upgrade().is_none(), "it keeps its files mapped");
    assert_eq!(database.snapshot_at(At::Commit(4)).unwrap().commit(), 4);
}

#[test]
fn commits_that_cancel_each_other_let_the_log_go_on_in_a_new_file() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    commit(&writer, &[], &quads(0..5));
    commit(&writer, &quads(0..5), &[]);
    assert!(writer.checkpoint().unwrap());
    assert!(!writer.checkpoint().unwrap());
    let manifest = database.snapshot().shared_manifest().clone();
    assert_eq!(manifest.present().logs.last().unwrap().first_commit, 3);
    assert_eq!(manifest.present().deltas.last().unwrap().commit, 2);
    assert_eq!(commit(&writer, &[], &quads(0..3)), 3);
    drop(writer);
    assert!(is_whole(directory.path()));
    let reader = Database::open(directory.path()).unwrap();
    assert_eq!(dump(&reader.snapshot()).unwrap(), set(&quads(0..3)));
}

#[test]
fn a_checkpoint_that_fails_leaves_nothing_behind() {
    let disk = RecordingFileSystem::new();
    let failing = FailingFileSystem::over(&disk);
    let file_system: Arc<dyn FileSystem> = Arc::new(failing.clone());
    let database = Arc::new(Database::create_or_open_with(file_system, "/db").unwrap());
    let writer = database.open_writer(options()).unwrap();
    commit(&writer, &[], &quads(0..5));
    let unnamed = || -> Vec<PathBuf> {
        let manifest = Arc::clone(database.snapshot().shared_manifest());
        let of = |directory: &str| disk.list(Path::new(directory)).unwrap();
        let is_named = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let is_file = |name: &str| manifest.log_names().any(|log| log == name);
            manifest.directories().any(|kept| kept == name) || is_file(name)
        };
        let is_ours = |path: &PathBuf| path.to_str().unwrap().contains("delta-");
        let directories = of("/db").into_iter().filter(is_ours);
        let logs = of("/db/log").into_iter();
        directories
            .chain(logs)
            .filter(|path| !is_named(path))
            .collect()
    };
    let mut failures = 0;
    for call in 0.. {
        failing.fail_call(failing.calls() + call, Fault::NoSpace);
        match writer.checkpoint() {
            Ok(is_made) => {
                assert!(is_made);
                break;
            }
            Err(error) if writer.check().is_ok() => {
                failures += 1;
                assert!(
                    matches!(error, Error::NoSpace { .. } | Error::Io { .. }),
                    "{error}"
                );
                assert_eq!(unnamed(), Vec::<PathBuf>::new(), "call {call}");
                let logs = database.snapshot().manifest().present().logs.len();
                assert!(logs <= 2, "{logs} logs after call {call}");
            }
            // Where the log or the manifest could not be synced, nothing goes on.
            Err(_) => return,
        }
    }
    assert!(failures > 10, "{failures}");
    failing.heal();
    assert_eq!(unnamed(), Vec::<PathBuf>::new());
}

#[derive(Debug)]
struct StoppedClock(i64);

impl Clock for StoppedClock {
    fn now_us(&self) -> i64 {
        self.0
    }
}

#[test]
fn no_commit_and_no_load_is_earlier_than_the_one_before_it() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    commit(&writer, &[], &quads(0..3));
    commit(&writer, &quads(0..3), &[]);
    let last = database.snapshot().commit_time_us();
    drop((database, writer));
    // The machine's clock has gone back.
    let database = Arc::new(Database::open(directory.path()).unwrap());
    let options = WriterOptions {
        clock: Arc::new(StoppedClock(last - 1_000_000)),
        ..WriterOptions::default()
    };
    let writer = database.open_writer(options).unwrap();
    let loaded = publish_empty(writer.begin_load().unwrap());
    assert_eq!((loaded.commit(), loaded.commit_time_us()), (3, last));
    commit(&writer, &[], &quads(0..3));
    let commits = database.commits().unwrap();
    // With the empty database's own.
    assert_eq!(commits.len(), 5);
    assert!(
        commits.is_sorted_by_key(|commit| commit.time_us),
        "{commits:?}"
    );
    drop((database, writer));
    // A load into a closed database looks at the system's clock.
    let database = build_small(directory.path(), &quads(0..3)).unwrap();
    assert!(database.snapshot().commit_time_us() >= last);
}

#[test]
fn changes_are_those_until_one_state_whatever_is_committed_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    commit(&writer, &[], &quads(0..3));
    let present = database.snapshot();
    // Brings terms that the state before does not know.
    commit(&writer, &[], &quads(50..53));
    let mut found = Vec::new();
    let mut next = 1;
    let changes = database.changes_of(
        &ReadScope::all_graphs(Asker::Process),
        &present,
        &mut next,
        false,
        &mut |changes| {
            let number = changes.entry.number;
            changes.added(|quad| {
                found.push((number, quad.subject.clone()));
                Ok(())
            })
        },
    );
    changes.unwrap();
    assert_eq!((found.len(), next), (3, 2));
    assert!(found.iter().all(|(number, _)| *number == 1));
}
