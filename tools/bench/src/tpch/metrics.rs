//! Power, Throughput and QphH (clauses 5.4.1 to 5.4.3).

use serde::Serialize;

use super::Scale;

const SECONDS_PER_HOUR: f64 = 3_600.0;
/// The quickest query of the power test counts as if it had taken at least this part of what the
/// slowest took (5.4.1.4).
const SPREAD_MAX: f64 = 1_000.0;

/// What the power test took, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PowerTimes {
    /// The 22 queries, from Q1 on.
    pub queries: [f64; 22],
    /// The two refresh functions.
    pub refreshes: [f64; 2],
}

/// What the throughput test took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThroughputTimes {
    /// Streams of queries.
    pub streams: usize,
    /// Seconds from the first query's begin to the last end, be it of a query or a refresh.
    pub elapsed: f64,
}

/// The three figures of a run: queries an hour, by the scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Metrics {
    /// From the geometric mean of the power test's times.
    pub power: f64,
    /// From the length of the throughput test.
    pub throughput: f64,
    /// The geometric mean of both.
    pub composite: f64,
}

impl Metrics {
    /// Computes them.
    pub fn new(scale: Scale, power: &PowerTimes, throughput: &ThroughputTimes) -> Self {
        let slowest = power.queries.iter().copied().fold(0.0, f64::max);
        let times = power.queries.map(|time| time.max(slowest / SPREAD_MAX));
        let times = times.iter().chain(&power.refreshes);
        let intervals = (power.queries.len() + power.refreshes.len()) as f64;
        let mean = (times.map(|time| time.ln()).sum::<f64>() / intervals).exp();
        let power_figure = SECONDS_PER_HOUR * scale.factor() / mean;
        let asked = (throughput.streams * power.queries.len()) as f64;
        let throughput_figure = asked * SECONDS_PER_HOUR / throughput.elapsed * scale.factor();
        Self {
            power: power_figure,
            throughput: throughput_figure,
            composite: (power_figure * throughput_figure).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(scale: f64, queries: [f64; 22], elapsed: f64) -> Metrics {
        let times = PowerTimes {
            queries,
            refreshes: [0.5, 0.5],
        };
        let throughput = ThroughputTimes {
            streams: 2,
            elapsed,
        };
        Metrics::new(Scale::new(scale).unwrap(), &times, &throughput)
    }

    #[test]
    fn figures_are_queries_an_hour_by_scale() {
        let at_one = metrics(1.0, [0.5; 22], 44.0);
        assert!((at_one.power - 7_200.0).abs() < 1e-6);
        assert!((at_one.throughput - 3_600.0).abs() < 1e-6);
        assert!((at_one.composite - (7_200.0_f64 * 3_600.0).sqrt()).abs() < 1e-6);
        let at_ten = metrics(10.0, [0.5; 22], 44.0);
        assert!((at_ten.composite - 10.0 * at_one.composite).abs() < 1e-6);
    }

    #[test]
    fn a_query_of_no_time_counts_as_a_thousandth_of_the_slowest() {
        let mut queries = [1.0; 22];
        queries[5] = 1e-9;
        let mut floor = [1.0; 22];
        floor[5] = 1e-3;
        assert_eq!(metrics(1.0, queries, 10.0), metrics(1.0, floor, 10.0));
    }
}
