//! Planning: from a statement to a plan over one state of the tables.
//!
//! `engine_state` holds the settings, functions and rules that every plan is made with. `planner`
//! makes the plan. `prepared` keeps it for other parameters. `counted` lets it count its cost
//! while it runs. Walks over plans and expressions go through `walk`.

pub(crate) mod counted;
pub(crate) mod counted_sets;
pub(crate) mod engine_state;
pub(crate) mod evaluate;
pub(crate) mod first_rows;
mod long_planning;
pub(crate) mod planner;
pub(crate) mod prepared;
pub(crate) mod ready;
pub(crate) mod walk;
