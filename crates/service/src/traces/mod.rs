//! Traces: each request that is sampled as a span with its stages below it, sent to a collector by OTLP (protobuf over HTTP).
//!
//! ```text
//! request -> TraceRecord: ids, by the client's `traceparent` or new -- its end --> bounded queue -> one task: batches -> POST .../v1/traces
//! ```
//!
//! - **Spans are made afterwards**, of what is measured for metrics anyway ([`Stages`](crate::stages::Stages)): nothing is traced while a query runs. Stages that take turns are added up, so
//!   their spans stand one behind the other.
//! - **Nobody waits**: a trace that finds the queue full is counted, and so is one that the collector does not take.
//! - **No texts**: neither queries nor their parameters are told, only kinds, sums and who asked.
//! - Without an endpoint, a request costs one look whether there is one.
//!
//! The messages are written down in `messages` for `prost`, which Flight SQL brings, rather than taken from `opentelemetry-proto`: that wants the SDK, and eight messages are enough.

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
