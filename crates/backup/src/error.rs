//! The errors of backups, by what can be done about them.

use orrery_storage::without_numbers;

use crate::source::SourceDatabase;

/// An error of a backup or a restore.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database could not be read or written.
    #[error(transparent)]
    Storage(#[from] orrery_storage::Error),
    /// The target's address makes no sense.
    #[error(
        "cannot use {target} for backups: {what}; give a directory, or s3://bucket/prefix with the AWS_ variables set"
    )]
    Target {
        /// What was given.
        target: String,
        /// What is wrong with it.
        what: String,
    },
    /// The target holds backups of another database.
    #[error(
        "{target} holds the backups of another database, {} ({}); give this one a target of its own, such as a directory in there",
        owner.identity, owner.directory
    )]
    OtherDatabase {
        /// The target.
        target: String,
        /// The database that it belongs to.
        owner: SourceDatabase,
    },
    /// The store did not do what was asked.
    #[error("cannot {operation} {object} in {target}: {}", without_numbers(&source.to_string()))]
    Store {
        /// What was tried, as a verb.
        operation: &'static str,
        /// The object.
        object: String,
        /// The target.
        target: String,
        /// What the store said.
        source: Box<object_store::Error>,
    },
    /// There is no such backup.
    #[error("there is no backup{} in {target}; `orrery restore --list` shows what there is", number_text(*number))]
    NoBackup {
        /// The target.
        target: String,
        /// The number that was asked for.
        number: Option<u64>,
    },
    /// A stored file is not what was backed up.
    #[error("{object} in {target} is damaged: {what}; restore another backup, or take a new one")]
    Damaged {
        /// The object.
        object: String,
        /// The target.
        target: String,
        /// What was found, and what was expected.
        what: String,
    },
    /// The backup was made by a later version of this program.
    #[error(
        "{object} in {target} has format version {found}, this program reads version {supported}; use the program that wrote it"
    )]
    FormatVersion {
        /// The list of the backup.
        object: String,
        /// The target.
        target: String,
        /// The version the list states.
        found: u32,
        /// The version this program reads.
        supported: u32,
    },
}

fn number_text(number: Option<u64>) -> String {
    number.map_or_else(String::new, |number| format!(" {number}"))
}

/// The result of a backup or a restore.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
