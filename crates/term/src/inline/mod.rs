//! Inline literals: values that are stored in the id itself.
//!
//! For each kind there is one encoder from the lexical form to the payload and
//! one renderer back. A literal is taken inline only if the two are exact
//! inverses on it, so identity is never lost. Within a kind the payload grows
//! with the value:
//!
//! | kind | payload, high bits first |
//! | --- | --- |
//! | boolean | 0 or 1 |
//! | integer and derived | value + 2^55 (56 bits), datatype (4 bits) |
//! | decimal | value x 10^6 + 2^55 (56 bits), digits after the point (4 bits) |
//! | double | sign and magnitude made ascending, exponent cut to 7 bits |
//! | date | minutes from the year 0 to the day's start in UTC + bias (49 bits), zone (11 bits) |
//! | dateTime | milliseconds from the year 0 in UTC (47 bits), zone (11 bits), digits after the point (2 bits) |
//! | short string | seven bytes, then the length (4 bits) |
//!
//! Whatever does not fit (large numbers, `"01"`, `-0.0`, `NaN`, years beyond the
//! range, `24:00:00`) goes to the dictionary with its text.

mod calendar;
mod number;
mod order;
mod text;

use crate::id::{TermId, TermKind};
use crate::lexical::canonical_exponent;
use crate::term::{Literal, LiteralKind, Term};
use crate::vocabulary::xsd;

pub use calendar::{
    DAYS_TO_1970, InlineDate, InlineDateTime, LocalDays, TimeZone, civil_from_days, days_from_civil,
};
pub use number::{DECIMAL_UNITS, IntegerType};
pub use order::ValueOrder;
pub use text::ShortString;

/// The value inside an id, without its lexical details.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InlineValue {
    /// `xsd:boolean`.
    Boolean(bool),
    /// `xsd:integer` or a type derived from it.
    Integer(i64, IntegerType),
    /// `xsd:decimal`, in millionths.
    Decimal(i64),
    /// `xsd:double`.
    Double(f64),
    /// `xsd:date`.
    Date(InlineDate),
    /// `xsd:dateTime`.
    DateTime(InlineDateTime),
    /// `xsd:string`.
    String(ShortString),
}

/// The id of a term that needs no dictionary: a blank node, or a literal that fits.
pub fn inline(term: &Term<'_>) -> Option<TermId> {
    match term {
        Term::BlankNode(number) => {
            (*number < TermId::PAYLOAD_LIMIT).then(|| TermId::blank_node(*number))
        }
        Term::Iri(_) | Term::Triple(_) => None,
        Term::Literal(Literal { lexical, kind }) => match kind {
            LiteralKind::String => inline_string(lexical),
            LiteralKind::Language(_) | LiteralKind::Directional(..) => None,
            LiteralKind::Typed(datatype) => inline_typed(lexical, datatype),
        },
    }
}

/// The id of a plain string of at most seven bytes.
#[inline]
pub fn inline_string(lexical: &str) -> Option<TermId> {
    text::encode(lexical).map(|payload| TermId::new(TermKind::ShortString, payload))
}

/// The id of a typed literal, if its exact lexical form can be rebuilt from sixty bits.
/// About 10 ns for a number; other datatypes cost one comparison of the IRI's beginning.
pub fn inline_typed(lexical: &str, datatype: &str) -> Option<TermId> {
    let local = datatype.strip_prefix(xsd::NAMESPACE)?;
    if let Some(integer_type) = IntegerType::from_local_name(local) {
        let payload = number::encode_integer(lexical, integer_type)?;
        return Some(TermId::new(TermKind::Integer, payload));
    }
    match local {
        "string" => inline_string(lexical),
        "boolean" => match lexical {
            "false" => Some(TermId::new(TermKind::Boolean, 0)),
            "true" => Some(TermId::new(TermKind::Boolean, 1)),
            _ => None,
        },
        "decimal" => {
            number::encode_decimal(lexical).map(|payload| TermId::new(TermKind::Decimal, payload))
        }
        "double" => number::encode_double(lexical),
        "date" => calendar::encode_date(lexical).map(|p| TermId::new(TermKind::Date, p)),
        "dateTime" => {
            calendar::encode_date_time(lexical).map(|p| TermId::new(TermKind::DateTime, p))
        }
        _ => None,
    }
}

impl TermId {
    /// The literal inside the id, rebuilt to the letter; the numbered blank node too. `None` for
    /// what stands elsewhere (dictionary, query-local) and for what is no term.
    pub fn to_inline_term(self) -> Option<Term<'static>> {
        let payload = self.payload();
        Some(match self.kind() {
            TermKind::BlankNode => Term::BlankNode(payload),
            TermKind::Boolean => {
                Term::typed(if payload == 0 { "false" } else { "true" }, xsd::BOOLEAN)
            }
            TermKind::Integer => {
                let (value, integer_type) = number::decode_integer(payload);
                Term::typed(value.to_string(), integer_type.iri())
            }
            TermKind::Decimal => Term::typed(number::render_decimal(payload), xsd::DECIMAL),
            TermKind::Double => Term::typed(
                canonical_exponent(number::decode_double(payload)),
                xsd::DOUBLE,
            ),
            TermKind::DoublePlain => {
                Term::typed(number::decode_double(payload).to_string(), xsd::DOUBLE)
            }
            TermKind::Date => Term::typed(calendar::decode_date(payload).to_string(), xsd::DATE),
            TermKind::DateTime => Term::typed(
                calendar::decode_date_time(payload).to_string(),
                xsd::DATE_TIME,
            ),
            TermKind::ShortString => Term::string(text::decode(payload).as_str().to_owned()),
            TermKind::Special
            | TermKind::Iri
            | TermKind::Literal
            | TermKind::TripleTerm
            | TermKind::QueryLocal
            | TermKind::Delta => return None,
        })
    }

    /// The value inside the id. `None` for kinds that hold none. No allocation, a few ns.
    #[inline]
    pub fn inline_value(self) -> Option<InlineValue> {
        let payload = self.payload();
        Some(match self.kind() {
            TermKind::Boolean => InlineValue::Boolean(payload != 0),
            TermKind::Integer => {
                let (value, integer_type) = number::decode_integer(payload);
                InlineValue::Integer(value, integer_type)
            }
            TermKind::Decimal => InlineValue::Decimal(number::decode_decimal(payload)),
            TermKind::Double | TermKind::DoublePlain => {
                InlineValue::Double(number::decode_double(payload))
            }
            TermKind::Date => InlineValue::Date(calendar::decode_date(payload)),
            TermKind::DateTime => InlineValue::DateTime(calendar::decode_date_time(payload)),
            TermKind::ShortString => InlineValue::String(text::decode(payload)),
            TermKind::Special
            | TermKind::BlankNode
            | TermKind::Iri
            | TermKind::Literal
            | TermKind::TripleTerm
            | TermKind::QueryLocal
            | TermKind::Delta => return None,
        })
    }

    /// The id of an `xsd:boolean`.
    #[inline]
    pub const fn boolean(value: bool) -> Self {
        Self::new(TermKind::Boolean, value as u64)
    }

    /// The id of an `xsd:integer`, if it is small enough to fit (55 bits and a sign).
    #[inline]
    pub fn integer(value: i64) -> Option<Self> {
        number::integer_payload(value, IntegerType::Integer)
            .map(|payload| Self::new(TermKind::Integer, payload))
    }

    /// The id of an `xsd:decimal` of so many millionths, written with no more digits after the
    /// point than it needs, if it is small enough to fit.
    #[inline]
    pub fn decimal(millionths: i64) -> Option<Self> {
        number::decimal_payload(millionths).map(|payload| Self::new(TermKind::Decimal, payload))
    }

    /// The id of an `xsd:double` written without exponent (`1.5`), if it fits.
    #[inline]
    pub fn double(value: f64) -> Option<Self> {
        number::double_payload(value).map(|payload| Self::new(TermKind::DoublePlain, payload))
    }
}

#[cfg(test)]
mod tests;
