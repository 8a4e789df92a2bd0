//! The check of files against the manifest: presence, length and checksum.

use std::path::Path;

use crate::files::block_file::FileSummary;
use crate::files::components::{Component, DirectoryComponents, FileEntry};
use crate::files::damage::{Damage, damage_of};
use crate::files::io::FileSystem;
use crate::{Error, Result};

/// Checks that the files of a directory are there and have their lengths.
pub(crate) fn check_lengths(
    file_system: &dyn FileSystem,
    directory: &Path,
    entry: &DirectoryComponents,
) -> Result<()> {
    entry
        .known_files()
        .map(|(_, file)| file)
        .try_for_each(|file| check_length(file_system, &directory.join(&file.name), file.bytes))
}

/// Checks that a file is there and has its length.
pub(crate) fn check_length(file_system: &dyn FileSystem, path: &Path, expected: u64) -> Result<()> {
    let Some(found) = file_system.metadata(path)? else {
        return Err(Error::NotFound {
            path: path.to_path_buf(),
            operation: "open",
        });
    };
    if found.bytes != expected || found.is_directory {
        let what = format!("it has {} bytes, the manifest says {expected}", found.bytes);
        return Err(Error::corrupt(path, found.bytes.min(expected), what));
    }
    Ok(())
}

/// Checks each file of a directory that is there and has its length further, and reports all
/// damage.
pub(crate) fn verify_directory(
    file_system: &dyn FileSystem,
    directory: &Path,
    entry: &DirectoryComponents,
    check: impl Fn(&Path, Component, &FileEntry) -> Result<Vec<Error>>,
    damages: &mut Vec<Damage>,
) {
    for (component, file) in entry.known_files() {
        let path = directory.join(&entry.name).join(&file.name);
        let found = verify_length(file_system, &path, file.bytes);
        match found.and_then(|()| check(&path, component, file)) {
            Ok(found) => damages.extend(found.into_iter().map(|error| damage_of(error, &path))),
            Err(error) => damages.push(damage_of(error, &path)),
        }
    }
}

/// As [`check_length`], but a file that is missing is damage.
fn verify_length(file_system: &dyn FileSystem, path: &Path, expected: u64) -> Result<()> {
    match file_system.metadata(path)? {
        None => Err(Error::corrupt(path, 0, "the file is missing")),
        Some(found) if found.bytes != expected => {
            let what = format!("it has {} bytes, expected {expected}", found.bytes);
            Err(Error::corrupt(path, found.bytes.min(expected), what))
        }
        Some(_) => Ok(()),
    }
}

/// Checks that a file is the one which the manifest means.
pub(crate) fn check_summary(path: &Path, entry: &FileEntry, found: FileSummary) -> Result<()> {
    if found.crc == entry.crc32c && found.bytes == entry.bytes {
        return Ok(());
    }
    Err(Error::corrupt(
        path,
        found.bytes.saturating_sub(12),
        "it is not the file that the manifest means: the checksums differ",
    ))
}
