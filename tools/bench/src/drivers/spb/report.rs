//! The report of a run by kind of operation.

use std::fmt::{self, Display};

use serde::Serialize;

use super::agents::Outcome;
use super::options::SpbOptions;
use crate::report::{Table, Times, quantile_ms};
use crate::spb::templates::{Kind, TextSearch};

/// The operations of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SpbKindReport {
    /// The kind.
    pub kind: Kind,
    /// Their times.
    #[serde(flatten)]
    pub times: Times,
    /// 90 of 100 took no longer.
    pub p90_ms: f64,
    /// 99 of 100 took no longer.
    pub p99_ms: f64,
    /// Answers with nothing in them.
    pub empty: usize,
    /// Operations that failed, those of the warm-up too.
    pub failures: usize,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpbReport {
    /// The time of the load, with its index of texts, if there was one.
    pub load_seconds: Option<f64>,
    /// Whether query 8 asked an index of texts.
    pub has_text_index: bool,
    /// Agents that wrote.
    pub editors: u32,
    /// Agents that read.
    pub aggregators: u32,
    /// Length of what counts.
    pub seconds: f64,
    /// Editorial operations a second.
    pub editorial_per_second: f64,
    /// Aggregation queries a second.
    pub aggregation_per_second: f64,
    /// Operations that failed.
    pub failures: usize,
    /// The first failures.
    pub told: Vec<String>,
    /// Kind by kind.
    pub kinds: Vec<SpbKindReport>,
}

impl SpbReport {
    pub(super) fn new(
        options: &SpbOptions,
        search: TextSearch,
        load_seconds: Option<f64>,
        outcome: Outcome,
    ) -> Self {
        let rate = |is_meant: fn(Kind) -> bool| {
            let kinds = outcome.kinds.iter().filter(|(kind, _)| is_meant(**kind));
            let done: usize = kinds.map(|(_, operations)| operations.times.len()).sum();
            done as f64 / outcome.seconds.max(f64::MIN_POSITIVE)
        };
        let kinds = outcome
            .kinds
            .iter()
            .map(|(kind, operations)| SpbKindReport {
                kind: *kind,
                times: Times::of(&operations.times),
                p90_ms: quantile_ms(&operations.times, 0.9),
                p99_ms: quantile_ms(&operations.times, 0.99),
                empty: operations.empty,
                failures: operations.failures,
            });
        let kinds: Vec<SpbKindReport> = kinds.collect();
        Self {
            load_seconds,
            has_text_index: search == TextSearch::Index,
            editors: options.editors,
            aggregators: options.aggregators,
            seconds: outcome.seconds,
            editorial_per_second: rate(|kind| matches!(kind, Kind::Edit(_))),
            aggregation_per_second: rate(|kind| matches!(kind, Kind::Query(_))),
            failures: kinds.iter().map(|kind| kind.failures).sum(),
            told: outcome.told.clone(),
            kinds,
        }
    }
}

impl Display for SpbReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(seconds) = self.load_seconds {
            writeln!(formatter, "loaded in {seconds:.1} s\n")?;
        }
        let mut table = Table::new([
            "kind",
            "runs",
            "mean ms",
            "min ms",
            "median ms",
            "p90 ms",
            "p95 ms",
            "p99 ms",
            "max ms",
            "empty",
            "failed",
        ]);
        for kind in &self.kinds {
            let ms = |ms: f64| format!("{ms:.2}");
            let times = &kind.times;
            table.row([
                kind.kind.to_string(),
                times.runs.to_string(),
                ms(times.mean_ms),
                ms(times.min_ms),
                ms(times.median_ms),
                ms(kind.p90_ms),
                ms(times.p95_ms),
                ms(kind.p99_ms),
                ms(times.max_ms),
                kind.empty.to_string(),
                kind.failures.to_string(),
            ]);
        }
        table.fmt(formatter)?;
        for failure in &self.told {
            writeln!(formatter, "failed: {failure}")?;
        }
        writeln!(
            formatter,
            "\n{} editors: {:.1} operations a second\n{} readers: {:.1} aggregation queries a second, words {}",
            self.editors,
            self.editorial_per_second,
            self.aggregators,
            self.aggregation_per_second,
            match self.has_text_index {
                true => "by an index of texts",
                false => "by reading all texts",
            }
        )
    }
}
