//! Foreign tables: PostgreSQL tables of other servers, read in place.
//!
//! ```text
//!   definition (address, columns, key)    kept by SQL as the text of a statement
//!        |  describe: at creation, the columns are asked for
//!        v
//!   ForeignTable -> plan: a statement with the columns, conditions and limit that mean the same there
//!                -> scan: a connection of the pool -> prepare, check of types -> rows as they come -> Arrow batches
//! ```
//!
//! Invariants: a value that our types do not have, and a column that is no longer as it was
//! defined, are errors and never other values; what is sent is one `SELECT` in a session that is
//! read only; no password is in a definition, a plan or a message. Connections live on a thread of
//! their own, so that they outlast whatever runtime a query ran on. Memory is bounded: the source
//! is read no faster than batches are asked for.
//!
//! It does not write, and has no transactions of its own: [`StatementSnapshots`] makes the scans of
//! one statement see one state of each server.

mod access;
mod address;
mod columns;
mod condition;
mod connection;
mod describe;
mod error;
mod hints;
mod lease;
mod literal;
mod numeric;
mod passwords;
mod pool;
mod rights;
mod scan;
mod snapshots;
mod statement;
mod table;
mod tls;
mod values;

pub use access::ForeignAccess;
pub use address::{Server, SourceName};
pub use columns::{ForeignColumn, SourceType};
pub use describe::{Described, describe};
pub use error::{Error, Result};
pub use snapshots::StatementSnapshots;
pub use table::ForeignTable;
