//! Turtle, TriG, RDF/XML and JSON-LD: one parser (of the ox* crates) for a whole file.
//!
//! These formats cannot be cut at line ends, so one worker reads one file from its start
//! to its end. Their parsers check everything; terms are taken over as they are, but for XML literals of
//! RDF/XML (`xml_literal`). Positions in error
//! messages are the parser's own where it has any; the XML parser has none, so the text is handed to
//! it line by line and the last line handed over is reported.

use crate::error::{SyntaxError, clipped};
use crate::interner::{Interner, LocalId};
use crate::ntriples::TermSink;
use crate::source::Format;
use crate::xml_literal::with_used_namespaces;
use memchr::memchr;
use orrery_term::{Direction, TRIPLE_DEPTH_MAX};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BaseDirection, GraphName, Literal, NamedOrBlankNode, Quad, Term};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfParseError, RdfParser, RdfSyntaxError};
use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;

/// Text kept behind the reading position, to quote from it. The parsers read ahead a few KiB.
const WINDOW_BYTES: usize = 128 << 10;

/// A parser that reports this many errors without reading on is given up.
const ERRORS_WITHOUT_PROGRESS_MAX: u32 = 100;

/// What to do after each statement or error of a document.
pub(crate) trait DocumentEvents {
    /// Why reading ends early.
    type Error;
    /// After each quad; may seal the interner's batch.
    fn quad_taken(&mut self, interner: &mut Interner) -> Result<(), Self::Error>;
    /// After each syntax error.
    fn syntax_error(&mut self, error: SyntaxError) -> Result<(), Self::Error>;
    /// When the input cannot be read on.
    fn input_error(&mut self, error: io::Error) -> Self::Error;
}

/// Reads a whole document into `interner`.
pub(crate) fn parse_document<E: DocumentEvents>(
    input: Box<dyn Read + Send>,
    name: &str,
    format: Format,
    base_iri: Option<&str>,
    interner: &mut Interner,
    events: &mut E,
) -> Result<(), E::Error> {
    let window = Rc::new(RefCell::new(Window::default()));
    let reader = WindowReader {
        input,
        window: Rc::clone(&window),
        pending: Vec::new(),
        pending_start: 0,
        by_line: matches!(format, Format::RdfXml | Format::JsonLd),
    };
    let mut parser = RdfParser::from_format(rdf_format(format));
    if let Some(base_iri) = base_iri {
        parser = parser
            .with_base_iri(base_iri)
            .map_err(|error| events.input_error(io::Error::other(error.to_string())))?;
    }
    let mut errors_without_progress = 0;
    let mut last_end = 0;
    for quad in parser.for_reader(reader) {
        match quad {
            Ok(mut quad) => {
                errors_without_progress = 0;
                if format == Format::RdfXml {
                    trim_namespaces(&mut quad.object);
                }
                match take(&quad, interner) {
                    Ok(()) => events.quad_taken(interner)?,
                    Err(message) => {
                        interner.note_wrong_statement();
                        events.syntax_error(window.borrow().describe_quad(name, &quad, message))?;
                    }
                }
            }
            Err(RdfParseError::Io(error)) => return Err(events.input_error(error)),
            Err(RdfParseError::Syntax(error)) => {
                let end = window.borrow().end;
                if end > last_end {
                    errors_without_progress = 0;
                }
                last_end = end;
                errors_without_progress += 1;
                events.syntax_error(window.borrow().describe(name, &error))?;
                if errors_without_progress > ERRORS_WITHOUT_PROGRESS_MAX {
                    break;
                }
            }
        }
    }
    Ok(())
}

fn rdf_format(format: Format) -> RdfFormat {
    match format {
        Format::NTriples => RdfFormat::NTriples,
        Format::NQuads => RdfFormat::NQuads,
        Format::Turtle => RdfFormat::Turtle,
        Format::TriG => RdfFormat::TriG,
        Format::RdfXml => RdfFormat::RdfXml,
        Format::JsonLd => RdfFormat::JsonLd {
            profile: JsonLdProfileSet::empty(),
        },
    }
}

/// Leaves out what an XML literal declares and does not use.
fn trim_namespaces(object: &mut Term) {
    let mut object = object;
    while let Term::Triple(triple) = object {
        object = &mut triple.object;
    }
    if let Term::Literal(literal) = object
        && literal.datatype() == rdf::XML_LITERAL
        && let Cow::Owned(trimmed) = with_used_namespaces(literal.value())
    {
        *object = Literal::new_typed_literal(trimmed, rdf::XML_LITERAL).into();
    }
}

/// Takes a quad in; the error says why it cannot be.
fn take(quad: &Quad, interner: &mut Interner) -> Result<(), Cow<'static, str>> {
    let subject = take_node(&quad.subject, interner);
    let predicate = interner.checked_iri(quad.predicate.as_str());
    let object = take_object(&quad.object, interner, 0)?;
    let graph = match &quad.graph_name {
        GraphName::DefaultGraph => None,
        GraphName::NamedNode(named) => Some(interner.checked_iri(named.as_str())),
        GraphName::BlankNode(blank) => Some(interner.blank_node(blank.as_str())),
    };
    interner.quad(subject, predicate, object, graph);
    Ok(())
}

fn take_node(node: &NamedOrBlankNode, interner: &mut Interner) -> LocalId {
    match node {
        NamedOrBlankNode::NamedNode(named) => interner.checked_iri(named.as_str()),
        NamedOrBlankNode::BlankNode(blank) => interner.blank_node(blank.as_str()),
    }
}

/// Takes an object within so many triple terms in.
fn take_object(
    object: &Term,
    interner: &mut Interner,
    depth: usize,
) -> Result<LocalId, Cow<'static, str>> {
    Ok(match object {
        Term::NamedNode(named) => interner.checked_iri(named.as_str()),
        Term::BlankNode(blank) => interner.blank_node(blank.as_str()),
        Term::Literal(literal) => take_literal(literal, interner),
        // Beyond the limit the interner refuses whatever stands there instead.
        Term::Triple(_) if depth > TRIPLE_DEPTH_MAX => interner.string(""),
        Term::Triple(triple) => {
            let subject = take_node(&triple.subject, interner);
            let predicate = interner.checked_iri(triple.predicate.as_str());
            let object = take_object(&triple.object, interner, depth + 1)?;
            interner.triple(subject, predicate, object)?
        }
    })
}

fn take_literal(literal: &oxrdf::Literal, interner: &mut Interner) -> LocalId {
    if let Some(tag) = literal.language() {
        let tag = match tag.bytes().any(|c| c.is_ascii_uppercase()) {
            true => Cow::Owned(tag.to_ascii_lowercase()),
            false => Cow::Borrowed(tag),
        };
        let direction = match literal.direction() {
            None => return interner.language(literal.value(), &tag),
            Some(BaseDirection::Ltr) => Direction::LeftToRight,
            Some(BaseDirection::Rtl) => Direction::RightToLeft,
        };
        return interner.directional(literal.value(), &tag, direction);
    }
    if literal.datatype() == xsd::STRING {
        return interner.string(literal.value());
    }
    interner.checked_typed(literal.value(), literal.datatype().as_str())
}

/// The last stretch of the text that the parser was given.
#[derive(Default)]
struct Window {
    bytes: Vec<u8>,
    /// Bytes of the text up to the end of `bytes`.
    end: u64,
    /// Whole lines handed over before the last one.
    lines: u64,
    last_line: Vec<u8>,
}

impl Window {
    fn push(&mut self, bytes: &[u8], by_line: bool) {
        self.end += bytes.len() as u64;
        if by_line {
            if self.last_line.ends_with(b"\n") {
                self.lines += 1;
                self.last_line.clear();
            }
            if self.last_line.len() < WINDOW_BYTES {
                self.last_line.extend_from_slice(bytes);
            }
            return;
        }
        self.bytes.extend_from_slice(bytes);
        // Cut rarely, so that each byte is moved about once.
        if self.bytes.len() > 2 * WINDOW_BYTES {
            let excess = self.bytes.len() - WINDOW_BYTES;
            self.bytes.drain(..excess);
        }
    }

    fn describe(&self, name: &str, error: &RdfSyntaxError) -> SyntaxError {
        let mut message = error.to_string();
        // The position is shown in front already.
        if message.starts_with("Parser error")
            && let Some((_, rest)) = message.split_once(": ")
        {
            message = rest.to_owned();
        }
        if message.contains("No scheme found") {
            message.push_str(" (a relative IRI needs --base)");
        }
        let Some(location) = error.location() else {
            let line = self.last_line.trim_ascii();
            return SyntaxError {
                source_name: name.to_owned(),
                line: Some(self.lines + 1),
                column: Some(1 + leading_blanks(&self.last_line)),
                text: clipped(line),
                message,
            };
        };
        SyntaxError {
            source_name: name.to_owned(),
            line: Some(location.start.line + 1),
            column: Some(location.start.column + 1),
            text: self.quote(location.start.offset, location.end.offset),
            message,
        }
    }

    /// The error of a quad that the parser accepted; the parser has read on a little meanwhile.
    fn describe_quad(&self, name: &str, quad: &Quad, message: Cow<'static, str>) -> SyntaxError {
        SyntaxError {
            source_name: name.to_owned(),
            line: None,
            column: None,
            text: clipped(quad.subject.to_string().as_bytes()),
            message: message.into_owned(),
        }
    }

    /// The text between two offsets, as far as it is still here.
    fn quote(&self, start: u64, end: u64) -> String {
        let first = self.end - self.bytes.len() as u64;
        let within = |offset: u64| (offset.saturating_sub(first) as usize).min(self.bytes.len());
        clipped(self.bytes[within(start)..within(end).max(within(start))].trim_ascii())
    }
}

fn leading_blanks(line: &[u8]) -> u64 {
    line.iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count() as u64
}

/// Notes in the window what the parser is given; at most one line at a time if `by_line`.
struct WindowReader {
    input: Box<dyn Read + Send>,
    window: Rc<RefCell<Window>>,
    pending: Vec<u8>,
    pending_start: usize,
    by_line: bool,
}

impl Read for WindowReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.by_line {
            let length = self.input.read(buffer)?;
            self.window.borrow_mut().push(&buffer[..length], false);
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
        self.window.borrow_mut().push(&buffer[..length], true);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Collect {
        errors: Vec<SyntaxError>,
        stop: bool,
    }

    impl DocumentEvents for Collect {
        type Error = ();
        fn quad_taken(&mut self, _: &mut Interner) -> Result<(), ()> {
            Ok(())
        }
        fn syntax_error(&mut self, error: SyntaxError) -> Result<(), ()> {
            self.errors.push(error);
            if self.stop { Err(()) } else { Ok(()) }
        }
        fn input_error(&mut self, _: io::Error) {}
    }

    fn parse(text: &'static str, format: Format) -> (u64, Vec<SyntaxError>) {
        let mut interner = Interner::new(None);
        let mut events = Collect::default();
        let base = Some("http://example.org/");
        let input = Box::new(text.as_bytes());
        parse_document(input, "f", format, base, &mut interner, &mut events).unwrap();
        (interner.quad_count(), events.errors)
    }

    #[test]
    fn each_format_is_read() {
        let turtle = "@prefix : <urn:> . :a :b <c>, 1, \"x\"@EN, [ :d true ] .";
        assert_eq!(parse(turtle, Format::Turtle), (5, vec![]));
        let trig = "<a> <b> <c> . _:g { <a> <b> <c> }";
        assert_eq!(parse(trig, Format::TriG), (2, vec![]));
        let xml = "<?xml version=\"1.0\"?>\n<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"urn:e:\">\n<e:T rdf:about=\"a\"><e:p>x</e:p></e:T>\n</rdf:RDF>";
        assert_eq!(parse(xml, Format::RdfXml), (2, vec![]));
        let json = "{\"@id\": \"a\",\n \"urn:p\": [{\"@id\": \"b\"}, 5]}";
        assert_eq!(parse(json, Format::JsonLd), (2, vec![]));
    }

    #[test]
    fn errors_name_the_place_and_quote_the_text() {
        let (quads, errors) = parse(
            "<a> <b> <c> .\n<a> <b> \"x\"^^5 .\n<d> <e> <f> .\n",
            Format::Turtle,
        );
        assert!(quads >= 1);
        assert_eq!(errors[0].line, Some(2), "{errors:?}");
        assert!(errors[0].to_string().starts_with("f:2:"), "{}", errors[0]);
        assert!(!errors[0].text.is_empty(), "{errors:?}");

        let xml = "<?xml version=\"1.0\"?>\n<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\n <rdf:li></wrong>\n</rdf:RDF>";
        let (_, errors) = parse(xml, Format::RdfXml);
        assert_eq!(
            (errors[0].line, errors[0].column),
            (Some(3), Some(2)),
            "{errors:?}"
        );

        let (_, errors) = parse("{\"@id\": \"a\",\n \"urn:p\": }", Format::JsonLd);
        assert_eq!(errors[0].line, Some(2), "{errors:?}");
    }
}
