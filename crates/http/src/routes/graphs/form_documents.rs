//! The documents of a form (`multipart/form-data`), yielded as they come: their heads, and their
//! bytes in pieces.
//!
//! A form has files, whose format follows from their type or their name, and fields `graph` (an
//! IRI) and `default`, which name the graph of the files behind them. Any other field is a file,
//! too, for forms may be written by hand.

use super::address::{BODY_NAME, Target};
use crate::request::documents::{format_of_body, format_of_type};
use crate::request::form_parts::{FormParts, PartHead, Piece};
use crate::request::parameters::checked_iri;
use axum::http::HeaderMap;
use bytes::Bytes;
use orrery_loader::Format;
use orrery_service::errors::ServiceError;
use orrery_sparql::UpdateOptions;
use orrery_term::Term;
use std::path::Path;
use std::sync::Arc;

/// Most files of one request.
const FILES_MAX: usize = 100_000;
/// Most characters of a file's name in messages.
const NAME_CHARACTERS_MAX: usize = 300;
/// Most bytes of a field's value.
const FIELD_BYTES_MAX: usize = 8 << 10;

/// The head of a document: name, format and target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DocumentHead {
    /// The document's name in messages.
    pub(super) name: Arc<str>,
    pub(super) format: Format,
    /// The document's target; `None`: that of the request.
    pub(super) target: Option<Target>,
}

impl DocumentHead {
    /// The head of a body that is one document.
    pub(super) fn of_body(headers: &HeaderMap) -> Result<Self, ServiceError> {
        Ok(Self {
            name: BODY_NAME.into(),
            format: format_of_body(headers)?,
            target: None,
        })
    }

    /// Refuses a document for a graph that the request may not change, before it is read.
    pub(super) fn require(&self, options: &UpdateOptions) -> Result<(), ServiceError> {
        if let Some(Target::Graph(name)) = &self.target {
            let name = name.as_ref().map(|iri| Term::iri(iri.clone()));
            options.writes.require(name.as_ref())?;
        }
        Ok(())
    }

    /// The target of the document in a request with this target.
    pub(super) fn target<'t>(&'t self, of_request: &'t Target) -> &'t Target {
        self.target.as_ref().unwrap_or(of_request)
    }
}

/// A piece of a form.
#[derive(Debug)]
pub(super) enum Came {
    /// A document begins.
    Head(DocumentHead),
    /// Bytes of the document.
    Bytes(Bytes),
}

/// An incremental parser of the documents of a form.
#[derive(Debug)]
pub(super) struct FormDocuments {
    parts: FormParts,
    place: Part,
    /// The target of the files that follow.
    target: Option<Target>,
    files: usize,
}

/// The kind of the part that is being read.
#[derive(Debug)]
enum Part {
    File,
    /// The name of a graph, so far.
    Graph(Vec<u8>),
    /// A part whose content is ignored.
    Mark,
}

impl FormDocuments {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, ServiceError> {
        Ok(Self {
            parts: FormParts::of(headers)?,
            place: Part::Mark,
            target: None,
            files: 0,
        })
    }

    /// Adds bytes of the body.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.parts.push(chunk);
    }

    /// The next piece; `None` if more has to come first.
    pub(super) fn next(&mut self) -> Result<Option<Came>, ServiceError> {
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
                    return Err(ServiceError::bad_request(
                        "the field `graph` of the form is too long for an IRI",
                    ));
                }
                Part::Mark => {}
            }
        }
        Ok(None)
    }

    /// Checks, at the end of the body, that the form is complete and has a file.
    pub(super) fn finish(&mut self) -> Result<(), ServiceError> {
        self.parts.finish()?;
        self.end_part()?;
        match self.files {
            0 => Err(ServiceError::bad_request(
                "the form has no file; send each as a part with a filename or a Content-Type",
            )),
            _ => Ok(()),
        }
    }

    fn begin_part(&mut self, head: &PartHead) -> Result<Option<DocumentHead>, ServiceError> {
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
            return Err(ServiceError::bad_request(format!(
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
            ServiceError::unsupported_media_type(format!(
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

    /// Ends the part: a field `graph` sets the target.
    fn end_part(&mut self) -> Result<(), ServiceError> {
        if let Part::Graph(value) = std::mem::replace(&mut self.place, Part::Mark) {
            let value = String::from_utf8(value).map_err(|_| {
                ServiceError::bad_request("the field `graph` of the form is not UTF-8")
            })?;
            self.target = Some(Target::Graph(Some(checked_iri("graph", value)?)));
        }
        Ok(())
    }
}
