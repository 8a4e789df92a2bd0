//! Reading stored tables.
//!
//! ```text
//! StoredTable (a table of a snapshot) -> ScanExec (projection, columns) -> a stream for each partition
//!                                                 morsels of positions, taken from one queue
//! ```
//!
//! Each partition takes the next morsel from the queue, and morsels ascend; so what a partition gives ascends by the key of the projection that is read,
//! and a slow partition leaves the rest to the others.

mod morsels;
mod node;
mod stream;
mod table;

pub(crate) use table::StoredTable;

use datafusion::common::DataFusionError;

use crate::{Error, SqlState};

/// What storage says, as the engine carries it.
fn failed(error: orrery_storage::Error) -> DataFusionError {
    Error::new(SqlState::IoError, error.to_string()).into()
}
