//! The errors of the storage, by what the caller can do about them.
//!
//! Every variant about files names the path. The sentences say what happened, to what, and what
//! to do; the command line prints them as they are, so they are written for people.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::asker::Asker;
use crate::words::{ByteCount, reason, storage_place};

/// The result of a storage operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A table, as errors name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// Its schema.
    pub schema: String,
    /// Its name in the schema.
    pub name: String,
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// An error of the storage.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file or directory is not there.
    #[error("cannot {operation} {}: no such file or directory; check the path", path.display())]
    NotFound {
        /// The path that was asked for.
        path: PathBuf,
        /// What was tried, as a verb: "open", "create".
        operation: &'static str,
    },
    /// The operating system refused access.
    #[error("cannot {operation} {}: permission denied; run as a user who may, or change the permissions", path.display())]
    PermissionDenied {
        /// The path that was refused.
        path: PathBuf,
        /// What was tried, as a verb.
        operation: &'static str,
    },
    /// A directory stands where a file was expected.
    #[error("cannot {operation} {}: it is a directory; name a file", path.display())]
    IsADirectory {
        /// The path of the directory.
        path: PathBuf,
        /// What was tried, as a verb.
        operation: &'static str,
    },
    /// A file stands where a directory was expected.
    #[error("cannot {operation} {}: it is a file, not a directory; name a directory", path.display())]
    NotADirectory {
        /// The path of the file.
        path: PathBuf,
        /// What was tried, as a verb.
        operation: &'static str,
    },
    /// The disk, or the user's quota on it, is full.
    #[error("cannot {operation} {}: no space left on the disk; free some and try again", path.display())]
    NoSpace {
        /// The path that was being written.
        path: PathBuf,
        /// What was tried, as a verb.
        operation: &'static str,
    },
    /// Any other failure of the operating system.
    #[error("cannot {operation} {}: {}", path.display(), reason(source))]
    Io {
        /// The path that was being accessed.
        path: PathBuf,
        /// What was tried, as a verb.
        operation: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file does not hold what was written to it.
    #[error("{} is damaged at byte {offset}: {what}; restore it from a backup or load again", path.display())]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Where the damage begins, or the start of the checksummed part that holds it.
        offset: u64,
        /// What was found, and what was expected.
        what: String,
    },
    /// A file of this program, but of a format this version does not read.
    #[error("{} has format version {found}, this program reads version {supported}; use the program that wrote it, or load again", path.display())]
    FormatVersion {
        /// The file with the other version.
        path: PathBuf,
        /// The version the file states.
        found: u32,
        /// The version this program reads and writes.
        supported: u32,
    },
    /// A log has a record that a newer program wrote.
    #[error("{} has a record of the unknown kind {kind} at byte {offset}; use the program that wrote it, or a newer one", path.display())]
    UnknownRecord {
        /// The log file.
        path: PathBuf,
        /// Where the record begins.
        offset: u64,
        /// What it says it is.
        kind: u8,
    },
    /// A commit in a log has a part that a newer program wrote, and without which it means
    /// something else.
    #[error("{} has a commit with a section of the unknown kind {kind} at byte {offset}; use the program that wrote it, or a newer one", path.display())]
    UnknownSection {
        /// The log file.
        path: PathBuf,
        /// Where the commit's record begins.
        offset: u64,
        /// What the section says it is.
        kind: u8,
    },
    /// A database needs something that this program does not know.
    #[error("{} needs {what}, which this program does not know; use the program that wrote it, or a newer one", path.display())]
    UnknownPart {
        /// The manifest.
        path: PathBuf,
        /// What is needed.
        what: String,
    },
    /// A row lacks a value that it must have.
    #[error("column \"{column}\" of \"{table}\" may not be NULL")]
    NotNull {
        /// The table.
        table: Box<TableName>,
        /// Its column.
        column: String,
    },
    /// A row has the key of another.
    #[error(
        "\"{table}\" has a row with ({columns})=({key}) already, and \"{constraint}\" allows one"
    )]
    Duplicate {
        /// The table.
        table: Box<TableName>,
        /// The constraint that the row breaks.
        constraint: Box<str>,
        /// The names of the key's columns.
        columns: Box<str>,
        /// Their values in the row.
        key: Box<str>,
    },
    /// Rows to be written that are not in the order of their key.
    #[error("cannot write {}: row {row} does not follow the one before; this is a fault of the program, please report it", path.display())]
    RowOrder {
        /// The file.
        path: PathBuf,
        /// Number of the row.
        row: u64,
    },
    /// Rows that are no rows of a table, or a table that there is not.
    #[error("rows of a table cannot be changed: {what}")]
    Rows {
        /// What does not fit.
        what: String,
    },
    /// Somebody who may not see all graphs wants what takes all of them.
    #[error("{asker} may not {work}: only who may read all graphs may")]
    HiddenGraphs {
        /// Who asks.
        asker: Asker,
        /// What was wanted, as a verb and its object: "change data".
        work: &'static str,
    },
    /// The directory does not hold a database.
    #[error("{} is not an Orrery database: {what}; create one with `orrery load --db`", path.display())]
    NotADatabase {
        /// The directory that was opened.
        path: PathBuf,
        /// What is missing or in the way.
        what: String,
    },
    /// There is a database where a new one should be made.
    #[error("{} holds a database already; name another directory, or remove it first", path.display())]
    AlreadyADatabase {
        /// The directory.
        path: PathBuf,
    },
    /// Another process holds the lock.
    #[error(
        "{} is locked: a server or another writer{} has this database; use --server URL, or stop it",
        path.display(),
        process_text(*holder)
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The process that holds the lock, when it is known.
        holder: Option<u32>,
    },
    /// The log could not be written, so nothing can be committed until the database is opened anew.
    #[error("writing has stopped because of {}: {what}; look at {}, then restart", path.display(), storage_place(path))]
    WritingStopped {
        /// The log file.
        path: PathBuf,
        /// What failed.
        what: String,
    },
    /// The turn to write is over: another process writes, or will. Of what was asked nothing is
    /// done.
    #[error(
        "this process has lost the writer role for {}: {reason}; nothing was changed, try again",
        path.display()
    )]
    TurnEnded {
        /// The database, or the file that would have been changed.
        path: PathBuf,
        /// Why it is over.
        reason: String,
    },
    /// A change was on its way to the disk, or to other nodes, when writing stopped: it may be
    /// there when the database is opened anew, or when another process writes it.
    #[error(
        "it is unknown whether {change} was made: writing stopped because of {}: {what}; look for it in the data before you try again",
        path.display()
    )]
    OutcomeUnknown {
        /// What was on its way.
        change: PendingChange,
        /// The log file, or the manifest.
        path: PathBuf,
        /// What failed.
        what: String,
    },
    /// Another commit came first.
    #[error(
        "the database is at commit {found}, not at {expected} as the update wants it; read again, then try again"
    )]
    CommitConflict {
        /// The commit that the caller expected to be the last one.
        expected: u64,
        /// The last commit.
        found: u64,
    },
    /// A new base was not published, for graphs were cleared while it was written.
    #[error(
        "the new base for {} was given up: graphs were cleared while it was written; compact again",
        path.display()
    )]
    ClearedMeanwhile {
        /// The old base's directory.
        path: PathBuf,
    },
    /// A commit that is not there, or no longer.
    #[error("{} has no {wanted}; {what}", path.display())]
    NoSuchCommit {
        /// The database.
        path: PathBuf,
        /// What was asked for.
        wanted: String,
        /// Which commits there are.
        what: String,
    },
    /// More texts came since the last compaction than an index in memory takes.
    #[error("{} has too many new literals for the full-text index; run `orrery compact`, then try again", path.display())]
    TextsBehind {
        /// The base's directory.
        path: PathBuf,
    },
    /// A search for texts was given up, for whoever asked does not wait any more.
    #[error("the search was stopped")]
    SearchStopped,
    /// The delta dictionary has no room for another term.
    #[error("{} has too many new terms; run `orrery compact`, then try again", path.display())]
    TooManyTerms {
        /// The base's directory.
        path: PathBuf,
    },
    /// The changes of a transaction need more memory than they may have. Nothing was changed.
    #[error(
        "the changes of this transaction need {} of memory or more, which is not left of the {} of --memory; nothing was changed; \
         split the transaction, use `orrery load`, or raise --memory",
        ByteCount(*needed_bytes),
        ByteCount(*limit_bytes)
    )]
    TransactionMemory {
        /// What it had taken, with what it wanted next.
        needed_bytes: u64,
        /// The budget, for all that share it.
        limit_bytes: u64,
    },
    /// An operation would have to read what an earlier one of its transaction inserted beyond the
    /// memory. Nothing was changed.
    #[error(
        "an operation reads or clears what an earlier one of the same request inserted, which exceeds memory; nothing \
         was changed; make two requests of it, or raise --memory"
    )]
    StagedUnreadable,
    /// Whoever asked for a new base does not want it as it has become, see
    /// [`crate::Rebase::check_with`]. Nothing was changed.
    #[error("{what}")]
    Refused {
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// A load would give up old states that nobody has asked to give up. Nothing was changed.
    #[error(
        "the database keeps the states before commit {first}, which this load in bulk would give up; allow that with --forget-history \
         (over HTTP: forget-history=true in the address), or send less at a time"
    )]
    KeepsHistory {
        /// The first commit whose state would be left.
        first: u64,
    },
    /// A transaction is too large for one record of the log.
    #[error("cannot write {}: the transaction takes {}, the limit is {}; split it, or use `orrery load`", path.display(), ByteCount(*bytes), ByteCount(*limit))]
    TransactionTooLarge {
        /// The log file.
        path: PathBuf,
        /// Length of its record.
        bytes: u64,
        /// Longest record that is allowed.
        limit: u64,
    },
    /// The values of a column came as an array of another type than the column's.
    #[error(
        "a column wants values of type {expected} and got {found}; this is a fault of the program, please report it"
    )]
    WrongArray {
        /// The Arrow type that the column has.
        expected: String,
        /// That of the array.
        found: String,
    },
    /// The caller broke a writer's contract, for example by rows out of order.
    #[error("cannot write {}: {what}; this is a fault of the program, please report it", path.display())]
    InvalidInput {
        /// The file being written.
        path: PathBuf,
        /// Which rule was broken.
        what: String,
    },
}

/// The change that was pending when writing stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingChange {
    /// A commit, by its number: of a transaction, or of a load.
    Commit(u64),
    /// Another index of texts, or none.
    TextRules,
}

impl fmt::Display for PendingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commit(number) => write!(f, "commit {number}"),
            Self::TextRules => f.write_str("the change of the full-text index"),
        }
    }
}

impl Error {
    /// The same of a change that was on its way: where writing has stopped, nobody knows whether it
    /// was made.
    pub(crate) fn of_pending(self, change: PendingChange) -> Self {
        match self {
            Self::WritingStopped { path, what } => Self::OutcomeUnknown { change, path, what },
            other => other,
        }
    }

    /// Sorts a failure of the operating system by what can be done about it.
    pub fn from_io(path: &Path, operation: &'static str, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path, operation },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::PermissionDenied { path, operation }
            }
            io::ErrorKind::IsADirectory => Self::IsADirectory { path, operation },
            io::ErrorKind::NotADirectory => Self::NotADirectory { path, operation },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::NoSpace { path, operation }
            }
            _ => Self::Io {
                path,
                operation,
                source,
            },
        }
    }

    /// Damage found in a file.
    pub fn corrupt(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Corrupt {
            path: path.to_path_buf(),
            offset,
            what: what.into(),
        }
    }

    /// A writer was given something that its contract forbids.
    pub fn invalid_input(path: &Path, what: impl Into<String>) -> Self {
        Self::InvalidInput {
            path: path.to_path_buf(),
            what: what.into(),
        }
    }
}

fn process_text(holder: Option<u32>) -> String {
    holder.map_or_else(String::new, |process| format!(" (pid {process})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operating_system_errors_are_sorted_by_what_can_be_done() {
        let path = Path::new("/data/x");
        let of = |code| Error::from_io(path, "write", io::Error::from_raw_os_error(code));
        assert!(matches!(of(28), Error::NoSpace { .. }));
        assert!(matches!(of(13), Error::PermissionDenied { .. }));
        assert!(matches!(of(21), Error::IsADirectory { .. }));
        assert!(matches!(of(20), Error::NotADirectory { .. }));
        assert!(matches!(of(2), Error::NotFound { .. }));
        assert!(matches!(of(5), Error::Io { .. }));
        assert_eq!(
            of(28).to_string(),
            "cannot write /data/x: no space left on the disk; free some and try again"
        );
    }

    #[test]
    fn a_lock_names_its_holder() {
        let error = Error::Locked {
            path: PathBuf::from("d/LOCK"),
            holder: Some(17),
        };
        assert_eq!(
            error.to_string(),
            "d/LOCK is locked: a server or another writer (pid 17) has this database; use --server URL, or stop it"
        );
    }
}
