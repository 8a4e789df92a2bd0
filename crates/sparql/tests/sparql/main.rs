//! Tests of queries and updates over small databases, in one program for the sake of linking. Each
//! part by itself would take as long to link as all of them.

mod common;
#[path = "common/endpoints.rs"]
mod endpoints;
#[path = "common/random.rs"]
mod random;
#[path = "common/store.rs"]
mod store;

mod behaviour;
mod changes;
mod datasets;
mod edge_weights;
mod emptiness;
mod graphs;
mod hard_queries;
mod indices;
mod kept_plans;
mod many_graphs;
mod memory;
mod oracle;
mod parallel;
mod path_costs;
mod paths;
mod planning_limits;
mod plans;
mod service;
mod shared_patterns;
mod touches;
mod written;
