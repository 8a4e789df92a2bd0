//! Tests of failing disks and power cuts: the database is as before or after a change.

use super::kept_states::try_publish_empty;
use super::*;
use crate::files::io::FileSystem;
use crate::files::io::testing::{FailingFileSystem, Fault, RecordingFileSystem, Unsynced};
use crate::text::TextRules;

const DIRECTORY: &str = "/db";

/// The content before a write, and after it.
fn old_and_new() -> [Vec<SmallQuad>; 2] {
    [
        some_quads(false).into_iter().take(30).collect(),
        some_quads(true).into_iter().take(40).collect(),
    ]
}

fn set(quads: &[SmallQuad]) -> BTreeSet<SmallQuad> {
    quads.iter().cloned().collect()
}

fn shared(disk: &RecordingFileSystem) -> Arc<dyn FileSystem> {
    Arc::new(disk.clone())
}

/// What the database holds, after every byte of it was checked.
fn content(disk: &RecordingFileSystem) -> BTreeSet<SmallQuad> {
    let damage = verify_with(&*shared(disk), Path::new(DIRECTORY), |_| {}).unwrap();
    assert!(damage.is_empty(), "{damage:?}");
    let database = Database::open_with(shared(disk), DIRECTORY).unwrap();
    dump(&database.snapshot()).unwrap()
}

fn written(quads: &[SmallQuad]) -> RecordingFileSystem {
    let disk = RecordingFileSystem::new();
    build_small_with(shared(&disk), DIRECTORY, quads).unwrap();
    disk
}

/// Replaces the old content by the new with faults; checks what is left; whether it is the new
/// content.
fn replace_with_faults(
    start: &RecordingFileSystem,
    plan: impl FnOnce(&FailingFileSystem),
) -> (bool, u64) {
    let [old, new] = old_and_new();
    let disk = start.copy();
    let failing = FailingFileSystem::over(&disk);
    plan(&failing);
    let built = build_small_with(Arc::new(failing.clone()), DIRECTORY, &new);
    let found = content(&disk);
    assert!(found == set(&old) || found == set(&new));
    assert!(built.is_err() || found == set(&new));
    if let Err(error) = &built {
        assert!(
            matches!(
                error,
                Error::NoSpace { .. }
                    | Error::Io { .. }
                    | Error::WritingStopped { .. }
                    | Error::OutcomeUnknown { .. }
            ),
            "{error}"
        );
    }
    // The next writer is not hindered by what is left.
    build_small_with(shared(&disk), DIRECTORY, &new).unwrap();
    assert_eq!(content(&disk), set(&new));
    (found == set(&new), failing.calls())
}

#[test]
fn a_disk_that_is_full_from_any_step_on_leaves_the_old_database_or_the_new() {
    let start = written(&old_and_new()[0]);
    let mut outcomes = [0, 0];
    for number in 0.. {
        let plan = |failing: &FailingFileSystem| failing.fail_from(number, Fault::NoSpace);
        let (is_new, calls) = replace_with_faults(&start, plan);
        outcomes[usize::from(is_new)] += 1;
        if calls < number {
            break;
        }
    }
    assert!(outcomes[0] > 20 && outcomes[1] > 0, "{outcomes:?}");
}

#[test]
fn an_error_of_any_single_call_leaves_the_old_database_or_the_new() {
    let start = written(&old_and_new()[0]);
    for fault in Fault::ALL {
        for number in 0.. {
            let plan = |failing: &FailingFileSystem| failing.fail_call(number, fault);
            if replace_with_faults(&start, plan).1 < number {
                break;
            }
        }
    }
}

#[test]
fn a_power_cut_at_any_moment_leaves_the_old_database_or_the_new() {
    let [old, new] = old_and_new();
    let disk = written(&old);
    let old_is_safe = disk.operations();
    build_small_with(shared(&disk), DIRECTORY, &new).unwrap();
    let new_is_safe = disk.operations();
    let [old, new] = [set(&old), set(&new)];
    let mut cuts = disk.power_cuts();
    while cuts.advance() {
        let seed = cuts.position() as u64;
        let random = (0..8).map(|number| Unsynced::Random(seed * 8 + number));
        let fixed = [Unsynced::Dropped, Unsynced::Kept, Unsynced::Torn(seed)];
        for unsynced in random.chain(fixed) {
            let state = cuts.state(unsynced);
            if cuts.position() < old_is_safe {
                // Perhaps there is no database yet; one can be made then.
                if Database::create_or_open_with(shared(&state), DIRECTORY).is_ok() {
                    let found = content(&state);
                    assert!(found.is_empty() || found == old);
                }
                continue;
            }
            let found = content(&state);
            assert!(found == old || found == new, "{unsynced:?} at {seed}");
            assert!(cuts.position() < new_is_safe || found == new);
        }
    }
}

#[test]
fn a_build_that_may_be_on_the_disk_is_not_told_as_one_that_was_not_made() {
    let [old, new] = old_and_new();
    let start = written(&old);
    let commit = Database::open_with(shared(&start), DIRECTORY).unwrap();
    let commit = commit.snapshot().commit();
    let mut unknown = 0;
    for number in 0.. {
        let disk = start.copy();
        let failing = FailingFileSystem::over(&disk);
        failing.fail_call(number, Fault::Io);
        let built = build_small_with(Arc::new(failing.clone()), DIRECTORY, &new);
        match built {
            Ok(_) => assert_eq!(content(&disk), set(&new)),
            Err(Error::OutcomeUnknown { change, .. }) => {
                assert_eq!(change, PendingChange::Commit(commit + 1));
                unknown += 1;
            }
            Err(error) => assert_eq!(content(&disk), set(&old), "{number}: {error}"),
        }
        if failing.calls() <= number {
            break;
        }
    }
    assert!(unknown > 0);
}

/// Another index of texts, by who writes or by nobody else, with each call failing once.
#[test]
fn an_index_of_texts_that_may_be_named_is_not_told_as_one_that_is_not() {
    let start = written(&old_and_new()[0]);
    for has_writer in [false, true] {
        let mut unknown = 0;
        for number in 0.. {
            let disk = start.copy();
            let failing = FailingFileSystem::over(&disk);
            let database = Database::open_with(Arc::new(failing.clone()), DIRECTORY).unwrap();
            let database = Arc::new(database);
            let writer = has_writer
                .then(|| database.open_writer(WriterOptions::default()))
                .transpose()
                .unwrap();
            let first = failing.calls();
            failing.fail_call(first + number, Fault::Io);
            let rules = Some(TextRules::default());
            let changed = match &writer {
                Some(writer) => writer.set_text_rules(rules, Some(1 << 20)),
                None => database.set_text_rules(rules, Some(1 << 20)),
            };
            let is_over = failing.calls() <= first + number;
            failing.heal();
            drop((writer, database));
            let found = Database::open_with(shared(&disk), DIRECTORY).unwrap();
            let is_named = found.snapshot().text_rules().is_some();
            match changed {
                Ok(_) => assert!(is_named),
                Err(Error::OutcomeUnknown { change, .. }) => {
                    assert_eq!(change, PendingChange::TextRules);
                    unknown += 1;
                }
                // The old one is named, or the change was made and what came behind it has failed.
                Err(error) => assert!(
                    !is_named || !matches!(error, Error::WritingStopped { .. }),
                    "{number}: {error}"
                ),
            }
            if is_over {
                break;
            }
        }
        assert!(unknown > 0, "{has_writer}");
    }
}

#[test]
fn a_load_that_may_be_on_the_disk_is_not_told_as_one_that_was_not_made() {
    let disk = written(&old_and_new()[0]);
    let mut unknown = 0;
    for number in 0.. {
        let disk = disk.copy();
        let failing = FailingFileSystem::over(&disk);
        let database = Database::open_with(Arc::new(failing.clone()), DIRECTORY).unwrap();
        let database = Arc::new(database);
        let writer = database.open_writer(WriterOptions::default()).unwrap();
        let before = database.snapshot().commit();
        let first = failing.calls();
        failing.fail_call(first + number, Fault::Io);
        let loaded = writer.begin_load().and_then(try_publish_empty);
        let is_over = failing.calls() <= first + number;
        failing.heal();
        drop((writer, database));
        let found = Database::open_with(shared(&disk), DIRECTORY).unwrap();
        let found = found.snapshot().commit();
        match loaded {
            Ok(state) => assert_eq!(found, state.commit()),
            Err(Error::OutcomeUnknown { change, .. }) => {
                assert_eq!(change, PendingChange::Commit(before + 1));
                unknown += 1;
            }
            Err(error) => assert_eq!(found, before, "{number}: {error}"),
        }
        if is_over {
            break;
        }
    }
    assert!(unknown > 0);
}
