//! The text form of values, as in PostgreSQL: `t`, `2026-01-02 03:04:05+00`, `\x0aff`.

use std::fmt::Write;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::{Error, Result};

const TIMESTAMP: &str = "%Y-%m-%d %H:%M:%S%.f";
/// All times are in UTC.
const TIMESTAMP_WITH_ZONE: &str = "%Y-%m-%d %H:%M:%S%.f+00";

/// The values of one column of a batch.
pub struct ValueTexts<'a> {
    column: &'a ArrayRef,
    formatter: ArrayFormatter<'a>,
}

impl<'a> ValueTexts<'a> {
    /// The texts of a column.
    ///
    /// # Errors
    /// When its type has no texts.
    pub fn new(column: &'a ArrayRef) -> Result<Self> {
        static OPTIONS: FormatOptions<'static> = FormatOptions::new()
            .with_timestamp_format(Some(TIMESTAMP))
            .with_timestamp_tz_format(Some(TIMESTAMP_WITH_ZONE));
        let formatter = ArrayFormatter::try_new(column, &OPTIONS);
        Ok(Self {
            formatter: formatter.map_err(|error| Error::of_run(&error.into()))?,
            column,
        })
    }

    /// Appends the value of a row; false, and nothing appended, where it is NULL.
    ///
    /// # Errors
    /// When the value is none of its type, such as a date beyond the calendar.
    pub fn write(&self, row: usize, text: &mut String) -> Result<bool> {
        // An array of nothing but NULLs has no mask that says so.
        if self.column.is_null(row) || *self.column.data_type() == DataType::Null {
            return Ok(false);
        }
        match self.column.data_type() {
            DataType::Boolean => {
                text.push(if self.column.as_boolean().value(row) {
                    't'
                } else {
                    'f'
                });
            }
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => {
                text.push_str("\\x");
                // Writing to a String does not fail.
                let _ = write!(text, "{}", self.formatter.value(row));
            }
            _ => {
                let written = self.formatter.value(row).write(text);
                written.map_err(|error| Error::of_run(&error.into()))?;
            }
        }
        Ok(true)
    }
}

impl std::fmt::Debug for ValueTexts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ValueTexts")
            .field("type", self.column.data_type())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        BinaryViewArray, BooleanArray, Decimal128Array, TimestampMicrosecondArray,
    };

    use super::*;

    #[test]
    fn values_are_written_as_postgresql_writes_them() {
        let times = TimestampMicrosecondArray::from(vec![1_500_000]);
        let decimals = Decimal128Array::from(vec![-5]);
        let columns: Vec<(ArrayRef, &str)> = vec![
            (Arc::new(BooleanArray::from(vec![true])), "t"),
            (
                Arc::new(BinaryViewArray::from(vec![&b"\x0a\xff"[..]])),
                "\\x0aff",
            ),
            (Arc::new(times.clone()), "1970-01-01 00:00:01.500"),
            (
                Arc::new(times.with_timezone("UTC")),
                "1970-01-01 00:00:01.500+00",
            ),
            (
                Arc::new(decimals.with_precision_and_scale(5, 2).unwrap()),
                "-0.05",
            ),
        ];
        for (column, expected) in columns {
            let mut text = String::new();
            assert!(
                ValueTexts::new(&column)
                    .unwrap()
                    .write(0, &mut text)
                    .unwrap()
            );
            assert_eq!(text, expected);
        }
        let null: ArrayRef = Arc::new(BooleanArray::from(vec![None]));
        assert!(
            !ValueTexts::new(&null)
                .unwrap()
                .write(0, &mut String::new())
                .unwrap()
        );
    }
}
