//! The evaluation of a function on slices of a batch.
//!
//! Between slices it is looked whether anybody still waits; meanwhile the thread is none that other
//! tasks wait for. Constants are constants of each slice. What comes of slices is put together: a
//! constant where it is the same one for all.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt64Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{concat, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};

use crate::execute::blocking::while_others_run;
use crate::execute::stopping::require_somebody;

/// Functions of two arrays that forget NULL where no array of a batch has an element: an answer
/// depended on the rows beside it.
const LOSE_NULLS: [&str; 2] = ["array_has_all", "array_has_any"];

/// Calls a function for slices of rows; `end` says where one ends, by its beginning.
pub(super) fn in_slices(
    function: &ScalarUDF,
    args: &ScalarFunctionArgs,
    end: impl Fn(usize) -> Result<usize>,
) -> Result<ColumnarValue> {
    while_others_run(|| computed(function, args, end))
}

fn computed(
    function: &ScalarUDF,
    args: &ScalarFunctionArgs,
    end: impl Fn(usize) -> Result<usize>,
) -> Result<ColumnarValue> {
    let mut results: Vec<(ColumnarValue, usize)> = Vec::new();
    let mut begin = 0;
    while begin < args.number_rows || results.is_empty() {
        require_somebody(&args.config_options)?;
        let end = end(begin)?;
        let rows = end - begin;
        if rows == args.number_rows {
            return called(function, args.clone());
        }
        let of_slice = args.args.iter().map(|arg| sliced(arg, begin, rows));
        let slice = ScalarFunctionArgs {
            args: of_slice.collect::<Result<_>>()?,
            arg_fields: args.arg_fields.clone(),
            number_rows: rows,
            return_field: Arc::clone(&args.return_field),
            config_options: Arc::clone(&args.config_options),
        };
        let result = called(function, slice)?;
        results.push((result, rows));
        begin = end;
    }
    joined(&results)
}

/// What a function gives for a batch, or a slice of it.
pub(super) fn called(function: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    if !LOSE_NULLS.contains(&function.name()) {
        return function.invoke_with_args(args);
    }
    let nulls = args.args.iter().map(|arg| match arg {
        ColumnarValue::Array(array) => array.logical_nulls(),
        ColumnarValue::Scalar(_) => None,
    });
    let nulls: Vec<Option<NullBuffer>> = nulls.collect();
    let result = function.invoke_with_args(args)?;
    Ok(match &result {
        ColumnarValue::Array(array) if *array.data_type() == DataType::Boolean => {
            let array = array.as_boolean();
            let nulls = nulls.iter().map(Option::as_ref);
            let nulls = NullBuffer::union_many(nulls.chain([array.nulls()]));
            let values = array.values().clone();
            ColumnarValue::Array(Arc::new(BooleanArray::new(values, nulls)))
        }
        _ => result,
    })
}

fn sliced(arg: &ColumnarValue, begin: usize, rows: usize) -> Result<ColumnarValue> {
    let ColumnarValue::Array(array) = arg else {
        return Ok(arg.clone());
    };
    Ok(ColumnarValue::Array(match array.data_type().is_nested() {
        // Some functions look at all that a list is a part of: it is copied, so that this is no
        // more than the slice.
        true => {
            let places: UInt64Array = (begin as u64..(begin + rows) as u64).collect();
            take(array, &places, None)?
        }
        false => array.slice(begin, rows),
    }))
}

/// What comes of slices of so many rows, as what comes of the batch.
fn joined(results: &[(ColumnarValue, usize)]) -> Result<ColumnarValue> {
    let Some(((first, _), others)) = results.split_first() else {
        return internal_err!("a batch has slices");
    };
    if let ColumnarValue::Scalar(value) = first
        && others
            .iter()
            .all(|(other, _)| matches!(other, ColumnarValue::Scalar(other) if other == value))
    {
        return Ok(first.clone());
    }
    let arrays = results
        .iter()
        .map(|(result, rows)| result.to_array(*rows))
        .collect::<Result<Vec<ArrayRef>>>()?;
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    Ok(ColumnarValue::Array(concat(&arrays)?))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, ListArray, StringArray};
    use datafusion::arrow::datatypes::{Field, FieldRef, Int64Type};
    use datafusion::common::ScalarValue;
    use datafusion::common::config::ConfigOptions;
    use datafusion::execution::SessionStateDefaults;
    use datafusion::logical_expr::ReturnFieldArgs;

    use super::*;

    fn call(name: &str, args: Vec<ColumnarValue>, ends: &[usize]) -> ColumnarValue {
        let functions = SessionStateDefaults::default_scalar_functions();
        let function = functions.iter().find(|it| it.name() == name).unwrap();
        let fields = args.iter().map(ColumnarValue::data_type);
        let fields = fields.map(|of| Arc::new(Field::new("a", of, true)));
        let fields: Vec<FieldRef> = fields.collect();
        let of_args = ReturnFieldArgs {
            arg_fields: &fields,
            scalar_arguments: &vec![None; fields.len()],
        };
        let args = ScalarFunctionArgs {
            args,
            return_field: function.return_field_from_args(of_args).unwrap(),
            arg_fields: fields,
            number_rows: *ends.last().unwrap(),
            config_options: Arc::new(ConfigOptions::new()),
        };
        let end = |begin| Ok(ends.iter().copied().find(|end| *end > begin).unwrap());
        in_slices(function, &args, end).unwrap()
    }

    fn texts(rows: usize) -> ColumnarValue {
        let texts = (0..rows).map(|row| (row % 7 != 3).then(|| format!("text {}", row * 3)));
        ColumnarValue::Array(Arc::new(texts.collect::<StringArray>()))
    }

    #[test]
    fn slices_give_what_the_batch_gives() {
        let lists = (0..50_i64).map(|row| {
            let elements = (0..row).map(|it| Some(it % 5));
            (row % 6 != 1).then(|| elements.collect::<Vec<_>>())
        });
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
        let lists = ColumnarValue::Array(Arc::new(lists));
        let numbers: Int64Array = (0..50).map(|row| row % 4).collect();
        let numbers = ColumnarValue::Array(Arc::new(numbers));
        let text = |text: &str| ColumnarValue::Scalar(ScalarValue::from(text));
        for (name, args) in [
            ("upper", vec![texts(50)]),
            ("replace", vec![texts(50), text("t"), text("long")]),
            ("levenshtein", vec![texts(50), text("text 12")]),
            ("strpos", vec![text("text 27"), texts(50)]),
            ("regexp_count", vec![texts(50), text("[0-9]")]),
            ("array_has", vec![lists.clone(), numbers.clone()]),
            ("array_distinct", vec![lists.clone()]),
            ("array_has_all", vec![lists.clone(), lists]),
        ] {
            let whole = call(name, args.clone(), &[50]).to_array(50).unwrap();
            for ends in [&[1, 2, 50][..], &[25, 50], &[7, 8, 9, 33, 50]] {
                let sliced = call(name, args.clone(), ends).to_array(50).unwrap();
                assert_eq!(&sliced, &whole, "{name} {ends:?}");
            }
        }
    }

    #[test]
    fn what_is_one_value_for_all_slices_is_a_constant() {
        let null = ColumnarValue::Scalar(ScalarValue::Utf8(None));
        let is_constant = |args| {
            let found = call("find_in_set", args, &[3, 10]);
            matches!(found, ColumnarValue::Scalar(_))
        };
        assert!(is_constant(vec![texts(10), null]));
        let some = ColumnarValue::Scalar(ScalarValue::from("a,text 3"));
        assert!(!is_constant(vec![texts(10), some]));
    }
}
