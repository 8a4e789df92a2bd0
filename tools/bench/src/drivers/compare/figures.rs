//! The figures of both stores, and the goals of ours.

use std::fmt;

use serde::Serialize;

use crate::report::{Table, with_thousands};

/// What ours is to reach. The absolute goals, a rate, a time or a size, are for ten million triples
/// on two cores: at other sizes only factors are held to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// At least this rate.
    AtLeast(f64),
    /// At most this time or size.
    AtMost(f64),
    /// This many times better than the peer.
    Factor(f64),
}

/// The mean of the times of one query, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mean {
    pub(super) ms: f64,
    /// Some of the times are the limit at which the query was given up.
    pub(super) has_timed_out: bool,
}

/// One figure of both stores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// What was measured.
    pub what: String,
    /// The unit.
    pub unit: &'static str,
    /// Ours.
    pub ours: f64,
    /// The peer's.
    pub peer: f64,
    /// How many times better ours is: rates divided, times and sizes the other way round.
    pub factor: f64,
    /// Ours had no answer within the limit, which counts as its time: ours is greater.
    pub has_ours_timed_out: bool,
    /// The same of the peer: its time and the factor are greater.
    pub has_peer_timed_out: bool,
    /// What ours is to reach, if anything.
    pub goal: Option<Goal>,
}

impl Pair {
    pub(super) fn rate(
        what: impl Into<String>,
        unit: &'static str,
        (ours, peer): (f64, f64),
    ) -> Self {
        Self {
            what: what.into(),
            unit,
            ours,
            peer,
            factor: ours / peer,
            has_ours_timed_out: false,
            has_peer_timed_out: false,
            goal: None,
        }
    }

    pub(super) fn cost(
        what: impl Into<String>,
        unit: &'static str,
        (ours, peer): (f64, f64),
    ) -> Self {
        Self {
            factor: peer / ours,
            ..Self::rate(what, unit, (ours, peer))
        }
    }

    /// A time of which some part, at ours or at the peer, is only known to be greater.
    pub(super) fn timed(what: impl Into<String>, ours: Mean, peer: Mean) -> Self {
        Self {
            has_ours_timed_out: ours.has_timed_out,
            has_peer_timed_out: peer.has_timed_out,
            ..Self::cost(what, "ms", (ours.ms, peer.ms))
        }
    }

    pub(super) fn with_goal(self, goal: Goal) -> Self {
        Self {
            goal: Some(goal),
            ..self
        }
    }

    pub(super) fn without_absolute_goal(self) -> Self {
        Self {
            goal: self.goal.filter(|goal| matches!(goal, Goal::Factor(_))),
            ..self
        }
    }

    /// Whether ours reaches its goal; true without one, false where ours had no answer in time.
    pub fn is_met(&self) -> bool {
        match self.goal {
            Some(_) if self.has_ours_timed_out => false,
            Some(Goal::AtLeast(goal)) => self.ours >= goal,
            Some(Goal::AtMost(goal)) => self.ours <= goal,
            Some(Goal::Factor(goal)) => self.factor >= goal,
            None => true,
        }
    }

    /// How the factor is known: with a time-out only a bound, with two nothing.
    fn shown_factor(&self) -> String {
        let sign = match (self.has_ours_timed_out, self.has_peer_timed_out) {
            (false, false) => "",
            (false, true) => "> ",
            (true, false) => "< ",
            (true, true) => return String::new(),
        };
        format!("{sign}{:.1}", self.factor)
    }
}

/// Both stores' figures and whether their answers agree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompareReport {
    /// The peer's name.
    pub peer: String,
    /// Triples in the database.
    pub triples: u64,
    /// The figures.
    pub pairs: Vec<Pair>,
    /// The geometric mean of the factors of the eight analytical queries.
    pub analytical_factor: f64,
    /// How many answers were compared.
    pub answers_compared: usize,
    /// How many were not, because a store had none within the limit.
    pub answers_timed_out: usize,
    /// That limit, in seconds.
    pub limit_seconds: f64,
    /// Whether the data are those for which the absolute goals are; if not, there are none.
    pub has_absolute_goals: bool,
    /// Where they differ: query and difference.
    pub differences: Vec<String>,
}

impl fmt::Display for CompareReport {
    /// A table in Markdown, as it stands in `docs/performance.md`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} triples", with_thousands(self.triples))?;
        if !self.has_absolute_goals {
            write!(formatter, " (absolute bars are for ten million)")?;
        }
        writeln!(formatter, "\n")?;
        let header = ["what", "unit", "Orrery", &self.peer, "factor", "bar", ""];
        let mut table = Table::markdown(header);
        for pair in &self.pairs {
            table.row([
                pair.what.clone(),
                pair.unit.to_owned(),
                shown_bound(pair.ours, pair.has_ours_timed_out),
                shown_bound(pair.peer, pair.has_peer_timed_out),
                pair.shown_factor(),
                pair.goal.map(|goal| goal.to_string()).unwrap_or_default(),
                if pair.is_met() { "" } else { "missed" }.to_owned(),
            ]);
        }
        table.fmt(formatter)?;
        write!(
            formatter,
            "\nAnalytical queries, geometric mean of the factors: {:.1}. {} answers compared, {} differ",
            self.analytical_factor,
            self.answers_compared,
            self.differences.len()
        )?;
        if self.answers_timed_out > 0 {
            write!(
                formatter,
                "; {} not compared, for there was no answer within {} s, which counts as the time",
                self.answers_timed_out, self.limit_seconds
            )?;
        }
        writeln!(formatter, ".")?;
        for difference in &self.differences {
            writeln!(formatter, "\n{difference}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(goal) => write!(formatter, "at least {}", shown(*goal)),
            Self::AtMost(goal) => write!(formatter, "at most {}", shown(*goal)),
            Self::Factor(goal) => write!(formatter, "{goal} times"),
        }
    }
}

/// Rates as whole numbers, the others with two decimals.
fn shown(figure: f64) -> String {
    match figure {
        figure if figure >= 1_000.0 => with_thousands(figure.round() as u64),
        figure => format!("{figure:.2}"),
    }
}

fn shown_bound(figure: f64, is_lower_bound: bool) -> String {
    let sign = if is_lower_bound { "> " } else { "" };
    format!("{sign}{}", shown(figure))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(ms: f64, has_timed_out: bool) -> Mean {
        Mean { ms, has_timed_out }
    }

    #[test]
    fn a_time_out_is_a_bound() {
        let goal = Goal::Factor(5.0);
        let peer = Pair::timed("Q4", mean(400.0, false), mean(300_000.0, true)).with_goal(goal);
        assert!(peer.is_met());
        assert_eq!(peer.shown_factor(), "> 750.0");
        let ours = Pair::timed("Q4", mean(300_000.0, true), mean(3e6, false)).with_goal(goal);
        assert!(!ours.is_met(), "how much slower it is, is not known");
        assert_eq!(ours.shown_factor(), "< 10.0");
        let report = CompareReport {
            peer: "peer".to_owned(),
            triples: 1_000,
            pairs: vec![peer],
            analytical_factor: 1.0,
            answers_compared: 7,
            answers_timed_out: 1,
            limit_seconds: 300.0,
            has_absolute_goals: false,
            differences: Vec::new(),
        };
        let text = report.to_string();
        assert!(text.starts_with("1,000 triples (absolute bars are for ten million)\n"));
        assert!(
            text.contains("| Q4 | ms | 400.00 | > 300,000 | > 750.0 | 5 times |  |"),
            "{text}"
        );
        assert!(text.contains(
            "7 answers compared, 0 differ; 1 not compared, for there was no answer within 300 s"
        ));
    }

    #[test]
    fn absolute_goals_are_for_one_size() {
        let cost = Pair::cost("time", "ms", (2.0, 6.0));
        let left = |goal| cost.clone().with_goal(goal).without_absolute_goal().goal;
        assert_eq!(left(Goal::AtMost(1.0)), None);
        assert_eq!(left(Goal::AtLeast(1.0)), None);
        assert_eq!(left(Goal::Factor(1.0)), Some(Goal::Factor(1.0)));
    }

    #[test]
    fn a_factor_above_one_is_ours_being_better() {
        assert_eq!(Pair::rate("rate", "1/s", (6.0, 2.0)).factor, 3.0);
        assert_eq!(Pair::cost("time", "ms", (2.0, 6.0)).factor, 3.0);
    }

    #[test]
    fn goals_are_of_ours_or_of_the_factor() {
        let cost = Pair::cost("time", "ms", (2.0, 6.0));
        let is_met = |goal| cost.clone().with_goal(goal).is_met();
        assert!(is_met(Goal::AtMost(2.0)) && !is_met(Goal::AtMost(1.9)));
        assert!(is_met(Goal::AtLeast(2.0)) && !is_met(Goal::AtLeast(2.1)));
        assert!(is_met(Goal::Factor(3.0)) && !is_met(Goal::Factor(3.1)));
        assert!(cost.is_met());
    }
}
