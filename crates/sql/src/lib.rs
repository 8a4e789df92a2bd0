//! SQL over the same engine as SPARQL: the same memory, the same threads, the same plans.
//!
//! ```text
//!   SQL text -> parse  -> statement -> plan -> logical plan -> physical plan -> run -> Arrow batches
//!               PostgreSQL's dialect   DataFusion's planner and optimizers, over the tables of a schema
//! ```
//!
//! A [`Session`] is what one client has: the tables that it sees and its settings. It takes threads, memory and place for spills from the engine's
//! [`Runtime`](orrery_runtime::Runtime), so that `--memory` holds for both languages together. A [`PlannedQuery`] is a text that is understood and can
//! be run; what fails, of the text or of the run, is an [`Error`] with the code that PostgreSQL's clients know, and with the place in the text where
//! the planner knows it.
//!
//! Queries only: statements that change something are refused (0A000) until there are tables to change. Sums, differences and products of integers
//! wrap where they run over, as DataFusion's do (decimals and casts do not): that has to be mended before the tables are.

mod catalog;
mod error;
mod names;
mod scan;
mod session;
mod state;
mod statement;

pub use catalog::catalog;
pub use error::{Error, Result};
pub use session::{PlannedQuery, Session};
pub use state::SqlState;
pub use statement::SQL_BYTES_MAX;
