//! Tests of flipped bits: each is an error or harmless, never a wrong answer.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use orrery_storage::io::FileSystem;
use orrery_storage::io::testing::RecordingFileSystem;
use orrery_storage::{Error, Result, verify_with};

use crate::crash::setting;
use crate::crash::workload::{Step, Workload};
use crate::crash::world::{DIRECTORY, QUADS, Random, content, open};

/// A database with segment, flushed delta and logs, all of them with something in them; not in use.
fn example() -> (RecordingFileSystem, Workload) {
    let disk = RecordingFileSystem::new();
    let mut workload = Workload::create(Arc::new(disk.clone()), 5, true).unwrap();
    for last in [Step::Load, Step::Compact, Step::Checkpoint] {
        for step in [
            Step::Commit,
            Step::Group,
            Step::Checkpoint,
            Step::CompactTable,
            Step::Commit,
            last,
        ] {
            workload.run(step).unwrap();
        }
    }
    workload.run(Step::Commit).unwrap();
    workload.session = None;
    (disk, workload)
}

/// Reads the present state and an older one; whether all could be read.
fn look(disk: &RecordingFileSystem, workload: &Workload, older: u64) -> Result<()> {
    let file_system: Arc<dyn FileSystem> = Arc::new(disk.clone());
    let database = open(&file_system)?;
    let view = database.view_of_process();
    let snapshot = view.snapshot();
    let last = workload.states.last_key_value().expect("some").0;
    assert_eq!(snapshot.commit(), *last, "a commit went away silently");
    assert_eq!(&content(snapshot)?, workload.state());
    let mut quads = BTreeSet::new();
    for index in view.indexes() {
        let mut cursor = index.cursor();
        let mut found = BTreeSet::new();
        for row in 0..index.rows() {
            let row = cursor
                .row(row)?
                .expect("the index says that it has the row");
            found.insert(index.permutation().quad(row));
        }
        assert!(quads.is_empty() || quads == found);
        quads = found;
    }
    let of_table = workload.state().range(QUADS..).count();
    assert_eq!(quads.len() + of_table, workload.state().len());
    workload.check_older(&database, older)
}

#[test]
fn no_flipped_bit_changes_an_answer() {
    let flips = setting("ORRERY_FLIPS", 3_000);
    let (disk, workload) = example();
    let commits: Vec<u64> = workload.states.keys().copied().collect();
    look(&disk, &workload, commits[1]).unwrap();
    // What was loaded lies beside the database, and may be damaged at will.
    let mut files = disk.files();
    files.retain(|path| path.starts_with(DIRECTORY));
    let mut random = Random(3);
    let (mut refused, mut unharmed) = (0, 0);
    for number in 0..flips {
        // Each file as often as any other: the small ones matter as much.
        let path = &files[number % files.len()];
        let bits = disk.metadata(path).unwrap().unwrap().bytes as usize * 8;
        if bits == 0 {
            continue;
        }
        let bit = random.below(bits);
        let damaged = disk.copy();
        damaged.flip_bit(path, bit).unwrap();
        let older = commits[random.below(commits.len())];
        match look(&damaged, &workload, older) {
            Ok(()) => unharmed += 1,
            Err(Error::Corrupt { .. } | Error::FormatVersion { .. }) => refused += 1,
            Err(other) => panic!("{} bit {bit}: {other}", path.display()),
        }
        if number.is_multiple_of(10) {
            check_verify(&damaged, path, bit);
        }
    }
    println!("{flips} flipped bits: {refused} refused, {unharmed} not read or of no meaning");
    assert!(refused > flips / 5, "hardly any damage was met");
}

/// `orrery verify` finds the damage and names the file. What it cannot tell from the traces of a
/// power cut is a note.
fn check_verify(disk: &RecordingFileSystem, path: &Path, bit: usize) {
    let name = path.to_str().unwrap();
    let found = verify_with(disk, Path::new(DIRECTORY), |_| {}).unwrap();
    let is_named = found.damages.iter().any(|damage| damage.file == path);
    let mut notes = found.notes.iter().filter(|note| note.file == path);
    let is_noted = notes.any(|note| name.ends_with("LOCK") || note.what.starts_with("the mark at"));
    assert!(is_named || is_noted, "{name} bit {bit}: {found:?}");
}
