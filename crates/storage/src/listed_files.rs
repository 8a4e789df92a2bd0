//! Whether files are those that a manifest lists: there, as long as it says, and with the checksum that it has.

use std::path::Path;

use crate::block_file::FileSummary;
use crate::components::{DirectoryComponents, FileEntry};
use crate::io::FileSystem;
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

fn check_length(file_system: &dyn FileSystem, path: &Path, expected: u64) -> Result<()> {
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
