//! Old states, the list of commits, and a compaction that keeps both.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::common::{fail, quads, succeed, text};
use crate::serve::Server;

const VALUES: &str = "SELECT ?v { <http://x/s> <http://x/p> ?v }";

/// A database in which one value was replaced four times: commit 1 inserted 1, commit `n` set it to
/// `n`. The database is deleted with its directory.
fn with_commits() -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("db");
    let database = text(&path);
    succeed(&[
        "update",
        "--db",
        database,
        "INSERT DATA { <http://x/s> <http://x/p> 1 . <http://x/s> <http://x/q> \"stays\" }",
    ]);
    for value in 2..=5 {
        let update = format!(
            "DELETE {{ ?s ?p ?v }} INSERT {{ ?s ?p {value} }} WHERE {{ ?s ?p ?v FILTER(?p = <http://x/p>) }}"
        );
        succeed(&["update", "--db", database, &update]);
    }
    (home, path)
}

#[track_caller]
fn value(database: &str, at: Option<&str>) -> String {
    let mut arguments = vec!["query", "--db", database, "--format", "csv"];
    if let Some(at) = at {
        arguments.extend(["--at", at]);
    }
    arguments.push(VALUES);
    let answer = succeed(&arguments);
    answer.lines().nth(1).unwrap_or_default().trim().to_owned()
}

fn commits(database: &str, more: &[&str]) -> Vec<serde_json::Value> {
    let mut arguments = vec!["log", "--db", database, "--format", "json"];
    arguments.extend(more);
    serde_json::from_str(&succeed(&arguments)).unwrap()
}

#[test]
fn old_states_are_read_by_commit_and_by_time_until_they_are_gone() {
    let (_home, path) = with_commits();
    let database = text(&path);
    assert_eq!(value(database, None), "5");
    for commit in ["1", "2", "3", "4", "5"] {
        assert_eq!(value(database, Some(commit)), commit);
    }
    let listed = commits(database, &[]);
    let numbers: Vec<u64> = listed
        .iter()
        .map(|c| c["commit"].as_u64().unwrap())
        .collect();
    assert!(numbers.starts_with(&[5, 4, 3, 2, 1]), "{numbers:?}");
    for commit in &listed[..4] {
        assert_eq!(
            (&commit["added"], &commit["removed"]),
            (&1.into(), &1.into())
        );
    }
    assert_eq!(listed[4]["added"], 2);
    // The state at the time of a commit is that of the commit.
    let time = listed[2]["time"].as_str().unwrap();
    assert_eq!(value(database, Some(time)), "3");
    assert_eq!(commits(database, &["--limit", "2"]).len(), 2);
    let table = succeed(&["log", "--db", database]);
    assert!(table.lines().next().unwrap().contains("removed"), "{table}");
    // What never was.
    fail(&["query", "--db", database, "--at", "6", VALUES], &["6"]);
    fail(
        &[
            "query",
            "--db",
            database,
            "--at",
            "1980-01-01T00:00:00Z",
            VALUES,
        ],
        &["no state that is that old"],
    );
}

#[test]
fn a_dump_of_an_old_state_is_that_state() {
    let (_home, path) = with_commits();
    let database = text(&path);
    let old = succeed(&["dump", "--db", database, "--at", "2"]);
    assert_eq!(old.lines().count(), 2, "{old}");
    assert!(old.contains("\"2\"^^"), "{old}");
    let new = succeed(&["dump", "--db", database]);
    assert!(new.contains("\"5\"^^") && !new.contains("\"2\"^^"), "{new}");
}

#[test]
fn a_compaction_keeps_the_quads_the_commits_and_the_old_states() {
    let (_home, path) = with_commits();
    let database = text(&path);
    let before = commits(database, &[]);
    let report = succeed(&["compact", "--db", database]);
    assert!(report.contains("changes taken into the base"), "{report}");
    assert_eq!(commits(database, &[])[..5], before[..5]);
    assert_eq!(quads(&path), 2);
    assert_eq!(value(database, None), "5");
    assert_eq!(value(database, Some("3")), "3");
    let again = succeed(&["compact", "--db", database]);
    assert!(again.contains("no changes"), "{again}");
    succeed(&["verify", "--db", database]);
}

#[test]
fn history_is_given_up_when_asked() {
    let (_home, path) = with_commits();
    let database = text(&path);
    succeed(&["compact", "--db", database]);
    assert_eq!(value(database, Some("3")), "3");
    let report = succeed(&["compact", "--db", database, "--forget-history"]);
    assert!(report.contains("older states are given up"), "{report}");
    fail(&["query", "--db", database, "--at", "3", VALUES], &["3"]);
    assert_eq!(value(database, None), "5");
    assert_eq!(value(database, Some("5")), "5");
    let bases = std::fs::read_dir(&path).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("segment-")
    });
    assert_eq!(bases.count(), 1);
    succeed(&["verify", "--db", database]);
    let again = succeed(&["compact", "--db", database, "--forget-history"]);
    assert!(again.contains("there are no older states"), "{again}");
}

#[test]
fn states_before_a_load_into_a_server_stay_readable() {
    let (home, path) = with_commits();
    let database = text(&path);
    let server = Server::start(database);
    let url = format!("http://{}", server.address);
    let data = home.path().join("data.nt");
    for (load, commit) in [(1, 6), (2, 8), (3, 10)] {
        std::fs::write(
            &data,
            format!("<http://x/{load}> <http://x/loaded> <http://x/o> .\n"),
        )
        .unwrap();
        succeed(&["load", "--server", &url, text(&data)]);
        let update = format!(
            "DELETE {{ ?s <http://x/p> ?v }} INSERT {{ ?s <http://x/p> {} }} WHERE {{ ?s <http://x/p> ?v }}",
            commit + 1
        );
        succeed(&["update", "--server", &url, &update]);
    }
    drop(server);
    let listed = commits(database, &[]);
    let numbers: Vec<u64> = listed
        .iter()
        .map(|c| c["commit"].as_u64().unwrap())
        .collect();
    // Each load is a change like any other.
    assert_eq!(numbers[..5], [11, 10, 9, 8, 7]);
    assert_eq!(listed[1]["who"], "http unknown client");
    for (at, expected) in [
        ("11", "11"),
        ("10", "9"),
        ("9", "9"),
        ("8", "7"),
        ("7", "7"),
        ("6", "5"),
        ("5", "5"),
    ] {
        assert_eq!(value(database, Some(at)), expected, "at {at}");
    }
    succeed(&["verify", "--db", database]);
}

#[test]
fn a_running_server_compacts_and_checkpoints_when_asked() {
    let (_home, path) = with_commits();
    let database = text(&path);
    let server = Server::start(database);
    let url = format!("http://{}", server.address);
    let update = "INSERT DATA { <http://x/s> <http://x/r> \"new\" }";
    succeed(&["update", "--server", &url, update]);
    let report: serde_json::Value =
        serde_json::from_str(&succeed(&["compact", "--server", &url])).unwrap();
    assert_eq!(report["quads"], 3);
    assert!(report["changes"].as_u64().unwrap() > 0, "{report}");
    // Nothing is left to be done.
    let again: serde_json::Value =
        serde_json::from_str(&succeed(&["compact", "--server", &url])).unwrap();
    assert_eq!(again["changes"], 0);
    // Writing goes on over the new base.
    succeed(&[
        "update",
        "--server",
        &url,
        "DELETE WHERE { ?s <http://x/r> ?o }",
    ]);
    drop(server);
    assert_eq!(value(database, None), "5");
    assert_eq!(quads(&path), 2);
    fail(
        &["compact", "--server", "http://127.0.0.1:1"],
        &["127.0.0.1:1/compact"],
    );
}

#[test]
fn a_server_that_only_reads_compacts_nothing() {
    let (_home, path) = with_commits();
    let database = text(&path);
    let server = Server::start_with(database, &["--read-only"]);
    let url = format!("http://{}", server.address);
    fail(&["compact", "--server", &url], &["--read-only"]);
}

#[test]
fn a_short_soak_of_updates_finds_no_failure() {
    let home = tempfile::tempdir().unwrap();
    let arguments = [
        "bench",
        "soak-updates",
        "--seconds",
        "3",
        "--readers",
        "2",
        "--writers",
        "2",
    ];
    let report = succeed(
        &[
            &arguments[..],
            &["--cache", text(home.path()), "--report", "json"],
        ]
        .concat(),
    );
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    for what in ["reads", "writes", "loads"] {
        assert!(report[what]["runs"].as_u64().unwrap() > 0, "{report}");
    }
    assert!(report["checkpoints"].as_u64().unwrap() > 0, "{report}");
}
