//! The limits of a user, group or key: concurrency, time, rows, bytes, memory and touches over
//! time.
//!
//! What is not limited is as the server's own options have it, for everybody alike. Limits are kept
//! beside the rules, and read with them.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::rule::Subject;

/// The longest time over which a budget is refilled: a year.
const PERIOD_SECONDS_MAX: u64 = 366 * 86_400;

/// The subject of limits. Each of those it stands for has an account of its own.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limited {
    /// Each address from which somebody unknown asks; each user; one user; each user of a group.
    Who(Subject),
    /// One key, whoever it is of: beside what its user may use.
    Key(String),
}

/// Limits; a field without a value sets none.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Queries, updates and requests of SQL at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<u32>,
    /// Milliseconds that one may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Rows, or triples, of one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Bytes of one answer, before it is compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Bytes of memory that the operators of all that runs at the same time may hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Touches over time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Budget>,
}

/// Touches that there are at most, and how long it takes until as many are there again.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Touches.
    pub touches: u64,
    /// Seconds.
    pub seconds: u64,
}

impl Limits {
    /// Whether it limits nothing.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses what would let nobody in, or says nothing.
    ///
    /// # Errors
    /// When nothing is limited, something is limited to nothing, or a budget takes longer than a
    /// year.
    pub fn check(&self) -> Result<()> {
        let wrong = |place: &str, why: &str| {
            Err(Error::Rule {
                place: place.to_owned(),
                why: why.to_owned(),
            })
        };
        if self.is_none() {
            return wrong("limits", "nothing is limited");
        }
        let counts = [
            ("concurrent", self.concurrent.map(u64::from)),
            ("time_ms", self.time_ms),
            ("rows", self.rows),
            ("bytes", self.bytes),
            ("memory", self.memory),
            ("touches", self.cost.map(|cost| cost.touches)),
            ("seconds", self.cost.map(|cost| cost.seconds)),
        ];
        if let Some((place, _)) = counts.iter().find(|(_, count)| *count == Some(0)) {
            return wrong(place, "it would be nothing; lock the user instead");
        }
        if self
            .cost
            .is_some_and(|cost| cost.seconds > PERIOD_SECONDS_MAX)
        {
            return wrong("seconds", "a budget is refilled within a year");
        }
        Ok(())
    }

    /// These, and others where these say nothing.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            concurrent: self.concurrent.or(other.concurrent),
            time_ms: self.time_ms.or(other.time_ms),
            rows: self.rows.or(other.rows),
            bytes: self.bytes.or(other.bytes),
            memory: self.memory.or(other.memory),
            cost: self.cost.or(other.cost),
        }
    }

    /// Of each the larger one, where both say something: who is in two groups has the better of
    /// both.
    #[must_use]
    pub(crate) fn larger(self, other: Self) -> Self {
        fn larger<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            }
        }
        let cost = match (self.cost, other.cost) {
            (Some(a), Some(b)) if a.is_slower_than(b) => Some(b),
            (a, b) => a.or(b),
        };
        Self {
            concurrent: larger(self.concurrent, other.concurrent),
            time_ms: larger(self.time_ms, other.time_ms),
            rows: larger(self.rows, other.rows),
            bytes: larger(self.bytes, other.bytes),
            memory: larger(self.memory, other.memory),
            cost,
        }
    }
}

impl Budget {
    fn is_slower_than(self, other: Self) -> bool {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        product(self.touches, other.seconds) < product(other.touches, self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(touches: u64, seconds: u64) -> Limits {
        Limits {
            cost: Some(Budget { touches, seconds }),
            ..Limits::default()
        }
    }

    #[test]
    fn two_groups_give_the_better_of_both() {
        let fast = Limits {
            rows: Some(5),
            ..cost(100, 1)
        };
        let large = Limits {
            rows: Some(9),
            concurrent: Some(1),
            ..cost(3_600, 3_600)
        };
        let both = Limits {
            rows: Some(9),
            concurrent: Some(1),
            ..cost(100, 1)
        };
        assert_eq!(fast.larger(large), both);
        assert_eq!(large.larger(fast), both);
        assert_eq!(fast.or(large).rows, Some(5));
        assert_eq!(fast.or(large).concurrent, Some(1));
    }

    #[test]
    fn limits_say_something_and_leave_something() {
        assert!(Limits::default().check().is_err());
        assert!(cost(1, 1).check().is_ok());
        for wrong in [cost(0, 1), cost(1, 0), cost(1, PERIOD_SECONDS_MAX + 1)] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
        let none = Limits {
            concurrent: Some(0),
            ..Limits::default()
        };
        assert!(none.check().is_err());
    }
}
