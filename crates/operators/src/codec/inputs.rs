//! The check of a decoded node's inputs: their number and kind.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_physical_plan::ExecutionPlan;

use super::error::{CodecError, Result};

type Plan = Arc<dyn ExecutionPlan>;

pub(super) fn wrong_inputs() -> CodecError {
    CodecError::damaged("a node has too many inputs, or too few")
}

pub(super) fn exactly<const N: usize>(inputs: Vec<Plan>) -> Result<[Plan; N]> {
    inputs.try_into().map_err(|_| wrong_inputs())
}

pub(super) fn one(inputs: Vec<Plan>) -> Result<Plan> {
    let [input] = exactly(inputs)?;
    Ok(input)
}

pub(super) fn none(inputs: Vec<Plan>) -> Result<()> {
    let [] = exactly(inputs)?;
    Ok(())
}

pub(super) fn at_most_one(mut inputs: Vec<Plan>) -> Result<Option<Plan>> {
    let input = inputs.pop();
    none(inputs)?;
    Ok(input)
}

/// Inputs whose rows become those of one node: all have as many columns, of the same types.
pub(super) fn same_columns(inputs: &[Plan]) -> Result<()> {
    let types = |plan: &Plan| -> Vec<DataType> {
        let schema = plan.schema();
        let fields = schema.fields().iter();
        fields.map(|field| field.data_type().clone()).collect()
    };
    match inputs
        .windows(2)
        .all(|pair| types(&pair[0]) == types(&pair[1]))
    {
        true => Ok(()),
        false => Err(CodecError::damaged("inputs of one node have other columns")),
    }
}

pub(super) fn with_column(input: Plan, column: usize) -> Result<Plan> {
    match column < input.schema().fields().len() {
        true => Ok(input),
        false => Err(CodecError::damaged(format!("there is no column {column}"))),
    }
}
