//! `orrery backup` and `orrery restore`: what was backed up comes back, and only that.

use std::fs;
use std::path::Path;

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

/// Makes a database one from before there were identities.
fn forget_identity(database: &Path) {
    let path = database.join("MANIFEST");
    let manifest = fs::read_to_string(&path).unwrap();
    let (json, _) = manifest.rsplit_once("crc32c ").unwrap();
    let lines = json.lines().filter(|line| !line.contains("\"identity\""));
    let older: String = lines.map(|line| format!("{line}\n")).collect();
    assert_ne!(older, json);
    let checksum = crc32c::crc32c(older.as_bytes());
    fs::write(&path, format!("{older}crc32c {checksum:08x}\n")).unwrap();
}

fn identity(database: &Path) -> Option<String> {
    let stats = succeed(&["stats", "--format", "json", "--db", text(database)]);
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    stats["identity"].as_str().map(str::to_owned)
}

#[test]
fn a_target_belongs_to_one_database() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let [first, second, target] = ["first", "second", "backups"].map(path);
    let update = |database: &Path, value: &str| {
        let update = format!("INSERT DATA {{ <urn:a> <urn:b> \"{value}\" }}");
        succeed(&["update", "--db", text(database), &update]);
    };
    update(&first, "precious");
    update(&second, "other");
    let arguments = |database| {
        [
            "backup",
            "--db",
            database,
            "--to",
            text(&target),
            "--keep",
            "1",
        ]
    };
    succeed(&arguments(text(&first)));
    let owner = identity(&first).unwrap();
    assert_ne!(identity(&second), Some(owner.clone()));
    fail(
        &arguments(text(&second)),
        &[
            "backups of another database",
            &owner,
            text(&first),
            "a target of its own",
        ],
    );
    let list = || succeed(&["restore", "--from", text(&target), "--list"]);
    assert_eq!(list().lines().count(), 1, "{}", list());
    assert!(
        list().contains(&format!("{owner} ({})", text(&first))),
        "{}",
        list()
    );
    // It stays the same through loads, compactions and a restore, and goes on into the same target.
    let data = path("data.nt");
    fs::write(&data, statements(0..10)).unwrap();
    succeed(&["load", "--db", text(&first), text(&data)]);
    update(&first, "more");
    succeed(&["compact", "--db", text(&first)]);
    assert_eq!(identity(&first).as_ref(), Some(&owner));
    succeed(&arguments(text(&first)));
    let restored = path("restored");
    succeed(&["restore", "--from", text(&target), "--db", text(&restored)]);
    update(&restored, "after the fire");
    succeed(&arguments(text(&restored)));
    assert!(list().contains(&owner), "{}", list());
}

#[test]
fn databases_and_backups_from_before_identities_go_on() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let [database, target] = ["db", "backups"].map(path);
    let insert = |value: &str| format!("INSERT DATA {{ <urn:a> <urn:b> \"{value}\" }}");
    succeed(&["update", "--db", text(&database), &insert("old")]);
    forget_identity(&database);
    assert_eq!(identity(&database), None);
    let backup = ["backup", "--db", text(&database), "--to", text(&target)];
    succeed(&backup);
    let list = || succeed(&["restore", "--from", text(&target), "--list"]);
    assert!(list().contains("older version"), "{}", list());
    // The next write gives it one, which stays.
    succeed(&["update", "--db", text(&database), &insert("new")]);
    let given = identity(&database).unwrap();
    succeed(&["update", "--db", text(&database), &insert("newer")]);
    assert_eq!(identity(&database).as_ref(), Some(&given));
    succeed(&backup);
    assert!(
        list().lines().nth(1).unwrap().contains(&given),
        "{}",
        list()
    );
    let restored = path("restored");
    let arguments = ["restore", "--from", text(&target), "--number", "1", "--db"];
    succeed(&[&arguments[..], &[text(&restored)]].concat());
    assert!(succeed(&["dump", "--db", text(&restored)]).contains("old"));
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
