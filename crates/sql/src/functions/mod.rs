//! SQL functions, as far as they differ from DataFusion's.
//!
//! `offered` lists all functions and bounds the size of each result. The other files compute what
//! PostgreSQL computes differently.

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
