//! The export of traces to a collector: a bounded queue, and a task that sends batches.

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
/// Traces per request to the collector.
const BATCH_MAX: usize = 256;
/// How long a trace waits for others of its batch.
const GATHER_TIME: Duration = Duration::from_secs(1);
/// Time limit of a request to the collector.
const SEND_TIME_MAX: Duration = Duration::from_secs(10);
/// Size limit of the collector's answer. It has the number of refused spans, which is not used.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// Attempts per batch, and the first pause between them, which then doubles.
const ATTEMPTS: u32 = 3;
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How long a stopping server waits until its last traces are sent.
const FINISH_TIME_MAX: Duration = Duration::from_secs(3);

/// The sending side of the export.
pub struct Tracer {
    /// No spans means that no more traces come.
    sender: mpsc::Sender<Option<Vec<Span>>>,
    task: Mutex<Option<JoinHandle<()>>>,
    ids: Ids,
    sampling: Sampling,
    counts: Arc<Counts>,
}

/// Counters of sent and lost traces.
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

/// The task that sends batches.
struct Exporter {
    client: Client,
    url: String,
    resource: Resource,
    counts: Arc<Counts>,
    /// Whether requests fail at present; only the first failure is logged.
    is_troubled: bool,
    /// The first pause before a batch is sent again.
    pause: Duration,
}

impl Tracer {
    /// Starts the sending task on these threads.
    ///
    /// # Errors
    /// When the endpoint is not valid. Whether a collector answers there shows with the first
    /// traces.
    pub fn start(options: &OtlpOptions, threads: &Handle) -> Result<Self, OtlpError> {
        Self::start_retrying(options, threads, RETRY_PAUSE)
    }

    /// The same with another first pause.
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

    /// Begins the span of a request; none if it is not sampled, as the client or the ratio decides.
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

    /// Passes the spans of an ended request to the task, if there is room.
    pub fn ended(&self, record: &TraceRecord, ended: EndedRequest<'_>) {
        match self.sender.try_reserve() {
            Ok(permit) => permit.send(Some(record.spans(ended, || self.ids.next()))),
            Err(_full_or_ended) => {
                self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Traces that the collector accepted.
    pub fn sent(&self) -> u64 {
        self.counts.sent.load(Ordering::Relaxed)
    }

    /// Traces that found no room, or that the collector did not accept.
    pub fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }

    /// Requests to the collector that failed.
    pub fn failures(&self) -> u64 {
        self.counts.failures.load(Ordering::Relaxed)
    }

    /// Sends the waiting traces, within some seconds, and stops the task.
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
            // If the task has ended, there is no receiver.
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
    /// Runs until no more traces come.
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
            // After the timeout, the traces gathered so far are sent.
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
        // Read to its end, so that the connection can be reused.
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

/// The next trace; none after the end was announced and all traces that found room were taken.
async fn next(traces: &mut mpsc::Receiver<Option<Vec<Span>>>) -> Option<Vec<Span>> {
    loop {
        match traces.recv().await? {
            Some(spans) => return Some(spans),
            None => traces.close(),
        }
    }
}

/// Whether a retry may succeed (OTLP, "Failures": these four statuses). A faulty batch, URL or key
/// stays faulty.
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
