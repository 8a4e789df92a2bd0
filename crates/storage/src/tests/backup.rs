//! Tests of backups that hold files beside running writers, and of restores.

use super::*;
use crate::database::backup::{MANIFEST_NAME, RestoredState, StateFiles};
use crate::files::io::testing::RecordingFileSystem;
use crate::files::io::{FileSystem, LocalFileSystem};

fn restore(held: &StateFiles, directory: &Path) -> Result<()> {
    let file_system: Arc<dyn FileSystem> = Arc::new(LocalFileSystem);
    let mut restored = RestoredState::begin(&file_system, directory)?;
    for file in &held.files {
        let mut writer = restored.create(&file.name)?;
        writer.append(&file.content)?;
        writer.sync()?;
    }
    restored.finish()
}

#[test]
fn held_files_stay_whole_while_a_writer_replaces_them_and_can_be_restored() {
    let directory = tempfile::tempdir().unwrap();
    let [source, target] = ["source", "target"].map(|name| directory.path().join(name));
    let first = some_quads(true);
    build_small(&source, &first).unwrap();
    let held = StateFiles::hold(
        &LocalFileSystem,
        &source,
        &ReadScope::all_graphs(Asker::Process),
    )
    .unwrap();
    assert_eq!(held.files.last().unwrap().name, MANIFEST_NAME);
    build_small(&source, &some_quads(false)).unwrap();

    restore(&held, &target).unwrap();
    assert!(is_whole(&target));
    let database = Database::open(&target).unwrap();
    let expected: BTreeSet<SmallQuad> = first.into_iter().collect();
    assert_eq!(dump(&database.snapshot()).unwrap(), expected);
    // What was restored is a database like any other.
    build_small(&target, &some_quads(false)).unwrap();

    let error = restore(&held, &target).unwrap_err().to_string();
    assert!(error.contains("holds a database already"), "{error}");
}

#[test]
fn an_interrupted_restore_is_no_database_and_can_be_begun_again() {
    let directory = tempfile::tempdir().unwrap();
    let [source, target] = ["source", "target"].map(|name| directory.path().join(name));
    build_small(&source, &some_quads(true)).unwrap();
    let mut held = StateFiles::hold(
        &LocalFileSystem,
        &source,
        &ReadScope::all_graphs(Asker::Process),
    )
    .unwrap();
    let manifest = held.files.pop().unwrap();
    assert!(restore(&held, &target).is_err());
    assert!(Database::open(&target).is_err());
    held.files.push(manifest);
    restore(&held, &target).unwrap();
    assert!(is_whole(&target));
}

#[test]
fn names_that_lead_out_of_the_directory_are_refused() {
    let disk: Arc<dyn FileSystem> = Arc::new(RecordingFileSystem::new());
    let mut restored = RestoredState::begin(&disk, Path::new("/db")).unwrap();
    for name in ["", "../x", "/etc/passwd", "a/../../x", "."] {
        assert!(restored.create(name).is_err(), "{name}");
    }
    restored.create("segment-000001/psog.col").unwrap();
}

#[test]
fn files_can_be_held_at_any_moment_of_a_publish() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    build_small(path, &some_quads(false)).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..30 {
                build_small(path, &some_quads(round % 2 == 0)).unwrap();
            }
        });
        let mut held = 0;
        while !writer.is_finished() || held == 0 {
            StateFiles::hold(
                &LocalFileSystem,
                path,
                &ReadScope::all_graphs(Asker::Process),
            )
            .unwrap();
            held += 1;
        }
    });
}
