//! Parsing of whole documents in Turtle, TriG, RDF/XML and JSON-LD, each by one parser.
//!
//! These formats cannot be cut at line ends, so one worker reads one file from its start
//! to its end. Their parsers check everything; terms are taken over as they are. Positions in error
//! messages are the parser's own where it has any; that of JSON has none, so the text is handed to
//! it line by line and the last line handed over is reported.
//!
//! Where JSON-LD leaves something out, that is told (`json_ld`).
//!
//! What a parser holds until a statement comes of it is bounded by the text that it was given since
//! the last one.

use crate::error::SyntaxError;
use crate::ingest::interner::{Interner, LocalId};
use crate::parse::iris::Iris;
use crate::parse::json_contexts::BoundedContexts;
use crate::parse::json_ld::{LeftOut, Watch};
use crate::parse::json_numbers::{JsonNumbers, Replaced};
use crate::parse::json_reader::{JsonReader, WrongJson};
use crate::parse::ntriples::TermSink;
use crate::parse::rdf_xml::{self, Problem, RdfXmlReader, in_utf8};
use crate::parse::statement_reader::{self, After, StatementReader, Trouble};
use crate::parse::turtle::TurtleReader;
use crate::parse::window::{Found, Window, WindowReader};
use crate::parse::xml_entities::Entities;
use crate::sources::format::Format;
use orrery_term::LanguageTags;
use orrery_term::language::{TagFinder, TagSyntax};
use orrery_term::nesting::Nesting;
use orrery_term::{Direction, Prefixes, TRIPLE_DEPTH_MAX};
use oxrdf::vocab::xsd;
use oxrdf::{BaseDirection, GraphName, NamedOrBlankNode, Quad, Term};
use oxrdfio::RdfParseError;
use oxttl::{TriGParser, TurtleParser};
use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;
use std::sync::Arc;

/// The longest token of JSON-LD; its parser has this limit.
const JSON_TOKEN_BYTES_MAX: usize = 16 << 20;

/// Two parsers read JSON-LD, so each may hold one part of so many.
const JSON_PART: u64 = 2;

/// A statement that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StatementTooLong {
    /// The line where it begins, or the last one before it.
    pub(crate) line: u64,
    /// How long it, or a token of it, may be.
    pub(crate) bytes_max: usize,
}

/// What to do after each statement or error of a document.
pub(crate) trait DocumentEvents {
    /// Why reading ends early.
    type Error;
    /// After each quad; may seal the interner's batch.
    fn quad_taken(&mut self, interner: &mut Interner) -> Result<(), Self::Error>;
    /// After each syntax error; what is said of it is made for those only that are told.
    fn syntax_error(&mut self, describe: impl FnOnce() -> SyntaxError) -> Result<(), Self::Error>;
    /// When the input cannot be read on.
    fn input_error(&mut self, error: io::Error) -> Self::Error;
    /// When the parser would have to hold too much.
    fn too_long(&mut self, statement: StatementTooLong) -> Self::Error;
    /// At the end, where statements of JSON-LD were left out.
    fn left_out(&mut self, left_out: LeftOut);
    /// Where wrong statements are left out, and a document is not read to its end: what is said of
    /// it.
    fn left_out_from(&mut self, said: String);
    /// When statements that were given may be wrong, whether wrong ones are left out or not.
    fn fail(&mut self, error: SyntaxError) -> Self::Error;
}

/// How a document is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DocumentSyntax<'b> {
    pub(crate) format: Format,
    pub(crate) base_iri: Option<&'b str>,
    /// What the parser may hold of the text, and what it makes of it.
    pub(crate) statement_bytes_max: usize,
    /// Whether wrong statements are left out.
    pub(crate) skips_errors: bool,
    pub(crate) iris: Iris,
}

/// Reads a whole document into `interner`.
pub(crate) fn parse_document<E: DocumentEvents>(
    input: Box<dyn Read + Send>,
    name: &str,
    syntax: DocumentSyntax<'_>,
    interner: &mut Interner,
    events: &mut E,
) -> Result<(), E::Error> {
    let format = syntax.format;
    let tag_syntax = match format {
        Format::RdfXml => TagSyntax::Xml,
        Format::JsonLd => TagSyntax::JsonLd,
        _ => TagSyntax::At,
    };
    let window = Rc::new(RefCell::new(Window {
        statement_line: 1,
        tags: TagFinder::new(tag_syntax),
        nesting: Nesting::of(tag_syntax),
        bytes: Vec::new(),
        end: 0,
        lines: 0,
        last_line: Vec::new(),
        entities: (format == Format::RdfXml).then(Entities::default),
        statement_start: 0,
        is_exceeded: false,
    }));
    let numbers = Replaced::new();
    // The tags of what was taken, which the parsers put into lower case.
    let mut taken_tags = LanguageTags::default();
    let (input, watch, held_max) = match format {
        Format::JsonLd => {
            let input = JsonNumbers::new(input, Arc::clone(&numbers));
            let input = Box::new(BoundedContexts::new(input));
            let (input, watch) = Watch::start(input, syntax.base_iri);
            (input, watch, syntax.statement_bytes_max as u64 / JSON_PART)
        }
        Format::RdfXml => {
            let input = in_utf8(input).map_err(|error| events.input_error(error))?;
            (input, None, syntax.statement_bytes_max as u64)
        }
        _ => (input, None, syntax.statement_bytes_max as u64),
    };
    let reader = WindowReader {
        input,
        window: Rc::clone(&window),
        pending: Vec::new(),
        pending_start: 0,
        by_line: format == Format::JsonLd,
        statement_bytes_max: held_max,
    };
    let mut quads = Quads::new(reader, syntax).map_err(|error| events.input_error(error))?;
    let mut prefixes = Prefixes::default();
    // The statements that the parser gave, until it found an error.
    let mut given = Some(0);
    while let Some(quad) = quads.next() {
        match quad {
            Ok(mut quad) => {
                if given == Some(0) {
                    // Those of JSON-LD hold within what is open.
                    quads.note_prefixes(&mut prefixes);
                }
                given = given.map(|number| number + 1);
                window.borrow_mut().end_statement();
                if format == Format::JsonLd {
                    numbers.restore(&mut quad.object);
                }
                match take(&quad, interner, &mut taken_tags) {
                    Ok(()) => events.quad_taken(interner)?,
                    Err(message) => {
                        interner.note_wrong_statement();
                        events
                            .syntax_error(|| window.borrow().describe_quad(name, &quad, message))?;
                    }
                }
            }
            Err(Wrong::Input(error)) => {
                let line = window.borrow().statement_line;
                let bytes_max = match window.borrow().is_exceeded {
                    true => usize::try_from(held_max).unwrap_or(usize::MAX),
                    // Of our parsers only that of JSON says so.
                    false if error.kind() == io::ErrorKind::OutOfMemory => JSON_TOKEN_BYTES_MAX,
                    false => return Err(events.input_error(error)),
                };
                return Err(events.too_long(StatementTooLong { line, bytes_max }));
            }
            Err(Wrong::Statement(found, after)) => {
                given = None;
                window.borrow_mut().end_statement();
                let describe = || window.borrow().describe(name, format, &found);
                match after {
                    After::Fails => return Err(events.fail(describe())),
                    After::Ends { line } if syntax.skips_errors => {
                        let told = describe();
                        events.left_out_from(left_out_from((name, format), line));
                        events.syntax_error(|| told)?;
                        break;
                    }
                    After::Ends { .. } | After::GoesOn => events.syntax_error(describe)?,
                }
            }
        }
    }
    quads.note_prefixes(&mut prefixes);
    interner.note_prefixes(&prefixes);
    // The second parser of JSON-LD ends with what the first was given.
    drop(quads);
    if let (Some(watch), Some(given)) = (watch, given)
        && let Some(left_out) = watch.left_out(given)
    {
        events.left_out(left_out);
    }
    let window = window.borrow();
    for tag in taken_tags.iter() {
        let written = window.tags.found().written(tag);
        interner.language_tag(written.unwrap_or(tag));
    }
    Ok(())
}

/// What is said of a document that is not read to its end, of which the line is the last that is
/// known.
fn left_out_from((name, format): (&str, Format), line: u64) -> String {
    if format == Format::JsonLd {
        return format!(
            "{name}: all of it was left out, for nobody can tell which of its statements are right; correct it, and load it again"
        );
    }
    let line = line + 1;
    format!(
        "{name}: all from line {line} to its end was left out, for nobody can tell where its next statement begins; correct what is wrong there, \
         and load it again"
    )
}

/// What a parser found wrong.
enum Wrong {
    Input(io::Error),
    Statement(Found, After),
}

/// The parser of a format over a text.
enum Quads {
    Turtle(Box<TurtleReader<WindowReader>>),
    Statements(Box<StatementReader<WindowReader>>),
    RdfXml(Box<RdfXmlReader<WindowReader>>),
    Json(Box<JsonReader>),
}

impl Quads {
    fn new(reader: WindowReader, syntax: DocumentSyntax<'_>) -> io::Result<Self> {
        let not_a_base = |error: oxiri::IriParseError| io::Error::other(error.to_string());
        let DocumentSyntax {
            format, base_iri, ..
        } = syntax;
        let is_by_statement = syntax.skips_errors || syntax.iris == Iris::AsWritten;
        Ok(match format {
            Format::Turtle | Format::TriG | Format::NTriples | Format::NQuads
                if is_by_statement =>
            {
                let reading = statement_reader::Reading {
                    base_iri,
                    has_graphs: matches!(format, Format::TriG | Format::NQuads),
                    iris: syntax.iris,
                    held_bytes_max: syntax.statement_bytes_max,
                };
                Self::Statements(Box::new(StatementReader::new(reader, reading)?))
            }
            Format::Turtle | Format::NTriples => {
                let mut parser = TurtleParser::new();
                if let Some(base_iri) = base_iri {
                    parser = parser.with_base_iri(base_iri).map_err(not_a_base)?;
                }
                Self::Turtle(Box::new(TurtleReader::turtle(parser, reader)))
            }
            Format::TriG | Format::NQuads => {
                let mut parser = TriGParser::new();
                if let Some(base_iri) = base_iri {
                    parser = parser.with_base_iri(base_iri).map_err(not_a_base)?;
                }
                Self::Turtle(Box::new(TurtleReader::trig(parser, reader)))
            }
            Format::RdfXml => {
                let reading = rdf_xml::Reading {
                    base_iri,
                    iris: syntax.iris,
                    skips_within_bytes: syntax.skips_errors.then_some(syntax.statement_bytes_max),
                };
                Self::RdfXml(Box::new(RdfXmlReader::new(reader, reading)?))
            }
            Format::JsonLd => {
                let held = syntax.skips_errors.then_some(syntax.statement_bytes_max);
                Self::Json(Box::new(JsonReader::new(reader, base_iri, held)?))
            }
        })
    }

    fn next(&mut self) -> Option<Result<Quad, Wrong>> {
        Some(match self {
            Self::Turtle(parser) => parser.next()?.map_err(|error| match error {
                RdfParseError::Io(error) => Wrong::Input(error),
                RdfParseError::Syntax(error) => Wrong::Statement((&error).into(), After::GoesOn),
            }),
            Self::Statements(parser) => parser.next()?.map_err(|trouble| match trouble {
                Trouble::Input(error) => Wrong::Input(error),
                Trouble::Wrong(wrong) => {
                    let place = Some((wrong.start, wrong.end_offset));
                    Wrong::Statement(Found::said_by_parser(wrong.message, place), wrong.after)
                }
            }),
            Self::RdfXml(parser) => parser.next()?.map_err(|problem| match problem {
                Problem::Input(error) => Wrong::Input(error),
                Problem::Fault(fault) => {
                    let after = match fault.ends_reading {
                        true => After::Ends {
                            line: fault.place.start.line,
                        },
                        false => After::GoesOn,
                    };
                    Wrong::Statement(fault.into(), after)
                }
            }),
            Self::Json(parser) => parser.next()?.map_err(|wrong| match wrong {
                WrongJson::Input(error) => Wrong::Input(error),
                WrongJson::Document(error, after) => Wrong::Statement((&error).into(), after),
            }),
        })
    }

    /// Takes the prefixes that are declared at this place of the text.
    fn note_prefixes(&self, prefixes: &mut Prefixes) {
        match self {
            Self::Turtle(parser) => parser.note_prefixes(prefixes),
            Self::Statements(parser) => parser.note_prefixes(prefixes),
            Self::RdfXml(parser) => {
                for (name, iri, _) in parser.prefixes().iter() {
                    prefixes.note_loaded(name, iri);
                }
            }
            Self::Json(parser) => parser.note_prefixes(prefixes),
        }
    }
}

/// Takes a quad, and notes its language tag.
fn take(
    quad: &Quad,
    interner: &mut Interner,
    tags: &mut LanguageTags,
) -> Result<(), Cow<'static, str>> {
    let subject = take_node(&quad.subject, interner);
    let predicate = interner.parsed_iri(quad.predicate.as_str());
    let object = take_object(&quad.object, (interner, tags), 0)?;
    let graph = match &quad.graph_name {
        GraphName::DefaultGraph => None,
        GraphName::NamedNode(named) => Some(interner.parsed_iri(named.as_str())),
        GraphName::BlankNode(blank) => Some(interner.blank_node(blank.as_str())),
    };
    interner.quad(subject, predicate, object, graph);
    Ok(())
}

fn take_node(node: &NamedOrBlankNode, interner: &mut Interner) -> LocalId {
    match node {
        NamedOrBlankNode::NamedNode(named) => interner.parsed_iri(named.as_str()),
        NamedOrBlankNode::BlankNode(blank) => interner.blank_node(blank.as_str()),
    }
}

/// Takes an object within so many triple terms in.
fn take_object(
    object: &Term,
    (interner, tags): (&mut Interner, &mut LanguageTags),
    depth: usize,
) -> Result<LocalId, Cow<'static, str>> {
    Ok(match object {
        Term::NamedNode(named) => interner.parsed_iri(named.as_str()),
        Term::BlankNode(blank) => interner.blank_node(blank.as_str()),
        Term::Literal(literal) => take_literal(literal, interner, tags),
        // Beyond the limit the interner refuses whatever stands there instead.
        Term::Triple(_) if depth > TRIPLE_DEPTH_MAX => interner.string(""),
        Term::Triple(triple) => {
            let subject = take_node(&triple.subject, interner);
            let predicate = interner.parsed_iri(triple.predicate.as_str());
            let object = take_object(&triple.object, (interner, tags), depth + 1)?;
            interner.triple(subject, predicate, object)?
        }
    })
}

fn take_literal(
    literal: &oxrdf::Literal,
    interner: &mut Interner,
    tags: &mut LanguageTags,
) -> LocalId {
    if let Some(tag) = literal.language() {
        let tag = match tag.bytes().any(|c| c.is_ascii_uppercase()) {
            true => Cow::Owned(tag.to_ascii_lowercase()),
            false => Cow::Borrowed(tag),
        };
        tags.note(&tag);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::window::WINDOW_BYTES;

    #[derive(Default)]
    struct Collect {
        errors: Vec<SyntaxError>,
        too_long: Option<StatementTooLong>,
        left_out: Option<LeftOut>,
        stop: bool,
    }

    impl DocumentEvents for Collect {
        type Error = ();
        fn quad_taken(&mut self, _: &mut Interner) -> Result<(), ()> {
            Ok(())
        }
        fn syntax_error(&mut self, describe: impl FnOnce() -> SyntaxError) -> Result<(), ()> {
            self.errors.push(describe());
            if self.stop { Err(()) } else { Ok(()) }
        }
        fn input_error(&mut self, error: io::Error) {
            panic!("{error}");
        }
        fn too_long(&mut self, statement: StatementTooLong) {
            self.too_long = Some(statement);
        }
        fn left_out(&mut self, left_out: LeftOut) {
            self.left_out = Some(left_out);
        }
        fn left_out_from(&mut self, said: String) {
            panic!("{said}");
        }
        fn fail(&mut self, error: SyntaxError) {
            panic!("{error}");
        }
    }

    fn parse(text: &'static str, format: Format) -> (u64, Vec<SyntaxError>) {
        let (quads, events) = parse_bounded(text.as_bytes(), format, usize::MAX);
        assert_eq!(events.too_long, None);
        (quads, events.errors)
    }

    fn parse_bounded(text: &'static [u8], format: Format, bytes_max: usize) -> (u64, Collect) {
        let mut interner = Interner::new(None);
        let mut events = Collect::default();
        let syntax = DocumentSyntax {
            format,
            base_iri: Some("http://example.org/"),
            statement_bytes_max: bytes_max,
            skips_errors: false,
            iris: Iris::Right,
        };
        let result = parse_document(Box::new(text), "f", syntax, &mut interner, &mut events);
        assert_eq!(result.is_err(), events.too_long.is_some());
        (interner.quad_count(), events)
    }

    #[test]
    fn what_a_parser_holds_is_bounded_and_told_by_its_line() {
        let long = "x".repeat(20 << 20);
        let texts = [
            (Format::Turtle, "<a> <b> 1 .\n\n<a> <b> \"@\" .\n"),
            (Format::TriG, "<g> { <a> <b> 1 .\n\n<a> <b> \"@\" }\n"),
            (
                Format::RdfXml,
                "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"urn:e:\">\n\
                 <e:T rdf:about=\"a\">\n<e:p>@</e:p></e:T>\n</rdf:RDF>",
            ),
        ];
        for (format, text) in texts {
            let text: &'static str = Box::leak(text.replace('@', &long).into_boxed_str());
            let (quads, events) = parse_bounded(text.as_bytes(), format, usize::MAX);
            assert_eq!(
                (quads, events.too_long),
                (2, None),
                "{format:?} {:?}",
                events.errors
            );
            let (quads, events) = parse_bounded(text.as_bytes(), format, 1 << 20);
            let expected = StatementTooLong {
                line: 3,
                bytes_max: 1 << 20,
            };
            assert_eq!((quads, events.too_long), (1, Some(expected)), "{format:?}");
        }
        let json = format!("{{\"@id\": \"a\",\n \"urn:p\": \"{long}\"}}");
        let (_, events) = parse_bounded(
            Box::leak(json.into_boxed_str()).as_bytes(),
            Format::JsonLd,
            usize::MAX,
        );
        let bytes_max = events.too_long.map(|statement| statement.bytes_max);
        assert_eq!(bytes_max, Some(JSON_TOKEN_BYTES_MAX));
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
    fn what_json_ld_leaves_out_is_counted_and_the_first_described() {
        let cases = [
            (r#"{"@id": "a", "urn:p": 1}"#, 1, None),
            (
                r#"{"@id": "a", "name": "x", "urn:p": 1}"#,
                1,
                Some((1, "'name'")),
            ),
            // What stands below goes with the key.
            (
                r#"{"@id": "a", "urn:p": 1, "knows": {"@id": "b", "urn:p": 2}}"#,
                1,
                Some((2, "'knows'")),
            ),
            (
                r#"{"@context": {"@base": null}, "@id": "a", "urn:p": [1, 2]}"#,
                0,
                Some((2, "'a'")),
            ),
            (r#"[{"@id": "a", "_:p": 1}]"#, 0, Some((1, "'_:p'"))),
            (
                r#"{"@context": {"name": null}, "@id": "a", "name": 1, "urn:p": 2}"#,
                1,
                None,
            ),
        ];
        for (text, quads, left_out) in cases {
            let (found, events) = parse_bounded(text.as_bytes(), Format::JsonLd, usize::MAX);
            assert_eq!((found, events.errors), (quads, vec![]), "{text}");
            let described = events.left_out.map(|left_out| {
                let text = left_out.describe("f");
                (left_out.statements, text)
            });
            match (left_out, described) {
                (None, None) => {}
                (Some((number, part)), Some((statements, sentence))) => {
                    assert_eq!(statements, number, "{text}: {sentence}");
                    assert!(sentence.contains(part), "{text}: {sentence}");
                }
                (_, described) => panic!("{text}: {described:?}"),
            }
        }
    }

    #[test]
    fn whole_numbers_of_json_ld_are_integers_below_ten_to_the_21st() {
        let text = r#"{"@context": {"@vocab": "http://e/", "d": {"@type": "http://www.w3.org/2001/XMLSchema#double"}, "j": {"@type": "@json"}},
            "@id": "http://e/a", "n": [9223372036854775808, 100000000000000000000, -123456789012345678901, 1.5e20, 1e21],
            "d": 100000000000000000000, "j": [1e20, 5], "s": "100000000000000000000"}"#;
        let text = text.as_bytes();
        let (document, errors) =
            crate::load::document::read_skipping(text, Format::JsonLd, false).unwrap();
        assert_eq!(errors, 0);
        let mut terms: Vec<String> = document
            .terms()
            .map(|term| match term {
                crate::load::document::DocumentTerm::Key(key) => {
                    format!("{:?}", orrery_term::parse_key(key).unwrap())
                }
                other => format!("{other:?}"),
            })
            .collect();
        terms.retain(|term| {
            term.contains("0000")
                || term.contains("E2")
                || term.contains("7589012345678901")
                || term.contains("5678901")
        });
        let all = terms.join("\n");
        for expected in [
            "-123456789012345678901",
            "\"100000000000000000000\"",
            "150000000000000000000",
            "[100000000000000000000,5]",
        ] {
            assert!(all.contains(expected), "{expected}: {all}");
        }
    }

    #[test]
    fn a_document_of_xml_that_is_cut_is_wrong() {
        let whole = "<?xml version=\"1.0\"?>\n<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" \
                     xmlns:e=\"urn:e:\">\n <e:T rdf:about=\"a\">\n  <e:p>text</e:p>\n </e:T>\n <!-- <e:T> -->\n\
                     </rdf:RDF>\n<!-- the end -->\n";
        assert_eq!(parse(whole, Format::RdfXml), (2, vec![]));
        let root = whole.find("<rdf:RDF").unwrap() + 1;
        let closed = whole.find("</rdf:RDF>").unwrap() + "</rdf:RDF>".len();
        for end in root..closed {
            let (_, errors) = parse(&whole[..end], Format::RdfXml);
            assert_eq!(errors.len(), 1, "{:?}: {errors:?}", &whole[..end]);
            assert!(errors[0].line.is_some(), "{:?}", errors[0]);
        }
        // Behind a whole element, and with statements read.
        let (quads, errors) = parse(&whole[..whole.find("\n <!--").unwrap()], Format::RdfXml);
        assert_eq!((quads, errors[0].line), (2, Some(5)), "{errors:?}");
        assert_eq!(
            errors[0].to_string(),
            "f:5:8: the file ends before its first element is closed; it may have been cut; fetch or write it anew"
        );
        for typed in ["<e:T xmlns:e='urn:e:'>", "<T xmlns='urn:e:'> \n <p>1</p>\n"] {
            assert_eq!(parse(typed, Format::RdfXml).1.len(), 1, "{typed}");
        }
        // Namespaces by entities, which the parser does not tell.
        let entities = "<!DOCTYPE e:T [<!ENTITY e \"urn:e:\">]>\n<e:T xmlns:e=\"&e;\" e:p=\"1\">\n";
        assert_eq!(parse(entities, Format::RdfXml).1.len(), 1);
        let closed: &'static str = Box::leak(format!("{entities}</e:T>").into_boxed_str());
        assert_eq!(parse(closed, Format::RdfXml).1, vec![]);
        let (_, errors) = parse("<?xml version=\"1.0\"?>\n", Format::RdfXml);
        assert_eq!(errors[0].message, "the file ends before its first element");
        assert_eq!(parse("", Format::RdfXml).1, vec![]);
    }

    #[test]
    fn bytes_that_are_no_characters_are_told_with_the_way_to_convert_them() {
        let texts: [(Format, &'static [u8]); 4] = [
            (Format::Turtle, b"<a> <b> \"caf\xe9\" .\n"),
            (Format::TriG, b"<a> <b> \"caf\xe9\" .\n"),
            (
                Format::RdfXml,
                b"<e:T xmlns:e='urn:e:'><e:p>caf\xe9</e:p></e:T>",
            ),
            (Format::JsonLd, b"{\"@id\": \"a\", \"urn:p\": \"caf\xe9\"}"),
        ];
        for (format, text) in texts {
            let (_, events) = parse_bounded(text, format, usize::MAX);
            let said = events.errors[0].to_string();
            let mend = "the file is not UTF-8; convert it, e.g. `iconv -f latin1 -t utf-8`";
            assert!(said.contains(mend), "{format:?}: {said}");
        }
    }

    #[test]
    fn an_error_whose_text_is_gone_shows_no_other_text() {
        // What comes last looks like many a mistake.
        let text = format!(
            "<a> <b> 1 .\n<a> <b> \"\"\"{}\"en_GB foaf:x . \n",
            "x y\n".repeat(3 * WINDOW_BYTES / 4)
        );
        let (_, errors) = parse(Box::leak(text.into_boxed_str()), Format::Turtle);
        let error = &errors[0];
        assert_eq!((error.line, error.column), (Some(2), Some(9)), "{error}");
        assert_eq!((&error.excerpt, &error.mend), (&None, &None));
        assert_eq!(error.text, "");
        let near = "<a> <b> 1 .\n<a> <b> \"\"\"x y\n";
        let (_, errors) = parse(near, Format::Turtle);
        assert!(errors[0].excerpt.is_some() && errors[0].mend.is_some());
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
        // The name of the element, and the tag that closes another one.
        let places: Vec<_> = errors.iter().map(|it| (it.line, it.column)).collect();
        let expected = [(Some(3), Some(3)), (Some(3), Some(10))];
        assert_eq!(places, expected, "{errors:?}");

        let (_, errors) = parse("{\"@id\": \"a\",\n \"urn:p\": }", Format::JsonLd);
        assert_eq!(errors[0].line, Some(2), "{errors:?}");
    }

    #[test]
    fn an_error_of_json_ld_without_a_place_tells_the_line_read_last() {
        let long = format!(
            "[\n{}{{\"@id\":\n 5}}\n]",
            "{\"@id\": \"urn:a\", \"urn:p\": 1},\n".repeat(20_000)
        );
        let (_, errors) = parse(Box::leak(long.into_boxed_str()), Format::JsonLd);
        assert_eq!(
            (errors[0].line, errors[0].column),
            (Some(20_003), None),
            "{errors:?}"
        );
        let twice = "[{\"@id\": 5},\n{\"@id\": 6}]";
        let (_, errors) = parse(twice, Format::JsonLd);
        assert_eq!(errors[0].line, Some(1), "{errors:?}");
    }
}
