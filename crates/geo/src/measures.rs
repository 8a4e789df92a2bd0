//! Distances, lengths and areas.
//!
//! On the earth a distance is that of the two nearest points along a great circle; the edges of
//! lines and areas are great circles for that. Two that have a point in common are 0 apart. In a
//! plane about whose units nothing is known, no function asks for metres.

use geo::{
    Coord, CoordsIter, Distance, Euclidean, GeodesicArea, Geometry, Haversine, Intersects, Length,
    LineString, Polygon, Rect,
};

use crate::shape::Shape;
use crate::units::{angle_in_radians, length_in_metres};

/// The mean radius of the earth, in metres, by which angles become lengths.
pub const EARTH_RADIUS_M: f64 = 6_371_008.8;

/// The distance of two geometries on the earth in metres; none in a plane, and of empty ones. Of
/// two points in no time, of others a look at each pair of their edges.
pub fn distance_m(one: &Shape, other: &Shape) -> Option<f64> {
    if !(one.crs.is_on_earth() && other.crs.is_on_earth()) {
        return None;
    }
    // Beyond a pole a cosine is negative, and what is rounded may leave a root of less than
    // nothing.
    let is_written_as_usual = |point: &geo::Point| (-90.0..=90.0).contains(&point.y());
    if let (Geometry::Point(one), Geometry::Point(other)) = (&one.geometry, &other.geometry)
        && is_written_as_usual(one)
        && is_written_as_usual(other)
    {
        return Some(Haversine.distance(*one, *other));
    }
    if one.geometry.intersects(&other.geometry) {
        return Some(0.0);
    }
    let (ours, theirs) = (arcs(&one.geometry), arcs(&other.geometry));
    let mut least = f64::INFINITY;
    for our in &ours {
        for their in &theirs {
            least = least.min(our.angle_to(their));
        }
    }
    least.is_finite().then_some(least * EARTH_RADIUS_M)
}

/// The metres of the earth's surface in a unit of length or angle.
pub fn metres_of(unit: &str) -> Option<f64> {
    let of_angle = || angle_in_radians(unit).map(|it| it * EARTH_RADIUS_M);
    length_in_metres(unit).or_else(of_angle)
}

/// The same in a plane, in its own unit.
pub(crate) fn distance_in_plane(one: &Shape, other: &Shape) -> Option<f64> {
    let is_any = |shape: &Shape| shape.geometry.coords_iter().next().is_some();
    if one.crs != other.crs || one.crs.is_on_earth() || !is_any(one) || !is_any(other) {
        return None;
    }
    Some(Euclidean.distance(&one.geometry, &other.geometry))
}

/// A rectangle of degrees outside of which nothing is within so many metres of a shape of the
/// earth; none of what is empty, and of shapes of a plane.
///
/// Its middle is between -180 and 180 degrees of longitude, its edges may be beyond these; a pole
/// that is so near is reached from all longitudes.
pub fn surroundings(shape: &Shape, metres: f64) -> Option<Rect> {
    if !shape.crs.is_on_earth() {
        return None;
    }
    let bounds = shape.bounds()?;
    let (mut south, mut north) = (bounds.min().y, bounds.max().y);
    let (mut west, mut east) = (bounds.min().x, bounds.max().x);
    // An edge goes the short way, and nearer to a pole than its ends.
    // Written beyond a pole, it is on the other side of that: all the earth is around it.
    let mut is_round = south < -90.0 || north > 90.0;
    if is_round {
        (south, north) = (-90.0, 90.0);
    }
    for arc in arcs(&shape.geometry) {
        is_round |= arc.is_round;
        if let Some(latitude) = arc.turning_latitude() {
            south = south.min(latitude);
            north = north.max(latitude);
        }
    }
    // A little more than it is, for what is rounded on the way.
    let reach = (metres.max(0.0) / EARTH_RADIUS_M).to_degrees() * (1.0 + 1e-9) + 1e-9;
    (south, north) = (south - reach, north + reach);
    if is_round || south <= -90.0 || north >= 90.0 {
        (west, east) = (-180.0, 180.0);
    } else {
        let farthest = south.abs().max(north.abs()).to_radians();
        let sine = reach.to_radians().sin() / farthest.cos();
        let beside = match reach < 90.0 && sine < 1.0 {
            true => sine.asin().to_degrees() + 1e-9,
            false => 180.0,
        };
        (west, east) = (west - beside, east + beside);
        let turns = ((west + east) / 2.0 / 360.0).round() * 360.0;
        (west, east) = match east - west < 360.0 {
            true => (west - turns, east - turns),
            false => (-180.0, 180.0),
        };
    }
    let corner = |x, y: f64| Coord {
        x,
        y: y.clamp(-90.0, 90.0),
    };
    Some(Rect::new(corner(west, south), corner(east, north)))
}

/// Longitudes within so many degrees are looked up as they are written; what goes beyond them is
/// anywhere.
const LONGITUDE_MAX: f64 = 540.0;

/// A rectangle of degrees, as they are written, that has a shape of the earth both as a figure of
/// the plane and with great circles for edges; none of what is empty, and of shapes of a plane.
///
/// It has no bounds where the shape has an edge that goes the other way round, longitudes beyond
/// 540 degrees, or latitudes that there are not.
pub fn covering(shape: &Shape) -> Option<Rect> {
    if !shape.crs.is_on_earth() {
        return None;
    }
    let bounds = shape.bounds()?;
    let (mut south, mut north) = (bounds.min().y, bounds.max().y);
    let is_odd = south < -90.0
        || north > 90.0
        || bounds.min().x < -LONGITUDE_MAX
        || bounds.max().x > LONGITUDE_MAX;
    let mut is_anywhere = is_odd;
    if !(is_odd || matches!(shape.geometry, Geometry::Point(_) | Geometry::MultiPoint(_))) {
        for arc in arcs(&shape.geometry) {
            is_anywhere |= arc.is_round;
            if let Some(latitude) = arc.turning_latitude() {
                // A little more than it is, for what is rounded on the way.
                south = south.min(latitude - 1e-9);
                north = north.max(latitude + 1e-9);
            }
        }
    }
    let corner = |x, y| Coord { x, y };
    Some(match is_anywhere {
        true => Rect::new(
            corner(f64::NEG_INFINITY, f64::NEG_INFINITY),
            corner(f64::INFINITY, f64::INFINITY),
        ),
        false => Rect::new(corner(bounds.min().x, south), corner(bounds.max().x, north)),
    })
}

type Vector = [f64; 3];

/// A piece of a great circle, of which both ends are on the sphere of radius 1.
struct Arc {
    from: Vector,
    to: Vector,
    /// Upright on its plane; of no length where it is a point.
    normal: Vector,
    /// Whether its ends are written so far apart that it goes the other way round.
    is_round: bool,
}

impl Arc {
    fn new(from: Coord, to: Coord) -> Self {
        let is_round = (to.x - from.x).abs() > 180.0;
        let (from, to) = (on_sphere(from), on_sphere(to));
        Self {
            normal: cross(from, to),
            from,
            to,
            is_round,
        }
    }

    /// The least angle between two that do not cross: one of their ends is nearest.
    fn angle_to(&self, other: &Self) -> f64 {
        let of_ours = [self.from, self.to].map(|it| other.angle_to_point(it));
        let of_theirs = [other.from, other.to].map(|it| self.angle_to_point(it));
        let all = of_ours.into_iter().chain(of_theirs);
        all.fold(f64::INFINITY, f64::min)
    }

    /// The latitude between its ends that is nearest to a pole, in degrees, if that is none of its
    /// ends.
    fn turning_latitude(&self) -> Option<f64> {
        let length = dot(self.normal, self.normal).sqrt();
        if length <= 1e-15 {
            return None;
        }
        let normal = self.normal.map(|it| it / length);
        // Of its circle the point that is most to the north; opposite of it is the other one.
        let north: Vector = std::array::from_fn(|axis| {
            let upwards = if axis == 2 { 1.0 } else { 0.0 };
            upwards - normal[2] * normal[axis]
        });
        let height = dot(north, north).sqrt();
        if height <= 1e-15 {
            return None;
        }
        let is_between = |point: Vector| {
            dot(cross(normal, self.from), point) >= 0.0 && dot(cross(self.to, normal), point) >= 0.0
        };
        let latitude = height.clamp(-1.0, 1.0).asin().to_degrees();
        if is_between(north) {
            return Some(latitude);
        }
        is_between(north.map(|it| -it)).then_some(-latitude)
    }

    fn angle_to_point(&self, point: Vector) -> f64 {
        let length = dot(self.normal, self.normal).sqrt();
        if length > 1e-15 {
            let normal = self.normal.map(|it| it / length);
            // Between the two ends, seen from above.
            let is_between = dot(cross(normal, self.from), point) >= 0.0
                && dot(cross(self.to, normal), point) >= 0.0;
            if is_between {
                return dot(normal, point).clamp(-1.0, 1.0).asin().abs();
            }
        }
        angle(self.from, point).min(angle(self.to, point))
    }
}

fn on_sphere(at: Coord) -> Vector {
    let (longitude, latitude) = (at.x.to_radians(), at.y.to_radians());
    let around = latitude.cos();
    [
        around * longitude.cos(),
        around * longitude.sin(),
        latitude.sin(),
    ]
}

fn cross(a: Vector, b: Vector) -> Vector {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Right also where it is very small.
fn angle(a: Vector, b: Vector) -> f64 {
    let apart = cross(a, b);
    dot(apart, apart).sqrt().atan2(dot(a, b))
}

/// The edges of a geometry, and its points as edges without length.
fn arcs(geometry: &Geometry) -> Vec<Arc> {
    let mut arcs = Vec::new();
    gather(geometry, &mut arcs);
    arcs
}

fn gather(geometry: &Geometry, arcs: &mut Vec<Arc>) {
    let mut line = |line: &LineString| match line.0.as_slice() {
        [only] => arcs.push(Arc::new(*only, *only)),
        _ => arcs.extend(line.lines().map(|it| Arc::new(it.start, it.end))),
    };
    let mut area = |area: &Polygon| {
        line(area.exterior());
        area.interiors().iter().for_each(&mut line);
    };
    match geometry {
        Geometry::Point(it) => arcs.push(Arc::new(it.0, it.0)),
        Geometry::MultiPoint(all) => arcs.extend(all.iter().map(|it| Arc::new(it.0, it.0))),
        Geometry::Line(it) => arcs.push(Arc::new(it.start, it.end)),
        Geometry::LineString(it) => line(it),
        Geometry::MultiLineString(all) => all.iter().for_each(line),
        Geometry::Polygon(it) => area(it),
        Geometry::MultiPolygon(all) => all.iter().for_each(area),
        Geometry::Rect(it) => area(&it.to_polygon()),
        Geometry::Triangle(it) => area(&it.to_polygon()),
        Geometry::GeometryCollection(all) => all.iter().for_each(|it| gather(it, arcs)),
    }
}

/// The sum of something over the lines or the areas of a geometry, however they are gathered.
fn sum(geometry: &Geometry, line: fn(&LineString) -> f64, area: fn(&Polygon) -> f64) -> f64 {
    match geometry {
        Geometry::Point(_) | Geometry::MultiPoint(_) => 0.0,
        Geometry::Line(it) => line(&LineString::from(*it)),
        Geometry::LineString(it) => line(it),
        Geometry::MultiLineString(all) => all.iter().map(line).sum(),
        Geometry::Polygon(it) => area(it),
        Geometry::MultiPolygon(all) => all.iter().map(area).sum(),
        Geometry::Rect(it) => area(&it.to_polygon()),
        Geometry::Triangle(it) => area(&it.to_polygon()),
        Geometry::GeometryCollection(all) => all.iter().map(|it| sum(it, line, area)).sum(),
    }
}

fn edge_m(area: &Polygon) -> f64 {
    let within: f64 = area.interiors().iter().map(|it| Haversine.length(it)).sum();
    Haversine.length(area.exterior()) + within
}

/// How long the lines of a shape are, in metres; 0 of points and areas, none in a plane.
pub(crate) fn length_m(shape: &Shape) -> Option<f64> {
    let length = || sum(&shape.geometry, |it| Haversine.length(it), |_| 0.0);
    shape.crs.is_on_earth().then(length)
}

/// How long the edges of its areas are, those of holes too.
pub(crate) fn perimeter_m(shape: &Shape) -> Option<f64> {
    let perimeter = || sum(&shape.geometry, |_| 0.0, edge_m);
    shape.crs.is_on_earth().then(perimeter)
}

/// How large its areas are, in square metres.
pub(crate) fn area_m2(shape: &Shape) -> Option<f64> {
    let area = || sum(&shape.geometry, |_| 0.0, |it| it.geodesic_area_unsigned());
    shape.crs.is_on_earth().then(area)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::literal::from_text;
    use crate::notation::Notation;

    fn shape(text: &str) -> Shape {
        from_text(text, Notation::Wkt).unwrap_or_else(|| panic!("{text}"))
    }

    #[track_caller]
    fn is_near(found: Option<f64>, expected: f64) {
        let found = found.unwrap();
        let apart = (found - expected).abs();
        assert!(apart <= expected.abs() * 1e-9 + 1e-6, "{found} {expected}");
    }

    #[test]
    fn distances_are_along_great_circles() {
        let degree_m = EARTH_RADIUS_M.to_radians();
        let origin = shape("POINT(0 0)");
        let distance = |one: &Shape, other: &str| distance_m(one, &shape(other));
        is_near(distance(&origin, "POINT(1 0)"), degree_m);
        is_near(distance(&origin, "POINT(0 -90)"), 90.0 * degree_m);
        // The short way round.
        is_near(
            distance(&shape("POINT(179 0)"), "POINT(-179 0)"),
            2.0 * degree_m,
        );
        // An end is nearest, or a place between the ends.
        is_near(distance(&origin, "LINESTRING(2 1, 2 -1)"), 2.0 * degree_m);
        is_near(distance(&origin, "LINESTRING(3 0, 9 0)"), 3.0 * degree_m);
        let area = shape("POLYGON((1 -1, 2 -1, 2 1, 1 1, 1 -1))");
        is_near(distance(&area, "POINT(0 0)"), degree_m);
        is_near(distance(&area, "POINT(1.5 0)"), 0.0);
        is_near(distance(&area, "MULTIPOINT((9 0), (4 0))"), 2.0 * degree_m);
        // Where the meridians are nearest to each other: at the end of the edge that is nearer to a
        // pole.
        let nearest = 1.0_f64.to_radians().cos() * 3.0_f64.to_radians().sin();
        is_near(
            distance(&area, "LINESTRING(5 -9, 5 9)"),
            nearest.asin() * EARTH_RADIUS_M,
        );
        assert_eq!(distance(&origin, "POINT EMPTY"), None);
        assert_eq!(
            distance(&origin, "<http://example.com/plan> POINT(0 0)"),
            None
        );
    }

    #[test]
    fn the_distance_of_pieces_is_the_least_of_many_points_on_them() {
        let lines = [
            ("LINESTRING(10 50, 12 48)", "LINESTRING(13 51, 15 47)"),
            (
                "LINESTRING(-70 -30, -60 -35)",
                "LINESTRING(-66 -31, -50 10)",
            ),
            ("LINESTRING(0 80, 120 82)", "LINESTRING(60 70, 61 60)"),
        ];
        for (one, other) in lines {
            let (one, other) = (shape(one), shape(other));
            let places = |shape: &Shape| {
                let arcs = arcs(&shape.geometry);
                let [arc] = arcs.as_slice() else { panic!() };
                let places = (0..=400).map(|step| {
                    let part = f64::from(step) / 400.0;
                    let between: Vector = std::array::from_fn(|axis| {
                        arc.from[axis] * (1.0 - part) + arc.to[axis] * part
                    });
                    let length = dot(between, between).sqrt();
                    between.map(|it| it / length)
                });
                places.collect::<Vec<_>>()
            };
            let (ours, theirs) = (places(&one), places(&other));
            let pairs = ours
                .iter()
                .flat_map(|a| theirs.iter().map(|b| angle(*a, *b)));
            let least = pairs.fold(f64::INFINITY, f64::min) * EARTH_RADIUS_M;
            let found = distance_m(&one, &other).unwrap();
            assert!(
                found <= least + 1e-3 && found > least * 0.999,
                "{found} {least}"
            );
        }
    }

    #[test]
    fn lengths_and_areas_are_of_lines_and_areas() {
        let degree_m = EARTH_RADIUS_M.to_radians();
        let line = shape("MULTILINESTRING((0 0, 1 0), (0 1, 0 2))");
        is_near(length_m(&line), 2.0 * degree_m);
        is_near(perimeter_m(&line), 0.0);
        is_near(area_m2(&line), 0.0);
        let area = shape("POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))");
        is_near(length_m(&area), 0.0);
        // 12,308.8 km2 by GeographicLib (geod_polygon_compute of WGS 84).
        let found = area_m2(&area).unwrap();
        assert!((found / 1e6 - 12_308.8).abs() < 0.1, "{found}");
        let with_hole = shape(
            "GEOMETRYCOLLECTION(POLYGON((0 0, 1 0, 1 1, 0 1, 0 0), (0.2 0.2, 0.2 0.4, 0.4 0.4, 0.2 0.2)), POINT(3 3))",
        );
        assert!(area_m2(&with_hole).unwrap() < found);
        assert!(perimeter_m(&with_hole) > perimeter_m(&area));
        assert_eq!(
            area_m2(&shape("<http://example.com/plan> POINT(0 0)")),
            None
        );
    }

    /// Whether a rectangle has a place, whose longitude may be written in other ways.
    fn has(bounds: &Rect, longitude: f64, latitude: f64) -> bool {
        let turns = [-360.0, 0.0, 360.0];
        let is_within = |turn: &f64| {
            (bounds.min().x..=bounds.max().x).contains(&(longitude + turn))
                && (bounds.min().y..=bounds.max().y).contains(&latitude)
        };
        turns.iter().any(is_within)
    }

    proptest::proptest! {
        #[test]
        fn surroundings_have_all_that_is_near(
            west in -180.0..180.0_f64, south in -88.0..88.0_f64, dx in -120.0..120.0_f64, dy in -40.0..40.0_f64,
            to_x in -1.3..1.3_f64, to_y in -1.3..1.3_f64, kilometres in 0.0..3_000.0_f64,
        ) {
            let north = (south + dy).clamp(-89.0, 89.0);
            let line = shape(&format!("LINESTRING({west} {south}, {} {north})", west + dx));
            let metres = kilometres * 1_000.0;
            let bounds = surroundings(&line, metres).unwrap();
            // Places about as far from it as is asked for.
            let (mut x, y) = (west + dx * (to_x + 1.3) / 2.6 + to_x * 40.0, (south + dy * (to_y + 1.3) / 2.6 + to_y * 30.0).clamp(-90.0, 90.0));
            x = (x + 540.0).rem_euclid(360.0) - 180.0;
            let place = Shape::point(x, y).unwrap();
            let distance = distance_m(&line, &place).unwrap();
            proptest::prop_assert!(distance > metres || has(&bounds, x, y), "{distance} {metres} {bounds:?} {x} {y}");
        }
    }

    #[test]
    fn surroundings_reach_no_farther_than_they_have_to() {
        let degree_m = EARTH_RADIUS_M.to_radians();
        let is_about = |text: &str, metres: f64, expected: [f64; 4]| {
            let bounds = surroundings(&shape(text), metres).unwrap();
            let found = [
                bounds.min().x,
                bounds.min().y,
                bounds.max().x,
                bounds.max().y,
            ];
            let is_near = found
                .iter()
                .zip(expected)
                .all(|(a, b)| (a - b).abs() < 0.01);
            assert!(is_near, "{text}: {found:?}");
        };
        is_about("POINT(10 0)", degree_m, [9.0, -1.0, 11.0, 1.0]);
        is_about("POINT(10 60)", degree_m, [7.936, 59.0, 12.064, 61.0]);
        is_about("POINT(179.5 0)", degree_m, [178.5, -1.0, 180.5, 1.0]);
        is_about("POINT(10 89.5)", degree_m, [-180.0, 88.5, 180.0, 90.0]);
        is_about("LINESTRING(0 60, 90 60)", 0.0, [0.0, 60.0, 90.0, 67.792]);
        is_about("POINT(10 100)", 1.0, [-180.0, -90.0, 180.0, 90.0]);
        assert!(surroundings(&shape("POINT EMPTY"), 1.0).is_none());
    }

    #[test]
    fn a_plane_has_its_own_unit() {
        let plan = |text: &str| shape(&format!("<http://example.com/plan> {text}"));
        let distance = distance_in_plane(&plan("POINT(0 0)"), &plan("POINT(3 4)"));
        assert_eq!(distance, Some(5.0));
        assert_eq!(
            distance_in_plane(&plan("POINT(0 0)"), &plan("POINT EMPTY")),
            None
        );
        assert_eq!(
            distance_in_plane(&plan("POINT(0 0)"), &shape("POINT(0 0)")),
            None
        );
    }
}
