//! Estimates: rows of items, groups and joins, and ids that pass filters.
//!
//! Counts and distinct values of single patterns are those of [`crate::statistics`].
//! [`expectations`] puts them together for items and groups, and describes the join of a group's
//! items to [`cardinality`], which knows nothing but numbers.

pub(super) mod cardinality;
pub(super) mod expectations;
pub(super) mod id_ranges;
pub(super) mod text_prefixes;
