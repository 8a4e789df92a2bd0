//! Rewrites of groups into equivalent groups that run faster.
//!
//! | file | rewrite |
//! | --- | --- |
//! | [`filter_rewrites`] | filters become joins, constants and ranges of ids |
//! | [`gram_filters`], [`text_tests`] | tests of texts become joins with the literals that an index of trigrams finds |
//! | [`near_places`] | filters by a place that is given become joins with what the index of places has |
//! | [`semi_join`] | the right side of a join starts from the values of the left |
//! | [`correlation`] | a group that is started from outer rows gives its inner groups their values |
//! | [`eager_aggregation`], [`parts`], [`totals`] | what hangs on the rest by some variables is aggregated below the join |
//! | [`counted_branches`] | branches of unions and optional parts are counted before they are joined |
//! | [`complement`] | aggregates over a product without the pairs that match |
//! | [`existence`] | what only has to have a solution is not ordered, grouped or made distinct |
//! | [`distinct_skip_scan`] | distinct values by skipping from one to the next |
//! | [`path_chains`] | chains of patterns and paths as one path |
//! | [`shared_subqueries`], [`repeated`], [`subquery_text`] | subqueries that stand there twice are computed once |
//! | [`shared_matching`] | patterns that a group and a subquery have in common are matched once |

mod complement;
pub(super) mod correlation;
mod counted_branches;
pub(super) mod distinct_skip_scan;
mod eager_aggregation;
mod existence;
mod filter_rewrites;
mod gram_filters;
mod near_places;
pub(super) mod parts;
mod path_chains;
pub(super) mod repeated;
mod semi_join;
mod shared_matching;
mod shared_subqueries;
mod subquery_text;
pub(super) mod text_tests;
mod totals;
