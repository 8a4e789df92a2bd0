//! What the tests of the binary share: running it, and small data.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The binary under test.
pub(crate) fn orrery() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orrery"));
    command.env("ORRERY_LOG", "warn").stdin(Stdio::null());
    command
}

/// Runs to the end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    orrery().args(arguments).output().unwrap()
}

/// Runs to the end, which must be a good one; standard output.
#[track_caller]
pub(crate) fn succeed(arguments: &[&str]) -> String {
    good(run(arguments), arguments)
}

/// Standard output of a run, whose end must be a good one.
#[track_caller]
pub(crate) fn good(output: Output, arguments: &[&str]) -> String {
    assert!(
        output.status.success(),
        "orrery {arguments:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Runs to the end, which must be exit status 1 with one line that has each of `parts`.
#[track_caller]
pub(crate) fn fail(arguments: &[&str], parts: &[&str]) {
    check_failure(&run(arguments), parts);
}

/// Checks for exit status 1 and one line on standard error that has each of `parts`.
#[track_caller]
pub(crate) fn check_failure(output: &Output, parts: &[&str]) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    let lines: Vec<&str> = message
        .lines()
        .filter(|line| line.starts_with("orrery: "))
        .collect();
    assert_eq!(lines.len(), 1, "one line that says what: {message}");
    assert_eq!(message.lines().last(), lines.last().copied(), "{message}");
    for part in parts {
        assert!(lines[0].contains(part), "{part:?} is not in {:?}", lines[0]);
    }
}

/// Number of quads that `orrery stats` counts.
#[track_caller]
pub(crate) fn quads(database: &Path) -> u64 {
    let report = succeed(&["stats", "--format", "json", "--db", text(database)]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    report["quads"].as_u64().unwrap()
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
