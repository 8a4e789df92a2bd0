//! The natural mapping of SQL values to literals (R2RML, 10.2): datatypes and canonical forms.
//!
//! | column | datatype | such as |
//! | --- | --- | --- |
//! | `smallint`, `integer`, `bigint` | `xsd:integer` | `-5` |
//! | `numeric` | `xsd:decimal` | `1.5`, `30` |
//! | `real`, `double precision` | `xsd:double` | `8.025E1` |
//! | `boolean` | `xsd:boolean` | `true` |
//! | `date` | `xsd:date` | `1981-10-10` |
//! | `timestamp` | `xsd:dateTime` | `2009-10-10T12:12:22.5` |
//! | `timestamptz` | `xsd:dateTime` | `2009-10-10T12:12:22Z` |
//! | `bytea` | `xsd:hexBinary` | `0AFF` |
//! | texts | none: a plain literal | |

use std::fmt::Write as _;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array,
    Float32Array, Float64Array, Int64Array, StringViewArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int64Type, TimeUnit,
    TimestampMicrosecondType,
};
use orrery_storage::table::ColumnType;
use orrery_term::inline::{DAYS_TO_1970, civil_from_days};
use orrery_term::lexical::canonical_exponent;
use orrery_term::vocabulary::xsd;

use crate::error::{Error, Result};

/// `xsd:hexBinary`.
const HEX_BINARY: &str = "http://www.w3.org/2001/XMLSchema#hexBinary";
const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;

/// The datatype of literals of a column; none where they are plain.
pub(crate) fn datatype(column_type: ColumnType) -> Option<&'static str> {
    Some(match column_type {
        ColumnType::SmallInt | ColumnType::Integer | ColumnType::BigInt => xsd::INTEGER,
        ColumnType::Decimal { .. } => xsd::DECIMAL,
        ColumnType::Real | ColumnType::Double => xsd::DOUBLE,
        ColumnType::Boolean => xsd::BOOLEAN,
        ColumnType::Date => xsd::DATE,
        ColumnType::Timestamp | ColumnType::TimestampWithTimeZone => xsd::DATE_TIME,
        ColumnType::Blob => HEX_BINARY,
        ColumnType::Text { .. } => return None,
    })
}

/// The values of a column of a batch.
pub(crate) enum Lexical {
    Boolean(BooleanArray),
    Integer(Int64Array),
    Decimal(Decimal128Array, u8),
    Single(Float32Array),
    Double(Float64Array),
    Date(Date32Array),
    Timestamp(TimestampMicrosecondArray, bool),
    Text(StringViewArray),
    Blob(BinaryViewArray),
}

impl Lexical {
    /// Of a column of this type, which a plan may give in another array.
    pub(crate) fn new(array: &ArrayRef, column_type: ColumnType) -> Result<Self> {
        let wanted = match column_type {
            ColumnType::SmallInt | ColumnType::Integer => DataType::Int64,
            ColumnType::TimestampWithTimeZone => {
                DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
            }
            other => other.arrow(),
        };
        let array = arrow::compute::cast(array, &wanted);
        let array = array.map_err(|error| Error::Words(error.to_string()))?;
        Ok(match column_type {
            ColumnType::Boolean => Self::Boolean(array.as_boolean().clone()),
            ColumnType::SmallInt | ColumnType::Integer | ColumnType::BigInt => {
                Self::Integer(array.as_primitive::<Int64Type>().clone())
            }
            ColumnType::Decimal { scale, .. } => {
                Self::Decimal(array.as_primitive::<Decimal128Type>().clone(), scale)
            }
            ColumnType::Real => Self::Single(array.as_primitive::<Float32Type>().clone()),
            ColumnType::Double => Self::Double(array.as_primitive::<Float64Type>().clone()),
            ColumnType::Date => Self::Date(array.as_primitive::<Date32Type>().clone()),
            ColumnType::Timestamp | ColumnType::TimestampWithTimeZone => Self::Timestamp(
                array.as_primitive::<TimestampMicrosecondType>().clone(),
                column_type == ColumnType::TimestampWithTimeZone,
            ),
            ColumnType::Text { .. } => Self::Text(array.as_string_view().clone()),
            ColumnType::Blob => Self::Blob(array.as_binary_view().clone()),
        })
    }

    /// Appends the lexical form of a value; false, and nothing appended, where it is NULL.
    pub(crate) fn write(&self, row: usize, into: &mut String) -> bool {
        let is_null = match self {
            Self::Boolean(values) => values.is_null(row),
            Self::Integer(values) => values.is_null(row),
            Self::Decimal(values, _) => values.is_null(row),
            Self::Single(values) => values.is_null(row),
            Self::Double(values) => values.is_null(row),
            Self::Date(values) => values.is_null(row),
            Self::Timestamp(values, _) => values.is_null(row),
            Self::Text(values) => values.is_null(row),
            Self::Blob(values) => values.is_null(row),
        };
        if is_null {
            return false;
        }
        match self {
            Self::Boolean(values) => {
                into.push_str(if values.value(row) { "true" } else { "false" });
            }
            // Writing to a String does not fail, here and below.
            Self::Integer(values) => _ = write!(into, "{}", values.value(row)),
            Self::Decimal(values, scale) => write_decimal(values.value(row), *scale, into),
            Self::Single(values) => {
                let value = values.value(row);
                match value.is_finite() {
                    true => into.push_str(&canonical_exponent(value)),
                    false => into.push_str(exceptional(f64::from(value))),
                }
            }
            Self::Double(values) => {
                let value = values.value(row);
                match value.is_finite() {
                    true => into.push_str(&canonical_exponent(value)),
                    false => into.push_str(exceptional(value)),
                }
            }
            Self::Date(values) => write_date(i64::from(values.value(row)), into),
            Self::Timestamp(values, is_zoned) => {
                write_timestamp(values.value(row), into);
                if *is_zoned {
                    into.push('Z');
                }
            }
            Self::Text(values) => into.push_str(values.value(row)),
            Self::Blob(values) => {
                for byte in values.value(row) {
                    _ = write!(into, "{byte:02X}");
                }
            }
        }
        true
    }
}

fn exceptional(value: f64) -> &'static str {
    match value {
        f64::INFINITY => "INF",
        f64::NEG_INFINITY => "-INF",
        _ => "NaN",
    }
}

/// XML Schema 1.1, part 2, 3.3.3.2: no zeros that say nothing, and no point behind which nothing
/// stands.
fn write_decimal(value: i128, scale: u8, into: &mut String) {
    if value < 0 {
        into.push('-');
    }
    let digits = value.unsigned_abs().to_string();
    let scale = usize::from(scale);
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    into.push_str(whole);
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        into.push('.');
        into.push_str(fraction);
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar.
fn write_date(days: i64, into: &mut String) {
    let (year, month, day) = civil_from_days(days + DAYS_TO_1970);
    if year < 0 {
        into.push('-');
    }
    _ = write!(into, "{:04}-{month:02}-{day:02}", year.unsigned_abs());
}

fn write_timestamp(microseconds: i64, into: &mut String) {
    write_date(microseconds.div_euclid(MICROSECONDS_PER_DAY), into);
    let of_day = microseconds.rem_euclid(MICROSECONDS_PER_DAY);
    let seconds = of_day / 1_000_000;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    _ = write!(into, "T{hour:02}:{minute:02}:{second:02}");
    let fraction = of_day % 1_000_000;
    if fraction > 0 {
        let digits = format!("{fraction:06}");
        into.push('.');
        into.push_str(digits.trim_end_matches('0'));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn texts(array: ArrayRef, column_type: ColumnType) -> Vec<Option<String>> {
        let values = Lexical::new(&array, column_type).unwrap();
        let rows = 0..array.len();
        let text = |row| {
            let mut text = String::new();
            values.write(row, &mut text).then_some(text)
        };
        rows.map(text).collect()
    }

    fn some(texts: &[&str]) -> Vec<Option<String>> {
        texts.iter().map(|it| Some((*it).to_owned())).collect()
    }

    #[test]
    fn numbers_have_their_canonical_forms() {
        let decimals = Decimal128Array::from(vec![-5, 150, 3000, 0, 123_456])
            .with_precision_and_scale(10, 2)
            .unwrap();
        let column_type = ColumnType::Decimal {
            precision: 10,
            scale: 2,
        };
        assert_eq!(
            texts(Arc::new(decimals), column_type),
            some(&["-0.05", "1.5", "30", "0", "1234.56"])
        );
        let doubles = Float64Array::from(vec![80.25, 1.0, 0.0, f64::INFINITY, f64::NAN, -1e-7]);
        assert_eq!(
            texts(Arc::new(doubles), ColumnType::Double),
            some(&["8.025E1", "1.0E0", "0.0E0", "INF", "NaN", "-1.0E-7"])
        );
        let singles = Float32Array::from(vec![70.22]);
        assert_eq!(
            texts(Arc::new(singles), ColumnType::Real),
            some(&["7.022E1"])
        );
        let integers = Int64Array::from(vec![Some(-7), None]);
        assert_eq!(
            texts(Arc::new(integers), ColumnType::BigInt),
            [Some("-7".to_owned()), None]
        );
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        let days = Date32Array::from(vec![0, -1, 11_016, 4_300, -719_529, 2_932_897]);
        assert_eq!(
            texts(Arc::new(days), ColumnType::Date),
            some(&[
                "1970-01-01",
                "1969-12-31",
                "2000-02-29",
                "1981-10-10",
                "-0001-12-31",
                "10000-01-01"
            ])
        );
        let times = TimestampMicrosecondArray::from(vec![1_500_000, -1, 0]);
        assert_eq!(
            texts(Arc::new(times.clone()), ColumnType::Timestamp),
            some(&[
                "1970-01-01T00:00:01.5",
                "1969-12-31T23:59:59.999999",
                "1970-01-01T00:00:00"
            ])
        );
        let zoned: ArrayRef = Arc::new(times.with_timezone("UTC"));
        assert_eq!(
            texts(zoned, ColumnType::TimestampWithTimeZone)[2].as_deref(),
            Some("1970-01-01T00:00:00Z")
        );
    }
}
