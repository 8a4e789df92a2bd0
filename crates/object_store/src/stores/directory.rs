//! A local directory as an object store, for processes of one machine and for tests.
//!
//! Reading and listing is `object_store`'s. It neither puts under the condition that the object is
//! still the one that was read, nor syncs what it puts; both is done here: a file is written under
//! another name and synced, then renamed, and its directory synced. Conditional puts take turns by
//! a lock of the operating system on a file beside the objects, so they are right between
//! processes.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt as _, PutMode, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result, UploadPart,
};
use rustix::fs::FlockOperation;

const NAME: &str = "directory";
/// Names that end so are passed over when objects are listed: they are being written.
const UNFINISHED: &str = "#";

/// The directory.
#[derive(Debug)]
pub(crate) struct DirectoryStore {
    inner: LocalFileSystem,
    directory: PathBuf,
}

impl fmt::Display for DirectoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.directory.display())
    }
}

impl DirectoryStore {
    /// Opens one, made if it is missing.
    pub(crate) fn create(directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory).map_err(failed)?;
        let directory = directory.canonicalize().map_err(failed)?;
        Ok(Self {
            inner: LocalFileSystem::new_with_prefix(&directory)?,
            directory,
        })
    }
}

fn failed(source: io::Error) -> Error {
    Error::Generic {
        store: NAME,
        source: source.into(),
    }
}

/// Puts a file, and the names that lead to it, on the disk.
fn sync_names(directory: &Path, file: &Path) -> io::Result<()> {
    let parents = file.ancestors().skip(1);
    let mut inside = parents.take_while(|parent| parent.starts_with(directory));
    inside.try_for_each(|parent| File::open(parent)?.sync_all())
}

/// A name beside a file that no other writer takes.
fn unfinished(file: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut name = file.file_name().unwrap_or_default().to_os_string();
    name.push(format!("{UNFINISHED}{}{number:08}", std::process::id()));
    file.with_file_name(name)
}

fn write(file: &Path, payload: &PutPayload) -> io::Result<()> {
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut out = File::create(file)?;
    payload.iter().try_for_each(|bytes| out.write_all(bytes))?;
    out.sync_all()
}

/// Puts in place what was written under another name.
async fn put_in_place(
    inner: &LocalFileSystem,
    location: &ObjectPath,
    (written, file): (&Path, &Path),
    mode: &PutMode,
) -> Result<()> {
    match mode {
        PutMode::Overwrite => fs::rename(written, file).map_err(failed),
        PutMode::Create => fs::hard_link(written, file).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => Error::AlreadyExists {
                path: location.to_string(),
                source: source.into(),
            },
            _ => failed(source),
        }),
        PutMode::Update(version) => {
            let found = match inner.head(location).await {
                Ok(meta) => meta.e_tag,
                Err(Error::NotFound { .. }) => None,
                Err(error) => return Err(error),
            };
            if found.is_none() || found != version.e_tag {
                return Err(Error::Precondition {
                    path: location.to_string(),
                    source: "it is another object by now".into(),
                });
            }
            fs::rename(written, file).map_err(failed)
        }
    }
}

#[async_trait]
impl ObjectStore for DirectoryStore {
    async fn put_opts(
        &self,
        location: &ObjectPath,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let file = self.inner.path_to_filesystem(location)?;
        let written = unfinished(&file);
        let directory = self.directory.clone();
        let (inner, location) = (self.inner.clone(), location.clone());
        // Waiting for the disk and the lock blocks; what is awaited inside does not wait for
        // anything else.
        let put = tokio::task::spawn_blocking(move || {
            write(&written, &payload).map_err(failed)?;
            let lock = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(directory.join(format!("turn{UNFINISHED}0")))
                .map_err(failed)?;
            rustix::fs::flock(&lock, FlockOperation::LockExclusive)
                .map_err(|error| failed(error.into()))?;
            let placed = futures::executor::block_on(put_in_place(
                &inner,
                &location,
                (&written, &file),
                &options.mode,
            ));
            // Of a renamed file nothing is left under that name.
            let _ignored = fs::remove_file(&written);
            placed?;
            sync_names(&directory, &file).map_err(failed)?;
            let meta = futures::executor::block_on(inner.head(&location))?;
            Ok(PutResult {
                e_tag: meta.e_tag,
                version: None,
            })
        });
        put.await?
    }

    async fn put_multipart_opts(
        &self,
        location: &ObjectPath,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(SyncedUpload {
            inner: self.inner.put_multipart_opts(location, options).await?,
            file: self.inner.path_to_filesystem(location)?,
            directory: self.directory.clone(),
        }))
    }

    async fn get_opts(&self, location: &ObjectPath, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &ObjectPath, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<ObjectPath>>,
    ) -> BoxStream<'static, Result<ObjectPath>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &ObjectPath,
        to: &ObjectPath,
        options: CopyOptions,
    ) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// A file that is written in parts, and synced at its end.
#[derive(Debug)]
struct SyncedUpload {
    inner: Box<dyn MultipartUpload>,
    file: PathBuf,
    directory: PathBuf,
}

#[async_trait]
impl MultipartUpload for SyncedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let put = self.inner.complete().await?;
        let (file, directory) = (self.file.clone(), self.directory.clone());
        let synced = tokio::task::spawn_blocking(move || {
            File::open(&file)?.sync_all()?;
            sync_names(&directory, &file)
        });
        synced.await?.map_err(failed)?;
        Ok(put)
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_writers_at_the_same_time_one_is_first_and_the_others_hear_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let runtime = crate::stores::runtime::handle().unwrap();
        let path = ObjectPath::from("some/counter");
        let store = DirectoryStore::create(directory.path()).unwrap();
        let (first, at) = (store.inner.clone(), path.clone());
        crate::stores::runtime::wait(&runtime, async move {
            let create = || PutOptions::from(PutMode::Create);
            store.put_opts(&path, "0".into(), create()).await.unwrap();
            let again = store.put_opts(&path, "1".into(), create()).await;
            assert!(matches!(again, Err(Error::AlreadyExists { .. })));
            Ok(())
        })
        .unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                // Each with a file of its own for the lock, as processes have.
                let store = DirectoryStore::create(directory.path()).unwrap();
                let (runtime, at) = (runtime.clone(), at.clone());
                scope.spawn(move || {
                    crate::stores::runtime::wait(&runtime, async move {
                        for _ in 0..25 {
                            while !add_one(&store, &at).await {}
                        }
                        Ok(())
                    })
                    .unwrap();
                });
            }
        });
        let counted = crate::stores::runtime::wait(&runtime, async move {
            let listed = first
                .list_with_delimiter(Some(&"some".into()))
                .await
                .unwrap();
            assert_eq!(listed.objects.len(), 1, "nothing unfinished is left");
            Ok(first.get(&at).await.unwrap().bytes().await.unwrap())
        });
        assert_eq!(&counted.unwrap()[..], b"100");
    }

    async fn add_one(store: &DirectoryStore, path: &ObjectPath) -> bool {
        let found = store.get(path).await.unwrap();
        let version = object_store::UpdateVersion {
            e_tag: found.meta.e_tag.clone(),
            version: None,
        };
        let text = String::from_utf8(found.bytes().await.unwrap().to_vec()).unwrap();
        let next = (text.parse::<u64>().unwrap() + 1).to_string();
        let options = PutOptions::from(PutMode::Update(version));
        match store.put_opts(path, next.into(), options).await {
            Ok(_) => true,
            Err(Error::Precondition { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    }
}
