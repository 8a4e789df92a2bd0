//! The description of a statement's part for a worker, which plans it.
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

use bytes::Bytes;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use serde::de::DeserializeOwned;
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
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    push(&mut bytes, &json(stated)?)?;
    push(&mut bytes, &row_to_bytes(told, parameters)?)?;
    Ok(bytes)
}

/// The bytes of a part of a statement whose own bytes are these.
pub(super) fn part_bytes(statement: &[u8], part: &Part, values: &[ScalarValue]) -> Result<Bytes> {
    let mut bytes = statement.to_vec();
    push(&mut bytes, &json(part)?)?;
    bytes.extend(row_to_bytes(&[], values)?);
    Ok(bytes.into())
}

impl Description {
    pub(super) fn of_bytes(bytes: &Bytes) -> Result<Self> {
        let mut rest = bytes.clone();
        let stated = of_json(&take(&mut rest)?)?;
        let (told, parameters) = of_row(&take(&mut rest)?)?;
        let key = bytes.slice(..bytes.len() - rest.len());
        let part = of_json(&take(&mut rest)?)?;
        let (_, values) = of_row(&rest)?;
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

fn json(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| DataFusionError::External(Box::new(error)))
}

fn of_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| DataFusionError::External(Box::new(error)))
}

fn push(bytes: &mut Vec<u8>, piece: &[u8]) -> Result<()> {
    let length = u32::try_from(piece.len()).map_err(|_| damaged("is too long"))?;
    bytes.extend(length.to_le_bytes());
    bytes.extend(piece);
    Ok(())
}

/// Takes a piece off the front.
fn take(bytes: &mut Bytes) -> Result<Bytes> {
    let length = bytes.split_first_chunk().map(|(length, _)| *length);
    let length = length.ok_or_else(|| damaged("ends early"))?;
    let end = (u32::from_le_bytes(length) as usize).saturating_add(length.len());
    if end > bytes.len() {
        return Err(damaged("ends early"));
    }
    Ok(bytes.split_to(end).slice(length.len()..))
}

fn damaged(what: &str) -> DataFusionError {
    let message = format!("a statement's description {what}");
    orrery_distributed::Error::Damaged(message).into()
}

fn of_row(bytes: &[u8]) -> Result<ToldValues> {
    row_from_bytes(bytes)?.ok_or_else(|| damaged("has no row of values"))
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
