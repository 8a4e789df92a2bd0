//! The reader of batches from the lines of a JSON file, or of a part of it.

use std::ops::Range;

use bytes::{Buf, Bytes};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::json::ReaderBuilder;
use datafusion::arrow::json::reader::Decoder;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use memchr::{memchr, memrchr};

use super::super::bytes::READING_BYTES;
use super::super::location::FoundFile;
use super::shape::{RECORD_BYTES_MAX, Seen, Shape, too_long};

/// Decoded at once, so that memory is asked for in steps.
const PIECE_BYTES: usize = 64 << 10;
/// A batch ends when so much was asked for it.
const BATCH_BYTES: usize = 4 << 20;
/// What a decoder makes room for, of each column of each row that a batch may have.
const ROOM_BYTES: usize = 32;
/// What it makes room for together.
const ROOM_BYTES_MAX: usize = 4 << 20;

/// The rows of a file with these columns; of a part of it, those of the lines that begin there.
pub(super) fn batches(
    file: FoundFile,
    part: Option<Range<u64>>,
    schema: SchemaRef,
    batch_rows: usize,
    memory: MemoryReservation,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let lines = match part {
        None => file.bytes(),
        Some(part) => lines_of(&file, part),
    };
    let fields = schema.flattened_fields().len().max(1);
    let row_bytes = ROOM_BYTES * fields;
    let batch_rows = batch_rows.min(ROOM_BYTES_MAX / row_bytes).max(1);
    memory.try_grow(READING_BYTES + batch_rows * row_bytes)?;
    let reading = Reading {
        lines: lines.map_err(DataFusionError::from).boxed(),
        is_over: false,
        chunk: Bytes::new(),
        passed: 0,
        decoder: None,
        batch_rows,
        schema,
        fields,
        shape: Shape::default(),
        seen: Seen::default(),
        coming: Seen::default(),
        held_before: memory.size(),
        memory,
    };
    let batches = futures::stream::try_unfold(reading, |mut reading| async move {
        let batch = reading.next().await?;
        Ok(batch.map(|batch| (batch, reading)))
    });
    Ok(batches.boxed())
}

struct Reading {
    lines: BoxStream<'static, Result<Bytes>>,
    is_over: bool,
    /// What was read and not decoded, of which so many bytes were looked at.
    chunk: Bytes,
    passed: usize,
    decoder: Option<Decoder>,
    batch_rows: usize,
    schema: SchemaRef,
    fields: usize,
    shape: Shape,
    /// Of the batch that is being made, whose memory is held.
    seen: Seen,
    /// Of the bytes that were looked at, whose memory is to be asked for.
    coming: Seen,
    memory: MemoryReservation,
    held_before: usize,
}

impl Reading {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        // Who was given the last batch has asked for it by now.
        self.memory.try_resize(self.held_before)?;
        loop {
            if self.passed == 0 && !self.pass().await? {
                return self.flush();
            }
            if let Err(error) = self.hold() {
                // What is whole makes room.
                let is_between = (self.decoder.as_ref()).is_some_and(|it| !it.has_partial_record());
                let batch = if is_between { self.flush()? } else { None };
                return batch.map(Some).ok_or(error);
            }
            let mut decoder = match self.decoder.take() {
                Some(decoder) => decoder,
                None => ReaderBuilder::new(SchemaRef::clone(&self.schema))
                    .with_batch_size(self.batch_rows)
                    .build_decoder()?,
            };
            let decoded = decoder.decode(&self.chunk[..self.passed])?;
            let is_between = !decoder.has_partial_record();
            self.decoder = Some(decoder);
            self.chunk.advance(decoded);
            self.passed -= decoded;
            let is_much = self.seen.decoded_bytes(self.fields) >= BATCH_BYTES;
            // It stops before the end where it has all the rows of a batch.
            if (self.passed > 0 || (is_much && is_between))
                && let Some(batch) = self.flush()?
            {
                return Ok(Some(batch));
            }
        }
    }

    /// Asks for the memory of what is decoded next.
    fn hold(&mut self) -> Result<()> {
        let seen = self.seen.and(self.coming);
        if seen.bytes > RECORD_BYTES_MAX {
            // A batch ends long before, but for a record.
            return Err(too_long().into());
        }
        let bytes = seen.decoded_bytes(self.fields);
        self.memory
            .try_resize(self.held_before.saturating_add(bytes))?;
        self.seen = seen;
        self.coming = Seen::default();
        Ok(())
    }

    /// Looks at what is decoded next, up to the end of a line if there is one; false if there is no
    /// more.
    async fn pass(&mut self) -> Result<bool> {
        while self.chunk.is_empty() {
            let next = match self.is_over {
                true => None,
                false => self.lines.try_next().await?,
            };
            match next {
                Some(chunk) => self.chunk = chunk,
                None => {
                    self.is_over = true;
                    return Ok(false);
                }
            }
        }
        let piece = &self.chunk[..self.chunk.len().min(PIECE_BYTES)];
        let piece = match memrchr(b'\n', piece) {
            Some(at) => &piece[..=at],
            None => piece,
        };
        self.shape.pass(piece, &mut self.coming)?;
        self.passed = piece.len();
        Ok(true)
    }

    /// What was decoded, as a batch.
    fn flush(&mut self) -> Result<Option<RecordBatch>> {
        let Some(mut decoder) = self.decoder.take() else {
            return Ok(None);
        };
        let batch = decoder.flush()?;
        let seen = std::mem::take(&mut self.seen);
        // It keeps its buffers: those of a long record are given back.
        if seen.decoded_bytes(self.fields) < 2 * BATCH_BYTES {
            self.decoder = Some(decoder);
        }
        if let Some(batch) = &batch {
            let bytes = self.held_before + batch.get_array_memory_size();
            self.memory.try_resize(bytes.min(self.memory.size()))?;
        }
        Ok(batch)
    }
}

/// The bytes of all lines that begin in a part of a file.
fn lines_of(file: &FoundFile, part: Range<u64>) -> BoxStream<'static, crate::Result<Bytes>> {
    struct State {
        chunks: BoxStream<'static, crate::Result<Bytes>>,
        /// Where the next chunk begins in the file.
        at: u64,
        is_within: bool,
    }
    // A line begins at the first byte if one ends before it.
    let first = part.start.saturating_sub(1);
    let state = State {
        chunks: file.bytes_from(first),
        at: first,
        is_within: part.start == 0,
    };
    futures::stream::try_unfold(Some(state), move |state| async move {
        let Some(mut state) = state else {
            return Ok(None);
        };
        while let Some(mut chunk) = state.chunks.try_next().await? {
            let mut at = state.at;
            state.at += chunk.len() as u64;
            if !state.is_within {
                let Some(end) = memchr(b'\n', &chunk) else {
                    if state.at >= part.end {
                        return Ok(None);
                    }
                    continue;
                };
                chunk.advance(end + 1);
                at += end as u64 + 1;
                state.is_within = true;
                if at >= part.end {
                    return Ok(None);
                }
            }
            if state.at < part.end {
                return Ok(Some((chunk, Some(state))));
            }
            // The last line may end behind the part.
            let last = usize::try_from(part.end.saturating_sub(at + 1)).unwrap_or(usize::MAX);
            let end = chunk.get(last..).and_then(|rest| memchr(b'\n', rest));
            return Ok(match end {
                Some(end) => {
                    chunk.truncate(last + end + 1);
                    Some((chunk, None))
                }
                None => Some((chunk, Some(state))),
            });
        }
        Ok(None)
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, UnboundedMemoryPool};
    use object_store::memory::InMemory;
    use object_store::path::Path;
    use object_store::{ObjectStore, ObjectStoreExt};

    use super::*;

    async fn written(text: String) -> FoundFile {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let path = Path::from("x.json");
        store.put(&path, text.into()).await.unwrap();
        let meta = store.head(&path).await.unwrap();
        FoundFile::of_store(&store, meta)
    }

    /// The values of the column `a` in each batch.
    async fn read(file: &FoundFile, part: Option<Range<u64>>) -> Vec<Vec<i64>> {
        let schema = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let memory = MemoryConsumer::new("a test").register(&pool);
        let batches = batches(file.clone(), part, Arc::new(schema), 1_000, memory).unwrap();
        let batches: Vec<RecordBatch> = batches.try_collect().await.unwrap();
        assert_eq!(pool.reserved(), 0);
        let values = |batch: &RecordBatch| {
            let values = batch.column(0).as_primitive::<Int64Type>();
            values.values().to_vec()
        };
        batches.iter().map(values).collect()
    }

    #[tokio::test]
    async fn parts_of_a_file_have_each_line_once() {
        let file = written("{\"a\": 1}\n{\"a\": 22}\n\n{\"a\": 3}".to_owned()).await;
        let size = file.meta.size;
        for middle in 1..size {
            let mut rows = Vec::new();
            for part in [0..middle, middle..size] {
                rows.extend(read(&file, Some(part)).await.concat());
            }
            assert_eq!(rows, [1, 22, 3], "{middle}");
        }
        assert_eq!(read(&file, None).await, [[1, 22, 3]]);
    }

    #[tokio::test]
    async fn a_batch_ends_at_its_rows_and_at_its_bytes() {
        let line = |a: usize, blanks: usize| format!("{{\"a\": {a}{}}}\n", " ".repeat(blanks));
        let file = written((0..2_500).map(|a| line(a, 0)).collect()).await;
        let rows: Vec<usize> = read(&file, None).await.iter().map(Vec::len).collect();
        assert_eq!(rows, [1_000, 1_000, 500]);
        // A quarter of a mebibyte is charged four times.
        let file = written((0..10).map(|a| line(a, 1 << 18)).collect()).await;
        let read = read(&file, None).await;
        assert_eq!(read.concat(), (0..10).collect::<Vec<i64>>());
        assert!(read.iter().all(|batch| batch.len() <= 4), "{read:?}");
    }
}
