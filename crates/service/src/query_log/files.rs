//! The file operations of the query log's writer: a small interface, so that tests can replace the
//! disk.

use orrery_query_log::FileName;
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

/// For the owner alone: queries are confidential.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The directory of the log.
pub(crate) trait LogFiles: Send + fmt::Debug {
    /// The log's files, with their lengths.
    fn list(&self) -> io::Result<Vec<(FileName, u64)>>;
    /// Creates a file that does not exist yet.
    fn create(&self, name: FileName) -> io::Result<Box<dyn LogFile>>;
    fn remove(&self, name: FileName) -> io::Result<()>;
}

/// An open file of the log.
pub(crate) trait LogFile: Send + fmt::Debug {
    /// Appends all of these bytes, or none.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Waits until the bytes are on the disk.
    fn sync(&mut self) -> io::Result<()>;
}

/// A local directory.
#[derive(Debug)]
pub(crate) struct LocalFiles {
    directory: PathBuf,
}

impl LocalFiles {
    /// Opens the directory, and creates it if missing.
    pub(crate) fn open(directory: PathBuf) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(DIRECTORY_MODE);
        builder.create(&directory)?;
        Ok(Self { directory })
    }
}

impl LogFiles for LocalFiles {
    fn list(&self) -> io::Result<Vec<(FileName, u64)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if let Some(Ok(name)) = name.to_str().map(str::parse) {
                found.push((name, entry.metadata()?.len()));
            }
        }
        Ok(found)
    }

    fn create(&self, name: FileName) -> io::Result<Box<dyn LogFile>> {
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).mode(FILE_MODE);
        let file = options.open(self.directory.join(name.to_string()))?;
        Ok(Box::new(LocalFile { file, bytes: 0 }))
    }

    fn remove(&self, name: FileName) -> io::Result<()> {
        fs::remove_file(self.directory.join(name.to_string()))
    }
}

#[derive(Debug)]
struct LocalFile {
    file: File,
    bytes: u64,
}

impl LogFile for LocalFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes);
        match &written {
            Ok(()) => self.bytes += bytes.len() as u64,
            // Half a line would spoil the next one. If this fails too, readers skip the line.
            Err(_) => drop(self.file.set_len(self.bytes)),
        }
        written
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}
