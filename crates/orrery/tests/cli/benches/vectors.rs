//! `orrery bench vectors`: every cell of the table, on a small database.

use std::path::PathBuf;

use serde_json::Value;

use crate::common::{fail, succeed, text};

fn bytes(report: &Value, design: &str, store: &str) -> u64 {
    let space = report["space"].as_array().unwrap();
    let of = space
        .iter()
        .find(|it| it["design"] == design && it["store"] == store);
    of.unwrap()["bytes"].as_u64().unwrap()
}

#[test]
fn every_design_in_every_store_with_every_size_of_vectors_answers_as_sql_does() {
    let cache = tempfile::tempdir().unwrap();
    let shared = std::env::var_os("ORRERY_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let answers = shared.join("tpch/answers/sf0.01");
    let document = cache.path().join("document.md");
    std::fs::write(
        &document,
        "<!-- vectors 0.01 -->\n<!-- end of vectors 0.01 -->\n",
    )
    .unwrap();
    let mut arguments = vec![
        "bench",
        "vectors",
        "--scale",
        "0.01",
        "--runs",
        "1",
        "--cell-limit",
        "600s",
        "--threads",
        "2",
        "--report",
        "json",
        "--document",
        text(&document),
        "--cache",
        text(cache.path()),
    ];
    if answers.is_dir() {
        arguments.extend(["--answers", text(&answers)]);
    } else {
        eprintln!("skipped: there is no {}", answers.display());
    }
    let report: Value = serde_json::from_str(&succeed(&arguments)).unwrap();
    assert_eq!(report["mistakes"].as_array().unwrap().len(), 0, "{report}");
    assert_eq!(report["answers_compared"], 30);
    assert_eq!(report["rows"], 173);
    assert_eq!(report["is_file_compared"], answers.is_dir());
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 30);
    assert!(
        cells
            .iter()
            .all(|it| it["milliseconds"].as_f64() > Some(0.0))
    );

    for store in ["columns", "rows"] {
        let whole = bytes(&report, "hash plan", store);
        let index = bytes(&report, "index", store) - whole;
        let covering = bytes(&report, "covering index", store) - whole;
        assert!(
            0 < index && index < covering && covering < whole,
            "{report}"
        );
        // The key stands in each table of one column.
        let of_columns = bytes(&report, "one column per table", store);
        assert!(of_columns > 2 * index, "{report}");
    }
    for design in [
        "hash plan",
        "index",
        "covering index",
        "one column per table",
    ] {
        let [columns, rows] = ["columns", "rows"].map(|store| bytes(&report, design, store));
        assert!(2 * columns < rows, "{design}: {columns}, {rows}");
    }
    let document = std::fs::read_to_string(&document).unwrap();
    assert_eq!(
        document.matches("| covering index | rows |").count(),
        1,
        "{document}"
    );
}

#[test]
fn an_answer_that_is_not_the_right_one_ends_vectors_with_a_failure() {
    let cache = tempfile::tempdir().unwrap();
    let answers = tempfile::tempdir().unwrap();
    std::fs::write(answers.path().join("q09.csv"), "a,b,c\nx,1995,1.00\n").unwrap();
    let arguments = [
        "bench",
        "vectors",
        "--scale",
        "0.01",
        "--runs",
        "1",
        "--cache",
        text(cache.path()),
        "--answers",
        text(answers.path()),
    ];
    fail(&arguments, &["an answer is wrong"]);
}
