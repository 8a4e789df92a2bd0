//! Rows that are rewritten for a new definition, in batches of bounded memory.

use crate::Result;

/// Rows that a definition goes through at a time.
pub(super) const ROWS_AT_ONCE: usize = 8 * 1024;
/// What an entry takes among the changes of a projection, and what is put together to make it.
const ENTRY_BYTES: u64 = 64;

/// Asked before rows are made anew for a definition, with the bytes that they will take; where it
/// fails, nothing has changed.
pub(crate) type Look<'a> = &'a mut dyn FnMut(u64) -> Result<()>;

/// The memory of new rows in a projection: their bytes, their keys, and an entry for each.
pub(crate) fn new_rows_bytes(rows: u64, bytes: u64, key_bytes: u64) -> u64 {
    bytes + key_bytes + rows * ENTRY_BYTES
}
