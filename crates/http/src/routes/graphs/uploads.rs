//! Reads the documents of a request: its body, or the files of a form (`multipart/form-data`).
//!
//! ```text
//! body -> FormDocuments (`form_documents`): heads and bytes -> memory (UploadedFile), or a spool
//!      -> read_all: statements, each where its document says, else where the request says
//! ```

use super::address::{BODY_NAME, Target};
use super::form_documents::{Came, DocumentHead, FormDocuments};
use super::spool::Spool;
use crate::request::body::{BodyMemory, Coding, HeldBody};
use crate::request::documents::{self, Placement, has_graphs};
use crate::request::media_type::is_multipart;
use axum::http::request::Parts;
use bytes::Bytes;
use orrery_loader::{DocumentBounds, DocumentError, brotli_text, read_document};
use orrery_service::errors::ServiceError;
use orrery_sparql::{Statements, UpdateOptions};
use orrery_storage::{ByteCount, reason};
use std::io::{Cursor, Read};
use std::sync::{Arc, Weak};

/// Copies of a document while it is made into statements.
const COPIES_OF_DOCUMENT: usize = 2;

/// A document of a request.
#[derive(Debug)]
pub(super) struct UploadedFile {
    pub(super) head: DocumentHead,
    pub(super) content: Content,
    pub(super) coding: Coding,
}

/// The bytes of a document: in memory, or in a spool.
#[derive(Debug)]
pub(super) enum Content {
    Memory(Bytes),
    /// The document of a spool with this number.
    Disk(Arc<Spool>, usize),
}

impl UploadedFile {
    /// Opens the document for its parser, which decompresses all codings but brotli.
    fn open(&self) -> Result<Box<dyn Read + Send>, ServiceError> {
        let input: Box<dyn Read + Send> = match &self.content {
            Content::Memory(bytes) => Box::new(Cursor::new(bytes.clone())),
            Content::Disk(spool, number) => Box::new(spool.reader(*number)?),
        };
        match self.coding {
            Coding::Brotli => match brotli_text(input) {
                Ok(text) => Ok(Box::new(text)),
                Err(_) => Err(self.coding.mismatch()),
            },
            Coding::Identity | Coding::Gzip | Coding::Zstd => Ok(input),
        }
    }
}

/// The documents of a body, still compressed.
pub(super) fn in_memory(
    parts: &Parts,
    body: HeldBody,
    options: &UpdateOptions,
) -> Result<(Vec<UploadedFile>, BodyMemory), ServiceError> {
    let HeldBody {
        bytes,
        coding,
        mut memory,
    } = body;
    if !is_multipart(&parts.headers) {
        memory.resize(bytes.len() + coding.window_bytes(&bytes))?;
        let file = UploadedFile {
            head: DocumentHead::of_body(&parts.headers)?,
            content: Content::Memory(bytes),
            coding,
        };
        return Ok((vec![file], memory));
    }
    coding.refuse_form()?;
    // The parts are copies.
    memory.resize(bytes.len() * 2)?;
    let mut form = FormDocuments::of(&parts.headers)?;
    form.push(&bytes);
    let mut files: Vec<UploadedFile> = Vec::new();
    while let Some(came) = form.next()? {
        match came {
            Came::Head(head) => {
                head.require(options)?;
                files.push(UploadedFile {
                    head,
                    content: Content::Memory(Bytes::new()),
                    coding,
                });
            }
            Came::Bytes(bytes) => {
                // The whole body is here, so the bytes of a part are one piece.
                if let Some(file) = files.last_mut() {
                    file.content = Content::Memory(bytes);
                }
            }
        }
    }
    form.finish()?;
    Ok((files, memory))
}

/// Memory limits for reading documents.
pub(super) struct ReadBounds {
    /// Most bytes that reading one document may take.
    pub(super) document_bytes: usize,
    /// Most bytes that the statements of all documents may take together.
    pub(super) statements_bytes: usize,
}

/// Reads the statements of documents, each with its target and base IRI; also returns warnings.
pub(super) fn read_all(
    files: Vec<(UploadedFile, Target, Option<String>)>,
    bounds: &ReadBounds,
    mut memory: BodyMemory,
    waiting: &Weak<()>,
) -> Result<(Statements, Vec<String>, BodyMemory), ServiceError> {
    let (mut statements, mut warnings) = (Statements::new(), Vec::new());
    // The bodies, and the statements made of some of them.
    let in_memory = |file: &UploadedFile| match &file.content {
        Content::Memory(bytes) => bytes.len() + file.coding.window_bytes(bytes),
        Content::Disk(..) => 0,
    };
    let bodies_bytes: usize = files.iter().map(|(file, ..)| in_memory(file)).sum();
    let mut held_bytes = bodies_bytes;
    for (number, (file, target, base_iri)) in files.into_iter().enumerate() {
        let mut refused = None;
        let mut hold = |bytes: usize| {
            if held_bytes - bodies_bytes + bytes > bounds.statements_bytes {
                return false;
            }
            refused = memory.resize(held_bytes + bytes).err();
            refused.is_none()
        };
        let document_bounds = DocumentBounds {
            memory_bytes: bounds.document_bytes,
            hold: &mut hold,
            waiting: Some(Weak::clone(waiting)),
        };
        let UploadedFile { head, .. } = &file;
        let (input, base_iri) = (file.open()?, base_iri.as_deref());
        let document = read_document(input, &head.name, head.format, base_iri, document_bounds);
        let document = document.map_err(|error| match (error, refused) {
            (DocumentError::TooLarge { .. }, Some(refused)) => refused,
            (DocumentError::TooLarge { limit_bytes }, None) => too_large(limit_bytes),
            // A body needs no name: its request identifies it.
            (DocumentError::Input(error), _) => {
                ServiceError::bad_request(format!("{}: {}", head.name, reason(&error)))
            }
            (other, _) => ServiceError::bad_request(other.to_string()),
        })?;
        memory.resize(held_bytes + document.memory_bytes() * COPIES_OF_DOCUMENT)?;
        warnings.extend(document.warning().map(str::to_owned));
        let placement = match &target {
            Target::Store => Placement::AsWritten,
            Target::Graph(name) => Placement::Graph(name.as_deref()),
        };
        let scope = format!("{number}:");
        let is_whole = documents::add_placed(&document, &scope, placement, &mut statements)
            .map_err(|error| ServiceError::bad_request(error.to_string()))?;
        if !is_whole {
            return Err(has_other_graphs(&head.name));
        }
        // Reading a document takes a buffer of each kind, which is freed with it; its statements
        // stay.
        held_bytes = bodies_bytes + statements.memory_bytes();
    }
    memory.resize(held_bytes)?;
    Ok((statements, warnings, memory))
}

fn too_large(limit_bytes: usize) -> ServiceError {
    ServiceError::OutOfMemory {
        message: format!(
            "the document of one request may take {} of memory, and one statement a part of that; send less at a \
             time, or POST it as N-Triples or N-Quads, which are loaded in bulk",
            ByteCount(limit_bytes as u64)
        ),
    }
}

fn has_other_graphs(name: &str) -> ServiceError {
    let what = match name {
        BODY_NAME => "the document has",
        name => &format!("{name} has"),
    };
    ServiceError::bad_request(format!(
        "{what} named graphs of its own; send N-Quads or TriG to /graphs without a graph"
    ))
}

/// Whether a document goes into the graphs that it names, in a request with this target.
pub(super) fn is_of_quads(head: &DocumentHead, of_request: &Target) -> bool {
    *head.target(of_request) == Target::Store && has_graphs(head.format)
}
