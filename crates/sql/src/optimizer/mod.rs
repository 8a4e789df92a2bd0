//! Optimizer rules beside DataFusion's: fixes and join order.
//!
//! `join_order` orders the joins of a plan. The rules of `mended` keep plans from faults of
//! DataFusion's rules.

pub(crate) mod join_order;
pub(crate) mod mended;
