//! `orrery backup` and `orrery restore`: what was backed up comes back, and only that.

use std::fs;

use crate::common::{fail, succeed, text};

fn statements(numbers: std::ops::Range<u32>) -> String {
    let line = |number| format!("<http://x/s{number}> <http://x/p> \"the value {number}\" .\n");
    numbers.map(line).collect()
}

#[test]
fn each_backup_comes_back_as_it_was_taken() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let [file, database, target] = ["data.nt", "db", "backups"].map(path);
    let backup = || succeed(&["backup", "--db", text(&database), "--to", text(&target)]);
    let dump = |directory: &str| {
        let dumped = succeed(&["dump", "--db", directory]);
        let mut lines: Vec<String> = dumped.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };

    fs::write(&file, statements(0..1000)).unwrap();
    succeed(&["load", "--db", text(&database), text(&file)]);
    let first = dump(text(&database));
    assert!(backup().contains("backup 1 in"));
    assert!(backup().contains("of which 0 B were copied now"));
    fs::write(&file, statements(900..1200)).unwrap();
    succeed(&["load", "--db", text(&database), text(&file)]);
    let second = dump(text(&database));
    assert!(backup().contains("backup 3 in"));

    let list = succeed(&["restore", "--from", text(&target), "--list"]);
    assert_eq!(list.lines().count(), 3, "{list}");
    for (number, expected) in [(None, &second), (Some("1"), &first), (Some("2"), &first)] {
        let restored = path(&format!("restored-{}", number.unwrap_or("last")));
        let mut arguments = vec!["restore", "--from", text(&target), "--db", text(&restored)];
        if let Some(number) = number {
            arguments.extend(["--number", number]);
        }
        assert!(succeed(&arguments).contains("all checksums right"));
        assert_eq!(&dump(text(&restored)), expected);
        succeed(&["verify", "--db", text(&restored)]);
        fail(&arguments, &["restored-", "holds a database already"]);
    }

    let arguments = ["backup", "--db", text(&database), "--to", text(&target)];
    let kept = succeed(&[&arguments[..], &["--keep", "2"]].concat());
    assert!(kept.contains("2 older backups removed"), "{kept}");
    let list = succeed(&["restore", "--from", text(&target), "--list"]);
    assert_eq!(list.lines().count(), 2, "{list}");
}

#[test]
fn a_restored_database_does_not_lose_its_last_commit_silently() {
    let home = tempfile::tempdir().unwrap();
    let [database, target, restored] = ["v.db", "bk", "rv"].map(|name| home.path().join(name));
    let insert = "INSERT DATA {<urn:a> <urn:b> \"precious\"}";
    succeed(&["update", "--db", text(&database), insert]);
    succeed(&["backup", "--db", text(&database), "--to", text(&target)]);
    let arguments = ["restore", "--from", text(&target), "--db", text(&restored)];
    succeed(&arguments);
    let verified = succeed(&["verify", "--db", text(&restored)]);
    assert!(verified.ends_with("no damage found\n"), "{verified}");
    for directory in [&restored, &database] {
        let log = directory.join("log/000002.log");
        let mut bytes = fs::read(&log).unwrap();
        bytes[100] ^= 0x55;
        fs::write(&log, bytes).unwrap();
        let database = text(directory);
        fail(&["verify", "--db", database], &["000002.log"]);
        fail(
            &["update", "--db", database, insert],
            &["000002.log", "damaged"],
        );
    }
}

#[test]
fn verify_tells_of_a_log_that_is_cut_short_what_it_knows() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("v.db");
    for name in ["a", "b"] {
        let insert = format!("INSERT DATA {{<urn:{name}> <urn:b> \"precious\"}}");
        succeed(&["update", "--db", text(&database), &insert]);
    }
    let log = database.join("log/000002.log");
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..150]).unwrap();
    fail(
        &["verify", "--db", text(&database)],
        &["000002.log", "damaged"],
    );
    // Without the lock's file nobody knows where it was closed.
    fs::remove_file(database.join("LOCK")).unwrap();
    let verified = succeed(&["verify", "--db", text(&database)]);
    assert!(
        verified.contains("note: ") && verified.contains("cuts them off"),
        "{verified}"
    );
}

#[test]
fn a_database_is_read_into_memory_as_far_as_was_asked() {
    let home = tempfile::tempdir().unwrap();
    let [database, file] = ["db", "data.nt"].map(|name| home.path().join(name));
    fs::write(&file, statements(0..1000)).unwrap();
    succeed(&["load", "--db", text(&database), text(&file)]);
    let whole = succeed(&["warm", "--db", text(&database)]);
    assert!(
        whole.contains(" read in ") && !whole.contains("the rest"),
        "{whole}"
    );
    let part = succeed(&["warm", "--db", text(&database), "--memory", "1K"]);
    assert!(
        part.contains("the rest does not go into the memory"),
        "{part}"
    );
}

#[test]
fn what_is_no_backup_or_no_database_is_said_in_one_line() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let [database, target] = ["db", "backups"].map(path);
    fail(
        &["backup", "--db", text(&database), "--to", text(&target)],
        &["db", "no such file or directory"],
    );
    fail(
        &["restore", "--from", text(&target), "--db", text(&database)],
        &["there is no backup in", "backups"],
    );
    fail(
        &["restore", "--from", "gopher://x/y", "--db", text(&database)],
        &["gopher://x/y", "s3://bucket/prefix"],
    );
    assert!(!database.exists());
}
