//! The cluster's objects as an `object_store::ObjectStore`, seen from one node.
//!
//! A put goes to the leader and is answered when a majority has it on disk: small objects within
//! the log, large ones as files first ([`crate::node::upload`]). A read asks the leader how far
//! this node must have got, waits until it has, and answers from its own state; bytes of large
//! objects come from its disk, or from another node's. [`QuorumStore::stale`] leaves the question
//! out.
//!
//! As with S3, to delete what is not there is no error. Attributes and tags are not kept, so puts
//! that have some are refused.

mod multipart;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use crc32c::crc32c_append;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};

use crate::error::{Error, STORE};
use crate::files::PIECE_BYTES;
use crate::node::core::Core;
use crate::node::fetch;
use crate::node::read::Reader;
use crate::node::upload::Upload;
use crate::node::write::Writer;
use crate::state::Object;
use crate::store::multipart::QuorumUpload;
use crate::types::{Answer, Command, Content, File, INLINE_BYTES_MAX, Mode};

type Result<T, E = object_store::Error> = std::result::Result<T, E>;

/// A path has at most this many bytes: all paths are in memory.
const PATH_BYTES_MAX: usize = 4_096;
/// Deletes that are under way at a time, of one stream.
const DELETES_IN_FLIGHT: usize = 64;
/// How often a read begins anew when the object is replaced while its file is being read.
const READS_MAX: usize = 3;

/// The objects of a cluster; clones are the same.
#[derive(Clone)]
pub struct QuorumStore {
    core: Arc<Core>,
    reader: Reader,
    writer: Writer,
    is_stale: bool,
}

impl fmt::Debug for QuorumStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("QuorumStore")
            .field("node", &self.core.id)
            .field("is_stale", &self.is_stale)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for QuorumStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "quorum (node {})", self.core.id)
    }
}

impl QuorumStore {
    pub(crate) fn new(core: Arc<Core>, reader: Reader, writer: Writer) -> Self {
        Self {
            core,
            reader,
            writer,
            is_stale: false,
        }
    }

    /// The same objects, read from this node's state without asking others, so perhaps stale.
    #[must_use]
    pub fn stale(&self) -> Self {
        Self {
            is_stale: true,
            ..self.clone()
        }
    }

    async fn catch_up(&self) -> Result<()> {
        if self.is_stale {
            return Ok(());
        }
        Ok(self.reader.catch_up().await?)
    }

    async fn object(&self, location: &Path) -> Result<Object> {
        self.catch_up().await?;
        let found = self
            .core
            .shared
            .state
            .read()
            .objects
            .get(location.as_ref())
            .cloned();
        found.ok_or_else(|| not_found(location.as_ref()))
    }

    async fn write(&self, command: Command, path: &Path) -> Result<Option<u64>> {
        let path = path.to_string();
        check_length(&path)?;
        match self.writer.write(command).await? {
            Answer::Put(tag) => Ok(Some(tag)),
            Answer::Deleted => Ok(None),
            Answer::AlreadyExists => Err(object_store::Error::AlreadyExists {
                path,
                source: "an object is there".into(),
            }),
            Answer::Precondition => Err(object_store::Error::Precondition {
                path,
                source: "the object has another tag, or is gone".into(),
            }),
            Answer::NotFound => Err(not_found(&path)),
            Answer::TooFewCopies => {
                let detail =
                    "the members have changed while it was copied; put it again".to_owned();
                Err(Error::TooFewCopies {
                    copies: 0,
                    nodes: self.core.voters().len(),
                    detail,
                }
                .into())
            }
            Answer::Opened(_) | Answer::Forgotten => {
                Err(Error::Message("an answer to another question".to_owned()).into())
            }
        }
    }

    /// Sends a large object to the disks of a majority.
    async fn upload(&self, payload: &PutPayload) -> Result<File> {
        let upload = Upload::start(self.core.clone())?;
        let (mut offset, mut crc) = (0, 0);
        for chunk in payload {
            for piece in pieces(chunk) {
                crc = crc32c_append(crc, &piece);
                let bytes = piece.len() as u64;
                upload.piece(offset, piece).await?;
                offset += bytes;
            }
        }
        Ok(upload.finish(offset, crc).await?)
    }

    async fn bytes(
        &self,
        object: &Object,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes>>, Error> {
        match &object.content {
            Content::Inline(bytes) => {
                let bytes = bytes.slice(range.start as usize..range.end as usize);
                Ok(stream::once(async { Ok(bytes) }).boxed())
            }
            Content::File(file) => {
                // The first piece before the answer: an object that was replaced meanwhile is
                // looked up anew then.
                let first_end = range.end.min(range.start + PIECE_BYTES);
                let first = fetch::range(&self.core, file, range.start, first_end).await?;
                let rest = (first_end..range.end).step_by(PIECE_BYTES as usize);
                let (core, file) = (self.core.clone(), file.clone());
                let rest = stream::iter(rest).then(move |start| {
                    let (core, file) = (core.clone(), file.clone());
                    async move {
                        Ok(
                            fetch::range(&core, &file, start, range.end.min(start + PIECE_BYTES))
                                .await?,
                        )
                    }
                });
                Ok(stream::once(async { Ok(first) }).chain(rest).boxed())
            }
        }
    }

    /// What is below a prefix: that is, the prefix and at least one part more.
    async fn below(&self, prefix: Option<Path>) -> Result<Vec<ObjectMeta>> {
        self.catch_up().await?;
        let state = self.core.shared.state.read();
        let start = prefix
            .as_ref()
            .map_or_else(String::new, |prefix| prefix.as_ref().to_owned());
        let mut found = Vec::new();
        for (path, object) in state
            .objects
            .range(start.clone()..)
            .take_while(|(path, _)| path.starts_with(&start))
        {
            let location = Path::parse(path)?;
            let is_below = prefix.as_ref().is_none_or(|prefix| {
                location
                    .prefix_match(prefix)
                    .is_some_and(|mut parts| parts.next().is_some())
            });
            if is_below {
                found.push(meta(location, object));
            }
        }
        Ok(found)
    }
}

#[async_trait]
impl ObjectStore for QuorumStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        if !options.attributes.is_empty() || !options.tags.encoded().is_empty() {
            return Err(no_attributes("put_opts"));
        }
        let mode = match options.mode {
            PutMode::Overwrite => Mode::Overwrite,
            PutMode::Create => Mode::Create,
            PutMode::Update(version) => match version.e_tag.as_deref().map(str::parse) {
                Some(Ok(tag)) => Mode::Update(tag),
                _ => {
                    let (path, source) = (
                        location.to_string(),
                        "the version has no tag of this store".into(),
                    );
                    return Err(object_store::Error::Precondition { path, source });
                }
            },
        };
        let content = if payload.content_length() <= INLINE_BYTES_MAX {
            Content::Inline(Bytes::from(payload))
        } else {
            Content::File(self.upload(&payload).await?)
        };
        let tag = self
            .write(
                Command::Put {
                    path: location.to_string(),
                    mode,
                    content,
                },
                location,
            )
            .await?;
        Ok(PutResult {
            e_tag: tag.map(|tag| tag.to_string()),
            version: None,
        })
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        if !options.attributes.is_empty() || !options.tags.encoded().is_empty() {
            return Err(no_attributes("put_multipart_opts"));
        }
        check_length(location.as_ref())?;
        let upload = Upload::start(self.core.clone())?;
        Ok(Box::new(QuorumUpload::new(
            upload,
            self.writer.clone(),
            location.to_string(),
        )))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let mut tries = 1;
        loop {
            let object = self.object(location).await?;
            let meta = meta(location.clone(), &object);
            options.check_preconditions(&meta)?;
            let range = match &options.range {
                Some(range) => {
                    range
                        .as_range(meta.size)
                        .map_err(|error| object_store::Error::Generic {
                            store: STORE,
                            source: Box::new(error),
                        })?
                }
                None => 0..meta.size,
            };
            if options.head {
                let payload = GetResultPayload::Stream(stream::empty().boxed());
                return Ok(GetResult {
                    payload,
                    meta,
                    range,
                    attributes: Default::default(),
                });
            }
            match self.bytes(&object, range.clone()).await {
                Ok(bytes) => {
                    return Ok(GetResult {
                        payload: GetResultPayload::Stream(bytes),
                        meta,
                        range,
                        attributes: Default::default(),
                    });
                }
                Err(Error::NoCopy(_)) if tries < READS_MAX => tries += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        let deleted = locations.map(move |location| {
            let store = store.clone();
            async move {
                let location = location?;
                store
                    .write(
                        Command::Delete {
                            paths: vec![location.to_string()],
                        },
                        &location,
                    )
                    .await?;
                Ok(location)
            }
        });
        deleted.buffered(DELETES_IN_FLIGHT).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (store, prefix) = (self.clone(), prefix.cloned());
        let found = async move {
            store
                .below(prefix)
                .await
                .map(|found| stream::iter(found.into_iter().map(Ok)))
        };
        stream::once(found).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let root = Path::default();
        let within = prefix.unwrap_or(&root);
        let mut common_prefixes = BTreeSet::new();
        let mut objects = Vec::new();
        for found in self.below(prefix.cloned()).await? {
            let Some(mut parts) = found.location.prefix_match(within) else {
                continue;
            };
            let Some(first) = parts.next() else { continue };
            if parts.next().is_some() {
                common_prefixes.insert(within.clone().join(first));
            } else {
                drop(parts);
                objects.push(found);
            }
        }
        Ok(ListResult {
            objects,
            common_prefixes: common_prefixes.into_iter().collect(),
        })
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let create = match options.mode {
            CopyMode::Overwrite => false,
            CopyMode::Create => true,
        };
        let command = Command::Copy {
            from: from.to_string(),
            to: to.to_string(),
            create,
        };
        check_length(to.as_ref())?;
        let named = if create { to } else { from };
        self.write(command, named).await.map(|_| ())
    }
}

/// A chunk in pieces that a node takes.
fn pieces(chunk: &Bytes) -> impl Iterator<Item = Bytes> + use<'_> {
    (0..chunk.len())
        .step_by(PIECE_BYTES as usize)
        .map(|start| chunk.slice(start..chunk.len().min(start + PIECE_BYTES as usize)))
}

fn meta(location: Path, object: &Object) -> ObjectMeta {
    let last_modified = i64::try_from(object.modified_us)
        .ok()
        .and_then(DateTime::<Utc>::from_timestamp_micros)
        .unwrap_or_default();
    ObjectMeta {
        location,
        last_modified,
        size: object.content.bytes(),
        e_tag: Some(object.tag.to_string()),
        version: None,
    }
}

fn check_length(path: &str) -> Result<(), Error> {
    if path.len() <= PATH_BYTES_MAX {
        return Ok(());
    }
    Err(Error::Configuration(format!(
        "a path of {} bytes, where {PATH_BYTES_MAX} are allowed",
        path.len()
    )))
}

fn not_found(path: &str) -> object_store::Error {
    object_store::Error::NotFound {
        path: path.to_owned(),
        source: "there is no such object".into(),
    }
}

fn no_attributes(operation: &str) -> object_store::Error {
    object_store::Error::NotImplemented {
        operation: format!("{operation} with attributes or tags"),
        implementer: STORE.to_owned(),
    }
}
