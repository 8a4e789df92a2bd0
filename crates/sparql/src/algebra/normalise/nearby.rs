//! Jena's spatial property functions (`http://jena.apache.org/spatial#`), translated to filters.
//!
//! ```text
//! ?s spatial:nearby (48.85 2.35 10 uom:kilometre 20)
//!     { SELECT DISTINCT ?s { { ?s geo:asWKT ?place FILTER(spatialF:nearby(?place, "POINT(2.35 48.85)", 10, uom:kilometre)) }
//!                    UNION { ?s geo:hasGeometry ?geometry . ?geometry geo:asWKT ?place FILTER(...) } UNION ...
//!                    UNION { ?s wgs:lat ?lat ; wgs:long ?long
//!                            FILTER(spatialF:nearby(spatialF:convertLatLon(?lat, ?long), ...)) } } LIMIT 20 }
//! ```
//!
//! What has a place is a geometry with its literal, a feature with such a geometry, or what has a
//! latitude and a longitude. The list behind the predicate has to be of constants. All of it is
//! patterns and filters, so it reads what these read, and finds by the index of places what they
//! find.

use orrery_geo::{Notation, from_text};
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode, Variable};
use spargebra::algebra::{Expression, Function, GraphPattern};
use spargebra::term::{TermPattern, TriplePattern};

use super::called::{GEO, place_called, taken_list};
use super::{Normaliser, PatternPlace};
use crate::algebra::Group;
use crate::error::{QueryError, Result};

const WGS84: &str = "http://www.w3.org/2003/01/geo/wgs84_pos#";
const KILOMETRE: &str = "http://www.opengis.net/def/uom/OGC/1.0/kilometre";
/// Properties of geometries whose values are literals of them.
pub(super) const WRITTEN: [&str; 4] = ["asWKT", "asGeoJSON", "asGML", "asKML"];
/// Members of a list that are read: one more than any predicate takes.
const MEMBERS_MAX: usize = 6;

/// What is asked of a place.
struct Asked {
    function: NamedNode,
    /// The arguments behind the place.
    arguments: Vec<Expression>,
    limit: Option<usize>,
}

impl Normaliser<'_> {
    /// Patterns of which some ask for places.
    pub(super) fn with_places(
        &mut self,
        patterns: &[TriplePattern],
        place: &PatternPlace,
    ) -> Result<Group> {
        let (calls, others): (Vec<_>, Vec<_>) =
            patterns.iter().partition(|it| place_called(it).is_some());
        let mut rest: Vec<TriplePattern> = others.into_iter().cloned().collect();
        let mut asked = Vec::with_capacity(calls.len());
        for call in calls {
            let name = place_called(call).unwrap_or_default();
            let members = taken_list(&mut rest, &call.object, MEMBERS_MAX);
            let found = members
                .as_deref()
                .and_then(|members| asked_by(name, members));
            let found = found.ok_or_else(|| mistake(name))?;
            asked.push((call.subject.clone(), found));
        }
        let mut group = self.basic(&rest, place)?;
        for (subject, asked) in asked {
            let right = self.pattern(&places(&subject, &asked), place)?;
            group = self.join(group, right);
        }
        Ok(group)
    }
}

fn mistake(name: &str) -> QueryError {
    let form = match name {
        "nearby" | "withinCircle" => "(latitude longitude radius [unit [limit]])",
        "nearbyGeom" => "(geometry radius [unit [limit]])",
        "withinBox" | "intersectBox" => {
            "(latitude longitude latitude longitude [limit]), the least first"
        }
        "withinBoxGeom" | "intersectBoxGeom" => "(geometry [limit])",
        _ => {
            return QueryError::unsupported(format!(
                "spatial:{name}; there are spatial:nearby, withinCircle, nearbyGeom, withinBox, intersectBox, withinBoxGeom and intersectBoxGeom"
            ));
        }
    };
    QueryError::unsupported(format!(
        "spatial:{name} of something else than a list of constants {form}"
    ))
}

/// What a predicate asks with the members of its list.
fn asked_by(name: &str, members: &[TermPattern]) -> Option<Asked> {
    let (relation, limit) = match (name, members) {
        ("nearby" | "withinCircle", [latitude, longitude, radius, rest @ ..]) => {
            let point = format!("POINT({} {})", number(longitude)?, number(latitude)?);
            return nearby(wkt(&point), radius, rest);
        }
        ("nearbyGeom", [geometry, radius, rest @ ..]) => {
            return nearby(literal(geometry)?.clone(), radius, rest);
        }
        ("withinBox" | "intersectBox", [south, west, north, east, rest @ ..]) => {
            let [south, west, north, east] = [south, west, north, east].map(number);
            let text = box_of((west?, south?), (east?, north?))?;
            ((name, text), limit_of(rest)?)
        }
        ("withinBoxGeom" | "intersectBoxGeom", [geometry, rest @ ..]) => {
            let geometry = literal(geometry)?;
            let notation = Notation::of_datatype(geometry.datatype().as_str())?;
            let shape = from_text(geometry.value(), notation)?;
            let bounds = shape.bounds().filter(|_| shape.crs().is_on_earth())?;
            let (least, most) = (bounds.min(), bounds.max());
            let text = box_of((least.x, least.y), (most.x, most.y))?;
            ((name, text), limit_of(rest)?)
        }
        _ => return None,
    };
    let (name, text) = relation;
    let relation = match name.starts_with("within") {
        true => "sfWithin",
        false => "sfIntersects",
    };
    Some(Asked {
        function: NamedNode::new_unchecked(format!("{}{relation}", orrery_geo::NAMESPACE)),
        arguments: vec![Expression::Literal(wkt(&text))],
        limit,
    })
}

fn nearby(place: Literal, radius: &TermPattern, rest: &[TermPattern]) -> Option<Asked> {
    number(radius)?;
    let (unit, rest) = match rest {
        [] => (NamedNode::new_unchecked(KILOMETRE), rest),
        [TermPattern::NamedNode(unit), rest @ ..] => (unit.clone(), rest),
        _ => return None,
    };
    orrery_geo::metres_of(unit.as_str())?;
    let radius = literal(radius)?.clone();
    Some(Asked {
        function: NamedNode::new_unchecked(format!("{}nearby", orrery_geo::JENA)),
        arguments: vec![
            Expression::Literal(place),
            Expression::Literal(radius),
            Expression::NamedNode(unit),
        ],
        limit: limit_of(rest)?,
    })
}

/// None inside where there is none; none at all where there is something else.
fn limit_of(rest: &[TermPattern]) -> Option<Option<usize>> {
    match rest {
        [] => Some(None),
        [limit] => {
            let limit: i64 = literal(limit)?.value().parse().ok()?;
            // Jena's word for no limit is a negative one.
            Some(usize::try_from(limit).ok())
        }
        _ => None,
    }
}

fn literal(term: &TermPattern) -> Option<&Literal> {
    match term {
        TermPattern::Literal(literal) => Some(literal),
        _ => None,
    }
}

fn number(term: &TermPattern) -> Option<f64> {
    let literal = literal(term)?;
    let numbers = [xsd::INTEGER, xsd::DECIMAL, xsd::DOUBLE, xsd::FLOAT];
    let is_number = numbers.contains(&literal.datatype());
    let number: f64 = literal.value().parse().ok().filter(|_| is_number)?;
    number.is_finite().then_some(number)
}

fn wkt(text: &str) -> Literal {
    let datatype = NamedNode::new_unchecked(orrery_geo::WKT_LITERAL);
    Literal::new_typed_literal(text, datatype)
}

/// A rectangle, or the two on both sides of the date line.
fn box_of((west, south): (f64, f64), (east, north): (f64, f64)) -> Option<String> {
    let ring = |west: f64, east: f64| {
        format!(
            "(({west} {south}, {east} {south}, {east} {north}, {west} {north}, {west} {south}))"
        )
    };
    if south > north {
        return None;
    }
    Some(match west <= east {
        true => format!("POLYGON{}", ring(west, east)),
        false => format!(
            "MULTIPOLYGON({}, {})",
            ring(west, 180.0),
            ring(-180.0, east)
        ),
    })
}

/// The subjects whose place is as is asked.
fn places(subject: &TermPattern, asked: &Asked) -> GraphPattern {
    let own = |name: &str| Variable::new_unchecked(format!(".{name}"));
    let iri = |namespace: &str, name: &str| NamedNode::new_unchecked(format!("{namespace}{name}"));
    let step = |subject: &TermPattern, predicate: NamedNode, object: Variable| TriplePattern {
        subject: subject.clone(),
        predicate: predicate.into(),
        object: object.into(),
    };
    let filtered = |patterns: Vec<TriplePattern>, place: Expression| {
        let mut arguments = vec![place];
        arguments.extend(asked.arguments.iter().cloned());
        GraphPattern::Filter {
            expr: Expression::FunctionCall(Function::Custom(asked.function.clone()), arguments),
            inner: Box::new(GraphPattern::Bgp { patterns }),
        }
    };
    let (latitude, longitude) = (own("latitude"), own("longitude"));
    let pair = vec![latitude.clone().into(), longitude.clone().into()];
    let point = Function::Custom(iri(orrery_geo::JENA, "convertLatLon"));
    let mut all = filtered(
        vec![
            step(subject, iri(WGS84, "lat"), latitude),
            step(subject, iri(WGS84, "long"), longitude),
        ],
        Expression::FunctionCall(point, pair),
    );
    let (place, geometry) = (own("place"), own("geometry"));
    for written in WRITTEN {
        for of_feature in [None, Some("hasDefaultGeometry"), Some("hasGeometry")] {
            let patterns = match of_feature {
                None => vec![step(subject, iri(GEO, written), place.clone())],
                Some(has) => vec![
                    step(subject, iri(GEO, has), geometry.clone()),
                    step(&geometry.clone().into(), iri(GEO, written), place.clone()),
                ],
            };
            all = GraphPattern::Union {
                left: Box::new(all),
                right: Box::new(filtered(patterns, place.clone().into())),
            };
        }
    }
    let variables = match subject {
        TermPattern::Variable(variable) => vec![variable.clone()],
        // As `Normaliser::slot` calls it.
        TermPattern::BlankNode(_) => vec![Variable::new_unchecked(subject.to_string())],
        _ => Vec::new(),
    };
    let different = GraphPattern::Distinct {
        inner: Box::new(GraphPattern::Project {
            inner: Box::new(all),
            variables,
        }),
    };
    match asked.limit {
        None => different,
        Some(limit) => GraphPattern::Slice {
            inner: Box::new(different),
            start: 0,
            length: Some(limit),
        },
    }
}
