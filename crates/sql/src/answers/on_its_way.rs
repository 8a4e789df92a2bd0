//! The memory count of an answer's long rows on their way to a client.
//!
//! ```text
//! rows of a query -> memory for what sending makes of them -> PostgreSQL's port: one row at a time, as a text or in binary
//!                                                             Flight: whole batches, of which some wait
//! ```
//!
//! A value of a gigabyte is there once in its batch and once more in the client's format, which is
//! made piece by piece in a buffer that doubles. So this memory is reserved before a batch is
//! handed on, and held until as many later batches have followed as may wait. Batches of short
//! values are not counted.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::{Stream, StreamExt, ready};

use crate::values::sizes::{bytes_of_array, bytes_of_values};

/// Values up to this are not asked for: each query has set memory aside for such batches.
const SHORT_BYTES: u64 = 4 << 20;
/// Batches that may wait for their client at once, that at hand too.
const BATCHES_WAITING: usize = 3;
/// How often the longest value is there while it is written: bytes become twice as many digits, in
/// a buffer that has doubled.
const COPIES: u64 = 3;

/// See the module.
pub(crate) struct OnItsWay {
    rows: SendableRecordBatchStream,
    pool: Arc<dyn MemoryPool>,
    /// Of the batches that were handed on last, the longest ago first; none of those whose values
    /// are short.
    held: VecDeque<Option<MemoryReservation>>,
}

impl OnItsWay {
    pub(crate) fn new(rows: SendableRecordBatchStream, pool: &Arc<dyn MemoryPool>) -> Self {
        Self {
            rows,
            pool: Arc::clone(pool),
            held: VecDeque::new(),
        }
    }

    fn hold(&mut self, batch: &RecordBatch) -> Result<()> {
        while self.held.len() >= BATCHES_WAITING {
            self.held.pop_front();
        }
        let bytes = bytes_of_values(batch);
        let memory = match bytes > SHORT_BYTES {
            true => {
                let longest = batch.columns().iter().map(bytes_of_longest).max();
                let bytes = bytes + COPIES * longest.unwrap_or(0);
                let memory = MemoryConsumer::new("the rows of an answer").register(&self.pool);
                memory.try_grow(usize::try_from(bytes).unwrap_or(usize::MAX))?;
                Some(memory)
            }
            false => None,
        };
        self.held.push_back(memory);
        Ok(())
    }
}

/// The bytes of the longest value of a column; none of types whose values are short.
fn bytes_of_longest(column: &ArrayRef) -> u64 {
    let between = |offsets: &[i32]| {
        let lengths = offsets.windows(2).map(|pair| match pair {
            [start, end] => (end - start) as u32,
            _ => 0,
        });
        lengths.max()
    };
    let longest = match column.data_type() {
        DataType::Utf8View => column.as_string_view().lengths().max(),
        DataType::BinaryView => column.as_binary_view().lengths().max(),
        DataType::Utf8 => between(column.as_string::<i32>().value_offsets()),
        DataType::Binary => between(column.as_binary::<i32>().value_offsets()),
        // As if one of them had all elements.
        DataType::List(_) => return bytes_of_array(column),
        _ => None,
    };
    u64::from(longest.unwrap_or(0))
}

impl Stream for OnItsWay {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.rows.poll_next_unpin(context));
        Poll::Ready(next.map(|batch| {
            let batch = batch?;
            self.hold(&batch)?;
            Ok(batch)
        }))
    }
}

impl RecordBatchStream for OnItsWay {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}
