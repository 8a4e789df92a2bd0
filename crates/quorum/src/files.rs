//! Files of large objects on one node: `files/<id>`, and `files/<id>.part` until all of it is there.
//!
//! A file comes in pieces, in any order, and is finished: read once more, compared with its checksum, synced, and given its name. So what has
//! its name is whole, and stays whole when the machine stops. It never changes.

use std::sync::Arc;

use bytes::Bytes;
use crc32c::crc32c_append;

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
}

impl Files {
    /// The files in a node's directory.
    pub(crate) fn new(disk: Arc<dyn Disk>, blocking: Blocking) -> Self {
        Self { disk, blocking }
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
        self.with_disk(move |disk| {
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
