//! The restore of a backup.

use std::path::Path;
use std::sync::Arc;

use futures::TryStreamExt as _;
use orrery_storage::Database;
use orrery_storage::backup::RestoredState;
use orrery_storage::io::FileSystem;

use crate::Error;
use crate::catalog::{BackupList, ListedFile};
use crate::error::Result;
use crate::target::Target;

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreReport {
    /// The backup's number.
    pub number: u64,
    /// The last commit that is in it.
    pub commit: u64,
    /// Number of files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Number of quads in the database.
    pub quads: u64,
}

/// Writes a backup, the last one if no number is given, into a directory that is missing or empty.
///
/// Every length and checksum is compared; after any failure the directory is not a database, and
/// the restore can be tried again.
pub async fn restore(
    target: &Target,
    number: Option<u64>,
    file_system: &Arc<dyn FileSystem>,
    directory: &Path,
) -> Result<RestoreReport> {
    let list = BackupList::read(target, number).await?;
    let mut restored = RestoredState::begin(file_system, directory)?;
    for file in &list.files {
        restore_file(target, file, &mut restored).await?;
    }
    restored.finish()?;
    let database = Database::open_with(Arc::clone(file_system), directory)?;
    Ok(RestoreReport {
        number: list.number,
        commit: list.commit,
        files: list.files.len(),
        bytes: list.bytes(),
        quads: database.view_of_process().quad_count(),
    })
}

async fn restore_file(
    target: &Target,
    file: &ListedFile,
    restored: &mut RestoredState,
) -> Result<()> {
    let mut writer = restored.create(&file.name)?;
    let mut pieces = target.stream(&file.object).await?;
    let mut crc = 0;
    while let Some(piece) = pieces.try_next().await? {
        crc = crc32c::crc32c_append(crc, &piece);
        writer.append(&piece)?;
    }
    let (bytes, expected) = (writer.bytes_written(), file.bytes);
    let what = if bytes != expected {
        format!("it has {bytes} bytes, {expected} were backed up")
    } else if crc != file.crc32c {
        format!("its checksum is {crc:08x}, it was {:08x}", file.crc32c)
    } else {
        return Ok(writer.sync()?);
    };
    Err(Error::Damaged {
        object: file.object.clone(),
        target: target.name().to_owned(),
        what,
    })
}
