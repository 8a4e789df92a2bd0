//! Scans of stored tables: index look-ups, pushed-down filters, and dense aggregation.
//!
//! ```text
//! StoredTable    a table of a snapshot: columns, constraints
//!   filters      -> ScanExec: which projection, which positions of it (access, key_range), what rules out vectors (condition, zone_test)
//!   partitions   -> streams that take morsels of positions from one queue (morsels, stream), and give what is left of them (left)
//! ```
//!
//! All filters that hold for a row by itself are evaluated here and not above. Four things spare
//! reading: the first columns of a key bound positions by searches in the file; zone maps rule out
//! vectors; a condition on a column with a dictionary is evaluated once for each of its values; and
//! columns without a condition are read for passing rows alone. Dynamic filters of operators above
//! (`hint`) are applied between morsels; joins publish their keys as bits (`share`, `keys`,
//! `key_bits`).
//!
//! Each partition takes the next morsel from the queue, and morsels ascend; so what a partition
//! gives ascends by the key of the projection that is read, and a slow partition leaves the rest to
//! the others. Rows that changed since the files were written are decoded piece by piece
//! (`new_rows`), looked at by the same conditions, and put where they belong.
//!
//! Of a large table each partition has a range of the key instead, if the key's first column is
//! given (`divided`).
//!
//! An index that lacks columns serves for few rows: their primary keys are read from it, and looked
//! up (`look_up`).
//!
//! A scan holds a batch and the numbers of its rows, and a piece of new rows; nothing here grows
//! with the table.

mod access;
mod bits;
mod compared;
mod condition;
mod dense;
mod divided;
mod hint;
mod in_shares;
mod key_bits;
mod key_range;
mod keys;
mod left;
mod look_up;
mod morsels;
mod new_rows;
mod node;
mod number_test;
mod plan;
mod share;
mod stream;
mod table;
mod told;
mod touches;
mod traced;
mod zone_test;

pub use dense::DenseAggregation;
pub use in_shares::{is_in_shares, reads_by_itself, tells_keys};
pub use morsels::ScansInShares;
pub use node::scan_without_order;
pub use share::ShareKeys;
pub use table::StoredTable;
pub use touches::touches;

use datafusion::common::DataFusionError;

/// A sum that its type cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} out of range")]
pub struct OutOfRange(
    /// The type, as SQL calls it.
    pub &'static str,
);

/// What storage says, as the engine carries it.
fn failed(error: orrery_storage::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
