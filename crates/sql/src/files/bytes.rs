//! The byte stream of a file, decompressed by its name's ending.

use std::io::Write;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::GetOptions;

use super::location::{FoundFile, of_store};
use crate::{Error, Result, SqlState};

/// Bytes that are asked for at once: a local file is read by a thread of its own each time.
const CHUNK_BYTES: u64 = 1 << 20;
/// Chunks that are on their way while one is worked upon.
const CHUNKS_AHEAD: usize = 2;
/// Compressed bytes that are decompressed at once: no more than a thousand times as many come out.
const PACKED_BYTES: usize = 4 << 10;

/// Memory that reading one file takes.
pub(crate) const READING_BYTES: usize = 4 << 20;

impl FoundFile {
    /// Whether it is compressed with gzip.
    pub(crate) fn is_packed(&self) -> bool {
        self.meta.location.as_ref().ends_with(".gz")
    }

    /// All of its bytes.
    pub(crate) fn bytes(&self) -> BoxStream<'static, Result<Bytes>> {
        let chunks = self.bytes_from(0);
        match self.is_packed() {
            false => chunks,
            true => unpacked(self.name.clone(), chunks),
        }
    }

    /// Its bytes as they are, from a place on.
    pub(crate) fn bytes_from(&self, first: u64) -> BoxStream<'static, Result<Bytes>> {
        let size = self.meta.size;
        let starts = (first..size).step_by(CHUNK_BYTES as usize);
        let file = self.clone();
        let chunks = futures::stream::iter(starts).map(move |start| {
            let file = file.clone();
            async move {
                let range = start..size.min(start + CHUNK_BYTES);
                // Of the file that was looked at when the statement was planned.
                let options = GetOptions::new()
                    .with_range(Some(range))
                    .with_if_match(file.meta.e_tag.clone());
                let read = file.store.get_opts(&file.meta.location, options).await;
                let read = match read {
                    Ok(read) => read.bytes().await,
                    Err(error) => Err(error),
                };
                read.map_err(|error| match error {
                    object_store::Error::Precondition { .. } => Error::new(
                        SqlState::ObjectInUse,
                        format!("file \"{}\" was changed while it was read", file.name),
                    ),
                    error => of_store(&file.name, &error),
                })
            }
        });
        chunks.buffered(CHUNKS_AHEAD).boxed()
    }
}

fn unpacked(
    name: String,
    chunks: BoxStream<'static, Result<Bytes>>,
) -> BoxStream<'static, Result<Bytes>> {
    let slices = chunks
        .map_ok(|chunk| {
            let starts = (0..chunk.len()).step_by(PACKED_BYTES);
            let slices: Vec<Result<Bytes>> = starts
                .map(|start| Ok(chunk.slice(start..chunk.len().min(start + PACKED_BYTES))))
                .collect();
            futures::stream::iter(slices)
        })
        .try_flatten();
    let state = Some((slices.boxed(), MultiGzDecoder::new(Vec::new())));
    let broken = move |error: std::io::Error| {
        let words = format!("file {name} is no gzip, or is cut off: {error}");
        Error::new(SqlState::IoError, words)
    };
    futures::stream::try_unfold(state, move |state| {
        let broken = broken.clone();
        async move {
            let Some((mut slices, mut decoder)) = state else {
                return Ok(None);
            };
            match slices.try_next().await? {
                Some(slice) => {
                    decoder.write_all(&slice).map_err(&broken)?;
                    let bytes = std::mem::take(decoder.get_mut());
                    Ok(Some((Bytes::from(bytes), Some((slices, decoder)))))
                }
                None => {
                    let bytes = decoder.finish().map_err(&broken)?;
                    Ok(Some((Bytes::from(bytes), None)))
                }
            }
        }
    })
    .boxed()
}
