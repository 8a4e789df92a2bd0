//! The local file system.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FlockOperation;

use super::{FileBytes, FileLock, FileMetadata, FileSystem, FileWriter, LogFile};
use crate::{Error, Result};

/// Bytes gathered before they are handed to the operating system.
const WRITE_BUFFER_BYTES: usize = 256 * 1024;

/// The file system of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalFileSystem;

impl LocalFileSystem {
    /// Asks the operating system to forget what it has cached of a file, so that the next reader
    /// finds it as after a restart of the machine. Changes are written to the disk before. What a
    /// process has mapped and touched stays.
    pub fn drop_cached(&self, path: &Path) -> Result<()> {
        let file = open_file(path)?;
        let of_error = |error: io::Error| Error::from_io(path, "forget", error);
        file.sync_all().map_err(of_error)?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
            .map_err(|error| of_error(error.into()))
    }
}

impl FileSystem for LocalFileSystem {
    fn create(&self, path: &Path) -> Result<Box<dyn FileWriter>> {
        let file = File::create(path).map_err(|error| Error::from_io(path, "create", error))?;
        Ok(Box::new(LocalWriter {
            file,
            path: path.to_path_buf(),
            buffer: Vec::with_capacity(WRITE_BUFFER_BYTES),
            bytes_written: 0,
        }))
    }

    fn map(&self, path: &Path) -> Result<FileBytes> {
        let file = open_file(path)?;
        FileBytes::map(&file).map_err(|error| Error::from_io(path, "map", error))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        open_file(path)?
            .read_to_end(&mut bytes)
            .map_err(|error| Error::from_io(path, "read", error))?;
        Ok(bytes)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Read + Send>> {
        Ok(Box::new(open_file(path)?))
    }

    fn open_at(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>> {
        let mut file = open_file(path)?;
        file.seek(SeekFrom::Start(offset))
            .map_err(|error| Error::from_io(path, "read", error))?;
        Ok(Box::new(file))
    }

    fn create_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        let file = File::create(path).map_err(|error| Error::from_io(path, "create", error))?;
        Ok(LocalLogFile::shared(file, path))
    }

    fn open_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        let file = OpenOptions::new()
            .write(true)
            .open(path)
            .map_err(|error| Error::from_io(path, "open", error))?;
        Ok(LocalLogFile::shared(file, path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(|error| Error::from_io(from, "rename", error))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|error| Error::from_io(path, "remove", error))
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        fs::remove_dir_all(path).map_err(|error| Error::from_io(path, "remove", error))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        fs::create_dir_all(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::NotADirectory {
                path: path.to_path_buf(),
                operation: "create",
            },
            _ => Error::from_io(path, "create", error),
        })
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        File::open(path)
            .and_then(|directory| directory.sync_all())
            .map_err(|error| Error::from_io(path, "sync", error))
    }

    fn list(&self, path: &Path) -> Result<Vec<PathBuf>> {
        let of_error = |error| Error::from_io(path, "list", error);
        let mut entries = fs::read_dir(path)
            .map_err(of_error)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<_>>>()
            .map_err(of_error)?;
        entries.sort_unstable();
        Ok(entries)
    }

    fn metadata(&self, path: &Path) -> Result<Option<FileMetadata>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(FileMetadata {
                bytes: metadata.len(),
                is_directory: metadata.is_dir(),
                is_file: metadata.is_file(),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::from_io(path, "look at", error)),
        }
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| Error::from_io(path, "lock", error))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(Error::Locked {
                    path: path.to_path_buf(),
                    holder: read_holder(&mut file),
                });
            }
            Err(error) => return Err(Error::from_io(path, "lock", error.into())),
        }
        Ok(Box::new(LocalLock {
            file,
            path: path.to_path_buf(),
        }))
    }
}

/// Opens for reading; a directory is refused here, for the system would only refuse the first read.
fn open_file(path: &Path) -> Result<File> {
    let of_error = |error| Error::from_io(path, "open", error);
    let file = File::open(path).map_err(of_error)?;
    if file.metadata().map_err(of_error)?.is_dir() {
        return Err(Error::IsADirectory {
            path: path.to_path_buf(),
            operation: "open",
        });
    }
    Ok(file)
}

fn read_holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(64).read_to_string(&mut text).ok()?;
    let first = text.lines().next()?.trim_end();
    first.strip_prefix("process ").unwrap_or(first).parse().ok()
}

#[derive(Debug)]
struct LocalLock {
    /// The lock lives as long as the open file, or until it is given back.
    file: File,
    path: PathBuf,
}

impl FileLock for LocalLock {
    fn write(&self, content: &[u8]) -> Result<()> {
        self.file
            .write_all_at(content, 0)
            .and_then(|()| self.file.set_len(content.len() as u64))
            .map_err(|error| Error::from_io(&self.path, "write", error))
    }

    fn sync(&self) -> Result<()> {
        self.file
            .sync_data()
            .map_err(|error| Error::from_io(&self.path, "sync", error))
    }
}

impl Drop for LocalLock {
    /// Unlocks explicitly, rather than by closing the file: a process that another thread starts at
    /// this moment has a copy of the open file until it runs another program, and would prolong the
    /// lock.
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

#[derive(Debug)]
struct LocalWriter {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
    bytes_written: u64,
}

impl LocalWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .map_err(|error| Error::from_io(&self.path, "write", error))
    }
}

impl FileWriter for LocalWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > WRITE_BUFFER_BYTES {
            self.flush()?;
        }
        if bytes.len() >= WRITE_BUFFER_BYTES {
            self.write(bytes)?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        self.bytes_written += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let written = self.write(&buffer);
        buffer.clear();
        self.buffer = buffer;
        written
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.file
            .sync_data()
            .map_err(|error| Error::from_io(&self.path, "sync", error))
    }

    fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

#[derive(Debug)]
struct LocalLogFile {
    file: File,
    path: PathBuf,
}

impl LocalLogFile {
    fn shared(file: File, path: &Path) -> Arc<dyn LogFile> {
        let path = path.to_path_buf();
        Arc::new(Self { file, path })
    }
}

impl LogFile for LocalLogFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all_at(bytes, offset)
            .map_err(|error| Error::from_io(&self.path, "write", error))
    }

    fn sync(&self) -> Result<()> {
        self.file
            .sync_data()
            .map_err(|error| Error::from_io(&self.path, "sync", error))
    }

    fn set_length(&self, bytes: u64) -> Result<()> {
        self.file
            .set_len(bytes)
            .map_err(|error| Error::from_io(&self.path, "cut off", error))
    }

    fn length(&self) -> Result<u64> {
        self.file
            .metadata()
            .map(|metadata| metadata.len())
            .map_err(|error| Error::from_io(&self.path, "look at", error))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_can_be_mapped_after_a_sync() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut expected = Vec::new();
        let mut writer = LocalFileSystem.create(&path).unwrap();
        for length in [
            0,
            1,
            1000,
            WRITE_BUFFER_BYTES,
            7,
            3 * WRITE_BUFFER_BYTES + 1,
        ] {
            let bytes = vec![length as u8; length];
            writer.append(&bytes).unwrap();
            expected.extend_from_slice(&bytes);
        }
        writer.sync().unwrap();
        assert_eq!(writer.bytes_written(), expected.len() as u64);
        assert_eq!(&*LocalFileSystem.map(&path).unwrap(), &expected[..]);
        assert_eq!(LocalFileSystem.read(&path).unwrap(), expected);
    }

    #[test]
    fn a_log_file_is_written_in_place_and_read_from_any_byte() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        assert!(LocalFileSystem.open_log(&path).is_err());
        let log = LocalFileSystem.create_log(&path).unwrap();
        log.write_at(0, b"abcdef").unwrap();
        log.write_at(4, b"XY").unwrap();
        log.set_length(5).unwrap();
        log.sync().unwrap();
        let again = LocalFileSystem.open_log(&path).unwrap();
        assert_eq!(again.length().unwrap(), 5);
        again.write_at(5, b"!").unwrap();
        let read_from = |offset| {
            let mut text = String::new();
            let mut file = LocalFileSystem.open_at(&path, offset).unwrap();
            file.read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(read_from(0), "abcdX!");
        assert_eq!(read_from(3), "dX!");
        assert_eq!(read_from(99), "");
    }

    #[test]
    fn a_second_lock_is_refused_and_names_the_holder() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("LOCK");
        let held = LocalFileSystem.lock(&path).unwrap();
        held.write(format!("process {}\n", std::process::id()).as_bytes())
            .unwrap();
        held.sync().unwrap();
        let Err(Error::Locked { holder, .. }) = LocalFileSystem.lock(&path) else {
            panic!("the second lock was granted");
        };
        assert_eq!(holder, Some(std::process::id()));
        drop(held);
        LocalFileSystem.lock(&path).unwrap();
    }

    #[test]
    fn a_lock_that_is_given_back_is_free_though_a_copy_of_its_file_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("LOCK");
        let file = File::create(&path).unwrap();
        // What a process that is being started has for a moment.
        let copy = file.try_clone().unwrap();
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        drop(LocalLock {
            file,
            path: path.clone(),
        });
        LocalFileSystem.lock(&path).unwrap();
        drop(copy);
    }

    #[test]
    fn a_directory_and_a_missing_file_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let open = |path: &Path| LocalFileSystem.map(path);
        assert!(matches!(
            open(directory.path()),
            Err(Error::IsADirectory { .. })
        ));
        assert!(matches!(
            open(&directory.path().join("absent")),
            Err(Error::NotFound { .. })
        ));
        assert!(matches!(
            LocalFileSystem.create(directory.path()),
            Err(Error::IsADirectory { .. })
        ));
        assert_eq!(
            LocalFileSystem
                .metadata(&directory.path().join("absent"))
                .unwrap(),
            None
        );
    }

    #[test]
    fn an_empty_file_maps_to_no_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("empty");
        LocalFileSystem.create(&path).unwrap().sync().unwrap();
        assert!(LocalFileSystem.map(&path).unwrap().is_empty());
    }

    #[test]
    fn a_full_disk_is_named_as_such() {
        // A device that is always full.
        let mut writer = LocalFileSystem.create(Path::new("/dev/full")).unwrap();
        writer.append(b"small enough for the buffer").unwrap();
        assert!(matches!(writer.flush(), Err(Error::NoSpace { .. })));
        let large = vec![1; 2 * WRITE_BUFFER_BYTES];
        assert!(matches!(writer.append(&large), Err(Error::NoSpace { .. })));
    }
}
