//! Fixes for DataFusion's optimizers: rules that give wrong answers are restricted or replaced.
//!
//! ```text
//! dependencies      logical plans:   which columns tell which others, above groups over joins
//! whole_groups      logical plans:   a condition that is true or false for all rows stays above an aggregate without groups
//! unless            logical plans:   rules that are kept from some plans
//! shifts            expressions:     `lead` and `lag` that ignore NULLs
//! orders            physical plans:  which columns are constant, above ROLLUP and its like, outer joins and UNION ALL
//! build_orders      physical plans:  the order of the hashed side of a join
//! range_frames      physical plans:  windows over ranges about the row at hand, where there are NULLs
//! filter_pushdown   physical plans:  filters are not pushed through nodes that have a name twice
//! short_batches     physical plans:  filters gather no more rows than a scan of long ones gives (`crate::files`)
//! sort_keys         physical plans:  computed keys of sorts are counted (`crate::execute::sort_keys`)
//! counted_windows   physical plans:  rows that windows hold are counted (`crate::execute::counted_windows`)
//! grouping_rows     physical plans:  aggregations with many grouping sets read a few rows at a time (`crate::execute::grouping_rows`)
//! second_run        physical plans:  the left side of a nested loop join that does not fit is read anew (`crate::execute::second_run`)
//! stopping          physical plans:  joins, and patterns over long texts, end when nobody waits for their rows
//!                                    any more (`crate::execute::stopping`)
//! ```
//!
//! Each says what would go wrong, so that it can go when the engine below no longer needs it;
//! `crates/sql/tests` has a case for each.

mod build_orders;
mod dependencies;
mod filter_pushdown;
mod nodes;
mod orders;
mod range_frames;
mod shifts;
mod unless;
mod whole_groups;

use std::sync::Arc;

use datafusion::logical_expr::planner::RelationPlanner;
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

use build_orders::{CHOOSES_SIDES, FORGET_BUILD_ORDERS};
use dependencies::{MendDependencies, RelationsWithTrueDependencies};
use filter_pushdown::WhereNamesDiffer;
use nodes::NodeRule;
use orders::FORGET_ORDERS;
use range_frames::{SORTS, WAIT_FOR_PEERS};
use unless::kept;
use whole_groups::{KeepConditionsAbove, MOVES_CONDITIONS};

pub(crate) use shifts::over_whole_partitions;

use crate::execute::counted_windows::counted_windows;
use crate::execute::grouping_rows::few_rows_for_many_sets;
use crate::execute::second_run::joins_that_run_again;
use crate::execute::sort_keys::counted_sorts;
use crate::execute::stopping::{joins_that_stop, patterns_that_stop};
use crate::files::short_batches;
use crate::functions::offered::in_one_step;
use crate::semantics::ordinality::WithOrdinality;

/// DataFusion's rules that ask which columns tell which others.
const ASKS_DEPENDENCIES: [&str; 4] = [
    "replace_distinct_aggregate",
    "eliminate_join",
    "eliminate_duplicated_expr",
    "optimize_projections",
];
/// How DataFusion's rules that push filters begin.
const PUSHES_FILTERS: &str = "FilterPushdown";

/// What plans tables and subqueries in FROM.
pub(crate) fn relation_planners() -> Vec<Arc<dyn RelationPlanner>> {
    vec![
        Arc::new(WithOrdinality),
        Arc::new(RelationsWithTrueDependencies),
    ]
}

/// The rules for logical plans.
pub(crate) fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut mended: Vec<Arc<dyn OptimizerRule + Send + Sync>> = Vec::new();
    for rule in Optimizer::new().rules {
        if ASKS_DEPENDENCIES.contains(&rule.name()) {
            mended.push(Arc::new(MendDependencies));
        }
        if rule.name() == MOVES_CONDITIONS {
            mended.push(Arc::new(KeepConditionsAbove));
        }
        mended.push(kept(rule));
    }
    mended
}

/// The rules that come after all others: these look for joins and sorts as they are.
pub(crate) const LAST: [NodeRule; 8] = [
    NodeRule {
        name: "KeptRowsInOneStep",
        change: in_one_step,
    },
    NodeRule {
        name: "ShortBatches",
        change: short_batches,
    },
    NodeRule {
        name: "CountedSorts",
        change: counted_sorts,
    },
    NodeRule {
        name: "CountedWindows",
        change: counted_windows,
    },
    NodeRule {
        name: "FewRowsForManySets",
        change: few_rows_for_many_sets,
    },
    NodeRule {
        name: "JoinsThatRunAgain",
        change: joins_that_run_again,
    },
    NodeRule {
        name: "PatternsThatStop",
        change: patterns_that_stop,
    },
    NodeRule {
        name: "JoinsThatStop",
        change: joins_that_stop,
    },
];

/// The rules for physical plans.
pub(crate) fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut mended: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> =
        vec![Arc::new(FORGET_ORDERS)];
    for rule in PhysicalOptimizer::new().rules {
        let after: Option<Arc<dyn PhysicalOptimizerRule + Send + Sync>> = match rule.name() {
            CHOOSES_SIDES => Some(Arc::new(FORGET_BUILD_ORDERS)),
            SORTS => Some(Arc::new(WAIT_FOR_PEERS)),
            _ => None,
        };
        mended.push(match rule.name().starts_with(PUSHES_FILTERS) {
            true => Arc::new(WhereNamesDiffer(rule)),
            false => rule,
        });
        mended.extend(after);
    }
    mended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_are_mended_are_called_as_the_engine_calls_them() {
        let logical = Optimizer::new().rules;
        let physical = PhysicalOptimizer::new().rules;
        let names = ASKS_DEPENDENCIES.into_iter().chain([MOVES_CONDITIONS]);
        for name in names.chain(unless::names()) {
            assert!(logical.iter().any(|rule| rule.name() == name), "{name}");
        }
        for name in [CHOOSES_SIDES, SORTS] {
            assert!(physical.iter().any(|rule| rule.name() == name), "{name}");
        }
        let pushing = physical
            .iter()
            .filter(|rule| rule.name().starts_with(PUSHES_FILTERS));
        assert_eq!(pushing.count(), 2);
    }
}
