//! The driver that measures the count of all triples over HTTP.

use std::fmt;
use std::time::Instant;

use serde::Serialize;

use super::pool::select;
use super::{BenchError, RESULTS_JSON};
use crate::http_client::HttpClient;
use crate::report::{Table, Times, with_thousands};

const QUERY: &str = "SELECT (COUNT(*) AS ?c) { ?s ?p ?o }";
const WARM_UP_RUNS: usize = 3;

/// How many triples there are, and how long it took to know.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountReport {
    /// The count.
    pub triples: u64,
    /// From the request to the whole answer.
    pub times: Times,
}

/// Asks an endpoint for the number of triples, `runs` times.
///
/// # Errors
/// When the endpoint does not answer with a number.
pub fn count(endpoint: &str, runs: usize) -> Result<CountReport, BenchError> {
    let mut client = HttpClient::new(endpoint)?;
    let answer = select(&mut client, QUERY, "c")?;
    let triples = answer
        .first()
        .and_then(|value| value.parse().ok())
        .ok_or_else(|| BenchError::Result {
            what: QUERY.to_owned(),
        })?;
    let mut body = Vec::new();
    let mut times = Vec::with_capacity(runs);
    for run in 0..WARM_UP_RUNS + runs {
        let start = Instant::now();
        client
            .query(QUERY, RESULTS_JSON, &mut body)
            .map_err(|source| BenchError::Query {
                what: QUERY.to_owned(),
                source,
            })?;
        if run >= WARM_UP_RUNS {
            times.push(start.elapsed());
        }
    }
    Ok(CountReport {
        triples,
        times: Times::of(&times),
    })
}

impl fmt::Display for CountReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([
            "count of all triples",
            "runs",
            "median ms",
            "p95 ms",
            "min ms",
        ]);
        table.row([
            with_thousands(self.triples),
            self.times.runs.to_string(),
            format!("{:.3}", self.times.median_ms),
            format!("{:.3}", self.times.p95_ms),
            format!("{:.3}", self.times.min_ms),
        ]);
        table.fmt(formatter)
    }
}
