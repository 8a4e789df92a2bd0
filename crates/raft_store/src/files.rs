//! Files of large objects on a node: `files/<id>`, and `files/<id>.part` until complete.
//!
//! A file comes in pieces, in any order, and is finished: read once more, compared with its
//! checksum, synced, and given its name. So what has its name is whole, and stays whole when the
//! machine stops. It never changes.
//!
//! The same file may be finished twice at a time: an upload asks again where no answer came, and
//! the node itself fetches what it lacks. Whoever comes second waits, and finds it done.

use std::sync::Arc;

use bytes::Bytes;
use crc32c::crc32c_append;
use parking_lot::Mutex;

use crate::blocking::Blocking;
use crate::disk::Disk;
use crate::error::{Error, Result};

const DIRECTORY: &str = "files";
/// Files are sent and read in pieces of this many bytes.
pub(crate) const PIECE_BYTES: u64 = 4 << 20;

/// Where a file lies.
pub(crate) fn path(id: &str) -> String {
    format!("{DIRECTORY}/{id}")
}

fn part(id: &str) -> String {
    format!("{DIRECTORY}/{id}.part")
}

/// The files of a node; clones are the same.
#[derive(Clone)]
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    blocking: Blocking,
    /// Held while a file is finished: one of a few by its name, so that others seldom wait.
    finishing: Arc<[Mutex<()>; FINISHED_TOGETHER]>,
}

/// How many files can be finished at a time.
const FINISHED_TOGETHER: usize = 16;

impl Files {
    /// The files in a node's directory.
    pub(crate) fn new(disk: Arc<dyn Disk>, blocking: Blocking) -> Self {
        Self {
            disk,
            blocking,
            finishing: Arc::new(std::array::from_fn(|_| Mutex::default())),
        }
    }

    /// Writes a piece of a file that is coming in.
    pub(crate) async fn write(&self, id: &str, offset: u64, bytes: Bytes) -> Result<()> {
        let path = part(checked(id)?);
        self.with_disk(move |disk| disk.write_at(&path, offset, &bytes))
            .await
    }

    /// Finishes a file. Doing it twice is no error.
    pub(crate) async fn finish(&self, id: &str, bytes: u64, crc: u32) -> Result<()> {
        let (part, path) = (part(checked(id)?), path(id));
        let finishing = Arc::clone(&self.finishing);
        self.with_disk(move |disk| {
            let place = crc32c_append(0, path.as_bytes()) as usize % FINISHED_TOGETHER;
            let _alone = finishing[place].lock();
            if disk.length(&path)? == Some(bytes) {
                return Ok(());
            }
            let length = disk.length(&part)?.unwrap_or(0);
            let mut found = 0;
            for start in (0..length).step_by(PIECE_BYTES as usize) {
                found = crc32c_append(found, &disk.read_range(&part, start..length.min(start + PIECE_BYTES))?);
            }
            if length != bytes || found != crc {
                disk.remove(&part)?;
                let detail = format!("{length} bytes with checksum {found:08x} came in place of {bytes} with {crc:08x}");
                return Err(Error::Message(format!("a copied file is not as it was sent: {detail}")));
            }
            disk.sync(&part)?;
            disk.rename(&part, &path)?;
            disk.sync_directory(DIRECTORY)
        })
        .await
    }

    /// A range of a file; `None` if this node does not have it.
    pub(crate) async fn read(&self, id: &str, start: u64, end: u64) -> Result<Option<Bytes>> {
        let path = path(checked(id)?);
        self.with_disk(move |disk| match disk.length(&path)? {
            Some(length) if start <= end && end <= length => disk
                .read_range(&path, start..end)
                .map(|bytes| Some(Bytes::from(bytes))),
            _ => Ok(None),
        })
        .await
    }

    /// Names of the files that are whole, and of the parts of others.
    pub(crate) async fn names(&self) -> Result<Vec<String>> {
        self.with_disk(|disk| disk.list(DIRECTORY)).await
    }

    /// Removes what [`Files::names`] has named.
    pub(crate) async fn remove(&self, name: String) -> Result<()> {
        self.with_disk(move |disk| disk.remove(&path(&name))).await
    }

    async fn with_disk<T: Send + 'static>(
        &self,
        job: impl FnOnce(&dyn Disk) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let disk = self.disk.clone();
        self.blocking.run(move || job(&*disk)).await
    }
}

/// A name that comes over the network must not lead out of the directory.
fn checked(id: &str) -> Result<&str> {
    let fits = !id.is_empty()
        && id.len() <= 64
        && id
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if fits {
        Ok(id)
    } else {
        Err(Error::Message(format!("`{id}` is no name of a file")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::LocalDisk;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_file_that_is_finished_several_times_at_once_stays_whole() {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(LocalDisk::open(directory.path()).unwrap());
        let files = Files::new(disk, Blocking::Elsewhere);
        let bytes = Bytes::from(vec![7_u8; 300_000]);
        let crc = crc32c_append(0, &bytes);
        for number in 0..40 {
            let id = format!("1-{number:x}");
            files.write(&id, 0, bytes.clone()).await.unwrap();
            let finishing = (0..4).map(|_| {
                let (files, id, length) = (files.clone(), id.clone(), bytes.len() as u64);
                tokio::spawn(async move { files.finish(&id, length, crc).await })
            });
            for finished in finishing.collect::<Vec<_>>() {
                finished.await.unwrap().unwrap();
            }
            let found = files.read(&id, 0, bytes.len() as u64).await.unwrap();
            assert_eq!(found, Some(bytes.clone()), "{id}");
            let names = files.names().await.unwrap();
            assert!(
                names.iter().all(|name| !name.ends_with(".part")),
                "{names:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_file_of_which_nothing_came_is_not_finished() {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(LocalDisk::open(directory.path()).unwrap());
        assert!(disk.sync("files/1-1.part").is_err(), "nothing is there");
        let files = Files::new(disk, Blocking::Elsewhere);
        assert!(files.finish("1-1", 10, 1).await.is_err());
        assert_eq!(files.names().await.unwrap(), Vec::<String>::new());
    }
}
