//! Both stores' figures beside each other, and the goals that ours has.

use std::fmt;

use serde::Serialize;

use crate::report::{Table, with_thousands};

/// What ours is to reach. The absolute goals are for ten million triples on two cores.
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

    pub(super) fn with_goal(self, goal: Goal) -> Self {
        Self {
            goal: Some(goal),
            ..self
        }
    }

    /// Whether ours reaches its goal; true without one.
    pub fn is_met(&self) -> bool {
        match self.goal {
            Some(Goal::AtLeast(goal)) => self.ours >= goal,
            Some(Goal::AtMost(goal)) => self.ours <= goal,
            Some(Goal::Factor(goal)) => self.factor >= goal,
            None => true,
        }
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
    /// Where they differ: query and difference.
    pub differences: Vec<String>,
}

impl fmt::Display for CompareReport {
    /// A table in Markdown, as it stands in `docs/performance.md`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} triples\n", with_thousands(self.triples))?;
        let header = ["what", "unit", "Orrery", &self.peer, "factor", "bar", ""];
        let mut table = Table::markdown(header);
        for pair in &self.pairs {
            table.row([
                pair.what.clone(),
                pair.unit.to_owned(),
                shown(pair.ours),
                shown(pair.peer),
                format!("{:.1}", pair.factor),
                pair.goal.map(|goal| goal.to_string()).unwrap_or_default(),
                if pair.is_met() { "" } else { "missed" }.to_owned(),
            ]);
        }
        table.fmt(formatter)?;
        writeln!(
            formatter,
            "\nAnalytical queries, geometric mean of the factors: {:.1}. {} answers compared, {} differ.",
            self.analytical_factor,
            self.answers_compared,
            self.differences.len()
        )?;
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

#[cfg(test)]
mod tests {
    use super::*;

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
