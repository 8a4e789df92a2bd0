//! Cached plans, for queries of the same shape whose constants have similar counts.
//!
//! ```text
//! shape, fixed constants -> plans that are kept for these, the one made last first
//!   same base and scope, what was counted without them alike, the same free constants equal each other, each known, counts within a factor of two
//!       yes -> conditions and ranges with the new terms, patterns with the new ids, nodes over these: the plan
//!       no  -> planned as ever, and kept
//! ```
//!
//! What makes a kept plan right for other constants, in this order:
//!
//! * Constants that may differ are those whose places in the algebra a plan takes as they come
//!   ([`KnownShape`](crate::parse::KnownShape)); all others are part of the key.
//! * What the planner read of the data without them are counts of patterns and of ranges of ids,
//!   mostly. These are counted again once for each commit. Whatever else it reads and a plan
//!   follows from (that a term is unknown, that a predicate has no literals, which named graphs or
//!   predicates there are) binds the plan to its commit
//!   ([`QueryContext::note_bound_to_commit`](orrery_operators::context::QueryContext::note_bound_to_commit)).
//!   Ids of terms, and ranges of ids by their texts, are those of a base; what came after it is in
//!   all ranges.
//! * What it read with them are counts. That there is none makes it leave a part out; so each
//!   pattern that had no rows must have none now. That others have rows is no premise: a part that
//!   finds nothing gives nothing. Where a count is not known by the constants of its pattern, the
//!   plan is not kept; nor where a range of ids had no rows and any constant of a condition may
//!   differ.
//! * Ranges of ids are made anew, with the function that made them, of the conditions that their
//!   own pattern has. Where these are not all that they were made of, and any constant of a
//!   condition may differ, the plan is not kept.
//! * In conditions stand the constants of conditions only. Truth values never differ, for the
//!   planner has some of its own there.
//! * A plan with the id of a term that the data do not have, or that its asker does not see, is not
//!   kept: such an id is one of its query, and which of both it is must not show
//!   ([`QueryContext::note_plan_of_its_own`](orrery_operators::context::QueryContext::note_plan_of_its_own)).
//! * Terms of free constants stand for nothing else in the query, or the plan is not kept; so each
//!   place of such a term in the plan is theirs.
//! * Free constants that are equal in one query and not in the other make another plan.
//!
//! Everything else is about speed: counts within a factor of two are what the order of a join is
//! kept for, too ([`OrderCache`](crate::plan::OrderCache)). Nothing that is kept holds a snapshot,
//! a view or a context.
//!
//! Bounded by [`cache::PLAN_BYTES_MAX`], beyond which the shape and fixed constants go that were
//! not asked for longest with all their plans, and by [`cache::VARIANTS_MAX`], beyond which the
//! plan goes that was made first. The list of graphs that an asker sees is a part of what is kept;
//! for a very long one nothing is.

pub(crate) mod cache;
pub(crate) mod query;

#[cfg(test)]
mod tests;
