//! The schema inference of JSON files, from their first lines.

use std::collections::HashSet;
use std::hash::BuildHasher;

use bytes::Bytes;
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::reader::infer_json_schema_from_iterator;
use datafusion::common::DataFusionError;
use datafusion::execution::memory_pool::MemoryReservation;
use foldhash::fast::FixedState;
use futures::TryStreamExt;
use memchr::memchr;
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, channel};

use super::super::location::FoundFile;
use super::shape::{RECORD_BYTES_MAX, Seen, Shape, too_long};
use crate::execute::threads::on_own_thread;
use crate::{Error, Result};

/// A line is in a buffer that doubles while the old one is there.
const TIMES_HELD: usize = 3;
/// What is known of a column beside its name.
const COLUMN_BYTES: usize = 256;

/// The columns of a file by its first records, and how many there were.
pub(super) async fn inferred(
    file: &FoundFile,
    records_max: usize,
    memory: MemoryReservation,
) -> Result<(Schema, usize)> {
    let (sender, chunks) = channel::<Bytes>(1);
    let inferring = on_own_thread(move || {
        let mut records = Records::new(chunks, records_max, memory);
        let schema = infer_json_schema_from_iterator(records.by_ref());
        let schema = schema.map_err(|error| Error::of_run(&DataFusionError::from(error)))?;
        Ok((schema, records.count))
    });
    let sending = async move {
        let mut bytes = file.bytes();
        while let Some(chunk) = bytes.try_next().await? {
            if sender.send(chunk).await.is_err() {
                break;
            }
        }
        Ok::<(), Error>(())
    };
    // What fails to be read is told, and not taken for the end.
    let ((), inferred) = tokio::try_join!(sending, inferring)?;
    Ok(inferred)
}

/// The records of a file, one in memory at a time.
struct Records {
    /// None behind the last.
    chunks: Option<Receiver<Bytes>>,
    pending: Vec<u8>,
    start: usize,
    count: usize,
    count_max: usize,
    names: Names,
    memory: MemoryReservation,
    held_before: usize,
}

impl Records {
    fn new(chunks: Receiver<Bytes>, count_max: usize, memory: MemoryReservation) -> Self {
        Self {
            chunks: Some(chunks),
            pending: Vec::new(),
            start: 0,
            count: 0,
            count_max,
            names: Names::default(),
            held_before: memory.size(),
            memory,
        }
    }

    fn hold(&self, more: usize) -> Result<()> {
        let bytes = (self.held_before + self.names.bytes).saturating_add(more);
        let held = self.memory.try_resize(bytes);
        held.map_err(|error| Error::of_run(&error))
    }

    /// Where the next line ends. What is behind it may be another's begin.
    fn line(&mut self) -> Result<Option<usize>> {
        let mut scanned = self.start;
        loop {
            if let Some(found) = memchr(b'\n', &self.pending[scanned..]) {
                return Ok(Some(scanned + found));
            }
            scanned = self.pending.len() - self.start;
            self.pending.drain(..self.start);
            self.start = 0;
            if self.pending.len() > RECORD_BYTES_MAX {
                return Err(too_long());
            }
            match self.chunks.as_mut().and_then(Receiver::blocking_recv) {
                Some(chunk) => {
                    let bytes = self.pending.len().saturating_add(chunk.len());
                    self.hold(bytes.saturating_mul(TIMES_HELD))?;
                    self.pending.extend_from_slice(&chunk);
                }
                None => {
                    self.chunks = None;
                    let end = self.pending.len();
                    return Ok((end > 0).then_some(end));
                }
            }
        }
    }

    fn record(&mut self) -> Result<Option<Value>> {
        if self.count >= self.count_max {
            return Ok(None);
        }
        while let Some(end) = self.line()? {
            let line = self.pending[self.start..end].trim_ascii();
            self.start = self.pending.len().min(end + 1);
            if line.is_empty() {
                continue;
            }
            let mut seen = Seen::default();
            Shape::default().pass(line, &mut seen)?;
            let bytes = self.pending.capacity().saturating_add(seen.value_bytes());
            self.hold(bytes)?;
            let value: Value = serde_json::from_slice(line).map_err(|error| {
                let error = ArrowError::JsonError(format!("Not valid JSON: {error}"));
                Error::of_run(&DataFusionError::from(error))
            })?;
            self.count += 1;
            self.names.add(&value, 0);
            return Ok(Some(value));
        }
        Ok(None)
    }
}

impl Iterator for Records {
    type Item = Result<Value, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let external = |error| ArrowError::ExternalError(Box::new(DataFusionError::from(error)));
        self.record().map_err(external).transpose()
    }
}

/// The names that were seen in all records: each becomes a column, or a part of one.
#[derive(Default)]
struct Names {
    /// Hashes of each with those around it.
    seen: HashSet<u64>,
    bytes: usize,
}

impl Names {
    fn add(&mut self, value: &Value, within: u64) {
        match value {
            Value::Object(values) => {
                for (name, value) in values {
                    let path = FixedState::with_seed(within).hash_one(name);
                    if self.seen.insert(path) {
                        self.bytes += COLUMN_BYTES + 2 * name.len();
                    }
                    self.add(value, path);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| self.add(value, within)),
            _ => {}
        }
    }
}
