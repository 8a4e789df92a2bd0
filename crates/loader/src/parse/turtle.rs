//! The reader of Turtle and TriG documents, without the parser's own buffer limit.
//!
//! Read from a reader, `oxttl` holds 16 MiB of text at most, so a longer token is an error. Here it
//! is fed piece by piece: the pieces grow with what it has not made a statement of, so that a long
//! token is looked at a few times only. Whoever gives the text has to bound it.

use orrery_term::Prefixes;
use oxrdf::{GraphName, Quad};
use oxrdfio::RdfParseError;
use oxttl::trig::LowLevelTriGParser;
use oxttl::turtle::LowLevelTurtleParser;
use oxttl::{TriGParser, TurtleParser, TurtleSyntaxError};
use std::io::{self, Read};

/// Pieces have at least and at most so many bytes.
const PIECE_BYTES_MIN: usize = 64 << 10;
const PIECE_BYTES_MAX: usize = 64 << 20;

/// A parser of either, which is given its text.
pub(crate) enum Parser {
    Turtle(LowLevelTurtleParser),
    TriG(LowLevelTriGParser),
}

impl Parser {
    pub(crate) fn next(&mut self) -> Option<Result<Quad, TurtleSyntaxError>> {
        match self {
            Self::Turtle(parser) => {
                let triple = parser.parse_next()?;
                Some(triple.map(|triple| triple.in_graph(GraphName::DefaultGraph)))
            }
            Self::TriG(parser) => parser.parse_next(),
        }
    }

    pub(crate) fn extend(&mut self, text: &[u8]) {
        match self {
            Self::Turtle(parser) => parser.extend_from_slice(text),
            Self::TriG(parser) => parser.extend_from_slice(text),
        }
    }

    /// No more text follows.
    pub(crate) fn end(&mut self) {
        match self {
            Self::Turtle(parser) => parser.end(),
            Self::TriG(parser) => parser.end(),
        }
    }

    pub(crate) fn is_end(&self) -> bool {
        match self {
            Self::Turtle(parser) => parser.is_end(),
            Self::TriG(parser) => parser.is_end(),
        }
    }

    pub(crate) fn base_iri(&self) -> Option<&str> {
        match self {
            Self::Turtle(parser) => parser.base_iri(),
            Self::TriG(parser) => parser.base_iri(),
        }
    }

    /// The prefixes that were declared so far.
    pub(crate) fn declared(&self) -> Vec<(String, String)> {
        let owned = |(name, iri): (&str, &str)| (name.to_owned(), iri.to_owned());
        match self {
            Self::Turtle(parser) => parser.prefixes().map(owned).collect(),
            Self::TriG(parser) => parser.prefixes().map(owned).collect(),
        }
    }

    /// Takes the prefixes that were declared so far.
    pub(crate) fn note_prefixes(&self, prefixes: &mut Prefixes) {
        let mut note = |(name, iri): (&str, &str)| {
            prefixes.note_loaded(name, iri);
        };
        match self {
            Self::Turtle(parser) => parser.prefixes().for_each(&mut note),
            Self::TriG(parser) => parser.prefixes().for_each(&mut note),
        }
    }
}

/// The quads of a text.
pub(crate) struct TurtleReader<R> {
    parser: Parser,
    input: R,
    piece: Vec<u8>,
    /// Bytes given since the last statement or error.
    unused_bytes: usize,
}

impl<R: Read> TurtleReader<R> {
    /// Reads Turtle.
    pub(crate) fn turtle(parser: TurtleParser, input: R) -> Self {
        Self::new(Parser::Turtle(parser.low_level()), input)
    }

    /// Reads TriG.
    pub(crate) fn trig(parser: TriGParser, input: R) -> Self {
        Self::new(Parser::TriG(parser.low_level()), input)
    }

    fn new(parser: Parser, input: R) -> Self {
        Self {
            parser,
            input,
            piece: Vec::new(),
            unused_bytes: 0,
        }
    }

    fn parse_next(&mut self) -> Option<Result<Quad, RdfParseError>> {
        let quad = self.parser.next()?;
        Some(quad.map_err(|error| RdfParseError::Syntax(error.into())))
    }

    /// Takes the prefixes that were declared so far.
    pub(crate) fn note_prefixes(&self, prefixes: &mut Prefixes) {
        self.parser.note_prefixes(prefixes);
    }

    /// Gives the parser more text, or tells it that there is no more.
    fn feed(&mut self) -> io::Result<()> {
        let wanted = self.unused_bytes.clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX);
        self.piece.clear();
        (&mut self.input)
            .take(wanted as u64)
            .read_to_end(&mut self.piece)?;
        self.unused_bytes += self.piece.len();
        let is_last = self.piece.len() < wanted;
        self.parser.extend(&self.piece);
        if is_last {
            self.parser.end();
        }
        Ok(())
    }
}

impl<R: Read> Iterator for TurtleReader<R> {
    type Item = Result<Quad, RdfParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(quad) = self.parse_next() {
                self.unused_bytes = 0;
                return Some(quad);
            }
            if self.parser.is_end() {
                return None;
            }
            if let Err(error) = self.feed() {
                return Some(Err(RdfParseError::Io(error)));
            }
        }
    }
}
