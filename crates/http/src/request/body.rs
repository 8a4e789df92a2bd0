//! Reads request bodies: their coding, their size limit, and the memory that they take.
//!
//! ```text
//!   Content-Encoding -> frames, each counted before it is stored -> bytes as they came -> text
//! ```
//!
//! - Codings are gzip, zstd, br (brotli) and none; any other gets 415, with the known ones in
//!   `Accept-Encoding`.
//! - The size limit is for the body as it comes and after decompression; a longer one gets 413.
//! - The memory of a body is reserved from the engine's, like that of queries, so that `--memory`
//!   limits both. Without room the request gets 503 if others hold it, else 507. Bodies below
//!   [`UNCOUNTED_BYTES`] are not counted: counting takes longer than they do.
//! - A body must arrive in time.

use crate::options::ClientTimes;
use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, Method, header, request::Parts};
use bytes::Bytes;
use http_body_util::BodyExt;
use orrery_loader::{brotli_text, brotli_window_bytes, decompressed_text};
use orrery_service::errors::ServiceError;
use orrery_sparql::{Engine, HeldMemory};
use orrery_storage::ByteCount;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Bodies up to this size are not counted.
const UNCOUNTED_BYTES: usize = 64 << 10;
/// Step in which memory for decompressed text is reserved.
const STEP_BYTES: usize = 1 << 20;
/// Divisor of the memory: others are the cause of a refusal if they hold more.
const OTHERS_PART: u64 = 16;
/// Copies of a buffer while it grows.
const COPIES_WHILE_GROWING: usize = 2;

/// How a body is compressed, by its `Content-Encoding`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Identity,
    Gzip,
    Zstd,
    Brotli,
}

impl Coding {
    /// The coding that the headers name.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, ServiceError> {
        let mut found = Self::Identity;
        for line in headers.get_all(header::CONTENT_ENCODING) {
            let text = line.to_str().unwrap_or("not ASCII");
            for coding in text
                .split(',')
                .map(str::trim)
                .filter(|coding| !coding.is_empty())
            {
                let next = match coding.to_ascii_lowercase().as_str() {
                    "identity" => continue,
                    "gzip" | "x-gzip" => Self::Gzip,
                    "zstd" => Self::Zstd,
                    "br" => Self::Brotli,
                    _ => {
                        return Err(ServiceError::UnsupportedCoding {
                            coding: coding.to_owned(),
                        });
                    }
                };
                if found != Self::Identity {
                    // Several codings, one after the other, make very much out of very little.
                    return Err(ServiceError::UnsupportedCoding {
                        coding: text.to_owned(),
                    });
                }
                found = next;
            }
        }
        Ok(found)
    }

    /// Whether data that begin with these bytes may have this coding.
    ///
    /// The parsers of documents recognize compression by the same bytes; brotli has none of its
    /// own.
    pub(crate) fn fits(self, first: &[u8]) -> bool {
        match self {
            Self::Identity => true,
            Self::Gzip => first.starts_with(&[0x1f, 0x8b]),
            Self::Zstd => {
                first.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
                    || (first.len() >= 4
                        && first[0] & 0xf0 == 0x50
                        && first[1..4] == [0x2a, 0x4d, 0x18])
            }
            Self::Brotli => self.window_bytes(first) > 0,
        }
    }

    /// Memory that decompression takes beside the text, where it is not little.
    pub(crate) fn window_bytes(self, first: &[u8]) -> usize {
        match (self, first.first()) {
            (Self::Brotli, Some(&first)) => brotli_window_bytes(first).unwrap_or(0),
            _ => 0,
        }
    }

    /// Refuses a form that is compressed as a whole.
    pub(crate) fn refuse_form(self) -> Result<(), ServiceError> {
        match self {
            Self::Identity => Ok(()),
            Self::Gzip | Self::Zstd | Self::Brotli => Err(ServiceError::bad_request(
                "a multipart body is taken as it is; compress the files in it instead",
            )),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Brotli => "br",
        }
    }

    /// The error for a body that does not have its coding.
    pub(crate) fn mismatch(self) -> ServiceError {
        ServiceError::bad_request(format!(
            "Content-Encoding says {}, and the request's body is no {} data",
            self.name(),
            self.name()
        ))
    }
}

/// The room that a body needs: its length as the head says, else the limit.
pub(crate) fn body_bytes(parts: &Parts, limit_bytes: usize) -> usize {
    let has_none = matches!(parts.method, Method::GET | Method::HEAD);
    let length = parts.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    length
        .unwrap_or(if has_none { 0 } else { limit_bytes })
        .min(limit_bytes)
}

/// Time for a client to send a body, or more of one that goes to the disk; the default if the
/// request has none.
pub(crate) fn body_time_max(parts: &Parts) -> Duration {
    client_times(parts).body_max
}

/// The time limits for the client of a request.
pub(crate) fn client_times(parts: &Parts) -> ClientTimes {
    let times = parts.extensions.get::<ClientTimes>().copied();
    times.unwrap_or_default()
}

/// Checks the pace of a body without a time limit: a byte now and then would keep its connection
/// for ever. Only the time in which the server has waited counts.
#[derive(Debug)]
pub(crate) struct UploadPace {
    times: ClientTimes,
    waited: Duration,
    bytes: u64,
}

impl UploadPace {
    pub(crate) fn new(times: ClientTimes) -> Self {
        Self {
            times,
            waited: Duration::ZERO,
            bytes: 0,
        }
    }

    /// Counts bytes that came after a wait.
    ///
    /// # Errors
    /// When they were too few in the time of a window.
    pub(crate) fn came(&mut self, bytes: usize, waited: Duration) -> Result<(), ServiceError> {
        self.bytes += bytes as u64;
        self.waited += waited;
        if self.waited < self.times.upload_window {
            return Ok(());
        }
        let least = self.waited.as_secs_f64() * self.times.upload_bytes_per_s as f64;
        if (self.bytes as f64) < least {
            return Err(ServiceError::UploadTooSlow {
                bytes_per_s: self.times.upload_bytes_per_s,
                window: self.times.upload_window,
            });
        }
        (self.bytes, self.waited) = (0, Duration::ZERO);
        Ok(())
    }
}

/// A body as it came, and the memory that is reserved for it.
#[derive(Debug)]
pub(crate) struct HeldBody {
    pub(crate) bytes: Bytes,
    pub(crate) coding: Coding,
    pub(crate) memory: BodyMemory,
}

/// The memory of a request beside its queries'.
#[derive(Debug)]
pub(crate) struct BodyMemory {
    engine: Arc<Engine>,
    /// None while it is too little to be counted.
    held: Option<HeldMemory>,
}

impl BodyMemory {
    pub(crate) fn new(engine: &Arc<Engine>) -> Self {
        Self {
            engine: Arc::clone(engine),
            held: None,
        }
    }

    /// Reserves this much from now on, in place of what was.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), ServiceError> {
        if self.held.is_none() && bytes <= UNCOUNTED_BYTES {
            return Ok(());
        }
        let engine = &self.engine;
        let held = self
            .held
            .get_or_insert_with(|| engine.hold_memory("the body of a request"));
        held.resize(bytes).map_err(|_refused| {
            let memory_bytes = engine.options().memory_bytes;
            let others_bytes = engine.memory_held_bytes().saturating_sub(held.bytes());
            match others_bytes as u64 > memory_bytes / OTHERS_PART {
                true => ServiceError::MemoryBusy {
                    message: "other requests hold the memory that the body of this one needs; try again in a moment".to_owned(),
                },
                false => ServiceError::OutOfMemory {
                    message: format!(
                        "the request's body, and what is made of it, take more than is left of the server's memory budget of \
                         {}; send less at a time, or give the server more with --memory",
                        ByteCount(memory_bytes)
                    ),
                },
            }
        })
    }
}

/// Reads a body of at most `limit_bytes` to its end.
pub(crate) async fn read(
    engine: &Arc<Engine>,
    parts: &Parts,
    mut body: Body,
    limit_bytes: usize,
) -> Result<HeldBody, ServiceError> {
    let coding = Coding::of(&parts.headers)?;
    let too_large = || ServiceError::PayloadTooLarge { limit_bytes };
    // A body that announces too great a length need not be sent at all.
    if body.size_hint().lower() > limit_bytes as u64 {
        return Err(too_large());
    }
    let time_max = body_time_max(parts);
    let deadline = Instant::now() + time_max;
    let mut memory = BodyMemory::new(engine);
    let mut whole = Bytes::new();
    let mut buffer: Vec<u8> = Vec::new();
    loop {
        let frame = tokio::time::timeout_at(deadline, body.frame()).await;
        let frame = frame.map_err(|_elapsed| ServiceError::BodyTooSlow { limit: time_max })?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| unreadable(&error))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if whole.is_empty() && buffer.is_empty() {
            // Usually it is all that comes.
            whole = data;
        } else {
            let length = whole.len() + buffer.len() + data.len();
            if length > buffer.capacity() {
                let capacity = length.next_power_of_two();
                memory.resize(capacity.saturating_mul(COPIES_WHILE_GROWING))?;
                buffer.reserve_exact(capacity - buffer.len());
            }
            buffer.extend_from_slice(&whole);
            whole = Bytes::new();
            buffer.extend_from_slice(&data);
        }
        if whole.len() + buffer.len() > limit_bytes {
            return Err(too_large());
        }
    }
    let bytes = if buffer.is_empty() {
        whole
    } else {
        buffer.into()
    };
    memory.resize(bytes.len())?;
    if !coding.fits(&bytes) {
        return Err(coding.mismatch());
    }
    Ok(HeldBody {
        bytes,
        coding,
        memory,
    })
}

/// The error for a body that broke off.
pub(crate) fn unreadable(error: &dyn std::fmt::Display) -> ServiceError {
    ServiceError::bad_request(format!("the request body could not be read: {error}"))
}

impl HeldBody {
    /// The text of a body, decompressed, with memory reserved for `copies` of it. Slow if the body
    /// is compressed.
    pub(crate) fn into_text(
        mut self,
        limit_bytes: usize,
        copies: usize,
    ) -> Result<(Bytes, BodyMemory), ServiceError> {
        let text = match self.coding {
            Coding::Identity => self.bytes,
            Coding::Gzip | Coding::Zstd | Coding::Brotli => self.decompressed(limit_bytes)?.into(),
        };
        self.memory.resize(text.len().saturating_mul(copies))?;
        Ok((text, self.memory))
    }

    fn decompressed(&mut self, limit_bytes: usize) -> Result<Vec<u8>, ServiceError> {
        let corrupt = |error: std::io::Error| {
            ServiceError::bad_request(format!("the request's body: {error}"))
        };
        let compressed_bytes = self.bytes.len() + self.coding.window_bytes(&self.bytes);
        let input = std::io::Cursor::new(std::mem::take(&mut self.bytes));
        let mut input: Box<dyn Read + Send> = match self.coding {
            Coding::Brotli => Box::new(brotli_text(input).map_err(corrupt)?),
            Coding::Identity | Coding::Gzip | Coding::Zstd => {
                decompressed_text(input).map_err(corrupt)?
            }
        };
        let mut text = Vec::new();
        loop {
            if text.len() == text.capacity() {
                let capacity = (text.len() * 2).max(STEP_BYTES);
                self.memory
                    .resize(compressed_bytes + capacity + text.len())?;
                text.reserve_exact(capacity - text.len());
            }
            let room = (text.capacity() - text.len()) as u64;
            let read = input
                .by_ref()
                .take(room)
                .read_to_end(&mut text)
                .map_err(corrupt)?;
            if text.len() > limit_bytes {
                return Err(ServiceError::PayloadTooLarge { limit_bytes });
            }
            if read == 0 {
                return Ok(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::error_response::ErrorResponse as _;
    use axum::http::HeaderValue;

    fn coding(lines: &[&'static str]) -> Result<Coding, u16> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::CONTENT_ENCODING, HeaderValue::from_static(line));
        }
        Coding::of(&headers).map_err(|error| error.status().as_u16())
    }

    #[test]
    fn one_known_coding_is_taken() {
        assert_eq!(coding(&[]), Ok(Coding::Identity));
        assert_eq!(coding(&["identity"]), Ok(Coding::Identity));
        assert_eq!(coding(&["GZIP"]), Ok(Coding::Gzip));
        assert_eq!(coding(&["x-gzip"]), Ok(Coding::Gzip));
        assert_eq!(coding(&["identity, zstd"]), Ok(Coding::Zstd));
        assert_eq!(coding(&["br"]), Ok(Coding::Brotli));
        for lines in [
            &["deflate"][..],
            &["br, br"],
            &["gzip, gzip"],
            &["gzip", "zstd"],
            &["compress"],
        ] {
            assert_eq!(coding(lines), Err(415), "{lines:?}");
        }
    }
}
