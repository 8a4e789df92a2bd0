//! A reader of Turtle and TriG by single statements, for `--skip-errors` and `--lenient-iris`.
//!
//! ```text
//! text -> cut (statements) -> oxttl -> quads of one statement, or one error
//! ```
//!
//! Of a wrong statement nothing is given, and a new parser goes on behind it, with the prefixes and
//! the base of the one before and in the same graph. It goes on where it surely is in step:
//!
//! - a term is wrong (an IRI, a tag, an undeclared prefix, an escape), all tokens are closed:
//!   behind the statement's dot;
//! - the order of terms is wrong, and the statement has no text that may be what is left of a
//!   longer one: behind a dot that ends a line;
//! - anything else, and wrong directives, end the reading: [`After::Ends`].
//!
//! A graph of TriG is held until its brace, for without it what stands in it may stand outside.
//! Where it does not fit, and its braces turn out to be wrong, nothing of the load can be kept:
//! [`After::Fails`].

use crate::parse::held::{InParts, quad_bytes};
use crate::parse::iris::{Iris, check_quad};
use crate::parse::rdf_xml::Position;
use crate::parse::statements::{Around, Cut, Part, cut};
use crate::parse::turtle::Parser;
use orrery_term::Prefixes;
use oxrdf::Quad;
use oxrdfio::RdfSyntaxError;
use oxttl::{TriGParser, TurtleParser};
use std::collections::VecDeque;
use std::io::{self, Read as _};

/// Pieces of text have at least and at most so many bytes.
const PIECE_BYTES_MIN: usize = 64 << 10;
const PIECE_BYTES_MAX: usize = 64 << 20;

/// How reading goes on behind an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// Behind the wrong statement.
    GoesOn,
    /// Nobody knows where the next statement begins: what stands from this line on is left out, the
    /// first of the text being 0.
    Ends { line: u64 },
    /// What was given already may be wrong.
    Fails,
}

/// An error, by its place in the whole text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrongStatement {
    pub(crate) message: String,
    pub(crate) start: Position,
    pub(crate) end_offset: u64,
    pub(crate) after: After,
}

/// What is wrong, or why the text cannot be read.
#[derive(Debug)]
pub(crate) enum Trouble {
    Input(io::Error),
    Wrong(WrongStatement),
}

/// How a text is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'b> {
    pub(crate) base_iri: Option<&'b str>,
    pub(crate) has_graphs: bool,
    pub(crate) iris: Iris,
    /// What a graph may take while it is held.
    pub(crate) held_bytes_max: usize,
}

/// The quads of a text.
pub(crate) struct StatementReader<R> {
    input: R,
    text: Vec<u8>,
    /// What was read of `text`, and where that is in the whole.
    at: usize,
    position: Position,
    /// Bytes of `text` behind `at` that were looked at in vain.
    looked_at: usize,
    around: Around,
    parser: Parser,
    /// Where the parser's text begins.
    parser_start: Position,
    base_iri: Option<String>,
    iris: Iris,
    /// The name of the graph that is open, as it is written, with its brace.
    graph: Vec<u8>,
    /// Whether nothing of the open graph is taken.
    skips_graph: bool,
    held: Vec<Quad>,
    /// Where what is held begins.
    held_from: Position,
    held_bytes: usize,
    held_bytes_max: usize,
    /// Quads of what is held were given already.
    is_overflown: bool,
    ready: VecDeque<Quad>,
    wrong: Option<WrongStatement>,
    is_at_end: bool,
}

impl<R: InParts> StatementReader<R> {
    pub(crate) fn new(input: R, reading: Reading<'_>) -> io::Result<Self> {
        let base_iri = reading.base_iri.map(str::to_owned);
        let parser = parser(&[], base_iri.as_deref(), reading.has_graphs, reading.iris)?;
        Ok(Self {
            input,
            text: Vec::new(),
            at: 0,
            position: Position::default(),
            looked_at: 0,
            around: Around {
                has_graphs: reading.has_graphs,
                ..Around::default()
            },
            parser,
            parser_start: Position::default(),
            base_iri,
            iris: reading.iris,
            graph: Vec::new(),
            skips_graph: false,
            held: Vec::new(),
            held_from: Position::default(),
            held_bytes: 0,
            held_bytes_max: reading.held_bytes_max,
            is_overflown: false,
            ready: VecDeque::new(),
            wrong: None,
            is_at_end: false,
        })
    }

    /// Takes the prefixes that were declared so far.
    pub(crate) fn note_prefixes(&self, prefixes: &mut Prefixes) {
        self.parser.note_prefixes(prefixes);
    }

    /// The next quad or error.
    pub(crate) fn next(&mut self) -> Option<Result<Quad, Trouble>> {
        loop {
            if let Some(quad) = self.ready.pop_front() {
                return Some(Ok(quad));
            }
            if let Some(wrong) = self.wrong.take() {
                return Some(Err(Trouble::Wrong(wrong)));
            }
            if self.is_at_end {
                return None;
            }
            if let Err(error) = self.step() {
                self.is_at_end = true;
                return Some(Err(Trouble::Input(error)));
            }
        }
    }

    /// Reads one part of the text.
    fn step(&mut self) -> io::Result<()> {
        let Some(found) = cut(&self.text[self.at..], self.around) else {
            return self.fill();
        };
        let start = self.position;
        let bytes = self.text[self.at..self.at + found.length].to_vec();
        self.at += found.length;
        self.looked_at = 0;
        self.position = start.after(&bytes);
        let was_in_graph = self.around.is_in_graph;
        match found.part {
            Part::GraphOpens => {
                self.around.is_in_graph = true;
                // On one line, so that places behind it are known.
                let blank = |byte: &u8| match byte {
                    b'\n' | b'\r' => b' ',
                    other => *other,
                };
                self.graph = match bytes.contains(&b'#') {
                    true => without_comments(&bytes),
                    false => bytes.iter().map(blank).collect(),
                };
                // What stood before it stands in no graph.
                self.release();
            }
            Part::GraphCloses => self.around.is_in_graph = false,
            Part::Statement | Part::Directive | Part::StrayBrace | Part::Rest => {}
        }
        let is_skipped = self.skips_graph && found.part != Part::StrayBrace;
        if is_skipped {
            self.skips_graph = was_in_graph && found.part != Part::GraphCloses;
        } else {
            self.read(found, start, &bytes)?;
        }
        if found.part == Part::GraphCloses {
            self.release();
        }
        self.input.end_part();
        if self.around.is_end && self.at == self.text.len() && !self.is_at_end {
            self.is_at_end = true;
            if self.around.is_in_graph {
                self.end_at(
                    "the file ends within a graph, whose `}` is missing",
                    self.position,
                );
            }
            self.release();
        }
        Ok(())
    }

    /// Gives a part to the parser, and takes what it makes of it.
    fn read(&mut self, found: Cut, start: Position, bytes: &[u8]) -> io::Result<()> {
        if found.part == Part::StrayBrace {
            self.end_at(
                "a brace stands where no graph can begin or end",
                start.after(&bytes[..bytes.trim_ascii_end().len().saturating_sub(1)]),
            );
            return Ok(());
        }
        self.parser.extend(bytes);
        let is_last = self.around.is_end && self.at == self.text.len();
        // Behind what is not closed nothing is read, so that the parser need not wait for its end.
        if is_last || !found.is_clean {
            self.parser.end();
        } else if !bytes.last().is_some_and(u8::is_ascii_whitespace) {
            // So that it sees the end; places behind it are told one byte before they are, once.
            self.parser.extend(b" ");
            self.parser_start.offset = self.parser_start.offset.wrapping_sub(1);
        }
        let (mut quads, mut wrong) = (Vec::new(), None);
        while let Some(next) = self.parser.next() {
            match next {
                Ok(quad) => match check_quad(&quad, self.iris) {
                    Ok(()) => quads.push(quad),
                    Err(message) => {
                        let blanks = bytes.len() - bytes.trim_ascii_start().len();
                        let begin = start.after(&bytes[..blanks]);
                        wrong.get_or_insert((message, begin, begin.offset, true));
                    }
                },
                Err(error) => {
                    let error = RdfSyntaxError::from(error);
                    let (message, begin, end) = self.placed(&error, start);
                    wrong.get_or_insert((message.clone(), begin, end, is_of_term(&message)));
                }
            }
        }
        if wrong.is_none() && !found.is_clean {
            // A parser that looks at no IRI takes texts over several lines, too.
            let message = "a text or an IRI is not closed, or a word is none of Turtle".to_owned();
            wrong = Some((message, start, start.offset, false));
        }
        let Some((message, begin, end_offset, is_of_term)) = wrong else {
            self.held_bytes += quads.iter().map(quad_bytes).sum::<usize>();
            self.held.append(&mut quads);
            if !self.around.has_graphs {
                self.release();
            } else if self.held_bytes > self.held_bytes_max {
                self.ready.extend(self.held.drain(..));
                self.held_bytes = 0;
                self.is_overflown = true;
            }
            return Ok(());
        };
        let after = self.after(found, is_of_term, begin);
        self.wrong = Some(WrongStatement {
            message,
            start: begin,
            end_offset,
            after,
        });
        match after {
            After::GoesOn => self.go_on(found)?,
            After::Ends { .. } | After::Fails => {
                // What was read before is whole; its braces were not wrong.
                self.release();
                self.is_at_end = true;
            }
        }
        Ok(())
    }

    /// How reading goes on behind a wrong part.
    fn after(&self, found: Cut, is_of_term: bool, wrong: Position) -> After {
        let is_in_step = found.is_clean
            && match found.part {
                Part::Statement => is_of_term || found.has_plain_texts && found.ends_line,
                Part::GraphOpens | Part::GraphCloses => is_of_term,
                Part::Rest => !self.around.is_in_graph,
                Part::Directive | Part::StrayBrace => false,
            };
        match is_in_step {
            true => After::GoesOn,
            false => After::Ends { line: wrong.line },
        }
    }

    /// A new parser goes on behind a wrong part.
    fn go_on(&mut self, found: Cut) -> io::Result<()> {
        let base_iri = self
            .parser
            .base_iri()
            .map(str::to_owned)
            .or(self.base_iri.take());
        self.base_iri = base_iri;
        let declared = self.parser.declared();
        let has_graphs = self.around.has_graphs;
        self.parser = parser(&declared, self.base_iri.as_deref(), has_graphs, self.iris)?;
        self.parser_start = self.position;
        if !self.around.is_in_graph {
            return Ok(());
        }
        let name = self.graph.trim_ascii_start();
        if found.part == Part::GraphOpens || name.starts_with(b"[") {
            // A name that is wrong, or that each parser makes another of.
            self.skips_graph = true;
            return Ok(());
        }
        let graph = std::mem::take(&mut self.graph);
        self.parser.extend(&graph);
        self.parser.extend(b" ");
        while self.parser.next().is_some() {}
        let written = Position::default().after(&graph);
        self.parser_start.offset = self.position.offset.wrapping_sub(written.offset + 1);
        self.parser_start.column = self.position.column.wrapping_sub(written.column + 1);
        self.graph = graph;
        Ok(())
    }

    /// Where an error of the parser is in the whole text; at the start of the part, if it tells no
    /// place.
    fn placed(&self, error: &RdfSyntaxError, start: Position) -> (String, Position, u64) {
        let mut message = error.to_string();
        if message.starts_with("Parser error")
            && let Some((_, rest)) = message.split_once(": ")
        {
            message = rest.to_owned();
        }
        let Some(place) = error.location() else {
            return (message, start, start.offset);
        };
        let base = self.parser_start;
        let is_first_line = place.start.line == 0;
        let begin = Position {
            offset: base.offset.wrapping_add(place.start.offset),
            line: base.line + place.start.line,
            column: match is_first_line {
                true => base.column.wrapping_add(place.start.column),
                false => place.start.column,
            },
        };
        (message, begin, base.offset.wrapping_add(place.end.offset))
    }

    /// Ends the reading at a place where something is wrong with the graphs.
    fn end_at(&mut self, message: &str, place: Position) {
        self.wrong = Some(WrongStatement {
            message: message.to_owned(),
            start: place,
            end_offset: place.offset,
            after: match self.is_overflown {
                true => After::Fails,
                false => After::Ends {
                    line: self.held_from.line,
                },
            },
        });
        self.held.clear();
        self.is_at_end = true;
    }

    /// Gives what was held: it stands where it stands.
    fn release(&mut self) {
        self.ready.extend(self.held.drain(..));
        self.held_bytes = 0;
        self.held_from = self.position;
        self.is_overflown = false;
    }

    /// Reads more of the text.
    fn fill(&mut self) -> io::Result<()> {
        self.text.drain(..self.at);
        self.at = 0;
        let wanted = self.looked_at.clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX);
        let read = (&mut self.input)
            .take(wanted as u64)
            .read_to_end(&mut self.text)?;
        self.around.is_end = read < wanted;
        self.looked_at = self.text.len();
        Ok(())
    }
}

/// Whether an error is about one term, whose token is whole.
fn is_of_term(message: &str) -> bool {
    const PARTS: [&str; 15] = [
        "Invalid IRI",
        "No scheme found",
        "in host",
        "Invalid host IP",
        "Invalid character '",
        "An IRI path",
        "has not been declared",
        "that is invalid",
        "subtag",
        "language tag",
        "base direction",
        "escape",
        "langString",
        "dirLangString",
        "absolute IRI",
    ];
    PARTS.iter().any(|part| message.contains(part))
}

fn without_comments(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for line in text.split(|byte| matches!(byte, b'\n' | b'\r')) {
        // In an IRI a `#` follows no blank; before a graph's name there are comments only at a
        // line's start, or behind a blank.
        let comment = (0..line.len())
            .find(|&at| line[at] == b'#' && (at == 0 || line[at - 1].is_ascii_whitespace()));
        out.extend_from_slice(&line[..comment.unwrap_or(line.len())]);
        out.push(b' ');
    }
    out
}

/// A parser that knows these prefixes.
fn parser(
    prefixes: &[(String, String)],
    base_iri: Option<&str>,
    has_graphs: bool,
    iris: Iris,
) -> io::Result<Parser> {
    let wrong = |error: oxiri::IriParseError| io::Error::other(error.to_string());
    macro_rules! begin {
        ($parser:ty, $of:expr) => {{
            let mut parser = <$parser>::new();
            if iris == Iris::AsWritten {
                parser = parser.lenient();
            }
            if let Some(base_iri) = base_iri {
                parser = parser.with_base_iri(base_iri).map_err(wrong)?;
            }
            for (name, iri) in prefixes {
                parser = parser.with_prefix(name, iri).map_err(wrong)?;
            }
            $of(parser.low_level())
        }};
    }
    Ok(match has_graphs {
        true => begin!(TriGParser, Parser::TriG),
        false => begin!(TurtleParser, Parser::Turtle),
    })
}
