//! The BSBM explore queries: our engine answers what an independent evaluator answers.
#![allow(clippy::unwrap_used, reason = "a test may fail on the spot")]

use std::fs::File;
use std::io::BufReader;

use orrery_bench::bsbm::{self, GenerateOptions};
use orrery_testsuite::answer::Answer;
use orrery_testsuite::explore::{self, Case, Golden};
use orrery_testsuite::{engine, reference, shared};

/// The rows that LIMIT leaves are among all rows, and as many as it allows.
fn check_limited(case: &Case, limited: &Answer, all: &Answer) {
    assert!(
        limited.is_within(all),
        "query {} {:?}: rows that are not in the whole answer",
        case.query,
        case.values
    );
    let limit = modifier(&case.text, "LIMIT").unwrap_or(usize::MAX);
    let offset = modifier(&case.text, "OFFSET").unwrap_or(0);
    assert_eq!(
        limited.rows(),
        all.rows().saturating_sub(offset).min(limit),
        "query {} {:?}",
        case.query,
        case.values
    );
}

fn modifier(text: &str, keyword: &str) -> Option<usize> {
    let (_, after) = text.rsplit_once(keyword)?;
    let digits: String = after
        .trim_start()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

#[test]
fn explore_queries_on_the_official_million_agree_with_the_golden_answers() {
    let (Some(data), Some(templates)) = (
        shared::find(explore::DATA),
        shared::find(explore::TEMPLATES),
    ) else {
        return;
    };
    let golden = std::fs::read_to_string(explore::golden_path()).unwrap();
    let golden: Vec<Golden> = serde_json::from_str(&golden).unwrap();
    let home = tempfile::tempdir().unwrap();
    let plain = home.path().join("bsbm.nt");
    explore::decompress(&data, &plain).unwrap();
    let database = home.path().join("db");
    engine::load(&database, std::slice::from_ref(&plain), 1 << 30).unwrap();
    let engine = engine::open(&database).unwrap();
    let cases = explore::cases_of_file(&templates, &plain).unwrap();
    assert_eq!(cases.len(), golden.len());
    let mut rows = 0;
    for (case, expected) in cases.iter().zip(&golden) {
        assert_eq!(case.values, expected.values);
        let answer = engine::evaluate(&engine, &case.unlimited_text()).unwrap();
        assert_eq!(&case.golden(&answer), expected, "{}", case.text);
        let limited = engine::evaluate(&engine, &case.text).unwrap();
        check_limited(case, &limited, &answer);
        rows += answer.rows();
    }
    assert!(rows > 1000, "the answers are not empty: {rows} rows");
}

/// The same against the evaluator itself, on a small data set of our own generator.
#[test]
fn explore_queries_on_generated_data_agree_with_the_reference() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("bsbm.nt");
    let options = GenerateOptions {
        products: 60,
        ..GenerateOptions::default()
    };
    bsbm::generate(&options, &mut File::create(&data).unwrap()).unwrap();
    let dataset = reference::read_nquads(BufReader::new(File::open(&data).unwrap())).unwrap();
    let database = home.path().join("db");
    engine::load(&database, std::slice::from_ref(&data), 256 << 20).unwrap();
    let engine = engine::open(&database).unwrap();
    let templates = home.path().join("templates");
    std::fs::create_dir(&templates).unwrap();
    for template in bsbm::templates::EXPLORE {
        let file = templates.join(format!("query{}.txt", template.number));
        std::fs::write(file, template.text).unwrap();
    }
    let cases = explore::cases_of_file(&templates, &data).unwrap();
    let mut rows = 0;
    for case in &cases {
        let expected = reference::evaluate(&dataset, &case.unlimited_text()).unwrap();
        let answer = engine::evaluate(&engine, &case.unlimited_text()).unwrap();
        assert_eq!(
            answer.sorted_lines(),
            expected.sorted_lines(),
            "{}",
            case.text
        );
        let limited = engine::evaluate(&engine, &case.text).unwrap();
        check_limited(case, &limited, &answer);
        rows += answer.rows();
    }
    assert!(rows > 500, "the answers are not empty: {rows} rows");
}
