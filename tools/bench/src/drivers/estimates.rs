//! The driver that compares the planner's estimates with actual rows.
//!
//! The measure is the q-error (Moerkotte, Neumann, Steidl: "Preventing bad plans by bounding the
//! impact of cardinality estimation errors", VLDB 2009): the larger of estimate / actual and actual
//! / estimate, both taken as at least one row. Plans come from
//! `orrery explain --analyze --format json`. What a run does not read to its end (below a limit, in
//! an `EXISTS`) says nothing and is left out; an operator that only hands on its input's rows
//! counts once.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::walks::patterns;
use super::{BenchError, Binary};
use crate::http_client::{HttpClient, QueryEncoding};
use crate::report::Table;
use orrery_bsbm::GenerateOptions;
use orrery_bsbm::parameters::ParameterPool;
use orrery_bsbm::templates::{ANALYTICAL, BUSINESS, EXPLORE, instantiate};
use orrery_bsbm::{BusinessParameters, Catalog, Random};

/// Shown of the worst estimates.
const WORST_SHOWN: usize = 10;
/// How the report calls all queries together.
const ALL: &str = "all";

/// What to ask.
#[derive(Clone, Debug)]
pub struct EstimatesOptions {
    /// The database.
    pub database: PathBuf,
    /// The BSBM data set that it has, if it has one.
    pub data: Option<GenerateOptions>,
    /// Sets of parameters of each BSBM query.
    pub sets: u32,
    /// Patterns drawn from the data.
    pub patterns: u32,
    /// The same seed draws the same.
    pub seed: u64,
    /// Queries that take longer are left out.
    pub timeout: Duration,
}

/// One estimate, beside what was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The group of queries.
    pub group: String,
    /// The operator, or the pattern of a step.
    pub what: String,
    /// Whether it is a step of a pattern.
    pub is_step: bool,
    /// Rows expected.
    pub estimated: f64,
    /// Rows found.
    pub actual: f64,
    /// The factor between them, at least one.
    pub q_error: f64,
    /// The query.
    pub query: String,
}

/// How the q-errors of some estimates are spread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Whose they are.
    pub group: String,
    /// How many.
    pub count: usize,
    /// Half are no larger.
    pub median: f64,
    /// 95 of 100 are no larger.
    pub p95: f64,
    /// The largest.
    pub max: f64,
}

/// All estimates summed up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EstimatesReport {
    /// Queries asked.
    pub queries: usize,
    /// Queries left out, with the reason.
    pub left_out: Vec<String>,
    /// By group of queries and kind; the last one is of all.
    pub spreads: Vec<Spread>,
    /// The worst ones, of different queries.
    pub worst: Vec<Estimate>,
}

/// Explains and runs all queries.
///
/// # Errors
/// When the database cannot be served or the binary cannot be started; a query that fails is left
/// out.
pub fn estimates(
    binary: &Binary,
    options: &EstimatesOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<EstimatesReport, BenchError> {
    let mut queries = match &options.data {
        Some(data) => bsbm_queries(data, options)?,
        None => Vec::new(),
    };
    if options.patterns > 0 {
        progress("drawing patterns");
        let server = binary.serve_with(&options.database, &["--read-only"])?;
        let mut client = HttpClient::new(server.endpoint())?.with_encoding(QueryEncoding::Form);
        let drawn = patterns(
            &mut client,
            options.patterns,
            &mut Random::new(options.seed),
        )?;
        queries.extend(drawn.into_iter().map(|text| ("patterns", text)));
    }
    progress("explaining and running");
    let mut found = Vec::new();
    let mut left_out = Vec::new();
    let seconds = format!("{}s", options.timeout.as_secs().max(1));
    for (group, text) in &queries {
        let arguments: [&OsStr; 9] = [
            "explain".as_ref(),
            "--db".as_ref(),
            options.database.as_ref(),
            "--analyze".as_ref(),
            "--format".as_ref(),
            "json".as_ref(),
            "--timeout".as_ref(),
            seconds.as_ref(),
            text.as_ref(),
        ];
        match binary.run(&arguments) {
            Ok(finished) => {
                let plan: Value =
                    serde_json::from_str(&finished.output).map_err(|error| BenchError::Output {
                        command: finished.command,
                        what: error.to_string(),
                    })?;
                collect_estimates(&plan, group, text, &mut found);
            }
            Err(BenchError::Failed { message, .. }) => left_out.push(format!("{message}\n{text}")),
            Err(other) => return Err(other),
        }
    }
    Ok(EstimatesReport::of(queries.len(), left_out, found))
}

/// The BSBM queries with their parameters in place.
fn bsbm_queries(
    data: &GenerateOptions,
    options: &EstimatesOptions,
) -> Result<Vec<(&'static str, String)>, BenchError> {
    let catalog = Catalog::new(data);
    let pool = ParameterPool::from_catalog(&catalog)?;
    let business = BusinessParameters::new(&catalog);
    let mut random = Random::new(options.seed);
    let mut queries = Vec::new();
    for _ in 0..options.sets {
        for template in &EXPLORE {
            let set = pool.draw(template.number, &mut random)?;
            queries.push(("explore", instantiate(template.text, &set.values)?));
        }
        for template in &BUSINESS {
            let values = business.draw(template.text, &mut random);
            queries.push(("BI", instantiate(template.text, &values)?));
        }
    }
    for template in &ANALYTICAL {
        let values = business.draw(template.text, &mut random);
        queries.push(("analytical", instantiate(template.text, &values)?));
    }
    Ok(queries)
}

/// Takes the estimates of a plan's node, its steps and its inputs, as
/// `orrery explain --analyze --format json` prints them.
pub fn collect_estimates(node: &Value, group: &str, query: &str, found: &mut Vec<Estimate>) {
    let mut add = |of: &Value, is_step: bool| {
        let is_read_whole = of.get("is_read_whole").and_then(Value::as_bool) == Some(true);
        let (Some((estimated, actual)), true) = (figures(of), is_read_whole) else {
            return;
        };
        found.push(Estimate {
            group: group.to_owned(),
            what: of
                .get("text")
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned(),
            is_step,
            estimated,
            actual,
            q_error: q_error(estimated, actual),
            query: query.to_owned(),
        });
    };
    let empty = Vec::new();
    let list = |name: &str| node.get(name).and_then(Value::as_array).unwrap_or(&empty);
    let (steps, inputs) = (list("steps"), list("inputs"));
    // The rows of a pattern are those of its last step.
    let last_step = steps.last().and_then(figures);
    let only_input = match inputs.as_slice() {
        [input] => figures(input),
        _ => None,
    };
    let own = figures(node);
    if own != last_step && own != only_input {
        add(node, false);
    }
    steps.iter().for_each(|step| add(step, true));
    for input in inputs {
        collect_estimates(input, group, query, found);
    }
}

/// Estimated and actual rows of a node or a step.
fn figures(of: &Value) -> Option<(f64, f64)> {
    Some((
        of.get("estimated_rows")?.as_f64()?,
        of.get("rows")?.as_f64()?,
    ))
}

fn q_error(estimated: f64, actual: f64) -> f64 {
    let (estimated, actual) = (estimated.max(1.0), actual.max(1.0));
    (estimated / actual).max(actual / estimated)
}

impl EstimatesReport {
    /// Sums up what was found.
    pub fn of(queries: usize, left_out: Vec<String>, mut found: Vec<Estimate>) -> Self {
        found.sort_by(|left, right| right.q_error.total_cmp(&left.q_error));
        let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let mut all = Vec::with_capacity(found.len());
        for estimate in found.iter().rev() {
            let kind = if estimate.is_step {
                "steps"
            } else {
                "operators"
            };
            let group = format!("{}, {kind}", estimate.group);
            groups.entry(group).or_default().push(estimate.q_error);
            all.push(estimate.q_error);
        }
        let mut spreads: Vec<Spread> = groups
            .into_iter()
            .map(|(group, ascending)| spread(group, &ascending))
            .collect();
        spreads.push(spread(ALL.to_owned(), &all));
        let mut worst: Vec<Estimate> = Vec::new();
        for estimate in found {
            if worst.len() < WORST_SHOWN && worst.iter().all(|other| other.query != estimate.query)
            {
                worst.push(estimate);
            }
        }
        Self {
            queries,
            left_out,
            spreads,
            worst,
        }
    }
}

/// Of q-errors in ascending order.
fn spread(group: String, ascending: &[f64]) -> Spread {
    let at = |share: f64| {
        let rank = (share * ascending.len() as f64).ceil() as usize;
        ascending.get(rank.max(1) - 1).copied().unwrap_or(1.0)
    };
    Spread {
        group,
        count: ascending.len(),
        median: at(0.5),
        p95: at(0.95),
        max: at(1.0),
    }
}

impl fmt::Display for EstimatesReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{} queries, {} left out\n",
            self.queries,
            self.left_out.len()
        )?;
        let mut table = Table::markdown(["q-error of", "estimates", "median", "95 %", "worst"]);
        for spread in &self.spreads {
            table.row([
                spread.group.clone(),
                spread.count.to_string(),
                format!("{:.2}", spread.median),
                format!("{:.2}", spread.p95),
                format!("{:.0}", spread.max),
            ]);
        }
        table.fmt(formatter)?;
        for estimate in &self.worst {
            writeln!(
                formatter,
                "\n{:.0}: ~{:.0} rows, {:.0} found: {}\n{}",
                estimate.q_error,
                estimate.estimated,
                estimate.actual,
                estimate.what,
                estimate.query
            )?;
        }
        for left_out in &self.left_out {
            writeln!(formatter, "\nleft out: {left_out}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_q_error_is_at_least_one_whichever_way_it_errs() {
        assert_eq!(q_error(10.0, 100.0), 10.0);
        assert_eq!(q_error(100.0, 10.0), 10.0);
        assert_eq!(q_error(0.001, 0.0), 1.0);
        assert_eq!(q_error(0.5, 4.0), 4.0);
    }

    #[test]
    fn what_is_not_read_whole_or_only_handed_on_does_not_count() {
        let plan = json!({
            "text": "limit", "estimated_rows": 10.0, "rows": 10, "is_read_whole": true, "steps": [],
            "inputs": [{
                "text": "group", "estimated_rows": 50.0, "rows": 100, "is_read_whole": true, "steps": [],
                "inputs": [{
                    "text": "hands on", "estimated_rows": 80.0, "rows": 20, "is_read_whole": true, "steps": [],
                    "inputs": [{
                        "text": "pattern", "estimated_rows": 80.0, "rows": 20, "is_read_whole": true,
                        "steps": [
                            {"text": "first", "estimated_rows": 4.0, "rows": 2, "is_read_whole": true},
                            {"text": "cut", "estimated_rows": 9.0, "rows": 1, "is_read_whole": false},
                            {"text": "last", "estimated_rows": 80.0, "rows": 20, "is_read_whole": true},
                        ],
                        "inputs": [],
                    }],
                }],
            }],
        });
        let mut found = Vec::new();
        collect_estimates(&plan, "test", "query", &mut found);
        let found: Vec<(&str, f64)> = found
            .iter()
            .map(|estimate| (estimate.what.as_str(), estimate.q_error))
            .collect();
        assert_eq!(
            found,
            [
                ("limit", 1.0),
                ("group", 2.0),
                ("first", 2.0),
                ("last", 4.0)
            ]
        );
    }

    #[test]
    fn the_spread_is_by_rank_and_the_worst_are_of_different_queries() {
        let estimate = |actual: f64, query: &str| Estimate {
            group: "g".to_owned(),
            what: String::new(),
            is_step: true,
            estimated: 1.0,
            actual,
            q_error: q_error(1.0, actual),
            query: query.to_owned(),
        };
        let found = (1..=100).map(|actual| estimate(f64::from(actual), &format!("{}", actual / 2)));
        let report = EstimatesReport::of(50, Vec::new(), found.collect());
        let all = report.spreads.last().expect("all");
        assert_eq!(
            (all.count, all.median, all.p95, all.max),
            (100, 50.0, 95.0, 100.0)
        );
        let worst: Vec<f64> = report
            .worst
            .iter()
            .map(|estimate| estimate.actual)
            .collect();
        assert_eq!(worst[..3], [100.0, 99.0, 97.0]);
        assert_eq!(worst.len(), WORST_SHOWN);
    }
}
