//! Uploads of local files, small ones at once, others in parallel parts.

use std::fs::File;
use std::future::Future;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use object_store::path::Path as ObjectPath;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _, PutPayload};
use tokio::sync::Mutex;

use crate::error::{Asked, ObjectError};

/// Objects above it are sent in parts of at least this length.
const PART_BYTES: u64 = 8 << 20;
/// Stores take 10,000 parts at most.
const PARTS_MAX: u64 = 9_000;
/// Parts that are on their way at the same time.
const PARTS_AT_ONCE: usize = 8;

/// A request that belongs to an upload.
pub(crate) type PartRequest<'u> = BoxFuture<'u, object_store::Result<()>>;

/// An upload in parts, once the store has said that it may begin.
type Begun = Mutex<Option<Box<dyn MultipartUpload>>>;

/// A file on its way.
#[derive(Debug)]
pub(crate) struct Upload<'u> {
    pub(crate) store: &'u dyn ObjectStore,
    pub(crate) path: &'u ObjectPath,
    pub(crate) file: &'u Path,
    pub(crate) bytes: u64,
}

impl Upload<'_> {
    /// Sends it; each request goes through `ask`, with how many bytes it moves.
    pub(crate) async fn run<'a, F>(&'a self, ask: impl Fn(u64, PartRequest<'a>) -> F) -> Asked<()>
    where
        F: Future<Output = Asked<()>>,
    {
        let file = File::open(self.file).map_err(|error| self.local(error))?;
        let file = Arc::new(file);
        if self.bytes <= PART_BYTES {
            let payload = self.part(&file, 0).await?;
            let put = async move { self.store.put(self.path, payload).await.map(|_| ()) };
            return ask(self.bytes, Box::pin(put)).await;
        }
        let upload = Arc::new(Mutex::new(None));
        let place = Arc::clone(&upload);
        let begin = async move {
            *place.lock().await = Some(self.store.put_multipart(self.path).await?);
            Ok(())
        };
        ask(0, Box::pin(begin)).await?;
        let mut sent = self.send_parts(&file, &upload, &ask).await;
        if sent.is_ok() {
            let place = Arc::clone(&upload);
            let complete = async move {
                match &mut *place.lock().await {
                    Some(upload) => upload.complete().await.map(|_| ()),
                    None => Ok(()),
                }
            };
            sent = ask(0, Box::pin(complete)).await;
        }
        if sent.is_err()
            && let Some(mut upload) = upload.lock().await.take()
        {
            // Perhaps the store is away; what is left of the parts goes with the bucket's rules.
            let _ignored = ask(0, Box::pin(async move { upload.abort().await })).await;
        }
        sent
    }

    async fn send_parts<'a, F>(
        &'a self,
        file: &Arc<File>,
        upload: &Begun,
        ask: &impl Fn(u64, PartRequest<'a>) -> F,
    ) -> Asked<()>
    where
        F: Future<Output = Asked<()>>,
    {
        let part_bytes = self.part_bytes();
        let mut under_way = FuturesUnordered::new();
        for start in (0..self.bytes).step_by(part_bytes as usize) {
            while under_way.len() >= PARTS_AT_ONCE {
                under_way.try_next().await?;
            }
            let payload = self.part(file, start).await?;
            if let Some(upload) = &mut *upload.lock().await {
                under_way.push(ask(part_bytes, upload.put_part(payload)));
            }
        }
        under_way.try_collect::<()>().await
    }

    fn part_bytes(&self) -> u64 {
        let least = self.bytes.div_ceil(PARTS_MAX);
        PART_BYTES.max(least.next_multiple_of(1 << 20))
    }

    /// The bytes of a part, read where that may block.
    async fn part(&self, file: &Arc<File>, start: u64) -> Asked<PutPayload> {
        let length = (self.bytes - start).min(self.part_bytes());
        let file = Arc::clone(file);
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; length as usize];
            file.read_exact_at(&mut bytes, start).map(|()| bytes)
        });
        match read.await {
            Ok(Ok(bytes)) => Ok(PutPayload::from(Bytes::from(bytes))),
            Ok(Err(error)) => Err(self.local(error)),
            Err(error) => Err(ObjectError::Task {
                what: error.to_string(),
            }),
        }
    }

    fn local(&self, source: std::io::Error) -> ObjectError {
        ObjectError::Local {
            operation: "read",
            path: self.file.to_path_buf(),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use object_store::memory::InMemory;

    use super::*;

    #[test]
    fn files_of_every_number_of_parts_arrive_whole() {
        let runtime = crate::stores::runtime::handle().unwrap();
        for bytes in [0, 1, PART_BYTES, PART_BYTES + 1, 11 * PART_BYTES + 77] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            let content: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
            file.write_all(&content).unwrap();
            let found = crate::stores::runtime::wait(&runtime, async move {
                let store = InMemory::new();
                let path = ObjectPath::from("object");
                let upload = Upload {
                    store: &store,
                    path: &path,
                    file: file.path(),
                    bytes,
                };
                upload
                    .run(|_, request| async { request.await.map_err(|_| unreachable!()) })
                    .await?;
                let found = store.get(&path).await.unwrap();
                Ok(found.bytes().await.unwrap())
            });
            assert_eq!(found.unwrap(), content, "{bytes} bytes");
        }
    }
}
