//! An object store with network faults: errors before, during and after a request, delays, silence.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::Mutex;
use tokio::sync::watch;

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An error; nothing was done.
    Before,
    /// An error, though it was done.
    After,
    /// The answer breaks off; a put has an error and is done some moments later.
    Middle,
    /// It takes longer than anybody waits, and then it is done.
    Slow,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Put,
    Get,
    List,
    Delete,
}

#[derive(Debug)]
struct Rule {
    request: Request,
    /// Part of the object's name.
    name: &'static str,
    fault: Fault,
    times: u32,
}

#[derive(Debug, Default)]
struct Plan {
    rules: Vec<Rule>,
    is_down: bool,
    /// State of the generator, and how many of a thousand requests fail.
    random: Option<(u64, u64)>,
    injected: u64,
}

/// How the requests of one process fail.
#[derive(Debug, Clone)]
pub(crate) struct Faults {
    plan: Arc<Mutex<Plan>>,
    /// Puts of names with this part wait until it is gone.
    held: watch::Sender<Option<&'static str>>,
    /// How many wait, or have waited.
    waiting: Arc<AtomicU64>,
}

impl Faults {
    fn new() -> Self {
        Self {
            plan: Arc::default(),
            held: watch::channel(None).0,
            waiting: Arc::default(),
        }
    }

    /// The next requests for names with a part fail.
    pub(crate) fn fail(&self, request: Request, name: &'static str, fault: Fault, times: u32) {
        self.plan.lock().rules.push(Rule {
            request,
            name,
            fault,
            times,
        });
    }

    /// Nothing is answered any more, or all again.
    pub(crate) fn set_down(&self, is_down: bool) {
        self.plan.lock().is_down = is_down;
    }

    /// So many of a thousand requests fail.
    pub(crate) fn fail_at_random(&self, seed: u64, per_thousand: u64) {
        self.plan.lock().random =
            Some((seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, per_thousand));
    }

    /// All is well again.
    pub(crate) fn heal(&self) {
        *self.plan.lock() = Plan::default();
    }

    /// How many requests have failed, or late.
    pub(crate) fn injected(&self) -> u64 {
        self.plan.lock().injected
    }

    /// Puts of names with a part are held back before they reach the store.
    pub(crate) fn hold(&self, name: &'static str) {
        self.held.send_replace(Some(name));
    }

    /// Those that are held back go on.
    pub(crate) fn let_go(&self) {
        self.held.send_replace(None);
    }

    /// How many puts were held back so far.
    pub(crate) fn holds(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    async fn pass(&self, name: &Path) {
        let mut held = self.held.subscribe();
        let is_free =
            |held: &Option<&'static str>| held.is_none_or(|part| !name.as_ref().contains(part));
        if !is_free(&held.borrow()) {
            self.waiting.fetch_add(1, Ordering::Relaxed);
        }
        let _ignored = held.wait_for(is_free).await;
    }

    fn next(&self, request: Request, name: &Path) -> Option<Fault> {
        let mut plan = self.plan.lock();
        let fault = plan.next(request, name);
        plan.injected += u64::from(fault.is_some());
        fault
    }
}

impl Plan {
    fn next(&mut self, request: Request, name: &Path) -> Option<Fault> {
        if self.is_down {
            return Some(Fault::Before);
        }
        let fits = |rule: &&mut Rule| {
            rule.times > 0 && rule.request == request && name.as_ref().contains(rule.name)
        };
        if let Some(rule) = self.rules.iter_mut().find(fits) {
            rule.times -= 1;
            return Some(rule.fault);
        }
        let (state, per_thousand) = self.random.as_mut()?;
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        if (*state >> 20) % 1000 >= *per_thousand {
            return None;
        }
        Some(match (*state >> 40) % 16 {
            0..6 => Fault::Before,
            6..11 => Fault::After,
            11..15 => Fault::Middle,
            _ => Fault::Slow,
        })
    }
}

/// Longer than tests let a request take.
const SLOW: Duration = Duration::from_millis(250);
const SOME_MOMENTS: Duration = Duration::from_millis(15);

/// The store as one process reaches it.
#[derive(Debug)]
pub(crate) struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    pub(crate) faults: Faults,
}

impl FaultyStore {
    pub(crate) fn over(inner: Arc<dyn ObjectStore>) -> Self {
        Self {
            inner,
            faults: Faults::new(),
        }
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a store that fails")
    }
}

fn failed() -> Error {
    Error::Generic {
        store: "faulty",
        source: "503 Slow Down".into(),
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.faults.pass(location).await;
        let fault = self.faults.next(Request::Put, location);
        let put = self
            .inner
            .put_opts(location, payload.clone(), options.clone());
        match fault {
            None => put.await,
            Some(Fault::Before) => Err(failed()),
            Some(Fault::After) => {
                put.await?;
                Err(failed())
            }
            Some(late) => {
                let (inner, location) = (Arc::clone(&self.inner), location.clone());
                let is_slow = late == Fault::Slow;
                tokio::spawn(async move {
                    tokio::time::sleep(if is_slow { SLOW } else { SOME_MOMENTS }).await;
                    let _ignored = inner.put_opts(&location, payload, options).await;
                });
                if is_slow {
                    tokio::time::sleep(SLOW).await;
                }
                Err(failed())
            }
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        match self.faults.next(Request::Put, location) {
            None => self.inner.put_multipart_opts(location, options).await,
            Some(_) => Err(failed()),
        }
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let fault = self.faults.next(Request::Get, location);
        match fault {
            None => self.inner.get_opts(location, options).await,
            Some(Fault::Before | Fault::After) => Err(failed()),
            Some(Fault::Slow) => {
                tokio::time::sleep(SLOW).await;
                self.inner.get_opts(location, options).await
            }
            Some(Fault::Middle) => {
                let mut found = self.inner.get_opts(location, options).await?;
                let (meta, range) = (found.meta.clone(), found.range.clone());
                found.payload = match found.payload {
                    GetResultPayload::Stream(pieces) => {
                        let pieces: Vec<_> = pieces.collect().await;
                        let half = pieces
                            .into_iter()
                            .map(|piece| piece.map(|bytes| bytes.slice(..bytes.len() / 2)));
                        let broken = half.chain([Err(failed())]);
                        GetResultPayload::Stream(stream::iter(broken.collect::<Vec<_>>()).boxed())
                    }
                    other => other,
                };
                (found.meta, found.range) = (meta, range);
                Ok(found)
            }
        }
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let (faults, inner) = (self.faults.clone(), Arc::clone(&self.inner));
        let deleted = locations.then(move |location| {
            let (faults, inner) = (faults.clone(), Arc::clone(&inner));
            async move {
                let location = location?;
                let fault = faults.next(Request::Delete, &location);
                if fault == Some(Fault::Before) {
                    return Err(failed());
                }
                let one = stream::iter([Ok(location)]).boxed();
                let deleted = inner.delete_stream(one).next().await;
                match fault {
                    Some(_) => Err(failed()),
                    None => deleted.unwrap_or_else(|| Err(failed())),
                }
            }
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let name = prefix.cloned().unwrap_or_default();
        match self.faults.next(Request::List, &name) {
            None => self.inner.list(prefix),
            Some(_) => stream::iter([Err(failed())]).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let name = prefix.cloned().unwrap_or_default();
        match self.faults.next(Request::List, &name) {
            None => self.inner.list_with_delimiter(prefix).await,
            Some(_) => Err(failed()),
        }
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
