//! SQL types: their names, column types, and assignment casts.
//!
//! An assignment goes further than a comparison does, and fails where the value does not fit: a
//! number is rounded to the digits behind the point that the column has (half away from zero;
//! floats to the even one), but never wrapped or cut off before it; a text is parsed. So that a
//! literal of any type can be given in quotes, and as arrays have no type for those, every text is
//! parsed: PostgreSQL does so with literals alone.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, StringViewArray, new_null_array,
};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Schema, SchemaRef};
use datafusion::arrow::util::display::{FormatOptions, array_value_to_string};
use datafusion::sql::sqlparser::ast::{
    self, ArrayElemTypeDef, CharacterLength, ExactNumberInfo, TimezoneInfo,
};
use orrery_storage::table::{ColumnType, DECIMAL_DIGITS_MAX, TableDefinition};

use crate::functions::decimal_texts::require_short_decimals;
use crate::values::floats::normal;
use crate::{Error, Result, SqlState};

/// Characters that `varchar(n)` and `char(n)` may be declared with, as PostgreSQL has it.
const LENGTH_MAX: u64 = 10_485_760;

/// The column type of a type in SQL.
pub(crate) fn column_type(written: &ast::DataType) -> Result<ColumnType> {
    use ast::DataType as Sql;
    let text = |length_max, is_padded| ColumnType::Text {
        length_max,
        is_padded,
    };
    Ok(match written {
        Sql::Boolean | Sql::Bool => ColumnType::Boolean,
        Sql::SmallInt(None) | Sql::Int2(None) => ColumnType::SmallInt,
        Sql::Integer(None) | Sql::Int(None) | Sql::Int4(None) => ColumnType::Integer,
        Sql::BigInt(None) | Sql::Int8(None) => ColumnType::BigInt,
        Sql::Numeric(digits) | Sql::Decimal(digits) | Sql::Dec(digits) => {
            decimal(written, *digits)?
        }
        Sql::Real | Sql::Float4 => ColumnType::Real,
        Sql::DoublePrecision | Sql::Float8 | Sql::Double(ExactNumberInfo::None) => {
            ColumnType::Double
        }
        Sql::Float(ExactNumberInfo::None) => ColumnType::Double,
        Sql::Float(ExactNumberInfo::Precision(1..=24)) => ColumnType::Real,
        Sql::Float(ExactNumberInfo::Precision(25..=53)) => ColumnType::Double,
        Sql::Date => ColumnType::Date,
        Sql::Timestamp(None | Some(6), TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            ColumnType::Timestamp
        }
        Sql::Timestamp(None | Some(6), TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => {
            ColumnType::TimestampWithTimeZone
        }
        Sql::Text => text(None, false),
        Sql::Varchar(length) | Sql::CharVarying(length) | Sql::CharacterVarying(length) => {
            text(length.as_ref().map(characters).transpose()?, false)
        }
        Sql::Char(length) | Sql::Character(length) => {
            let length = length.as_ref().map_or(Ok(1), characters)?;
            text(Some(length), true)
        }
        Sql::Bytea | Sql::Blob(None) => ColumnType::Blob,
        Sql::Array(ArrayElemTypeDef::SquareBracket(..)) => {
            return Err(Error::unsupported("a column of arrays"));
        }
        other => {
            return Err(Error::unsupported(format!(
                "the type {} of a column",
                other.to_string().to_lowercase()
            )));
        }
    })
}

fn decimal(written: &ast::DataType, digits: ExactNumberInfo) -> Result<ColumnType> {
    let (precision, scale) = match digits {
        ExactNumberInfo::None => {
            return Err(
                Error::unsupported("numeric without a precision").with_hint(format!(
                    "Say how many digits, and how many behind the point: numeric({DECIMAL_DIGITS_MAX},10)"
                )),
            );
        }
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    let invalid = |words: String| Error::new(SqlState::InvalidParameterValue, words);
    let precision = u8::try_from(precision)
        .ok()
        .filter(|precision| (1..=DECIMAL_DIGITS_MAX).contains(precision))
        .ok_or_else(|| {
            invalid(format!(
                "{written}: the precision must be between 1 and {DECIMAL_DIGITS_MAX}"
            ))
        })?;
    let scale = u8::try_from(scale)
        .ok()
        .filter(|scale| *scale <= precision)
        .ok_or_else(|| {
            invalid(format!(
                "{written}: the scale must be between 0 and {precision}"
            ))
        })?;
    Ok(ColumnType::Decimal { precision, scale })
}

fn characters(length: &CharacterLength) -> Result<u32> {
    let length = match length {
        CharacterLength::IntegerLength { length, .. } => *length,
        CharacterLength::Max => return Err(Error::unsupported("varchar(max)")),
    };
    match u32::try_from(length) {
        Ok(length) if (1..=LENGTH_MAX).contains(&u64::from(length)) => Ok(length),
        _ => Err(Error::new(
            SqlState::InvalidParameterValue,
            format!("a length must be between 1 and {LENGTH_MAX} characters"),
        )),
    }
}

/// The column type for values of a query, as `CREATE TABLE AS` makes it.
pub(crate) fn type_of_values(name: &str, values: &DataType) -> Result<ColumnType> {
    let text = ColumnType::Text {
        length_max: None,
        is_padded: false,
    };
    Ok(match values {
        DataType::Boolean => ColumnType::Boolean,
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => ColumnType::SmallInt,
        DataType::UInt16 | DataType::Int32 => ColumnType::Integer,
        DataType::UInt32 | DataType::Int64 | DataType::UInt64 => ColumnType::BigInt,
        DataType::Float16 | DataType::Float32 => ColumnType::Real,
        DataType::Float64 => ColumnType::Double,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => ColumnType::Decimal {
            precision: (*precision).min(DECIMAL_DIGITS_MAX),
            scale: u8::try_from(*scale).unwrap_or(0),
        },
        DataType::Date32 | DataType::Date64 => ColumnType::Date,
        DataType::Timestamp(_, None) => ColumnType::Timestamp,
        DataType::Timestamp(_, Some(_)) => ColumnType::TimestampWithTimeZone,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => text,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => ColumnType::Blob,
        DataType::Dictionary(_, values) => type_of_values(name, values)?,
        other => {
            return Err(Error::unsupported(format!(
                "column \"{name}\" of the type {other}"
            )));
        }
    })
}

/// The name of a column's type in an answer, as PostgreSQL calls it: `numeric(10,2)`,
/// `timestamp with time zone`.
pub fn name_of_type(values: &DataType) -> String {
    match type_of_values("", values) {
        Ok(named) => named.to_string(),
        Err(_) => values.to_string(),
    }
}

/// The columns of a table as a query sees them.
pub(crate) fn schema_of(table: &TableDefinition) -> SchemaRef {
    let fields = table
        .columns
        .iter()
        .map(|column| Field::new(&column.name, column.column_type.arrow(), column.is_nullable));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Values that a column of this name and type can take, out of those of an expression.
pub(crate) fn assign(values: &ArrayRef, name: &str, to: ColumnType) -> Result<ArrayRef> {
    let target = to.arrow();
    let from = values.data_type();
    if *from == DataType::Null {
        return Ok(new_null_array(&target, values.len()));
    }
    if let DataType::Dictionary(_, inner) = from {
        return assign(&cast(values, inner, to)?, name, to);
    }
    if !is_assignable(from, to) {
        return Err(Error::new(
            SqlState::DatatypeMismatch,
            format!(
                "column \"{name}\" is of type {to} but expression is of type {}",
                type_of_values(name, from)
                    .map_or_else(|_| from.to_string(), |from| from.to_string())
            ),
        )
        .with_hint("You will need to rewrite or cast the expression."));
    }
    match to {
        ColumnType::Blob if is_text(from) => bytes_of_text(values),
        ColumnType::SmallInt | ColumnType::Integer | ColumnType::BigInt => {
            cast(&rounded(values, to)?, &target, to)
        }
        ColumnType::Text {
            length_max: Some(length_max),
            is_padded,
        } => fitted(&cast(values, &target, to)?, length_max, is_padded, to),
        ColumnType::Real | ColumnType::Double => Ok(normal(&cast(values, &target, to)?)),
        _ => cast(values, &target, to),
    }
}

fn is_text(values: &DataType) -> bool {
    matches!(
        values,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

fn is_assignable(from: &DataType, to: ColumnType) -> bool {
    let is_time = matches!(
        from,
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)
    );
    let is_blob = matches!(
        from,
        DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
    );
    if is_text(from) {
        return true;
    }
    match to {
        ColumnType::Boolean => *from == DataType::Boolean,
        ColumnType::SmallInt
        | ColumnType::Integer
        | ColumnType::BigInt
        | ColumnType::Decimal { .. }
        | ColumnType::Real
        | ColumnType::Double => from.is_numeric(),
        ColumnType::Date | ColumnType::Timestamp | ColumnType::TimestampWithTimeZone => is_time,
        ColumnType::Text { .. } => !is_blob && !from.is_nested(),
        ColumnType::Blob => is_blob,
    }
}

/// Numbers with digits behind the point, to the nearest integer.
fn rounded(values: &ArrayRef, to: ColumnType) -> Result<ArrayRef> {
    match values.data_type() {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let doubles = cast(values, &DataType::Float64, to)?;
            let doubles = doubles.as_primitive::<Float64Type>();
            Ok(Arc::new(
                doubles.unary::<_, Float64Type>(f64::round_ties_even),
            ))
        }
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => {
            cast(values, &DataType::Decimal128(DECIMAL_DIGITS_MAX, 0), to)
        }
        _ => Ok(Arc::clone(values)),
    }
}

fn cast(values: &ArrayRef, target: &DataType, to: ColumnType) -> Result<ArrayRef> {
    if values.data_type() == target {
        return Ok(Arc::clone(values));
    }
    require_short_decimals(values, target)?;
    let options = |safe| CastOptions {
        safe,
        format_options: FormatOptions::default(),
    };
    cast_with_options(values, target, &options(false)).map_err(|error| {
        // Which value it was: the first that becomes NULL where that is allowed.
        let lenient = cast_with_options(values, target, &options(true)).ok();
        let row = lenient.and_then(|lenient| {
            (0..values.len()).find(|row| values.is_valid(*row) && lenient.is_null(*row))
        });
        let value = row.and_then(|row| array_value_to_string(values, row).ok());
        match value {
            Some(value) => misfit(&value, is_text(values.data_type()), to),
            None => Error::of_run(&error.into()),
        }
    })
}

/// What is said of a value that is none of a type.
fn misfit(value: &str, is_text: bool, to: ColumnType) -> Error {
    let is_numeric = match to {
        ColumnType::SmallInt
        | ColumnType::Integer
        | ColumnType::BigInt
        | ColumnType::Decimal { .. }
        | ColumnType::Real
        | ColumnType::Double => true,
        ColumnType::Boolean
        | ColumnType::Date
        | ColumnType::Timestamp
        | ColumnType::TimestampWithTimeZone
        | ColumnType::Text { .. }
        | ColumnType::Blob => false,
    };
    let is_number = value.trim().parse::<f64>().is_ok_and(f64::is_finite);
    let is_integer = value.trim().parse::<i128>().is_ok();
    match to {
        ColumnType::Decimal { precision, scale } if is_number => Error::new(
            SqlState::NumericValueOutOfRange,
            "numeric field overflow",
        )
        .with_detail(format!(
            "A field with precision {precision}, scale {scale} must round to an absolute value less than 10^{}; it is {value}.",
            precision - scale
        )),
        _ if is_numeric && (!is_text || is_integer) => Error::new(
            SqlState::NumericValueOutOfRange,
            format!("value \"{value}\" is out of range for type {to}"),
        ),
        ColumnType::Date | ColumnType::Timestamp | ColumnType::TimestampWithTimeZone => Error::new(
            SqlState::InvalidDatetimeFormat,
            format!("invalid input syntax for type {to}: \"{value}\""),
        ),
        _ => Error::new(
            SqlState::InvalidTextRepresentation,
            format!("invalid input syntax for type {to}: \"{value}\""),
        ),
    }
}

/// Texts of at most so many characters; blanks behind these do not count. Of `char(n)` no blanks at
/// the end are kept.
fn fitted(values: &ArrayRef, length_max: u32, is_padded: bool, to: ColumnType) -> Result<ArrayRef> {
    let texts = values.as_string_view();
    let length_max = length_max as usize;
    let fits = |text: &str| {
        // No character is longer than four bytes, and none is shorter than one.
        (text.len() <= length_max || text.chars().count() <= length_max)
            && !(is_padded && text.ends_with(' '))
    };
    if texts.iter().flatten().all(fits) {
        return Ok(Arc::clone(values));
    }
    let cut = |text: &'_ str| -> Result<String> {
        let end = text.char_indices().nth(length_max).map(|(at, _)| at);
        let (kept, rest) = text.split_at(end.unwrap_or(text.len()));
        if !rest.trim_end_matches(' ').is_empty() {
            return Err(Error::new(
                SqlState::StringDataRightTruncation,
                format!("value too long for type {to}"),
            ));
        }
        Ok(match is_padded {
            true => kept.trim_end_matches(' ').to_owned(),
            false => kept.to_owned(),
        })
    };
    let fitted = texts.iter().map(|text| text.map(cut).transpose());
    Ok(Arc::new(fitted.collect::<Result<StringViewArray>>()?))
}

/// Bytes as PostgreSQL writes them: `\x` and hexadecimal digits, or the characters themselves.
pub(crate) fn bytes_of_text(values: &ArrayRef) -> Result<ArrayRef> {
    let texts = cast(values, &DataType::Utf8View, ColumnType::Blob)?;
    let mut bytes = BinaryViewBuilder::with_capacity(values.len());
    for text in texts.as_string_view() {
        let Some(text) = text else {
            bytes.append_null();
            continue;
        };
        match text.strip_prefix("\\x") {
            None => bytes.append_value(text),
            Some(digits) => {
                let pairs = digits.as_bytes().chunks(2);
                let decoded = pairs.map(|pair| {
                    let [high, low] = pair else { return None };
                    let digit = |byte: u8| char::from(byte).to_digit(16);
                    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
                });
                let decoded: Option<Vec<u8>> = decoded.collect();
                let decoded = decoded.ok_or_else(|| misfit(text, true, ColumnType::Blob))?;
                bytes.append_value(decoded);
            }
        }
    }
    Ok(Arc::new(bytes.finish()))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Decimal128Array, Float64Array, Int64Array};

    use super::*;

    fn shown(values: ArrayRef, to: ColumnType) -> Result<Vec<String>> {
        let values = assign(&values, "c", to)?;
        Ok((0..values.len())
            .map(|row| array_value_to_string(&values, row).unwrap())
            .collect())
    }

    #[test]
    fn numbers_are_rounded_and_never_wrapped() {
        let doubles = || Arc::new(Float64Array::from(vec![2.5, 3.5, -0.4]));
        assert_eq!(
            shown(doubles(), ColumnType::Integer).unwrap(),
            ["2", "4", "0"]
        );
        let decimals = Decimal128Array::from(vec![25, -25, 24]);
        let decimals = decimals.with_precision_and_scale(4, 1).unwrap();
        assert_eq!(
            shown(Arc::new(decimals), ColumnType::SmallInt).unwrap(),
            ["3", "-3", "2"]
        );
        let many = shown(
            Arc::new(Int64Array::from(vec![1, 40_000])),
            ColumnType::SmallInt,
        );
        let error = many.unwrap_err();
        assert_eq!(
            (error.state.code(), error.message.as_str()),
            ("22003", "value \"40000\" is out of range for type smallint")
        );
        let to = ColumnType::Decimal {
            precision: 3,
            scale: 2,
        };
        let error = shown(Arc::new(Int64Array::from(vec![10])), to).unwrap_err();
        assert_eq!(error.state.code(), "22003", "{error}");
        let error = shown(
            Arc::new(Float64Array::from(vec![f64::NAN])),
            ColumnType::BigInt,
        );
        assert_eq!(error.unwrap_err().state.code(), "22003");
    }

    #[test]
    fn texts_are_parsed_and_measured_in_characters() {
        let text = |value: &str| -> ArrayRef { Arc::new(StringViewArray::from(vec![value])) };
        let varchar = ColumnType::Text {
            length_max: Some(3),
            is_padded: false,
        };
        assert_eq!(shown(text("äöü  "), varchar).unwrap(), ["äöü"]);
        assert_eq!(shown(text("ab "), varchar).unwrap(), ["ab "]);
        let error = shown(text("abcd"), varchar).unwrap_err();
        assert_eq!(
            (error.state.code(), error.message.as_str()),
            ("22001", "value too long for type character varying(3)")
        );
        let padded = ColumnType::Text {
            length_max: Some(5),
            is_padded: true,
        };
        assert_eq!(shown(text("ab   "), padded).unwrap(), ["ab"]);
        for (value, to, code) in [
            ("x", ColumnType::Integer, "22P02"),
            ("99999999999", ColumnType::Integer, "22003"),
            ("2026-13-01", ColumnType::Date, "22007"),
            ("\\x1", ColumnType::Blob, "22P02"),
        ] {
            let error = shown(text(value), to).unwrap_err();
            assert_eq!(error.state.code(), code, "{error}");
        }
        assert_eq!(shown(text("\\x6F72"), ColumnType::Blob).unwrap(), ["6f72"]);
    }
}
