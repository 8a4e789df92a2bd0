//! Tests of the end of a log after a close, a kill, damage and a restore.

use super::updates::{begin_commit, commit, open, options, quads, set};
use super::*;
use crate::database::backup::{RestoredState, StateFiles};
use crate::files::io::testing::{FailingFileSystem, RecordingFileSystem, Unsynced};
use crate::files::io::{FileSystem, LocalFileSystem};
use crate::files::log::{LogReader, LoggedRecord};

const MARK_BYTES: usize = 17;

/// A database with two commits, closed in good order; its last log.
fn closed(directory: &Path) -> PathBuf {
    let (database, writer) = open(directory);
    commit(&writer, &[], &quads(0..5));
    commit(&writer, &[], &quads(5..9));
    let snapshot = database.snapshot();
    let log = snapshot.manifest().present().logs.last().unwrap();
    directory.join("log").join(&log.name)
}

fn cut_off(path: &Path, bytes: usize) {
    let mut content = std::fs::read(path).unwrap();
    content.truncate(content.len() - bytes);
    std::fs::write(path, content).unwrap();
}

fn flip(path: &Path, bit: usize) {
    let mut content = std::fs::read(path).unwrap();
    content[bit / 8] ^= 1 << (bit % 8);
    std::fs::write(path, content).unwrap();
}

fn found(directory: &Path) -> Verified {
    verify(directory, |_| {}).unwrap()
}

#[test]
fn a_log_that_was_closed_and_is_cut_short_is_damaged_and_not_written_on() {
    for bytes in [MARK_BYTES + 1, MARK_BYTES + 100] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let log = closed(path);
        assert_eq!(found(path), Verified::default());
        cut_off(&log, bytes);
        let found = found(path);
        assert_eq!(found.damages[0].file, log);
        let text = found.damages[0].to_string();
        assert!(text.contains("it was closed at byte"), "{text}");
        let error = Database::open(path).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }
}

#[test]
fn where_the_close_is_not_known_a_cut_log_is_a_note_and_what_is_left_can_be_used() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let log = closed(path);
    std::fs::remove_file(path.join("LOCK")).unwrap();
    assert_eq!(found(path), Verified::default());

    cut_off(&log, MARK_BYTES);
    let end = std::fs::metadata(&log).unwrap().len();
    let expected = format!("it ends at byte {end} behind commit 2 without the mark");
    let seen = found(path);
    assert!(seen.is_empty() && seen.notes[0].what.contains(&expected));

    cut_off(&log, 10);
    let seen = found(path);
    assert!(seen.is_empty());
    for part in [
        "are no whole commit",
        "cuts them off",
        "a commit 2 that was whole",
        "cannot be known",
    ] {
        assert!(seen.notes[0].what.contains(part), "{:?}", seen.notes);
    }
    let (database, writer) = open(path);
    assert_eq!(dump(&database.snapshot()).unwrap(), set(&quads(0..5)));
    // Nothing of what was cut off can come back in the file that is written now.
    let snapshot = database.snapshot();
    let present = snapshot.manifest().present().logs.last().unwrap();
    assert_ne!(log, path.join("log").join(&present.name));
    assert_eq!(commit(&writer, &[], &quads(20..22)), 2);
    drop(writer);
    assert_eq!(found(path), Verified::default());
}

#[test]
fn a_flipped_bit_in_any_byte_of_a_closed_log_and_of_the_lock_is_seen() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let log = closed(path);
    let lock = path.join("LOCK");
    for file in [&log, &lock] {
        for bit in (0..std::fs::metadata(file).unwrap().len() as usize * 8).step_by(7) {
            flip(file, bit);
            let seen = found(path);
            let is_damage = seen.damages.iter().any(|damage| damage.file == *file);
            let is_note = seen.notes.iter().any(|note| note.file == *file);
            assert!(
                is_damage || (is_note && *file == lock),
                "bit {bit}: {seen:?}"
            );
            flip(file, bit);
        }
    }
    assert_eq!(found(path), Verified::default());
}

#[test]
fn a_flipped_bit_in_the_mark_of_a_killed_writer_is_noted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let log = closed(path);
    std::fs::remove_file(path.join("LOCK")).unwrap();
    let bits = std::fs::metadata(&log).unwrap().len() as usize * 8;
    for bit in bits - MARK_BYTES * 8..bits {
        flip(&log, bit);
        let seen = found(path);
        assert!(
            seen.notes[0].what.contains("No commit is missing"),
            "bit {bit}: {seen:?}"
        );
        flip(&log, bit);
    }
}

#[test]
fn damage_to_the_last_commit_of_a_restored_database_is_found_and_refused() {
    let directory = tempfile::tempdir().unwrap();
    let [source, target] = ["source", "target"].map(|name| directory.path().join(name));
    let source_log = closed(&source);
    let held = StateFiles::hold(
        &LocalFileSystem,
        &source,
        &ReadScope::all_graphs(Asker::Process),
    )
    .unwrap();
    let file_system: Arc<dyn FileSystem> = Arc::new(LocalFileSystem);
    let mut restored = RestoredState::begin(&file_system, &target).unwrap();
    for file in &held.files {
        let mut writer = restored.create(&file.name).unwrap();
        writer.append(&file.content).unwrap();
        writer.sync().unwrap();
    }
    restored.finish().unwrap();
    assert_eq!(found(&target), Verified::default());
    let log = target.join("log").join(source_log.file_name().unwrap());
    let bits = std::fs::metadata(&log).unwrap().len() as usize * 8;
    // Also without what the lock's file says, the copy has its mark.
    for has_lock in [true, false] {
        if !has_lock {
            std::fs::remove_file(target.join("LOCK")).unwrap();
        }
        for bit in [bits - MARK_BYTES * 8 - 1, bits - MARK_BYTES * 8 - 300] {
            flip(&log, bit);
            assert_eq!(found(&target).damages[0].file, log);
            assert!(Database::open(&target).is_err());
            flip(&log, bit);
        }
    }
    let database = Database::open(&target).unwrap();
    assert_eq!(dump(&database.snapshot()).unwrap(), set(&quads(0..9)));
}

/// The database on a disk in memory with its writer, and the disk, whose syncs can be held.
fn open_on(disk: &RecordingFileSystem) -> (Arc<Database>, Writer, FailingFileSystem) {
    let failing = FailingFileSystem::over(disk);
    let file_system: Arc<dyn FileSystem> = Arc::new(failing.clone());
    let database = Arc::new(Database::create_or_open_with(file_system, "/db").unwrap());
    let writer = database.open_writer(options()).unwrap();
    (database, writer, failing)
}

/// The last log file, and where its records stand.
fn last_log(disk: &RecordingFileSystem, database: &Database) -> (PathBuf, Vec<LoggedRecord>) {
    let snapshot = database.snapshot();
    let name = &snapshot.manifest().present().logs.last().unwrap().name;
    let path = Path::new("/db/log").join(name);
    let mut reader = LogReader::open(disk, &path).unwrap();
    let records = std::iter::from_fn(|| reader.next_record().unwrap()).collect();
    (path, records)
}

#[test]
fn a_commit_that_was_cut_off_does_not_come_back_behind_another() {
    let disk = RecordingFileSystem::new();
    let (database, writer, failing) = open_on(&disk);
    commit(&writer, &[], &quads(0..1));
    let held = failing.hold_syncs();
    let _ = begin_commit(&writer, &quads(11..12), Durability::Relaxed);
    let _ = begin_commit(&writer, &quads(12..13), Durability::Relaxed);
    let (path, records) = last_log(&disk, &database);
    // The power cut keeps the third commit, and of the second not all.
    let mut cuts = disk.power_cuts();
    while cuts.advance() {}
    let disk = cuts.state(Unsynced::Kept);
    drop(held);
    disk.flip_bit(&path, records[1].start as usize * 8 + 160)
        .unwrap();
    let disk = disk.copy();

    // Another second commit, exactly as long, and a third that does not reach the disk.
    let (database, writer, failing) = open_on(&disk);
    assert_eq!(database.snapshot().commit(), 1);
    assert_eq!(commit(&writer, &[], &quads(28..29)), 2);
    let held = failing.hold_syncs();
    let _ = begin_commit(&writer, &quads(30..40), Durability::Relaxed);
    let (_, again) = last_log(&disk, &database);
    let length = |logged: &LoggedRecord| logged.end - logged.start;
    assert_eq!(length(&again[again.len() - 2]), length(&records[1]));
    let mut cuts = disk.power_cuts();
    while cuts.advance() {}
    drop(held);
    let mut second = set(&quads(0..1));
    second.extend(quads(28..29));
    let mut third = second.clone();
    third.extend(quads(30..40));
    let mut found = BTreeSet::new();
    for seed in 0..300 {
        let state: Arc<dyn FileSystem> = Arc::new(cuts.state(Unsynced::Stale(seed)));
        let snapshot = Database::open_with(state, "/db").unwrap().snapshot();
        let expected = if snapshot.commit() == 2 {
            &second
        } else {
            &third
        };
        assert_eq!(&dump(&snapshot).unwrap(), expected, "seed {seed}");
        found.insert(snapshot.commit());
    }
    assert_eq!(found, BTreeSet::from([2, 3]));
}
