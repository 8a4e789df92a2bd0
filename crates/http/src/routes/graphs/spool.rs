//! Spools bodies of POST to a temporary file as they come: large ones, and those without a length.
//!
//! ```text
//! chunks -> one document: the file is the body, still compressed
//!        -> a form: the bytes of its files, one behind the other; documents are ranges of the file
//! ```
//!
//! In memory are a chunk, and the heads of the documents, which are counted.

use super::form_documents::{Came, DocumentHead, FormDocuments};
use crate::request::body::{BodyMemory, Coding, UploadPace, client_times, unreadable};
use crate::request::media_type::is_multipart;
use crate::state::HttpState;
use axum::body::Body;
use axum::http::{header, request::Parts};
use futures::StreamExt;
use orrery_service::errors::{ServiceError, told_to_the_log};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::time::Instant;
use tempfile::NamedTempFile;

/// First bytes of a body, which identify its coding.
const FIRST_BYTES: usize = 4;
/// Memory of a document's head, beside its name.
const HEAD_BYTES: usize = 512;

/// The size that a body announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Announced {
    /// It fits into memory, or it has to.
    Fits,
    Unknown,
    Large,
}

impl Announced {
    /// Compares a request's `Content-Length` with the room in memory.
    pub(super) fn of(parts: &Parts, limit_bytes: usize) -> Self {
        let length = parts.headers.get(header::CONTENT_LENGTH);
        let length: Option<usize> = length.and_then(|length| length.to_str().ok()?.parse().ok());
        match length {
            None => Self::Unknown,
            Some(length) if length > limit_bytes => Self::Large,
            Some(_) => Self::Fits,
        }
    }
}

/// A body on the disk; dropping it removes the file.
#[derive(Debug)]
pub(super) struct Spool {
    file: NamedTempFile,
    /// Bytes of the body, with what stands between its documents.
    bytes: u64,
    coding: Coding,
    documents: Vec<SpooledDocument>,
    /// Memory reserved for the heads.
    _memory: BodyMemory,
}

/// A document, as a range of a spool's file.
#[derive(Debug)]
pub(super) struct SpooledDocument {
    pub(super) head: DocumentHead,
    pub(super) range: Range<u64>,
}

/// A body that is being written to the disk.
struct Spooling {
    file: NamedTempFile,
    written: u64,
    documents: Vec<SpooledDocument>,
    /// None where the body is one document.
    form: Option<FormDocuments>,
    memory: BodyMemory,
    heads_bytes: usize,
}

impl Spool {
    /// Writes a body to the disk as it comes; it may be slow but not stall.
    ///
    /// `look` gets the bytes and documents so far, before any have come and whenever some have, and
    /// may refuse more.
    pub(super) async fn take(
        state: &HttpState,
        parts: &Parts,
        body: Body,
        mut look: impl FnMut(u64, &[SpooledDocument]) -> Result<(), ServiceError> + Send,
    ) -> Result<Self, ServiceError> {
        let coding = Coding::of(&parts.headers)?;
        let mut spooling = Spooling::begin(state, parts, coding)?;
        look(0, &spooling.documents)?;
        let mut chunks = body.into_data_stream();
        let times = client_times(parts);
        let stall_max = times.body_max;
        let mut pace = UploadPace::new(times);
        let mut first = Vec::with_capacity(FIRST_BYTES);
        let mut bytes = 0;
        loop {
            let asked = Instant::now();
            let chunk = tokio::time::timeout(stall_max, chunks.next()).await;
            let chunk = chunk.map_err(|_elapsed| ServiceError::BodyTooSlow { limit: stall_max })?;
            let Some(chunk) = chunk else { break };
            let chunk = chunk.map_err(|error| unreadable(&error))?;
            pace.came(chunk.len(), asked.elapsed())?;
            first.extend(chunk.iter().take(FIRST_BYTES - first.len()));
            bytes += chunk.len() as u64;
            spooling.push(&chunk, |documents| look(bytes, documents))?;
            look(bytes, &spooling.documents)?;
        }
        if !coding.fits(&first) {
            return Err(coding.mismatch());
        }
        spooling.end(bytes, coding)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(super) fn coding(&self) -> Coding {
        self.coding
    }

    pub(super) fn documents(&self) -> &[SpooledDocument] {
        &self.documents
    }

    /// Reads a document from its beginning, still compressed.
    pub(super) fn reader(&self, document: usize) -> Result<io::Take<File>, ServiceError> {
        let range = self.documents.get(document).map(|it| it.range.clone());
        let range = range.unwrap_or_default();
        // Opened anew: each reader has a position of its own.
        let mut file = self.file.reopen().map_err(not_kept)?;
        file.seek(SeekFrom::Start(range.start)).map_err(not_kept)?;
        Ok(file.take(range.end.saturating_sub(range.start)))
    }
}

impl Spooling {
    fn begin(state: &HttpState, parts: &Parts, coding: Coding) -> Result<Self, ServiceError> {
        let (documents, form) = match is_multipart(&parts.headers) {
            true => {
                coding.refuse_form()?;
                (Vec::new(), Some(FormDocuments::of(&parts.headers)?))
            }
            false => {
                let head = DocumentHead::of_body(&parts.headers)?;
                (vec![SpooledDocument { head, range: 0..0 }], None)
            }
        };
        let directory = &state.engine.options().temp_dir;
        let file = tempfile::Builder::new()
            .prefix("load-body-")
            .tempfile_in(directory);
        Ok(Self {
            file: file.map_err(not_kept)?,
            written: 0,
            documents,
            form,
            memory: BodyMemory::new(&state.engine),
            heads_bytes: 0,
        })
    }

    /// Writes what has come. `look` sees the head of each document before its bytes are taken.
    fn push(
        &mut self,
        chunk: &[u8],
        mut look: impl FnMut(&[SpooledDocument]) -> Result<(), ServiceError>,
    ) -> Result<(), ServiceError> {
        let Some(mut form) = self.form.take() else {
            return self.write(chunk);
        };
        form.push(chunk);
        while let Some(came) = form.next()? {
            match came {
                Came::Bytes(bytes) => self.write(&bytes)?,
                Came::Head(head) => {
                    self.heads_bytes += HEAD_BYTES + head.name.len();
                    self.memory.resize(self.heads_bytes)?;
                    self.documents.push(SpooledDocument {
                        head,
                        range: self.written..self.written,
                    });
                    look(&self.documents)?;
                }
            }
        }
        self.form = Some(form);
        Ok(())
    }

    /// Writes some bytes of the last document.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ServiceError> {
        self.file.write_all(bytes).map_err(not_kept)?;
        self.written += bytes.len() as u64;
        if let Some(document) = self.documents.last_mut() {
            document.range.end = self.written;
        }
        Ok(())
    }

    fn end(mut self, bytes: u64, coding: Coding) -> Result<Spool, ServiceError> {
        if let Some(form) = &mut self.form {
            form.finish()?;
        }
        self.file.flush().map_err(not_kept)?;
        Ok(Spool {
            file: self.file,
            bytes,
            coding,
            documents: self.documents,
            _memory: self.memory,
        })
    }
}

fn not_kept(error: io::Error) -> ServiceError {
    let message = told_to_the_log("the body cannot be kept on the server's disk", &error);
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ServiceError::OutOfMemory { message },
        _ => ServiceError::Internal { message },
    }
}
