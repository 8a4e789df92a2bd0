//! The conversion of terms to SQL values, and of RDF datatypes to SQL types.
//!
//! A column of text takes every term: the IRI, the characters of a literal, `_:b12`. A column of
//! another type takes literals of the datatypes that mean the same alone, so that `"12"` is no
//! number here as it is none in SPARQL, and conditions on numbers find the same in both languages.

use std::borrow::Cow;

use orrery_sql::{Error, Result, SqlState};
use orrery_storage::table::ColumnType;
use orrery_term::vocabulary::xsd;
use orrery_term::{LiteralKind, Term};

/// Digits of an `xsd:decimal` that the text of a query makes a column of: before and behind the
/// point.
const DECIMAL: ColumnType = ColumnType::Decimal {
    precision: 38,
    scale: 10,
};

/// The type of a column all whose values are of a datatype; none where text serves best.
pub(crate) fn column_type(datatype: &str) -> Option<ColumnType> {
    Some(match datatype {
        xsd::INTEGER | xsd::INT | xsd::LONG | xsd::SHORT => ColumnType::BigInt,
        xsd::DECIMAL => DECIMAL,
        xsd::DOUBLE | xsd::FLOAT => ColumnType::Double,
        xsd::BOOLEAN => ColumnType::Boolean,
        xsd::DATE => ColumnType::Date,
        xsd::DATE_TIME => ColumnType::TimestampWithTimeZone,
        _ => return None,
    })
}

/// The text of a term for a column of a type.
pub(crate) fn text<'t>(
    term: &'t Term<'_>,
    column_type: ColumnType,
    variable: &str,
) -> Result<Cow<'t, str>> {
    if matches!(column_type, ColumnType::Text { .. }) {
        return Ok(match term {
            Term::Iri(iri) => Cow::Borrowed(iri),
            Term::BlankNode(number) => Cow::Owned(format!("_:b{number}")),
            Term::Literal(literal) => Cow::Borrowed(&literal.lexical),
            Term::Triple(_) => Cow::Owned(term.to_string()),
        });
    }
    let fits = match term {
        Term::Literal(literal) => match &literal.kind {
            LiteralKind::Typed(datatype) if is_of(datatype, column_type) => Some(&literal.lexical),
            LiteralKind::Typed(_)
            | LiteralKind::String
            | LiteralKind::Language(_)
            | LiteralKind::Directional(..) => None,
        },
        Term::Iri(_) | Term::BlankNode(_) | Term::Triple(_) => None,
    };
    let lexical = fits.ok_or_else(|| {
        Error::new(
            SqlState::InvalidTextRepresentation,
            format!("{term} of ?{variable} is no value of the type {column_type}"),
        )
    })?;
    Ok(match (column_type, lexical.as_ref()) {
        (ColumnType::Boolean, "1") => Cow::Borrowed("true"),
        (ColumnType::Boolean, "0") => Cow::Borrowed("false"),
        // What has no zone in SQL loses it, as PostgreSQL's casts do.
        (ColumnType::Date | ColumnType::Timestamp, lexical) => Cow::Borrowed(without_zone(lexical)),
        (ColumnType::Blob, digits) => Cow::Owned(format!("\\x{digits}")),
        (_, lexical) => Cow::Borrowed(lexical),
    })
}

/// A date, or a date with a time, without its `Z`, `+02:00` or `-05:00`.
fn without_zone(lexical: &str) -> &str {
    if let Some(local) = lexical.strip_suffix('Z') {
        return local;
    }
    let zone = lexical.len().checked_sub(6);
    match zone.and_then(|start| lexical.split_at_checked(start)) {
        Some((local, zone))
            if zone.starts_with(['+', '-']) && zone.as_bytes().get(3) == Some(&b':') =>
        {
            local
        }
        _ => lexical,
    }
}

/// Whether literals of a datatype are values of a type.
fn is_of(datatype: &str, column_type: ColumnType) -> bool {
    match column_type {
        ColumnType::SmallInt
        | ColumnType::Integer
        | ColumnType::BigInt
        | ColumnType::Decimal { .. }
        | ColumnType::Real
        | ColumnType::Double => is_numeric(datatype),
        ColumnType::Boolean => datatype == xsd::BOOLEAN,
        ColumnType::Date => datatype == xsd::DATE,
        ColumnType::Timestamp | ColumnType::TimestampWithTimeZone => {
            matches!(datatype, xsd::DATE_TIME | xsd::DATE_TIME_STAMP)
        }
        ColumnType::Blob => datatype.strip_prefix(xsd::NAMESPACE) == Some("hexBinary"),
        ColumnType::Text { .. } => true,
    }
}

fn is_numeric(datatype: &str) -> bool {
    const NAMES: [&str; 16] = [
        "integer",
        "decimal",
        "double",
        "float",
        "int",
        "long",
        "short",
        "byte",
        "nonNegativeInteger",
        "nonPositiveInteger",
        "positiveInteger",
        "negativeInteger",
        "unsignedLong",
        "unsignedInt",
        "unsignedShort",
        "unsignedByte",
    ];
    let name = datatype.strip_prefix(xsd::NAMESPACE);
    name.is_some_and(|name| NAMES.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_without_a_zone_lose_that_of_the_literal() {
        for (lexical, expected) in [
            ("2020-01-01", "2020-01-01"),
            ("2020-01-01Z", "2020-01-01"),
            ("2020-01-01-05:00", "2020-01-01"),
            ("-0044-03-15+14:00", "-0044-03-15"),
            ("2020-01-01T10:00:00.5+02:00", "2020-01-01T10:00:00.5"),
            ("2020-01-01T10:00:00", "2020-01-01T10:00:00"),
            ("Z", ""),
            ("\u{e4}:00", "\u{e4}:00"),
        ] {
            assert_eq!(without_zone(lexical), expected);
        }
        let date = Term::typed("2020-01-01+02:00", xsd::DATE);
        assert_eq!(text(&date, ColumnType::Date, "x").unwrap(), "2020-01-01");
    }

    #[test]
    fn texts_take_every_term_and_numbers_numbers_alone() {
        let any = ColumnType::Text {
            length_max: None,
            is_padded: false,
        };
        let number = Term::typed("1.50", xsd::DECIMAL);
        for (term, expected) in [
            (Term::iri("http://e/a"), "http://e/a"),
            (Term::string("1.50"), "1.50"),
            (number.clone(), "1.50"),
            (Term::BlankNode(7), "_:b7"),
        ] {
            assert_eq!(text(&term, any, "x").unwrap(), expected);
        }
        let price = ColumnType::Decimal {
            precision: 10,
            scale: 2,
        };
        assert_eq!(text(&number, price, "x").unwrap(), "1.50");
        let refused = text(&Term::string("1.50"), price, "price").unwrap_err();
        assert_eq!(refused.state, SqlState::InvalidTextRepresentation);
        assert!(refused.message.contains("\"1.50\" of ?price"), "{refused}");
        let truth = Term::typed("1", xsd::BOOLEAN);
        assert_eq!(text(&truth, ColumnType::Boolean, "x").unwrap(), "true");
    }
}
