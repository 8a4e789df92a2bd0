//! Fuzz targets on the query engine: SQL, PostgreSQL's protocol, Flight SQL, encoded plans. Over a
//! small database in memory, which stays as it is.

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
