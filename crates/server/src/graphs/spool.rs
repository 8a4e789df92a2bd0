//! Bodies of POST that go to a temporary file as they come: those that say that they are large, and those that do not say how large they are.

use crate::body::{Coding, UploadPace, client_times, unreadable};
use crate::errors::{ServerError, told_to_the_log};
use crate::media_type::is_multipart;
use crate::state::ServerState;
use axum::body::Body;
use axum::http::{header, request::Parts};
use futures::StreamExt;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::Instant;
use tempfile::NamedTempFile;

/// First bytes of a body, by which its coding is known.
const FIRST_BYTES: usize = 4;

/// How large a body says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Announced {
    /// It fits into memory, or it has to.
    Fits,
    Unknown,
    Large,
}

impl Announced {
    /// Of a request, where so many bytes fit.
    pub(super) fn of(parts: &Parts, limit_bytes: usize) -> Self {
        if is_multipart(&parts.headers) {
            return Self::Fits;
        }
        let length = parts.headers.get(header::CONTENT_LENGTH);
        let length: Option<usize> = length.and_then(|length| length.to_str().ok()?.parse().ok());
        match length {
            None => Self::Unknown,
            Some(length) if length > limit_bytes => Self::Large,
            Some(_) => Self::Fits,
        }
    }
}

/// A body on the disk; its file goes with it.
#[derive(Debug)]
pub(super) struct Spool {
    file: NamedTempFile,
    bytes: u64,
}

impl Spool {
    /// Takes a body as it comes, which may be slow but not stand still. Who `looks` is told how many bytes have come, and may refuse more.
    pub(super) async fn take(
        state: &ServerState,
        parts: &Parts,
        body: Body,
        mut look: impl FnMut(u64) -> Result<(), ServerError> + Send,
    ) -> Result<Self, ServerError> {
        let coding = Coding::of(&parts.headers)?;
        let directory = &state.engine.options().temp_dir;
        let file = tempfile::Builder::new()
            .prefix("load-body-")
            .tempfile_in(directory);
        let mut file = file.map_err(not_kept)?;
        let mut chunks = body.into_data_stream();
        let times = client_times(parts);
        let stall_max = times.body_max;
        let mut pace = UploadPace::new(times);
        let mut first = Vec::with_capacity(FIRST_BYTES);
        let mut bytes = 0;
        loop {
            let asked = Instant::now();
            let chunk = tokio::time::timeout(stall_max, chunks.next()).await;
            let chunk = chunk.map_err(|_elapsed| ServerError::BodyTooSlow { limit: stall_max })?;
            let Some(chunk) = chunk else { break };
            let chunk = chunk.map_err(|error| unreadable(&error))?;
            pace.came(chunk.len(), asked.elapsed())?;
            first.extend(chunk.iter().take(FIRST_BYTES - first.len()));
            file.write_all(&chunk).map_err(not_kept)?;
            bytes += chunk.len() as u64;
            look(bytes)?;
        }
        file.flush().map_err(not_kept)?;
        match coding.fits(&first) {
            true => Ok(Self { file, bytes }),
            false => Err(coding.mismatch()),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// What reads it from its beginning.
    pub(super) fn reader(&self) -> Result<File, ServerError> {
        self.file.reopen().map_err(not_kept)
    }
}

fn not_kept(error: io::Error) -> ServerError {
    let message = told_to_the_log("the body cannot be kept on the server's disk", &error);
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ServerError::OutOfMemory { message },
        _ => ServerError::Internal { message },
    }
}
