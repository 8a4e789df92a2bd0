//! Backup and restore of a database while it is written, to a directory or an S3-compatible store.
//!
//! ```text
//! TARGET/backups/000007.json                         one a backup: its files, with lengths and checksums
//! TARGET/objects/segment-000003/psog.col-4711-0a1b   the files, each stored once however many backups have it
//! ```
//!
//! [`backup`] holds the files of the present state open ([`orrery_storage::backup`]), copies those
//! that no earlier backup in the same target has, and writes the list last: what was interrupted is
//! no backup, and its objects are written anew by the next. As files of a segment never change, a
//! backup after a few commits copies little more than the log. [`restore`] writes the files of a
//! list into a new directory, compares every length and checksum, and makes the directory a
//! database only when all were right.
//!
//! A target belongs to one database, whose identity the lists name
//! ([`orrery_storage::DatabaseIdentity`]); another one is refused, for their backups would be
//! numbered in one row, and [`prune`] would remove those of either.
//!
//! [`prune`] removes old backups, and the objects that no other has.
//!
//! Not here: encryption, schedules. A target is a plain directory or prefix; the store's own tools
//! do that.

mod catalog;
mod copy;
mod error;
mod prune;
mod restore;
mod source;
mod target;

pub use catalog::{BackupList, ListedFile};
pub use copy::{BackupReport, backup};
pub use error::Error;
pub use prune::{PruneReport, prune};
pub use restore::{RestoreReport, restore};
pub use source::SourceDatabase;
pub use target::Target;
