//! The documents of a large request, in temporary files: one as the body has it, several of a multipart body.
//!
//! They go to the disk as they come, at the pace that is asked of clients; nothing of them stands in memory but a chunk.

use super::address::BODY_NAME;
use crate::body::{Coding, UploadPace, client_times, unreadable};
use crate::documents::{format_of_body, format_of_type};
use crate::errors::{ServerError, told_to_the_log};
use crate::media_type::is_multipart;
use crate::state::ServerState;
use axum::body::Body;
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::request::Parts;
use bytes::Bytes;
use futures::StreamExt;
use orrery_loader::Format;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tempfile::{NamedTempFile, TempPath};

/// First bytes of a body, by which its coding is known.
const FIRST_BYTES: usize = 4;
/// Documents of one request.
const DOCUMENTS_MAX: usize = 10_000;

/// A document in a file that goes with it, and what it is called in messages.
pub(super) struct Spooled {
    pub(super) path: TempPath,
    pub(super) bytes: u64,
    pub(super) format: Format,
    pub(super) name: String,
}

/// A document that is coming.
struct Spooling {
    file: NamedTempFile,
    format: Format,
    name: String,
}

impl Spooling {
    fn new(state: &ServerState, format: Format, name: String) -> Result<Self, ServerError> {
        let file = tempfile::Builder::new()
            .prefix("load-body-")
            // The loader knows the format of each by it.
            .suffix(&format!(".{}", format.short_name()))
            .tempfile_in(&state.engine.options().temp_dir)
            .map_err(|error| failed(&error))?;
        Ok(Self { file, format, name })
    }

    fn write(&mut self, chunk: &[u8]) -> Result<(), ServerError> {
        self.file.write_all(chunk).map_err(|error| failed(&error))
    }

    /// All of it came. The file is closed: there may be more of them than a process may have open.
    fn end(mut self) -> Result<Spooled, ServerError> {
        let metadata = self
            .file
            .flush()
            .and_then(|()| self.file.as_file().metadata());
        let metadata = metadata.map_err(|error| failed(&error))?;
        Ok(Spooled {
            path: self.file.into_temp_path(),
            bytes: metadata.len(),
            format: self.format,
            name: self.name,
        })
    }
}

fn failed(error: &std::io::Error) -> ServerError {
    let message = told_to_the_log("the body cannot be kept on the server's disk", error);
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ServerError::OutOfMemory { message },
        _ => ServerError::Internal { message },
    }
}

/// Takes the documents of a body.
pub(super) async fn spool(
    state: &Arc<ServerState>,
    parts: &Parts,
    body: Body,
) -> Result<Vec<Spooled>, ServerError> {
    if is_multipart(&parts.headers) {
        return spool_parts(state, parts, body).await;
    }
    let coding = Coding::of(&parts.headers)?;
    let format = format_of_body(&parts.headers)?;
    let mut document = Spooling::new(state, format, BODY_NAME.to_owned())?;
    let mut chunks = body.into_data_stream();
    let times = client_times(parts);
    let stall_max = times.body_max;
    let mut pace = UploadPace::new(times);
    let mut first = Vec::with_capacity(FIRST_BYTES);
    loop {
        let asked = Instant::now();
        let chunk = tokio::time::timeout(stall_max, chunks.next()).await;
        let chunk = chunk.map_err(|_elapsed| ServerError::BodyTooSlow { limit: stall_max })?;
        let Some(chunk) = chunk else { break };
        let chunk = chunk.map_err(|error| unreadable(&error))?;
        pace.came(chunk.len(), asked.elapsed())?;
        first.extend(chunk.iter().take(FIRST_BYTES - first.len()));
        document.write(&chunk)?;
    }
    match coding.fits(&first) {
        true => Ok(vec![document.end()?]),
        false => Err(coding.mismatch()),
    }
}

/// Takes the parts of a multipart body; each tells its format by its type or its name.
async fn spool_parts(
    state: &Arc<ServerState>,
    parts: &Parts,
    body: Body,
) -> Result<Vec<Spooled>, ServerError> {
    if Coding::of(&parts.headers)? != Coding::Identity {
        return Err(ServerError::bad_request(
            "a multipart body is taken as it is; compress the files in it instead",
        ));
    }
    let bad = |error: &dyn std::fmt::Display| {
        ServerError::bad_request(format!("the multipart body is broken: {error}"))
    };
    let mut request = Request::new(body);
    *request.headers_mut() = parts.headers.clone();
    // Says that the extractor has no limit of its own.
    *request.extensions_mut() = parts.extensions.clone();
    let multipart = Multipart::from_request(request, &()).await;
    let mut multipart = multipart.map_err(|error| bad(&error))?;
    let times = client_times(parts);
    let stall_max = times.body_max;
    let mut pace = UploadPace::new(times);
    let too_slow = || ServerError::BodyTooSlow { limit: stall_max };
    let mut documents = Vec::new();
    loop {
        let field = tokio::time::timeout(stall_max, multipart.next_field()).await;
        let field = field.map_err(|_elapsed| too_slow())?;
        let Some(mut field) = field.map_err(|error| bad(&error))? else {
            return Ok(documents);
        };
        if documents.len() == DOCUMENTS_MAX {
            return Err(ServerError::bad_request(format!(
                "one request takes {DOCUMENTS_MAX} documents; send the rest in another"
            )));
        }
        let name = field.file_name().or(field.name()).unwrap_or("a part");
        let name = name.to_owned();
        let format = format_of_part(&name, field.content_type())?;
        let mut document = Spooling::new(state, format, name)?;
        loop {
            let asked = Instant::now();
            let chunk = tokio::time::timeout(stall_max, field.chunk()).await;
            let chunk: Option<Bytes> = chunk
                .map_err(|_elapsed| too_slow())?
                .map_err(|error| bad(&error))?;
            let Some(chunk) = chunk else { break };
            pace.came(chunk.len(), asked.elapsed())?;
            document.write(&chunk)?;
        }
        documents.push(document.end()?);
    }
}

/// What a part of a multipart body is in, by its type or its name.
pub(super) fn format_of_part(
    name: &str,
    content_type: Option<&str>,
) -> Result<Format, ServerError> {
    let by_type = content_type.and_then(format_of_type);
    let format = by_type.or_else(|| Format::from_path(Path::new(name)));
    format.ok_or_else(|| {
        ServerError::unsupported_media_type(format!(
            "neither the Content-Type nor the name of `{name}` tells its format"
        ))
    })
}
