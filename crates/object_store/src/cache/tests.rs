#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::future::BoxFuture;
use orrery_storage::io::FileBytes;
use orrery_storage::{Error, Result};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use super::pieces::{EXTENT_BYTES, PIECE_BYTES};
use super::{Cache, CacheOptions, Origin};

mod keeping;
mod killed;
mod limits;
mod requests;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const PIECE: u64 = PIECE_BYTES;

/// Objects in memory. Requests can be held up, and some of them fail.
#[derive(Debug)]
struct Objects {
    objects: Mutex<HashMap<String, Bytes>>,
    calls: Mutex<Vec<Range<u64>>>,
    /// One permit for each request that may go on; none is taken while there are very many.
    gate: Semaphore,
    /// How many of the next requests fail, panic, or give one byte too few.
    failing: AtomicUsize,
    panicking: AtomicUsize,
    short: AtomicUsize,
}

impl Objects {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            objects: Mutex::default(),
            calls: Mutex::default(),
            gate: Semaphore::new(1 << 20),
            failing: AtomicUsize::new(0),
            panicking: AtomicUsize::new(0),
            short: AtomicUsize::new(0),
        })
    }

    /// An object of a length, whose bytes differ from those of others.
    fn put(&self, key: &str, bytes: u64) -> Bytes {
        let before = self.objects.lock().get(key).cloned();
        if let Some(content) = before.filter(|content| content.len() as u64 == bytes) {
            return content;
        }
        let seed = u64::from(crc32c::crc32c(key.as_bytes()));
        let words = (0..bytes.div_ceil(8)).map(|at| at ^ seed << 32);
        let mut content: Vec<u8> = words
            .flat_map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes())
            .collect();
        content.truncate(bytes as usize);
        let content = Bytes::from(content);
        self.objects.lock().insert(key.to_owned(), content.clone());
        content
    }

    fn close(&self) {
        self.gate.forget_permits(usize::MAX);
    }

    fn open(&self) {
        self.gate.add_permits(1 << 20);
    }

    fn calls(&self) -> Vec<Range<u64>> {
        self.calls.lock().clone()
    }

    fn calls_sorted(&self) -> Vec<Range<u64>> {
        let mut calls = self.calls();
        calls.sort_unstable_by_key(|range| range.start);
        calls
    }
}

impl Origin for Objects {
    fn get_range<'a>(&'a self, key: &'a str, range: Range<u64>) -> BoxFuture<'a, Result<Bytes>> {
        Box::pin(async move {
            self.calls.lock().push(range.clone());
            self.gate.acquire().await.unwrap().forget();
            let takes_one = |left: &AtomicUsize| {
                left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                    left.checked_sub(1)
                })
                .is_ok()
            };
            assert!(!takes_one(&self.panicking), "a panic that was asked for");
            if takes_one(&self.failing) {
                let error = std::io::Error::other("the store is out of order");
                return Err(Error::from_io(Path::new(key), "read", error));
            }
            let content = self.objects.lock()[key].clone();
            let end = range.end as usize - usize::from(takes_one(&self.short));
            Ok(content.slice(range.start as usize..end))
        })
    }
}

/// A cache in a directory that goes with it.
struct Fixture {
    cache: Option<Cache>,
    origin: Arc<Objects>,
    runtime: Runtime,
    directory: TempDir,
    limit: u64,
}

impl Fixture {
    fn new(limit: u64) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .unwrap();
        let mut fixture = Self {
            cache: None,
            origin: Objects::new(),
            runtime,
            directory: tempfile::tempdir().unwrap(),
            limit,
        };
        fixture.restart();
        fixture
    }

    /// As when the process ends and another one begins.
    fn restart(&mut self) {
        self.cache = None;
        self.cache = Some(self.another());
        self.origin.calls.lock().clear();
    }

    /// What a further process gets.
    fn another(&self) -> Cache {
        let options = CacheOptions {
            directory: self.directory.path().to_owned(),
            bytes: self.limit,
        };
        let origin = Arc::clone(&self.origin);
        Cache::open(&options, origin, self.runtime.handle().clone()).unwrap()
    }

    fn cache(&self) -> &Cache {
        self.cache.as_ref().unwrap()
    }

    /// An object of a length, mapped.
    fn mapped(&self, key: &str, bytes: u64) -> (FileBytes, Bytes) {
        let content = self.origin.put(key, bytes);
        (self.cache().map(key, bytes).unwrap(), content)
    }

    /// Reads a range through a mapping, as the storage does.
    fn read(&self, (file, content): &(FileBytes, Bytes), range: Range<u64>) {
        let range = range.start as usize..range.end as usize;
        file.fetch(range.clone()).unwrap();
        assert!(file[range.clone()] == content[range.clone()], "{range:?}");
    }

    /// Waits until so many pieces were missed.
    fn wait_for_misses(&self, pieces: u64) {
        while self.cache().counts().misses < pieces {
            std::thread::yield_now();
        }
    }

    fn requests(&self) -> usize {
        self.origin.calls.lock().len()
    }

    /// Writes over bytes of a local file.
    fn damage(&self, number: u64, offset: u64) {
        use std::os::unix::fs::FileExt;
        let path = self
            .cache()
            .directory()
            .join(format!("files/{number}.bytes"));
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).unwrap();
        file.write_all_at(&[byte[0] ^ 1], offset).unwrap();
    }

    /// The names of the local files.
    fn local_files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.cache().directory().join("files")).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    }
}
