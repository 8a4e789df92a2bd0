//! Tests of reports on small logs: figures, and escaping of hostile texts.

#![allow(clippy::unwrap_used, reason = "a test may fail on the spot")]

use std::fs;
use std::path::Path;

use orrery_query_log::{Day, Entry, Kind, Outcome, Period, Report, Time, report, shape_of};

/// 2026-11-21T11:00:00Z
const MORNING_MS: i64 = 1_795_258_800_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn entry(day: i64, kind: Kind, text: &str) -> Entry {
    Entry {
        time: Time::from_ms(MORNING_MS + day * DAY_MS),
        kind,
        text: text.to_owned(),
        text_bytes: None,
        shape: shape_of(kind, text),
        user: None,
        client: Some([192, 0, 2, 1].into()),
        agent: Some("curl/8".to_owned()),
        status: Some(200),
        outcome: Outcome::Ok,
        ms: 2.0,
        first_byte_ms: Some(1.0),
        rows: 3,
        bytes: 100,
        commit: Some(1),
        touches: None,
        plan: None,
    }
}

fn write(directory: &Path, name: &str, entries: &[Entry], rest: &str) {
    let mut lines = Vec::new();
    for entry in entries {
        entry.write(&mut lines).unwrap();
    }
    lines.extend_from_slice(rest.as_bytes());
    fs::write(directory.join(name), lines).unwrap();
}

fn small_log(directory: &Path) {
    let select = "SELECT * { ?s a foaf:Person ; foaf:name \"Ann\" }";
    let mut other = entry(0, Kind::Select, &select.replace("Ann", "Bob"));
    other.client = Some([192, 0, 2, 2].into());
    other.agent = None;
    other.ms = 1500.0;
    let mut wrong = entry(0, Kind::Query, "SELECT ?s { ?s }");
    (wrong.outcome, wrong.status, wrong.rows) = (Outcome::Syntax, Some(400), 0);
    write(
        directory,
        "queries-2026-11-21-0001.jsonl",
        &[entry(0, Kind::Select, select), other, wrong],
        "{\"dropped\":7}\n",
    );
    let update = entry(2, Kind::Update, "INSERT DATA { <http://e/s> foaf:name 1 }");
    let mut sql = entry(2, Kind::Sql, "select 1");
    sql.user = Some("ann".to_owned());
    let mut cut = entry(2, Kind::Ask, "ASK { ?s ?p \"");
    cut.text_bytes = Some(1_000_000);
    write(
        directory,
        "queries-2026-11-23-0001.jsonl",
        &[update, sql, cut],
        "{\"time\":\"2026-11-23T11:00:00.000Z\",\"ki",
    );
    // Not of the log of all queries.
    fs::write(directory.join("slow-2026-11-23-0001.jsonl"), "{}\n").unwrap();
    fs::write(directory.join("other.txt"), "{}\n").unwrap();
}

fn of(directory: &Path, from: Option<&str>, to: Option<&str>) -> Report {
    let day = |text: &str| text.parse::<Day>().unwrap();
    let period = Period {
        from: from.map(day),
        to: to.map(day),
    };
    report(directory, period).unwrap()
}

/// Compares with a file, or writes it with `UPDATE_GOLDEN=1`.
fn golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{} differs; look at the difference after UPDATE_GOLDEN=1",
        path.display()
    );
}

#[test]
fn a_small_log_has_these_figures_and_this_page() {
    let directory = tempfile::tempdir().unwrap();
    small_log(directory.path());
    let report = of(directory.path(), None, None);
    golden("small.json", &report.to_json().unwrap());
    golden("small.html", &report.to_html());
}

#[test]
fn the_last_day_of_a_period_is_in_it() {
    let directory = tempfile::tempdir().unwrap();
    small_log(directory.path());
    let queries = |from, to| of(directory.path(), from, to).queries;
    assert_eq!(queries(None, Some("2026-11-21")), 3);
    assert_eq!(queries(Some("2026-11-21"), Some("2026-11-22")), 3);
    assert_eq!(queries(Some("2026-11-22"), Some("2026-11-23")), 3);
    assert_eq!(queries(Some("2026-11-24"), None), 0);
    let nothing = of(directory.path(), Some("2026-11-24"), None);
    assert!(nothing.to_html().contains("Nothing was asked"));
}

#[test]
fn hostile_texts_are_escaped() {
    let script = "<script>alert(1)</script>\" onload='x' --> ]]> \u{202e}";
    let directory = tempfile::tempdir().unwrap();
    let mut entries = vec![entry(0, Kind::Query, script)];
    entries[0].agent = Some(format!("agent{script}"));
    entries[0].user = Some(format!("user{script}"));
    let iri = "http://e/'onload=alert(1)//&lt;img";
    let text = format!("SELECT * {{ ?s a <{iri}> ; <{iri}> '''</pre>{script}''' }}");
    entries.push(entry(0, Kind::Select, &text));
    write(
        directory.path(),
        "queries-2026-11-21-0001.jsonl",
        &entries,
        "",
    );
    let report = of(directory.path(), None, None);
    assert_eq!(report.reading.parsed, 1);
    let page = report.to_html();
    for wrong in [
        "<script",
        "</pre>&",
        "'onload",
        "\" onload",
        "-->",
        "\u{202e}",
    ] {
        assert!(!page.contains(wrong), "{wrong}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("http://e/&#39;onload=alert(1)//&amp;lt;img"));
    for elsewhere in ["src=", "href=", "url(", "@import", "<link", " style="] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    assert!(page.contains("content=\"default-src 'none';"));
}

#[test]
fn deep_texts_are_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let deep = format!("ASK {{ {} }}", "{".repeat(30_000));
    let long = format!("ASK {{ FILTER(1{}) }}", " + 1".repeat(15_000));
    let nested = format!(
        "ASK {} ?s <http://e/p> ?o {}",
        "{".repeat(100),
        "}".repeat(100)
    );
    let entries = [deep, long, nested].map(|text| entry(0, Kind::Ask, &text));
    write(
        directory.path(),
        "queries-2026-11-21-0001.jsonl",
        &entries,
        "",
    );
    let report = of(directory.path(), None, None);
    assert_eq!((report.reading.parsed, report.reading.not_parsed), (2, 1));
}

#[test]
fn a_directory_without_a_log_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let error = report(directory.path(), Period::default()).unwrap_err();
    assert!(error.to_string().contains("has no query log"), "{error}");
    let missing = report(&directory.path().join("none"), Period::default()).unwrap_err();
    assert!(missing.to_string().contains("cannot read"), "{missing}");
}
