use std::path::Path;

use super::*;
use crate::files::io::FileSystem;

fn write(file_system: &dyn FileSystem, path: &str, text: &str, is_synced: bool) {
    let mut file = file_system.create(Path::new(path)).unwrap();
    file.append(text.as_bytes()).unwrap();
    match is_synced {
        true => file.sync().unwrap(),
        false => file.flush().unwrap(),
    }
}

/// The content of a file, or `None` where no name leads to it.
fn content(file_system: &RecordingFileSystem, path: &str) -> Option<String> {
    let path = Path::new(path);
    file_system.metadata(path).unwrap()?;
    Some(String::from_utf8(file_system.read(path).unwrap()).unwrap())
}

/// The disk after all operations and a power cut.
fn at_the_end(file_system: &RecordingFileSystem, unsynced: Unsynced) -> RecordingFileSystem {
    let mut cuts = file_system.power_cuts();
    while cuts.advance() {}
    assert_eq!(cuts.position(), file_system.operations());
    cuts.state(unsynced)
}

#[test]
fn bytes_need_a_sync_of_the_file_and_names_one_of_the_directory() {
    let disk = RecordingFileSystem::new();
    write(&disk, "/nameless", "a", true);
    write(&disk, "/empty", "b", false);
    disk.sync_dir(Path::new("/")).unwrap();
    write(&disk, "/whole", "c", true);
    disk.sync_dir(Path::new("/")).unwrap();
    write(&disk, "/late", "d", true);

    let dropped = at_the_end(&disk, Unsynced::Dropped);
    assert_eq!(content(&dropped, "/nameless").unwrap(), "a");
    assert_eq!(content(&dropped, "/empty").unwrap(), "");
    assert_eq!(content(&dropped, "/whole").unwrap(), "c");
    assert_eq!(content(&dropped, "/late"), None);
    let kept = at_the_end(&disk, Unsynced::Kept);
    assert_eq!(content(&kept, "/empty").unwrap(), "b");
    assert_eq!(content(&kept, "/late").unwrap(), "d");
}

#[test]
fn a_rename_happens_or_does_not() {
    let disk = RecordingFileSystem::new();
    write(&disk, "/file", "old", true);
    disk.sync_dir(Path::new("/")).unwrap();
    write(&disk, "/file.new", "new", true);
    disk.rename(Path::new("/file.new"), Path::new("/file"))
        .unwrap();
    for seed in 0..50 {
        let state = at_the_end(&disk, Unsynced::Random(seed));
        assert!(["old", "new"].contains(&&*content(&state, "/file").unwrap()));
    }
    assert_eq!(content(&disk, "/file").unwrap(), "new");
    let dropped = at_the_end(&disk, Unsynced::Dropped);
    assert_eq!(content(&dropped, "/file").unwrap(), "old");
}

#[test]
fn unsynced_writes_are_lost_kept_and_torn_each_for_itself() {
    let disk = RecordingFileSystem::new();
    let file = disk.create_log(Path::new("/log")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    file.write_at(0, b"aaaa").unwrap();
    file.sync().unwrap();
    file.write_at(4, b"bbbb").unwrap();
    file.write_at(8, b"cccc").unwrap();
    let of = |unsynced| content(&at_the_end(&disk, unsynced), "/log").unwrap();
    let torn: Vec<_> = (0..50).map(|seed| of(Unsynced::Torn(seed))).collect();
    for end in 8..=12 {
        assert!(torn.contains(&"aaaabbbbcccc"[..end].to_owned()));
    }
    let random: Vec<_> = (0..200).map(|seed| of(Unsynced::Random(seed))).collect();
    for expected in [
        "aaaa",
        "aaaabbbb",
        "aaaabbbbcccc",
        "aaaa\0\0\0\0cccc",
        "aaaabb\0\0",
        "aaaab",
    ] {
        assert!(random.contains(&expected.to_owned()), "{expected:?}");
    }
}

#[test]
fn bytes_that_did_not_reach_the_disk_may_be_those_of_before() {
    let disk = RecordingFileSystem::new();
    let removed = disk.create_log(Path::new("/removed")).unwrap();
    removed.write_at(0, b"RRRRRRRR").unwrap();
    let file = disk.create_log(Path::new("/log")).unwrap();
    file.write_at(0, b"aaaaoldold").unwrap();
    file.set_length(4).unwrap();
    disk.remove_file(Path::new("/removed")).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    file.write_at(4, b"bbbbbb").unwrap();
    let of = |seed| content(&at_the_end(&disk, Unsynced::Stale(seed)), "/log").unwrap();
    let states: Vec<_> = (0..400).map(of).collect();
    for expected in [
        "aaaa",
        "aaaabbbbbb",
        "aaaabbdold",
        "aaaaoldold",
        "aaaabRRR\0\0",
        "aaaabb\0\0\0\0",
    ] {
        assert!(states.contains(&expected.to_owned()), "{expected:?}");
    }
    assert!(states.iter().all(|state| state.starts_with("aaaa")));
}

#[test]
fn what_a_failed_sync_did_not_save_no_later_sync_saves() {
    let disk = RecordingFileSystem::new();
    let failing = FailingFileSystem::over(&disk);
    let file = failing.create_log(Path::new("/log")).unwrap();
    failing.sync_dir(Path::new("/")).unwrap();
    file.write_at(0, b"lost").unwrap();
    failing.fail_call(failing.calls(), Fault::Io);
    file.sync().unwrap_err();
    file.write_at(4, b" saved").unwrap();
    file.sync().unwrap();
    assert_eq!(content(&disk, "/log").unwrap(), "lost saved");
    let dropped = at_the_end(&disk, Unsynced::Dropped);
    assert_eq!(content(&dropped, "/log").unwrap(), "\0\0\0\0 saved");
}

#[test]
fn a_fault_hits_the_call_that_was_named_and_a_short_write_leaves_half() {
    let disk = RecordingFileSystem::new();
    let failing = FailingFileSystem::over(&disk);
    let file = failing.create_log(Path::new("/log")).unwrap();
    failing.fail_call(2, Fault::ShortWrite);
    file.write_at(0, b"abcd").unwrap();
    file.write_at(4, b"efgh").unwrap_err();
    assert_eq!(content(&disk, "/log").unwrap(), "abcdef");
    file.write_at(4, b"EFGH").unwrap();
    failing.fail_from(failing.calls(), Fault::NoSpace);
    assert!(matches!(file.sync(), Err(crate::Error::NoSpace { .. })));
    assert!(failing.create(Path::new("/other")).is_err());
    assert_eq!(failing.read(Path::new("/log")).unwrap(), b"abcdEFGH");
    failing.heal();
    file.sync().unwrap();
}

#[test]
fn directories_locks_and_missing_paths_are_as_on_the_machine() {
    let disk = RecordingFileSystem::new();
    let missing = Path::new("/a/b/file");
    assert!(disk.create(missing).is_err());
    disk.create_dir_all(Path::new("/a/b")).unwrap();
    disk.create_dir_all(Path::new("/a/b")).unwrap();
    write(&disk, "/a/b/file", "x", true);
    assert!(disk.create_dir_all(missing).is_err());
    assert!(disk.map(Path::new("/a")).is_err());
    assert_eq!(disk.list(Path::new("/a/b")).unwrap(), [missing]);
    assert_eq!(disk.files(), [missing]);
    let held = disk.lock(Path::new("/a/LOCK")).unwrap();
    assert!(disk.lock(Path::new("/a/LOCK")).is_err());
    drop(held);
    disk.lock(Path::new("/a/LOCK")).unwrap();
    let mapped = disk.map(missing).unwrap();
    disk.remove_dir_all(Path::new("/a/b")).unwrap();
    assert_eq!(&*mapped, b"x");
    assert_eq!(disk.metadata(Path::new("/a/b")).unwrap(), None);
}
