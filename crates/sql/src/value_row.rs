//! Values of parameters, and what was told of their types, as bytes: for other processes.
//!
//! Nothing where there are none; else an Arrow IPC stream of one row. For each place it has two columns: `type`, which is of the type that was told and NULL (its
//! metadata say so where none was told), and `value`.

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, new_null_array};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::common::{Result, ScalarValue};

/// Marks the field of a parameter of whose type nothing was told.
const UNTOLD: &str = "untold";

/// Types as far as they were told, and values: as many as there are places.
pub(crate) type ToldValues = (Vec<Option<DataType>>, Vec<ScalarValue>);

/// Types of places, as far as they were told, and their values, as far as there are any.
pub(crate) fn row_to_bytes(told: &[Option<DataType>], values: &[ScalarValue]) -> Result<Vec<u8>> {
    let places = told.len().max(values.len());
    if places == 0 {
        return Ok(Vec::new());
    }
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for place in 0..places {
        let told = told.get(place).cloned().flatten();
        let untold = told.is_none().then(|| (UNTOLD.to_owned(), String::new()));
        let told = told.unwrap_or(DataType::Null);
        columns.push(new_null_array(&told, 1));
        let told = Field::new("type", told, true);
        fields.push(told.with_metadata(untold.into_iter().collect()));
        let value = values.get(place).unwrap_or(&ScalarValue::Null);
        fields.push(Field::new("value", value.data_type(), true));
        columns.push(value.to_array()?);
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?)
}

/// What [`row_to_bytes`] was given, NULL where that was no value. None where it is no such row.
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
            "type" => {
                let is_untold = field.metadata().contains_key(UNTOLD);
                told.push((!is_untold).then(|| field.data_type().clone()));
            }
            "value" => values.push(ScalarValue::try_from_array(column, 0)?),
            _ => return Ok(None),
        }
    }
    Ok((told.len() == values.len()).then_some((told, values)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_types_and_those_that_were_told() {
        let told = vec![
            Some(DataType::Int64),
            None,
            Some(DataType::Decimal128(9, 2)),
        ];
        let values = vec![
            ScalarValue::Int64(None),
            ScalarValue::from("text"),
            ScalarValue::Decimal128(Some(5), 3, 1),
        ];
        let bytes = row_to_bytes(&told, &values).unwrap();
        assert_eq!(
            row_from_bytes(&bytes).unwrap(),
            Some((told.clone(), values))
        );
        let none = row_to_bytes(&[], &[]).unwrap();
        assert_eq!(row_from_bytes(&none).unwrap(), Some((vec![], vec![])));
        let untold = row_to_bytes(&told, &[]).unwrap();
        let (back, values) = row_from_bytes(&untold).unwrap().unwrap();
        assert_eq!((back, values), (told, vec![ScalarValue::Null; 3]));
        assert!(row_from_bytes(&bytes[..bytes.len() / 2]).is_err());
    }
}
