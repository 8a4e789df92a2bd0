//! The analysis of expressions for spatial relations and distances (GeoSPARQL and Jena).

use orrery_geo::{Notation, Shape, from_text};
use orrery_operators::places::Nearness;
use oxrdf::vocab::xsd;
use spargebra::algebra::{Expression, Function};

/// The arguments of a function about two places, the first two of which are these, and what must
/// hold of them.
pub(super) fn nearness_of(expression: &Expression) -> Option<(&[Expression], Nearness)> {
    let within = |call, most, is_strict| {
        let (arguments, unit_m) = distance_of(call)?;
        let distance = number_of(most)?;
        let nearness = Nearness::Within {
            distance,
            unit_m,
            is_strict,
        };
        Some((arguments, nearness))
    };
    match expression {
        Expression::Less(call, most) | Expression::Greater(most, call) => within(call, most, true),
        Expression::LessOrEqual(call, most) | Expression::GreaterOrEqual(most, call) => {
            within(call, most, false)
        }
        Expression::FunctionCall(Function::Custom(iri), arguments) => {
            let function = orrery_geo::function(iri.as_str())?;
            if let (Some(relation), [_, _]) = (function.relation(), arguments.as_slice()) {
                let nearness = Nearness::Relation(relation);
                return relation.is_close().then_some((arguments, nearness));
            }
            match (
                iri.as_str().strip_prefix(orrery_geo::JENA),
                arguments.as_slice(),
            ) {
                (Some("nearby"), [_, _, most, unit]) => {
                    let nearness = Nearness::Within {
                        distance: number_of(most)?,
                        unit_m: unit_of(unit)?,
                        is_strict: false,
                    };
                    Some((arguments, nearness))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The arguments of `distance`, and how many metres its unit has.
pub(super) fn distance_of(call: &Expression) -> Option<(&[Expression], f64)> {
    let Expression::FunctionCall(Function::Custom(iri), arguments) = call else {
        return None;
    };
    let iri = iri.as_str();
    let within = |namespace| iri.strip_prefix(namespace);
    let name = within(orrery_geo::NAMESPACE).or_else(|| within(orrery_geo::JENA))?;
    match (name, arguments.as_slice()) {
        ("distance", [_, _, unit]) => Some((arguments, unit_of(unit)?)),
        ("metricDistance", [_, _]) => Some((arguments, 1.0)),
        _ => None,
    }
}

/// How many metres a unit of length, or of angle, has.
fn unit_of(unit: &Expression) -> Option<f64> {
    match unit {
        Expression::NamedNode(iri) => orrery_geo::metres_of(iri.as_str()),
        _ => None,
    }
}

/// A number that is given, as it is compared with a double.
fn number_of(expression: &Expression) -> Option<f64> {
    let Expression::Literal(literal) = expression else {
        return None;
    };
    let datatype = literal.datatype();
    let is_number = [xsd::INTEGER, xsd::DECIMAL, xsd::DOUBLE].contains(&datatype);
    let number: f64 = literal.value().parse().ok().filter(|_| is_number)?;
    number.is_finite().then_some(number)
}

/// The latitude and the longitude that one of the first two arguments makes a point of by Jena's
/// function, and the place that the other one says.
pub(super) fn given_place_and_pair(arguments: &[Expression]) -> Option<([&str; 2], Shape)> {
    let [one, other, ..] = arguments else {
        return None;
    };
    let ((Expression::FunctionCall(Function::Custom(iri), pair), Expression::Literal(place))
    | (Expression::Literal(place), Expression::FunctionCall(Function::Custom(iri), pair))) =
        (one, other)
    else {
        return None;
    };
    let name = iri.as_str().strip_prefix(orrery_geo::JENA)?;
    let (
        "convertLatLon",
        [
            Expression::Variable(latitude),
            Expression::Variable(longitude),
        ],
    ) = (name, pair.as_slice())
    else {
        return None;
    };
    let notation = Notation::of_datatype(place.datatype().as_str())?;
    let place = from_text(place.value(), notation)?;
    Some(([latitude.as_str(), longitude.as_str()], place))
}

/// The variable among the first two arguments of a function about two places, and the place that
/// the other one says.
pub(super) fn given_place(arguments: &[Expression]) -> Option<(&str, Shape)> {
    let [one, other, ..] = arguments else {
        return None;
    };
    match (one, other) {
        (Expression::Variable(variable), Expression::Literal(place))
        | (Expression::Literal(place), Expression::Variable(variable)) => {
            let notation = Notation::of_datatype(place.datatype().as_str())?;
            Some((variable.as_str(), from_text(place.value(), notation)?))
        }
        _ => None,
    }
}
