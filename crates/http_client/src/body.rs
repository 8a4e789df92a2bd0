//! The streamed body of an answer: decompressed, counted, and within the timeout.
//!
//! The time counts while we wait for the other side, not while the reader is busy
//! with what came. Compressed bytes go through the decoder in small slices, so that a few bytes
//! that unfold to gigabytes meet the limit before they are in memory.

use std::collections::VecDeque;
use std::io::{self, Read, Write as _};
use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use futures::future::select;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};

use crate::error::{Error, with_causes};

/// Compressed bytes decoded at once; deflate unfolds at most 1,032 times.
const SLICE_BYTES: usize = 4 << 10;
/// Chunks between the network and a blocking reader.
const CHUNKS_AHEAD: usize = 4;

/// What a body may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    pub(crate) received_bytes_max: u64,
    pub(crate) decoded_bytes_max: u64,
    /// The limit that was given for the whole request, to tell it.
    pub(crate) timeout: Duration,
}

/// The body of an answer.
pub struct Body {
    url: String,
    chunks: BoxStream<'static, reqwest::Result<Bytes>>,
    decoder: Option<MultiGzDecoder<Vec<u8>>>,
    /// Compressed slices that wait for the decoder.
    waiting: VecDeque<Bytes>,
    limits: BodyLimits,
    remaining: Duration,
    received_bytes: u64,
    decoded_bytes: u64,
    is_over: bool,
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body")
            .field("url", &self.url)
            .field("received_bytes", &self.received_bytes)
            .finish_non_exhaustive()
    }
}

impl Body {
    pub(crate) fn new(
        url: String,
        response: reqwest::Response,
        limits: BodyLimits,
        remaining: Duration,
    ) -> Result<Self, Error> {
        let encoding = response.headers().get(reqwest::header::CONTENT_ENCODING);
        let encoding = encoding.map(|value| value.as_bytes().to_ascii_lowercase());
        let decoder = match encoding.as_deref() {
            None | Some(b"" | b"identity") => None,
            Some(b"gzip" | b"x-gzip") => Some(MultiGzDecoder::new(Vec::new())),
            Some(other) => {
                let other = String::from_utf8_lossy(other);
                return Err(Error::Content {
                    url,
                    message: format!("it is encoded as {other}, which was not asked for"),
                });
            }
        };
        let too_large = response
            .content_length()
            .is_some_and(|length| length > limits.received_bytes_max);
        if too_large {
            return Err(Error::TooLarge {
                url,
                limit_bytes: limits.received_bytes_max,
                is_decompressed: false,
            });
        }
        Ok(Self {
            url,
            chunks: response.bytes_stream().boxed(),
            decoder,
            waiting: VecDeque::new(),
            limits,
            remaining,
            received_bytes: 0,
            decoded_bytes: 0,
            is_over: false,
        })
    }

    /// The next bytes, never empty; `None` at the end. After an error comes the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let chunk = self.next_chunk().await;
        if !matches!(chunk, Ok(Some(_))) {
            self.is_over = true;
        }
        chunk
    }

    async fn next_chunk(&mut self) -> Result<Option<Bytes>, Error> {
        while !self.is_over {
            if let Some(decoded) = self.decode()? {
                return Ok(Some(decoded));
            }
            let Some(chunk) = self.receive().await? else {
                let last = self.decode_end()?;
                self.is_over = true;
                return Ok(last);
            };
            if self.decoder.is_none() {
                if !chunk.is_empty() {
                    return Ok(Some(chunk));
                }
                continue;
            }
            let mut chunk = chunk;
            while !chunk.is_empty() {
                let slice = chunk.split_to(chunk.len().min(SLICE_BYTES));
                self.waiting.push_back(slice);
            }
        }
        Ok(None)
    }

    async fn receive(&mut self) -> Result<Option<Bytes>, Error> {
        let started = Instant::now();
        let chunk = tokio::time::timeout(self.remaining, self.chunks.next()).await;
        self.remaining = self.remaining.saturating_sub(started.elapsed());
        let chunk = match chunk {
            Err(_) => {
                return Err(Error::TimedOut {
                    url: self.url.clone(),
                    limit: self.limits.timeout,
                });
            }
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => {
                return Err(Error::Unreachable {
                    url: self.url.clone(),
                    message: with_causes(&error.without_url()),
                });
            }
            Ok(Some(Ok(chunk))) => chunk,
        };
        self.received_bytes += chunk.len() as u64;
        if self.received_bytes > self.limits.received_bytes_max {
            return Err(Error::TooLarge {
                url: self.url.clone(),
                limit_bytes: self.limits.received_bytes_max,
                is_decompressed: false,
            });
        }
        Ok(Some(chunk))
    }

    /// Decodes waiting slices until something comes out.
    fn decode(&mut self) -> Result<Option<Bytes>, Error> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(None);
        };
        while let Some(slice) = self.waiting.pop_front() {
            let written = decoder.write_all(&slice);
            let decoded = std::mem::take(decoder.get_mut());
            written.map_err(|error| corrupt(&self.url, &error))?;
            if !decoded.is_empty() {
                return self.counted(decoded).map(Some);
            }
        }
        Ok(None)
    }

    /// What the decoder still holds; fails if the compressed data ends too early.
    fn decode_end(&mut self) -> Result<Option<Bytes>, Error> {
        let Some(decoder) = self.decoder.take() else {
            return Ok(None);
        };
        let decoded = decoder
            .finish()
            .map_err(|error| corrupt(&self.url, &error))?;
        if decoded.is_empty() {
            return Ok(None);
        }
        self.counted(decoded).map(Some)
    }

    fn counted(&mut self, decoded: Vec<u8>) -> Result<Bytes, Error> {
        self.decoded_bytes += decoded.len() as u64;
        if self.decoded_bytes > self.limits.decoded_bytes_max {
            return Err(Error::TooLarge {
                url: self.url.clone(),
                limit_bytes: self.limits.decoded_bytes_max,
                is_decompressed: true,
            });
        }
        Ok(decoded.into())
    }

    /// The first bytes of the body, for a message; errors are left out.
    pub(crate) async fn beginning(&mut self, bytes_max: usize) -> Vec<u8> {
        let mut text = Vec::new();
        while text.len() < bytes_max {
            match self.chunk().await {
                Ok(Some(chunk)) => text.extend_from_slice(&chunk),
                Ok(None) | Err(_) => break,
            }
        }
        text.truncate(bytes_max);
        text
    }

    /// The chunks as a stream that ends after its first error.
    pub fn into_stream(self) -> Pin<Box<dyn Stream<Item = Result<Bytes, Error>> + Send>> {
        Box::pin(futures::stream::unfold(self, |mut body| async move {
            let chunk = body.chunk().await.transpose()?;
            Some((chunk, body))
        }))
    }

    /// A reader for blocking code, such as a parser on a thread of its own. The bytes are received
    /// on `runtime`, a few chunks ahead, until `given_up` ends. Must not be read on a thread of a
    /// runtime.
    ///
    /// Errors come as [`io::Error`] with an [`Error`] inside; what was given up just ends.
    pub fn into_reader(
        mut self,
        runtime: &tokio::runtime::Handle,
        given_up: impl Future<Output = ()> + Send + 'static,
    ) -> BodyReader {
        let (sender, receiver) = tokio::sync::mpsc::channel(CHUNKS_AHEAD);
        let received = async move {
            while let Some(chunk) = self.chunk().await.transpose() {
                // The reader may have gone, which ends the request.
                if sender.send(chunk).await.is_err() {
                    break;
                }
            }
        };
        runtime.spawn(select(Box::pin(received), Box::pin(given_up)));
        BodyReader {
            receiver,
            chunk: Bytes::new(),
        }
    }
}

fn corrupt(url: &str, error: &io::Error) -> Error {
    Error::Content {
        url: url.to_owned(),
        message: format!("its gzip data is corrupt or ends too early ({error})"),
    }
}

/// A body for code that blocks.
#[derive(Debug)]
pub struct BodyReader {
    receiver: tokio::sync::mpsc::Receiver<Result<Bytes, Error>>,
    chunk: Bytes,
}

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            match self.receiver.blocking_recv() {
                None => return Ok(0),
                Some(chunk) => self.chunk = chunk.map_err(io::Error::other)?,
            }
        }
        let length = self.chunk.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.chunk.split_to(length));
        Ok(length)
    }
}
