//! A syntax error of RDF/XML, with its place.

use crate::error::LoadOption;
use crate::parse::mends::{Said, Surroundings, said};
use crate::sources::format::Format;
use std::ops::Range;

/// A place between two bytes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Position {
    pub(crate) offset: u64,
    /// Lines before it.
    pub(crate) line: u64,
    /// Characters of its line before it.
    pub(crate) column: u64,
}

impl Position {
    /// The place behind bytes that follow this one.
    pub(crate) fn after(self, bytes: &[u8]) -> Self {
        let is_first = |byte: &&u8| !(0x80..0xC0).contains(*byte);
        let characters = |bytes: &[u8]| bytes.iter().filter(is_first).count() as u64;
        let offset = self.offset + bytes.len() as u64;
        match memchr::memrchr(b'\n', bytes) {
            None => Self {
                offset,
                column: self.column + characters(bytes),
                ..self
            },
            Some(last) => Self {
                offset,
                line: self.line + memchr::memchr_iter(b'\n', bytes).count() as u64,
                column: characters(&bytes[last + 1..]),
            },
        }
    }

    /// So many bytes from here.
    pub(crate) fn place(self, length: u64) -> Place {
        Place {
            start: self,
            length,
        }
    }

    /// A part of a text that begins here.
    pub(crate) fn part(self, text: &str, part: Range<usize>) -> Place {
        let start = self.after(&text.as_bytes()[..part.start]);
        start.place(part.len() as u64)
    }
}

/// A stretch of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    pub(crate) start: Position,
    pub(crate) length: u64,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) place: Place,
    pub(crate) said: Said,
    /// Nobody knows where the text goes on behind it.
    pub(crate) ends_reading: bool,
}

impl Fault {
    pub(super) fn new(place: Place, message: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            place,
            said: Said::new(message, mend),
            ends_reading: false,
        }
    }

    /// One of which nobody knows a mend.
    pub(super) fn plain(place: Place, message: impl Into<String>) -> Self {
        Self {
            place,
            said: Said::plain(message),
            ends_reading: false,
        }
    }

    pub(super) fn of(place: Place, said: Said) -> Self {
        Self {
            place,
            said,
            ends_reading: false,
        }
    }

    pub(super) fn ending_reading(self) -> Self {
        Self {
            ends_reading: true,
            ..self
        }
    }

    pub(super) fn with(mut self, option: LoadOption) -> Self {
        self.said.option = Some(option);
        self
    }

    /// An IRI, as it is written in a tag that begins at a position, of which no parser makes one.
    pub(super) fn of_iri(begin: Position, tag: &str, written: Range<usize>, found: &str) -> Self {
        let from = &tag[written.clone()];
        let said = said(
            Format::RdfXml,
            found,
            Some(Surroundings { before: "", from }),
        );
        let place = match said.shift {
            0 if !from.starts_with(' ') => begin.part(tag, written),
            shift => begin.part(tag, written.start + shift..written.start + shift + 1),
        };
        Self::of(place, Said { shift: 0, ..said })
    }
}
