//! The serialized part of a distributed statement, from which a worker makes its plan.
//!
//! ```text
//! length, 4 bytes    the statement: JSON of `Stated`
//! length, 4 bytes    values of its parameters, and types that were told of them (`value_row`)
//! length, 4 bytes    which part of it: JSON of `Part`
//! the rest           values of the scalar subqueries of that part (`value_row`)
//! ```
//!
//! Lengths are little-endian. The first two parts are the same for all parts of a statement, and by
//! them its plan is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use bytes::Bytes;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use orrery_wire_fields::{FieldReader, FieldWriter};
use serde::{Deserialize, Serialize};

use crate::values::value_row::{ToldValues, row_from_bytes, row_to_bytes};

/// Schemas whose tables may all be read, and tables by their schemas.
pub(super) type Reads = (BTreeSet<String>, BTreeMap<String, BTreeSet<String>>);

/// A statement, and what its plan depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Stated {
    pub(super) text: String,
    pub(super) commit: u64,
    pub(super) user: String,
    pub(super) settings: Vec<(String, String)>,
    /// What the user may read; all tables if nothing is said.
    pub(super) reads: Option<Reads>,
}

/// A part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) partitions: usize,
    /// The place of a scalar subquery among those of the statement, of one within that, and so on;
    /// the statement itself if empty.
    pub(super) path: Vec<usize>,
}

/// All that is told.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) stated: Stated,
    pub(super) parameters: Vec<ScalarValue>,
    pub(super) told: Vec<Option<DataType>>,
    pub(super) part: Part,
    pub(super) values: Vec<ScalarValue>,
    /// The bytes of the statement and its parameters.
    pub(super) key: Bytes,
}

/// The bytes of a statement and its parameters.
pub(super) fn statement_bytes(
    stated: &Stated,
    parameters: &[ScalarValue],
    told: &[Option<DataType>],
) -> Result<Bytes> {
    let mut fields = FieldWriter::default();
    fields.json(stated).map_err(damaged)?;
    let row = row_to_bytes(told, parameters)?;
    fields.bytes(&row).map_err(damaged)?;
    Ok(fields.finish())
}

/// The bytes of a part of a statement whose own bytes are these.
pub(super) fn part_bytes(statement: &[u8], part: &Part, values: &[ScalarValue]) -> Result<Bytes> {
    let mut fields = FieldWriter::default();
    fields.rest(statement);
    fields.json(part).map_err(damaged)?;
    fields.rest(&row_to_bytes(&[], values)?);
    Ok(fields.finish())
}

impl Description {
    pub(super) fn of_bytes(bytes: &Bytes) -> Result<Self> {
        let mut fields = FieldReader::new(bytes.clone());
        let stated = fields.json().map_err(damaged)?;
        let (told, parameters) = of_row(&fields.bytes().map_err(damaged)?)?;
        let key = bytes.slice(..bytes.len() - fields.left());
        let part = fields.json().map_err(damaged)?;
        let (_, values) = of_row(&fields.rest())?;
        Ok(Self {
            stated,
            parameters,
            told,
            part,
            values,
            key,
        })
    }
}

fn damaged(what: impl Display) -> DataFusionError {
    let message = format!("a statement's description: {what}");
    orrery_distributed::Error::Damaged(message).into()
}

fn of_row(bytes: &[u8]) -> Result<ToldValues> {
    row_from_bytes(bytes)?.ok_or_else(|| damaged("it has no row of values"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated() -> Stated {
        let mut reads = Reads::default();
        reads.0.insert("sales".to_owned());
        reads
            .1
            .entry("public".to_owned())
            .or_default()
            .insert("t".to_owned());
        Stated {
            text: "select $1".to_owned(),
            commit: 7,
            user: "ann".to_owned(),
            settings: vec![("timezone".to_owned(), "UTC".to_owned())],
            reads: Some(reads),
        }
    }

    fn values() -> Vec<ScalarValue> {
        let list = ScalarValue::new_list_nullable(
            &[ScalarValue::Int64(Some(1)), ScalarValue::Int64(None)],
            &DataType::Int64,
        );
        vec![
            ScalarValue::Int32(Some(-1)),
            ScalarValue::Utf8View(Some("long enough to be in a buffer".to_owned())),
            ScalarValue::Decimal128(Some(1_234), 10, 2),
            ScalarValue::Float64(Some(f64::NAN)),
            ScalarValue::Int64(None),
            ScalarValue::Null,
            ScalarValue::List(list),
            ScalarValue::TimestampMicrosecond(Some(1), Some("UTC".into())),
            ScalarValue::Binary(Some(vec![0, 255])),
        ]
    }

    #[test]
    fn what_is_told_arrives_as_it_was() {
        let told = [None, Some(DataType::Utf8), None, Some(DataType::Null)];
        let part = Part {
            partitions: 16,
            path: vec![1, 0],
        };
        let statement = statement_bytes(&stated(), &values(), &told).unwrap();
        let bytes = part_bytes(&statement, &part, &values()).unwrap();
        let description = Description::of_bytes(&bytes).unwrap();
        assert_eq!(description.stated, stated());
        assert_eq!(description.parameters, values());
        assert_eq!(description.told, told);
        assert_eq!(description.part, part);
        assert_eq!(description.values, values());
        assert_eq!(description.key, statement);
    }

    #[test]
    fn nothing_is_an_empty_row() {
        let part = Part {
            partitions: 4,
            path: Vec::new(),
        };
        let statement = statement_bytes(&stated(), &[], &[]).unwrap();
        let bytes = part_bytes(&statement, &part, &[]).unwrap();
        let description = Description::of_bytes(&bytes).unwrap();
        assert!(description.parameters.is_empty() && description.values.is_empty());
        assert!(description.told.is_empty());
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let part = Part {
            partitions: 4,
            path: Vec::new(),
        };
        let statement = statement_bytes(&stated(), &values(), &[]).unwrap();
        let bytes = part_bytes(&statement, &part, &values()).unwrap();
        let without_values = part_bytes(&statement, &part, &[]).unwrap().len();
        for end in (0..bytes.len()).filter(|end| *end != without_values) {
            let cut = Description::of_bytes(&bytes.slice(..end));
            // The end of a stream may be missing, its row not.
            let is_whole = cut.as_ref().is_ok_and(|cut| cut.values == values());
            assert!(cut.is_err() || is_whole, "{end} of {}", bytes.len());
        }
    }
}
