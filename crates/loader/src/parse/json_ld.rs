//! Warnings about parts of JSON-LD that become no statement.
//!
//! JSON-LD leaves out, without a word, what is not RDF: keys that no context gives an IRI,
//! identifiers that are not absolute, blank nodes as predicates. That is the standard's way
//! (JSON-LD 1.1 API, 7.2), but people who lose half of a file that way want to know. The parser
//! does not tell. So a second one, which passes such statements on as they are, reads the same text
//! on a thread of its own; what it gives more than the first was left out.
//!
//! ```text
//! text -> first parser, strict -> statements, taken
//!    '--> a bounded channel -> second parser, lenient -> counted, the first wrong one described
//! ```
//!
//! Cost: the text is parsed twice, at the same time; 180,000 statements in 8 MB took 0.9 s of the
//! processors, 0.5 s without it.
//!
//! It cannot be the only one: what stands below a key that is left out goes with it, and of that a
//! lenient parser knows nothing.

use crate::parse::json_contexts::PARSER_STACK_BYTES;
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfParser};
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Pieces of text that the second parser may be behind.
const PIECES_WAITING_MAX: usize = 4;

/// Statements that were left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) statements: u64,
    /// Why, for the first of them.
    reason: String,
}

impl LeftOut {
    /// A sentence for people.
    pub(crate) fn describe(&self, name: &str) -> String {
        let (were, first) = match self.statements {
            1 => ("1 statement was".to_owned(), ""),
            more => (format!("{more} statements were"), "the first because "),
        };
        format!("{name}: {were} left out: {first}{}", self.reason)
    }
}

/// The text as the second parser's input.
struct Pieces {
    pieces: Receiver<Vec<u8>>,
    piece: io::Cursor<Vec<u8>>,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.piece.read(buffer)?;
            if length > 0 || buffer.is_empty() {
                return Ok(length);
            }
            match self.pieces.recv() {
                Ok(piece) => self.piece = io::Cursor::new(piece),
                Err(_) => return Ok(0),
            }
        }
    }
}

/// Gives what is read to the second parser, too.
struct Tee {
    input: Box<dyn Read + Send>,
    /// None when the second parser has ended.
    pieces: Option<SyncSender<Vec<u8>>>,
}

impl Read for Tee {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        if let Some(pieces) = &self.pieces
            && length > 0
            && pieces.send(buffer[..length].to_vec()).is_err()
        {
            self.pieces = None;
        }
        Ok(length)
    }
}

/// The second parser.
pub(crate) struct Watch {
    thread: JoinHandle<(u64, Option<String>)>,
}

impl Watch {
    /// Watches over a text whose contexts are bounded, for what is read is parsed at once: from now
    /// on it has to be read through what is returned. Without a thread, nothing is watched.
    pub(crate) fn start(
        input: Box<dyn Read + Send>,
        base_iri: Option<&str>,
    ) -> (Box<dyn Read + Send>, Option<Self>) {
        let (sender, pieces) = sync_channel(PIECES_WAITING_MAX);
        let base_iri = base_iri.map(str::to_owned);
        let thread = std::thread::Builder::new()
            .name("load-json-ld".to_owned())
            .stack_size(PARSER_STACK_BYTES)
            .spawn(move || {
                let piece = io::Cursor::default();
                count(Pieces { pieces, piece }, base_iri)
            });
        match thread {
            Ok(thread) => {
                let pieces = Some(sender);
                (Box::new(Tee { input, pieces }), Some(Self { thread }))
            }
            Err(error) => {
                tracing::warn!("nobody can tell what JSON-LD leaves out: {error}");
                (input, None)
            }
        }
    }

    /// Once the text was read to its end, and the reader is dropped: what was left out, if `taken`
    /// statements were taken.
    pub(crate) fn left_out(self, taken: u64) -> Option<LeftOut> {
        let (seen, reason) = self.thread.join().ok()?;
        let statements = seen.checked_sub(taken).filter(|&number| number > 0)?;
        Some(LeftOut {
            statements,
            reason: reason.unwrap_or_else(|| "it is no statement of RDF".to_owned()),
        })
    }
}

/// Counts all statements, and describes the first that is none.
fn count(text: Pieces, base_iri: Option<String>) -> (u64, Option<String>) {
    let profile = JsonLdProfileSet::empty();
    let mut parser = RdfParser::from_format(RdfFormat::JsonLd { profile }).lenient();
    if let Some(base_iri) = base_iri {
        parser = match parser.with_base_iri(base_iri) {
            Ok(parser) => parser,
            // The first parser says so.
            Err(_) => return (0, None),
        };
    }
    let (mut seen, mut reason) = (0, None);
    for quad in parser.for_reader(text) {
        // The first parser says so, and nothing is counted.
        let Ok(quad) = quad else { break };
        seen += 1;
        if reason.is_none() {
            reason = wrong_part(&quad);
        }
    }
    (seen, reason)
}

fn wrong_part(quad: &Quad) -> Option<String> {
    let is_wrong = |iri: &NamedNode| NamedNode::new(iri.as_str()).is_err();
    let no_iri = |iri: &NamedNode| {
        let iri = crate::error::clipped(iri.as_str().as_bytes());
        format!("'{iri}' is no absolute IRI")
    };
    if let NamedOrBlankNode::NamedNode(subject) = &quad.subject
        && is_wrong(subject)
    {
        return Some(no_iri(subject));
    }
    if is_wrong(&quad.predicate) {
        let key = crate::error::clipped(quad.predicate.as_str().as_bytes());
        return Some(match key.starts_with("_:") {
            true => format!("the key '{key}' is a blank node, which RDF has not as a predicate"),
            false => format!("the key '{key}' is no IRI, and no @context gives it one"),
        });
    }
    match &quad.object {
        Term::NamedNode(object) if is_wrong(object) => return Some(no_iri(object)),
        Term::Literal(literal) => {
            let tag = literal.language().unwrap_or("en");
            if oxrdf::Literal::new_language_tagged_literal("", tag).is_err() {
                let tag = crate::error::clipped(tag.as_bytes());
                return Some(format!("'{tag}' is no language tag"));
            }
        }
        Term::NamedNode(_) | Term::BlankNode(_) | Term::Triple(_) => {}
    }
    match &quad.graph_name {
        GraphName::NamedNode(name) if is_wrong(name) => Some(no_iri(name)),
        GraphName::NamedNode(_) | GraphName::BlankNode(_) | GraphName::DefaultGraph => None,
    }
}
