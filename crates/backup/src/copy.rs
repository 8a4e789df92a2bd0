//! The taking of a backup.

use std::collections::HashMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use orrery_storage::ReadScope;
use orrery_storage::backup::{StateFile, StateFiles};
use orrery_storage::io::FileSystem;

use crate::Error;
use crate::catalog::{BackupList, FORMAT_VERSION, ListedFile};
use crate::error::Result;
use crate::source::SourceDatabase;
use crate::target::Target;

/// How often another backup may take the number before this one gives up.
const NUMBER_ATTEMPTS_MAX: usize = 10;

/// What a backup did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupReport {
    /// The backup's number.
    pub number: u64,
    /// The last commit that is in it.
    pub commit: u64,
    /// Number of files that the database consists of.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that were copied; the rest was there from earlier backups.
    pub bytes_copied: u64,
}

/// Copies the present state of a database into a target. The database may be open and written
/// meanwhile: the backup is of the state at the beginning. Only who may see all graphs may have
/// one: files are copied as they are.
pub async fn backup(
    file_system: &dyn FileSystem,
    directory: &Path,
    target: &Target,
    scope: &ReadScope,
) -> Result<BackupReport> {
    let held = StateFiles::hold(file_system, directory, scope)?;
    let database = held.identity.clone().map(|identity| SourceDatabase {
        identity,
        directory: shown(directory),
    });
    let earlier = BackupList::read_all(target).await?;
    refuse_others(target, &earlier, database.as_ref())?;
    let stored: HashMap<String, ListedFile> = earlier
        .iter()
        .flat_map(|list| &list.files)
        .map(|file| (file.object.clone(), file.clone()))
        .collect();
    let mut files = Vec::with_capacity(held.files.len());
    let mut bytes_copied = 0;
    // Each is let go of when it is copied: one that comes from an object store takes up the cache
    // for as long as it is held.
    for file in held.files {
        let object = object_of(&file);
        let bytes = file.content.len() as u64;
        if let Some(listed) = stored.get(&object)
            && listed.bytes == bytes
            && target.length(&object).await? == Some(bytes)
        {
            files.push(listed.clone());
            continue;
        }
        file.content.fetch(0..file.content.len())?;
        let content = Bytes::from_owner(file.content);
        files.push(ListedFile {
            name: file.name,
            bytes,
            crc32c: target.put(&object, content).await?,
            object,
        });
        bytes_copied += bytes;
    }
    let mut list = BackupList {
        format_version: FORMAT_VERSION,
        number: earlier.last().map_or(1, |last| last.number + 1),
        time_micros: now_micros(),
        commit: held.commit,
        database,
        files,
    };
    for _ in 0..NUMBER_ATTEMPTS_MAX {
        if list.write(target).await? {
            return Ok(BackupReport {
                number: list.number,
                commit: list.commit,
                files: list.files.len(),
                bytes: list.bytes(),
                bytes_copied,
            });
        }
        // Whoever was faster may be another database, which thought as we did that the target is
        // nobody's.
        let faster = BackupList::read(target, Some(list.number)).await?;
        refuse_others(target, &[faster], list.database.as_ref())?;
        list.number += 1;
    }
    Err(Error::Target {
        target: target.name().to_owned(),
        what: "other backups go there at the same time".to_owned(),
    })
}

/// A target belongs to the database whose identity its lists name. Those from before there were
/// identities are taken for its own: nobody knows better.
fn refuse_others(
    target: &Target,
    lists: &[BackupList],
    database: Option<&SourceDatabase>,
) -> Result<()> {
    let identity = database.map(|database| &database.identity);
    let mut owners = lists.iter().filter_map(|list| list.database.as_ref());
    match owners.rfind(|owner| Some(&owner.identity) != identity) {
        None => Ok(()),
        Some(owner) => Err(Error::OtherDatabase {
            target: target.name().to_owned(),
            owner: owner.clone(),
        }),
    }
}

/// The whole path of the database, where it is known; an address in an object store is whole.
fn shown(directory: &Path) -> String {
    if let Some(address) = directory.to_str().filter(|text| text.contains("://")) {
        return address.to_owned();
    }
    let whole = std::path::absolute(directory);
    let whole = whole.as_deref().unwrap_or(directory);
    whole.display().to_string()
}

/// The object of a file: its name, with what tells its content from others of the same name.
fn object_of(file: &StateFile) -> String {
    let (name, bytes) = (&file.name, file.content.len());
    format!("objects/{name}-{bytes}-{:08x}", file.crc32c)
}

fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as i64)
}
