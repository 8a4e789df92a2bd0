//! GeoSPARQL's aggregates (GeoSPARQL 1.1, 8.8): one shape made of many.

use geo::{Geometry, GeometryCollection};

use crate::functions::NAMESPACE;
use crate::shape::Shape;
use crate::shapes;

/// An aggregate of shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlacesAggregate {
    /// `geof:aggBoundingBox`: the smallest rectangle.
    BoundingBox,
    /// `geof:aggBoundingCircle`: the smallest circle.
    BoundingCircle,
    /// `geof:aggCentroid`: the middle of all of them together.
    Centroid,
    /// `geof:aggConcaveHull`: a hull that follows the points.
    ConcaveHull,
    /// `geof:aggConvexHull`: the smallest convex shape.
    ConvexHull,
    /// `geof:aggUnion`: all that any of them has.
    Union,
}

impl PlacesAggregate {
    /// All of them, by their names within [`NAMESPACE`].
    pub const ALL: [(&'static str, Self); 6] = [
        ("aggBoundingBox", Self::BoundingBox),
        ("aggBoundingCircle", Self::BoundingCircle),
        ("aggCentroid", Self::Centroid),
        ("aggConcaveHull", Self::ConcaveHull),
        ("aggConvexHull", Self::ConvexHull),
        ("aggUnion", Self::Union),
    ];

    /// The aggregate of an IRI.
    pub fn of_iri(iri: &str) -> Option<Self> {
        Self::of_name(iri.strip_prefix(NAMESPACE)?)
    }

    /// The aggregate of a name within [`NAMESPACE`].
    pub fn of_name(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, aggregate)| *aggregate)
    }

    /// Its name within [`NAMESPACE`].
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, aggregate)| *aggregate == self);
        found.map_or("", |(name, _)| name)
    }

    /// A simpler geometry with the same result in later steps. Not of those whose result every
    /// shape counts in.
    pub fn shortened(self, shapes: &[Shape]) -> Option<Shape> {
        match self {
            Self::BoundingBox => shapes::envelope(&together(shapes)?),
            Self::BoundingCircle | Self::ConvexHull => shapes::convex_hull(&together(shapes)?),
            Self::Union => union(shapes),
            Self::Centroid | Self::ConcaveHull => None,
        }
    }

    /// What it makes of shapes, in the system and the notation of the first; none of none, of empty
    /// ones where it needs a point, and of those that do not go together.
    pub fn of(self, shapes: &[Shape]) -> Option<Shape> {
        let made = match self {
            Self::Union => union(shapes)?,
            _ => {
                let all = together(shapes)?;
                match self {
                    Self::BoundingBox => shapes::envelope(&all)?,
                    Self::BoundingCircle => shapes::bounding_circle(&all)?,
                    Self::Centroid => shapes::centroid(&all)?,
                    Self::ConcaveHull => shapes::concave_hull(&all)?,
                    Self::ConvexHull | Self::Union => shapes::convex_hull(&all)?,
                }
            }
        };
        made.is_finite().then_some(made)
    }
}

/// All of them as one collection.
fn together(shapes: &[Shape]) -> Option<Shape> {
    let first = shapes.first()?;
    if !shapes.iter().all(|shape| shape.goes_with(first)) {
        return None;
    }
    let all = shapes.iter().map(|shape| shape.geometry.clone());
    let all: Vec<Geometry> = all.collect();
    Some(first.with(Geometry::GeometryCollection(GeometryCollection::from(all))))
}

/// The union, by halves: each overlay is of two of about the same size.
fn union(shapes: &[Shape]) -> Option<Shape> {
    match shapes {
        [] => None,
        [only] => Some(only.with(only.geometry.clone())),
        _ => {
            let (one, other) = shapes.split_at(shapes.len() / 2);
            shapes::union(&union(one)?, &union(other)?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::literal::{from_text, text_of};
    use crate::notation::Notation;

    fn of(aggregate: PlacesAggregate, texts: &[&str]) -> Option<String> {
        let shapes = texts
            .iter()
            .map(|text| from_text(text, Notation::Wkt).unwrap());
        let shapes: Vec<Shape> = shapes.collect();
        text_of(&aggregate.of(&shapes)?, Notation::Wkt)
    }

    #[test]
    fn one_shape_is_made_of_many() {
        use PlacesAggregate::{BoundingBox, Centroid, ConvexHull, Union};
        let points = [
            "POINT(0 0)",
            "POINT(2 0)",
            "POINT(2 4)",
            "POINT(0 4)",
            "POINT(1 1)",
        ];
        let rectangle = |found: Option<String>| {
            let found = from_text(&found.unwrap(), Notation::Wkt).unwrap();
            let bounds = found.bounds().unwrap();
            (
                bounds.min().x,
                bounds.min().y,
                bounds.max().x,
                bounds.max().y,
                found.points(),
            )
        };
        assert_eq!(rectangle(of(BoundingBox, &points)), (0.0, 0.0, 2.0, 4.0, 5));
        assert_eq!(rectangle(of(ConvexHull, &points)), (0.0, 0.0, 2.0, 4.0, 5));
        assert_eq!(of(Centroid, &points[..4]).unwrap(), "POINT(1 2)");
        let squares = [
            "POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))",
            "POLYGON((1 0, 2 0, 2 1, 1 1, 1 0))",
            "POINT(0.5 0.5)",
        ];
        let union = from_text(&of(Union, &squares).unwrap(), Notation::Wkt).unwrap();
        assert_eq!(geo::Area::unsigned_area(&union.geometry), 2.0);
        for (_, aggregate) in PlacesAggregate::ALL {
            assert_eq!(of(aggregate, &[]), None);
            assert_eq!(
                of(
                    aggregate,
                    &["POINT(0 0)", "<http://example.com/plan> POINT(0 0)"]
                ),
                None
            );
            assert_eq!(PlacesAggregate::of_name(aggregate.name()), Some(aggregate));
        }
    }
}
