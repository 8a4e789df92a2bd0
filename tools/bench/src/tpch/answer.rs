//! Answers of queries, and their comparison with expected ones.
//!
//! Answers are texts in rows: what a CSV file has, or batches of Arrow written out. The
//! specification (clause 2.1.3.5) lets sums be off by $100 and averages by a hundredth part, for
//! the sake of floats. Here decimals are exact, so more is asked: sums are the same to the cent,
//! averages to as many digits as the right answer shows, at most the sixth after the point, to
//! which decimals are divided.
//!
//! Rows that the query's order leaves equal may stand either way: the columns of the order are
//! compared row by row, and then all rows as a set.

use std::cmp::Ordering;
use std::fmt;
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::{ColumnKind, Query, TpchError};

/// Digits after the point of an average that are compared.
const AVERAGE_DIGITS_MAX: usize = 6;
/// Digits after the point of a sum.
const SUM_DIGITS: usize = 2;
/// What is left of a number once it is a float, relative to it.
const FLOAT_ERROR: f64 = 1e-12;

/// The rows of an answer; NULL is the empty text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer(Vec<Vec<String>>);

/// The first difference of two answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// They have not as many rows.
    Rows {
        /// Of the answer.
        found: usize,
        /// Of the right one.
        expected: usize,
    },
    /// A row has not as many columns as the query.
    Columns {
        /// The row, from one.
        row: usize,
        /// Of the answer or the right one.
        found: usize,
        /// Of the query.
        expected: usize,
    },
    /// A value is another, or stands elsewhere.
    Value {
        /// The row, from one; in the order of the answer, or of the sorted rows.
        row: usize,
        /// The column, from one.
        column: usize,
        /// Of the answer.
        found: String,
        /// Of the right one.
        expected: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows { found, expected } => write!(f, "{found} rows, not {expected}"),
            Self::Columns {
                row,
                found,
                expected,
            } => write!(f, "row {row} has {found} columns, not {expected}"),
            Self::Value {
                row,
                column,
                found,
                expected,
            } => write!(f, "row {row}, column {column}: {found:?}, not {expected:?}"),
        }
    }
}

impl Answer {
    /// Reads a CSV file with a header.
    ///
    /// # Errors
    /// When it cannot be read, or is not CSV.
    pub fn read_file(path: &Path) -> Result<Self, TpchError> {
        let of_file = |source| TpchError::Answer {
            path: path.to_owned(),
            source,
        };
        Self::read(csv::Reader::from_path(path).map_err(of_file)?).map_err(of_file)
    }

    /// Reads CSV with a header.
    ///
    /// # Errors
    /// When it is not CSV.
    pub fn read_csv(text: &[u8]) -> Result<Self, csv::Error> {
        Self::read(csv::Reader::from_reader(text))
    }

    fn read<R: std::io::Read>(mut reader: csv::Reader<R>) -> Result<Self, csv::Error> {
        let rows = reader.records().map(|record| {
            let record = record?;
            Ok(record
                .iter()
                .map(|value| value.trim_end().to_owned())
                .collect())
        });
        rows.collect::<Result<_, csv::Error>>().map(Self)
    }

    /// Writes batches out.
    ///
    /// # Errors
    /// When a column is of a type that has no text.
    pub fn of_batches(batches: &[RecordBatch]) -> Result<Self, ArrowError> {
        let options = FormatOptions::default();
        let mut rows = Vec::new();
        for batch in batches {
            let columns = batch.columns().iter();
            let columns = columns
                .map(|column| ArrayFormatter::try_new(column, &options))
                .collect::<Result<Vec<_>, _>>()?;
            for row in 0..batch.num_rows() {
                let values = columns.iter().map(|column| column.value(row).to_string());
                rows.push(values.map(|value| value.trim_end().to_owned()).collect());
            }
        }
        Ok(Self(rows))
    }

    /// Takes texts in rows; NULL is the empty one.
    pub fn of_texts(rows: Vec<Vec<String>>) -> Self {
        Self(rows)
    }

    /// The number that is all of the answer.
    pub fn number(&self) -> Option<u64> {
        match self.0.as_slice() {
            [row] if row.len() == 1 => row[0].parse().ok(),
            _ => None,
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.0.len()
    }

    /// Where this answer is not the expected one.
    pub fn difference(&self, expected: &Self, query: &Query) -> Option<Difference> {
        if self.rows() != expected.rows() {
            return Some(Difference::Rows {
                found: self.rows(),
                expected: expected.rows(),
            });
        }
        let wrong_width = self.wrong_width(query).or(expected.wrong_width(query));
        wrong_width
            .or_else(|| self.first_difference(expected, query, query.ordered_by))
            .or_else(|| {
                let all: Vec<usize> = (0..query.columns.len()).collect();
                let (found, expected) = (self.sorted(query), expected.sorted(query));
                found.first_difference(&expected, query, &all)
            })
    }

    fn wrong_width(&self, query: &Query) -> Option<Difference> {
        let expected = query.columns.len();
        let row = self.0.iter().position(|row| row.len() != expected)?;
        Some(Difference::Columns {
            row: row + 1,
            found: self.0[row].len(),
            expected,
        })
    }

    /// Row by row, in these columns.
    fn first_difference(
        &self,
        expected: &Self,
        query: &Query,
        columns: &[usize],
    ) -> Option<Difference> {
        for (row, (found, expected)) in self.0.iter().zip(&expected.0).enumerate() {
            for &column in columns {
                if !is_same(query.columns[column], &found[column], &expected[column]) {
                    return Some(Difference::Value {
                        row: row + 1,
                        column: column + 1,
                        found: found[column].clone(),
                        expected: expected[column].clone(),
                    });
                }
            }
        }
        None
    }

    /// Sorted by the columns of which the text can be relied on. No query has two rows with the
    /// same of them.
    fn sorted(&self, query: &Query) -> Self {
        let is_exact = |column: &usize| query.columns[*column] == ColumnKind::Exact;
        let exact: Vec<usize> = (0..query.columns.len()).filter(is_exact).collect();
        let mut rows = self.0.clone();
        rows.sort_by(|left, right| {
            let columns = exact.iter().map(|&column| left[column].cmp(&right[column]));
            columns.fold(Ordering::Equal, Ordering::then)
        });
        Self(rows)
    }
}

fn is_same(kind: ColumnKind, found: &str, expected: &str) -> bool {
    if found == expected {
        return true;
    }
    match kind {
        ColumnKind::Exact => false,
        ColumnKind::Sum => match (cents(found), cents(expected)) {
            (Some(found), Some(expected)) => found == expected,
            _ => false,
        },
        ColumnKind::Average => match (found.parse::<f64>(), expected.parse::<f64>()) {
            (Ok(value), Ok(right)) => {
                // Of six digits the last may be cut off where it was rounded, of fewer it is
                // rounded.
                let digits = digits_after_point(expected);
                let tolerance = if digits >= AVERAGE_DIGITS_MAX {
                    10_f64.powi(-(AVERAGE_DIGITS_MAX as i32))
                } else {
                    0.5 * 10_f64.powi(-(digits as i32))
                };
                (value - right).abs() <= tolerance + FLOAT_ERROR * right.abs()
            }
            _ => false,
        },
    }
}

fn digits_after_point(number: &str) -> usize {
    number.split_once('.').map_or(0, |(_, digits)| digits.len())
}

/// A decimal number in cents, rounded half away from zero.
fn cents(number: &str) -> Option<i128> {
    let (is_negative, number) = match number.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, number),
    };
    let (whole, digits) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let kept: String = digits
        .chars()
        .chain("00".chars())
        .take(SUM_DIGITS)
        .collect();
    let round_up = digits
        .as_bytes()
        .get(SUM_DIGITS)
        .is_some_and(|digit| *digit >= b'5');
    let whole: u64 = whole.parse().ok()?;
    let fraction: i128 = kept.parse().ok()?;
    let cents = i128::from(whole) * 100 + fraction + i128::from(round_up);
    Some(if is_negative { -cents } else { cents })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Date32Array, Decimal128Array, Int64Array, StringViewArray};

    use super::*;

    fn answer(text: &str) -> Answer {
        Answer::read_csv(text.as_bytes()).unwrap()
    }

    fn difference(number: u8, found: &str, expected: &str) -> Option<String> {
        let query = Query::numbered(number).unwrap();
        let difference = answer(found).difference(&answer(expected), query);
        difference.map(|difference| difference.to_string())
    }

    #[test]
    fn sums_are_the_same_to_the_cent() {
        for (found, expected, is_same) in [
            ("1193053.2253", "1193053.23", true),
            ("1193053.225", "1193053.22", false),
            ("1193053.2349", "1193053.2251", true),
            ("-0.005", "-0.01", true),
            ("12", "12.00", true),
            ("12.01", "12.00", false),
            ("1e3", "1000", false),
            ("", "0.00", false),
            ("", "", true),
        ] {
            let differs = difference(6, &format!("r\n{found:?}\n"), &format!("r\n{expected:?}\n"));
            assert_eq!(
                differs.is_none(),
                is_same,
                "{found} {expected}: {differs:?}"
            );
        }
    }

    #[test]
    fn averages_are_the_same_as_far_as_they_are_written() {
        for (found, expected, is_same) in [
            ("16.380778", "16.380778626395543", true),
            ("16.380779", "16.380778626395543", true),
            ("16.380776", "16.380778626395543", false),
            ("16.380778", "16.38", true),
            ("16.3862", "16.38", false),
            ("", "16.38", false),
        ] {
            let differs = difference(14, &format!("r\n{found:?}\n"), &format!("r\n{expected}\n"));
            assert_eq!(
                differs.is_none(),
                is_same,
                "{found} {expected}: {differs:?}"
            );
        }
    }

    #[test]
    fn rows_that_the_order_leaves_equal_may_change_places_and_others_not() {
        let right = "k,v\n1,30.00\n2,20.00\n3,20.00\n";
        assert_eq!(difference(11, "k,v\n1,30\n3,20\n2,20\n", right), None);
        let swapped = difference(11, "k,v\n2,20\n1,30\n3,20\n", right);
        assert_eq!(
            swapped.as_deref(),
            Some("row 1, column 2: \"20\", not \"30.00\"")
        );
        let other = difference(11, "k,v\n1,30\n2,20\n4,20\n", right);
        assert_eq!(other.as_deref(), Some("row 3, column 1: \"4\", not \"3\""));
    }

    #[test]
    fn missing_rows_and_columns_are_told() {
        let right = "k,v\n1,30.00\n";
        assert_eq!(
            difference(11, "k,v\n", right).as_deref(),
            Some("0 rows, not 1")
        );
        let narrow = difference(11, "k\n1\n", right);
        assert_eq!(narrow.as_deref(), Some("row 1 has 1 columns, not 2"));
    }

    #[test]
    fn batches_are_written_as_the_files_are() {
        let decimals = Decimal128Array::from(vec![Some(43968723), None]);
        let columns: Vec<(&str, ArrayRef)> = vec![
            (
                "text",
                Arc::new(StringViewArray::from(vec!["Customer#000000667", "b  "])),
            ),
            ("key", Arc::new(Int64Array::from(vec![667, -1]))),
            ("date", Arc::new(Date32Array::from(vec![9_424, 0]))),
            (
                "sum",
                Arc::new(decimals.with_precision_and_scale(15, 2).unwrap()),
            ),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let expected =
            "t,k,d,s\nCustomer#000000667,667,1995-10-21,439687.23\nb,-1,1970-01-01,\"\"\n";
        assert_eq!(Answer::of_batches(&[batch]).unwrap(), answer(expected));
    }

    #[test]
    fn what_is_not_csv_is_refused() {
        assert!(Answer::read_csv(b"a,b\n1,2,3\n").is_err());
        let error = Answer::read_file(Path::new("/nowhere/q01.csv")).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere/q01.csv: "));
    }
}
