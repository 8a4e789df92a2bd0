//! The messages between workers.
//!
//! ```text
//! request   4 bytes: how long the JSON is   JSON (Request)   the description of a plan, where one is opened
//! rows      Arrow IPC: the schema before the first batch, then batches   note (Outgoing)   4 bytes: how long it is   'R'
//! only rows 8 bytes: how many, where no column has bytes   'N'
//! end       8 bytes: how many rows there were   'E'
//! ```
//!
//! Rows stand first, so that their columns are aligned as the message is, and need not be copied to
//! be read. An answer of rows that does not end with its end is none: whoever reads it fails.

use std::sync::Arc;

use arrow::array::{ArrayRef, NullArray, RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;
use bytes::{BufMut as _, Bytes, BytesMut};
use datafusion_common::Result;
use orrery_wire_fields::{FieldReader, FieldWriter};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::language::{Incoming, Outgoing, Translation};

/// What one process asks another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Make a plan and keep it while the answer is read. One message comes when it is there, no
    /// more after that.
    Open {
        query: String,
        /// Who understands the description.
        language: String,
        /// All that work on it; their order counts.
        members: Vec<String>,
        /// Partitions that each of them runs at once. An older version does not say it, and has
        /// another fingerprint.
        #[serde(default)]
        streams: usize,
        /// What the stages must look like.
        fingerprint: u64,
    },
    /// The rows of a partition.
    Read {
        query: String,
        stage: usize,
        partition: usize,
    },
    /// Gives the touches of a query so far.
    Touches { query: String },
    /// Gives the touches of a query, and ends it.
    Close { query: String },
}

impl Request {
    pub(crate) fn to_bytes(&self, description: &[u8]) -> Result<Bytes> {
        let mut fields = FieldWriter::default();
        fields.json(self).map_err(|error| damaged(&error))?;
        fields.rest(description);
        Ok(fields.finish())
    }

    /// The request, and the description behind it.
    pub(crate) fn from_bytes(bytes: Bytes) -> Result<(Self, Bytes)> {
        let mut fields = FieldReader::new(bytes);
        let request = fields.json().map_err(|error| damaged(&error))?;
        Ok((request, fields.rest()))
    }
}

fn damaged(error: &dyn std::fmt::Display) -> Error {
    Error::Damaged(error.to_string())
}

/// Takes what stands before its length, at the end.
fn suffixed(bytes: &mut Bytes) -> Result<Bytes> {
    let (_, length) = bytes
        .split_last_chunk::<4>()
        .ok_or_else(|| damaged(&"it is too short"))?;
    let (length, end) = (u32::from_le_bytes(*length) as usize, bytes.len() - 4);
    let start = end.checked_sub(length);
    let start = start.ok_or_else(|| damaged(&"it is shorter than it says"))?;
    Ok(bytes.split_off(start).slice(..length))
}

const ROWS: u8 = b'R';
/// Arrow's decoder takes a batch for whole when the bytes of its columns have come; where there are
/// none, it waits.
const ONLY_COUNTED: u8 = b'N';
const END: u8 = b'E';

/// Writes the rows of a partition.
pub(crate) struct Sender {
    writer: StreamWriter<Vec<u8>>,
    notes: Box<dyn Outgoing>,
    rows: u64,
    /// Bytes of the message before.
    room: usize,
}

impl Sender {
    pub(crate) fn new(schema: &Schema, notes: Box<dyn Outgoing>) -> Result<Self> {
        Ok(Self {
            writer: StreamWriter::try_new(Vec::new(), schema)?,
            notes,
            rows: 0,
            room: 0,
        })
    }

    /// The message of a batch, and the note in it.
    pub(crate) fn rows(&mut self, batch: &RecordBatch) -> Result<(Bytes, Bytes)> {
        if has_no_bytes(&batch.schema()) {
            let rows = batch.num_rows() as u64;
            self.rows += rows;
            return Ok((counted(ONLY_COUNTED, rows), Bytes::new()));
        }
        let note = self.notes.note(batch)?;
        let length = u32::try_from(note.len()).map_err(|error| damaged(&error))?;
        // The next message is likely to be as long.
        self.writer.get_mut().reserve(self.room);
        self.writer.write(batch)?;
        self.rows += batch.num_rows() as u64;
        let mut bytes = std::mem::take(self.writer.get_mut());
        bytes.put_slice(&note);
        bytes.put_u32_le(length);
        bytes.put_u8(ROWS);
        self.room = bytes.len();
        Ok((bytes.into(), note))
    }

    /// The last message.
    pub(crate) fn end(&self) -> Bytes {
        counted(END, self.rows)
    }
}

/// A message of a number.
fn counted(kind: u8, number: u64) -> Bytes {
    let mut bytes = BytesMut::with_capacity(9);
    bytes.put_u64_le(number);
    bytes.put_u8(kind);
    bytes.freeze()
}

/// Whether nothing of the rows is sent but their number.
fn has_no_bytes(schema: &Schema) -> bool {
    let mut fields = schema.fields().iter();
    fields.all(|field| *field.data_type() == DataType::Null)
}

/// Reads the rows of a partition.
pub(crate) struct Receiver {
    schema: SchemaRef,
    decoder: StreamDecoder,
    notes: Box<dyn Incoming>,
    rows: u64,
    has_ended: bool,
}

impl Receiver {
    /// For rows of a schema.
    pub(crate) fn new(schema: &SchemaRef, notes: Box<dyn Incoming>) -> Self {
        Self {
            schema: Arc::clone(schema),
            decoder: StreamDecoder::new(),
            notes,
            rows: 0,
            has_ended: false,
        }
    }

    /// The batches of a message; none of the last one.
    pub(crate) fn take(&mut self, mut message: Bytes) -> Result<Vec<RecordBatch>> {
        if self.has_ended {
            return Err(damaged(&"there is more after the end").into());
        }
        let kind = message.last().copied();
        message.truncate(message.len().saturating_sub(1));
        match kind {
            Some(ROWS) => {
                let note = suffixed(&mut message)?;
                let mut buffer = Buffer::from(message);
                let mut batches = Vec::with_capacity(1);
                while !buffer.is_empty() {
                    if let Some(batch) = self.decoder.decode(&mut buffer)? {
                        self.rows += batch.num_rows() as u64;
                        batches.push(batch);
                    }
                }
                self.notes.learn(&note)?;
                batches
                    .into_iter()
                    .map(|batch| self.notes.batch(batch))
                    .collect()
            }
            Some(ONLY_COUNTED) => {
                let rows = number(&message).and_then(|rows| usize::try_from(rows).ok());
                let rows = rows.filter(|_| has_no_bytes(&self.schema));
                let rows = rows.ok_or_else(|| damaged(&"rows without their columns"))?;
                self.rows += rows as u64;
                let nulls: ArrayRef = Arc::new(NullArray::new(rows));
                let columns = vec![nulls; self.schema.fields().len()];
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                let schema = Arc::clone(&self.schema);
                let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
                Ok(vec![batch])
            }
            Some(END) => {
                if number(&message) != Some(self.rows) {
                    return Err(damaged(&"rows are missing").into());
                }
                self.has_ended = true;
                Ok(Vec::new())
            }
            _ => Err(damaged(&"it is of no known kind").into()),
        }
    }

    /// Whether all has come.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }
}

/// The number of a message that is nothing else.
fn number(message: &Bytes) -> Option<u64> {
    let number = message.as_ref().try_into().ok();
    number.map(u64::from_le_bytes)
}

/// Rows that mean the same everywhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct AsTheyAre;

impl Translation for AsTheyAre {
    fn outgoing(&self) -> Box<dyn Outgoing> {
        Box::new(Self)
    }

    fn incoming(&self) -> Box<dyn Incoming> {
        Box::new(Self)
    }
}

impl Outgoing for AsTheyAre {
    fn note(&mut self, _: &RecordBatch) -> Result<Bytes> {
        Ok(Bytes::new())
    }
}

impl Incoming for AsTheyAre {
    fn learn(&mut self, note: &Bytes) -> Result<()> {
        match note.is_empty() {
            true => Ok(()),
            false => Err(damaged(&"a note that nobody reads").into()),
        }
    }

    fn batch(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        Ok(batch)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray as _, Int64Array};
    use arrow::datatypes::{Field, Int64Type};

    use super::*;

    #[test]
    fn rows_come_as_they_went_and_what_is_missing_is_noticed() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let batch = |from: i64| {
            let column = Arc::new(Int64Array::from_iter_values(from..from + 3));
            RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap()
        };
        let mut sender = Sender::new(&schema, Box::new(AsTheyAre)).unwrap();
        let messages = [0, 10].map(|from| sender.rows(&batch(from)).unwrap().0);
        let end = sender.end();
        let mut receiver = Receiver::new(&schema, Box::new(AsTheyAre));
        for (message, from) in messages.iter().zip([0, 10]) {
            let batches = receiver.take(message.clone()).unwrap();
            let [one] = batches.as_slice() else {
                panic!("{}", batches.len());
            };
            assert_eq!(one.column(0).as_primitive::<Int64Type>().value(0), from);
        }
        for cut in 0..messages[0].len() {
            let mut receiver = Receiver::new(&schema, Box::new(AsTheyAre));
            let found = receiver.take(messages[0].slice(..cut));
            assert!(
                found.is_err() || receiver.take(end.clone()).is_err(),
                "{cut} bytes"
            );
        }
        assert!(!receiver.has_ended());
        receiver.take(end.clone()).unwrap();
        assert!(receiver.has_ended());
        let mut receiver = Receiver::new(&schema, Box::new(AsTheyAre));
        receiver.take(messages[0].clone()).unwrap();
        assert!(receiver.take(end).is_err());
        assert!(
            Receiver::new(&schema, Box::new(AsTheyAre))
                .take(Bytes::new())
                .is_err()
        );
    }

    #[test]
    fn rows_without_bytes_are_counted() {
        let fields = [vec![], vec![Field::new("n", DataType::Null, true)]];
        for fields in fields {
            let schema = Arc::new(Schema::new(fields));
            let nulls: ArrayRef = Arc::new(NullArray::new(7));
            let columns = vec![nulls; schema.fields().len()];
            let options = RecordBatchOptions::new().with_row_count(Some(7));
            let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options);
            let mut sender = Sender::new(&schema, Box::new(AsTheyAre)).unwrap();
            let mut receiver = Receiver::new(&schema, Box::new(AsTheyAre));
            let batch = batch.unwrap();
            let found = receiver.take(sender.rows(&batch).unwrap().0).unwrap();
            assert_eq!(found, [batch]);
            receiver.take(sender.end()).unwrap();
        }
    }

    #[test]
    fn requests_come_as_they_went() {
        let request = Request::Open {
            query: "a".to_owned(),
            language: "sparql".to_owned(),
            members: vec!["1".to_owned()],
            streams: 2,
            fingerprint: u64::MAX,
        };
        let bytes = request.to_bytes(b"plan").unwrap();
        let (found, rest) = Request::from_bytes(bytes.clone()).unwrap();
        assert_eq!((found, &rest[..]), (request, &b"plan"[..]));
        for end in 0..bytes.len() - 4 {
            assert!(Request::from_bytes(bytes.slice(..end)).is_err());
        }
    }
}
