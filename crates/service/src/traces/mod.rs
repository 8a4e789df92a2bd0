//! Traces: each sampled request becomes a span with its stages as child spans, sent to a collector
//! by OTLP (protobuf over HTTP).
//!
//! ```text
//! request -> TraceRecord: ids from the client's `traceparent`, or new
//!         -- its end --> bounded queue -> one task: batches -> POST .../v1/traces
//! ```
//!
//! - **Spans are made afterwards**, from the times that metrics measure anyway
//!   ([`Stages`](crate::stages::Stages)): no tracing while a query runs. Stages that alternate are
//!   added up, so their spans stand one behind the other.
//! - **No request waits**: a trace that finds the queue full is dropped and counted, and so is one
//!   that the collector does not accept.
//! - **No texts**: neither queries nor their parameters are sent, only kinds, sums and the user.
//! - Without an endpoint, the cost per request is one check.
//!
//! `messages` declares the messages for `prost`, which Flight SQL brings, rather than use
//! `opentelemetry-proto`: that crate needs the SDK, and eight messages are enough.

mod context;
mod export;
mod messages;
mod options;
mod record;
#[cfg(test)]
mod tests;

pub use options::{OtlpError, OtlpOptions};

pub use export::Tracer;
pub use record::TraceHead;
pub use record::{EndedRequest, TraceRecord};
