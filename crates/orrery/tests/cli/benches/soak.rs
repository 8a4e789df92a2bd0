//! A short run of `orrery bench soak`: clients of every kind on a small database, every answer
//! compared.

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
    let bars = report["bars"].as_array().unwrap();
    assert!(
        bars.iter()
            .any(|bar| bar.to_string().contains("compactions")),
        "{report}"
    );
    let figures = report["figures"].as_array().unwrap();
    let told = |name: &str| {
        let of_name = |figure: &&serde_json::Value| figure["what"] == name;
        let figure = figures.iter().find(of_name);
        figure.is_some_and(|figure| figure["half_time"].is_f64() && figure["end"].is_f64())
    };
    for name in [
        "orrery_memory_used_bytes{pool=\"plans\"}",
        "orrery_cache_entries{cache=\"plans\"}",
        "orrery_oldest_snapshot_age_seconds",
        "orrery_changes_uncompacted",
        "process_threads",
    ] {
        assert!(told(name), "{name}: {report}");
    }
}
