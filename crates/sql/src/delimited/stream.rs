//! A streaming reader over incoming bytes.

use std::collections::VecDeque;

use bytes::Bytes;
use datafusion::execution::memory_pool::MemoryReservation;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

use super::reader::{Reader, TextBatch};
use crate::{Error, Result};

/// The records of some bytes as texts.
pub(crate) fn text_batches(
    bytes: BoxStream<'static, Result<Bytes>>,
    reader: Reader,
    memory: MemoryReservation,
) -> BoxStream<'static, Result<TextBatch>> {
    /// Of one chunk at a time, so that few batches wait.
    const SLICE_BYTES: usize = 256 << 10;
    struct State {
        bytes: Option<BoxStream<'static, Result<Bytes>>>,
        chunk: Bytes,
        reader: Reader,
        memory: MemoryReservation,
        held_before: usize,
        ready: VecDeque<TextBatch>,
    }
    let state = State {
        held_before: memory.size(),
        bytes: Some(bytes),
        chunk: Bytes::new(),
        reader,
        memory,
        ready: VecDeque::new(),
    };
    futures::stream::try_unfold(state, |mut state| async move {
        loop {
            if let Some(batch) = state.ready.pop_front() {
                return Ok(Some((batch, state)));
            }
            if !state.chunk.is_empty() {
                let end = state.chunk.len().min(SLICE_BYTES);
                let slice = state.chunk.split_to(end);
                state.ready.extend(state.reader.push(&slice)?);
                let held = state.held_before + state.reader.held_bytes();
                let held = state.memory.try_resize(held);
                held.map_err(|error| Error::of_run(&error))?;
                continue;
            }
            let Some(bytes) = &mut state.bytes else {
                return Ok(None);
            };
            match bytes.try_next().await? {
                Some(chunk) => state.chunk = chunk,
                None => {
                    state.bytes = None;
                    state.ready.extend(state.reader.finish()?);
                }
            }
        }
    })
    .boxed()
}
