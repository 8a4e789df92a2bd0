//! GeoSPARQL's functions by name (GeoSPARQL 1.1, 8.3 to 8.7), over geometries, numbers and texts.
//! Terms are for those who call them.

use crate::crs::Crs;
use crate::literal::literal_of;
use crate::notation::Notation;
use crate::relations::{Relation, dimension, matches};
use crate::shape::Shape;
use crate::units::{area_in_square_metres, length_in_metres};
use crate::{gml, literal, measures, shapes};

/// The namespace of GeoSPARQL's functions.
pub const NAMESPACE: &str = "http://www.opengis.net/def/function/geosparql/";
/// The namespace of Jena's spatial functions, of which those without a GeoSPARQL counterpart are
/// here.
pub const JENA: &str = "http://jena.apache.org/function/spatial#";
/// The names of kinds of geometries begin so.
const SIMPLE_FEATURES: &str = "http://www.opengis.net/ont/sf#";
/// The unit of what has none, in which planes are measured about whose units nothing is known.
const UNITY: &str = "http://www.opengis.net/def/uom/OGC/1.0/unity";

/// The kind of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// A literal of a geometry.
    Shape,
    /// A number.
    Number,
    /// An IRI, or a literal `xsd:anyURI`: of a unit, of a reference system.
    Iri,
    /// A string.
    Text,
    /// A string, or what [`Parameter::Iri`] takes: of a profile.
    Name,
}

/// An argument of a function.
#[derive(Debug, Clone, Copy)]
pub enum Argument<'a> {
    /// For [`Parameter::Shape`].
    Shape(&'a Shape),
    /// For [`Parameter::Number`].
    Number(f64),
    /// For [`Parameter::Iri`], [`Parameter::Text`] and [`Parameter::Name`].
    Text(&'a str),
}

/// The result of a function.
#[derive(Debug, Clone)]
pub enum Answer {
    /// `xsd:boolean`.
    Boolean(bool),
    /// `xsd:integer`.
    Integer(i64),
    /// `xsd:double`.
    Number(f64),
    /// `xsd:anyURI`.
    Iri(String),
    /// A literal of a geometry: its text and its notation.
    Literal(String, Notation),
}

type Run = fn(&[Argument<'_>]) -> Option<Answer>;

/// A function.
#[derive(Debug)]
pub struct Function {
    /// Its name within [`NAMESPACE`] or [`JENA`].
    pub name: &'static str,
    /// What it takes, in this order.
    pub parameters: &'static [Parameter],
    run: Implementation,
}

#[derive(Debug)]
enum Implementation {
    Relation(Relation),
    Run(Run),
}

impl Function {
    /// The result; none is SPARQL's error: wrong arguments, empty geometries, unknown units.
    pub fn call(&self, arguments: &[Argument<'_>]) -> Option<Answer> {
        match (&self.run, arguments) {
            (Implementation::Run(run), arguments) => run(arguments),
            (
                Implementation::Relation(relation),
                [Argument::Shape(one), Argument::Shape(other)],
            ) => relation.holds(one, other).map(Answer::Boolean),
            (Implementation::Relation(_), _) => None,
        }
    }

    /// The relation that it tells, if it does.
    pub fn relation(&self) -> Option<Relation> {
        match self.run {
            Implementation::Relation(relation) => Some(relation),
            Implementation::Run(_) => None,
        }
    }
}

/// The function of an IRI.
pub fn function(iri: &str) -> Option<&'static Function> {
    let (all, name) = match iri.strip_prefix(NAMESPACE) {
        Some(name) => (&FUNCTIONS[..], name),
        None => (&OF_JENA[..], iri.strip_prefix(JENA)?),
    };
    all.iter().find(|function| function.name == name)
}

static OF_JENA: [Function; 3] = {
    use Parameter::{Iri, Number, Shape as Place};
    [
        function_of("convertLatLon", &[Number, Number], |given| match given {
            [Argument::Number(latitude), Argument::Number(longitude)] => {
                made(Shape::point(*longitude, *latitude)?)
            }
            _ => None,
        }),
        function_of("distance", &[Place, Place, Iri], distance),
        function_of("nearby", &[Place, Place, Number, Iri], |given| {
            let [one, other, Argument::Number(most), unit] = given else {
                return None;
            };
            match distance(&[*one, *other, *unit])? {
                Answer::Number(distance) => Some(Answer::Boolean(distance <= *most)),
                _ => None,
            }
        }),
    ]
};

const fn function_of(name: &'static str, parameters: &'static [Parameter], run: Run) -> Function {
    Function {
        name,
        parameters,
        run: Implementation::Run(run),
    }
}

const fn relation_of(place: usize) -> Function {
    let (name, relation) = Relation::ALL[place];
    Function {
        name,
        parameters: TWO,
        run: Implementation::Relation(relation),
    }
}

const ONE: &[Parameter] = &[Parameter::Shape];
const TWO: &[Parameter] = &[Parameter::Shape, Parameter::Shape];
const IN_UNIT: &[Parameter] = &[Parameter::Shape, Parameter::Iri];

static FUNCTIONS: [Function; 67] = {
    use Parameter::{Iri, Name, Number, Shape as Place, Text};
    [
        relation_of(0),
        relation_of(1),
        relation_of(2),
        relation_of(3),
        relation_of(4),
        relation_of(5),
        relation_of(6),
        relation_of(7),
        relation_of(8),
        relation_of(9),
        relation_of(10),
        relation_of(11),
        relation_of(12),
        relation_of(13),
        relation_of(14),
        relation_of(15),
        relation_of(16),
        relation_of(17),
        relation_of(18),
        relation_of(19),
        relation_of(20),
        relation_of(21),
        relation_of(22),
        relation_of(23),
        function_of("relate", &[Place, Place, Text], relate),
        function_of("distance", &[Place, Place, Iri], distance),
        function_of("metricDistance", TWO, |given| {
            let [one, other] = shapes_of(given)?;
            Some(Answer::Number(measures::distance_m(one, other)?))
        }),
        function_of("length", IN_UNIT, |given| {
            in_unit(given, measures::length_m, length_in_metres)
        }),
        function_of("metricLength", ONE, |given| {
            Some(Answer::Number(measures::length_m(shape_of(given)?)?))
        }),
        function_of("perimeter", IN_UNIT, |given| {
            in_unit(given, measures::perimeter_m, length_in_metres)
        }),
        function_of("metricPerimeter", ONE, |given| {
            Some(Answer::Number(measures::perimeter_m(shape_of(given)?)?))
        }),
        function_of("area", IN_UNIT, |given| {
            in_unit(given, measures::area_m2, area_in_square_metres)
        }),
        function_of("metricArea", ONE, |given| {
            Some(Answer::Number(measures::area_m2(shape_of(given)?)?))
        }),
        function_of("buffer", &[Place, Number, Iri], buffer),
        function_of("metricBuffer", &[Place, Number], |given| match given {
            [Argument::Shape(shape), Argument::Number(distance)] if shape.crs.is_on_earth() => {
                made(shapes::buffer(shape, *distance)?)
            }
            _ => None,
        }),
        function_of("boundary", ONE, |given| {
            made(shapes::boundary(shape_of(given)?))
        }),
        function_of("boundingCircle", ONE, |given| {
            made(shapes::bounding_circle(shape_of(given)?)?)
        }),
        function_of("centroid", ONE, |given| {
            made(shapes::centroid(shape_of(given)?)?)
        }),
        function_of("concaveHull", ONE, |given| {
            made(shapes::concave_hull(shape_of(given)?)?)
        }),
        function_of("convexHull", ONE, |given| {
            made(shapes::convex_hull(shape_of(given)?)?)
        }),
        function_of("envelope", ONE, |given| {
            made(shapes::envelope(shape_of(given)?)?)
        }),
        function_of("difference", TWO, |given| {
            of_both(given, shapes::difference)
        }),
        function_of("intersection", TWO, |given| {
            of_both(given, shapes::intersection)
        }),
        function_of("symDifference", TWO, |given| {
            of_both(given, shapes::symmetric_difference)
        }),
        function_of("union", TWO, |given| of_both(given, shapes::union)),
        function_of("geometryN", &[Place, Number], |given| match given {
            [Argument::Shape(shape), Argument::Number(number)] if number.fract() == 0.0 => {
                made(shapes::part(shape, *number as i64)?)
            }
            _ => None,
        }),
        function_of("transform", &[Place, Iri], |given| match given {
            [Argument::Shape(shape), Argument::Text(iri)] => {
                let crs = Crs::of_iri(iri);
                let is_known = shape.crs.goes_with(&crs);
                is_known
                    .then(|| Shape {
                        crs,
                        ..(*shape).clone()
                    })
                    .and_then(made)
            }
            _ => None,
        }),
        function_of("asWKT", ONE, |given| written(given, Notation::Wkt)),
        function_of("asGeoJSON", ONE, |given| written(given, Notation::GeoJson)),
        function_of("asGML", &[Place, Name], |given| match given {
            [place, Argument::Text(profile)] if gml::is_profile(profile) => {
                written(&[*place], Notation::Gml)
            }
            _ => None,
        }),
        function_of("asKML", ONE, |given| written(given, Notation::Kml)),
        function_of("geometryType", ONE, |given| {
            let kind = kind(shape_of(given)?);
            Some(Answer::Iri(format!("{SIMPLE_FEATURES}{kind}")))
        }),
        function_of("getSRID", ONE, |given| {
            Some(Answer::Iri(shape_of(given)?.crs.to_string()))
        }),
        function_of("dimension", ONE, |given| {
            Some(Answer::Integer(dimension(shape_of(given)?)))
        }),
        function_of("coordinateDimension", ONE, |given| {
            let shape = shape_of(given)?;
            let measures = i64::from(shape.is_measured);
            Some(Answer::Integer(axes(shape) + measures))
        }),
        function_of("spatialDimension", ONE, |given| {
            Some(Answer::Integer(axes(shape_of(given)?)))
        }),
        function_of("numGeometries", ONE, |given| {
            Some(Answer::Integer(shapes::parts(shape_of(given)?)))
        }),
        function_of("is3D", ONE, |given| {
            Some(Answer::Boolean(shape_of(given)?.heights.is_some()))
        }),
        function_of("isEmpty", ONE, |given| {
            Some(Answer::Boolean(dimension(shape_of(given)?) < 0))
        }),
        function_of("isMeasured", ONE, |given| {
            Some(Answer::Boolean(shape_of(given)?.is_measured))
        }),
        function_of("isSimple", ONE, |given| {
            Some(Answer::Boolean(shapes::is_simple(shape_of(given)?)))
        }),
        function_of("minX", ONE, |given| edge(given, |it| it.min().x)),
        function_of("maxX", ONE, |given| edge(given, |it| it.max().x)),
        function_of("minY", ONE, |given| edge(given, |it| it.min().y)),
        function_of("maxY", ONE, |given| edge(given, |it| it.max().y)),
        function_of("minZ", ONE, |given| {
            Some(Answer::Number(shape_of(given)?.heights?.0))
        }),
        function_of("maxZ", ONE, |given| {
            Some(Answer::Number(shape_of(given)?.heights?.1))
        }),
    ]
};

fn shape_of<'a>(given: &[Argument<'a>]) -> Option<&'a Shape> {
    match given {
        [Argument::Shape(shape)] => Some(shape),
        _ => None,
    }
}

fn shapes_of<'a>(given: &[Argument<'a>]) -> Option<[&'a Shape; 2]> {
    match given {
        [Argument::Shape(one), Argument::Shape(other)] => Some([one, other]),
        _ => None,
    }
}

/// A shape as it is answered: in the notation of what it was made of. None where numbers have
/// become too large on the way.
fn made(shape: Shape) -> Option<Answer> {
    if !shape.is_finite() {
        return None;
    }
    let (text, notation) = literal_of(&shape)?;
    Some(Answer::Literal(text, notation))
}

fn of_both(given: &[Argument<'_>], make: fn(&Shape, &Shape) -> Option<Shape>) -> Option<Answer> {
    let [one, other] = shapes_of(given)?;
    made(make(one, other)?)
}

fn written(given: &[Argument<'_>], notation: Notation) -> Option<Answer> {
    let text = literal::text_of(shape_of(given)?, notation)?;
    Some(Answer::Literal(text, notation))
}

fn relate(given: &[Argument<'_>]) -> Option<Answer> {
    match given {
        [
            Argument::Shape(one),
            Argument::Shape(other),
            Argument::Text(pattern),
        ] => matches(one, other, pattern).map(Answer::Boolean),
        _ => None,
    }
}

/// In a unit of length; in one of angles as they are seen from the middle of the earth.
fn distance(given: &[Argument<'_>]) -> Option<Answer> {
    let [
        Argument::Shape(one),
        Argument::Shape(other),
        Argument::Text(unit),
    ] = given
    else {
        return None;
    };
    if *unit == UNITY {
        return measures::distance_in_plane(one, other).map(Answer::Number);
    }
    let distance = measures::distance_m(one, other)?;
    Some(Answer::Number(distance / measures::metres_of(unit)?))
}

fn buffer(given: &[Argument<'_>]) -> Option<Answer> {
    let [
        Argument::Shape(shape),
        Argument::Number(distance),
        Argument::Text(unit),
    ] = given
    else {
        return None;
    };
    let distance = match (*unit == UNITY, shape.crs.is_on_earth()) {
        (true, false) => *distance,
        (false, true) => distance * measures::metres_of(unit)?,
        _ => return None,
    };
    made(shapes::buffer(shape, distance)?)
}

fn in_unit(
    given: &[Argument<'_>],
    measure: fn(&Shape) -> Option<f64>,
    unit: fn(&str) -> Option<f64>,
) -> Option<Answer> {
    match given {
        [Argument::Shape(shape), Argument::Text(iri)] => {
            Some(Answer::Number(measure(shape)? / unit(iri)?))
        }
        _ => None,
    }
}

/// Of the coordinates as they are written.
fn edge(given: &[Argument<'_>], of: fn(geo::Rect) -> f64) -> Option<Answer> {
    use geo::BoundingRect;
    let shape = shape_of(given)?;
    let bounds = shape.crs.written(&shape.geometry).bounding_rect()?;
    Some(Answer::Number(of(bounds)))
}

fn axes(shape: &Shape) -> i64 {
    2 + i64::from(shape.heights.is_some())
}

/// Its kind, by the name of the simple features' ontology.
fn kind(shape: &Shape) -> &'static str {
    use geo::Geometry;
    match shape.geometry {
        Geometry::Point(_) => "Point",
        Geometry::Line(_) | Geometry::LineString(_) => "LineString",
        Geometry::Polygon(_) | Geometry::Rect(_) | Geometry::Triangle(_) => "Polygon",
        Geometry::MultiPoint(_) => "MultiPoint",
        Geometry::MultiLineString(_) => "MultiLineString",
        Geometry::MultiPolygon(_) => "MultiPolygon",
        Geometry::GeometryCollection(_) => "GeometryCollection",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::literal::from_text;

    fn shape(text: &str) -> Shape {
        let notation = match text.starts_with('{') {
            true => Notation::GeoJson,
            false => Notation::Wkt,
        };
        from_text(text, notation).unwrap_or_else(|| panic!("{text}"))
    }

    fn call(name: &str, given: &[Argument<'_>]) -> Option<Answer> {
        let function = function(&format!("{NAMESPACE}{name}")).unwrap();
        assert_eq!(function.parameters.len(), given.len(), "{name}");
        function.call(given)
    }

    fn text(name: &str, given: &[Argument<'_>]) -> String {
        match call(name, given) {
            Some(Answer::Boolean(is)) => is.to_string(),
            Some(Answer::Integer(number)) => number.to_string(),
            Some(Answer::Number(number)) => format!("{number:.3}"),
            Some(Answer::Iri(iri)) => iri,
            Some(Answer::Literal(text, _)) => text,
            None => "-".to_owned(),
        }
    }

    #[test]
    fn each_name_is_there_once() {
        let mut names: Vec<&str> = FUNCTIONS.iter().map(|it| it.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FUNCTIONS.len());
        assert!(function("http://example.com/area").is_none());
        assert!(function(&format!("{NAMESPACE}nothing")).is_none());
    }

    #[test]
    fn functions_of_one_shape() {
        let line = shape("LINESTRING Z (0 0 1, 3 4 5)");
        for (name, expected) in [
            ("dimension", "1"),
            ("coordinateDimension", "3"),
            ("spatialDimension", "3"),
            ("is3D", "true"),
            ("isMeasured", "false"),
            ("isEmpty", "false"),
            ("isSimple", "true"),
            ("numGeometries", "1"),
            ("minX", "0.000"),
            ("maxX", "3.000"),
            ("maxY", "4.000"),
            ("minZ", "1.000"),
            ("maxZ", "5.000"),
            ("geometryType", "http://www.opengis.net/ont/sf#LineString"),
            ("getSRID", crate::CRS84),
            ("centroid", "POINT(1.5 2)"),
            ("asWKT", "LINESTRING(0 0,3 4)"),
            (
                "asGeoJSON",
                r#"{"type":"LineString","coordinates":[[0.0,0.0],[3.0,4.0]]}"#,
            ),
            ("metricPerimeter", "0.000"),
        ] {
            assert_eq!(text(name, &[Argument::Shape(&line)]), expected, "{name}");
        }
        let empty = shape("POINT EMPTY");
        for (name, expected) in [("isEmpty", "true"), ("dimension", "-1"), ("minX", "-")] {
            assert_eq!(text(name, &[Argument::Shape(&empty)]), expected, "{name}");
        }
    }

    #[test]
    fn measures_are_in_the_unit_that_is_asked_for() {
        let (one, other) = (shape("POINT(0 0)"), shape("POINT(1 0)"));
        let distance = |unit: &str| {
            let unit = format!("http://www.opengis.net/def/uom/OGC/1.0/{unit}");
            let given = [
                Argument::Shape(&one),
                Argument::Shape(&other),
                Argument::Text(&unit),
            ];
            text("distance", &given)
        };
        assert_eq!(distance("metre"), "111195.080");
        assert_eq!(distance("kilometre"), "111.195");
        assert_eq!(distance("degree"), "1.000");
        assert_eq!(distance("radian"), "0.017");
        assert_eq!(distance("parsec"), "-");
        assert_eq!(distance("square_metre"), "-");
        assert_eq!(distance("unity"), "-");
    }

    #[test]
    fn jenas_functions_are_known_by_their_iris() {
        let call = |name: &str, given: &[Argument<'_>]| {
            function(&format!("{JENA}{name}")).unwrap().call(given)
        };
        let point = |latitude, longitude| {
            let given = [Argument::Number(latitude), Argument::Number(longitude)];
            call("convertLatLon", &given)
        };
        let Some(Answer::Literal(text, Notation::Wkt)) = point(48.5, 2.0) else {
            panic!();
        };
        assert_eq!(text, "POINT(2 48.5)");
        assert!(point(91.0, 0.0).is_none());
        let (one, other) = (shape("POINT(0 0)"), shape("POINT(1 0)"));
        for (kilometres, expected) in [(111.0, false), (112.0, true)] {
            let given = [
                Argument::Shape(&one),
                Argument::Shape(&other),
                Argument::Number(kilometres),
                Argument::Text("http://www.opengis.net/def/uom/OGC/1.0/kilometre"),
            ];
            let Some(Answer::Boolean(is_near)) = call("nearby", &given) else {
                panic!();
            };
            assert_eq!(is_near, expected);
        }
        assert!(function(&format!("{JENA}sfWithin")).is_none());
    }

    #[test]
    fn what_is_made_is_written_as_what_it_was_made_of() {
        let json = shape(r#"{"type":"MultiPoint","coordinates":[[0,0],[2,2]]}"#);
        let given = [Argument::Shape(&json)];
        assert_eq!(
            text("centroid", &given),
            r#"{"type":"Point","coordinates":[1.0,1.0]}"#
        );
        let latitude_first = shape("<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(48 2)");
        let given = [
            Argument::Shape(&latitude_first),
            Argument::Text(crate::CRS84),
        ];
        assert_eq!(text("transform", &given), "POINT(2 48)");
        let given = [
            Argument::Shape(&json),
            Argument::Text("http://www.opengis.net/def/crs/EPSG/0/4326"),
        ];
        assert_eq!(
            text("transform", &given),
            "<http://www.opengis.net/def/crs/EPSG/0/4326> MULTIPOINT((0 0),(2 2))"
        );
        let given = [Argument::Shape(&json), Argument::Text("urn:other")];
        assert_eq!(text("transform", &given), "-");
        let given = [Argument::Shape(&json), Argument::Number(1.5)];
        assert_eq!(text("geometryN", &given), "-");
    }

    #[test]
    fn arguments_of_other_kinds_are_an_error() {
        let point = shape("POINT(0 0)");
        for function in FUNCTIONS.iter().chain(&OF_JENA) {
            let wrong = vec![Argument::Text("x"); function.parameters.len()];
            assert!(function.call(&wrong).is_none(), "{}", function.name);
            assert!(function.call(&[]).is_none(), "{}", function.name);
            let many = [Argument::Shape(&point); 5];
            assert!(function.call(&many).is_none(), "{}", function.name);
        }
    }

    /// Coordinates that meet often, some far away, some that hardly differ.
    fn coordinate() -> impl Strategy<Value = String> {
        let number = || {
            prop_oneof![
                8 => (-3_i32..4).prop_map(f64::from),
                1 => -400.0..400.0_f64,
                1 => (0_u32..3).prop_map(|bit| 1.0 + f64::from(bit) * f64::EPSILON),
                1 => prop::sample::select(vec![1e12, -1e12, 1e-300, 90.0, -180.0]),
            ]
        };
        (number(), number()).prop_map(|(x, y)| format!("{x:e} {y:e}"))
    }

    /// Any geometry, also those that are not valid: rings that cross themselves, lie on themselves,
    /// have no area.
    fn anything() -> impl Strategy<Value = String> {
        let line = |least: usize| {
            prop::collection::vec(coordinate(), least..7).prop_map(|it| it.join(","))
        };
        let ring = move || {
            prop::collection::vec(coordinate(), 3..6).prop_map(|mut it| {
                it.push(it[0].clone());
                format!("({})", it.join(","))
            })
        };
        let area = move || {
            prop::collection::vec(ring(), 0..3).prop_map(|it| match it.is_empty() {
                true => "EMPTY".to_owned(),
                false => format!("({})", it.join(",")),
            })
        };
        let one = prop_oneof![
            coordinate().prop_map(|it| format!("POINT({it})")),
            line(2).prop_map(|it| format!("LINESTRING({it})")),
            Just("LINESTRING EMPTY".to_owned()),
            line(1).prop_map(|it| format!("MULTIPOINT({it})")),
            area().prop_map(|it| format!("POLYGON{it}").replace("POLYGONEMPTY", "POLYGON EMPTY")),
            prop::collection::vec(area(), 1..3)
                .prop_map(|it| format!("MULTIPOLYGON({})", it.join(","))),
        ];
        one.prop_recursive(2, 6, 3, |inner| {
            prop::collection::vec(inner, 0..3).prop_map(|it| match it.is_empty() {
                true => "GEOMETRYCOLLECTION EMPTY".to_owned(),
                false => format!("GEOMETRYCOLLECTION({})", it.join(",")),
            })
        })
    }

    proptest! {
        #[test]
        fn no_geometry_is_too_strange(one in anything(), other in anything(), number in -2.0..3.0_f64) {
            let shapes = [&one, &other].map(|text| from_text(text, Notation::Wkt));
            let [Some(one), Some(other)] = &shapes else {
                return Ok(());
            };
            for function in FUNCTIONS.iter().chain(&OF_JENA) {
                let mut places = [one, other].into_iter();
                let mut given = Vec::new();
                for parameter in function.parameters {
                    given.push(match (parameter, places.as_slice()) {
                        (Parameter::Shape, _) => Argument::Shape(places.next().unwrap_or(one)),
                        (Parameter::Number, _) => Argument::Number(number),
                        (Parameter::Text, _) => Argument::Text("T*F**F***"),
                        (Parameter::Name, _) => Argument::Text("3.2"),
                        (Parameter::Iri, _) => Argument::Text("http://www.opengis.net/def/uom/OGC/1.0/metre"),
                    });
                }
                // What is written can be read again.
                if let Some(Answer::Literal(text, notation)) = function.call(&given) {
                    prop_assert!(from_text(&text, notation).is_some(), "{}: {text}", function.name);
                }
            }
        }
    }
}
