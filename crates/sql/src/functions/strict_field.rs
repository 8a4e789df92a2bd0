//! The result field of strict functions, NULL where an argument is.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::logical_expr::ReturnFieldArgs;

/// The field of its result: it may be NULL where an argument may be.
pub(crate) fn strict_field(name: &str, of: DataType, args: &ReturnFieldArgs) -> FieldRef {
    let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
    Arc::new(Field::new(name, of, is_nullable))
}
