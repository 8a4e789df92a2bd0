//! The way of traces to the collector: a queue, and a task that sends batches.

use super::context::{Ids, Parent, Sampling};
use super::messages::{
    ExportTraceServiceRequest, InstrumentationScope, Resource, ResourceSpans, ScopeSpans, Span,
    attribute,
};
use super::options::{OtlpError, OtlpOptions};
use super::record::{EndedRequest, Place, TraceHead, TraceRecord};
use orrery_http_client::{Client, ClientOptions, Error, Request as Post};
use prost::Message as _;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Traces that may wait for the task.
const WAITING_MAX: usize = 2_048;
/// Traces in one request to the collector.
const BATCH_MAX: usize = 256;
/// How long a trace may wait for others.
const GATHER_TIME: Duration = Duration::from_secs(1);
/// How long the collector may take.
const SEND_TIME_MAX: Duration = Duration::from_secs(10);
/// Its answer says how many spans it refused; nobody asks.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// How often a batch is sent, and how long the first pause between is; then twice that.
const ATTEMPTS: u32 = 3;
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How long a server that stops waits for its last traces to be sent.
const FINISH_TIME_MAX: Duration = Duration::from_secs(3);

/// What spans go through.
pub struct Tracer {
    /// Nothing in place of spans: no more come.
    sender: mpsc::Sender<Option<Vec<Span>>>,
    task: Mutex<Option<JoinHandle<()>>>,
    ids: Ids,
    sampling: Sampling,
    counts: Arc<Counts>,
}

/// What became of traces.
#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    dropped: AtomicU64,
    failures: AtomicU64,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer")
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

/// Sends batches.
struct Exporter {
    client: Client,
    url: String,
    resource: Resource,
    counts: Arc<Counts>,
    /// Told once, not for as long as it lasts.
    is_troubled: bool,
    /// The first one before a batch is sent again.
    pause: Duration,
}

impl Tracer {
    /// Starts the task that sends, on these threads.
    ///
    /// # Errors
    /// When the endpoint cannot be one. Whether somebody is there shows when the first traces are sent.
    pub fn start(options: &OtlpOptions, threads: &Handle) -> Result<Self, OtlpError> {
        Self::start_retrying(options, threads, RETRY_PAUSE)
    }

    /// The same with another first pause before a batch is sent again.
    pub(super) fn start_retrying(
        options: &OtlpOptions,
        threads: &Handle,
        pause: Duration,
    ) -> Result<Self, OtlpError> {
        let url = options.url()?;
        let client = Client::new(ClientOptions {
            allow: OtlpOptions::allow_list(&url)?,
            timeout: SEND_TIME_MAX,
            received_bytes_max: ANSWER_BYTES_MAX,
            decoded_bytes_max: ANSWER_BYTES_MAX,
            redirects_max: 0,
            ..ClientOptions::default()
        })?;
        let counts = Arc::new(Counts::default());
        let resource = Resource {
            attributes: vec![
                attribute("service.name", options.service.as_str()),
                attribute("service.version", env!("CARGO_PKG_VERSION")),
                attribute("process.pid", u64::from(std::process::id())),
            ],
        };
        let exporter = Exporter {
            client,
            url: url.into(),
            resource,
            counts: Arc::clone(&counts),
            is_troubled: false,
            pause,
        };
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let task = threads.spawn(exporter.run(receiver));
        Ok(Self {
            sender,
            task: Mutex::new(Some(task)),
            ids: Ids::new(),
            sampling: Sampling::new(options.ratio),
            counts,
        })
    }

    /// The span of a request that begins; none where it is not sampled: as the client says, or by the ratio.
    pub fn begin(
        &self,
        head: TraceHead<'_>,
        started: Instant,
        client: Option<IpAddr>,
        agent: Option<&str>,
    ) -> Option<TraceRecord> {
        let (trace, parent) = match head.parent.and_then(Parent::parse) {
            Some(parent) if parent.is_sampled => (parent.trace, Some(parent.span)),
            Some(_) => return None,
            None => (self.ids.next()?, None),
        };
        if parent.is_none() && !self.sampling.takes(&trace) {
            return None;
        }
        let span = self.ids.next()?;
        let place = Place {
            trace,
            span,
            parent,
        };
        Some(TraceRecord::new(place, head, (started, client, agent)))
    }

    /// Leaves the spans of a request that has ended to the task, if there is room.
    pub fn ended(&self, record: &TraceRecord, ended: EndedRequest<'_>) {
        match self.sender.try_reserve() {
            Ok(permit) => permit.send(Some(record.spans(ended, || self.ids.next()))),
            Err(_full_or_ended) => {
                self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Traces that the collector took.
    pub fn sent(&self) -> u64 {
        self.counts.sent.load(Ordering::Relaxed)
    }

    /// Traces that found no room, or that the collector did not take.
    pub fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }

    /// Requests to the collector that failed.
    pub fn failures(&self) -> u64 {
        self.counts.failures.load(Ordering::Relaxed)
    }

    /// Sends what waits, for some seconds at most, and ends the task.
    pub async fn finish(&self) {
        let task = self
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(mut task) = task else {
            return;
        };
        let ended = async {
            // If the task has gone there is nobody to tell.
            let _ = self.sender.send(None).await;
            (&mut task).await
        };
        if tokio::time::timeout(FINISH_TIME_MAX, ended).await.is_err() {
            tracing::warn!("the last traces were not sent within {FINISH_TIME_MAX:?} and are lost");
            task.abort();
        }
    }
}

impl Exporter {
    /// Until nobody sends any more.
    async fn run(mut self, mut traces: mpsc::Receiver<Option<Vec<Span>>>) {
        while let Some(first) = next(&mut traces).await {
            let mut batch = vec![first];
            let gathered = async {
                while batch.len() < BATCH_MAX {
                    match next(&mut traces).await {
                        Some(next) => batch.push(next),
                        None => break,
                    }
                }
            };
            // What came until then goes.
            let _ = tokio::time::timeout(GATHER_TIME, gathered).await;
            self.send(batch).await;
        }
    }

    async fn send(&mut self, batch: Vec<Vec<Span>>) {
        let count = batch.len() as u64;
        let body = self.request(batch).encode_to_vec();
        let mut pause = self.pause;
        for attempt in 1..=ATTEMPTS {
            let Err(error) = self.post(body.clone()).await else {
                self.counts.sent.fetch_add(count, Ordering::Relaxed);
                if std::mem::take(&mut self.is_troubled) {
                    tracing::info!("traces are taken by {} again", self.url);
                }
                return;
            };
            self.counts.failures.fetch_add(1, Ordering::Relaxed);
            if !std::mem::replace(&mut self.is_troubled, true) {
                tracing::warn!("traces are not taken, and are lost until they are: {error}");
            }
            if attempt == ATTEMPTS || !may_be_taken_later(&error) {
                break;
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.counts.dropped.fetch_add(count, Ordering::Relaxed);
    }

    async fn post(&self, body: Vec<u8>) -> Result<(), Error> {
        let media_type = "application/x-protobuf";
        let post = Post::post(self.url.as_str(), media_type, media_type, body);
        let mut response = self.client.send(post).await?;
        // To its end, so that the connection can be used again.
        while response.body.chunk().await?.is_some() {}
        Ok(())
    }

    fn request(&self, batch: Vec<Vec<Span>>) -> ExportTraceServiceRequest {
        ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![ScopeSpans {
                    scope: Some(InstrumentationScope {
                        name: "orrery".to_owned(),
                        version: env!("CARGO_PKG_VERSION").to_owned(),
                    }),
                    spans: batch.into_iter().flatten().collect(),
                }],
            }],
        }
    }
}

/// The next trace; none when the end was told, and all that found room before it, or while it was told, were given.
async fn next(traces: &mut mpsc::Receiver<Option<Vec<Span>>>) -> Option<Vec<Span>> {
    loop {
        match traces.recv().await? {
            Some(spans) => return Some(spans),
            None => traces.close(),
        }
    }
}

/// Whether it is worth sending the same again (OTLP, "Failures": of statuses these four); what is wrong with a batch, its way or its key is so the next time.
fn may_be_taken_later(error: &Error) -> bool {
    match error {
        Error::Status { status, .. } => matches!(status, 429 | 502 | 503 | 504),
        Error::Unreachable { .. } | Error::TimedOut { .. } => true,
        Error::Url { .. }
        | Error::NotAllowed { .. }
        | Error::Redirect { .. }
        | Error::TooLarge { .. }
        | Error::Content { .. }
        | Error::Setup { .. } => false,
    }
}
