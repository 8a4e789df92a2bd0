//! Conversion between geometries and literals.
//!
//! `geo:wktLiteral` (GeoSPARQL 1.1, 8.5.1): an IRI in angle brackets that names the reference
//! system, or none for degrees with the longitude first, and then Well-Known Text, in capitals or
//! not. `geo:geoJSONLiteral` (8.5.4): a geometry of RFC 7946, whose system is always that.
//! `geo:gmlLiteral` and `geo:kmlLiteral` are in modules of their own. An empty text is an empty
//! geometry. What cannot be read is no shape, and the function that was given it has SPARQL's
//! error.

use geo::{CoordsIter, Geometry, GeometryCollection, LineString, MultiPoint, Polygon};
use geojson::GeoJson;
use wkt::types::{Coord, Dimension};
use wkt::{ToWkt, Wkt};

use crate::crs::Crs;
use crate::notation::Notation;
use crate::shape::{Shape, with_height};
use crate::{gml, kml};

/// Collections within collections are read by recursion.
const DEPTH_MAX: usize = 32;

/// The shape of a text; none if it is not of that notation, has a coordinate that is no number or
/// beyond 10^12, a line of one point, a ring of less than four, or collections nested deeper
/// than 32.
pub fn from_text(text: &str, notation: Notation) -> Option<Shape> {
    let shape = match notation {
        notation if text.trim_ascii().is_empty() => empty(notation),
        Notation::Wkt => from_wkt(text.trim())?,
        Notation::GeoJson => from_geo_json(text)?,
        Notation::Gml => gml::from_gml(text)?,
        Notation::Kml => kml::from_kml(text)?,
    };
    let shape = Shape {
        geometry: without_empty_members(shape.geometry),
        ..shape
    };
    let is_flat = depth(&shape.geometry) <= DEPTH_MAX;
    (is_flat && is_well_formed(&shape.geometry) && shape.is_finite()).then_some(shape)
}

/// What an empty text means (GeoSPARQL 1.1, requirements `wkt-literal-empty` and its like).
fn empty(notation: Notation) -> Shape {
    let nothing: Vec<Geometry> = Vec::new();
    Shape {
        geometry: Geometry::GeometryCollection(GeometryCollection::from(nothing)),
        crs: Crs::default(),
        notation,
        heights: None,
        is_measured: false,
    }
}

/// How many parentheses Well-Known Text of it has within each other: what is read in any notation
/// can be written in that, and read again.
fn depth(geometry: &Geometry) -> usize {
    match geometry {
        Geometry::GeometryCollection(all) => 1 + all.iter().map(depth).max().unwrap_or(0),
        Geometry::MultiPolygon(_) => 3,
        Geometry::Polygon(_) | Geometry::MultiPoint(_) | Geometry::MultiLineString(_) => 2,
        _ => 1,
    }
}

fn from_wkt(text: &str) -> Option<Shape> {
    let (crs, text) = match text.strip_prefix('<') {
        None => (Crs::default(), text),
        Some(rest) => {
            let (iri, text) = rest.split_once('>')?;
            (Crs::of_iri(iri), text.trim_start())
        }
    };
    if !is_one_geometry(text) {
        return None;
    }
    let written: Wkt<f64> = text.parse().ok()?;
    let mut seen = Seen::default();
    seen.look(&written);
    Some(Shape {
        geometry: crs.held(geometry_of(written)?),
        crs,
        notation: Notation::Wkt,
        heights: seen.heights,
        is_measured: seen.is_measured,
    })
}

/// Whether the parentheses of a text are those of one geometry, and not nested too deep: the parser
/// would read on by recursion, and not look at what stands behind the geometry.
fn is_one_geometry(text: &str) -> bool {
    let mut depth = 0_usize;
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return place + 1 == text.len();
                }
            }
            _ => {}
        }
        if depth > DEPTH_MAX {
            return false;
        }
    }
    // Of what is empty there are none.
    depth == 0
        && text
            .split_ascii_whitespace()
            .next_back()
            .is_some_and(|word| word.eq_ignore_ascii_case("empty"))
}

/// The geometry, in which an empty point is an empty set of points.
fn geometry_of(written: Wkt<f64>) -> Option<Geometry> {
    match written {
        Wkt::Point(point) if point.coord().is_none() => {
            Some(Geometry::MultiPoint(MultiPoint::new(Vec::new())))
        }
        Wkt::GeometryCollection(collection) => {
            let (parts, _) = collection.into_inner();
            let parts = parts.into_iter().map(geometry_of);
            let parts: Option<Vec<Geometry>> = parts.collect();
            Some(Geometry::GeometryCollection(GeometryCollection::from(
                parts?,
            )))
        }
        other => Geometry::try_from(other).ok(),
    }
}

/// The same set of points without members that have none: algorithms expect none.
fn without_empty_members(geometry: Geometry) -> Geometry {
    match geometry {
        Geometry::MultiLineString(mut all) => {
            all.0.retain(|it| !it.0.is_empty());
            Geometry::MultiLineString(all)
        }
        Geometry::Polygon(area) => Geometry::Polygon(without_empty_rings(area)),
        Geometry::MultiPolygon(all) => {
            let areas = all.0.into_iter().map(without_empty_rings);
            let areas = areas.filter(|it| !it.exterior().0.is_empty());
            Geometry::MultiPolygon(areas.collect())
        }
        Geometry::GeometryCollection(all) => {
            let members = all.0.into_iter().map(without_empty_members);
            let members = members.filter(|it| it.coords_count() > 0);
            Geometry::GeometryCollection(members.collect())
        }
        other => other,
    }
}

/// Whether its lines have two points at least and its rings four (OGC 06-103r4, 6.1.6 and 6.1.11);
/// whether these are of any use is not looked at.
fn is_well_formed(geometry: &Geometry) -> bool {
    let is_line = |line: &LineString| line.0.len() != 1;
    let is_ring = |ring: &LineString| ring.0.is_empty() || ring.0.len() >= 4;
    let is_area = |area: &Polygon| is_ring(area.exterior()) && area.interiors().iter().all(is_ring);
    match geometry {
        Geometry::LineString(line) => is_line(line),
        Geometry::MultiLineString(all) => all.iter().all(is_line),
        Geometry::Polygon(area) => is_area(area),
        Geometry::MultiPolygon(all) => all.iter().all(is_area),
        Geometry::GeometryCollection(all) => all.iter().all(is_well_formed),
        _ => true,
    }
}

fn without_empty_rings(area: Polygon) -> Polygon {
    let (edge, mut holes) = area.into_inner();
    holes.retain(|it| !it.0.is_empty());
    Polygon::new(edge, holes)
}

/// What points have beside their places.
#[derive(Default)]
struct Seen {
    heights: Option<(f64, f64)>,
    is_measured: bool,
}

impl Seen {
    fn look(&mut self, written: &Wkt<f64>) {
        self.is_measured |= matches!(written.dimension(), Dimension::XYM | Dimension::XYZM);
        match written {
            Wkt::Point(it) => self.coordinates(it.coord()),
            Wkt::LineString(it) => self.coordinates(it.coords()),
            Wkt::Polygon(it) => it
                .rings()
                .iter()
                .for_each(|it| self.coordinates(it.coords())),
            Wkt::MultiPoint(it) => it
                .points()
                .iter()
                .for_each(|it| self.coordinates(it.coord())),
            Wkt::MultiLineString(it) => {
                let lines = it.line_strings().iter();
                lines.for_each(|it| self.coordinates(it.coords()));
            }
            Wkt::MultiPolygon(it) => {
                let rings = it.polygons().iter().flat_map(|it| it.rings());
                rings.for_each(|it| self.coordinates(it.coords()));
            }
            Wkt::GeometryCollection(it) => it.geometries().iter().for_each(|it| self.look(it)),
        }
    }

    fn coordinates<'c>(&mut self, all: impl IntoIterator<Item = &'c Coord<f64>>) {
        all.into_iter()
            .filter_map(|it| it.z)
            .for_each(|height| self.heights = Some(with_height(self.heights, height)));
    }
}

fn from_geo_json(text: &str) -> Option<Shape> {
    let read: GeoJson = text.parse().ok()?;
    Some(Shape {
        geometry: Geometry::try_from(read).ok()?,
        crs: Crs::Crs84,
        notation: Notation::GeoJson,
        heights: None,
        is_measured: false,
    })
}

/// A shape as text in the notation of what it was made of; in Well-Known Text where its system is
/// not that of GeoJSON and KML.
pub fn literal_of(shape: &Shape) -> Option<(String, Notation)> {
    let notation = match (shape.notation, &shape.crs) {
        (notation @ (Notation::Wkt | Notation::Gml), _) | (notation, Crs::Crs84) => notation,
        _ => Notation::Wkt,
    };
    Some((text_of(shape, notation)?, notation))
}

/// A shape as text in a notation; none of one that cannot be written in it: GeoJSON and KML are of
/// the earth.
///
/// Well-Known Text of the system that a literal means which names none does not name it.
pub fn text_of(shape: &Shape, notation: Notation) -> Option<String> {
    match notation {
        Notation::Wkt => {
            let text = shape.crs.written(&shape.geometry).wkt_string();
            Some(match shape.crs {
                Crs::Crs84 => text,
                ref crs => format!("<{crs}> {text}"),
            })
        }
        Notation::GeoJson if shape.crs.is_on_earth() => {
            Some(geojson::Geometry::from(&shape.geometry).to_string())
        }
        Notation::Gml => Some(gml::text_of(shape)),
        Notation::Kml if shape.crs.is_on_earth() => Some(kml::text_of(shape)),
        Notation::GeoJson | Notation::Kml => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wkt(text: &str) -> Option<Shape> {
        from_text(text, Notation::Wkt)
    }

    #[test]
    fn texts_come_back_as_they_were_meant() {
        for (text, expected) in [
            ("POINT(1 2)", "POINT(1 2)"),
            ("  Point ( 3   4.50 ) ", "POINT(3 4.5)"),
            ("POINT Z (1 2 3)", "POINT(1 2)"),
            ("POINT EMPTY", "MULTIPOINT EMPTY"),
            ("LINESTRING(0 0,1 1)", "LINESTRING(0 0,1 1)"),
            (
                "POLYGON((0 0,2 0,2 2,0 0),(1 0.5,1.5 0.5,1.5 1,1 0.5))",
                "POLYGON((0 0,2 0,2 2,0 0),(1 0.5,1.5 0.5,1.5 1,1 0.5))",
            ),
            (
                "GEOMETRYCOLLECTION(POINT(1 2),POINT EMPTY)",
                "GEOMETRYCOLLECTION(POINT(1 2))",
            ),
            (
                "<http://www.opengis.net/def/crs/OGC/1.3/CRS84> POINT(1 2)",
                "POINT(1 2)",
            ),
            (
                "<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(48 2)",
                "<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(48 2)",
            ),
            (
                "<http://example.com/plan> POINT(7 9)",
                "<http://example.com/plan> POINT(7 9)",
            ),
        ] {
            let shape = wkt(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(text_of(&shape, Notation::Wkt).as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_is_no_geometry_is_none() {
        let deep = |depth: usize| {
            let collections = "GEOMETRYCOLLECTION(".repeat(depth);
            format!("{collections}POINT(1 1){}", ")".repeat(depth))
        };
        assert!(wkt(&deep(30)).is_some());
        for text in [
            "POINT",
            "POINT(1)",
            "POINT(1 2",
            "POINT(1 x)",
            "POINT(NaN 1)",
            "POINT(1e999 1)",
            "POINT(1e13 1)",
            "LINESTRING(1 1)",
            "POLYGON((0 0,1 1,0 0))",
            "CIRCLE(1 2)",
            "<http://example.com/ POINT(1 2)",
            "POINT(1 2) POINT(3 4)",
            "POINT EMPTY 1",
            "POINT(1 2))",
            &deep(100_000),
        ] {
            assert!(wkt(text).is_none(), "{text:.80}");
        }
        for text in [
            "{}",
            "[1, 2]",
            r#"{"type": "Point"}"#,
            r#"{"type": "Point", "coordinates": [1]}"#,
            r#"{"type": "Circle", "coordinates": [1, 2]}"#,
            &"{\"geometries\": [".repeat(100_000),
        ] {
            assert!(from_text(text, Notation::GeoJson).is_none(), "{text:.80}");
        }
    }

    #[test]
    fn the_latitude_comes_first_where_the_system_says_so() {
        let text = "<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(48 2)";
        let shape = wkt(text).unwrap();
        assert_eq!(
            shape.geometry(),
            &Geometry::Point(geo::Point::new(2.0, 48.0))
        );
        let json = text_of(&shape, Notation::GeoJson).unwrap();
        assert_eq!(json, r#"{"type":"Point","coordinates":[2.0,48.0]}"#);
        let back = from_text(&json, Notation::GeoJson).unwrap();
        assert_eq!(back.geometry(), shape.geometry());
        let plan = wkt("<http://example.com/plan> POINT(7 9)").unwrap();
        assert_eq!(text_of(&plan, Notation::GeoJson), None);
    }

    #[test]
    fn heights_and_measures_are_seen() {
        let shape = wkt("LINESTRING Z (0 0 5, 1 1 -2, 2 2 3)").unwrap();
        assert_eq!(
            (shape.heights, shape.is_measured),
            (Some((-2.0, 5.0)), false)
        );
        let shape = wkt("POINT M (1 2 3)").unwrap();
        assert_eq!((shape.heights, shape.is_measured), (None, true));
        let shape = wkt("POINT ZM (1 2 3 4)").unwrap();
        assert_eq!((shape.heights, shape.is_measured), (Some((3.0, 3.0)), true));
    }
}
