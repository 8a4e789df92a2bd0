//! Tests of the BSBM explore queries against an independent evaluator.
#![allow(clippy::unwrap_used, reason = "a test may fail on the spot")]

use std::fs::File;
use std::io::BufReader;

use std::sync::Arc;

use orrery_bsbm::parameters::ParameterPool;
use orrery_bsbm::templates::{ANALYTICAL, BUSINESS, EXPLORE, instantiate};
use orrery_bsbm::{BusinessParameters, Catalog, GenerateOptions, Random};
use orrery_loader::{CompactOptions, SilentProgress, compact};
use orrery_sparql::{Destination, Engine, QueryOptions, Tuning};
use orrery_storage::{CommitOptions, Database, WriterOptions};
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
    orrery_bsbm::generate(&options, &mut File::create(&data).unwrap()).unwrap();
    let dataset = reference::read_nquads(BufReader::new(File::open(&data).unwrap())).unwrap();
    let database = home.path().join("db");
    engine::load(&database, std::slice::from_ref(&data), 256 << 20).unwrap();
    let engine = engine::open(&database).unwrap();
    let templates = home.path().join("templates");
    std::fs::create_dir(&templates).unwrap();
    for template in orrery_bsbm::templates::EXPLORE {
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

/// The explore, business intelligence and analytical queries with parameters.
fn all_queries(options: &GenerateOptions) -> Vec<String> {
    let catalog = Catalog::new(options);
    let pool = ParameterPool::from_catalog(&catalog).unwrap();
    let business = BusinessParameters::new(&catalog);
    let mut random = Random::new(7);
    let mut queries = Vec::new();
    for template in &EXPLORE {
        let set = pool.draw(template.number, &mut random).unwrap();
        queries.push(instantiate(template.text, &set.values).unwrap());
    }
    for template in BUSINESS.iter().chain(&ANALYTICAL) {
        let values = business.draw(template.text, &mut random);
        queries.push(instantiate(template.text, &values).unwrap());
    }
    queries
}

/// Prepares a query in one engine, sends its plan to another one, and compares what both show and
/// answer.
fn compare_elsewhere(here: &Engine, elsewhere: &Engine, query: &str, has_shares: bool) -> usize {
    let options = QueryOptions {
        tuning: Tuning {
            partitions: has_shares.then_some(3),
            ..Tuning::default()
        },
        ..QueryOptions::of_process()
    };
    let prepared = here.prepare(query, &options).unwrap();
    let to = Destination {
        processes: 1,
        has_shares,
    };
    let bytes = prepared.encoded_plan(to).unwrap();
    let there = prepared.with_encoded_plan(elsewhere, &bytes, 1).unwrap();
    let shown = there.explain().replace(", a share each", "");
    assert_eq!(shown, prepared.explain(), "{query}");
    let expected = engine::run(&prepared).unwrap();
    let answer = engine::run(&there).unwrap();
    // In partitions, rows that ORDER BY leaves equal come in the order of their ids, and sums of
    // doubles differ in the last digits.
    match has_shares {
        false => assert_eq!(answer.sorted_lines(), expected.sorted_lines(), "{query}"),
        true => assert_eq!(answer.rows(), expected.rows(), "{query}"),
    }
    answer.rows()
}

#[test]
fn plans_of_all_bsbm_queries_are_the_same_and_answer_the_same_elsewhere() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("bsbm.nt");
    let options = GenerateOptions {
        products: 200,
        ..GenerateOptions::default()
    };
    orrery_bsbm::generate(&options, &mut File::create(&data).unwrap()).unwrap();
    let directory = home.path().join("db");
    engine::load(&directory, std::slice::from_ref(&data), 256 << 20).unwrap();
    let here = engine::open(&directory).unwrap();
    let elsewhere = engine::open(&directory).unwrap();
    let mut rows = 0;
    for query in all_queries(&options) {
        rows += compare_elsewhere(&here, &elsewhere, &query, false);
        rows += compare_elsewhere(&here, &elsewhere, &query, true);
    }
    assert!(rows > 200, "the answers are not empty: {rows} rows");
}

/// A compaction keeps the number of the commit and gives terms other ids.
#[test]
fn a_plan_from_before_a_compaction_is_refused_after_it() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data.nt");
    let line = |name: &str| format!("<http://e/{name}> <http://e/p> <http://e/o> .\n");
    std::fs::write(&data, ["a", "b", "c"].map(line).concat()).unwrap();
    let directory = home.path().join("db");
    engine::load(&directory, std::slice::from_ref(&data), 256 << 20).unwrap();
    let database = Arc::new(Database::open(&directory).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    let mut transaction = writer.begin().unwrap();
    let term = |name: &str| orrery_term::Term::iri(format!("http://e/{name}"));
    let [s, p, o] = ["a", "p", "o"].map(|name| transaction.intern(&term(name)).unwrap());
    let graph = orrery_term::TermId::DEFAULT_GRAPH;
    transaction.delete(&mut vec![[s, p, o, graph]]).unwrap();
    let pending = transaction.commit(CommitOptions::default()).unwrap();
    pending.wait().unwrap();
    let here = engine::open(&directory).unwrap();
    let query = "SELECT * { ?s <http://e/p> ?o }";
    let prepared = here.prepare(query, &QueryOptions::of_process()).unwrap();
    let to = Destination {
        processes: 1,
        has_shares: false,
    };
    let bytes = prepared.encoded_plan(to).unwrap();
    compact(&writer, &CompactOptions::default(), &SilentProgress).unwrap();
    let elsewhere = engine::open(&directory).unwrap();
    let commits = [&here, &elsewhere].map(|engine| engine.database().snapshot().commit());
    assert_eq!(commits[0], commits[1]);
    let refused = prepared.with_encoded_plan(&elsewhere, &bytes, 1);
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("has to be planned again"), "{error}");
    // Where the old files are still open, it runs.
    let there = prepared.with_encoded_plan(&here, &bytes, 1).unwrap();
    assert_eq!(engine::run(&there).unwrap().rows(), 2);
}
