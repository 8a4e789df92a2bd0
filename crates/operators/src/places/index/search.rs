//! The search rectangle of a spatial filter.

use geo::Rect;
use orrery_geo::{Shape, covering, surroundings};

use super::tree::Bounds;
use crate::places::condition::Nearness;

/// One turn, in degrees.
const TURN: f64 = 360.0;
/// Longitudes are written within one turn and a half of zero (`orrery_geo::covering`), and asked
/// for within one: so many turns away may be the same place.
const TURNS: [f64; 5] = [0.0, -TURN, TURN, -2.0 * TURN, 2.0 * TURN];

/// Rectangles of which each place that is asked for meets one.
#[derive(Clone, Debug)]
pub struct PlaceSearch {
    pub(super) windows: Vec<Bounds>,
}

impl PlaceSearch {
    /// Of those that lie to a place of the earth in this way; none where all have to be looked at.
    pub fn new(nearness: Nearness, constant: &Shape) -> Option<Self> {
        let bounds = covering(constant)?;
        if Bounds::of(&bounds).is_everywhere() {
            return None;
        }
        match nearness {
            // Degrees are a plane for relations.
            Nearness::Relation(_) => Some(Self {
                windows: vec![Bounds::of(&constant.bounds()?)],
            }),
            Nearness::Within {
                distance, unit_m, ..
            } => Self::within(constant, distance * unit_m),
        }
    }

    /// Of those that are within so many metres of one whose latitudes are there.
    pub(super) fn within(constant: &Shape, metres: f64) -> Option<Self> {
        let around = surroundings(constant, metres)?;
        let (least, most) = (around.min(), around.max());
        let window = |west, east| Bounds::new(west, least.y, east, most.y);
        let windows = match most.x - least.x < TURN {
            true => {
                let turns = TURNS.iter();
                turns
                    .map(|turn| window(least.x + turn, most.x + turn))
                    .collect()
            }
            false => vec![window(f64::NEG_INFINITY, f64::INFINITY)],
        };
        Some(Self { windows })
    }

    pub(super) fn meets(&self, bounds: Bounds) -> bool {
        self.windows.iter().any(|window| window.meets(bounds))
    }
}

impl Bounds {
    /// Of a rectangle of degrees.
    pub(super) fn of(rect: &Rect) -> Self {
        let (least, most) = (rect.min(), rect.max());
        Self::new(least.x, least.y, most.x, most.y)
    }
}
