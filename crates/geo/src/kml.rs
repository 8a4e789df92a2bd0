//! KML 2.2 geometries (OGC 07-147r2): `Point`, `LineString`, `LinearRing`, `Polygon` and
//! `MultiGeometry`, always of CRS84.
//!
//! A `MultiGeometry` of one kind of geometry is the set of these, as Well-Known Text has such; how
//! high something is drawn (`altitudeMode`) plays no part. Models and tracks are no geometry here.

use std::fmt::Write;

use geo::{
    Coord, Geometry, GeometryCollection, LineString, MultiLineString, MultiPoint, MultiPolygon,
    Point, Polygon,
};

use crate::crs::Crs;
use crate::notation::Notation;
use crate::shape::{Shape, with_height};
use crate::xml::{self, Element};

const NAMESPACE: &str = "http://www.opengis.net/kml/2.2";
/// What says only how a geometry is drawn, and what is of another vocabulary.
const BESIDE: [&str; 4] = ["", "altitudeMode", "extrude", "tessellate"];

fn is_known(namespace: &str) -> bool {
    let known = [
        "http://www.opengis.net/kml/",
        "http://earth.google.com/kml/",
    ];
    known.iter().any(|known| namespace.starts_with(known))
}

/// The shape of a text.
pub(crate) fn from_kml(text: &str) -> Option<Shape> {
    let root = xml::read(text, is_known)?;
    let mut heights = None;
    Some(Shape {
        geometry: geometry(&root, &mut heights)?,
        crs: Crs::Crs84,
        notation: Notation::Kml,
        heights,
        is_measured: false,
    })
}

type Heights = Option<(f64, f64)>;

fn geometry(element: &Element, heights: &mut Heights) -> Option<Geometry> {
    Some(match &*element.name {
        "Point" => match coordinates(element, heights)?.as_slice() {
            [] => Geometry::MultiPoint(MultiPoint::new(Vec::new())),
            [only] => Geometry::Point(Point::from(*only)),
            _ => return None,
        },
        "LineString" | "LinearRing" => {
            Geometry::LineString(LineString::new(coordinates(element, heights)?))
        }
        "Polygon" => Geometry::Polygon(area(element, heights)?),
        "MultiGeometry" => {
            let members = children(element).map(|member| geometry(member, heights));
            together(members.collect::<Option<Vec<Geometry>>>()?)
        }
        _ => return None,
    })
}

fn children(element: &Element) -> impl Iterator<Item = &Element> {
    let children = element.children.iter();
    children.filter(|child| !BESIDE.contains(&&*child.name))
}

/// The set of some geometries, by the one kind that all are of.
fn together(members: Vec<Geometry>) -> Geometry {
    let (mut points, mut lines, mut areas) = (Vec::new(), Vec::new(), Vec::new());
    for member in &members {
        match member {
            Geometry::Point(point) => points.push(*point),
            Geometry::LineString(line) => lines.push(line.clone()),
            Geometry::Polygon(area) => areas.push(area.clone()),
            _ => {}
        }
    }
    match members.len() {
        0 => Geometry::GeometryCollection(GeometryCollection::from(members)),
        all if all == points.len() => Geometry::MultiPoint(MultiPoint::new(points)),
        all if all == lines.len() => Geometry::MultiLineString(MultiLineString::new(lines)),
        all if all == areas.len() => Geometry::MultiPolygon(MultiPolygon::new(areas)),
        _ => Geometry::GeometryCollection(GeometryCollection::from(members)),
    }
}

fn area(element: &Element, heights: &mut Heights) -> Option<Polygon> {
    let (mut edge, mut holes) = (None, Vec::new());
    for property in children(element) {
        let ring = property
            .only_child()
            .filter(|it| &*it.name == "LinearRing")?;
        let ring = LineString::new(coordinates(ring, heights)?);
        match &*property.name {
            "outerBoundaryIs" if edge.is_none() => edge = Some(ring),
            "innerBoundaryIs" => holes.push(ring),
            _ => return None,
        }
    }
    let empty = || holes.is_empty().then(|| LineString::new(Vec::new()));
    Some(Polygon::new(edge.or_else(empty)?, holes))
}

/// `longitude,latitude` or `longitude,latitude,height`, with space between them.
fn coordinates(element: &Element, heights: &mut Heights) -> Option<Vec<Coord>> {
    let mut all = Vec::new();
    for written in children(element) {
        if &*written.name != "coordinates" {
            return None;
        }
        for tuple in written.text.split_ascii_whitespace() {
            let numbers = tuple.split(',').map(|number| number.parse().ok());
            let numbers: Option<Vec<f64>> = numbers.collect();
            all.push(match *numbers?.as_slice() {
                [x, y] => Coord { x, y },
                [x, y, height] if height.is_finite() => {
                    *heights = Some(with_height(*heights, height));
                    Coord { x, y }
                }
                _ => return None,
            });
        }
    }
    Some(all)
}

/// A shape of the earth as KML.
pub(crate) fn text_of(shape: &Shape) -> String {
    let mut text = String::new();
    let attributes = format!(" xmlns=\"{NAMESPACE}\"");
    write(&shape.geometry, &attributes, &mut text);
    text
}

fn write(geometry: &Geometry, attributes: &str, out: &mut String) {
    match geometry {
        Geometry::Point(it) => element("Point", attributes, out, |out| written(&[it.0], out)),
        Geometry::Line(it) => write_line(&LineString::from(*it), attributes, out),
        Geometry::LineString(it) => write_line(it, attributes, out),
        Geometry::Polygon(it) => write_area(it, attributes, out),
        Geometry::Rect(it) => write_area(&it.to_polygon(), attributes, out),
        Geometry::Triangle(it) => write_area(&it.to_polygon(), attributes, out),
        Geometry::MultiPoint(it) => element("MultiGeometry", attributes, out, |out| {
            it.iter().for_each(|one| write(&(*one).into(), "", out));
        }),
        Geometry::MultiLineString(it) => element("MultiGeometry", attributes, out, |out| {
            it.iter().for_each(|one| write_line(one, "", out));
        }),
        Geometry::MultiPolygon(it) => element("MultiGeometry", attributes, out, |out| {
            it.iter().for_each(|one| write_area(one, "", out));
        }),
        Geometry::GeometryCollection(it) => element("MultiGeometry", attributes, out, |out| {
            it.iter().for_each(|one| write(one, "", out));
        }),
    }
}

fn write_line(line: &LineString, attributes: &str, out: &mut String) {
    element("LineString", attributes, out, |out| written(&line.0, out));
}

fn write_area(area: &Polygon, attributes: &str, out: &mut String) {
    let ring = |name: &str, ring: &LineString, out: &mut String| {
        element(name, "", out, |out| {
            element("LinearRing", "", out, |out| written(&ring.0, out));
        });
    };
    element("Polygon", attributes, out, |out| {
        if area.exterior().0.is_empty() {
            return;
        }
        ring("outerBoundaryIs", area.exterior(), out);
        area.interiors()
            .iter()
            .for_each(|hole| ring("innerBoundaryIs", hole, out));
    });
}

fn written(positions: &[Coord], out: &mut String) {
    element("coordinates", "", out, |out| {
        for (place, Coord { x, y }) in positions.iter().enumerate() {
            let between = if place == 0 { "" } else { " " };
            // To write into a text cannot fail.
            let _ = write!(out, "{between}{x},{y}");
        }
    });
}

fn element(name: &str, attributes: &str, out: &mut String, inside: impl FnOnce(&mut String)) {
    let _ = write!(out, "<{name}{attributes}>");
    inside(out);
    let _ = write!(out, "</{name}>");
}
