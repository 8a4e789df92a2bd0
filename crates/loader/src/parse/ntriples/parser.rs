//! The parser of statements in a block of lines.

use super::{AfterError, LineError, TermSink, escape};
use hashbrown::HashMap;
use memchr::{memchr, memchr2, memchr3};
use orrery_term::names::{is_name_character, is_name_start};
use orrery_term::{Direction, TRIPLE_DEPTH_MAX};
use oxrdf::Literal;
use oxrdf::vocab::{rdf, xsd};
use std::borrow::Cow;

/// More distinct language tags than this and the list of known ones starts anew.
const KNOWN_TAGS_MAX: usize = 1024;

/// Begins a line that announces the version of RDF (RDF 1.2 N-Triples, 2.5).
const VERSION: &[u8] = b"VERSION";

/// Reads all statements of `block`, which is cut at line ends (or is the end of the input).
///
/// `with_graph` is N-Quads. Wrong lines go to `on_error`, which decides how it goes on. Returns
/// whether the whole block was read.
pub(crate) fn parse_block<S: TermSink>(
    block: &[u8],
    with_graph: bool,
    sink: &mut S,
    on_error: &mut impl FnMut(LineError) -> AfterError,
) -> bool {
    match simdutf8::basic::from_utf8(block) {
        Ok(text) => LineParser::new(text, with_graph).run(sink, 0, on_error),
        Err(_) => parse_damaged_block(block, with_graph, sink, on_error),
    }
}

/// A block with invalid UTF-8 somewhere: line by line, for the other lines count, and within a
/// comment any bytes may stand (as in oxttl).
fn parse_damaged_block<S: TermSink>(
    block: &[u8],
    with_graph: bool,
    sink: &mut S,
    on_error: &mut impl FnMut(LineError) -> AfterError,
) -> bool {
    let mut start = 0;
    while start < block.len() {
        let end = memchr2(b'\n', b'\r', &block[start..]).map_or(block.len(), |n| start + n);
        let line = &block[start..end];
        let (valid, bad_at) = match std::str::from_utf8(line) {
            Ok(text) => (text, None),
            Err(error) => {
                let length = error.valid_up_to();
                let text = std::str::from_utf8(&line[..length]).unwrap_or_default();
                (text, Some(length))
            }
        };
        let mut parser = LineParser::new(valid, with_graph);
        let finished = match bad_at {
            Some(at) if !parser.ends_in_comment() => {
                let span = start + at..start + at + 1;
                on_error(LineError::new(span, "expected valid UTF-8")) == AfterError::Skip
            }
            _ => parser.run(sink, start, on_error),
        };
        if !finished {
            return false;
        }
        start = end + 1;
    }
    true
}

/// A term's text: a stretch of the block, or unescaped in a scratch string.
#[derive(Clone, Copy)]
struct Piece {
    start: usize,
    end: usize,
    is_escaped: bool,
}

struct LineParser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    with_graph: bool,
    /// A carriage return ends a line too; blocks without any are told at once.
    has_carriage_returns: bool,
    iri_scratch: String,
    string_scratch: String,
    /// The previous subject with its brackets, and its end: statements often come in groups.
    previous_subject: (usize, usize),
    known_tags: HashMap<Box<str>, Box<str>, foldhash::fast::FixedState>,
}

impl<'a> LineParser<'a> {
    fn new(text: &'a str, with_graph: bool) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            with_graph,
            has_carriage_returns: memchr(b'\r', text.as_bytes()).is_some(),
            iri_scratch: String::new(),
            string_scratch: String::new(),
            previous_subject: (0, 0),
            known_tags: HashMap::default(),
        }
    }

    /// Reads to the end; `offset` is where this text starts in its block.
    fn run<S: TermSink>(
        &mut self,
        sink: &mut S,
        offset: usize,
        on_error: &mut impl FnMut(LineError) -> AfterError,
    ) -> bool {
        let mut subject_id = None;
        loop {
            self.skip_blanks();
            let start = self.at;
            match self.bytes.get(self.at) {
                None => return true,
                Some(b'\n' | b'\r') => self.at += 1,
                Some(b'#') => self.skip_line(start),
                Some(b'V') if self.bytes[start..].starts_with(VERSION) => {
                    if let Err(mut error) = self.version() {
                        error.span = error.span.start + offset..error.span.end + offset;
                        if on_error(error) == AfterError::Stop {
                            return false;
                        }
                        self.skip_line(start);
                    }
                }
                Some(_) => {
                    if let Err(mut error) = self.statement(sink, &mut subject_id) {
                        subject_id = None;
                        error.span = error.span.start + offset..error.span.end + offset;
                        if on_error(error) == AfterError::Stop {
                            return false;
                        }
                        self.skip_line(start);
                    }
                }
            }
        }
    }

    /// `VERSION "1.2"` and nothing else on the line. Whatever version it says, statements are read
    /// as those of RDF 1.2, which has all others within.
    fn version(&mut self) -> Result<(), LineError> {
        self.at += VERSION.len();
        self.skip_blanks();
        if self.peek() != b'"' {
            return Err(self.unexpected("expected a version in quotes after VERSION"));
        }
        self.string_piece()?;
        self.end_of_line("expected the end of the line after the version")
    }

    fn statement<S: TermSink>(
        &mut self,
        sink: &mut S,
        previous_subject_id: &mut Option<S::Id>,
    ) -> Result<(), LineError> {
        let subject = self.subject(sink, previous_subject_id)?;
        self.skip_blanks();
        let predicate = self.predicate(sink)?;
        self.skip_blanks();
        let object = self.object(sink, 0)?;
        self.skip_blanks();
        let graph = match self.peek() {
            b'<' if self.with_graph => Some(self.iri(sink)?),
            b'_' if self.with_graph => Some(self.blank_node(sink)?),
            _ => None,
        };
        self.end_of_statement(graph.is_some())?;
        sink.quad(subject, predicate, object, graph);
        Ok(())
    }

    fn predicate<S: TermSink>(&mut self, sink: &mut S) -> Result<S::Id, LineError> {
        match self.peek() {
            b'<' => self.iri(sink),
            _ => Err(self.unexpected("expected a predicate, an IRI in angle brackets")),
        }
    }

    /// An object within so many triple terms.
    fn object<S: TermSink>(&mut self, sink: &mut S, depth: usize) -> Result<S::Id, LineError> {
        match self.peek() {
            b'<' if self.bytes.get(self.at + 1) == Some(&b'<') => self.triple_term(sink, depth + 1),
            b'<' => self.iri(sink),
            b'"' => self.literal(sink),
            b'_' => self.blank_node(sink),
            _ => Err(self.unexpected(
                "expected an object: an IRI, a blank node, a literal or a triple term",
            )),
        }
    }

    /// `<<( subject predicate object )>>`, the `depth`th within each other.
    fn triple_term<S: TermSink>(&mut self, sink: &mut S, depth: usize) -> Result<S::Id, LineError> {
        const OPENING: &[u8] = b"<<(";
        const CLOSING: &[u8] = b")>>";
        let start = self.at;
        if !self.bytes[start..].starts_with(OPENING) {
            return Err(self.unexpected("expected a triple term, which starts with <<("));
        }
        if depth > TRIPLE_DEPTH_MAX {
            return Err(self.unexpected("expected fewer triple terms within each other"));
        }
        self.at += OPENING.len();
        self.skip_blanks();
        let subject = match self.peek() {
            b'<' => self.iri(sink)?,
            b'_' => self.blank_node(sink)?,
            _ => return Err(self.unexpected("expected a subject: an IRI or a blank node")),
        };
        self.skip_blanks();
        let predicate = self.predicate(sink)?;
        self.skip_blanks();
        let object = self.object(sink, depth)?;
        self.skip_blanks();
        if !self.bytes[self.at..].starts_with(CLOSING) {
            return Err(self.unexpected("expected )>> at the end of a triple term"));
        }
        self.at += CLOSING.len();
        sink.triple(subject, predicate, object)
            .map_err(|message| LineError::new(start..self.at, message))
    }

    fn subject<S: TermSink>(
        &mut self,
        sink: &mut S,
        previous_id: &mut Option<S::Id>,
    ) -> Result<S::Id, LineError> {
        let (start, end) = self.previous_subject;
        if let Some(id) = *previous_id
            && self.bytes[self.at..].starts_with(&self.bytes[start..end])
        {
            self.at += end - start;
            return Ok(id);
        }
        let start = self.at;
        match self.peek() {
            b'<' => {
                let id = self.iri(sink)?;
                *previous_id = Some(id);
                self.previous_subject = (start, self.at);
                Ok(id)
            }
            // Not remembered: `_:a` also starts `_:ab`.
            b'_' => self.blank_node(sink),
            _ => {
                Err(self.unexpected("expected a subject: an IRI in angle brackets or a blank node"))
            }
        }
    }

    /// The dot, and nothing but blanks and a comment up to the end of the line.
    fn end_of_statement(&mut self, has_graph: bool) -> Result<(), LineError> {
        self.skip_blanks();
        if self.peek() != b'.' {
            return Err(self.unexpected(if self.with_graph && !has_graph {
                "expected a graph name or the dot that ends a statement"
            } else {
                "expected the dot that ends a statement"
            }));
        }
        self.at += 1;
        self.end_of_line("expected the end of the line after the dot")
    }

    /// Blanks and perhaps a comment, then the end of the line or of the text.
    fn end_of_line(&mut self, expected: &'static str) -> Result<(), LineError> {
        self.skip_blanks();
        match self.bytes.get(self.at) {
            None => {}
            Some(b'\n' | b'\r') => self.at += 1,
            Some(b'#') => self.skip_line(self.at),
            Some(_) => return Err(self.unexpected(expected)),
        }
        Ok(())
    }

    fn iri<S: TermSink>(&mut self, sink: &mut S) -> Result<S::Id, LineError> {
        let start = self.at;
        let piece = self.iri_piece()?;
        sink.iri(self.iri_text(piece))
            .map_err(|message| LineError::new(start..self.at, message))
    }

    fn blank_node<S: TermSink>(&mut self, sink: &mut S) -> Result<S::Id, LineError> {
        let start = self.at;
        if self.bytes.get(start + 1) != Some(&b':') {
            return Err(self.unexpected("expected a blank node, which starts with _:"));
        }
        let label_start = start + 2;
        let length = label_length(&self.text[label_start..]);
        if length == 0 {
            return Err(LineError::new(
                start..label_start,
                "expected a blank node label after _:",
            ));
        }
        self.at = label_start + length;
        Ok(sink.blank_node(&self.text[label_start..self.at]))
    }

    fn literal<S: TermSink>(&mut self, sink: &mut S) -> Result<S::Id, LineError> {
        let lexical = self.string_piece()?;
        self.skip_blanks();
        match self.peek() {
            b'@' => {
                let (tag, direction) = self.language_tag(sink)?;
                let tag = self.known_tags.get(tag).map_or(tag, |tag| &**tag);
                let lexical = self.string_text(lexical);
                Ok(match direction {
                    None => sink.language(lexical, tag),
                    Some(direction) => sink.directional(lexical, tag, direction),
                })
            }
            b'^' => {
                let start = self.at;
                if self.bytes.get(start + 1) != Some(&b'^') {
                    return Err(self.unexpected("expected ^^ and a datatype"));
                }
                self.at += 2;
                self.skip_blanks();
                if self.peek() != b'<' {
                    return Err(self.unexpected("expected a datatype, an IRI in angle brackets"));
                }
                let datatype = self.iri_piece()?;
                self.typed_literal(sink, lexical, datatype)
                    .map_err(|message| LineError::new(start..self.at, message))
            }
            _ => Ok(sink.string(self.string_text(lexical))),
        }
    }

    fn typed_literal<S: TermSink>(
        &self,
        sink: &mut S,
        lexical: Piece,
        datatype: Piece,
    ) -> Result<S::Id, Cow<'static, str>> {
        let lexical = self.string_text(lexical);
        let datatype = self.iri_text(datatype);
        if datatype == xsd::STRING.as_str() {
            return Ok(sink.string(lexical));
        }
        if datatype == rdf::LANG_STRING.as_str() {
            return Err("expected a language tag: rdf:langString has no literals without".into());
        }
        if datatype == rdf::DIR_LANG_STRING.as_str() {
            return Err(
                "expected a base direction: rdf:dirLangString has no literals without".into(),
            );
        }
        sink.typed(lexical, datatype)
    }

    /// From `<` to `>`.
    fn iri_piece(&mut self) -> Result<Piece, LineError> {
        let open = self.at;
        let start = open + 1;
        let mut at = start;
        let mut is_escaped = false;
        loop {
            let stop = memchr3(b'>', b'\\', b'\n', &self.bytes[at..]).map(|n| at + n);
            let end = stop.unwrap_or(self.bytes.len());
            if is_escaped {
                self.iri_scratch.push_str(&self.text[at..end]);
            }
            match stop.map(|stop| self.bytes[stop]) {
                Some(b'>') => {
                    self.at = end + 1;
                    return Ok(Piece {
                        start,
                        end,
                        is_escaped,
                    });
                }
                Some(b'\\') => {
                    if !is_escaped {
                        is_escaped = true;
                        self.iri_scratch.clear();
                        self.iri_scratch.push_str(&self.text[start..end]);
                    }
                    let (c, next) = escape::decode(self.bytes, end, false)?;
                    self.iri_scratch.push(c);
                    at = next;
                }
                _ => return Err(LineError::new(open..end, "expected > at the end of an IRI")),
            }
        }
    }

    /// From quote to quote.
    fn string_piece(&mut self) -> Result<Piece, LineError> {
        let open = self.at;
        let start = open + 1;
        let mut at = start;
        let mut is_escaped = false;
        loop {
            let stop = memchr3(b'"', b'\\', b'\n', &self.bytes[at..]).map(|n| at + n);
            let end = stop.unwrap_or(self.bytes.len());
            if self.has_carriage_returns
                && let Some(n) = memchr(b'\r', &self.bytes[at..end])
            {
                return Err(unfinished_string(open, at + n));
            }
            if is_escaped {
                self.string_scratch.push_str(&self.text[at..end]);
            }
            match stop.map(|stop| self.bytes[stop]) {
                Some(b'"') => {
                    self.at = end + 1;
                    return Ok(Piece {
                        start,
                        end,
                        is_escaped,
                    });
                }
                Some(b'\\') => {
                    if !is_escaped {
                        is_escaped = true;
                        self.string_scratch.clear();
                        self.string_scratch.push_str(&self.text[start..end]);
                    }
                    let (c, next) = escape::decode(self.bytes, end, true)?;
                    self.string_scratch.push(c);
                    at = next;
                }
                _ => return Err(unfinished_string(open, end)),
            }
        }
    }

    fn iri_text(&self, piece: Piece) -> &str {
        if piece.is_escaped {
            &self.iri_scratch
        } else {
            &self.text[piece.start..piece.end]
        }
    }

    fn string_text(&self, piece: Piece) -> &str {
        if piece.is_escaped {
            &self.string_scratch
        } else {
            &self.text[piece.start..piece.end]
        }
    }

    /// Reads `@en-GB` or `@en-GB--ltr`; afterwards the tag stands in `known_tags` in lower case.
    fn language_tag<S: TermSink>(
        &mut self,
        sink: &mut S,
    ) -> Result<(&'a str, Option<Direction>), LineError> {
        let start = self.at + 1;
        let length = self.bytes[start..]
            .iter()
            .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-')
            .unwrap_or(self.bytes.len() - start);
        let end = start + length;
        let tag = &self.text[start..end];
        let (tag, direction) = match tag.split_once("--") {
            None => (tag, None),
            Some((tag, direction)) => match Direction::parse(direction) {
                Some(direction) => (tag, Some(direction)),
                None => {
                    let span = end - direction.len()..end;
                    return Err(LineError::new(
                        span,
                        "expected a base direction: ltr or rtl",
                    ));
                }
            },
        };
        if !self.known_tags.contains_key(tag) {
            let span = start - 1..end;
            // oxttl reads letters first, then blocks after single hyphens; the rest of the rules
            // (BCP 47) is oxilangtag's, which also refuses empty blocks.
            if !tag.bytes().next().is_some_and(|c| c.is_ascii_alphabetic()) {
                return Err(LineError::new(span, "expected a language tag after @"));
            }
            let checked = Literal::new_language_tagged_literal("", tag).map_err(|error| {
                LineError::new(span, format!("expected a language tag: {error}"))
            })?;
            if self.known_tags.len() >= KNOWN_TAGS_MAX {
                self.known_tags.clear();
            }
            let lower = checked.language().unwrap_or(tag);
            self.known_tags.insert(tag.into(), lower.into());
            sink.language_tag(tag);
        }
        self.at = end;
        Ok((tag, direction))
    }

    /// Whether the whole text is blanks, perhaps a statement, and a comment without an end.
    fn ends_in_comment(&self) -> bool {
        struct Nothing;
        impl TermSink for Nothing {
            type Id = ();
            fn iri(&mut self, _: &str) -> Result<(), Cow<'static, str>> {
                Ok(())
            }
            fn blank_node(&mut self, _: &str) {}
            fn string(&mut self, _: &str) {}
            fn language(&mut self, _: &str, _: &str) {}
            fn directional(&mut self, _: &str, _: &str, _: Direction) {}
            fn triple(&mut self, (): (), (): (), (): ()) -> Result<(), Cow<'static, str>> {
                Ok(())
            }
            fn typed(&mut self, _: &str, _: &str) -> Result<(), Cow<'static, str>> {
                Ok(())
            }
            fn quad(&mut self, (): (), (): (), (): (), _: Option<()>) {}
        }
        // A further comment sign at the end changes nothing within a comment; outside of one it
        // would hide the bad bytes. So a quote and a bracket are tried, which only a comment bears.
        let probe = format!("{}\"<", self.text);
        let mut is_fine = true;
        let mut parser = LineParser::new(&probe, self.with_graph);
        parser.run(&mut Nothing, 0, &mut |_| {
            is_fine = false;
            AfterError::Stop
        });
        is_fine
    }

    fn peek(&self) -> u8 {
        // A NUL byte is nowhere expected, so it may stand for the end of the text.
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn skip_blanks(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Goes behind the first line end after `start`.
    fn skip_line(&mut self, start: usize) {
        let length = if self.has_carriage_returns {
            memchr2(b'\n', b'\r', &self.bytes[start..])
        } else {
            memchr(b'\n', &self.bytes[start..])
        };
        self.at = length.map_or(self.bytes.len(), |length| start + length + 1);
    }

    /// An error about what stands here, up to the next blank or line end.
    fn unexpected(&self, message: &'static str) -> LineError {
        let rest = &self.bytes[self.at..];
        let length = rest
            .iter()
            .position(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
            .unwrap_or(rest.len());
        LineError::new(self.at..self.at + length, message)
    }
}

fn unfinished_string(open: usize, end: usize) -> LineError {
    LineError::new(
        open..end,
        r"expected a quote at the end of a string on the same line (write a line end as \n)",
    )
}

/// How much of `text` is a blank node label: `(PN_CHARS_U | [0-9]) ((PN_CHARS | '.')* PN_CHARS)?`
fn label_length(text: &str) -> usize {
    let mut length = 0;
    for c in text.chars() {
        let is_allowed = if length == 0 {
            is_name_start(c) || c.is_ascii_digit()
        } else {
            is_name_character(c) || c == '.'
        };
        if !is_allowed {
            break;
        }
        length += c.len_utf8();
    }
    text[..length].trim_end_matches('.').len()
}
