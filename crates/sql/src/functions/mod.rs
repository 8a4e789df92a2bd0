//! SQL functions, as far as they differ from DataFusion's.
//!
//! `offered` lists all functions and bounds the size of each result. The other files compute what
//! PostgreSQL computes differently, or what DataFusion lacks: [`scalars_of_ours`].

pub(crate) mod arguments;
pub(crate) mod arithmetic;
pub(crate) mod array_has;
pub(crate) mod bytes;
pub(crate) mod bytes_length;
pub(crate) mod decimal_sum;
pub(crate) mod decimal_texts;
mod float_range;
mod float_totals;
pub(crate) mod offered;
pub(crate) mod rounding;
pub(crate) mod strict_field;
pub(crate) mod truncated;

use datafusion::logical_expr::ScalarUDF;

/// The scalar functions that take the place of the engine's of the same names, or that it lacks.
/// Each stands in the lists of `offered`, as the engine's do.
fn scalars_of_ours() -> impl Iterator<Item = ScalarUDF> {
    bytes_length::lengths()
        .into_iter()
        .chain(rounding::roundings())
}
