//! Requests to the object store, with timeouts, counters and retries.
//!
//! Reads, and puts of the same bytes, are retried until they succeed or [`Timing::attempts_max`] is
//! reached. A conditional put is asked once ([`Store::put_if`]): what a missing answer means only
//! its caller can find out, who knows what was put.
//!
//! Names are relative to the database's prefix.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures::TryStreamExt as _;
use futures::future::BoxFuture;
use object_store::path::Path as ObjectPath;
use object_store::{
    GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
    UpdateVersion,
};
use tokio::runtime::Handle;

use crate::cache::Origin;
use crate::error::{Asked, ObjectError, is_permanent};
use crate::stores::counts::{Counting, RequestKind};
use crate::stores::runtime;
use crate::timing::Timing;

/// Deletions that are on their way at the same time.
const DELETIONS_AT_ONCE: usize = 16;

/// An object as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Fetched {
    pub(crate) bytes: Bytes,
    /// Tells this content from any other.
    pub(crate) e_tag: String,
    /// When it was put, by the store's clock.
    pub(crate) modified: SystemTime,
}

/// What became of an object since it was read.
#[derive(Debug)]
pub(crate) enum Change {
    Same,
    Gone,
    New(Fetched),
}

/// What a conditional put wants to find.
#[derive(Debug, Clone)]
pub(crate) enum Condition {
    /// Nothing.
    Absent,
    /// The content with this tag.
    Tag(String),
}

/// The answer to a conditional put.
#[derive(Debug)]
pub(crate) enum Put {
    /// It is done; the tag of the new content.
    Done(String),
    /// What it wanted to find was not there.
    Refused,
}

/// The objects of one database.
pub(crate) struct Store {
    inner: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    /// The database's address, for messages.
    pub(crate) address: String,
    pub(crate) timing: Timing,
    pub(crate) counting: Counting,
    pub(crate) runtime: Handle,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Store {
    pub(crate) fn new(
        inner: Arc<dyn ObjectStore>,
        prefix: ObjectPath,
        address: &str,
        timing: Timing,
    ) -> Asked<Self> {
        Ok(Self {
            inner,
            prefix,
            address: address.to_owned(),
            timing,
            counting: Counting::default(),
            runtime: runtime::handle()?,
        })
    }

    /// Runs requests on the runtime's threads and waits for what comes of them.
    pub(crate) fn wait<T, F>(self: &Arc<Self>, work: impl FnOnce(Arc<Self>) -> F) -> Asked<T>
    where
        T: Send + 'static,
        F: Future<Output = Asked<T>> + Send + 'static,
    {
        runtime::wait(&self.runtime, work(Arc::clone(self)))
    }

    fn path(&self, object: &str) -> ObjectPath {
        let parts = object.split('/').filter(|part| !part.is_empty());
        parts.fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// The name of an object below the prefix.
    fn name(&self, path: &ObjectPath) -> Option<String> {
        let parts: Vec<String> = path
            .prefix_match(&self.prefix)?
            .map(|part| part.as_ref().to_owned())
            .collect();
        Some(parts.join("/"))
    }

    pub(crate) fn failed(
        &self,
        operation: &'static str,
        object: &str,
        source: object_store::Error,
    ) -> ObjectError {
        ObjectError::Store {
            operation,
            object: object.to_owned(),
            store: self.address.clone(),
            source: Box::new(source),
            tries: 1,
        }
    }

    /// What was found in an object is not what was put there.
    pub(crate) fn damaged(&self, object: &str, what: impl Into<String>) -> ObjectError {
        ObjectError::Damaged {
            object: object.to_owned(),
            store: self.address.clone(),
            what: what.into(),
        }
    }

    /// One try.
    async fn once<T>(
        &self,
        kind: RequestKind,
        (operation, object): (&'static str, &str),
        bytes: u64,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> Asked<T> {
        self.counting.asked(kind);
        let limit = self.timing.of_bytes(bytes);
        match tokio::time::timeout(limit, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                if !is_permanent(&error) {
                    self.counting.failed();
                }
                Err(self.failed(operation, object, error))
            }
            Err(_) => {
                self.counting.failed();
                Err(ObjectError::TimedOut {
                    operation,
                    object: object.to_owned(),
                    store: self.address.clone(),
                    seconds: limit.as_secs(),
                })
            }
        }
    }

    /// Tries until there is an answer.
    async fn retried<T, F>(
        &self,
        kind: RequestKind,
        about: (&'static str, &str),
        bytes: u64,
        request: impl Fn() -> F,
    ) -> Asked<T>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        let mut tries = 0;
        loop {
            let answer = self.once(kind, about, bytes, request()).await;
            tries += 1;
            match answer {
                Err(error) if !error.is_refusal() && tries < self.timing.attempts_max => {
                    tracing::debug!("{error}; it is tried again");
                    self.pause(tries - 1).await;
                }
                answer => return answer.map_err(|error| error.after(tries)),
            }
        }
    }

    /// Waits before the next try after so many more than one that failed.
    pub(crate) async fn pause(&self, failed: u32) {
        self.counting.retried();
        tokio::time::sleep(self.timing.backoff(failed)).await;
    }

    /// An object, if it is there.
    pub(crate) async fn get(&self, object: &str) -> Asked<Option<Fetched>> {
        match self.get_changed(object, None).await? {
            Change::New(fetched) => Ok(Some(fetched)),
            Change::Gone | Change::Same => Ok(None),
        }
    }

    /// An object, unless it is still the one with a tag.
    pub(crate) async fn get_changed(&self, object: &str, e_tag: Option<&str>) -> Asked<Change> {
        let path = self.path(object);
        let fetched = self.retried(RequestKind::Get, ("read", object), 0, || async {
            let options = GetOptions {
                if_none_match: e_tag.map(str::to_owned),
                ..GetOptions::default()
            };
            let found = self.inner.get_opts(&path, options).await?;
            let meta = found.meta.clone();
            Ok((meta, found.bytes().await?))
        });
        match fetched.await {
            Ok((meta, bytes)) => {
                self.counting.received(bytes.len());
                Ok(Change::New(Fetched {
                    bytes,
                    e_tag: meta.e_tag.unwrap_or_default(),
                    modified: meta.last_modified.into(),
                }))
            }
            Err(error) if error.is_not_found() => Ok(Change::Gone),
            Err(ObjectError::Store { source, .. })
                if matches!(*source, object_store::Error::NotModified { .. }) =>
            {
                Ok(Change::Same)
            }
            Err(error) => Err(error),
        }
    }

    /// When an object was put, by the store's clock, if it is there.
    pub(crate) async fn modified(&self, object: &str) -> Asked<Option<SystemTime>> {
        let path = self.path(object);
        let found = self.retried(RequestKind::Head, ("look at", object), 0, || {
            self.inner.head(&path)
        });
        match found.await {
            Ok(meta) => Ok(Some(meta.last_modified.into())),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What time it is by the store's clock: that of an object that is put now.
    pub(crate) async fn now(&self, asker: &str) -> Asked<SystemTime> {
        let object = format!("clock/{asker}");
        self.put(&object, Bytes::from_static(b"now\n")).await?;
        let now = self.modified(&object).await?;
        if let Err(error) = self.delete(&object).await {
            tracing::debug!("an object that asked for the time stays: {error}");
        }
        now.ok_or_else(|| {
            let what = "it is not there, and was put a moment ago";
            self.damaged(&object, what)
        })
    }

    /// Puts an object, in place of what is there.
    pub(crate) async fn put(&self, object: &str, bytes: Bytes) -> Asked<()> {
        let path = self.path(object);
        let length = bytes.len();
        self.retried(RequestKind::Put, ("put", object), length as u64, || {
            self.inner.put(&path, PutPayload::from(bytes.clone()))
        })
        .await?;
        self.counting.sent(length);
        Ok(())
    }

    /// Asks once for a put under a condition. After an error nobody knows whether it was done.
    pub(crate) async fn put_if(
        &self,
        object: &str,
        bytes: Bytes,
        condition: &Condition,
    ) -> Asked<Put> {
        let mode = match condition {
            Condition::Absent => PutMode::Create,
            Condition::Tag(e_tag) => PutMode::Update(UpdateVersion {
                e_tag: Some(e_tag.clone()),
                version: None,
            }),
        };
        let path = self.path(object);
        let length = bytes.len();
        let payload = PutPayload::from(bytes);
        let request = self.inner.put_opts(&path, payload, PutOptions::from(mode));
        let about = ("put", object);
        match self
            .once(RequestKind::PutIf, about, length as u64, request)
            .await
        {
            Ok(put) => {
                self.counting.sent(length);
                match put.e_tag {
                    Some(e_tag) => Ok(Put::Done(e_tag)),
                    None => Err(self.damaged(object, "the store gives no ETag for it")),
                }
            }
            Err(ObjectError::Store { source, .. })
                if matches!(
                    *source,
                    object_store::Error::AlreadyExists { .. }
                        | object_store::Error::Precondition { .. }
                ) =>
            {
                Ok(Put::Refused)
            }
            Err(error) => Err(error),
        }
    }

    /// Puts a local file as an object.
    pub(crate) async fn upload(&self, object: &str, file: &Path, bytes: u64) -> Asked<()> {
        let mut tries = 0;
        loop {
            let answer = self.upload_once(object, file, bytes).await;
            tries += 1;
            match answer {
                Err(error @ (ObjectError::Store { .. } | ObjectError::TimedOut { .. }))
                    if !error.is_refusal() && tries < self.timing.attempts_max =>
                {
                    tracing::debug!("{error}; it is sent again");
                    self.pause(tries - 1).await;
                }
                answer => return answer.map_err(|error| error.after(tries)),
            }
        }
    }

    async fn upload_once(&self, object: &str, file: &Path, bytes: u64) -> Asked<()> {
        crate::stores::upload::Upload {
            store: &*self.inner,
            path: &self.path(object),
            file,
            bytes,
        }
        .run(|bytes, request| self.once(RequestKind::Put, ("put", object), bytes, request))
        .await?;
        self.counting.sent(bytes as usize);
        Ok(())
    }

    /// Names of all objects below a folder, with when they were put.
    pub(crate) async fn list(&self, folder: &str) -> Asked<Vec<(String, SystemTime)>> {
        let path = self.path(folder);
        let found = self.retried(RequestKind::List, ("list", folder), 0, || {
            self.inner.list(Some(&path)).try_collect::<Vec<_>>()
        });
        let found = found.await?.into_iter().filter_map(|meta| {
            let name = self.name(&meta.location)?;
            Some((name, meta.last_modified.into()))
        });
        Ok(found.collect())
    }

    /// Names of the folders in a folder.
    pub(crate) async fn list_folders(&self, folder: &str) -> Asked<Vec<String>> {
        let path = self.path(folder);
        let found = self.retried(RequestKind::List, ("list", folder), 0, || {
            self.inner.list_with_delimiter(Some(&path))
        });
        let folders = found.await?.common_prefixes;
        Ok(folders.iter().filter_map(|path| self.name(path)).collect())
    }

    /// Deletes an object; fine if it is not there.
    pub(crate) async fn delete(&self, object: &str) -> Asked<()> {
        let path = self.path(object);
        let deleted = self.retried(RequestKind::Delete, ("delete", object), 0, || {
            self.inner.delete(&path)
        });
        match deleted.await {
            Err(error) if error.is_not_found() => Ok(()),
            answer => answer,
        }
    }

    /// Deletes all objects below a folder.
    pub(crate) async fn delete_folder(&self, folder: &str) -> Asked<()> {
        let objects = self.list(folder).await?;
        for some in objects.chunks(DELETIONS_AT_ONCE) {
            let deletions = some.iter().map(|(object, _)| self.delete(object));
            futures::future::try_join_all(deletions).await?;
        }
        Ok(())
    }
}

/// Where the cache gets its bytes from.
impl Origin for Store {
    fn get_range<'a>(
        &'a self,
        key: &'a str,
        range: Range<u64>,
    ) -> BoxFuture<'a, orrery_storage::Result<Bytes>> {
        Box::pin(async move {
            let path = self.path(key);
            let length = range.end - range.start;
            let fetched = self.retried(RequestKind::Get, ("read", key), length, || async {
                let options = GetOptions {
                    range: Some(GetRange::Bounded(range.clone())),
                    ..GetOptions::default()
                };
                self.inner.get_opts(&path, options).await?.bytes().await
            });
            let bytes = fetched.await.and_then(|bytes| match bytes.len() as u64 {
                found if found == length => Ok(bytes),
                found => {
                    let what = format!(
                        "{found} bytes came where {length} from {} on are",
                        range.start
                    );
                    Err(self.damaged(key, what))
                }
            });
            let bytes = bytes.map_err(|error| {
                let path = Path::new(&self.address).join(key);
                error.at(&path, "read")
            })?;
            self.counting.received(bytes.len());
            Ok(bytes)
        })
    }
}
