//! The driver of the minimal cost of a request: point queries over one connection.
//!
//! The server is asked `SELECT ?value { <product> rdfs:label ?value }`: one range of one
//! permutation, one term of the dictionary, one row of answer. What remains is the floor under
//! every query. With `heavy` queries, so many that never end are held on connections of their own
//! meanwhile: what a cheap query waits for beside them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::binary::processor_time;
use super::pool::select;
use super::store::table_of;
use super::{Bar, BenchError, RESULTS_JSON};
use crate::http_client::{BegunQuery, HttpClient};
use crate::report::{Table, Times};
use orrery_bsbm::{Random, VOCABULARY};

/// Half of the requests should take no longer.
const MEDIAN_US_MAX: f64 = 150.0;
const WARM_UP_SHARE: u32 = 10;
const SEED: u64 = 1;
/// Work without end and without a row, in little memory: 27 billion combinations.
pub(super) const HEAVY_QUERY: &str = "SELECT (COUNT(*) AS ?n) { { SELECT ?a { ?s1 ?p1 ?a } LIMIT 3000 } \
     { SELECT ?b { ?s2 ?p2 ?b } LIMIT 3000 } { SELECT ?c { ?s3 ?p3 ?c } LIMIT 3000 } \
     FILTER(CONCAT(STR(?a), STR(?b), STR(?c)) = \"never\") }";
/// The time limit that they ask for.
const HEAVY_SECONDS: u32 = 600;
const HEAVY_START_MAX: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The parts of a request in the order in which they happen.
const PARTS: [&str; 5] = ["wait", "parse", "plan", "run", "serialize"];

/// What to ask, how often.
#[derive(Clone, Debug)]
pub struct FloorOptions {
    /// The SPARQL endpoint of a server with BSBM data.
    pub endpoint: String,
    /// Measured requests; a tenth as many before them warm the server.
    pub requests: u32,
    /// Endless queries beside the measured ones; more than none need a server of ours, which tells
    /// when they run.
    pub heavy: u32,
    /// The server's process, if it is on this machine.
    pub process: Option<u32>,
}

/// What a request costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FloorReport {
    /// From the first byte sent to the last one read.
    pub request: Times,
    /// The server's own times by part, where it tells them in `Server-Timing`.
    pub parts: BTreeMap<String, Times>,
    /// Processor time of the server a request, which depends less than the times on how busy the
    /// machine is.
    pub processor_us: Option<f64>,
    /// Endless queries beside the requests.
    pub heavy: u32,
    /// The median and its bar, which is for requests alone.
    pub bars: Vec<Bar>,
}

/// Asks point queries, each about another product.
///
/// # Errors
/// When a request fails, has no row, or there are no products.
pub fn floor(options: &FloorOptions) -> Result<FloorReport, BenchError> {
    let mut client = HttpClient::new(&options.endpoint)?;
    let products = products(&mut client)?;
    let held = hold_heavy(options, &mut client)?;
    let mut runs = Vec::with_capacity(options.requests as usize);
    let mut parts: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
    let mut body = Vec::new();
    let warm_up = options.requests / WARM_UP_SHARE;
    // At random: neighbours would be on the same page of the dictionary, request after request.
    let mut random = Random::new(SEED);
    let mut before = None;
    for number in 0..warm_up + options.requests {
        let Some(product) = random.pick(&products) else {
            break;
        };
        let query = point_query(product);
        let start = Instant::now();
        client
            .query(&query, RESULTS_JSON, &mut body)
            .map_err(|source| BenchError::Query {
                what: query.clone(),
                source,
            })?;
        let elapsed = start.elapsed();
        if !has_a_row(&body) {
            return Err(BenchError::Result { what: query });
        }
        if number < warm_up {
            continue;
        }
        if number == warm_up {
            before = options.process.and_then(processor_time);
        }
        runs.push(elapsed);
        for (name, time) in parse_server_timing(client.server_timing()) {
            match parts.get_mut(name) {
                Some(times) => times.push(time),
                None => drop(parts.insert(name.to_owned(), vec![time])),
            }
        }
    }
    if !held.iter().all(|query| query.is_running().unwrap_or(false)) {
        return Err(BenchError::Result {
            what: "a query without end was answered".to_owned(),
        });
    }
    let request = Times::of(&runs);
    let after = options.process.and_then(processor_time);
    let counted = runs.len().saturating_sub(1).max(1) as f64;
    Ok(FloorReport {
        heavy: options.heavy,
        bars: match options.heavy {
            0 => vec![Bar::at_most(
                "point query over a kept connection, median",
                "us",
                request.median_ms * 1e3,
                MEDIAN_US_MAX,
            )],
            _ => Vec::new(),
        },
        parts: parts
            .into_iter()
            .map(|(name, times)| (name, Times::of(&times)))
            .collect(),
        request,
        processor_us: before
            .zip(after)
            .map(|(before, after)| after.saturating_sub(before).as_secs_f64() * 1e6 / counted),
    })
}

/// Sends the endless queries and waits until the server runs them.
fn hold_heavy(
    options: &FloorOptions,
    client: &mut HttpClient,
) -> Result<Vec<BegunQuery>, BenchError> {
    let endpoint = format!("{}?timeout={HEAVY_SECONDS}", options.endpoint);
    let held = (0..options.heavy)
        .map(|_| HttpClient::new(&endpoint)?.begin_query(HEAVY_QUERY, RESULTS_JSON))
        .collect::<Result<Vec<_>, _>>()?;
    let start = Instant::now();
    while !held.is_empty() {
        let mut body = Vec::new();
        client.get("/health", &mut body)?;
        let health: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let running = health
            .get("queries_running")
            .and_then(serde_json::Value::as_u64);
        if running >= Some(u64::from(options.heavy)) {
            break;
        }
        if start.elapsed() > HEAVY_START_MAX {
            return Err(BenchError::Result {
                what: format!("{} queries without end do not run at a time", options.heavy),
            });
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(held)
}

/// The products, in sorted order.
pub(super) fn products(client: &mut HttpClient) -> Result<Vec<String>, BenchError> {
    let query = format!("SELECT ?x {{ ?x <{VOCABULARY}producer> ?producer }}");
    let mut products = select(client, &query, "x")?;
    if products.is_empty() {
        return Err(BenchError::Result { what: query });
    }
    products.sort_unstable();
    Ok(products)
}

pub(super) fn point_query(product: &str) -> String {
    format!("SELECT ?value {{ <{product}> <http://www.w3.org/2000/01/rdf-schema#label> ?value }}")
}

/// Whether a SELECT's answer in JSON has a binding; cheap, for it stands between the requests.
fn has_a_row(body: &[u8]) -> bool {
    body.windows(7).any(|window| window == b"\"value\"")
        && body.windows(8).any(|window| window == b"\"type\":\"")
}

/// The names and times of `name;dur=milliseconds, ...`.
fn parse_server_timing(header: &str) -> impl Iterator<Item = (&str, Duration)> {
    header.split(',').filter_map(|metric| {
        let (name, duration) = metric.trim().split_once(";dur=")?;
        let millis: f64 = duration.parse().ok()?;
        let time = Duration::try_from_secs_f64(millis / 1e3).ok()?;
        Some((name, time))
    })
}

impl fmt::Display for FloorReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.heavy {
            0 => table_of(&self.bars).fmt(formatter)?,
            heavy => writeln!(formatter, "beside {heavy} endless queries")?,
        }
        writeln!(formatter)?;
        let mut table = Table::new(["microseconds", "requests", "mean", "median", "p95", "min"]);
        let mut row = |name: &str, times: &Times| {
            let micros = |ms: f64| format!("{:.1}", ms * 1e3);
            table.row([
                name.to_owned(),
                times.runs.to_string(),
                micros(times.mean_ms),
                micros(times.median_ms),
                micros(times.p95_ms),
                micros(times.min_ms),
            ]);
        };
        row("request", &self.request);
        for name in PARTS {
            if let Some(times) = self.parts.get(name) {
                row(&format!("  {name}"), times);
            }
        }
        table.fmt(formatter)?;
        match self.processor_us {
            Some(micros) => writeln!(
                formatter,
                "\nprocessor time of the server: {micros:.1} us a request"
            ),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_timing_is_read_part_by_part() {
        let parts: Vec<_> =
            parse_server_timing("wait;dur=0.007, parse;dur=1.5, cache;desc=hit, x;dur=-1")
                .collect();
        assert_eq!(
            parts,
            [
                ("wait", Duration::from_micros(7)),
                ("parse", Duration::from_micros(1500))
            ]
        );
        assert_eq!(parse_server_timing("").count(), 0);
    }

    #[test]
    fn an_answer_without_rows_is_seen() {
        let empty = br#"{"head":{"vars":["value"]},"results":{"bindings":[]}}"#;
        assert!(!has_a_row(empty));
        let one = br#"{"head":{"vars":["value"]},"results":{"bindings":[{"value":{"type":"literal","value":"a"}}]}}"#;
        assert!(has_a_row(one));
    }
}
