//! Queries and updates over databases of their own. One program: each part would take as long to link as all of them.

mod common;
#[path = "common/endpoints.rs"]
mod endpoints;
#[path = "common/random.rs"]
mod random;
#[path = "common/store.rs"]
mod store;

mod behaviour;
mod datasets;
mod derived;
mod edge_weights;
mod emptiness;
mod grams;
mod graphs;
mod hard_queries;
mod kept_plans;
mod many_graphs;
mod memory;
mod oracle;
mod parallel;
mod path_costs;
mod paths;
mod places_index;
mod places_related;
mod planning_limits;
mod plans;
mod service;
mod shared_patterns;
mod texts;
mod touches;
mod update_rights;
mod update_service;
mod updates;
mod written;
