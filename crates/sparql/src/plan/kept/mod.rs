//! Cached plans, for queries of the same shape whose constants have similar counts.
//!
//! ```text
//! shape, fixed constants -> plans that are cached for these, the one made last first
//!   same base and scope, what was counted without them alike, the same free constants equal each other,
//!   each known, counts within a factor of two
//!       yes -> conditions and ranges with the new terms, patterns with the new ids, nodes over these: the plan
//!       no  -> planned as ever, and cached
//! ```
//!
//! What makes a cached plan right for other constants, in this order:
//!
//! * Constants that may differ (free constants) are those whose places in the algebra a plan takes
//!   as they come ([`KnownShape`](crate::parse::KnownShape)); all others are part of the key.
//! * Without the free constants the planner mostly reads counts of patterns and of ranges of ids.
//!   These are counted again once for each commit. Anything else that a plan follows from (that a
//!   term is unknown, that a predicate has no literals, which named graphs or predicates there are)
//!   binds the plan to its commit
//!   ([`note_bound_to_commit`](orrery_operators::context::QueryContext::note_bound_to_commit)).
//!   Ids of terms, and ranges of ids by texts, belong to a base; later terms are in all ranges.
//! * With the free constants the planner reads counts. A count of zero makes it leave a part out;
//!   so each pattern that had no rows must have none now. A count above zero is no premise: a part
//!   that finds nothing gives nothing. Where a count is not known by the constants of its pattern,
//!   the plan is not cached; nor where a range of ids had no rows and any constant of a condition
//!   may differ.
//! * Ranges of ids are made anew, with the function that made them, of the conditions that their
//!   own pattern has. Where these are not all that they were made of, and any constant of a
//!   condition may differ, the plan is not cached.
//! * Conditions contain constants of conditions only. Truth values never differ, as the planner
//!   puts some of its own there.
//! * A plan with the id of a term that the data do not have, or that its asker does not see, is not
//!   cached: such an id is valid for its query alone, and whether the term is unknown or hidden
//!   must not show
//!   ([`note_plan_of_its_own`](orrery_operators::context::QueryContext::note_plan_of_its_own)).
//! * Terms of free constants occur nowhere else in the query, or the plan is not cached; so each
//!   place of such a term in the plan belongs to the free constant.
//! * Free constants that are equal in one query and not in the other make another plan.
//!
//! Everything else is about speed: counts within a factor of two also keep the order of a join
//! ([`OrderCache`](crate::plan::OrderCache)). Nothing that is cached holds a snapshot, a view or a
//! context.
//!
//! The cache is bounded by [`cache::PLAN_BYTES_MAX`], beyond which the least recently used shape
//! and fixed constants go with all their plans, and by [`cache::VARIANTS_MAX`], beyond which the
//! oldest plan goes. The list of graphs that an asker sees is part of a cached plan; for a very
//! long list nothing is cached.

pub(crate) mod cache;
pub(crate) mod query;

#[cfg(test)]
mod tests;
