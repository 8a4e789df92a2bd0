//! The planner: from groups to physical plans.
//!
//! ```text
//! Group --rewrite--> Group --estimate, order--> order of its items --build--> Relation: nodes, columns, expected rows
//!                 the whole plan --parallel--> its large parts in several partitions --compile--> programs of its patterns
//! ```
//!
//! Every plan node gives solutions as columns of ids, in one partition; where the whole plan is
//! much work, its parts are spread over several at the end ([`parallel`]). A [`Relation`] is such a
//! plan with what the [`Planner`] knows of it. A group is rewritten ([`rewrite`]), then planned in
//! two parts: its items are ordered ([`estimate`], [`order`]) and joined ([`build`]), runs of
//! patterns becoming one fused `PatternExec`; then its steps are put on top, one after the other.
//! Where a group on the right side of a step is too much to compute whole, it is *reduced* first:
//! it starts from the distinct values that the left side has for the shared variables ([`rewrite`],
//! a semi-join).
//!
//! Only columns that something above needs are carried.

mod build;
mod compile;
mod estimate;
mod expected_rows;
mod kept;
mod nearness;
mod order;
mod parallel;
mod planner;
mod relation;
mod rewrite;

pub(crate) use compile::compile_patterns;
pub(crate) use expected_rows::{PlanEstimates, Positions};
pub use kept::cache::PlanCounts;
pub(crate) use kept::cache::{PlanCache, PlanKey};
pub(crate) use kept::query::{Constants, KeptAnswer, KeptQuery, MadePlan};
pub(crate) use order::order_cache::OrderCache;
pub use order::order_cache::OrderCounts;
pub(crate) use planner::Planner;
pub(crate) use relation::Relation;
