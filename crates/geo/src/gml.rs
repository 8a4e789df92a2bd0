//! GML 3.2 geometries: the Simple Features profile (OGC 10-100r3, levels 0 to 2), and older names.
//!
//! | element | what it becomes |
//! | --- | --- |
//! | `Point`, `LineString`, `LinearRing` | that; without positions an empty one |
//! | `Curve` of `LineStringSegment`s | one line |
//! | `Polygon` of `LinearRing`s, or of `Ring`s of curves | an area |
//! | `Surface` of `PolygonPatch`es | an area, or several |
//! | `MultiPoint`, `MultiCurve`, `MultiSurface`, `MultiGeometry`; `MultiLineString`, `MultiPolygon` of older versions | that |
//! | `Envelope`, `Box` of older versions | a rectangle |
//!
//! Arcs, solids and references (`xlink:href`) are no geometry here. Where the system is named, all
//! names have to be the same one; without a name it is CRS84, as for other literals. `EPSG:4326` is
//! written with the longitude first, as those who write this short form do, and
//! `urn:ogc:def:crs:EPSG::4326` or its IRI with the latitude first, as it is defined.

use std::fmt::Write;

use geo::{
    Coord, Geometry, GeometryCollection, LineString, MultiLineString, MultiPoint, MultiPolygon,
    Point, Polygon, Rect,
};

use crate::crs::Crs;
use crate::notation::Notation;
use crate::shape::{Shape, with_height};
use crate::xml::{self, Element};

const NAMESPACE: &str = "http://www.opengis.net/gml/3.2";
/// What says nothing of where a geometry is.
const BESIDE: [&str; 6] = [
    "",
    "description",
    "descriptionReference",
    "identifier",
    "metaDataProperty",
    "name",
];

/// Namespaces of all versions, and one that is often written in RDF.
fn is_known(namespace: &str) -> bool {
    namespace == "http://www.opengis.net/ont/gml"
        || namespace
            .strip_prefix("http://www.opengis.net/gml")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a name is that of a profile, or a version, in which geometries are written here: GML
/// 3.2, whose Simple Features profile has three levels.
pub(crate) fn is_profile(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix('/').unwrap_or(&name);
    let last = name.rsplit(['/', '#']).next().unwrap_or(name);
    let last = last.strip_prefix("gml").unwrap_or(last);
    let last = last.trim_start_matches([' ', '-', '_']);
    matches!(
        last,
        "" | "3.2" | "3.2.1" | "3.2.2" | "sf" | "sf0" | "sf1" | "sf2" | "sf-0" | "sf-1" | "sf-2"
    )
}

/// The shape of a text.
pub(crate) fn from_gml(text: &str) -> Option<Shape> {
    let root = xml::read(text, is_known)?;
    let mut reading = Reading::default();
    let geometry = reading.geometry(&root, None)?;
    let crs = reading.crs.unwrap_or_default();
    Some(Shape {
        geometry: crs.held(geometry),
        crs,
        notation: Notation::Gml,
        heights: reading.heights,
        is_measured: false,
    })
}

/// What is known of the whole text so far.
#[derive(Default)]
struct Reading {
    crs: Option<Crs>,
    heights: Option<(f64, f64)>,
}

impl Reading {
    /// Takes note of the system that an element names, and says how many numbers a position has in
    /// it.
    fn system(&mut self, element: &Element, axes: Option<usize>) -> Option<Option<usize>> {
        if let Some(name) = element.attribute("srsName") {
            let crs = match name {
                "EPSG:4326" | "http://www.opengis.net/gml/srs/epsg.xml#4326" => Crs::Crs84,
                name => Crs::of_iri(name),
            };
            if self.crs.as_ref().is_some_and(|known| *known != crs) {
                return None;
            }
            self.crs = Some(crs);
        }
        match element.attribute("srsDimension") {
            None => Some(axes),
            Some("2") => Some(Some(2)),
            Some("3") => Some(Some(3)),
            Some(_) => None,
        }
    }

    fn geometry(&mut self, element: &Element, axes: Option<usize>) -> Option<Geometry> {
        let axes = self.system(element, axes)?;
        Some(match &*element.name {
            "Point" => match self.positions(element, axes)?.as_slice() {
                [] => Geometry::MultiPoint(MultiPoint::new(Vec::new())),
                [only] => Geometry::Point(Point::from(*only)),
                _ => return None,
            },
            "LineString" | "LinearRing" | "Curve" => {
                Geometry::LineString(self.line(element, axes)?)
            }
            "Polygon" => Geometry::Polygon(self.area(element, axes)?),
            "Surface" => match self.patches(element, axes)? {
                areas if areas.len() == 1 => Geometry::Polygon(areas.into_iter().next()?),
                areas => Geometry::MultiPolygon(MultiPolygon::new(areas)),
            },
            "Envelope" | "Box" => match self.positions(element, axes)?.as_slice() {
                [one, other] => Geometry::Polygon(Rect::new(*one, *other).to_polygon()),
                _ => return None,
            },
            "MultiPoint" => {
                let mut points = Vec::new();
                self.members(element, axes, &mut |member| {
                    match member {
                        Geometry::Point(point) => points.push(point),
                        Geometry::MultiPoint(empty) if empty.0.is_empty() => {}
                        _ => return None,
                    }
                    Some(())
                })?;
                Geometry::MultiPoint(MultiPoint::new(points))
            }
            "MultiCurve" | "MultiLineString" => {
                let mut lines = Vec::new();
                self.members(element, axes, &mut |member| {
                    match member {
                        Geometry::LineString(line) => lines.push(line),
                        _ => return None,
                    }
                    Some(())
                })?;
                Geometry::MultiLineString(MultiLineString::new(lines))
            }
            "MultiSurface" | "MultiPolygon" => {
                let mut areas = Vec::new();
                self.members(element, axes, &mut |member| {
                    match member {
                        Geometry::Polygon(area) => areas.push(area),
                        Geometry::MultiPolygon(patches) => areas.extend(patches),
                        _ => return None,
                    }
                    Some(())
                })?;
                Geometry::MultiPolygon(MultiPolygon::new(areas))
            }
            "MultiGeometry" | "GeometryCollection" => {
                let mut all = Vec::new();
                self.members(element, axes, &mut |member| {
                    all.push(member);
                    Some(())
                })?;
                Geometry::GeometryCollection(GeometryCollection::from(all))
            }
            _ => return None,
        })
    }

    /// The geometries of properties whose names say that they hold them.
    fn members(
        &mut self,
        element: &Element,
        axes: Option<usize>,
        take: &mut dyn FnMut(Geometry) -> Option<()>,
    ) -> Option<()> {
        for property in children(element) {
            let (name, is_one) = match property.name.strip_suffix('s') {
                Some(name) => (name, false),
                None => (&*property.name, true),
            };
            let kinds = [
                "point",
                "curve",
                "lineString",
                "surface",
                "polygon",
                "geometry",
            ];
            let kind = name.strip_suffix("Member")?;
            let has_its_number = !is_one || property.only_child().is_some();
            if !kinds.contains(&kind) || !has_its_number {
                return None;
            }
            for member in children(property) {
                take(self.geometry(member, axes)?)?;
            }
        }
        Some(())
    }

    /// A line with its positions, or a curve with its pieces one behind the other.
    fn line(&mut self, element: &Element, axes: Option<usize>) -> Option<LineString> {
        let axes = self.system(element, axes)?;
        if &*element.name != "Curve" {
            return Some(LineString::new(self.positions(element, axes)?));
        }
        let mut all = Vec::new();
        for segments in children(element) {
            if &*segments.name != "segments" || segments.children.is_empty() {
                return None;
            }
            for segment in children(segments) {
                if &*segment.name != "LineStringSegment" {
                    return None;
                }
                join(&mut all, self.positions(segment, axes)?);
            }
        }
        Some(LineString::new(all))
    }

    fn area(&mut self, element: &Element, axes: Option<usize>) -> Option<Polygon> {
        let (mut edge, mut holes) = (None, Vec::new());
        for property in children(element) {
            let ring = self.ring(property.only_child()?, axes)?;
            match &*property.name {
                "exterior" | "outerBoundaryIs" if edge.is_none() => edge = Some(ring),
                "interior" | "innerBoundaryIs" => holes.push(ring),
                _ => return None,
            }
        }
        let empty = || holes.is_empty().then(|| LineString::new(Vec::new()));
        Some(Polygon::new(edge.or_else(empty)?, holes))
    }

    fn ring(&mut self, element: &Element, axes: Option<usize>) -> Option<LineString> {
        let axes = self.system(element, axes)?;
        match &*element.name {
            "LinearRing" => self.line(element, axes),
            "Ring" => {
                let mut all = Vec::new();
                for member in children(element) {
                    let curve = member.only_child()?;
                    let is_curve = matches!(&*curve.name, "Curve" | "LineString");
                    if &*member.name != "curveMember" || !is_curve {
                        return None;
                    }
                    join(&mut all, self.line(curve, axes)?.0);
                }
                Some(LineString::new(all))
            }
            _ => None,
        }
    }

    fn patches(&mut self, element: &Element, axes: Option<usize>) -> Option<Vec<Polygon>> {
        let mut areas = Vec::new();
        for patches in children(element) {
            if &*patches.name != "patches" || patches.children.is_empty() {
                return None;
            }
            for patch in children(patches) {
                if &*patch.name != "PolygonPatch" {
                    return None;
                }
                areas.push(self.area(patch, axes)?);
            }
        }
        Some(areas)
    }

    /// All positions in an element, however they are written.
    fn positions(&mut self, element: &Element, axes: Option<usize>) -> Option<Vec<Coord>> {
        let mut all = Vec::new();
        for written in children(element) {
            let axes = self.system(written, axes)?;
            match &*written.name {
                "pos" | "lowerCorner" | "upperCorner" => {
                    let numbers = numbers(&written.text)?;
                    if axes.is_some_and(|axes| axes != numbers.len()) {
                        return None;
                    }
                    all.push(self.position(&numbers)?);
                }
                "posList" => {
                    let of_system = match self.crs {
                        Some(Crs::LatitudeFirst(4979)) => 3,
                        _ => 2,
                    };
                    let numbers = numbers(&written.text)?;
                    let axes = axes.unwrap_or(of_system);
                    if !numbers.len().is_multiple_of(axes) {
                        return None;
                    }
                    for position in numbers.chunks(axes) {
                        all.push(self.position(position)?);
                    }
                }
                "coordinates" => self.tuples(written, &mut all)?,
                "pointProperty" | "pointRep" => {
                    let point = written.only_child().filter(|it| &*it.name == "Point")?;
                    let axes = self.system(point, axes)?;
                    all.extend(self.positions(point, axes)?);
                }
                _ => return None,
            }
        }
        Some(all)
    }

    /// `1,2 3,4`, or with other marks that the element names.
    fn tuples(&mut self, written: &Element, all: &mut Vec<Coord>) -> Option<()> {
        let mark = |name, usual: char| match written.attribute(name) {
            None => Some(usual),
            Some(mark) => {
                let mut marks = mark.chars();
                marks.next().filter(|_| marks.next().is_none())
            }
        };
        let (point, between, behind) = (mark("decimal", '.')?, mark("cs", ',')?, mark("ts", ' ')?);
        let is_behind = |it: char| it == behind || behind == ' ' && it.is_ascii_whitespace();
        for tuple in written.text.trim().split(is_behind) {
            if tuple.is_empty() {
                continue;
            }
            let parse = |number: &str| match point {
                '.' => number.trim().parse::<f64>().ok(),
                point => number.trim().replace(point, ".").parse::<f64>().ok(),
            };
            let numbers: Option<Vec<f64>> = tuple.split(between).map(parse).collect();
            all.push(self.position(&numbers?)?);
        }
        Some(())
    }

    fn position(&mut self, numbers: &[f64]) -> Option<Coord> {
        let (x, y) = match *numbers {
            [x, y] => (x, y),
            [x, y, height] if height.is_finite() => {
                self.heights = Some(with_height(self.heights, height));
                (x, y)
            }
            _ => return None,
        };
        Some(Coord { x, y })
    }
}

fn children(element: &Element) -> impl Iterator<Item = &Element> {
    let children = element.children.iter();
    children.filter(|child| !BESIDE.contains(&&*child.name))
}

fn numbers(text: &str) -> Option<Vec<f64>> {
    let numbers = text.split_ascii_whitespace();
    numbers.map(|number| number.parse().ok()).collect()
}

/// A piece behind others, which begins where these end.
fn join(all: &mut Vec<Coord>, piece: Vec<Coord>) {
    let is_same = all.last().is_some_and(|last| Some(last) == piece.first());
    all.extend(piece.into_iter().skip(usize::from(is_same)));
}

/// A shape as GML 3.2.
pub(crate) fn text_of(shape: &Shape) -> String {
    let mut writing = Writing::default();
    let system = shape.crs.to_string();
    let attributes = format!(
        " xmlns:gml=\"{NAMESPACE}\" srsName=\"{}\" srsDimension=\"2\"",
        xml::escaped(&system)
    );
    writing.geometry(&shape.crs.written(&shape.geometry), &attributes);
    writing.text
}

/// A text that grows, in which each geometry has a name of its own, as the schema asks.
#[derive(Default)]
struct Writing {
    text: String,
    geometries: usize,
}

impl Writing {
    fn geometry(&mut self, geometry: &Geometry, attributes: &str) {
        match geometry {
            Geometry::Point(it) => self.element("Point", attributes, |all| {
                all.positions("pos", &[it.0]);
            }),
            Geometry::Line(it) => self.line(&LineString::from(*it), attributes),
            Geometry::LineString(it) => self.line(it, attributes),
            Geometry::Polygon(it) => self.area(it, attributes),
            Geometry::Rect(it) => self.area(&it.to_polygon(), attributes),
            Geometry::Triangle(it) => self.area(&it.to_polygon(), attributes),
            Geometry::MultiPoint(it) => self.element("MultiPoint", attributes, |all| {
                for point in it {
                    all.member("pointMember", |all| all.geometry(&(*point).into(), ""));
                }
            }),
            Geometry::MultiLineString(it) => self.element("MultiCurve", attributes, |all| {
                for line in it {
                    all.member("curveMember", |all| all.line(line, ""));
                }
            }),
            Geometry::MultiPolygon(it) => self.element("MultiSurface", attributes, |all| {
                for area in it {
                    all.member("surfaceMember", |all| all.area(area, ""));
                }
            }),
            Geometry::GeometryCollection(it) => {
                self.element("MultiGeometry", attributes, |all| {
                    for one in it {
                        all.member("geometryMember", |all| all.geometry(one, ""));
                    }
                });
            }
        }
    }

    fn line(&mut self, line: &LineString, attributes: &str) {
        self.element("LineString", attributes, |all| {
            all.positions("posList", &line.0);
        });
    }

    fn area(&mut self, area: &Polygon, attributes: &str) {
        self.element("Polygon", attributes, |all| {
            if area.exterior().0.is_empty() {
                return;
            }
            all.ring("exterior", area.exterior());
            for hole in area.interiors() {
                all.ring("interior", hole);
            }
        });
    }

    fn ring(&mut self, name: &str, ring: &LineString) {
        self.member(name, |all| {
            all.member("LinearRing", |all| all.positions("posList", &ring.0));
        });
    }

    fn element(&mut self, name: &str, attributes: &str, inside: impl FnOnce(&mut Self)) {
        self.geometries += 1;
        let number = self.geometries;
        // To write into a text cannot fail.
        let _ = write!(self.text, "<gml:{name}{attributes} gml:id=\"g{number}\">");
        inside(self);
        let _ = write!(self.text, "</gml:{name}>");
    }

    fn member(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        let _ = write!(self.text, "<gml:{name}>");
        inside(self);
        let _ = write!(self.text, "</gml:{name}>");
    }

    fn positions(&mut self, name: &str, positions: &[Coord]) {
        let _ = write!(self.text, "<gml:{name}>");
        for (place, Coord { x, y }) in positions.iter().enumerate() {
            let between = if place == 0 { "" } else { " " };
            let _ = write!(self.text, "{between}{x} {y}");
        }
        let _ = write!(self.text, "</gml:{name}>");
    }
}
