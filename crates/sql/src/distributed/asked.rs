//! The parts of a query that travel with its plan.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;

/// A query as it was asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) text: &'a str,
    pub(crate) commit: u64,
    /// Values of its parameters, in their types.
    pub(crate) values: &'a [ScalarValue],
    /// Types of parameters that were told.
    pub(crate) told: &'a [Option<DataType>],
}

impl<'a> Asked<'a> {
    /// One without parameters.
    pub(crate) fn new(text: &'a str, commit: u64) -> Self {
        Self {
            text,
            commit,
            values: &[],
            told: &[],
        }
    }
}
