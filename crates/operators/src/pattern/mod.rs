//! Basic graph patterns over the sorted permutations, as one fused operator.
//!
//! ```text
//!   input batch (or one empty row)
//!        |            split by which join variables are unbound
//!        v
//!   [ step 1 ]  sort keys -> seek -> read columns -> checks -> gather -> filters
//!        |            chunks of bounded size, depth first
//!        v
//!   [ step n ]
//!        |            inner | optional | semi | anti | mark
//!        v
//!   output batches: one nullable UInt64 column per variable
//! ```
//!
//! A [`PatternExec`] evaluates several quad patterns in the order the planner
//! gave. Each step is compiled once (`compiler`): which permutation, which of its
//! leading columns are known (constants or columns bound before), which columns to
//! read, what is left to check. At run time (`run`) every step keeps its
//! position, so that a key with a million matches comes out in bounded chunks, the
//! memory in use is bounded by steps x chunk size, and a `LIMIT` stops early.
//!
//! Patterns that bind one variable with all else known are one step (`compiler::arrange`): the
//! variable's values are the intersection of sorted ranges (`intersection`). So a cyclic pattern
//! costs what a worst-case-optimal join costs, whatever its nodes' degrees are.
//!
//! Invariants: no output ordering is claimed; ids are exact, so equality of ids is
//! equality of terms. What it does not do: choose the order of the patterns, estimate,
//! or spill (nothing here grows with the data).

mod chunk;
mod compiler;
mod detached;
mod display;
mod filter;
mod found_ids;
mod given_ids;
mod id_set;
mod intersection;
pub mod ordered;
mod plan;
mod program;
mod run;
mod specification;
mod steps;
#[cfg(test)]
mod tests;

pub use found_ids::FoundIds;
pub use given_ids::GivenIds;
pub use plan::{PatternExec, PatternReport, StepReport};
pub use specification::{
    GraphScope, ObjectRanges, PatternMode, PatternSpecification, PatternStep, QuadPattern, Slot,
};
pub use steps::sort::sort_rows;

pub(crate) use chunk::Chunk;
pub(crate) use detached::DetachedPattern;
pub(crate) use display::{
    graph_scope as describe_graph_scope, quad_pattern as describe_pattern, slot as describe_slot,
};
pub(crate) use filter::{ChunkFilter, expression_variables};
pub(crate) use found_ids::Published;
