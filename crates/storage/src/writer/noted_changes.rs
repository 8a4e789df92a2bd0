//! Changes committed to a table during its compaction, repeated on the new files.

use crate::files::log::LogRecord;
use crate::table::{RelationId, TableChange};

/// What commits do to a table while it is compacted.
#[derive(Debug)]
pub(super) struct NotedChanges {
    table: RelationId,
    pub(super) changes: Vec<TableChange>,
    bytes: u64,
    bytes_max: u64,
}

impl NotedChanges {
    pub(super) fn of(table: RelationId, bytes_max: u64) -> Self {
        Self {
            table,
            changes: Vec::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Takes what a commit did; beyond the bound it is counted and let go.
    pub(super) fn note(&mut self, record: &mut LogRecord) {
        for change in record.tables.drain(..) {
            if change.table() == Some(self.table) {
                self.bytes += change.memory_bytes();
                self.changes.push(change);
            }
        }
        if self.is_too_much() {
            self.changes = Vec::new();
        }
    }

    pub(super) fn is_too_much(&self) -> bool {
        self.bytes > self.bytes_max
    }

    /// Whether the rows that were written are not those under the changes any more.
    pub(super) fn is_overtaken(&self) -> bool {
        !self.changes.iter().all(|change| {
            matches!(
                change,
                TableChange::Insert { .. } | TableChange::Delete { .. }
            )
        })
    }
}
