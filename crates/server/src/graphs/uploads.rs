//! The documents of a request: its body, or the files of a form (`multipart/form-data`).
//!
//! ```text
//! body -> FormDocuments: heads and bytes, as they come -> memory (UploadedFile), or a spool
//!      -> read_all: statements, each where its document says, else where the request says
//! ```
//!
//! What is in a form: files, whose format is told by their type or their name, and fields `graph` (an IRI) and `default`, which say where the files behind them go.
//! Any other field is a file, too, for forms may be written by hand.

use super::address::{BODY_NAME, Target};
use super::spool::Spool;
use crate::body::{BodyMemory, Coding, HeldBody};
use crate::documents::{self, Placement, format_of_body, format_of_type, has_graphs};
use crate::errors::ServerError;
use crate::form_parts::{FormParts, PartHead, Piece};
use crate::media_type::is_multipart;
use crate::parameters::checked_iri;
use axum::http::{HeaderMap, request::Parts};
use bytes::Bytes;
use orrery_loader::{DocumentBounds, DocumentError, Format, brotli_text, read_document};
use orrery_sparql::{Statements, UpdateOptions};
use orrery_storage::{ByteCount, reason};
use orrery_term::Term;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::Arc;

/// A document is there twice while it is made into statements.
const COPIES_OF_DOCUMENT: usize = 2;
/// Files of one request.
const FILES_MAX: usize = 100_000;
/// What is kept of a file's name, for messages.
const NAME_CHARACTERS_MAX: usize = 300;
/// The value of a field.
const FIELD_BYTES_MAX: usize = 8 << 10;

/// What a document says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DocumentHead {
    /// What it is called in messages.
    pub(super) name: Arc<str>,
    pub(super) format: Format,
    /// Where it goes; `None`: where the request says.
    pub(super) target: Option<Target>,
}

impl DocumentHead {
    /// Of a body that is one document.
    pub(super) fn of_body(headers: &HeaderMap) -> Result<Self, ServerError> {
        Ok(Self {
            name: BODY_NAME.into(),
            format: format_of_body(headers)?,
            target: None,
        })
    }

    /// Refuses a document for a graph that the request may not change, before it is read.
    pub(super) fn require(&self, options: &UpdateOptions) -> Result<(), ServerError> {
        if let Some(Target::Graph(name)) = &self.target {
            let name = name.as_ref().map(|iri| Term::iri(iri.clone()));
            options.writes.require(name.as_ref())?;
        }
        Ok(())
    }

    /// Where it goes, in a request that goes there.
    pub(super) fn target<'t>(&'t self, of_request: &'t Target) -> &'t Target {
        self.target.as_ref().unwrap_or(of_request)
    }
}

/// What comes of a form.
#[derive(Debug)]
pub(super) enum Came {
    /// A document begins.
    Head(DocumentHead),
    /// Some of its bytes.
    Bytes(Bytes),
}

/// The documents of a form.
#[derive(Debug)]
pub(super) struct FormDocuments {
    parts: FormParts,
    place: Part,
    /// Where the files go that follow.
    target: Option<Target>,
    files: usize,
}

/// In which part of a form what comes is.
#[derive(Debug)]
enum Part {
    File,
    /// The name of a graph.
    Graph(Vec<u8>),
    /// What says nothing.
    Mark,
}

impl FormDocuments {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, ServerError> {
        Ok(Self {
            parts: FormParts::of(headers)?,
            place: Part::Mark,
            target: None,
            files: 0,
        })
    }

    /// More of the body has come.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.parts.push(chunk);
    }

    /// What is in it; `None` where more has to come.
    pub(super) fn next(&mut self) -> Result<Option<Came>, ServerError> {
        while let Some(piece) = self.parts.next()? {
            let bytes = match piece {
                Piece::Bytes(bytes) => bytes,
                Piece::Head(head) => {
                    self.end_part()?;
                    match self.begin_part(&head)? {
                        Some(document) => return Ok(Some(Came::Head(document))),
                        None => continue,
                    }
                }
            };
            match &mut self.place {
                Part::File => return Ok(Some(Came::Bytes(bytes))),
                Part::Graph(value) if value.len() + bytes.len() <= FIELD_BYTES_MAX => {
                    value.extend_from_slice(&bytes);
                }
                Part::Graph(_) => {
                    return Err(ServerError::bad_request(
                        "the field `graph` of the form is too long for an IRI",
                    ));
                }
                Part::Mark => {}
            }
        }
        Ok(None)
    }

    /// The body has ended.
    pub(super) fn finish(&mut self) -> Result<(), ServerError> {
        self.parts.finish()?;
        self.end_part()?;
        match self.files {
            0 => Err(ServerError::bad_request(
                "the form has no file; send each as a part with a filename or a Content-Type",
            )),
            _ => Ok(()),
        }
    }

    fn begin_part(&mut self, head: &PartHead) -> Result<Option<DocumentHead>, ServerError> {
        let by_type = head.content_type.as_deref().and_then(format_of_type);
        if head.file_name.is_none() && by_type.is_none() {
            match head.name.as_str() {
                "graph" => {
                    self.place = Part::Graph(Vec::new());
                    return Ok(None);
                }
                "default" => {
                    self.place = Part::Mark;
                    self.target = Some(Target::Graph(None));
                    return Ok(None);
                }
                _ => {}
            }
        }
        self.files += 1;
        if self.files > FILES_MAX {
            return Err(ServerError::bad_request(format!(
                "a form may have {FILES_MAX} files; send the others in another request"
            )));
        }
        let name = head.file_name.as_deref().unwrap_or(match &*head.name {
            "" => "a part",
            name => name,
        });
        let shown = name
            .chars()
            .map(|it| if it.is_control() { '\u{fffd}' } else { it });
        let shown: Arc<str> = shown.take(NAME_CHARACTERS_MAX).collect::<String>().into();
        let format = by_type.or_else(|| Format::from_path(Path::new(name)));
        let format = format.ok_or_else(|| {
            ServerError::unsupported_media_type(format!(
                "neither the Content-Type nor the name of `{shown}` tells its format"
            ))
        })?;
        self.place = Part::File;
        Ok(Some(DocumentHead {
            name: shown,
            format,
            target: self.target.clone(),
        }))
    }

    /// Takes what the part before has said.
    fn end_part(&mut self) -> Result<(), ServerError> {
        if let Part::Graph(value) = std::mem::replace(&mut self.place, Part::Mark) {
            let value = String::from_utf8(value).map_err(|_| {
                ServerError::bad_request("the field `graph` of the form is not UTF-8")
            })?;
            self.target = Some(Target::Graph(Some(checked_iri("graph", value)?)));
        }
        Ok(())
    }
}

/// A document of a request.
#[derive(Debug)]
pub(super) struct UploadedFile {
    pub(super) head: DocumentHead,
    pub(super) content: Content,
    pub(super) coding: Coding,
}

/// Where a document is.
#[derive(Debug)]
pub(super) enum Content {
    Memory(Bytes),
    /// One of those of a spool.
    Disk(Arc<Spool>, usize),
}

impl UploadedFile {
    /// What its parser reads, which decompresses all but brotli.
    fn open(&self) -> Result<Box<dyn Read + Send>, ServerError> {
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

/// The documents of a body, as they came.
pub(super) fn in_memory(
    parts: &Parts,
    body: HeldBody,
    options: &UpdateOptions,
) -> Result<(Vec<UploadedFile>, BodyMemory), ServerError> {
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
                // All has come, so its bytes are one piece.
                if let Some(file) = files.last_mut() {
                    file.content = Content::Memory(bytes);
                }
            }
        }
    }
    form.finish()?;
    Ok((files, memory))
}

/// What reading documents may take.
pub(super) struct ReadBounds {
    /// What reading each of them may take.
    pub(super) document_bytes: usize,
    /// What the statements of all may take together.
    pub(super) statements_bytes: usize,
}

/// The statements of some documents, each with where it goes and what its relative IRIs are resolved against; and what the client should know of them.
pub(super) fn read_all(
    files: Vec<(UploadedFile, Target, Option<String>)>,
    bounds: &ReadBounds,
    mut memory: BodyMemory,
) -> Result<(Statements, Vec<String>, BodyMemory), ServerError> {
    let (mut statements, mut warnings) = (Statements::new(), Vec::new());
    // The bodies, and what was made of some of them.
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
        };
        let UploadedFile { head, .. } = &file;
        let (input, base_iri) = (file.open()?, base_iri.as_deref());
        let document = read_document(input, &head.name, head.format, base_iri, document_bounds);
        let document = document.map_err(|error| match (error, refused) {
            (DocumentError::TooLarge { .. }, Some(refused)) => refused,
            (DocumentError::TooLarge { limit_bytes }, None) => too_large(limit_bytes),
            // The body is known by its request.
            (DocumentError::Input(error), _) => {
                ServerError::bad_request(format!("{}: {}", head.name, reason(&error)))
            }
            (other, _) => ServerError::bad_request(other.to_string()),
        })?;
        memory.resize(held_bytes + document.memory_bytes() * COPIES_OF_DOCUMENT)?;
        warnings.extend(document.warning().map(str::to_owned));
        let placement = match &target {
            Target::Store => Placement::AsWritten,
            Target::Graph(name) => Placement::Graph(name.as_deref()),
        };
        let scope = format!("{number}:");
        let is_whole = documents::add_placed(&document, &scope, placement, &mut statements)
            .map_err(|error| ServerError::bad_request(error.to_string()))?;
        if !is_whole {
            return Err(has_other_graphs(&head.name));
        }
        held_bytes += document.memory_bytes();
    }
    memory.resize(held_bytes)?;
    Ok((statements, warnings, memory))
}

fn too_large(limit_bytes: usize) -> ServerError {
    ServerError::OutOfMemory {
        message: format!(
            "the document of one request may take {} of memory, and one statement a part of that; send less at a \
             time, or POST it as N-Triples or N-Quads, which are loaded in bulk",
            ByteCount(limit_bytes as u64)
        ),
    }
}

fn has_other_graphs(name: &str) -> ServerError {
    let what = match name {
        BODY_NAME => "the document has",
        name => &format!("{name} has"),
    };
    ServerError::bad_request(format!(
        "{what} named graphs of its own; send N-Quads or TriG to /graphs without a graph"
    ))
}

/// Whether a document goes into the graphs that it names, in a request that goes there.
pub(super) fn is_of_quads(head: &DocumentHead, of_request: &Target) -> bool {
    *head.target(of_request) == Target::Store && has_graphs(head.format)
}
