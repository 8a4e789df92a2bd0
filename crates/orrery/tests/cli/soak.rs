//! `orrery bench soak`, a short one: clients of every kind against a small database, every answer compared.

use crate::common::{succeed, text};

#[test]
fn a_short_soak_has_no_fault_and_no_wrong_answer() {
    let cache = tempfile::tempdir().unwrap();
    let report = succeed(&[
        "bench",
        "soak",
        "--clients",
        "16",
        "--seconds",
        "6",
        "--products",
        "60",
        "--report",
        "json",
        "--cache",
        text(cache.path()),
    ]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["failure"], serde_json::Value::Null);
    assert!(report["checked"].as_u64().unwrap() > 100, "{report}");
    assert!(report["commits"].as_u64().unwrap() > 10, "{report}");
}
