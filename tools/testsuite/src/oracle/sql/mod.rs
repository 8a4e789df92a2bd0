//! The oracle of SQL: random queries over random tables, answered by our engine and by DuckDB.
//!
//! ```text
//!   seed -> tables, rows, changes (`tables`)    our engine: keys, indexes, rows in files and in the log; vectors of several sizes
//!        -> queries (`query`, `relation`, ...)  DuckDB: the same rows, nothing else
//!        -> compared (`compare`): multisets, or lists where a query orders by all of its columns
//! ```
//!
//! Where the dialects differ, the two sides get different texts (`dual`), or the grammar leaves it
//! out; rows are never compared with tolerance but for the last digits of floats. `docs/sql.md`
//! says what differs from PostgreSQL, whose answers DuckDB's are in all that is asked here.
//!
//! `make oracle-sql` runs 50,000 queries; 1,000 are run by the tests. The same seed gives the same
//! tables and queries.

mod compare;
mod dual;
mod duckdb;
mod expression;
mod grammar;
mod groups;
mod ours;
mod query;
mod relation;
mod run;
mod subquery;
mod tables;
mod windows;

pub use run::{SqlDifference, SqlOptions, SqlReport, run_sql, sql_of_data_set, sql_plans_with};

/// Why a run ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum SqlOracleError {
    /// DuckDB's process said nothing, or something else.
    #[error("DuckDB: {0}")]
    Peer(String),
    /// Our engine did not begin.
    #[error("engine: {0}")]
    Ours(String),
    /// The database could not be made.
    #[error("storage: {0}")]
    Storage(#[from] orrery_storage::Error),
    /// The two sides do not have the same tables.
    #[error("data set {number}: {what}")]
    Tables {
        /// Which.
        number: u64,
        /// What one of them said.
        what: String,
    },
}
