//! What stands on the query engine: SQL, which is parsed and run, the protocols of PostgreSQL and Flight, plans that travel. Over a small database in memory, which stays as it is.

mod flight;
mod house;
mod plans;
mod postgres;
mod sql;

pub(crate) use flight::flight;
pub(crate) use plans::plans;
pub use plans::{make_plan, nodes_of};
pub(crate) use postgres::{postgres_messages, postgres_start};
pub(crate) use sql::{copy, sql, sql_run};
