//! Plans of earlier queries, for queries of the same shape whose constants have similar counts.
//!
//! ```text
//! shape, fixed constants -> plans that are kept for these, the one used last first
//!   same commit and scope, the same free constants equal each other, each known, counts within a factor of two
//!       yes -> conditions and ranges with the new terms, patterns with the new ids, nodes over these: the plan
//!       no  -> planned as ever, and kept
//! ```
//!
//! What makes a kept plan right for other constants, in this order:
//!
//! * Constants that may differ are those whose places in the algebra a plan takes as they come ([`KnownShape`](crate::parse::KnownShape)); all others are part of the key.
//! * What the planner read of the data without them is the same, for it is the same commit, seen through the same scope.
//! * What it read with them are counts. That there is none makes it leave a part out; so each pattern that had no rows must have none now.
//!   That others have rows is no premise: a part that finds nothing gives nothing. Where a count is not known by the constants of its
//!   pattern, the plan is not kept.
//! * Terms of free constants stand for nothing else in the query, or the plan is not kept; so each place of such a term in the plan is theirs.
//! * Free constants that are equal in one query and not in the other make another plan.
//!
//! Everything else is about speed: counts within a factor of two are what the order of a join is kept for, too
//! ([`OrderCache`](crate::plan::OrderCache)). Nothing that is kept holds a snapshot or a view.
//!
//! Bounded by [`cache::PLAN_BYTES_MAX`] and [`cache::VARIANTS_MAX`].

pub(crate) mod cache;
pub(crate) mod query;
