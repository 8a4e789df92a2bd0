//! The driver of BSBM's explore queries over HTTP, one client, mix after mix.
//!
//! A mix is the 25 queries in the specification's order, each with parameters of
//! its own. Warm-up mixes are not counted. The time of a query is from the first
//! byte of the request to the last of the answer; queries per hour of mixes
//! (QMpH) come from the time of whole mixes, as in the official driver.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{BenchError, N_TRIPLES, RESULTS_JSON, parameter_pool};
use crate::http_client::{HttpClient, HttpError, QueryEncoding};
use crate::report::{Table, Times};
use orrery_bsbm::Random;
use orrery_bsbm::parameters::ParameterPool;
use orrery_bsbm::templates::{EXPLORE, EXPLORE_MIX, QueryTemplate, explore_template, instantiate};

/// How to measure.
#[derive(Clone, Debug)]
pub struct ExploreOptions {
    /// The SPARQL endpoint.
    pub endpoint: String,
    /// Mixes before the measurement.
    pub warm_up_mixes: u32,
    /// Mixes measured.
    pub mixes: u32,
    /// The seed of the parameters.
    pub seed: u64,
    /// Where parameters come from; without it, from the endpoint.
    pub pool: Option<ParameterPool>,
    /// How queries are sent.
    pub encoding: QueryEncoding,
}

impl ExploreOptions {
    /// 10 mixes to warm up, 50 measured.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            warm_up_mixes: 10,
            mixes: 50,
            seed: 1,
            pool: None,
            encoding: QueryEncoding::Direct,
        }
    }

    pub(super) fn client(&self) -> Result<HttpClient, HttpError> {
        Ok(HttpClient::new(&self.endpoint)?.with_encoding(self.encoding))
    }

    /// The parameters, from the endpoint if there are no others.
    fn pool(&self) -> Result<Cow<'_, ParameterPool>, BenchError> {
        match &self.pool {
            Some(pool) => Ok(Cow::Borrowed(pool)),
            None => parameter_pool(&mut self.client()?).map(Cow::Owned),
        }
    }
}

/// The figures of one query.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QueryReport {
    /// The query's number.
    pub query: u8,
    /// Times of its runs.
    #[serde(flatten)]
    pub times: Times,
    /// Runs a second, one after the other.
    pub queries_per_second: f64,
    /// The mean size of an answer.
    pub mean_result_bytes: f64,
}

/// The figures of all queries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExploreReport {
    /// Query by query.
    pub queries: Vec<QueryReport>,
    /// Mixes measured.
    pub mixes: u32,
    /// The time of all measured mixes.
    pub seconds: f64,
    /// Query mixes an hour.
    pub query_mixes_per_hour: f64,
}

impl ExploreReport {
    /// The query with the greatest median.
    pub fn slowest(&self) -> Option<&QueryReport> {
        self.queries
            .iter()
            .max_by(|left, right| left.times.median_ms.total_cmp(&right.times.median_ms))
    }
}

/// The runs of each query, by its number.
#[derive(Default)]
pub(super) struct Runs(BTreeMap<u8, QueryRuns>);

#[derive(Default)]
struct QueryRuns {
    times: Vec<Duration>,
    bytes: u64,
}

/// Runs the explore queries against an endpoint.
///
/// # Errors
/// When a query fails: a benchmark of wrong answers is none.
pub fn explore(options: &ExploreOptions) -> Result<ExploreReport, BenchError> {
    let pool = options.pool()?;
    let mut mixes = MixClient::new(options.client()?, &pool, options.seed);
    mixes.run_many(options.warm_up_mixes, &mut Runs::default())?;
    let mut runs = Runs::default();
    let total = mixes.run_many(options.mixes, &mut runs)?;
    Ok(summarize(&runs, options.mixes, total))
}

/// Runs the explore queries with several clients at a time, each with parameters of its own and as
/// many mixes as the options say, and gives the mixes an hour of all together: from when all have
/// warmed up until the last has its last answer.
///
/// # Errors
/// When a query fails.
pub fn explore_clients(options: &ExploreOptions, clients: u32) -> Result<f64, BenchError> {
    let pool = options.pool()?;
    // A wrong address is told here: a client that does not come to the barrier would hold the
    // others for ever.
    options.client()?;
    let warm = Barrier::new(clients as usize);
    let client = |number: u32| -> Result<(Instant, Instant), BenchError> {
        let seed = options.seed + u64::from(number) * 1_000;
        let mut mixes = MixClient::new(options.client()?, &pool, seed);
        let warmed = mixes.run_many(options.warm_up_mixes, &mut Runs::default());
        // Also after a failure, or the others would wait for ever.
        warm.wait();
        warmed?;
        let start = Instant::now();
        mixes.run_many(options.mixes, &mut Runs::default())?;
        Ok((start, Instant::now()))
    };
    let times = std::thread::scope(|scope| {
        let client = &client;
        let threads: Vec<_> = (0..clients)
            .map(|number| scope.spawn(move || client(number)))
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread.join().unwrap_or_else(|_| {
                    Err(BenchError::Result {
                        what: "a client of the explore queries panicked".to_owned(),
                    })
                })
            })
            .collect::<Result<Vec<_>, _>>()
    })?;
    let start = times.iter().map(|(start, _)| *start).min();
    let end = times.iter().map(|(_, end)| *end).max();
    let elapsed = start.zip(end).map(|(start, end)| end - start);
    Ok(mixes_an_hour(
        (clients * options.mixes) as usize,
        elapsed.unwrap_or_default(),
    ))
}

/// Mixes an hour; 0 where there were none.
pub(super) fn mixes_an_hour(mixes: usize, elapsed: Duration) -> f64 {
    match elapsed.as_secs_f64() {
        seconds if seconds > 0.0 => mixes as f64 * 3_600.0 / seconds,
        _ => 0.0,
    }
}

/// A client that runs mix after mix on one connection, with parameters of their own.
pub(super) struct MixClient<'p> {
    client: HttpClient,
    pool: &'p ParameterPool,
    random: Random,
}

impl<'p> MixClient<'p> {
    pub(super) fn new(client: HttpClient, pool: &'p ParameterPool, seed: u64) -> Self {
        Self {
            client,
            pool,
            random: Random::new(seed),
        }
    }

    /// Runs mixes and returns the time spent in queries.
    fn run_many(&mut self, mixes: u32, runs: &mut Runs) -> Result<Duration, BenchError> {
        (0..mixes).map(|_| self.run(runs)).sum()
    }

    /// Runs one mix and returns the time spent in queries.
    pub(super) fn run(&mut self, runs: &mut Runs) -> Result<Duration, BenchError> {
        let mut total = Duration::ZERO;
        let mut body = Vec::new();
        for template in EXPLORE_MIX.into_iter().filter_map(explore_template) {
            let set = self.pool.draw(template.number, &mut self.random)?;
            let text = instantiate(template.text, &set.values)?;
            let start = Instant::now();
            self.client
                .query(&text, media_type(template), &mut body)
                .map_err(|source| BenchError::Query {
                    what: format!("explore query {}", template.number),
                    source,
                })?;
            let elapsed = start.elapsed();
            total += elapsed;
            let runs = runs.0.entry(template.number).or_default();
            runs.times.push(elapsed);
            runs.bytes += body.len() as u64;
        }
        Ok(total)
    }
}

fn media_type(template: &QueryTemplate) -> &'static str {
    if template.is_graph_query {
        N_TRIPLES
    } else {
        RESULTS_JSON
    }
}

pub(super) fn summarize(runs: &Runs, mixes: u32, total: Duration) -> ExploreReport {
    let queries = EXPLORE
        .iter()
        .filter_map(|template| Some((template.number, runs.0.get(&template.number)?)))
        .map(|(query, runs)| {
            let times = Times::of(&runs.times);
            QueryReport {
                query,
                times,
                queries_per_second: times.per_second(),
                mean_result_bytes: runs.bytes as f64 / runs.times.len().max(1) as f64,
            }
        })
        .collect();
    ExploreReport {
        queries,
        mixes,
        seconds: total.as_secs_f64(),
        query_mixes_per_hour: mixes_an_hour(mixes as usize, total),
    }
}

impl fmt::Display for ExploreReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([
            "query",
            "runs",
            "median ms",
            "p95 ms",
            "mean ms",
            "max ms",
            "queries/s",
            "bytes",
        ]);
        for query in &self.queries {
            let times = &query.times;
            table.row([
                format!("Q{}", query.query),
                times.runs.to_string(),
                format!("{:.3}", times.median_ms),
                format!("{:.3}", times.p95_ms),
                format!("{:.3}", times.mean_ms),
                format!("{:.3}", times.max_ms),
                format!("{:.0}", query.queries_per_second),
                format!("{:.0}", query.mean_result_bytes),
            ]);
        }
        table.fmt(formatter)?;
        writeln!(
            formatter,
            "{} mixes in {:.3} s: {:.0} query mixes per hour",
            self.mixes, self.seconds, self.query_mixes_per_hour
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_come_from_the_times() {
        let mut runs = Runs::default();
        runs.0.insert(
            2,
            QueryRuns {
                times: vec![Duration::from_millis(2); 10],
                bytes: 1_000,
            },
        );
        let report = summarize(&runs, 10, Duration::from_secs(1));
        assert_eq!(report.query_mixes_per_hour, 36_000.0);
        assert_eq!(report.queries.len(), 1);
        assert_eq!(
            report.slowest().map(|query| query.mean_result_bytes),
            Some(100.0)
        );
        assert!(report.to_string().starts_with("query  runs"));
    }
}
