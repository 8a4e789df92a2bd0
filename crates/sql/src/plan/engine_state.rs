//! The DataFusion session state: settings, functions and rules of every SQL plan.
//!
//! Settings differ from DataFusion's own where PostgreSQL does: its dialect, names folded to lower
//! case unless quoted, literals like `0.06` are decimals and not floats, NULLs sort last. Plans are
//! made for as many partitions as the engine has threads. To make them registers some four hundred
//! functions, which takes about a millisecond.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::config::Dialect;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::optimizer::analyzer::Analyzer;
use datafusion::prelude::SessionConfig;
use orrery_postgres_tables::ForeignAccess;
use orrery_runtime::Runtime;

use crate::execute::stopping::ThatAsk;
use crate::files::FileAccess;
use crate::functions::bytes::TypesOfColumns;
use crate::functions::offered::{SpreadConstants, offer};
use crate::names::{CATALOG, SCHEMA};
use crate::optimizer::join_order::{OrderedJoins, statistics};
use crate::optimizer::mended::{self, optimizer_rules, physical_rules, relation_planners};
use crate::parse::statement::STACK_BYTES_MIN;
use crate::semantics::rules::{AfterTypes, BeforeTypes};
use orrery_table_scan::{DenseAggregation, ShareKeys};

/// A join keeps so many rows or bytes of its left side once for all threads.
const SHARED_ROWS_MAX: usize = 512 * 1024;
const SHARED_BYTES_MAX: usize = 32 << 20;

/// On the memory and threads of a runtime.
pub(crate) fn engine_state(
    runtime: &Runtime,
    files: &FileAccess,
    foreign: &ForeignAccess,
) -> SessionState {
    // For the whole process, and always the same.
    recursive::set_minimum_stack_size(STACK_BYTES_MIN);
    recursive::set_stack_allocation_size(4 * STACK_BYTES_MIN);
    let task = runtime.task(None);
    let threads = runtime.workers().threads();
    let mut rules = Analyzer::new().rules;
    rules.insert(0, Arc::new(BeforeTypes));
    let pool = &task.runtime_env().memory_pool.clone();
    let mut builder = SessionStateBuilder::new()
        .with_config(
            config(task.session_config().batch_size(), threads)
                .with_extension(Arc::new(files.clone()))
                .with_extension(Arc::new(foreign.clone())),
        )
        .with_runtime_env(task.runtime_env())
        .with_default_features();
    offer(&mut builder, pool);
    let mut functions = HashMap::new();
    if let Some(offered) = builder.scalar_functions() {
        for function in offered {
            let names = std::iter::once(function.name());
            for name in names.chain(function.aliases().iter().map(String::as_str)) {
                functions.insert(name.to_owned(), Arc::clone(function));
            }
        }
    }
    rules.push(Arc::new(AfterTypes { functions }));
    let mut optimizer = optimizer_rules();
    optimizer.push(Arc::new(SpreadConstants(Arc::clone(pool))));
    let mut physical = physical_rules();
    physical.push(Arc::new(ShareKeys));
    physical.push(Arc::new(DenseAggregation));
    for rule in mended::LAST {
        physical.push(Arc::new(rule));
    }
    builder
        .with_analyzer_rules(rules.that_ask())
        .with_type_planner(Arc::new(TypesOfColumns))
        .with_relation_planners(relation_planners())
        .with_optimizer_rules(optimizer.that_ask())
        .with_query_planner(Arc::new(OrderedJoins))
        .with_physical_optimizer_rules(physical.that_ask())
        .with_statistics_registry(statistics())
        .build()
}

fn config(batch_rows: usize, threads: usize) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_batch_size(batch_rows)
        .with_target_partitions(threads)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, SCHEMA);
    let parser = &mut config.options_mut().sql_parser;
    parser.dialect = Dialect::PostgreSQL;
    parser.parse_float_as_decimal = true;
    parser.collect_spans = true;
    // It fails where rules find that a column is never NULL; what they change is right.
    let execution = &mut config.options_mut().execution;
    execution.skip_physical_aggregate_schema_check = true;
    let optimizer = &mut config.options_mut().optimizer;
    optimizer.use_statistics_registry = true;
    // What is divided by the first column of a group is divided enough, however few the parts are.
    optimizer.subset_repartition_threshold = 1;
    // A table of hashes that all threads look into spares moving the rows of both sides, as long as
    // one thread makes it quickly enough.
    optimizer.hash_join_single_partition_threshold_rows = SHARED_ROWS_MAX;
    optimizer.hash_join_single_partition_threshold = SHARED_BYTES_MAX;
    config
}
