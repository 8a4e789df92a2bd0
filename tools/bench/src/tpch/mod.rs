//! TPC-H, version 3: its tables, refresh sets, queries, streams, answers and metrics.
//!
//! ```text
//!   Scale -> TpchTable::batches  the rows of the eight tables, as Arrow batches (or Parquet files: write_parquet)
//!         -> RefreshSet          what RF1 inserts and RF2 deletes
//!         -> Query::text         the 22 queries with the specification's validation parameters
//!   an answer -> Answer          compared with the one that is right, column by column as its kind asks
//!   times     -> Metrics         Power, Throughput, QphH
//! ```
//!
//! Rows are `tpchgen`'s, byte for byte those of the TPC's own generator; they are made again each
//! time and never kept, so memory stays small at any scale. Nothing here runs a query: whoever has
//! a database asks it, and gives the answer and the time back.

mod answer;
mod error;
mod metrics;
mod parquet;
mod query;
mod refresh;
mod scale;
mod stream;
mod table;

pub use answer::{Answer, Difference};
pub use error::TpchError;
pub use metrics::{Metrics, PowerTimes, ThroughputTimes};
pub use parquet::{write_keys, write_parquet, write_refresh};
pub use query::{ColumnKind, QUERIES, Query};
pub use refresh::{REFRESH_SETS_MAX, RefreshSet};
pub use scale::Scale;
pub use stream::{query_order, streams};
pub use table::TpchTable;
