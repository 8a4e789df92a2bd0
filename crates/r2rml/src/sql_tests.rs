//! SQL conditions on a column that follow from a pattern's term.
//!
//! The conditions only spare rows: whoever uses them computes the terms and looks again. So a
//! condition may hold for too many rows, and never for too few.

use orrery_storage::table::{ColumnType, DECIMAL_DIGITS_MAX};
use orrery_term::vocabulary::xsd;
use orrery_term::{LiteralKind, Term};

use crate::rules::{Column, Maker, MakerValue, TermKind};
use crate::selection::Selection;
use crate::template::{Inverse, Piece};

/// What is known of a column.
pub(crate) enum Test {
    /// No value is that.
    Never,
    /// What stands behind the column.
    Sql(String),
    /// Nothing that SQL could test.
    Unknown,
}

/// That the lexical form of a column is a text.
pub(crate) fn is_lexical(column_type: ColumnType, text: &str) -> Test {
    match column_type {
        ColumnType::Text { .. } if !text.contains('\0') => {
            Test::Sql(format!("= '{}'", text.replace('\'', "''")))
        }
        ColumnType::SmallInt | ColumnType::Integer | ColumnType::BigInt => {
            match text.parse::<i64>() {
                Ok(number) if number.to_string() == text => Test::Sql(format!("= {number}")),
                _ => Test::Never,
            }
        }
        ColumnType::Decimal { .. } => match is_canonical_decimal(text) {
            true => Test::Sql(format!("= {text}")),
            false => Test::Never,
        },
        ColumnType::Boolean => match text {
            "true" | "false" => Test::Sql(format!("= {text}")),
            _ => Test::Never,
        },
        ColumnType::Date => match is_date(text) {
            true => Test::Sql(format!("= date '{text}'")),
            false => Test::Unknown,
        },
        ColumnType::Text { .. }
        | ColumnType::Real
        | ColumnType::Double
        | ColumnType::Timestamp
        | ColumnType::TimestampWithTimeZone
        | ColumnType::Blob => Test::Unknown,
    }
}

fn is_canonical_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (unsigned, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_whole = digits(whole) && (whole == "0" || !whole.starts_with('0'));
    let is_fraction = fraction.is_none_or(|it| digits(it) && !it.ends_with('0'));
    is_whole && is_fraction && unsigned.len() <= usize::from(DECIMAL_DIGITS_MAX) && text != "-0"
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.is_ascii() && text.parse::<oxsdatatypes::Date>().is_ok()
}

/// Adds to a selection what follows for the columns of a maker on one side where its term is known.
pub(crate) fn add_equal(
    selection: &mut Selection,
    side: usize,
    maker: &Maker<Column>,
    term: &Term<'_>,
) {
    if !maker.can_be(term) {
        selection.nothing();
        return;
    }
    let mut add = |column: &Column, text: &str| match is_lexical(column.column_type, text) {
        Test::Never => selection.nothing(),
        Test::Sql(test) => selection.condition(side, column, &test),
        Test::Unknown => {}
    };
    match (&maker.value, &maker.kind, term) {
        (MakerValue::Template(template), TermKind::Iri { is_absolute: true }, Term::Iri(iri)) => {
            if let Inverse::Values(values) = template.inverse(iri) {
                for (column, value) in template.columns().zip(&values) {
                    add(column, value);
                }
            }
        }
        (
            MakerValue::Column(column),
            TermKind::Typed(_) | TermKind::Language(_),
            Term::Literal(literal),
        ) => {
            add(column, &literal.lexical);
        }
        (MakerValue::Template(template), TermKind::Typed(_), Term::Literal(literal)) => {
            if let [Piece::Column(column)] = template.pieces.as_slice() {
                add(column, &literal.lexical);
            }
        }
        _ => {}
    }
}

/// Adds what follows for a maker's column where a number of a known value is compared with it.
pub(crate) fn add_number(
    selection: &mut Selection,
    side: usize,
    maker: &Maker<Column>,
    operator: &str,
    term: &Term<'_>,
) {
    let (MakerValue::Column(column), TermKind::Typed(Some(datatype))) = (&maker.value, &maker.kind)
    else {
        return;
    };
    let is_exact = matches!(
        column.column_type,
        ColumnType::SmallInt
            | ColumnType::Integer
            | ColumnType::BigInt
            | ColumnType::Decimal { .. }
    );
    // Another datatype may be no number at all.
    let is_natural = crate::lexical::datatype(column.column_type) == Some(datatype.as_str());
    let Term::Literal(literal) = term else { return };
    let is_number = matches!(&literal.kind,
        LiteralKind::Typed(datatype) if [xsd::INTEGER, xsd::DECIMAL].contains(&datatype.as_ref()));
    let text = literal
        .lexical
        .strip_prefix('+')
        .unwrap_or(&literal.lexical);
    if is_exact && is_natural && is_number && is_plain_number(text) {
        selection.condition(side, column, &format!("{operator} {text}"));
    }
}

/// Whether SQL reads a number as XML Schema does, within the digits that it has.
fn is_plain_number(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let digits = unsigned.bytes().filter(u8::is_ascii_digit).count();
    let points = unsigned.bytes().filter(|byte| *byte == b'.').count();
    digits + points == unsigned.len()
        && points <= 1
        && (1..=18).contains(&digits)
        && !unsigned.starts_with('.')
        && !unsigned.ends_with('.')
}
