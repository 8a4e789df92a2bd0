//! The resolution of function names to implementations.

use spargebra::algebra::Function;

use super::function::{Implementation, ScalarFunction};
use super::{cast, datetime, hash, numeric, places, regex, string, term};
use crate::columns::column::Reading;
use crate::error::{Error, Result};

/// The function that a query calls with this many arguments.
pub(crate) fn resolve(function: &Function, arguments: usize) -> Result<ScalarFunction> {
    use Implementation::{OfQuery, Pure, Volatile};
    use Reading::{Value as Read, Written};
    let (expected, implementation, reading): (&'static str, Implementation, Reading) =
        match function {
            Function::Str => ("1", Pure(term::str), Written),
            Function::Lang => ("1", Pure(term::lang), Written),
            Function::LangMatches => ("2", Pure(string::lang_matches), Read),
            Function::Datatype => ("1", Pure(term::datatype), Written),
            Function::Iri => ("1", OfQuery(term::iri), Read),
            Function::BNode => ("0 to 1", Volatile(term::bnode), Read),
            Function::Rand => ("0", Volatile(term::rand), Read),
            Function::Abs => ("1", Pure(numeric::abs), Read),
            Function::Ceil => ("1", Pure(numeric::ceil), Read),
            Function::Floor => ("1", Pure(numeric::floor), Read),
            Function::Round => ("1", Pure(numeric::round), Read),
            Function::Concat => ("any", Pure(string::concat), Read),
            Function::SubStr => ("2 to 3", Pure(string::substr), Read),
            Function::StrLen => ("1", Pure(string::strlen), Read),
            Function::Replace => ("3 to 4", OfQuery(regex::replace), Read),
            Function::UCase => ("1", Pure(string::ucase), Read),
            Function::LCase => ("1", Pure(string::lcase), Read),
            Function::EncodeForUri => ("1", Pure(string::encode_for_uri), Read),
            Function::Contains => ("2", Pure(string::contains), Read),
            Function::StrStarts => ("2", Pure(string::strstarts), Read),
            Function::StrEnds => ("2", Pure(string::strends), Read),
            Function::StrBefore => ("2", Pure(string::strbefore), Read),
            Function::StrAfter => ("2", Pure(string::strafter), Read),
            Function::Year => ("1", Pure(datetime::year), Read),
            Function::Month => ("1", Pure(datetime::month), Read),
            Function::Day => ("1", Pure(datetime::day), Read),
            Function::Hours => ("1", Pure(datetime::hours), Read),
            Function::Minutes => ("1", Pure(datetime::minutes), Read),
            Function::Seconds => ("1", Pure(datetime::seconds), Read),
            Function::Timezone => ("1", Pure(datetime::timezone), Read),
            Function::Tz => ("1", Pure(datetime::tz), Read),
            Function::Now => ("0", OfQuery(term::now), Read),
            Function::Uuid => ("0", Volatile(term::uuid), Read),
            Function::StrUuid => ("0", Volatile(term::struuid), Read),
            Function::Md5 => ("1", Pure(hash::md5), Read),
            Function::Sha1 => ("1", Pure(hash::sha1), Read),
            Function::Sha256 => ("1", Pure(hash::sha256), Read),
            Function::Sha384 => ("1", Pure(hash::sha384), Read),
            Function::Sha512 => ("1", Pure(hash::sha512), Read),
            Function::StrLang => ("2", OfQuery(term::strlang), Read),
            Function::StrDt => ("2", Implementation::Term(term::strdt), Read),
            Function::IsIri => ("1", Pure(term::is_iri), Written),
            Function::IsBlank => ("1", Pure(term::is_blank), Written),
            Function::IsLiteral => ("1", Pure(term::is_literal), Written),
            Function::IsNumeric => ("1", Pure(numeric::is_numeric), Read),
            Function::Regex => ("2 to 3", OfQuery(regex::regex), Read),
            Function::IsTriple => ("1", Pure(term::is_triple), Written),
            Function::LangDir => ("1", Pure(term::lang_dir), Written),
            Function::HasLang => ("1", Pure(term::has_lang), Written),
            Function::HasLangDir => ("1", Pure(term::has_lang_dir), Written),
            Function::StrLangDir => ("3", OfQuery(term::strlangdir), Read),
            // With the right number of arguments they are nodes of the expression.
            Function::Triple | Function::Subject | Function::Predicate | Function::Object => {
                return Err(Error::ArgumentCount {
                    function: function.to_string(),
                    expected: if *function == Function::Triple {
                        "3"
                    } else {
                        "1"
                    },
                    actual: arguments,
                });
            }
            Function::Custom(iri) => {
                if let Some((cast, reading)) = cast::resolve(iri.as_str()) {
                    ("1", Pure(cast), reading)
                } else if let Some(function) = orrery_geo::function(iri.as_str()) {
                    (
                        places::arity(function),
                        Implementation::Places(function),
                        Read,
                    )
                } else {
                    let iri = iri.as_str().to_owned();
                    return Err(Error::UnknownFunction { iri });
                }
            }
        };
    if !accepts(expected, arguments) {
        return Err(Error::ArgumentCount {
            function: function.to_string(),
            expected,
            actual: arguments,
        });
    }
    Ok(ScalarFunction {
        implementation,
        reading,
    })
}

/// Whether `expected` ("2", "0 to 1", "any") covers a number of arguments.
fn accepts(expected: &str, arguments: usize) -> bool {
    if expected == "any" {
        return true;
    }
    let (least, most) = expected.split_once(" to ").unwrap_or((expected, expected));
    let bound = |text: &str| text.parse::<usize>().ok();
    bound(least).is_some_and(|least| least <= arguments)
        && bound(most).is_some_and(|most| arguments <= most)
}
