//! The row and term counts of a snapshot.

use crate::files::manifest::BaseEntry;

/// The figures of a snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SnapshotCounts {
    /// Number of the last commit in it.
    pub(crate) commit: u64,
    /// When that commit was made.
    pub(crate) time_us: i64,
    /// Visible quads.
    pub(crate) quads: u64,
    /// Entries of the delta dictionary that belong to it.
    pub(crate) delta_terms: u64,
    pub(crate) next_blank_node: u64,
}

/// The figures of a base, before all changes.
pub(crate) fn counts_of_base(entry: &BaseEntry) -> SnapshotCounts {
    SnapshotCounts {
        commit: entry.commit,
        time_us: entry.time_us,
        quads: entry.quad_count,
        delta_terms: 0,
        next_blank_node: entry.next_blank_node,
    }
}
