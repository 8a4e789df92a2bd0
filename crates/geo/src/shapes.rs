//! Functions that make geometries from others, in the reference system and notation of the first.
//!
//! Sets of points are put together by their dimensions: areas with areas by the `geo` crate's
//! overlay, lines by what areas cut of them and what they have in common, points one by one. Of two
//! areas that only touch, the intersection has no area and is empty; points at which a line only
//! touches an area belong to theirs. The overlay rounds to a grid of 2^-29 of the extent.

use geo::line_intersection::{LineIntersection, line_intersection};
use geo::{
    BooleanOps, BoundingRect, Buffer, Centroid, ConcaveHull, ConvexHull, Coord, CoordsIter,
    Distance, Euclidean, Geometry, GeometryCollection, Intersects, Line, LineString, MapCoords,
    MultiLineString, MultiPoint, MultiPolygon, Point, Polygon, Validation,
};

use crate::measures::EARTH_RADIUS_M;
use crate::shape::Shape;

/// Corners of the polygon that stands for a circle.
const CIRCLE_CORNERS: u32 = 64;
/// A buffer may reach so far, in metres: a quarter of the way round the earth.
const BUFFER_MAX_M: f64 = 1e7;

/// The points, lines and areas of a geometry.
#[derive(Default)]
struct Parts {
    points: Vec<Point>,
    lines: Vec<LineString>,
    areas: Vec<Polygon>,
}

impl Parts {
    fn of(geometry: &Geometry) -> Self {
        let mut parts = Self::default();
        parts.add(geometry);
        // Areas of a collection may overlap: as a set of points they are one.
        if matches!(geometry, Geometry::GeometryCollection(_)) && parts.areas.len() > 1 {
            let areas = std::mem::take(&mut parts.areas);
            parts.areas = geo::unary_union(&areas).0;
        }
        parts
    }

    fn add(&mut self, geometry: &Geometry) {
        match geometry {
            Geometry::Point(it) => self.points.push(*it),
            Geometry::MultiPoint(all) => self.points.extend(all.iter()),
            Geometry::Line(it) => self.lines.push(LineString::from(*it)),
            Geometry::LineString(it) => self.lines.push(it.clone()),
            Geometry::MultiLineString(all) => self.lines.extend(all.iter().cloned()),
            Geometry::Polygon(it) => self.areas.push(it.clone()),
            Geometry::MultiPolygon(all) => self.areas.extend(all.iter().cloned()),
            Geometry::Rect(it) => self.areas.push(it.to_polygon()),
            Geometry::Triangle(it) => self.areas.push(it.to_polygon()),
            Geometry::GeometryCollection(all) => all.iter().for_each(|it| self.add(it)),
        }
    }

    /// The simplest geometry with all parts.
    fn into_geometry(self) -> Geometry {
        let Self {
            points,
            mut lines,
            mut areas,
        } = self;
        lines.retain(|it| it.0.len() > 1);
        let mut kinds = Vec::new();
        match areas.len() {
            0 => {}
            1 => kinds.push(Geometry::Polygon(areas.remove(0))),
            _ => kinds.push(Geometry::MultiPolygon(MultiPolygon::new(areas))),
        }
        match lines.len() {
            0 => {}
            1 => kinds.push(Geometry::LineString(lines.remove(0))),
            _ => kinds.push(Geometry::MultiLineString(MultiLineString::new(lines))),
        }
        match points.as_slice() {
            [] => {}
            [only] => kinds.push(Geometry::Point(*only)),
            _ => kinds.push(Geometry::MultiPoint(MultiPoint::new(points))),
        }
        match kinds.len() {
            1 => kinds.remove(0),
            _ => Geometry::GeometryCollection(GeometryCollection::from(kinds)),
        }
    }

    fn area(&self) -> MultiPolygon {
        MultiPolygon::new(self.areas.clone())
    }

    fn line(&self) -> MultiLineString {
        MultiLineString::new(self.lines.clone())
    }

    /// Lines of others as far as they are within its areas, or outside of them.
    fn clip(&self, lines: &MultiLineString, is_outside: bool) -> Vec<LineString> {
        match (self.areas.is_empty(), is_outside) {
            _ if lines.0.is_empty() => Vec::new(),
            (true, true) => lines.0.clone(),
            (true, false) => Vec::new(),
            (false, _) => self.area().clip(lines, is_outside).0,
        }
    }

    fn has(&self, point: &Point) -> bool {
        self.points.contains(point)
            || self.lines.iter().any(|it| it.intersects(point))
            || self.areas.iter().any(|it| it.intersects(point))
    }
}

fn both(one: &Shape, other: &Shape, made: impl FnOnce(&Parts, &Parts) -> Parts) -> Option<Shape> {
    if !one.goes_with(other) {
        return None;
    }
    let parts = made(&Parts::of(&one.geometry), &Parts::of(&other.geometry));
    Some(one.with(parts.into_geometry()))
}

/// The intersection.
pub(crate) fn intersection(one: &Shape, other: &Shape) -> Option<Shape> {
    both(one, other, |ours, theirs| {
        let mut shared = Parts {
            areas: ours.area().intersection(&theirs.area()).0,
            ..Parts::default()
        };
        shared.lines = theirs.clip(&ours.line(), false);
        shared.lines.extend(ours.clip(&theirs.line(), false));
        crossings(&ours.lines, &theirs.lines, &mut shared);
        touched(&ours.lines, &theirs.areas, &mut shared);
        touched(&theirs.lines, &ours.areas, &mut shared);
        let points = ours.points.iter().filter(|it| theirs.has(it));
        let others = theirs.points.iter().filter(|it| ours.has(it));
        for point in points.chain(others) {
            if !shared.points.contains(point) {
                shared.points.push(*point);
            }
        }
        shared
    })
}

/// The intersection of lines: shared pieces, and crossing points.
fn crossings(ours: &[LineString], theirs: &[LineString], shared: &mut Parts) {
    let mut pieces: Vec<Line> = Vec::new();
    let mut points: Vec<Point> = Vec::new();
    for our in ours.iter().flat_map(LineString::lines) {
        for their in theirs.iter().flat_map(LineString::lines) {
            match line_intersection(our, their) {
                Some(LineIntersection::SinglePoint { intersection, .. }) => {
                    points.push(Point::from(intersection));
                }
                // An edge of no length is a point.
                Some(LineIntersection::Collinear { intersection })
                    if intersection.start == intersection.end =>
                {
                    points.push(Point::from(intersection.start));
                }
                Some(LineIntersection::Collinear { intersection }) => pieces.push(intersection),
                None => {}
            }
        }
    }
    for point in points {
        let is_new = !shared.points.contains(&point);
        if is_new && !pieces.iter().any(|it| it.intersects(&point)) {
            shared.points.push(point);
        }
    }
    shared.lines.extend(joined(pieces));
}

/// The pieces of lines along the edges of areas, which the overlay leaves out.
fn touched(lines: &[LineString], areas: &[Polygon], shared: &mut Parts) {
    if lines.is_empty() || areas.is_empty() {
        return;
    }
    let rings = areas.iter().flat_map(|area| {
        let holes = area.interiors().iter();
        std::iter::once(area.exterior()).chain(holes).cloned()
    });
    let rings: Vec<LineString> = rings.collect();
    let mut met = Parts::default();
    crossings(lines, &rings, &mut met);
    let extent = MultiLineString::new(rings).bounding_rect();
    let near = extent.map_or(0.0, |it| it.width().max(it.height())) * OVERLAY_PART;
    let is_new = |at: Point, among: &[LineString]| {
        let mut apart = among.iter().map(|line| Euclidean.distance(&at, line));
        apart.all(|distance| distance > near)
    };
    met.lines.retain(|line| {
        let middle = line.centroid();
        middle.is_some_and(|middle| is_new(middle, &shared.lines))
    });
    shared.lines.extend(met.lines);
    met.points.retain(|point| is_new(*point, &shared.lines));
    for point in met.points {
        if !shared.points.contains(&point) {
            shared.points.push(point);
        }
    }
}

/// The union.
pub(crate) fn union(one: &Shape, other: &Shape) -> Option<Shape> {
    both(one, other, |ours, theirs| {
        let areas = Parts {
            areas: match (ours.areas.is_empty(), theirs.areas.is_empty()) {
                (_, true) => ours.areas.clone(),
                (true, _) => theirs.areas.clone(),
                _ => ours.area().union(&theirs.area()).0,
            },
            ..Parts::default()
        };
        let mut all = areas.clip(&ours.line(), true);
        let added = MultiLineString::new(without(&theirs.lines, &ours.lines));
        all.extend(areas.clip(&added, true));
        let mut all = Parts {
            lines: all,
            ..areas
        };
        for point in ours.points.iter().chain(&theirs.points) {
            if !all.has(point) {
                all.points.push(*point);
            }
        }
        all
    })
}

/// The difference.
pub(crate) fn difference(one: &Shape, other: &Shape) -> Option<Shape> {
    both(one, other, |ours, theirs| {
        let areas = match theirs.areas.is_empty() {
            true => ours.areas.clone(),
            false => ours.area().difference(&theirs.area()).0,
        };
        let outside = theirs.clip(&ours.line(), true);
        let points = ours.points.iter().filter(|it| !theirs.has(it));
        Parts {
            points: points.copied().collect(),
            lines: without(&outside, &theirs.lines),
            areas,
        }
    })
}

/// The symmetric difference.
pub(crate) fn symmetric_difference(one: &Shape, other: &Shape) -> Option<Shape> {
    union(&difference(one, other)?, &difference(other, one)?)
}

/// Lines without the pieces that they have in common with others.
fn without(lines: &[LineString], others: &[LineString]) -> Vec<LineString> {
    if others.is_empty() {
        return lines.to_vec();
    }
    let mut left = Vec::new();
    for line in lines {
        let mut pieces = Vec::new();
        for edge in line.lines() {
            let along = |at: Coord| match edge.dx().abs() > edge.dy().abs() {
                true => (at.x - edge.start.x) / edge.dx(),
                false => (at.y - edge.start.y) / edge.dy(),
            };
            let others = others.iter().flat_map(LineString::lines);
            let shared = others.filter_map(|other| match line_intersection(edge, other)? {
                LineIntersection::Collinear { intersection } => {
                    let (from, to) = (along(intersection.start), along(intersection.end));
                    Some((from.min(to), from.max(to)))
                }
                LineIntersection::SinglePoint { .. } => None,
            });
            let mut shared: Vec<(f64, f64)> = shared.collect();
            shared.sort_by(|one, other| one.0.total_cmp(&other.0));
            let at = |part: f64| match part {
                1.0 => edge.end,
                part => edge.start + edge.delta() * part,
            };
            let mut from = 0.0;
            for (begin, end) in shared.into_iter().chain([(1.0, 1.0)]) {
                if begin > from {
                    pieces.push(Line::new(at(from), at(begin)));
                }
                from = f64::max(from, end);
            }
        }
        left.extend(joined(pieces));
    }
    left
}

/// Pieces as lines, where one begins at the end of another.
fn joined(pieces: Vec<Line>) -> Vec<LineString> {
    let mut lines: Vec<LineString> = Vec::new();
    for piece in pieces.into_iter().filter(|it| it.start != it.end) {
        match lines.last_mut() {
            Some(last) if last.0.last() == Some(&piece.start) => last.0.push(piece.end),
            _ => lines.push(LineString::from(piece)),
        }
    }
    lines
}

/// The boundary: line ends that an odd number of lines has, and edges of areas (OGC 06-103r4, 6.1).
pub(crate) fn boundary(shape: &Shape) -> Shape {
    let parts = Parts::of(&shape.geometry);
    let mut made = Parts::default();
    for area in &parts.areas {
        made.lines.push(area.exterior().clone());
        made.lines.extend(area.interiors().iter().cloned());
    }
    let ends = parts.lines.iter().filter(|it| !it.is_closed());
    for end in ends.flat_map(|it| [it.points().next(), it.points().next_back()]) {
        let Some(end) = end else { continue };
        match made.points.iter().position(|it| *it == end) {
            Some(place) => {
                made.points.swap_remove(place);
            }
            None => made.points.push(end),
        }
    }
    shape.with(made.into_geometry())
}

/// The envelope, as an area; none of an empty geometry.
pub(crate) fn envelope(shape: &Shape) -> Option<Shape> {
    let bounds = shape.geometry.bounding_rect()?;
    Some(shape.with(Geometry::Polygon(bounds.to_polygon())))
}

/// The centroid; none of an empty geometry.
pub(crate) fn centroid(shape: &Shape) -> Option<Shape> {
    let middle = shape.geometry.centroid()?;
    Some(shape.with(Geometry::Point(middle)))
}

/// The convex hull: an area, or less if all points are on a line.
pub(crate) fn convex_hull(shape: &Shape) -> Option<Shape> {
    let hull = shape.geometry.convex_hull();
    hull_of(shape, hull)
}

/// The concave hull.
pub(crate) fn concave_hull(shape: &Shape) -> Option<Shape> {
    let points = shape.geometry.coords_iter().map(Point::from);
    let hull = points.collect::<MultiPoint>().concave_hull();
    hull_of(shape, hull)
}

fn hull_of(shape: &Shape, hull: Polygon) -> Option<Shape> {
    let mut corners = hull.exterior().0.clone();
    corners.dedup();
    let made = match corners.as_slice() {
        [] => return None,
        [only] => Geometry::Point(Point::from(*only)),
        [from, to] | [from, to, _] => Geometry::LineString(LineString::from(vec![*from, *to])),
        _ => Geometry::Polygon(hull),
    };
    Some(shape.with(made))
}

/// The bounding circle by Welzl's algorithm, as an area of 64 corners around it.
pub(crate) fn bounding_circle(shape: &Shape) -> Option<Shape> {
    let hull = shape.geometry.convex_hull();
    let points: Vec<Coord> = hull.exterior().coords().copied().collect();
    let mut circle = Circle {
        middle: *points.first()?,
        radius: 0.0,
    };
    for (place, point) in points.iter().enumerate() {
        if circle.has(*point) {
            continue;
        }
        circle = Circle {
            middle: *point,
            radius: 0.0,
        };
        for (second_place, second) in points[..place].iter().enumerate() {
            if circle.has(*second) {
                continue;
            }
            circle = Circle::of_two(*point, *second);
            for third in &points[..second_place] {
                if !circle.has(*third) {
                    circle = Circle::of_three(*point, *second, *third)?;
                }
            }
        }
    }
    if circle.radius == 0.0 {
        return Some(shape.with(Geometry::Point(Point::from(circle.middle))));
    }
    // Corners so far out that the edges between them touch the circle.
    let step = std::f64::consts::TAU / f64::from(CIRCLE_CORNERS);
    let radius = circle.radius / (step / 2.0).cos();
    let corners = (0..CIRCLE_CORNERS).map(|corner| {
        let (sine, cosine) = (f64::from(corner) * step).sin_cos();
        circle.middle
            + Coord {
                x: radius * cosine,
                y: radius * sine,
            }
    });
    let edge = LineString::from_iter(corners);
    Some(shape.with(Geometry::Polygon(Polygon::new(edge, Vec::new()))))
}

struct Circle {
    middle: Coord,
    radius: f64,
}

impl Circle {
    fn of_two(one: Coord, other: Coord) -> Self {
        let middle = (one + other) / 2.0;
        Self {
            middle,
            radius: Euclidean.distance(Point::from(middle), Point::from(one)),
        }
    }

    /// None of three on a line, which two of them hold already.
    fn of_three(a: Coord, b: Coord, c: Coord) -> Option<Self> {
        let (b, c) = (b - a, c - a);
        let area = 2.0 * (b.x * c.y - b.y * c.x);
        if area == 0.0 {
            return None;
        }
        let (b_squared, c_squared) = (b.x * b.x + b.y * b.y, c.x * c.x + c.y * c.y);
        let from_a = Coord {
            x: (c.y * b_squared - b.y * c_squared) / area,
            y: (b.x * c_squared - c.x * b_squared) / area,
        };
        Some(Self {
            middle: a + from_a,
            radius: from_a.x.hypot(from_a.y),
        })
    }

    fn has(&self, point: Coord) -> bool {
        let away = point - self.middle;
        away.x.hypot(away.y) <= self.radius * (1.0 + 1e-12)
    }
}

/// The relative precision of the overlay of areas.
const OVERLAY_PART: f64 = 1e-7;
/// The smallest buffer relative to its geometry: on the overlay's grid a smaller one vanishes.
const BUFFER_PART_MIN: f64 = 1e-7;

/// The buffer of so many metres, or of units in a plane; a negative one shrinks areas. On the earth
/// distances are those of the centre of the envelope, a little off for a continent.
pub(crate) fn buffer(shape: &Shape, distance: f64) -> Option<Shape> {
    if !distance.is_finite() {
        return None;
    }
    if !shape.crs.is_on_earth() {
        return drawn_around(&shape.geometry, distance)
            .map(|areas| shape.with(areas.into_geometry()));
    }
    if distance.abs() > BUFFER_MAX_M {
        return None;
    }
    let middle = shape.geometry.bounding_rect()?.center();
    let flat = shape.geometry.map_coords(|at| flattened(at, middle));
    let areas = drawn_around(&flat, distance)?;
    Some(shape.with(areas.into_geometry().map_coords(|at| rounded(at, middle))))
}

/// The buffer in a plane; none where it is too small.
fn drawn_around(geometry: &Geometry, distance: f64) -> Option<Parts> {
    let bounds = geometry.bounding_rect()?;
    let extent = bounds.width().max(bounds.height());
    let is_enough = distance == 0.0 || distance.abs() >= extent * BUFFER_PART_MIN;
    is_enough.then(|| Parts {
        areas: geometry.buffer(distance).0,
        ..Parts::default()
    })
}

/// A place of the earth in a plane whose distances and directions from the middle are right, in
/// metres (azimuthal equidistant projection: Snyder, Map Projections, 1987, 25).
fn flattened(at: Coord, middle: Coord) -> Coord {
    let (latitude, middle_latitude) = (at.y.to_radians(), middle.y.to_radians());
    let east = (at.x - middle.x).to_radians();
    let x = latitude.cos() * east.sin();
    let y = middle_latitude.cos() * latitude.sin()
        - middle_latitude.sin() * latitude.cos() * east.cos();
    let along = middle_latitude.sin() * latitude.sin()
        + middle_latitude.cos() * latitude.cos() * east.cos();
    let sine = x.hypot(y);
    let scale = match sine > 1e-15 {
        true => sine.atan2(along) / sine,
        false => 1.0,
    };
    Coord {
        x: EARTH_RADIUS_M * scale * x,
        y: EARTH_RADIUS_M * scale * y,
    }
}

/// The inverse of that projection.
fn rounded(at: Coord, middle: Coord) -> Coord {
    let distance = at.x.hypot(at.y);
    if distance < 1e-9 {
        return middle;
    }
    let (sine, cosine) = (distance / EARTH_RADIUS_M).sin_cos();
    let (middle_sine, middle_cosine) = middle.y.to_radians().sin_cos();
    let latitude = cosine * middle_sine + at.y * sine * middle_cosine / distance;
    let east = (at.x * sine).atan2(distance * middle_cosine * cosine - at.y * middle_sine * sine);
    Coord {
        x: middle.x + east.to_degrees(),
        y: latitude.clamp(-1.0, 1.0).asin().to_degrees(),
    }
}

/// The n-th part, from 1; the geometry itself where it has no parts.
pub(crate) fn part(shape: &Shape, number: i64) -> Option<Shape> {
    let place = usize::try_from(number).ok()?.checked_sub(1)?;
    let part = match &shape.geometry {
        Geometry::MultiPoint(all) => Geometry::Point(*all.0.get(place)?),
        Geometry::MultiLineString(all) => Geometry::LineString(all.0.get(place)?.clone()),
        Geometry::MultiPolygon(all) => Geometry::Polygon(all.0.get(place)?.clone()),
        Geometry::GeometryCollection(all) => all.0.get(place)?.clone(),
        whole => (place == 0).then(|| whole.clone())?,
    };
    Some(shape.with(part))
}

/// The number of parts.
pub(crate) fn parts(shape: &Shape) -> i64 {
    let parts = match &shape.geometry {
        Geometry::MultiPoint(all) => all.0.len(),
        Geometry::MultiLineString(all) => all.0.len(),
        Geometry::MultiPolygon(all) => all.0.len(),
        Geometry::GeometryCollection(all) => all.0.len(),
        _ => 1,
    };
    i64::try_from(parts).unwrap_or(i64::MAX)
}

/// Whether it is simple: lines meet themselves at their ends alone, areas are valid (OGC).
pub(crate) fn is_simple(shape: &Shape) -> bool {
    let parts = Parts::of(&shape.geometry);
    let mut points: Vec<(u64, u64)> = Vec::with_capacity(parts.points.len());
    points.extend(
        parts
            .points
            .iter()
            .map(|it| (it.x().to_bits(), it.y().to_bits())),
    );
    points.sort_unstable();
    let has_twins = points.windows(2).any(|pair| pair[0] == pair[1]);
    !has_twins
        && parts.lines.iter().all(is_simple_line)
        && parts.areas.iter().all(Polygon::is_valid)
}

fn is_simple_line(line: &LineString) -> bool {
    let mut corners = line.0.clone();
    corners.dedup();
    let line = LineString::new(corners);
    let edges: Vec<Line> = line.lines().collect();
    let is_closed = line.is_closed() && edges.len() > 2;
    let numbered = edges.iter().enumerate();
    let numbered = numbered.map(|(place, edge)| Edge { place, edge: *edge });
    let mut crossings = geo::sweep::Intersections::<Edge>::from_iter(numbered);
    crossings.all(|(one, other, crossing)| {
        let (first, second) = (one.place.min(other.place), one.place.max(other.place));
        let LineIntersection::SinglePoint { intersection, .. } = crossing else {
            return false;
        };
        // Neighbours have a corner in common; the last of a ring and the first have one too.
        let follows = second == first + 1 && edges[first].end == intersection;
        let closes =
            is_closed && first == 0 && second + 1 == edges.len() && edges[0].start == intersection;
        follows || closes
    })
}

/// An edge and which it is.
#[derive(Clone, Debug)]
struct Edge {
    place: usize,
    edge: Line,
}

impl geo::sweep::Cross for Edge {
    type Scalar = f64;

    fn line(&self) -> Line {
        self.edge
    }
}

#[cfg(test)]
mod tests {
    use geo::Area;
    use proptest::prelude::*;

    use super::*;
    use crate::literal::{from_text, text_of};
    use crate::measures::distance_m;
    use crate::notation::Notation;
    use crate::relations::Relation;

    fn shape(text: &str) -> Shape {
        from_text(text, Notation::Wkt).unwrap_or_else(|| panic!("{text}"))
    }

    fn text(shape: Option<Shape>) -> String {
        text_of(&shape.unwrap(), Notation::Wkt).unwrap()
    }

    #[track_caller]
    fn equals(found: Option<Shape>, expected: &str) {
        let found = found.unwrap();
        let holds = Relation::SfEquals.holds(&found, &shape(expected));
        assert_eq!(holds, Some(true), "{} {expected}", text(Some(found)));
    }

    const ONE: &str = "POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))";
    const OTHER: &str = "POLYGON((1 1, 3 1, 3 3, 1 3, 1 1))";

    #[test]
    fn areas_are_put_together() {
        let (one, other) = (shape(ONE), shape(OTHER));
        equals(
            intersection(&one, &other),
            "POLYGON((1 1, 2 1, 2 2, 1 2, 1 1))",
        );
        equals(
            union(&one, &other),
            "POLYGON((0 0, 2 0, 2 1, 3 1, 3 3, 1 3, 1 2, 0 2, 0 0))",
        );
        equals(
            difference(&one, &other),
            "POLYGON((0 0, 2 0, 2 1, 1 1, 1 2, 0 2, 0 0))",
        );
        equals(
            symmetric_difference(&one, &other),
            "MULTIPOLYGON(((0 0, 2 0, 2 1, 1 1, 1 2, 0 2, 0 0)), ((2 1, 3 1, 3 3, 1 3, 1 2, 2 2, 2 1)))",
        );
        let plan = shape("<http://example.com/plan> POINT(0 0)");
        assert!(union(&one, &plan).is_none());
    }

    #[test]
    fn lines_and_points_are_put_together() {
        let area = shape(ONE);
        let line = shape("LINESTRING(-1 1, 5 1)");
        equals(intersection(&line, &area), "LINESTRING(0 1, 2 1)");
        equals(intersection(&area, &line), "LINESTRING(0 1, 2 1)");
        equals(
            difference(&line, &area),
            "MULTILINESTRING((-1 1, 0 1), (2 1, 5 1))",
        );
        let other = shape("LINESTRING(3 0, 3 1, 4 1, 4 2)");
        equals(intersection(&line, &other), "LINESTRING(3 1, 4 1)");
        equals(
            difference(&line, &other),
            "MULTILINESTRING((-1 1, 3 1), (4 1, 5 1))",
        );
        // Touched in a point, along an edge, and crossed.
        equals(
            intersection(&shape("LINESTRING(2 2, 5 5)"), &area),
            "POINT(2 2)",
        );
        equals(
            intersection(&area, &shape("LINESTRING(2 -5, 2 1)")),
            "LINESTRING(2 0, 2 1)",
        );
        equals(
            intersection(&shape("LINESTRING(-1 1, 1 1, 1 3, 3 1)"), &area),
            "GEOMETRYCOLLECTION(LINESTRING(0 1, 1 1, 1 2), POINT(2 2))",
        );
        let crossing = shape("LINESTRING(1 0, 1 2)");
        equals(intersection(&line, &crossing), "POINT(1 1)");
        let points = shape("MULTIPOINT((1 1), (9 9), (1 0))");
        equals(intersection(&points, &area), "MULTIPOINT((1 1), (1 0))");
        equals(difference(&points, &area), "POINT(9 9)");
        assert_eq!(
            text(union(&area, &points)),
            "GEOMETRYCOLLECTION(POLYGON((0 0,2 0,2 2,0 2,0 0)),POINT(9 9))"
        );
        assert_eq!(
            text(intersection(&area, &shape("POINT(9 9)"))),
            "GEOMETRYCOLLECTION EMPTY"
        );
    }

    #[test]
    fn hulls_circles_and_edges_are_as_they_should_be() {
        let points = shape("MULTIPOINT((0 0), (4 0), (4 4), (0 4), (1 2))");
        equals(convex_hull(&points), "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))");
        equals(convex_hull(&shape("POINT(1 2)")), "POINT(1 2)");
        equals(
            convex_hull(&shape("MULTIPOINT((0 0), (2 2), (1 1))")),
            "LINESTRING(0 0, 2 2)",
        );
        equals(
            envelope(&shape("LINESTRING(1 5, 3 2)")),
            "POLYGON((1 2, 3 2, 3 5, 1 5, 1 2))",
        );
        assert!(envelope(&shape("POINT EMPTY")).is_none());
        equals(centroid(&shape(ONE)), "POINT(1 1)");
        equals(
            Some(boundary(&shape(
                "MULTILINESTRING((0 0, 1 1), (1 1, 2 0), (5 5, 6 6, 6 5, 5 5))",
            ))),
            "MULTIPOINT((0 0), (2 0))",
        );
        equals(
            Some(boundary(&shape(ONE))),
            "LINESTRING(0 0, 2 0, 2 2, 0 2, 0 0)",
        );
        let circle = bounding_circle(&points).unwrap();
        let area = circle.geometry.unsigned_area();
        let expected = std::f64::consts::PI * 8.0;
        assert!(
            (expected..expected * 1.003).contains(&area),
            "{area} {expected}"
        );
        assert_eq!(Relation::SfContains.holds(&circle, &points), Some(true));
        equals(part(&shape("MULTIPOINT((1 1), (2 2))"), 2), "POINT(2 2)");
        assert!(part(&shape("MULTIPOINT((1 1), (2 2))"), 3).is_none());
        assert!(part(&shape("POINT(1 1)"), 0).is_none());
    }

    #[test]
    fn a_buffer_reaches_as_far_as_it_says() {
        let paris = shape("POINT(2.3522 48.8566)");
        let around = buffer(&paris, 10_000.0).unwrap();
        for at in boundary(&around).geometry.coords_iter() {
            let at = Shape::point(at.x, at.y).unwrap();
            let distance = distance_m(&paris, &at).unwrap();
            assert!((distance - 10_000.0).abs() < 60.0, "{distance}");
        }
        assert!(buffer(&paris, 1e8).is_none() && buffer(&paris, f64::NAN).is_none());
        let plan = shape("<http://example.com/plan> POINT(0 0)");
        let area = buffer(&plan, 2.0).unwrap().geometry.unsigned_area();
        assert!((12.0..12.6).contains(&area), "{area}");
    }

    #[test]
    fn lines_that_meet_themselves_are_not_simple() {
        for (text, expected) in [
            ("LINESTRING(0 0, 1 1, 2 0)", true),
            ("LINESTRING(0 0, 0 0, 1 1)", true),
            ("LINESTRING(0 0, 2 2, 2 0, 0 2)", false),
            ("LINESTRING(0 0, 2 0, 2 2, 0 2, 0 0)", true),
            ("LINESTRING(0 0, 2 0, 2 2, 1 0)", false),
            ("LINESTRING(0 0, 2 0, 1 0)", false),
            ("MULTIPOINT((0 0), (1 1))", true),
            ("MULTIPOINT((0 0), (0 0))", false),
            ("POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))", true),
            ("POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))", false),
        ] {
            assert_eq!(is_simple(&shape(text)), expected, "{text}");
        }
    }

    fn square() -> impl Strategy<Value = Shape> {
        (-20_i32..20, -20_i32..20, 1_i32..15, 1_i32..15).prop_map(|(x, y, width, height)| {
            let (right, top) = (x + width, y + height);
            shape(&format!(
                "POLYGON(({x} {y}, {right} {y}, {right} {top}, {x} {top}, {x} {y}))"
            ))
        })
    }

    proptest! {
        #[test]
        fn areas_add_up(one in square(), other in square()) {
            let area = |shape: Option<Shape>| shape.unwrap().geometry.unsigned_area();
            let (a, b) = (one.geometry.unsigned_area(), other.geometry.unsigned_area());
            let shared = area(intersection(&one, &other));
            prop_assert!((area(union(&one, &other)) - (a + b - shared)).abs() < 1e-6);
            prop_assert!((area(difference(&one, &other)) - (a - shared)).abs() < 1e-6);
            let apart = area(symmetric_difference(&one, &other));
            prop_assert!((apart - (a + b - 2.0 * shared)).abs() < 1e-6);
            prop_assert_eq!(Relation::SfOverlaps.holds(&one, &other).unwrap(),
                shared > 0.0 && shared < a - 1e-9 && shared < b - 1e-9);
        }

        #[test]
        fn a_plane_comes_back_round(x in -170.0..170.0_f64, y in -85.0..85.0_f64, dx in -5.0..5.0_f64, dy in -4.0..4.0_f64) {
            let middle = Coord { x, y };
            let at = Coord { x: x + dx, y: y + dy };
            let flat = flattened(at, middle);
            let back = rounded(flat, middle);
            prop_assert!((back.x - at.x).abs() < 1e-9 && (back.y - at.y).abs() < 1e-9, "{:?} {:?}", back, at);
            let distance = distance_m(&Shape::point(x, y).unwrap(), &Shape::point(at.x, at.y).unwrap()).unwrap();
            prop_assert!((flat.x.hypot(flat.y) - distance).abs() < 0.01);
        }
    }
}
