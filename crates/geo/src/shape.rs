//! A geometry with its reference system and notation.

use geo::{BoundingRect, CoordsIter, Geometry, Rect};

use crate::crs::Crs;
use crate::notation::Notation;

/// No system has larger coordinates: it is 25,000 times the way round the earth in metres.
const COORDINATE_MAX: f64 = 1e12;

/// The least and the greatest height with one more.
pub(crate) fn with_height(heights: Option<(f64, f64)>, height: f64) -> (f64, f64) {
    let (least, greatest) = heights.unwrap_or((height, height));
    (least.min(height), greatest.max(height))
}

/// A geometry of a literal.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Degrees of longitude and latitude where [`Crs::is_on_earth`], without heights.
    pub(crate) geometry: Geometry,
    pub(crate) crs: Crs,
    /// How it was written, and what is made of it.
    pub(crate) notation: Notation,
    /// The least and the greatest height, where it has any.
    pub(crate) heights: Option<(f64, f64)>,
    /// Whether its points have a measure each.
    pub(crate) is_measured: bool,
}

impl Shape {
    /// A shape made of this one, in its reference system and notation.
    pub(crate) fn with(&self, geometry: Geometry) -> Self {
        Self {
            geometry,
            crs: self.crs.clone(),
            notation: self.notation,
            heights: None,
            is_measured: false,
        }
    }

    /// A point on the earth, in degrees; none where there is none.
    pub fn point(longitude: f64, latitude: f64) -> Option<Self> {
        let is_there = (-180.0..=180.0).contains(&longitude) && (-90.0..=90.0).contains(&latitude);
        is_there.then(|| Self {
            geometry: Geometry::Point(geo::Point::new(longitude, latitude)),
            crs: Crs::Crs84,
            notation: Notation::Wkt,
            heights: None,
            is_measured: false,
        })
    }

    /// The geometry, in degrees of longitude and latitude where its system is one of the earth.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The coordinate reference system.
    pub fn crs(&self) -> &Crs {
        &self.crs
    }

    /// The smallest rectangle that has it; none of an empty one.
    pub fn bounds(&self) -> Option<Rect> {
        self.geometry.bounding_rect()
    }

    /// Whether all of its coordinates are numbers that some system may have, and that algorithms
    /// can square.
    pub(crate) fn is_finite(&self) -> bool {
        let mut all = self.geometry.coords_iter();
        all.all(|it| it.x.abs() <= COORDINATE_MAX && it.y.abs() <= COORDINATE_MAX)
    }

    /// The number of points.
    pub fn points(&self) -> usize {
        self.geometry.coords_count()
    }

    /// Whether it can be compared with another.
    pub fn goes_with(&self, other: &Self) -> bool {
        self.crs.goes_with(&other.crs)
    }
}
