//! Exact arithmetic by the specifications, with fractions of big integers: the reference where the
//! other evaluator is wrong.
//!
//! It shares nothing with the engine but the integers. Exact numbers are fractions and are rounded
//! once, at the end, to eighteen digits after the point; a double becomes a fraction by way of the
//! text of all of its digits, and a fraction a double by way of Rust's parser, which rounds
//! correctly.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{Literal, NamedNodeRef, Term};

/// Digits of a decimal after the point.
const SCALE: u32 = 18;
/// Digits of the text that holds any double exactly.
const DOUBLE_DIGITS: usize = 1_100;

/// A fraction; the denominator is positive.
#[derive(Clone, Debug)]
pub(crate) struct Fraction {
    numerator: BigInt,
    denominator: BigInt,
}

/// What becomes of half a unit.
#[derive(Clone, Copy)]
enum Half {
    ToEven,
    ToZero,
}

impl Fraction {
    fn whole(numerator: BigInt) -> Self {
        let denominator = BigInt::from(1);
        Self {
            numerator,
            denominator,
        }
    }

    /// Reads digits with a sign and a point, either of which may be left out.
    fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let numerator: BigInt = digits.parse().ok()?;
        Some(Self {
            numerator: match text.starts_with('-') {
                true => -numerator,
                false => numerator,
            },
            denominator: power_of_ten(u32::try_from(fraction.len()).ok()?),
        })
    }

    fn of_double(value: f64) -> Option<Self> {
        Self::parse(&format!("{value:.DOUBLE_DIGITS$}"))
    }

    /// The nearest number of units of 10^-18.
    fn units(&self, half: Half) -> BigInt {
        let scaled = &self.numerator * power_of_ten(SCALE);
        let magnitude = scaled.magnitude().clone();
        let (denominator, two) = (self.denominator.magnitude(), 2_u32);
        let below = &magnitude / denominator;
        let rest = (&magnitude - &below * denominator) * two;
        let up = match (rest.cmp(denominator), half) {
            (Ordering::Less, _) | (Ordering::Equal, Half::ToZero) => false,
            (Ordering::Greater, _) => true,
            (Ordering::Equal, Half::ToEven) => below.bit(0),
        };
        let nearest = BigInt::from(below) + i32::from(up);
        match scaled.sign() {
            Sign::Minus => -nearest,
            Sign::NoSign | Sign::Plus => nearest,
        }
    }

    /// The fraction that a decimal of eighteen digits is.
    fn rounded(&self, half: Half) -> Self {
        Self {
            numerator: self.units(half),
            denominator: power_of_ten(SCALE),
        }
    }

    /// The whole number towards zero.
    fn cut(&self) -> BigInt {
        &self.numerator / &self.denominator
    }

    fn apply(&self, operator: Operator, other: &Self) -> Option<Self> {
        let cross = |a: &Self, b: &Self| &a.numerator * &b.denominator;
        let (numerator, denominator) = match operator {
            Operator::Add => (
                cross(self, other) + cross(other, self),
                &self.denominator * &other.denominator,
            ),
            Operator::Subtract => (
                cross(self, other) - cross(other, self),
                &self.denominator * &other.denominator,
            ),
            Operator::Multiply => (
                &self.numerator * &other.numerator,
                &self.denominator * &other.denominator,
            ),
            Operator::Divide => (cross(self, other), &self.denominator * &other.numerator),
        };
        match denominator.sign() {
            Sign::NoSign => None,
            Sign::Plus => Some(Self {
                numerator,
                denominator,
            }),
            Sign::Minus => Some(Self {
                numerator: -numerator,
                denominator: -denominator,
            }),
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        (&self.numerator * &other.denominator).cmp(&(&other.numerator * &self.denominator))
    }

    /// The canonical text of a decimal.
    fn text(&self) -> String {
        let units = self.units(Half::ToEven);
        let sign = match units.sign() {
            Sign::Minus => "-",
            Sign::NoSign | Sign::Plus => "",
        };
        let one = power_of_ten(SCALE);
        let (whole, fraction) = (
            units.magnitude() / one.magnitude(),
            units.magnitude() % one.magnitude(),
        );
        let fraction = format!("{:0>18}", fraction.to_string());
        match fraction.trim_end_matches('0') {
            "" => format!("{sign}{whole}"),
            fraction => format!("{sign}{whole}.{fraction}"),
        }
    }
}

fn power_of_ten(exponent: u32) -> BigInt {
    BigInt::from(10).pow(exponent)
}

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Operator {
    pub(crate) const ALL: [Self; 4] = [Self::Add, Self::Subtract, Self::Multiply, Self::Divide];

    /// As written in a query.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
        }
    }
}

/// A number of one of SPARQL's four types.
#[derive(Clone, Debug)]
pub(crate) enum Number {
    Integer(BigInt),
    Decimal(Fraction),
    Float(f32),
    Double(f64),
}

impl Number {
    /// The number of a literal, if its form belongs to its datatype.
    pub(crate) fn of(term: &Term) -> Option<Self> {
        let Term::Literal(literal) = term else {
            return None;
        };
        Self::parse(literal.value(), literal.datatype())
    }

    fn parse(text: &str, datatype: NamedNodeRef<'_>) -> Option<Self> {
        if datatype == xsd::DECIMAL {
            let fraction = Fraction::parse(text)?;
            return Some(Self::Decimal(fraction.rounded(Half::ToEven)));
        }
        if datatype == xsd::DOUBLE {
            return Some(Self::Double(
                special(text, f64::INFINITY, f64::NAN).or_else(|| plain(text))?,
            ));
        }
        if datatype == xsd::FLOAT {
            return Some(Self::Float(
                special(text, f32::INFINITY, f32::NAN).or_else(|| plain(text))?,
            ));
        }
        let (low, high) = bounds(datatype)?;
        if text.contains('.') {
            return None;
        }
        let value = Fraction::parse(text)?.numerator;
        let is_within = |bound: Option<&str>, wanted: Ordering| match bound {
            Some(bound) => bound
                .parse::<BigInt>()
                .is_ok_and(|bound| value.cmp(&bound) != wanted),
            None => true,
        };
        (is_within(low, Ordering::Less) && is_within(high, Ordering::Greater))
            .then_some(Self::Integer(value))
    }

    /// The literal of the number, in the form that the engines agree on.
    pub(crate) fn to_term(&self) -> Term {
        let (text, datatype) = match self {
            Self::Integer(value) => (value.to_string(), xsd::INTEGER),
            Self::Decimal(value) => (value.text(), xsd::DECIMAL),
            Self::Float(value) => (infinite(value.to_string()), xsd::FLOAT),
            Self::Double(value) => (infinite(value.to_string()), xsd::DOUBLE),
        };
        Literal::new_typed_literal(text, datatype).into()
    }

    fn double(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => value.to_string().parse().ok(),
            Self::Decimal(value) => value.text().parse().ok(),
            Self::Float(value) => Some((*value).into()),
            Self::Double(value) => Some(*value),
        }
    }

    fn float(&self) -> Option<f32> {
        match self {
            Self::Integer(value) => value.to_string().parse().ok(),
            Self::Decimal(value) => value.text().parse().ok(),
            Self::Float(value) => Some(*value),
            Self::Double(value) => Some(*value as f32),
        }
    }

    fn fraction(&self) -> Option<Fraction> {
        match self {
            Self::Integer(value) => Some(Fraction::whole(value.clone())),
            Self::Decimal(value) => Some(value.clone()),
            Self::Float(value) => Fraction::of_double((*value).into()),
            Self::Double(value) => Fraction::of_double(*value),
        }
    }

    /// `self op other`; none for a division by zero of exact numbers.
    pub(crate) fn apply(&self, operator: Operator, other: &Self) -> Option<Self> {
        Some(match (self, other) {
            (Self::Double(_), _) | (_, Self::Double(_)) => {
                let (a, b) = (self.double()?, other.double()?);
                Self::Double(match operator {
                    Operator::Add => a + b,
                    Operator::Subtract => a - b,
                    Operator::Multiply => a * b,
                    Operator::Divide => a / b,
                })
            }
            (Self::Float(_), _) | (_, Self::Float(_)) => {
                let (a, b) = (self.float()?, other.float()?);
                Self::Float(match operator {
                    Operator::Add => a + b,
                    Operator::Subtract => a - b,
                    Operator::Multiply => a * b,
                    Operator::Divide => a / b,
                })
            }
            _ => {
                let result = self.fraction()?.apply(operator, &other.fraction()?)?;
                match (self, other, operator) {
                    (
                        Self::Integer(_),
                        Self::Integer(_),
                        Operator::Add | Operator::Subtract | Operator::Multiply,
                    ) => Self::Integer(result.cut()),
                    _ => Self::Decimal(result.rounded(Half::ToEven)),
                }
            }
        })
    }

    /// The order of two numbers; none beside NaN.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Double(_), _) | (_, Self::Double(_)) => {
                self.double()?.partial_cmp(&other.double()?)
            }
            (Self::Float(_), _) | (_, Self::Float(_)) => self.float()?.partial_cmp(&other.float()?),
            _ => Some(self.fraction()?.compare(&other.fraction()?)),
        }
    }

    fn is_truth(&self) -> bool {
        match self {
            Self::Integer(value) => value.sign() != Sign::NoSign,
            Self::Decimal(value) => value.numerator.sign() != Sign::NoSign,
            Self::Float(value) => *value != 0.0 && !value.is_nan(),
            Self::Double(value) => *value != 0.0 && !value.is_nan(),
        }
    }
}

/// The words of XML Schema for what digits do not say.
fn special<F: std::ops::Neg<Output = F>>(text: &str, infinity: F, nan: F) -> Option<F> {
    match text {
        "INF" | "+INF" => Some(infinity),
        "-INF" => Some(-infinity),
        "NaN" => Some(nan),
        _ => None,
    }
}

/// Digits, a point, an exponent.
fn plain<F: std::str::FromStr>(text: &str) -> Option<F> {
    let is_plain =
        |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    text.bytes()
        .all(is_plain)
        .then(|| text.parse().ok())
        .flatten()
}

fn infinite(text: String) -> String {
    text.replace("inf", "INF")
}

/// The bounds of `xsd:integer` and the types derived from it.
fn bounds(datatype: NamedNodeRef<'_>) -> Option<(Option<&'static str>, Option<&'static str>)> {
    Some(
        match datatype
            .as_str()
            .strip_prefix("http://www.w3.org/2001/XMLSchema#")?
        {
            "integer" => (None, None),
            "nonPositiveInteger" => (None, Some("0")),
            "negativeInteger" => (None, Some("-1")),
            "nonNegativeInteger" => (Some("0"), None),
            "positiveInteger" => (Some("1"), None),
            "long" => (Some("-9223372036854775808"), Some("9223372036854775807")),
            "int" => (Some("-2147483648"), Some("2147483647")),
            "short" => (Some("-32768"), Some("32767")),
            "byte" => (Some("-128"), Some("127")),
            "unsignedLong" => (Some("0"), Some("18446744073709551615")),
            "unsignedInt" => (Some("0"), Some("4294967295")),
            "unsignedShort" => (Some("0"), Some("65535")),
            "unsignedByte" => (Some("0"), Some("255")),
            _ => return None,
        },
    )
}

/// What a cast gives: to `integer`, `decimal`, `float`, `double`, `string` or `boolean` of XML
/// Schema.
pub(crate) fn cast(to: &str, term: &Term) -> Option<Term> {
    let literal = match term {
        Term::NamedNode(node) if to == "string" => {
            return Some(Literal::new_simple_literal(node.as_str()).into());
        }
        Term::Literal(literal) => literal,
        _ => return None,
    };
    let target = match to {
        "integer" => xsd::INTEGER,
        "decimal" => xsd::DECIMAL,
        "float" => xsd::FLOAT,
        "double" => xsd::DOUBLE,
        _ => {
            return match to {
                "string" => Some(Literal::new_simple_literal(text(literal)).into()),
                "boolean" => boolean(literal).map(|value| Literal::from(value).into()),
                _ => None,
            };
        }
    };
    if literal.datatype() == xsd::STRING {
        let text = literal.value().trim_matches([' ', '\t', '\r', '\n']);
        return Some(Number::parse(text, target)?.to_term());
    }
    let number = match (literal.datatype(), literal.value()) {
        (xsd::BOOLEAN, "true" | "1") => Number::Integer(1.into()),
        (xsd::BOOLEAN, "false" | "0") => Number::Integer(0.into()),
        _ => Number::of(term)?,
    };
    let result = match to {
        "integer" => Number::Integer(number.fraction()?.cut()),
        "decimal" => Number::Decimal(number.fraction()?.rounded(Half::ToZero)),
        "float" => Number::Float(number.float()?),
        _ => Number::Double(number.double()?),
    };
    Some(result.to_term())
}

/// The canonical text of a value, where it is a number.
fn text(literal: &Literal) -> String {
    let number = Number::of(&literal.clone().into());
    let exponent = |text: String| match text.split_once('E') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.0E{exponent}"),
        _ => text,
    };
    let is_plain =
        |value: f64| value == 0.0 || !value.is_finite() || (1e-6..1e6).contains(&value.abs());
    match number {
        Some(Number::Float(value)) if !is_plain(value.into()) => exponent(format!("{value:E}")),
        Some(Number::Double(value)) if !is_plain(value) => exponent(format!("{value:E}")),
        Some(number) => match number.to_term() {
            Term::Literal(literal) => literal.value().to_owned(),
            other => other.to_string(),
        },
        None => match (literal.datatype(), literal.value()) {
            (xsd::BOOLEAN, "1") => "true".to_owned(),
            (xsd::BOOLEAN, "0") => "false".to_owned(),
            _ => literal.value().to_owned(),
        },
    }
}

fn boolean(literal: &Literal) -> Option<bool> {
    let is_text = literal.datatype() == xsd::STRING || literal.datatype() == xsd::BOOLEAN;
    match literal.value().trim_matches([' ', '\t', '\r', '\n']) {
        "true" | "1" if is_text => Some(true),
        "false" | "0" if is_text => Some(false),
        _ => Number::of(&literal.clone().into()).map(|number| number.is_truth()),
    }
}

/// The effective boolean value (SPARQL 1.1, 17.2.2; of tagged strings and ill-typed booleans as in
/// SPARQL 1.2).
pub(crate) fn truth(term: &Term) -> Option<bool> {
    let Term::Literal(literal) = term else {
        return None;
    };
    let datatype = literal.datatype();
    if datatype == xsd::STRING {
        return Some(!literal.value().is_empty());
    }
    if datatype == xsd::BOOLEAN {
        return match literal.value() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        };
    }
    let is_numeric =
        [xsd::DECIMAL, xsd::FLOAT, xsd::DOUBLE].contains(&datatype) || bounds(datatype).is_some();
    is_numeric.then(|| Number::of(term).is_some_and(|number| number.is_truth()))
}

/// `STRDT`: the term as it is written, of any datatype but those of tagged strings.
pub(crate) fn with_datatype(text: &Term, datatype: &Term) -> Option<Term> {
    let (Term::Literal(text), Term::NamedNode(datatype)) = (text, datatype) else {
        return None;
    };
    if text.datatype() != xsd::STRING
        || [rdf::LANG_STRING, rdf::DIR_LANG_STRING].contains(&datatype.as_ref())
    {
        return None;
    }
    Some(Literal::new_typed_literal(text.value(), datatype.clone()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str, datatype: NamedNodeRef<'_>) -> Number {
        Number::parse(text, datatype).unwrap()
    }

    fn text_of(term: Term) -> String {
        match term {
            Term::Literal(literal) => literal.value().to_owned(),
            other => other.to_string(),
        }
    }

    #[test]
    fn fractions_are_rounded_once() {
        let third = number("1", xsd::INTEGER)
            .apply(Operator::Divide, &number("3", xsd::INTEGER))
            .unwrap();
        assert_eq!(text_of(third.to_term()), "0.333333333333333333");
        let half = third.apply(Operator::Multiply, &number("1.5", xsd::DECIMAL));
        assert_eq!(text_of(half.unwrap().to_term()), "0.5");
    }

    #[test]
    fn doubles_are_read_digit_by_digit() {
        let double = Literal::new_typed_literal("1e23", xsd::DOUBLE).into();
        let integer = cast("integer", &double).unwrap();
        assert_eq!(text_of(integer), "99999999999999991611392");
        let tenth = Literal::new_typed_literal("0.1", xsd::DOUBLE).into();
        let decimal = cast("decimal", &tenth).unwrap();
        assert_eq!(text_of(decimal), "0.100000000000000006");
    }

    #[test]
    fn derived_types_have_bounds() {
        let byte = |text: &str| Number::parse(text, xsd::BYTE).is_some();
        assert!(byte("-128") && byte("+127"));
        assert!(!byte("128") && !byte("-129") && !byte("1.0"));
    }
}
