//! The window of text that a parser read last, from which an error gets its place, line and fix.

use crate::error::{SyntaxError, clipped};
use crate::excerpt::excerpt_of;
use crate::parse::held::InParts;
use crate::parse::mends::{Said, Surroundings, place_in_json, said};
use crate::parse::rdf_xml::{Fault, Position};
use crate::parse::xml_entities::Entities;
use crate::sources::format::Format;
use memchr::{memchr, memchr_iter, memrchr};
use orrery_term::language::TagFinder;
use orrery_term::nesting::Nesting;
use oxrdf::Quad;
use oxrdfio::RdfSyntaxError;
use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;

/// Text kept behind the reading position, to quote from it. The parsers read ahead a few KiB.
pub(crate) const WINDOW_BYTES: usize = 128 << 10;

/// What a parser found wrong.
#[derive(Debug)]
pub(crate) struct Found {
    /// In the parser's words.
    message: String,
    /// Where it begins, and the offset of its end, if the parser tells.
    place: Option<(Position, u64)>,
    /// What is said of it, if that is known.
    said: Option<Said>,
}

impl Found {
    /// What is told in a parser's own words.
    pub(crate) fn said_by_parser(message: String, place: Option<(Position, u64)>) -> Self {
        Self {
            message,
            place,
            said: None,
        }
    }
}

impl From<&RdfSyntaxError> for Found {
    fn from(error: &RdfSyntaxError) -> Self {
        let mut message = error.to_string();
        // The position is shown in front already.
        if message.starts_with("Parser error")
            && let Some((_, rest)) = message.split_once(": ")
        {
            message = rest.to_owned();
        }
        let place = error.location().map(|place| {
            let start = Position {
                offset: place.start.offset,
                line: place.start.line,
                column: place.start.column,
            };
            (start, place.end.offset)
        });
        Self::said_by_parser(message, place)
    }
}

impl From<Fault> for Found {
    fn from(fault: Fault) -> Self {
        let place = fault.place;
        Self {
            message: fault.said.message.clone(),
            place: Some((place.start, place.start.offset + place.length)),
            said: Some(fault.said),
        }
    }
}

/// The last stretch of the text that the parser was given.
pub(crate) struct Window {
    pub(crate) bytes: Vec<u8>,
    /// Bytes of the text up to the end of `bytes`.
    pub(crate) end: u64,
    /// Whole lines handed over before the last one.
    pub(crate) lines: u64,
    pub(crate) last_line: Vec<u8>,
    /// How deep it is nested.
    pub(crate) nesting: Nesting,
    /// The entities of XML.
    pub(crate) entities: Option<Entities>,
    /// How much was given when the parser had made statements of all but its end, and in which
    /// line.
    pub(crate) statement_start: u64,
    pub(crate) statement_line: u64,
    /// Whether too much was asked for since.
    pub(crate) is_exceeded: bool,
    /// Looks for language tags, for the parsers put them into lower case.
    pub(crate) tags: TagFinder,
}

impl Window {
    /// What the parser was given: text, and what it wrote for the entities in it.
    fn given_bytes(&self) -> u64 {
        let written = self.entities.as_ref().map(Entities::written_bytes);
        self.end + written.unwrap_or(0)
    }

    /// Fails where the parser must not be given these bytes.
    fn push(&mut self, bytes: &[u8], by_line: bool) -> io::Result<()> {
        self.end += bytes.len() as u64;
        self.tags.push(bytes);
        self.nesting.push(bytes)?;
        if let Some(entities) = &mut self.entities {
            entities.push(bytes)?;
        }
        if by_line {
            if self.last_line.ends_with(b"\n") {
                self.lines += 1;
                self.last_line.clear();
            }
            if self.last_line.len() < WINDOW_BYTES {
                self.last_line.extend_from_slice(bytes);
            }
        } else {
            self.lines += memchr_iter(b'\n', bytes).count() as u64;
        }
        self.bytes.extend_from_slice(bytes);
        // Cut rarely, so that each byte is moved about once.
        if self.bytes.len() > 2 * WINDOW_BYTES {
            let excess = self.bytes.len() - WINDOW_BYTES;
            self.bytes.drain(..excess);
        }
        Ok(())
    }

    /// The parser gave a statement or an error: what it holds is of the next one.
    pub(crate) fn end_statement(&mut self) {
        self.statement_start = self.given_bytes();
        let is_line_ended = self.last_line.ends_with(b"\n");
        self.statement_line = self.lines + 1 + u64::from(is_line_ended);
    }

    pub(crate) fn describe(&self, name: &str, format: Format, found: &Found) -> SyntaxError {
        let Some((place, end_offset)) = found.place else {
            return self.describe_json(name, &found.message);
        };
        let said_of = |surroundings| match &found.said {
            Some(said) => said.clone(),
            None => said(format, &found.message, surroundings),
        };
        let (line, column) = (place.line + 1, place.column + 1);
        let Some(start) = self.within(place.offset) else {
            // A text that is not closed begins further back than anything that is still here.
            let said = said_of(None);
            return SyntaxError {
                line: Some(line),
                column: Some(column),
                mend: said.mend,
                option: said.option,
                ..SyntaxError::new(name, said.message)
            };
        };
        let end = self.within(end_offset).unwrap_or(start);
        let said = said_of(Some(Surroundings::of(&self.bytes, start)));
        let (place, place_end) = match said.shift {
            0 => (start, end),
            shift => (start + shift, start + shift + 1),
        };
        let moved = self.bytes.get(start..place).unwrap_or_default();
        // What moved it on within a line stands on that line.
        let excerpt = excerpt_of(&self.bytes, place, place_end);
        SyntaxError {
            line: Some(line),
            column: Some(column + characters(moved)),
            text: clipped(self.bytes[start..end.max(start)].trim_ascii()),
            mend: said.mend,
            option: said.option,
            excerpt,
            ..SyntaxError::new(name, said.message)
        }
    }

    /// What is no JSON-LD, though it is JSON: its parser finds that once it has read what is
    /// around, and tells no place. There is one where the text that is still here has one only that
    /// it can mean; else the last line that the parser was given is told.
    fn describe_json(&self, name: &str, found: &str) -> SyntaxError {
        let said = said(Format::JsonLd, found, None);
        let error = SyntaxError {
            mend: said.mend,
            option: said.option,
            ..SyntaxError::new(name, said.message)
        };
        let is_whole = self.bytes.len() as u64 == self.end;
        let text = std::str::from_utf8(&self.bytes).ok().filter(|_| is_whole);
        let Some(place) = text.and_then(|text| place_in_json(found, text)) else {
            return SyntaxError {
                line: Some(self.lines + 1),
                text: clipped(self.last_line.trim_ascii()),
                ..error
            };
        };
        let before = &self.bytes[..place.start];
        let line_start = memrchr(b'\n', before).map_or(0, |at| at + 1);
        SyntaxError {
            line: Some(1 + memchr_iter(b'\n', before).count() as u64),
            column: Some(1 + characters(&before[line_start..])),
            text: clipped(&self.bytes[place.clone()]),
            excerpt: excerpt_of(&self.bytes, place.start, place.end),
            ..error
        }
    }

    /// The error of a quad that the parser accepted; the parser has read on a little meanwhile.
    pub(crate) fn describe_quad(
        &self,
        name: &str,
        quad: &Quad,
        message: Cow<'static, str>,
    ) -> SyntaxError {
        SyntaxError {
            text: clipped(quad.subject.to_string().as_bytes()),
            ..SyntaxError::new(name, message)
        }
    }

    /// Where an offset of the whole text is in `bytes`, as far as it is still here.
    fn within(&self, offset: u64) -> Option<usize> {
        let first = self.end - self.bytes.len() as u64;
        let at = usize::try_from(offset.checked_sub(first)?).ok()?;
        Some(at.min(self.bytes.len()))
    }
}

fn characters(bytes: &[u8]) -> u64 {
    String::from_utf8_lossy(bytes).chars().count() as u64
}

/// Notes in the window what the parser is given; at most one line at a time if `by_line`.
pub(crate) struct WindowReader {
    pub(crate) input: Box<dyn Read + Send>,
    pub(crate) window: Rc<RefCell<Window>>,
    pub(crate) pending: Vec<u8>,
    pub(crate) pending_start: usize,
    pub(crate) by_line: bool,
    /// What the parser may be given without making a statement of it.
    pub(crate) statement_bytes_max: u64,
}

impl InParts for WindowReader {
    fn end_part(&self) {
        self.window.borrow_mut().end_statement();
    }
}

impl Read for WindowReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        {
            let mut window = self.window.borrow_mut();
            if window.given_bytes() - window.statement_start > self.statement_bytes_max {
                window.is_exceeded = true;
                return Err(io::Error::other("a statement is too long"));
            }
        }
        if !self.by_line {
            let length = self.input.read(buffer)?;
            self.window.borrow_mut().push(&buffer[..length], false)?;
            return Ok(length);
        }
        if self.pending_start == self.pending.len() {
            self.pending.resize(WINDOW_BYTES, 0);
            let length = self.input.read(&mut self.pending)?;
            self.pending.truncate(length);
            self.pending_start = 0;
        }
        let pending = &self.pending[self.pending_start..];
        let line = memchr(b'\n', pending).map_or(pending.len(), |at| at + 1);
        let length = line.min(buffer.len());
        buffer[..length].copy_from_slice(&pending[..length]);
        self.pending_start += length;
        self.window.borrow_mut().push(&buffer[..length], true)?;
        Ok(length)
    }
}
