//! Tests of `orrery bench spb`: generated data, answers compared with an evaluation of its own, and
//! concurrent editors and readers.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{check_failure, fail, orrery, run, succeed, text};

/// Data of the benchmark's schema.
fn generated(folder: &Path, quads: &str) -> PathBuf {
    let path = folder.join("works.nq");
    let output = ["--quads", quads, "--out", text(&path)];
    succeed(&[&["bench", "spb", "generate"], &output[..]].concat());
    path
}

/// Validates data so many rounds, with further arguments.
fn validate(data: &Path, rounds: &str, further: &[&str]) -> std::process::Output {
    let arguments = ["--data", text(data), "--rounds", rounds];
    run(&[&["bench", "spb", "validate"], &arguments[..], further].concat())
}

fn report(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// Kinds whose operations all agree.
fn check_validation(report: &Value) {
    assert_eq!(report["operations"], report["agree"], "{report:#}");
    let kinds = report["kinds"].as_array().unwrap();
    assert_eq!(kinds.len(), 15, "{report:#}");
    for kind in kinds {
        // Of deletions nothing is left.
        let has_rows = kind["with_rows"].as_u64().unwrap() > 0;
        assert_eq!(has_rows, kind["kind"] != "delete", "{kind:#}");
    }
}

#[test]
fn answers_are_those_of_another_evaluation_by_index_and_by_reading() {
    let folder = tempfile::tempdir().unwrap();
    let data = generated(folder.path(), "12000");
    let output = validate(&data, "4", &["--report", "json"]);
    check_validation(&report(&output));
    assert!(output.status.success());
    let output = validate(&data, "4", &["--report", "json", "--no-text-index"]);
    check_validation(&report(&output));
    assert!(output.status.success());
}

#[test]
fn the_shared_data_set_answers_as_the_reference() {
    let shared = std::env::var_os("ORRERY_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let data = shared.join("spb");
    if !data.join("spb-1m.nq.gz").is_file() {
        eprintln!("skipped: there is no {}", data.display());
        return;
    }
    let output = validate(&data, "2", &["--report", "json"]);
    let report = report(&output);
    assert!(output.status.success(), "{report:#}");
    assert_eq!(report["quads"], 1_066_345);
    assert_eq!(report["operations"], report["agree"], "{report:#}");
}

#[test]
fn a_wrong_answer_is_shown_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    let data = generated(folder.path(), "3000");
    let database = folder.path().join("db");
    succeed(&["load", "--db", text(&database), text(&data)]);
    // Every work is another one in the database than in the data.
    let change = "PREFIX cwork: <http://www.bbc.co.uk/ontologies/creativework/>
        DELETE { GRAPH ?g { ?work cwork:title ?title } } INSERT { GRAPH ?g { ?work cwork:title ?other } }
        WHERE { GRAPH ?g { ?work cwork:title ?title } BIND(CONCAT(?title, '!') AS ?other) }";
    succeed(&["update", "--db", text(&database), change]);
    let output = validate(&data, "2", &["--db", text(&database)]);
    check_failure(&output, &["results differ"]);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        shown.contains("expected") && shown.contains(".!\""),
        "{shown}"
    );
}

#[test]
fn editors_and_readers_run_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let data = generated(folder.path(), "6000");
    let output = run(&[
        "bench",
        "spb",
        "--data",
        text(&data),
        "--seconds",
        "2",
        "--warm-up",
        "0",
        "--aggregators",
        "2",
        "--report",
        "json",
    ]);
    let report = report(&output);
    assert!(output.status.success(), "{report:#}");
    assert_eq!(report["failures"], 0, "{report:#}");
    assert_eq!(report["has_text_index"], true, "{report:#}");
    assert!(
        report["editorial_per_second"].as_f64().unwrap() > 0.0,
        "{report:#}"
    );
    let kinds: Vec<&str> = (report["kinds"].as_array().unwrap().iter())
        .filter_map(|kind| kind["kind"].as_str())
        .collect();
    for number in 1..=12 {
        let name = format!("Q{number}");
        assert!(kinds.contains(&name.as_str()), "{name}: {report:#}");
    }
    assert!(kinds.contains(&"insert"), "{report:#}");
}

#[test]
fn a_server_without_the_union_of_all_graphs_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let data = generated(folder.path(), "1000");
    let database = folder.path().join("db");
    succeed(&["load", "--db", text(&database), text(&data)]);
    let binary = orrery_bench::drivers::Binary::new(orrery().get_program());
    let server = binary.serve(&database).unwrap();
    let arguments = [
        "bench",
        "spb",
        "--endpoint",
        server.endpoint(),
        "--seconds",
        "1",
    ];
    fail(&arguments, &["no creative works", "--union-default-graph"]);
}

#[test]
fn what_is_missing_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let empty = text(folder.path());
    fail(&["bench", "spb", "--data", empty], &["there is no .nq"]);
    fail(
        &["bench", "spb", "validate", "--data", "/no/such/file.nq"],
        &["/no/such/file.nq"],
    );
    let out = folder.path().join("missing/out.nq");
    fail(
        &[
            "bench",
            "spb",
            "generate",
            "--quads",
            "10",
            "--out",
            text(&out),
        ],
        &["out.nq"],
    );
}
