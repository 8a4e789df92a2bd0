//! A compiled spatial join: the columns it reads and returns.

use arrow::datatypes::SchemaRef;

use super::condition::PlacesCondition;
use crate::touch_counter::TouchCounter;

/// Where things are.
#[derive(Debug)]
pub(super) struct CompiledPlaces {
    pub(super) condition: PlacesCondition,
    pub(super) left_column: usize,
    pub(super) right_column: usize,
    pub(super) output: Vec<Side>,
    pub(super) schema: SchemaRef,
    /// Pairs that the condition dropped.
    pub(super) dropped: TouchCounter,
}

/// Where a variable comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Left(usize),
    Right(usize),
}
