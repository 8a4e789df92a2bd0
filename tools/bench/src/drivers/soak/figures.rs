//! The server's pools, caches and old states at half-time and end, which tell a leak from a filled
//! cache.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::report::Table;

/// Of `/metrics`, with all of their labels.
const FAMILIES: [&str; 5] = [
    "orrery_memory_used_bytes",
    "orrery_cache_entries",
    "orrery_oldest_snapshot_age_seconds",
    "orrery_changes_uncompacted",
    "process_threads",
];

/// What `/metrics` said, by name and labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures(BTreeMap<String, f64>);

/// A figure at two times; none where it was not told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Its name and labels.
    pub what: String,
    /// In the middle of the run.
    pub half_time: Option<f64>,
    /// Before the server was killed.
    pub end: Option<f64>,
}

impl Figures {
    /// Those of a page in Prometheus' text format.
    pub(super) fn of(page: &str) -> Self {
        let samples = page.lines().filter_map(|line| {
            let (what, value) = line.rsplit_once(' ')?;
            let family = what.split('{').next()?;
            let is_wanted = FAMILIES.contains(&family);
            is_wanted.then_some((what.to_owned(), value.parse().ok()?))
        });
        Self(samples.collect())
    }

    pub(super) fn compared(half_time: &Self, end: &Self) -> Vec<Figure> {
        let all = half_time.0.iter().chain(&end.0);
        let all: BTreeMap<&String, &f64> = all.collect();
        let figure = |what: &String| Figure {
            what: what.clone(),
            half_time: half_time.0.get(what).copied(),
            end: end.0.get(what).copied(),
        };
        all.into_keys().map(figure).collect()
    }
}

pub(super) fn table(figures: &[Figure]) -> Table {
    let shown = |value: Option<f64>| match value {
        Some(value) => format!("{value}"),
        None => "not told".to_owned(),
    };
    let mut table = Table::new(["the server says", "half-time", "end"]);
    for figure in figures {
        table.row([
            figure.what.clone(),
            shown(figure.half_time),
            shown(figure.end),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_compared_by_name_and_labels() {
        let half_time = Figures::of(
            "# HELP process_threads Threads.\nprocess_threads 7\norrery_cache_entries{cache=\"plans\"} 3\norrery_quads 9\n",
        );
        let end = Figures::of("process_threads 8\norrery_memory_used_bytes{pool=\"bodies\"} 1e3\n");
        let figure = |what: &str, half_time, end| Figure {
            what: what.to_owned(),
            half_time,
            end,
        };
        assert_eq!(
            Figures::compared(&half_time, &end),
            [
                figure("orrery_cache_entries{cache=\"plans\"}", Some(3.0), None),
                figure("orrery_memory_used_bytes{pool=\"bodies\"}", None, Some(1e3)),
                figure("process_threads", Some(7.0), Some(8.0)),
            ]
        );
        assert!(Figures::compared(&Figures::default(), &Figures::default()).is_empty());
    }
}
