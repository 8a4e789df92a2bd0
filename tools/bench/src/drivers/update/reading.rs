//! What reading costs while changes are not compacted yet: the same queries on two servers, over
//! the same data with and without changes, and after a compaction.
//!
//! One in a hundred quads is changed, spread over all predicates and subjects: texts and numbers
//! are replaced by others, links are removed. Another copy has a tenth of one predicate's values
//! replaced. Both servers answer each query by turns, and the best of the runs counts.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::super::{Bar, BenchError, Binary, RESULTS_JSON};
use super::failures::failed;
use super::options::UpdateBenchOptions;
use super::transactions::WITHOUT_CHECKPOINTS;
use crate::http_client::HttpClient;
use orrery_bsbm::templates::{ANALYTICAL, instantiate};
use orrery_bsbm::{BusinessParameters, Catalog, Random};

/// Runs of each query on each server.
const RUNS: usize = 15;

const PREFIXES: &str = "PREFIX v: <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
";
/// Queries that do nothing but read predicates.
const READING: [(&str, &str); 3] = [
    (
        "delivery days, read and added up",
        "SELECT (SUM(?days) AS ?sum) { ?offer v:deliveryDays ?days }",
    ),
    (
        "labels, read and counted by length",
        "SELECT ?length (COUNT(*) AS ?n) { ?s rdfs:label ?label BIND(STRLEN(?label) AS ?length) } GROUP BY ?length",
    ),
    (
        "all quads, read and counted by subject",
        "SELECT (COUNT(*) AS ?n) (MAX(?rows) AS ?most) { SELECT ?s (COUNT(?o) AS ?rows) { ?s ?p ?o } GROUP BY ?s }",
    ),
];
/// The share of all quads that is changed: 41 + 41 of 8,192 where a value is replaced, 82 where a
/// link goes.
const CHANGE_ALL: &str = "DELETE { ?s ?p ?o } INSERT { ?s ?p ?new } WHERE {
  ?s ?p ?o FILTER(isLiteral(?o) && STRLEN(STR(?o)) != 0)
  FILTER(SUBSTR(MD5(CONCAT(STR(?s), STR(?p), STR(?o))), 1, 4) < \"0148\")
  BIND(IF(isNumeric(?o), ?o + 1, IF(LANG(?o) != \"\", STRLANG(CONCAT(STR(?o), \" x\"), LANG(?o)),
    IF(DATATYPE(?o) = xsd:string, CONCAT(STR(?o), \" x\"), ?o))) AS ?new)
  FILTER(!sameTerm(?o, ?new)) };
DELETE { ?s ?p ?o } WHERE {
  ?s ?p ?o FILTER(isIRI(?o))
  FILTER(SUBSTR(MD5(CONCAT(STR(?s), STR(?p), STR(?o))), 1, 4) < \"0290\") }";
const CHANGE_ONE: &str = "DELETE { ?s v:deliveryDays ?o } INSERT { ?s v:deliveryDays ?new } WHERE {
  ?s v:deliveryDays ?o FILTER(SUBSTR(MD5(STR(?s)), 1, 3) < \"19a\") BIND(?o + 30 AS ?new) }";

/// One query with and without changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadingTimes {
    /// Which query.
    pub query: String,
    /// The best time without changes.
    pub unchanged_ms: f64,
    /// The best time with changes.
    pub changed_ms: f64,
}

impl ReadingTimes {
    /// How many times as long it takes with changes.
    pub fn factor(&self) -> f64 {
        self.changed_ms / self.unchanged_ms
    }
}

/// What changes cost who reads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadingReport {
    /// Changes, as a share of all quads.
    pub share: f64,
    /// With that share of the data in the delta.
    pub with_delta: Vec<ReadingTimes>,
    /// After the compaction.
    pub after_compaction: Vec<ReadingTimes>,
    /// Reading a predicate of which a tenth was replaced.
    pub tenth_of_predicate: ReadingTimes,
}

impl ReadingReport {
    pub(super) fn bars(&self) -> Vec<Bar> {
        let (changed, compacted) = (&self.with_delta, &self.after_compaction);
        let name = |what: &str, times: &[ReadingTimes]| match worst(times) {
            Some(worst) => format!("{what}, the worst query ({})", worst.query),
            None => what.to_owned(),
        };
        let factor = |times: &[ReadingTimes]| worst(times).map_or(f64::NAN, ReadingTimes::factor);
        vec![
            Bar::at_most(
                "reading with 1 % changed, mean",
                "times",
                mean_factor(changed),
                1.15,
            ),
            Bar::at_most(
                name("reading with 1 % changed", changed),
                "times",
                factor(changed),
                1.15,
            ),
            Bar::at_most(
                "reading after compaction, mean",
                "times",
                mean_factor(compacted),
                1.02,
            ),
        ]
    }
}

/// The geometric mean of the factors.
fn mean_factor(times: &[ReadingTimes]) -> f64 {
    let sum: f64 = times.iter().map(|times| times.factor().ln()).sum();
    (sum / times.len().max(1) as f64).exp()
}

/// The query with the greatest factor.
fn worst(times: &[ReadingTimes]) -> Option<&ReadingTimes> {
    times
        .iter()
        .max_by(|a, b| a.factor().total_cmp(&b.factor()))
}

/// Measures on three equal databases, two of which are changed.
pub(super) fn reading(
    binary: &Binary,
    options: &UpdateBenchOptions,
    [unchanged, all, one]: [&Path; 3],
) -> Result<ReadingReport, BenchError> {
    let queries = queries(options)?;
    let unchanged = binary.serve(unchanged)?;
    let mut client = HttpClient::new(unchanged.endpoint())?;

    let server = binary.serve_with(one, &WITHOUT_CHECKPOINTS)?;
    let mut changed = HttpClient::new(server.endpoint())?;
    change(&mut changed, CHANGE_ONE)?;
    let tenth_of_predicate = times(&mut client, &mut changed, &queries[0])?;
    drop(server);

    let server = binary.serve_with(all, &WITHOUT_CHECKPOINTS)?;
    let mut changed = HttpClient::new(server.endpoint())?;
    let share = change(&mut changed, CHANGE_ALL)? / quads(&mut client)?;
    let mut each = |changed: &mut HttpClient| -> Result<Vec<ReadingTimes>, BenchError> {
        let measured = queries
            .iter()
            .map(|query| times(&mut client, changed, query));
        measured.collect()
    };
    let with_delta = each(&mut changed)?;
    drop(server);
    let path = all.to_string_lossy();
    binary.run(&["compact", "--db", path.as_ref()])?;
    let server = binary.serve_with(all, &WITHOUT_CHECKPOINTS)?;
    let after_compaction = each(&mut HttpClient::new(server.endpoint())?)?;
    Ok(ReadingReport {
        share,
        with_delta,
        after_compaction,
        tenth_of_predicate,
    })
}

/// Names and texts; the first reads the predicate of which a tenth is replaced.
fn queries(options: &UpdateBenchOptions) -> Result<Vec<(String, String)>, BenchError> {
    let mut queries: Vec<(String, String)> = READING
        .iter()
        .map(|(name, text)| ((*name).to_owned(), format!("{PREFIXES}{text}")))
        .collect();
    let catalog = Catalog::new(&options.data);
    let parameters = BusinessParameters::new(&catalog);
    let mut random = Random::new(1);
    for template in &ANALYTICAL {
        let values = parameters.draw(template.text, &mut random);
        queries.push((
            template.name.to_owned(),
            instantiate(template.text, &values)?,
        ));
    }
    Ok(queries)
}

/// Makes a change; returns how many quads came and went.
fn change(client: &mut HttpClient, text: &str) -> Result<f64, BenchError> {
    let mut body = Vec::new();
    client
        .update(&format!("{PREFIXES}{text}"), &mut body)
        .map_err(failed("the changes before reading"))?;
    let answer: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    match (answer["added"].as_f64(), answer["removed"].as_f64()) {
        (Some(added), Some(removed)) if removed > 0.0 => Ok(added + removed),
        _ => Err(BenchError::Result {
            what: "the changes before reading".to_owned(),
        }),
    }
}

fn quads(client: &mut HttpClient) -> Result<f64, BenchError> {
    let mut body = Vec::new();
    let text = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
    client
        .query(text, RESULTS_JSON, &mut body)
        .map_err(failed("the number of quads"))?;
    let answer: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let count = answer["results"]["bindings"][0]["n"]["value"].as_str();
    count
        .and_then(|count| count.parse().ok())
        .ok_or_else(|| BenchError::Result {
            what: "the number of quads".to_owned(),
        })
}

/// Asks both servers by turns.
fn times(
    unchanged: &mut HttpClient,
    changed: &mut HttpClient,
    (name, text): &(String, String),
) -> Result<ReadingTimes, BenchError> {
    let mut best = [Duration::MAX; 2];
    let mut body = Vec::new();
    for _ in 0..RUNS {
        for (client, best) in [&mut *unchanged, &mut *changed].into_iter().zip(&mut best) {
            let start = Instant::now();
            client
                .query(text, RESULTS_JSON, &mut body)
                .map_err(failed(name))?;
            *best = start.elapsed().min(*best);
        }
    }
    let [unchanged_ms, changed_ms] = best.map(|best| best.as_secs_f64() * 1e3);
    Ok(ReadingTimes {
        query: name.clone(),
        unchanged_ms,
        changed_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_factor_is_found_and_the_mean_is_geometric() {
        let times = |query: &str, changed_ms: f64| ReadingTimes {
            query: query.to_owned(),
            unchanged_ms: 2.0,
            changed_ms,
        };
        let all = [times("a", 1.0), times("b", 8.0)];
        assert_eq!(worst(&all).map(|times| &times.query[..]), Some("b"));
        assert!((mean_factor(&all) - 2f64.sqrt()).abs() < 1e-9);
    }
}
