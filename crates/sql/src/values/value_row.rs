//! The encoding of parameter values and types, for other processes.
//!
//! Nothing where there are none; else an Arrow IPC stream of one row. It has a column `type` for
//! each place of which something may be told, which is of that type and NULL (its metadata say so
//! where nothing was told), and a column `value` for each value.

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, new_null_array};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::common::{Result, ScalarValue};

/// Marks the field of a parameter of whose type nothing was told.
const UNTOLD: &str = "untold";
const TYPE: &str = "type";
const VALUE: &str = "value";

/// Types as far as they were told, and values.
pub(crate) type ToldValues = (Vec<Option<DataType>>, Vec<ScalarValue>);

/// Types of places, as far as they were told, and values of places.
pub(crate) fn row_to_bytes(told: &[Option<DataType>], values: &[ScalarValue]) -> Result<Vec<u8>> {
    if told.is_empty() && values.is_empty() {
        return Ok(Vec::new());
    }
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for told in told {
        let untold = told.is_none().then(|| (UNTOLD.to_owned(), String::new()));
        let told = told.clone().unwrap_or(DataType::Null);
        columns.push(new_null_array(&told, 1));
        let field = Field::new(TYPE, told, true);
        fields.push(field.with_metadata(untold.into_iter().collect()));
    }
    for value in values {
        fields.push(Field::new(VALUE, value.data_type(), true));
        columns.push(value.to_array()?);
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?)
}

/// What [`row_to_bytes`] was given. None where it is no such row.
///
/// # Errors
/// When it is no Arrow IPC.
pub(crate) fn row_from_bytes(bytes: &[u8]) -> Result<Option<ToldValues>> {
    let (mut told, mut values) = (Vec::new(), Vec::new());
    if bytes.is_empty() {
        return Ok(Some((told, values)));
    }
    let Some(batch) = StreamReader::try_new(bytes, None)?.next().transpose()? else {
        return Ok(None);
    };
    if batch.num_rows() != 1 {
        return Ok(None);
    }
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        match field.name().as_str() {
            TYPE => {
                let is_untold = field.metadata().contains_key(UNTOLD);
                told.push((!is_untold).then(|| field.data_type().clone()));
            }
            VALUE => values.push(ScalarValue::try_from_array(column, 0)?),
            _ => return Ok(None),
        }
    }
    Ok(Some((told, values)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_types_and_those_that_were_told() {
        let told = vec![Some(DataType::Int64), None, Some(DataType::Null)];
        let values = vec![
            ScalarValue::Int64(None),
            ScalarValue::from("text"),
            ScalarValue::Decimal128(Some(5), 3, 1),
            ScalarValue::Null,
        ];
        for (told, values) in [
            (told.clone(), values.clone()),
            (told, vec![]),
            (vec![], values),
            (vec![None], vec![]),
            (vec![], vec![]),
        ] {
            let bytes = row_to_bytes(&told, &values).unwrap();
            assert_eq!(row_from_bytes(&bytes).unwrap(), Some((told, values)));
            assert!(bytes.is_empty() || row_from_bytes(&bytes[..bytes.len() / 2]).is_err());
        }
    }
}
