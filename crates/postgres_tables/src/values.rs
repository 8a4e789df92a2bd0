//! The conversion of PostgreSQL's binary values to Arrow arrays.
//!
//! What our type does not have is an error in words: infinite dates, numbers with too many digits,
//! NULL where there was to be none.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BinaryViewBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder,
    Float64Builder, Int16Builder, Int32Builder, Int64Builder, StringViewBuilder,
    TimestampMicrosecondBuilder,
};
use orrery_storage::table::ColumnType;

use crate::columns::{ForeignColumn, SourceKind};
use crate::numeric::digits;

/// Days, and microseconds, from 1970 to 2000, which PostgreSQL counts from.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;

/// The values of a column for one batch.
pub(crate) struct Values {
    builder: Builder,
    is_nullable: bool,
    is_padded: bool,
    length_max: Option<usize>,
}

enum Builder {
    Boolean(BooleanBuilder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Decimal(Decimal128Builder, u8, u8),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
    Text(StringViewBuilder),
    Uuid(StringViewBuilder),
    Bytes(BinaryViewBuilder),
}

impl Values {
    /// None yet, of a column.
    pub(crate) fn new(column: &ForeignColumn) -> Self {
        let (mut is_padded, mut longest) = (column.source.kind == SourceKind::Bpchar, None);
        let builder = match column.column_type {
            ColumnType::Boolean => Builder::Boolean(BooleanBuilder::new()),
            ColumnType::SmallInt => Builder::Int16(Int16Builder::new()),
            ColumnType::Integer => Builder::Int32(Int32Builder::new()),
            ColumnType::BigInt => Builder::Int64(Int64Builder::new()),
            ColumnType::Real => Builder::Float32(Float32Builder::new()),
            ColumnType::Double => Builder::Float64(Float64Builder::new()),
            ColumnType::Decimal { precision, scale } => {
                let builder = Decimal128Builder::new().with_data_type(column.column_type.arrow());
                Builder::Decimal(builder, precision, scale)
            }
            ColumnType::Date => Builder::Date(Date32Builder::new()),
            ColumnType::Timestamp | ColumnType::TimestampWithTimeZone => {
                let builder = TimestampMicrosecondBuilder::new();
                Builder::Timestamp(builder.with_data_type(column.column_type.arrow()))
            }
            ColumnType::Text { .. } if column.source.kind == SourceKind::Uuid => {
                Builder::Uuid(StringViewBuilder::new())
            }
            ColumnType::Text {
                length_max,
                is_padded: is_declared,
            } => {
                is_padded |= is_declared;
                longest = length_max.map(|length| length as usize);
                Builder::Text(StringViewBuilder::new())
            }
            ColumnType::Blob => Builder::Bytes(BinaryViewBuilder::new()),
        };
        Self {
            builder,
            is_nullable: column.is_nullable,
            is_padded,
            length_max: longest,
        }
    }

    /// One more.
    ///
    /// # Errors
    /// In words, where our type does not have it.
    pub(crate) fn push(&mut self, raw: Option<&[u8]>) -> Result<(), String> {
        let Some(raw) = raw else {
            return match self.is_nullable {
                true => {
                    self.push_null();
                    Ok(())
                }
                false => Err(
                    "it is NULL, and was NOT NULL when the external table was created".to_owned(),
                ),
            };
        };
        match &mut self.builder {
            Builder::Boolean(values) => values.append_value(u8::from_be_bytes(fixed(raw)?) != 0),
            Builder::Int16(values) => values.append_value(i16::from_be_bytes(fixed(raw)?)),
            Builder::Int32(values) => values.append_value(i32::from_be_bytes(fixed(raw)?)),
            Builder::Int64(values) => values.append_value(i64::from_be_bytes(fixed(raw)?)),
            Builder::Float32(values) => {
                let value = f32::from_be_bytes(fixed(raw)?);
                // One NaN and one zero, as tables have.
                values.append_value(if value.is_nan() {
                    f32::NAN
                } else {
                    value + 0.0
                });
            }
            Builder::Float64(values) => {
                let value = f64::from_be_bytes(fixed(raw)?);
                values.append_value(if value.is_nan() {
                    f64::NAN
                } else {
                    value + 0.0
                });
            }
            Builder::Decimal(values, precision, scale) => {
                values.append_value(digits(raw, *precision, *scale)?);
            }
            Builder::Date(values) => values.append_value(day(i32::from_be_bytes(fixed(raw)?))?),
            Builder::Timestamp(values) => {
                values.append_value(moment(i64::from_be_bytes(fixed(raw)?))?);
            }
            Builder::Text(values) => {
                let text = std::str::from_utf8(raw).map_err(|_| "a text is no UTF-8".to_owned())?;
                let text = match self.is_padded {
                    true => text.trim_end_matches(' '),
                    false => text,
                };
                if let Some(length_max) = self.length_max
                    && text.len() > length_max
                    && text.chars().count() > length_max
                {
                    return Err(format!(
                        "a text is longer than the {length_max} characters of the column when the external table was created"
                    ));
                }
                values.append_value(text);
            }
            Builder::Uuid(values) => values.append_value(uuid(fixed(raw)?)),
            Builder::Bytes(values) => values.append_value(raw),
        }
        Ok(())
    }

    fn push_null(&mut self) {
        match &mut self.builder {
            Builder::Boolean(values) => values.append_null(),
            Builder::Int16(values) => values.append_null(),
            Builder::Int32(values) => values.append_null(),
            Builder::Int64(values) => values.append_null(),
            Builder::Float32(values) => values.append_null(),
            Builder::Float64(values) => values.append_null(),
            Builder::Decimal(values, ..) => values.append_null(),
            Builder::Date(values) => values.append_null(),
            Builder::Timestamp(values) => values.append_null(),
            Builder::Text(values) | Builder::Uuid(values) => values.append_null(),
            Builder::Bytes(values) => values.append_null(),
        }
    }

    /// All that there are; none are left.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        match &mut self.builder {
            Builder::Boolean(values) => Arc::new(values.finish()),
            Builder::Int16(values) => Arc::new(values.finish()),
            Builder::Int32(values) => Arc::new(values.finish()),
            Builder::Int64(values) => Arc::new(values.finish()),
            Builder::Float32(values) => Arc::new(values.finish()),
            Builder::Float64(values) => Arc::new(values.finish()),
            Builder::Decimal(values, ..) => Arc::new(values.finish()),
            Builder::Date(values) => Arc::new(values.finish()),
            Builder::Timestamp(values) => Arc::new(values.finish()),
            Builder::Text(values) | Builder::Uuid(values) => Arc::new(values.finish()),
            Builder::Bytes(values) => Arc::new(values.finish()),
        }
    }
}

fn fixed<const N: usize>(raw: &[u8]) -> Result<[u8; N], String> {
    raw.try_into()
        .map_err(|_| format!("the source sent {} bytes in the place of {N}", raw.len()))
}

fn day(days: i32) -> Result<i32, String> {
    match days {
        i32::MAX => Err("the date infinity is none here".to_owned()),
        i32::MIN => Err("the date -infinity is none here".to_owned()),
        days => days
            .checked_add(EPOCH_DAYS)
            .ok_or_else(|| "a date is out of range".to_owned()),
    }
}

fn moment(microseconds: i64) -> Result<i64, String> {
    match microseconds {
        i64::MAX => Err("the time infinity is none here".to_owned()),
        i64::MIN => Err("the time -infinity is none here".to_owned()),
        value => value
            .checked_add(EPOCH_MICROSECONDS)
            .ok_or_else(|| "a time is out of range".to_owned()),
    }
}

/// As the source writes it.
fn uuid(bytes: [u8; 16]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(36);
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::util::display::array_value_to_string;

    use super::*;
    use crate::columns::SourceType;

    fn values(word: &str, modifier: i32) -> Values {
        let source = SourceType::parse(word).unwrap();
        Values::new(&ForeignColumn {
            name: "x".to_owned(),
            column_type: source.kind.column_type(modifier).unwrap(),
            source,
            is_nullable: word != "int2",
        })
    }

    fn read(word: &str, modifier: i32, raw: &[u8]) -> Result<String, String> {
        let mut values = values(word, modifier);
        values.push(Some(raw))?;
        Ok(array_value_to_string(&values.finish(), 0).unwrap())
    }

    #[test]
    fn values_come_as_they_are_written() {
        assert_eq!(read("bool", -1, &[1]).unwrap(), "true");
        assert_eq!(read("int4", -1, &(-7_i32).to_be_bytes()).unwrap(), "-7");
        assert_eq!(
            read("date", -1, &0_i32.to_be_bytes()).unwrap(),
            "2000-01-01"
        );
        assert_eq!(
            read("timestamp", -1, &(-1_i64).to_be_bytes()).unwrap(),
            "1999-12-31T23:59:59.999999"
        );
        assert_eq!(read("bpchar", 4 + 5, b"ab   ").unwrap(), "ab");
        assert_eq!(read("text", -1, b"ab  ").unwrap(), "ab  ");
        let id = [
            0, 17, 34, 51, 68, 85, 102, 119, 136, 153, 170, 187, 204, 221, 238, 255,
        ];
        assert_eq!(
            read("uuid", -1, &id).unwrap(),
            "00112233-4455-6677-8899-aabbccddeeff"
        );
    }

    #[test]
    fn what_our_types_do_not_have_is_refused() {
        assert!(
            read("date", -1, &i32::MAX.to_be_bytes())
                .unwrap_err()
                .contains("infinity")
        );
        assert!(read("date", -1, &(i32::MAX - 1).to_be_bytes()).is_err());
        assert!(
            read("timestamptz", -1, &i64::MIN.to_be_bytes())
                .unwrap_err()
                .contains("-infinity")
        );
        assert!(read("int8", -1, &[1]).is_err());
        assert!(read("text", -1, &[0xff]).is_err());
        assert!(
            read("varchar", 4 + 2, b"abc")
                .unwrap_err()
                .contains("2 characters")
        );
        assert_eq!(read("varchar", 4 + 2, "äö".as_bytes()).unwrap(), "äö");
        assert!(values("int2", -1).push(None).unwrap_err().contains("NULL"));
        assert!(values("int4", -1).push(None).is_ok());
    }
}
