//! Random numeric tests: arithmetic, comparisons, casts and `STRDT` against
//! [`exact`](super::exact). One query asks many rows, each with two terms.

use std::cmp::Ordering;

use oxrdf::{Literal, NamedNode, Term};

use super::answer::Answer;
use super::data::{Arrival, named};
use super::exact::{Number, Operator, cast, truth, with_datatype};
use super::random::Random;
use super::store::{Store, Variant};
use crate::Error;

/// Rows of one query.
const ROWS: usize = 50;
/// What is cast to.
const TARGETS: [&str; 6] = ["integer", "decimal", "float", "double", "string", "boolean"];
const COMPARISONS: [&str; 6] = ["=", "!=", "<", "<=", ">", ">="];

const INTEGER_TYPES: [&str; 13] = [
    "integer",
    "long",
    "int",
    "short",
    "byte",
    "nonNegativeInteger",
    "positiveInteger",
    "nonPositiveInteger",
    "negativeInteger",
    "unsignedLong",
    "unsignedInt",
    "unsignedShort",
    "unsignedByte",
];
/// Where ranges, digits and forms end.
const EDGES: [(&str, &str); 44] = [
    ("9223372036854775807", "integer"),
    ("9223372036854775808", "integer"),
    ("-9223372036854775808", "integer"),
    ("-9223372036854775809", "integer"),
    ("36028797018963967", "integer"),
    ("36028797018963968", "integer"),
    ("9007199254740993", "integer"),
    ("18446744073709551616", "integer"),
    ("100000000000000000000000000000000000000000", "integer"),
    ("+007", "integer"),
    ("-0", "integer"),
    ("127", "byte"),
    ("128", "byte"),
    ("18446744073709551615", "unsignedLong"),
    ("18446744073709551616", "unsignedLong"),
    ("-0", "nonNegativeInteger"),
    ("0", "positiveInteger"),
    ("170141183460469231731.687303715884105727", "decimal"),
    ("-170141183460469231731.687303715884105728", "decimal"),
    ("170141183460469231731.687303715884105728", "decimal"),
    ("0.000000000000000001", "decimal"),
    ("0.0000000000000000005", "decimal"),
    ("0.0000000000000000015", "decimal"),
    ("0.3333333333333333333333", "decimal"),
    ("36028797018.963968", "decimal"),
    ("-.5", "decimal"),
    ("5.", "decimal"),
    ("1e0", "decimal"),
    ("0", "double"),
    ("-0", "double"),
    ("NaN", "double"),
    ("INF", "double"),
    ("-INF", "float"),
    ("+INF", "float"),
    ("inf", "double"),
    ("+NaN", "double"),
    ("infinity", "float"),
    ("1e400", "double"),
    ("5e-324", "double"),
    ("1.7976931348623157e308", "double"),
    ("9007199254740993e0", "double"),
    ("16777217", "float"),
    ("0.1", "float"),
    ("abc", "integer"),
];

/// Runs so many queries; a line for each difference, at most so many.
pub fn numbers(queries: u64, seed: u64, differences_max: usize) -> Result<Vec<String>, Error> {
    let store = Store::new(&[], Arrival::Built)?;
    let mut differences = Vec::new();
    for query in 0..queries {
        let mut random = Random::new(seed ^ 0x6e75_6d62, query);
        let rows: Vec<[Term; 2]> = (0..ROWS)
            .map(|_| [term(&mut random), term(&mut random)])
            .collect();
        let question = Question::random(&mut random);
        differences.extend(question.differences(&store, &rows));
        if differences.len() >= differences_max {
            differences.truncate(differences_max);
            break;
        }
    }
    Ok(differences)
}

/// What is asked of the terms `?a` and `?b` of each row.
#[derive(Clone, Copy)]
enum Question {
    Arithmetic(Operator),
    Comparison(&'static str),
    Cast(&'static str),
    /// The truth value, through `!`.
    Not,
    IsNumeric,
    /// The term of the text of `?a` and the datatype of `?b`.
    StrDt,
}

impl Question {
    fn random(random: &mut Random) -> Self {
        match random.below(8) {
            0..=2 => Self::Arithmetic(random.pick(&Operator::ALL)),
            3 => Self::Comparison(random.pick(&COMPARISONS)),
            4 | 5 => Self::Cast(random.pick(&TARGETS)),
            6 => random_of_two(random, Self::Not, Self::IsNumeric),
            _ => Self::StrDt,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Arithmetic(operator) => format!("?a {} ?b", operator.symbol()),
            Self::Comparison(comparison) => format!("?a {comparison} ?b"),
            Self::Cast(to) => format!("xsd:{to}(?a)"),
            Self::Not => "!?a".to_owned(),
            Self::IsNumeric => "isNUMERIC(?a)".to_owned(),
            Self::StrDt => "STRDT(STR(?a), DATATYPE(?b))".to_owned(),
        }
    }

    /// What must come out; outer `None` where the specification leaves it open.
    fn expected(self, a: &Term, b: &Term) -> Option<Option<Term>> {
        let of_truth = |value: bool| Term::from(Literal::from(value));
        Some(match self {
            Self::Arithmetic(operator) => Number::of(a)
                .zip(Number::of(b))
                .and_then(|(a, b)| a.apply(operator, &b))
                .map(|number| number.to_term()),
            Self::Comparison(comparison) => {
                let (Some(a), Some(b)) = (Number::of(a), Number::of(b)) else {
                    // Strings and terms that are no values have an `=` of their own.
                    return None;
                };
                Some(of_truth(holds(comparison, a.compare(&b))))
            }
            // What a cast makes of an ill-typed literal is not said.
            Self::Cast("string") if is_ill_typed(a) => return None,
            Self::Cast(to) => cast(to, a),
            Self::Not => truth(a).map(|value| of_truth(!value)),
            Self::IsNumeric => Some(of_truth(Number::of(a).is_some())),
            Self::StrDt => {
                let (Term::Literal(a), Term::Literal(b)) = (a, b) else {
                    return None;
                };
                let text = Literal::new_simple_literal(a.value()).into();
                with_datatype(&text, &b.datatype().into_owned().into())
            }
        })
    }

    fn differences(self, store: &Store, rows: &[[Term; 2]]) -> Vec<String> {
        let lines = rows.iter().enumerate();
        let lines: String = lines
            .map(|(row, [a, b])| format!("({row} {a} {b})\n"))
            .collect();
        let query = format!(
            "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\nSELECT ?row ?r {{\nVALUES (?row ?a ?b) {{\n{lines}}}\nBIND({} AS ?r) }}",
            self.text()
        );
        let solutions = match store.ask(&query, Variant::USUAL) {
            Ok(Answer::Solutions(solutions)) => solutions,
            Ok(other) => return vec![format!("{query}: another form of answer: {other}")],
            Err(message) => return vec![format!("{query}: {message}")],
        };
        let mut found: Vec<Option<Option<Term>>> = vec![None; rows.len()];
        for row in solutions.rows {
            if let [Some(Term::Literal(number)), result] = &row[..]
                && let Ok(number) = number.value().parse::<usize>()
            {
                found[number] = Some(result.clone());
            }
        }
        let pairs = rows.iter().zip(found);
        pairs
            .filter_map(|([a, b], found)| {
                let expected = self.expected(a, b)?;
                let shown = |term: &Option<Term>| {
                    term.as_ref().map_or("an error".to_owned(), Term::to_string)
                };
                match found {
                    Some(found) if found == expected => None,
                    Some(found) => Some(format!(
                        "{} for {a} and {b}: {}, not {}",
                        self.text(),
                        shown(&found),
                        shown(&expected)
                    )),
                    None => Some(format!("{} for {a} and {b}: no row", self.text())),
                }
            })
            .collect()
    }
}

fn random_of_two(random: &mut Random, one: Question, other: Question) -> Question {
    match random.chance(50) {
        true => one,
        false => other,
    }
}

fn is_ill_typed(term: &Term) -> bool {
    matches!(term, Term::Literal(literal)
        if literal.datatype() != oxrdf::vocab::xsd::STRING && Number::of(term).is_none())
}

/// Whether an order, or none beside NaN, makes a comparison true.
fn holds(comparison: &str, order: Option<Ordering>) -> bool {
    match comparison {
        "=" => order == Some(Ordering::Equal),
        "!=" => order != Some(Ordering::Equal),
        "<" => order == Some(Ordering::Less),
        "<=" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        ">" => order == Some(Ordering::Greater),
        _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

/// A random term: an edge, or digits at random in a form at random; rarely a string of one.
fn term(random: &mut Random) -> Term {
    let (text, datatype) = match random.below(6) {
        0 | 1 => {
            let (text, datatype) = random.pick(&EDGES);
            (text.to_owned(), datatype)
        }
        2 => {
            let datatype = random.pick(&INTEGER_TYPES);
            let digits = random.pick(&[0, 1, 3, 5, 10, 17, 19, 20, 30]);
            (signed_digits(random, digits), datatype)
        }
        3 => {
            let (whole, fraction) = (random.below(22), random.below(24));
            let text = format!(
                "{}.{}",
                signed_digits(random, whole),
                digits(random, fraction)
            );
            (text, "decimal")
        }
        4 => {
            let (whole, fraction) = (random.below(18), random.below(18));
            let exponent = i32::try_from(random.below(80)).unwrap_or(0) - 40;
            let mantissa = format!(
                "{}.{}",
                signed_digits(random, whole),
                digits(random, fraction)
            );
            let text = match random.below(3) {
                0 => mantissa,
                1 => format!("{mantissa}e{exponent}"),
                _ => format!("{mantissa}E+{}", exponent.abs()),
            };
            (text, random.pick(&["double", "float"]))
        }
        _ => {
            let space = random.pick(&["", " ", "\\t", " \\n"]);
            let (text, _) = random.pick(&EDGES);
            let text = format!("{space}{text}{space}")
                .replace("\\t", "\t")
                .replace("\\n", "\n");
            return Literal::new_simple_literal(text).into();
        }
    };
    let datatype = NamedNode::new_unchecked(format!("http://www.w3.org/2001/XMLSchema#{datatype}"));
    match random.chance(2) {
        true => Literal::new_typed_literal(text, named("datatype")).into(),
        false => Literal::new_typed_literal(text, datatype).into(),
    }
}

fn signed_digits(random: &mut Random, count: usize) -> String {
    let sign = random.pick(&["", "", "-", "+"]);
    format!("{sign}{}", digits(random, count))
}

fn digits(random: &mut Random, count: usize) -> String {
    (0..count)
        .map(|_| {
            random.pick(&[
                '0', '0', '1', '2', '3', '4', '5', '5', '6', '7', '8', '9', '9',
            ])
        })
        .collect()
}
