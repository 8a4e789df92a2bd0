//! The target of backups: a directory or an object store.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures::TryStreamExt as _;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{
    ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, WriteMultipart,
};
use orrery_storage::reason;
use url::Url;

use crate::Error;
use crate::error::Result;

/// Objects above it are sent in parts.
const PART_BYTES: usize = 8 * 1024 * 1024;
/// Parts that are on their way at the same time.
const PARTS_AT_ONCE: usize = 4;

/// A place for backups.
#[derive(Debug, Clone)]
pub struct Target {
    /// As it was given, for messages.
    name: String,
    store: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    /// The directory of a store that is one: its files have to be synced.
    directory: Option<PathBuf>,
}

/// A file of backups where it stands.
pub(crate) struct StoredObject {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) modified: SystemTime,
}

impl Target {
    /// A directory, which is made if it is missing, or a URL such as `s3://bucket/prefix`. Settings
    /// are pairs such as `AWS_REGION`, `AWS_ENDPOINT`: the environment's variables.
    pub fn parse(
        target: &str,
        settings: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self> {
        let refuse = |what: String| Error::Target {
            target: target.to_owned(),
            what,
        };
        if !target.contains("://") {
            return Self::directory(Path::new(target)).map_err(|error| refuse(reason(&error)));
        }
        let url = Url::parse(target).map_err(|error| refuse(error.to_string()))?;
        if !matches!(url.scheme(), "s3" | "s3a") {
            return Err(refuse(format!("unknown scheme {}", url.scheme())));
        }
        let settings = settings
            .into_iter()
            .filter(|(name, _)| name.starts_with("AWS_"))
            .map(|(name, value)| (name.to_ascii_lowercase(), value));
        let (store, prefix) = object_store::parse_url_opts(&url, settings)
            .map_err(|error| refuse(error.to_string()))?;
        Ok(Self::new(target, store.into(), prefix))
    }

    /// Any object store; the name is for messages.
    pub fn new(name: &str, store: Arc<dyn ObjectStore>, prefix: ObjectPath) -> Self {
        Self {
            name: name.to_owned(),
            store,
            prefix,
            directory: None,
        }
    }

    fn directory(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        let path = path.canonicalize()?;
        if path.join("MANIFEST").is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is a database itself",
            ));
        }
        if let Some(parent) = path.parent() {
            sync(parent)?;
        }
        // Without the option, folders would stay behind for all segments that there ever were.
        let store = LocalFileSystem::new_with_prefix(&path)?.with_automatic_cleanup(true);
        Ok(Self {
            name: path.display().to_string(),
            store: Arc::new(store),
            prefix: ObjectPath::default(),
            directory: Some(path),
        })
    }

    /// The target as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn path(&self, object: &str) -> ObjectPath {
        let parts = object.split('/');
        parts.fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn failed(&self, operation: &'static str, object: &str, source: object_store::Error) -> Error {
        Error::Store {
            operation,
            object: object.to_owned(),
            target: self.name.clone(),
            source: Box::new(source),
        }
    }

    /// The names of the objects of a folder, sorted.
    pub(crate) async fn list(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.path(folder);
        let found = self.store.list_with_delimiter(Some(&path)).await;
        let found = found.map_err(|error| self.failed("list", folder, error))?;
        let names = found.objects.iter().filter_map(|object| {
            let name = object.location.filename()?;
            Some(format!("{folder}/{name}"))
        });
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        Ok(names)
    }

    /// All files of backups.
    pub(crate) async fn list_objects(&self) -> Result<Vec<StoredObject>> {
        let folder = "objects";
        let path = self.path(folder);
        let failed = |error| self.failed("list", folder, error);
        let found = self.store.list(Some(&path));
        let found: Vec<ObjectMeta> = found.try_collect().await.map_err(failed)?;
        let objects = found.into_iter().filter_map(|object| {
            let parts = object.location.prefix_match(&self.prefix)?;
            let parts: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
            Some(StoredObject {
                name: parts.join("/"),
                bytes: object.size,
                modified: object.last_modified.into(),
            })
        });
        Ok(objects.collect())
    }

    /// Removes an object; fine if it is not there.
    pub(crate) async fn remove(&self, object: &str) -> Result<()> {
        match self.store.delete(&self.path(object)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(self.failed("remove", object, error)),
        }
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        // Its folder may have gone with it.
        let file = directory.join(object);
        let left = file.ancestors().skip(1).find(|parent| parent.is_dir());
        left.map_or(Ok(()), sync)
            .map_err(|source| self.not_synced(object, source))
    }

    /// The length of an object, if there is one.
    pub(crate) async fn length(&self, object: &str) -> Result<Option<u64>> {
        match self.store.head(&self.path(object)).await {
            Ok(found) => Ok(Some(found.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("look at", object, error)),
        }
    }

    /// Stores an object, replacing what is there; gives the checksum of what was sent.
    pub(crate) async fn put(&self, object: &str, content: Bytes) -> Result<u32> {
        let crc = match content.len() <= PART_BYTES {
            true => {
                let crc = crc32c::crc32c(&content);
                let put = self.store.put(&self.path(object), content.into()).await;
                put.map(|_| crc)
            }
            false => self.put_in_parts(object, content).await,
        };
        let crc = crc.map_err(|error| self.failed("write", object, error))?;
        self.sync_object(object)?;
        Ok(crc)
    }

    async fn put_in_parts(&self, object: &str, content: Bytes) -> object_store::Result<u32> {
        let upload = self.store.put_multipart(&self.path(object)).await?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        let mut crc = 0;
        for start in (0..content.len()).step_by(PART_BYTES) {
            let part = content.slice(start..content.len().min(start + PART_BYTES));
            crc = crc32c::crc32c_append(crc, &part);
            upload.wait_for_capacity(PARTS_AT_ONCE).await?;
            upload.put(part);
        }
        upload.finish().await?;
        Ok(crc)
    }

    /// Stores an object unless there is one of this name; whether it was stored.
    pub(crate) async fn put_new(&self, object: &str, content: Vec<u8>) -> Result<bool> {
        let options = PutOptions::from(PutMode::Create);
        let payload = PutPayload::from(content);
        match self
            .store
            .put_opts(&self.path(object), payload, options)
            .await
        {
            Ok(_) => {}
            Err(object_store::Error::AlreadyExists { .. }) => return Ok(false),
            Err(error) => return Err(self.failed("write", object, error)),
        }
        self.sync_object(object)?;
        Ok(true)
    }

    /// The whole content of a small object.
    pub(crate) async fn get(&self, object: &str) -> Result<Bytes> {
        let failed = |error| self.failed("read", object, error);
        let found = self.store.get(&self.path(object)).await.map_err(failed)?;
        found.bytes().await.map_err(failed)
    }

    /// The content of an object, piece by piece.
    pub(crate) async fn stream(&self, object: &str) -> Result<BoxStream<'static, Result<Bytes>>> {
        let found = self.store.get(&self.path(object)).await;
        let found = found.map_err(|error| self.failed("read", object, error))?;
        let (target, name) = (self.clone(), object.to_owned());
        let pieces = found.into_stream();
        Ok(Box::pin(
            pieces.map_err(move |error| target.failed("read", &name, error)),
        ))
    }

    /// In a directory: puts the file and the names that lead to it on the disk. A store has done so
    /// by itself.
    fn sync_object(&self, object: &str) -> Result<()> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let file = directory.join(object);
        let parents = file.ancestors().skip(1);
        let mut inside = parents.take_while(|parent| parent.starts_with(directory));
        let synced = sync(&file).and_then(|()| inside.try_for_each(sync));
        synced.map_err(|source| self.not_synced(object, source))
    }

    fn not_synced(&self, object: &str, source: io::Error) -> Error {
        let source = object_store::Error::Generic {
            store: "directory",
            source: source.into(),
        };
        self.failed("sync", object, source)
    }
}

fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
