//! The functions that statements may call, with limits on their results and work.
//!
//! DataFusion offers whatever it has to whoever asks. Here a function is offered because it stands
//! in one of the lists below, where it is said what its result is bounded by; what stands in none
//! is not there (42883). A new version of the engine brings nothing that nobody has looked at, nor
//! is a function of ours without a bound: a test holds the lists against the engine's registry and
//! `scalars_of_ours`.
//!
//! ```text
//! registry --offered--> functions whose result is no larger than what they are given        as they are
//!                       functions whose result grows, or that look at all of an argument    within `Bounded`: size and
//!                                                                                           work estimated, memory asked for,
//!                                                                                           then computed, in slices of rows
//! analyzer --bounded--> calls that the engine's planner and optimizer make for operators    the same
//!                       text || text                                                        `Joined`
//!                       aggregates over windows that give all that they were given        `OverWindow`
//!                       aggregates of groups with DISTINCT or ORDER BY that keep rows     `KeptRows`
//! optimizer --spread--> large constants that become columns                                 `Spread`
//! ```
//!
//! A process whose allocator says no is aborted, with all that others do in it. So a size that
//! somebody has written is looked at before anything of that size is made.

mod aggregates;
mod bounded;
mod growth;
mod joined;
mod kept_rows;
mod lists;
mod long;
mod memory;
mod of_engine;
mod one_step;
mod over_windows;
mod patterns;
mod refused;
mod slices;
mod spread;
mod work;

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::ScalarUDF;

use crate::functions::array_has::{ARRAY_HAS, array_has};
use crate::functions::scalars_of_ours;
pub(crate) use aggregates::refuse_parameters;
pub(crate) use bounded::Offered;
use bounded::bounded_function;
use lists::{AGGREGATES, GROWING, TABLES, WINDOWS, WITHIN, bounds_of};
pub(crate) use long::{may_plan_long, may_take_long};
pub(super) use of_engine::of_engine_methods;
pub(crate) use one_step::in_one_step;
pub(crate) use spread::{LARGE_BYTES, SpreadConstants};

/// The callable functions, by name.
#[derive(Debug, Clone)]
pub struct OfferedFunctions {
    /// Of one row.
    pub scalars: Vec<&'static str>,
    /// Of a group of rows, and over windows.
    pub aggregates: Vec<&'static str>,
    /// Over windows alone.
    pub windows: Vec<&'static str>,
    /// In the place of a table.
    pub tables: Vec<&'static str>,
}

/// The functions that every session offers, for those that try them all.
pub fn offered_functions() -> OfferedFunctions {
    let growing = GROWING.iter().map(|(name, ..)| *name);
    OfferedFunctions {
        scalars: WITHIN.iter().copied().chain(growing).collect(),
        aggregates: AGGREGATES.to_vec(),
        windows: WINDOWS.to_vec(),
        tables: TABLES.to_vec(),
    }
}

/// Leaves of an engine what is offered, with its bounds, on this memory.
pub(crate) fn offer(builder: &mut SessionStateBuilder, pool: &Arc<dyn MemoryPool>) {
    if let Some(functions) = builder.scalar_functions() {
        // The last one of a name is called.
        let known = std::mem::take(functions).into_iter();
        let known = known.chain(scalars_of_ours().map(Arc::new));
        *functions = known.filter_map(|it| offered_scalar(it, pool)).collect();
    }
    if let Some(functions) = builder.aggregate_functions() {
        functions.retain(|it| AGGREGATES.contains(&it.name()));
    }
    if let Some(functions) = builder.window_functions() {
        functions.retain(|it| WINDOWS.contains(&it.name()));
    }
    if let Some(functions) = builder.table_functions() {
        functions.retain(|name, _| TABLES.contains(&name.as_str()));
    }
    // They call a function for each element, which no estimate looks into.
    if let Some(functions) = builder.higher_order_functions() {
        functions.clear();
    }
}

fn offered_scalar(function: Arc<ScalarUDF>, pool: &Arc<dyn MemoryPool>) -> Option<Arc<ScalarUDF>> {
    let function = match function.name() {
        ARRAY_HAS => array_has(function),
        _ => function,
    };
    match bounds_of(function.name()) {
        Some(bounds) => Some(bounded_function(function, bounds, pool)),
        None => WITHIN.contains(&function.name()).then_some(function),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use datafusion::execution::SessionStateDefaults as Engine;

    use super::lists::{LOOKING, NOT_OFFERED};
    use super::*;

    #[test]
    fn each_function_of_the_engine_is_offered_with_a_bound_or_not_at_all() {
        let named = |lists: &[&[&'static str]]| -> BTreeSet<&'static str> {
            lists.iter().flat_map(|list| list.iter().copied()).collect()
        };
        let growing: Vec<_> = GROWING.iter().map(|(name, ..)| *name).collect();
        let scalars = Engine::default_scalar_functions();
        let ours: Vec<_> = scalars_of_ours().collect();
        let scalars = scalars.iter().map(|it| it.name());
        let scalars: BTreeSet<_> = scalars.chain(ours.iter().map(ScalarUDF::name)).collect();
        let known = named(&[WITHIN, &growing, NOT_OFFERED]);
        let unknown: Vec<_> = scalars.difference(&known).collect();
        assert!(
            unknown.is_empty(),
            "what bounds the results of {unknown:?}?"
        );
        let gone: Vec<_> = named(&[WITHIN, &growing])
            .into_iter()
            .filter(|it| !scalars.contains(it))
            .collect();
        assert!(gone.is_empty(), "{gone:?}");
        let aggregates = Engine::default_aggregate_functions();
        let known = named(&[AGGREGATES, NOT_OFFERED]);
        let unknown: Vec<_> = aggregates
            .iter()
            .map(|it| it.name())
            .filter(|it| !known.contains(it))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let windows = Engine::default_window_functions();
        assert!(
            windows.iter().all(|it| WINDOWS.contains(&it.name())),
            "{windows:?}"
        );
        let tables = Engine::default_table_functions();
        assert!(tables.iter().all(|it| TABLES.contains(&it.name())));
        let both: Vec<_> = growing.iter().filter(|it| WITHIN.contains(it)).collect();
        assert!(both.is_empty(), "{both:?}");
        let gone = LOOKING.iter().filter(|(it, _)| !WITHIN.contains(it));
        assert_eq!(gone.count(), 0);
    }
}
