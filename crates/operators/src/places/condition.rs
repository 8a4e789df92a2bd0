//! The condition of a spatial join.

use std::fmt;
use std::sync::Arc;

use geo::Rect;
use orrery_geo::{Relation, Shape, distance_m, surroundings};

/// The spatial relation or distance of a join.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nearness {
    /// The first has this relation to the second, and none that holds of places that are apart
    /// ([`Relation::is_close`]).
    Relation(Relation),
    /// They are no farther from each other than so many units.
    Within {
        /// In the unit.
        distance: f64,
        /// How many metres a unit has.
        unit_m: f64,
        /// Whether they have to be nearer than that.
        is_strict: bool,
    },
}

/// The condition of a join.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacesCondition {
    /// The variable of the left side.
    pub left: Arc<str>,
    /// The variable of the right side.
    pub right: Arc<str>,
    /// How they lie to each other.
    pub nearness: Nearness,
    /// Whether the right one is the first.
    pub is_turned: bool,
}

impl Nearness {
    fn holds(self, one: &Shape, other: &Shape) -> bool {
        match self {
            Self::Relation(relation) => relation.holds(one, other).unwrap_or(false),
            Self::Within {
                distance: most,
                unit_m,
                is_strict,
            } => distance_m(one, other).is_some_and(|metres| {
                // In the order in which the function and the filter would do it, to the last bit.
                let distance = metres / unit_m;
                match is_strict {
                    true => distance < most,
                    false => distance <= most,
                }
            }),
        }
    }

    /// The rectangle that a shape of the right side is found by; none of one that has to be looked
    /// at by each that has none.
    pub(super) fn bounds_of_kept(self, shape: &Shape) -> Option<Rect> {
        match self {
            Self::Relation(_) => of_earth(shape),
            Self::Within {
                distance, unit_m, ..
            } => surroundings(shape, distance * unit_m),
        }
    }

    /// The rectangle by which a shape of the left side looks for others.
    pub(super) fn bounds_of_asked(self, shape: &Shape) -> Option<Rect> {
        match self {
            Self::Relation(_) => of_earth(shape),
            Self::Within { .. } => surroundings(shape, 0.0),
        }
    }

    /// Whether a longitude is the same as one a turn away.
    pub(super) fn goes_round(self) -> bool {
        matches!(self, Self::Within { .. })
    }
}

fn of_earth(shape: &Shape) -> Option<Rect> {
    shape.bounds().filter(|_| shape.crs().is_on_earth())
}

impl PlacesCondition {
    pub(super) fn holds(&self, left: &Shape, right: &Shape) -> bool {
        match self.is_turned {
            false => self.nearness.holds(left, right),
            true => self.nearness.holds(right, left),
        }
    }
}

impl fmt::Display for PlacesCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, other) = match self.is_turned {
            false => (&self.left, &self.right),
            true => (&self.right, &self.left),
        };
        match self.nearness {
            Nearness::Relation(relation) => write!(f, "{}(?{one}, ?{other})", relation.name()),
            Nearness::Within {
                distance,
                unit_m,
                is_strict,
            } => {
                let than = if is_strict { "<" } else { "<=" };
                write!(
                    f,
                    "distance(?{one}, ?{other}) {than} {} m",
                    distance * unit_m
                )
            }
        }
    }
}
