//! `orrery bench tpch`: the whole of it, on a small database.

use std::path::PathBuf;

use crate::common::{fail, succeed, text};

#[test]
fn tpch_at_a_hundredth_answers_right_while_refreshes_run() {
    let cache = tempfile::tempdir().unwrap();
    let shared = std::env::var_os("ORRERY_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let answers = shared.join("tpch/answers/sf0.01");
    let mut arguments = vec![
        "bench",
        "tpch",
        "--scale",
        "0.01",
        "--report",
        "json",
        "--cache",
        text(cache.path()),
    ];
    if answers.is_dir() {
        arguments.extend(["--answers", text(&answers)]);
    } else {
        eprintln!("skipped: there is no {}", answers.display());
    }
    let report: serde_json::Value = serde_json::from_str(&succeed(&arguments)).unwrap();
    assert_eq!(report["mistakes"].as_array().unwrap().len(), 0, "{report}");
    assert_eq!(report["queries"].as_array().unwrap().len(), 22);
    if answers.is_dir() {
        assert_eq!(report["answers_compared"], 22);
    }
    assert_eq!(report["throughput"]["streams"], 2);
    assert!(report["metrics"]["composite"].as_f64().unwrap() > 0.0);
}

#[test]
fn an_answer_that_is_not_the_right_one_ends_tpch_with_a_failure() {
    let cache = tempfile::tempdir().unwrap();
    let answers = tempfile::tempdir().unwrap();
    for number in 1..=22 {
        let path = answers.path().join(format!("q{number:02}.csv"));
        std::fs::write(path, "a\n1\n2\n3\n").unwrap();
    }
    let arguments = [
        "bench",
        "tpch",
        "--scale",
        "0.01",
        "--streams",
        "0",
        "--cache",
        text(cache.path()),
        "--answers",
        text(answers.path()),
    ];
    fail(&arguments, &["an answer or a table is wrong"]);
}
