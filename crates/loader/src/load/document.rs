//! Loading of one document in memory, for requests that are too small for a bulk load.
//!
//! The same parsers and the same interning as in a load; then the distinct terms and the quads are
//! handed out as they are, for a transaction to give them ids. A document that outgrows its bounds
//! is given up, for a load can take it ([`DocumentError::TooLarge`]): its terms and quads, its text
//! after decompression, and each statement, which parsers hold several times while they read it.

use crate::error::SyntaxError;
use crate::ingest::documents::{DocumentEvents, DocumentSyntax, StatementTooLong, parse_document};
use crate::ingest::interner::{InternedTerms, Interner, LocalQuad};
use crate::ingest::parsing::locate;
use crate::ingest::sort_keys::{BLANK_NODE_KEY, DEFAULT_GRAPH_KEY, INLINE_KEY};
use crate::ingest::triple_keys::{self, MarkedNodes};
use crate::parse::iris::Iris;
use crate::parse::json_ld::LeftOut;
use crate::parse::ntriples::{AfterError, parse_block};
use crate::sources::blocks::{BlockReader, Next};
use crate::sources::decompress::decompressed_text;
use crate::sources::format::Format;
use crate::sources::looks::{Peeked, peek};
use orrery_storage::{ByteCount, reason};
use orrery_term::{LanguageTags, Prefixes, Term, TermId, parse_key};
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// A document may always take so much.
const MEMORY_BYTES_MIN: usize = 4 << 20;

/// Bytes of a block of lines.
const BLOCK_BYTES: usize = 1 << 20;
/// A statement may take one part of so many of the memory.
const STATEMENT_PART: usize = 8;
/// Memory is asked for in steps of so much.
const STEP_BYTES: usize = 1 << 20;

/// The limits of reading a document.
pub struct DocumentBounds<'b> {
    /// Memory of its terms and quads, and the length of its text.
    pub memory_bytes: usize,
    /// Asked before more memory is taken, with all that the document takes then; false gives the
    /// document up.
    pub hold: &'b mut dyn FnMut(usize) -> bool,
    /// Reading ends with [`DocumentError::Abandoned`] when no strong reference to this is left;
    /// never if `None`.
    pub waiting: Option<Weak<()>>,
}

impl std::fmt::Debug for DocumentBounds<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("DocumentBounds");
        shown
            .field("memory_bytes", &self.memory_bytes)
            .finish_non_exhaustive()
    }
}

/// A document in memory.
pub struct Document {
    terms: InternedTerms,
    warning: Option<String>,
    language_tags: LanguageTags,
    prefixes: Prefixes,
}

/// A distinct term of a [`Document`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentTerm<'d> {
    /// The default graph, always the first.
    DefaultGraph,
    /// A blank node of this document and no other, by its label.
    BlankNode(&'d str),
    /// A term that lives inside its id.
    Inline(TermId),
    /// Any other term but a triple term, by its term key.
    Key(&'d [u8]),
    /// A triple term, in which blank nodes have their numbers among the terms of the document.
    Triple(Term<'static>),
    /// No term: no quad has this number.
    Unused,
}

/// The reason why a document could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It needs more memory than it may have.
    #[error("the document needs more than {} of memory", ByteCount(*limit_bytes as u64))]
    TooLarge {
        /// What it may have.
        limit_bytes: usize,
    },
    /// It is wrong, or could not be read to its end.
    #[error("{0}")]
    Syntax(Box<SyntaxError>),
    /// It is no text of RDF.
    #[error("{name}: {what}")]
    NoRdf {
        /// What it is called.
        name: String,
        /// What it is, and what to do about it.
        what: &'static str,
    },
    /// The input ended with an error.
    #[error("{}", reason(.0))]
    Input(io::Error),
    /// It was not read to its end.
    #[error("nobody waits for the document any more")]
    Abandoned,
}

/// Reads a document, plain or compressed, called `name` in messages.
pub fn read_document(
    input: impl Read + Send + 'static,
    name: &str,
    format: Format,
    base_iri: Option<&str>,
    mut bounds: DocumentBounds<'_>,
) -> Result<Document, DocumentError> {
    let waiter = Waiter(bounds.waiting.take());
    let read = read_awaited(input, name, (format, base_iri), bounds, &waiter);
    match waiter.is_gone() {
        // Whatever came of what was not read any more.
        true => Err(DocumentError::Abandoned),
        false => read,
    }
}

fn read_awaited(
    input: impl Read + Send + 'static,
    name: &str,
    (format, base_iri): (Format, Option<&str>),
    bounds: DocumentBounds<'_>,
    waiter: &Waiter,
) -> Result<Document, DocumentError> {
    let mut memory = Memory::new(bounds);
    let too_long = Arc::new(AtomicBool::new(false));
    let left_bytes = memory.bytes_max as u64;
    let bounded = |input| -> Box<dyn Read + Send> {
        Box::new(BoundedText {
            input,
            left_bytes,
            is_exceeded: Arc::clone(&too_long),
            waiter: waiter.clone(),
        })
    };
    let Peeked { text, looks } = decompressed_text(input)
        .map(bounded)
        .and_then(peek)
        .map_err(DocumentError::Input)?;
    if let Some(what) = looks.and_then(|looks| looks.no_rdf(format)) {
        let name = name.to_owned();
        return Err(DocumentError::NoRdf { name, what });
    }
    let mut interner = Interner::new(None);
    let statement_bytes_max = memory.statement_bytes_max();
    let mut events = Events {
        memory: &mut memory,
        left_out: None,
    };
    let read = if format.is_line_based() {
        read_lines(text, name, format, events.memory, &mut interner)
    } else {
        let syntax = DocumentSyntax {
            format,
            base_iri,
            statement_bytes_max,
            skips_errors: false,
            iris: Iris::Right,
        };
        parse_document(text, name, syntax, &mut interner, &mut events)
    };
    let left_out = events.left_out;
    if too_long.load(Ordering::Relaxed) {
        return Err(memory.too_large());
    }
    read.map_err(|error| match error {
        DocumentError::Syntax(error) => DocumentError::Syntax(Box::new(SyntaxError {
            looks_like: looks.and_then(|looks| looks.instead_of(format)),
            ..*error
        })),
        other => other,
    })?;
    memory.check(&interner, 0)?;
    Ok(Document {
        terms: interner.take(),
        warning: left_out.map(|left_out| left_out.describe(name)),
        language_tags: interner.language_tags().clone(),
        prefixes: Prefixes::declared(interner.prefixes().map(|(_, name, iri)| (name, iri))),
    })
}

fn read_lines(
    input: Box<dyn Read + Send>,
    name: &str,
    format: Format,
    memory: &mut Memory<'_>,
    interner: &mut Interner,
) -> Result<(), DocumentError> {
    let line_bytes_max = memory.statement_bytes_max().max(2 * BLOCK_BYTES);
    let mut blocks = BlockReader::new(input, BLOCK_BYTES, line_bytes_max);
    let mut buffer = Vec::new();
    while let Some(next) = blocks.next(buffer).map_err(DocumentError::Input)? {
        let Next::Block(block) = next else {
            return Err(memory.too_large());
        };
        memory.check(interner, block.text().len())?;
        let mut wrong = None;
        let with_graph = format == Format::NQuads;
        parse_block(block.text(), with_graph, interner, &mut |error| {
            wrong = Some(locate(
                (name, format),
                block.text(),
                block.first_line,
                &error,
            ));
            AfterError::Stop
        });
        if let Some(error) = wrong {
            return Err(DocumentError::Syntax(Box::new(error)));
        }
        buffer = block.into_buffer();
        memory.check(interner, buffer.capacity())?;
    }
    Ok(())
}

/// What a document takes, within its bounds.
struct Memory<'b> {
    bytes_max: usize,
    /// What was asked for and may be had.
    granted_bytes: usize,
    hold: &'b mut dyn FnMut(usize) -> bool,
}

impl<'b> Memory<'b> {
    fn new(bounds: DocumentBounds<'b>) -> Self {
        Self {
            // A chunk of quads and one of text are always there.
            bytes_max: bounds.memory_bytes.max(MEMORY_BYTES_MIN),
            granted_bytes: 0,
            hold: bounds.hold,
        }
    }

    fn statement_bytes_max(&self) -> usize {
        self.bytes_max / STATEMENT_PART
    }

    fn too_large(&self) -> DocumentError {
        DocumentError::TooLarge {
            limit_bytes: self.bytes_max,
        }
    }

    /// Fails if what the interner holds, and buffers of so many bytes, are too much.
    fn check(&mut self, interner: &Interner, buffer_bytes: usize) -> Result<(), DocumentError> {
        let held = interner.memory_bytes();
        if held > self.bytes_max || interner.has_too_many_terms() {
            return Err(self.too_large());
        }
        let taken = held + buffer_bytes;
        if taken > self.granted_bytes {
            let wanted = taken.next_multiple_of(STEP_BYTES);
            if !(self.hold)(wanted) {
                return Err(self.too_large());
            }
            self.granted_bytes = wanted;
        }
        Ok(())
    }
}

/// Who waits for a document.
#[derive(Clone)]
struct Waiter(Option<Weak<()>>);

impl Waiter {
    fn is_gone(&self) -> bool {
        let waiting = self.0.as_ref();
        waiting.is_some_and(|waiting| waiting.strong_count() == 0)
    }
}

/// A text that ends with an error where it exceeds its length limit (decompressed text has no
/// length known before), or when nobody waits for it any more. Parsers read every few milliseconds,
/// so the check comes often enough.
struct BoundedText {
    input: Box<dyn Read + Send>,
    left_bytes: u64,
    is_exceeded: Arc<AtomicBool>,
    waiter: Waiter,
}

impl Read for BoundedText {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        // After it: what is waited for may be a network.
        if self.waiter.is_gone() {
            return Err(io::Error::other("nobody waits for the text any more"));
        }
        match self.left_bytes.checked_sub(length as u64) {
            Some(left_bytes) => {
                self.left_bytes = left_bytes;
                Ok(length)
            }
            None => {
                self.is_exceeded.store(true, Ordering::Relaxed);
                Err(io::Error::other("the text is too long"))
            }
        }
    }
}

struct Events<'m, 'b> {
    memory: &'m mut Memory<'b>,
    left_out: Option<LeftOut>,
}

impl DocumentEvents for Events<'_, '_> {
    type Error = DocumentError;

    fn quad_taken(&mut self, interner: &mut Interner) -> Result<(), DocumentError> {
        self.memory.check(interner, 0)
    }

    fn syntax_error(
        &mut self,
        describe: impl FnOnce() -> SyntaxError,
    ) -> Result<(), DocumentError> {
        Err(DocumentError::Syntax(Box::new(describe())))
    }

    fn input_error(&mut self, error: io::Error) -> DocumentError {
        DocumentError::Input(error)
    }

    fn too_long(&mut self, _: StatementTooLong) -> DocumentError {
        self.memory.too_large()
    }

    fn left_out(&mut self, left_out: LeftOut) {
        self.left_out = Some(left_out);
    }

    // Nothing wrong is left out here.
    fn left_out_from(&mut self, _: String) {}

    fn fail(&mut self, error: SyntaxError) -> DocumentError {
        DocumentError::Syntax(Box::new(error))
    }
}

impl Document {
    /// The warning about parts of JSON-LD that were left out.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// About the memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        let quads: usize = self.terms.quads.iter().map(Vec::capacity).sum();
        let keys = std::mem::size_of_val(self.terms.keys.as_slice());
        self.terms.arena.allocated_bytes() + quads * size_of::<LocalQuad>() + keys
    }

    /// The spelling of its language tags.
    pub fn language_tags(&self) -> &LanguageTags {
        &self.language_tags
    }

    /// The prefixes that the document declares.
    pub fn prefixes(&self) -> &Prefixes {
        &self.prefixes
    }

    /// The distinct terms, by their numbers in the quads.
    pub fn terms(&self) -> impl Iterator<Item = DocumentTerm<'_>> {
        let arena = &self.terms.arena;
        let mut marked: Vec<(&[u8], u64)> = Vec::new();
        let keys = || self.terms.keys.iter().map(|&key| arena.get(key));
        if keys().any(|key| triple_keys::marked(key).is_some()) {
            let nodes = (0..).zip(keys());
            marked.extend(nodes.filter_map(|(number, key)| {
                let is_node = key.first() == Some(&BLANK_NODE_KEY);
                (is_node && triple_keys::marked(key).is_none()).then_some((key, number))
            }));
            marked.sort_unstable();
        }
        let mut nodes = MarkedNodes::default();
        for (key, number) in marked {
            nodes.push(key, number);
        }
        keys().map(move |key| term(key, &nodes))
    }

    /// Subject, predicate, object and graph of each quad, as numbers of terms.
    pub fn quads(&self) -> impl Iterator<Item = LocalQuad> {
        self.terms.quads.iter().flatten().copied()
    }
}

/// Reads a sort key of the interner.
fn term<'k>(key: &'k [u8], nodes: &MarkedNodes) -> DocumentTerm<'k> {
    match key {
        [DEFAULT_GRAPH_KEY] => DocumentTerm::DefaultGraph,
        key if triple_keys::marked(key).is_some() => DocumentTerm::Unused,
        key if triple_keys::is_triple(key) => {
            let mut numbered = Vec::new();
            let written = nodes.write_key(key, &mut numbered);
            let term = written.and_then(|()| parse_key(&numbered).ok().map(Term::into_owned));
            // All blank nodes have a number: the key was made of them.
            term.map_or(DocumentTerm::Unused, DocumentTerm::Triple)
        }
        // The label stands behind the number of the file.
        [BLANK_NODE_KEY, _, _, _, _, label @ ..] => {
            DocumentTerm::BlankNode(std::str::from_utf8(label).unwrap_or_default())
        }
        [INLINE_KEY, bits @ ..] => {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(bits);
            DocumentTerm::Inline(TermId::from_bits(u64::from_be_bytes(bytes)))
        }
        key => DocumentTerm::Key(key),
    }
}

/// What a load that leaves out wrong statements takes of a text, and how many errors it tells;
/// nothing where it fails.
#[cfg(test)]
pub(crate) fn read_skipping(
    text: &[u8],
    format: Format,
    skips_errors: bool,
) -> Option<(Document, usize)> {
    struct Counted(usize, bool);
    impl DocumentEvents for Counted {
        type Error = ();
        fn quad_taken(&mut self, _: &mut Interner) -> Result<(), ()> {
            Ok(())
        }
        fn syntax_error(&mut self, describe: impl FnOnce() -> SyntaxError) -> Result<(), ()> {
            // Told of whatever is wrong.
            let _ = describe().to_string();
            self.0 += 1;
            if self.1 { Ok(()) } else { Err(()) }
        }
        fn input_error(&mut self, _: io::Error) {}
        fn too_long(&mut self, _: StatementTooLong) {}
        fn left_out(&mut self, _: LeftOut) {}
        fn left_out_from(&mut self, _: String) {}
        fn fail(&mut self, _: SyntaxError) {}
    }
    let mut interner = Interner::new(None);
    let mut counted = Counted(0, skips_errors);
    if format.is_line_based() {
        let after = if skips_errors {
            AfterError::Skip
        } else {
            AfterError::Stop
        };
        let with_graph = format == Format::NQuads;
        let is_read = parse_block(text, with_graph, &mut interner, &mut |_| {
            counted.0 += 1;
            after
        });
        is_read.then_some(())?;
    } else {
        let syntax = DocumentSyntax {
            format,
            base_iri: Some("http://base.example/dir/file"),
            statement_bytes_max: 1 << 20,
            skips_errors,
            iris: Iris::Right,
        };
        let input = Box::new(io::Cursor::new(text.to_vec()));
        parse_document(input, "test", syntax, &mut interner, &mut counted).ok()?;
    }
    let document = Document {
        terms: interner.take(),
        warning: None,
        language_tags: LanguageTags::default(),
        prefixes: Prefixes::default(),
    };
    Some((document, counted.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_term::Triple;

    fn read(text: &'static str, format: Format) -> Result<Document, DocumentError> {
        read_document(
            text.as_bytes(),
            "test",
            format,
            Some("http://e/base"),
            DocumentBounds {
                memory_bytes: 64 << 20,
                hold: &mut |_| true,
                waiting: None,
            },
        )
    }

    #[test]
    fn terms_and_quads_of_all_kinds_come_out() {
        for format in [Format::Turtle, Format::NTriples, Format::NQuads] {
            let text = "<http://e/a> <http://e/p> _:x .\n_:x <http://e/p> 1 .\n";
            let text = match format {
                Format::Turtle => text,
                _ => {
                    "<http://e/a> <http://e/p> _:x .\n\
                      _:x <http://e/p> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n"
                }
            };
            let document = read(text, format).unwrap();
            let terms: Vec<DocumentTerm<'_>> = document.terms().collect();
            let quads: Vec<_> = document.quads().collect();
            assert_eq!(terms[0], DocumentTerm::DefaultGraph);
            assert_eq!(quads.len(), 2);
            let DocumentTerm::Key(key) = &terms[quads[0][0] as usize] else {
                panic!("{terms:?}");
            };
            assert_eq!(parse_key(key).unwrap(), Term::iri("http://e/a"));
            assert!(matches!(
                terms[quads[0][2] as usize],
                DocumentTerm::BlankNode(_)
            ));
            assert_eq!(quads[0][2], quads[1][0]);
            assert!(matches!(
                terms[quads[1][2] as usize],
                DocumentTerm::Inline(_)
            ));
            assert_eq!(quads[0][3], 0);
        }
    }

    #[test]
    fn triple_terms_name_blank_nodes_by_their_numbers() {
        let text = "<http://e/a> <http://e/p> <<( _:x <http://e/p> _:y )>> .\n\
                    _:y <http://e/p> _:x .\n";
        for format in [Format::Turtle, Format::NTriples] {
            let document = read(text, format).unwrap();
            let terms: Vec<DocumentTerm<'_>> = document.terms().collect();
            let quads: Vec<_> = document.quads().collect();
            let DocumentTerm::Triple(triple) = &terms[quads[0][2] as usize] else {
                panic!("{terms:?}");
            };
            let [y, _, x, _] = quads[1].map(u64::from);
            let expected = Triple::new(
                Term::BlankNode(x),
                Term::iri("http://e/p"),
                Term::BlankNode(y),
            );
            assert_eq!(*triple, expected.unwrap().into());
        }
    }

    #[test]
    fn errors_have_their_line() {
        for format in [Format::Turtle, Format::NTriples] {
            match read("<http://e/a> <http://e/p> <http://e/b> .\n<a", format) {
                Err(DocumentError::Syntax(error)) => assert_eq!(error.line, Some(2), "{error}"),
                Err(other) => panic!("{other}"),
                Ok(_) => panic!("accepted"),
            }
        }
    }

    fn bounded(
        text: String,
        format: Format,
        memory_bytes: usize,
        held_max: usize,
    ) -> (Result<Document, DocumentError>, usize) {
        let mut most = 0;
        let mut hold = |bytes: usize| {
            most = most.max(bytes);
            bytes <= held_max
        };
        let bounds = DocumentBounds {
            memory_bytes,
            hold: &mut hold,
            waiting: None,
        };
        let input = io::Cursor::new(text.into_bytes());
        (read_document(input, "test", format, None, bounds), most)
    }

    fn many(lines: u32) -> String {
        (0..lines)
            .map(|n| format!("<http://e/{n}> <http://e/p> <http://e/o{n}> .\n"))
            .collect()
    }

    #[test]
    fn a_document_beyond_its_bound_is_given_up() {
        for format in [Format::NTriples, Format::Turtle] {
            let (read, _) = bounded(many(100_000), format, 4 << 20, usize::MAX);
            assert!(matches!(read, Err(DocumentError::TooLarge { .. })));
        }
    }

    #[test]
    fn memory_is_asked_for_before_it_is_taken() {
        for format in [Format::NTriples, Format::Turtle] {
            let (read, most) = bounded(many(100_000), format, 1 << 30, usize::MAX);
            let document = read.unwrap();
            assert_eq!(document.quads().count(), 100_000);
            assert!(
                document.memory_bytes() <= most,
                "{} {most}",
                document.memory_bytes()
            );
            let (read, most) = bounded(many(100_000), format, 1 << 30, 3 << 20);
            assert!(matches!(read, Err(DocumentError::TooLarge { .. })));
            assert!(most <= 8 << 20, "{most}");
        }
    }

    #[test]
    fn one_long_literal_or_comment_is_given_up_before_it_stands_in_memory() {
        let text = "x".repeat(20 << 20);
        let literal = format!("<http://e/s> <http://e/p> \"{text}\" .\n");
        let comment = format!("# {text}\n<http://e/s> <http://e/p> <http://e/o> .\n");
        for format in [Format::NTriples, Format::Turtle] {
            for document in [&literal, &comment] {
                let (read, most) = bounded(document.clone(), format, 64 << 20, usize::MAX);
                assert!(
                    matches!(read, Err(DocumentError::TooLarge { .. })),
                    "{format:?}"
                );
                assert!(most <= 8 << 20, "{format:?} {most}");
            }
        }
    }

    #[test]
    fn a_text_that_decompresses_to_too_much_is_given_up() {
        use std::io::Write;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        for _ in 0..64 {
            gzip.write_all(&[b'\n'; 1 << 20]).unwrap();
        }
        let input = io::Cursor::new(gzip.finish().unwrap());
        let bounds = DocumentBounds {
            memory_bytes: 32 << 20,
            hold: &mut |_| true,
            waiting: None,
        };
        let read = read_document(input, "test", Format::Turtle, None, bounds);
        assert!(matches!(read, Err(DocumentError::TooLarge { .. })));
    }

    /// Gives a text, and counts what was read of it; whoever waits goes in the middle.
    struct WhileSomebodyWaits {
        text: io::Cursor<Vec<u8>>,
        waiting: Option<Arc<()>>,
        read_bytes: Arc<std::sync::atomic::AtomicUsize>,
    }

    impl Read for WhileSomebodyWaits {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.text.read(buffer)?;
            let before = self.read_bytes.fetch_add(length, Ordering::Relaxed);
            if before + length > self.text.get_ref().len() / 4 {
                self.waiting = None;
            }
            Ok(length)
        }
    }

    #[test]
    fn a_document_that_nobody_waits_for_is_not_read_on() {
        let rdf_xml = |lines: u32| {
            let nodes: String = (0..lines)
                .map(|n| format!("<rdf:Description rdf:about=\"http://e/{n}\"><e:p>{n}</e:p></rdf:Description>\n"))
                .collect();
            format!(
                "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"http://e/\">\n{nodes}</rdf:RDF>"
            )
        };
        let json = |lines: u32| {
            let nodes: Vec<String> = (0..lines)
                .map(|n| format!("{{\"@id\": \"http://e/{n}\", \"http://e/p\": {n}}}"))
                .collect();
            format!("[{}]", nodes.join(",\n"))
        };
        for (format, text) in [
            (Format::NTriples, many(200_000)),
            (Format::NQuads, many(200_000)),
            (Format::Turtle, many(100_000)),
            (Format::TriG, many(100_000)),
            (Format::RdfXml, rdf_xml(100_000)),
            (Format::JsonLd, json(100_000)),
        ] {
            let (length, waiting) = (text.len(), Arc::new(()));
            let read_bytes = Arc::default();
            let bounds = DocumentBounds {
                memory_bytes: 1 << 30,
                hold: &mut |_| true,
                waiting: Some(Arc::downgrade(&waiting)),
            };
            let input = WhileSomebodyWaits {
                text: io::Cursor::new(text.into_bytes()),
                waiting: Some(waiting),
                read_bytes: Arc::clone(&read_bytes),
            };
            let read = read_document(input, "test", format, None, bounds);
            assert!(matches!(read, Err(DocumentError::Abandoned)), "{format:?}");
            let read_bytes = read_bytes.load(Ordering::Relaxed);
            assert!(
                read_bytes < length / 4 + (2 << 20),
                "{format:?} {read_bytes}"
            );
        }
    }
}
