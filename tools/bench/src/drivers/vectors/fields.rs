//! Single columns of Arrow's row format.
//!
//! Arrow decodes rows as a whole; a store of rows reads the columns that are asked for and steps
//! over the rest. The format is documented (`arrow::row`): values one behind the other, ascending
//! as bytes, so that comparing rows is comparing bytes.
//!
//! ```text
//! number   1 u8 | big endian, the sign bit turned over: 8 bytes for integers of 64 bits, 4 for those of 32 and for dates, 16 for decimals
//! text     1 u8 (empty), or 2 u8 and blocks: four of 8 bytes, then of 32, each with a byte behind it: 255 where another follows
//! ```

use arrow::datatypes::DataType;

use crate::drivers::BenchError;

/// Blocks of a text before they become longer.
const SHORT_BLOCKS: usize = 4;
const SHORT_BLOCK_BYTES: usize = 8;
const BLOCK_BYTES: usize = 32;
/// Another block follows.
const CONTINUES: u8 = 0xFF;
const NOT_EMPTY: u8 = 2;

/// How a column stands in a row.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Field {
    Int64,
    /// A date, too.
    Int32,
    Decimal,
    Text,
}

/// The columns of rows.
#[derive(Debug)]
pub(super) struct Fields {
    fields: Vec<Field>,
    /// Where the column begins in every row: as long as no text stands before it.
    offsets: Vec<Option<usize>>,
}

impl Fields {
    pub(super) fn new<'t>(types: impl Iterator<Item = &'t DataType>) -> Result<Self, BenchError> {
        let fields = types.map(|of| {
            Ok(match of {
                DataType::Int64 => Field::Int64,
                DataType::Int32 | DataType::Date32 => Field::Int32,
                DataType::Decimal128(..) => Field::Decimal,
                DataType::Utf8View => Field::Text,
                other => {
                    return Err(BenchError::Engine {
                        message: format!("a column of type {other} is not expected"),
                    });
                }
            })
        });
        let fields: Vec<Field> = fields.collect::<Result<_, _>>()?;
        let mut next = Some(0);
        let offsets = fields.iter().map(|field| {
            let offset = next;
            next = offset.and_then(|offset| Some(offset + field.width()?));
            offset
        });
        Ok(Self {
            offsets: offsets.collect(),
            fields,
        })
    }

    /// Where a column stands in a row.
    pub(super) fn offset(&self, row: &[u8], column: usize) -> usize {
        if let Some(offset) = self.offsets[column] {
            return offset;
        }
        // From the last column before it whose place is the same in every row.
        let known = self.offsets[..column].iter().rposition(Option::is_some);
        let known = known.unwrap_or(0);
        let start = self.offsets[known].unwrap_or(0);
        let between = self.fields[known..column].iter();
        between.fold(start, |offset, field| {
            offset + field.width().unwrap_or_else(|| text_bytes(&row[offset..]))
        })
    }

    /// A number. Decimals are of so few digits that 64 bits hold them.
    pub(super) fn number(&self, row: &[u8], column: usize) -> i64 {
        let value = &row[self.offset(row, column) + 1..];
        match self.fields[column] {
            Field::Int64 => i64::from_be_bytes(first(value)) ^ i64::MIN,
            Field::Int32 => i64::from(i32::from_be_bytes(first(value)) ^ i32::MIN),
            Field::Decimal => (i128::from_be_bytes(first(value)) ^ i128::MIN) as i64,
            Field::Text => 0,
        }
    }

    /// The bytes of a text as they stand in the row.
    pub(super) fn text<'r>(&self, row: &'r [u8], column: usize) -> &'r [u8] {
        let text = &row[self.offset(row, column)..];
        &text[..text_bytes(text)]
    }

    pub(super) fn is_text(&self, column: usize) -> bool {
        self.fields[column] == Field::Text
    }
}

impl Field {
    /// Bytes, where they are as many in every row.
    fn width(self) -> Option<usize> {
        match self {
            Self::Int64 => Some(9),
            Self::Int32 => Some(5),
            Self::Decimal => Some(17),
            Self::Text => None,
        }
    }
}

fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut first = [0; N];
    first.copy_from_slice(&bytes[..N]);
    first
}

/// Bytes that a text takes, which begins here.
fn text_bytes(bytes: &[u8]) -> usize {
    if bytes[0] != NOT_EMPTY {
        return 1;
    }
    let mut end = 1;
    for block in 0.. {
        end += match block < SHORT_BLOCKS {
            true => SHORT_BLOCK_BYTES + 1,
            false => BLOCK_BYTES + 1,
        };
        if bytes[end - 1] != CONTINUES {
            break;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Date32Array, Decimal128Array, Int64Array, StringViewArray};
    use arrow::row::{RowConverter, SortField};

    use super::*;

    #[test]
    fn columns_are_found_behind_texts_of_any_length() {
        let texts: Vec<String> = [0, 1, 7, 8, 9, 31, 32, 33, 64, 65, 300]
            .iter()
            .map(|length| "x".repeat(*length))
            .collect();
        let count = texts.len() as i64;
        let decimals = Decimal128Array::from_iter_values((0..count).map(|n| i128::from(n - 5)));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values((0..count).map(|n| 7 - n))),
            Arc::new(StringViewArray::from_iter_values(&texts)),
            Arc::new(Date32Array::from_iter_values(
                (0..count).map(|n| n as i32 - 3),
            )),
            Arc::new(StringViewArray::from_iter_values(texts.iter().rev())),
            Arc::new(decimals.with_precision_and_scale(15, 2).unwrap()),
        ];
        let types: Vec<DataType> = columns.iter().map(|it| it.data_type().clone()).collect();
        let converter =
            RowConverter::new(types.iter().cloned().map(SortField::new).collect()).unwrap();
        let rows = converter.convert_columns(&columns).unwrap();
        let fields = Fields::new(types.iter()).unwrap();
        for number in 0..count {
            let row = rows.row(number as usize);
            let row = row.as_ref();
            assert_eq!(fields.number(row, 0), 7 - number);
            assert_eq!(fields.number(row, 2), number - 3);
            assert_eq!(fields.number(row, 4), number - 5);
            // Of the last column nothing is left over.
            assert_eq!(fields.offset(row, 4) + 17, row.len());
            let text = RowConverter::new(vec![SortField::new(DataType::Utf8View)]).unwrap();
            let parser = text.parser();
            let decoded = text.convert_rows([parser.parse(fields.text(row, 1))]);
            let expected = StringViewArray::from_iter_values([&texts[number as usize]]);
            assert_eq!(
                decoded.unwrap()[0].as_ref(),
                &expected as &dyn arrow::array::Array
            );
        }
    }
}
