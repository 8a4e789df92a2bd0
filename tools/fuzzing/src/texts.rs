//! Fuzz targets: parsers of SPARQL, RDF, and endpoints' answers.

use std::io::Cursor;

use orrery_loader::{DocumentBounds, Format, read_document};
use orrery_syntax::{ParserOptions, parse_query, parse_update, read_query, read_update};
use orrery_term::language::TagSyntax;
use orrery_term::nesting::Nesting;
use sparesults::{QueryResultsFormat, QueryResultsParser, ReaderQueryResultsParserOutput};

const BASE: &str = "http://example.com/base";
const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// A text as a query and as an update; what recovers from errors finds an error exactly where there
/// is one.
pub(crate) fn sparql(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let options = ParserOptions {
        base: Some(BASE),
        ..ParserOptions::default()
    };
    let is_query = parse_query(text, &options).is_ok();
    assert_eq!(read_query(text, &options).errors.is_empty(), is_query);
    let is_update = parse_update(text, &options).is_ok();
    assert_eq!(read_update(text, &options).errors.is_empty(), is_update);
}

pub(crate) fn ntriples(bytes: &[u8]) {
    document(Format::NTriples, bytes);
}

pub(crate) fn nquads(bytes: &[u8]) {
    document(Format::NQuads, bytes);
}

pub(crate) fn turtle(bytes: &[u8]) {
    document(Format::Turtle, bytes);
}

pub(crate) fn trig(bytes: &[u8]) {
    document(Format::TriG, bytes);
}

pub(crate) fn rdfxml(bytes: &[u8]) {
    document(Format::RdfXml, bytes);
}

pub(crate) fn jsonld(bytes: &[u8]) {
    document(Format::JsonLd, bytes);
}

/// As the server reads the body of a request. Quads are made of terms that are there.
fn document(format: Format, bytes: &[u8]) {
    let bounds = DocumentBounds {
        memory_bytes: DOCUMENT_BYTES_MAX,
        hold: &mut |_| true,
        waiting: None,
    };
    let input = Cursor::new(bytes.to_vec());
    let Ok(document) = read_document(input, "input", format, Some(BASE), bounds) else {
        return;
    };
    let terms = document.terms().count();
    for quad in document.quads() {
        assert!(quad.iter().all(|&number| (number as usize) < terms));
    }
}

pub(crate) fn results_json(bytes: &[u8]) {
    results(QueryResultsFormat::Json, TagSyntax::JsonResults, bytes);
}

pub(crate) fn results_xml(bytes: &[u8]) {
    results(QueryResultsFormat::Xml, TagSyntax::Xml, bytes);
}

pub(crate) fn results_tsv(bytes: &[u8]) {
    results(QueryResultsFormat::Tsv, TagSyntax::At, bytes);
}

/// As an answer of `SERVICE` is read (`operators/src/service/answer.rs`).
fn results(format: QueryResultsFormat, syntax: TagSyntax, bytes: &[u8]) {
    if Nesting::of(syntax).push(bytes).is_err() {
        return;
    }
    let parser = QueryResultsParser::from_format(format);
    let Ok(ReaderQueryResultsParserOutput::Solutions(solutions)) = parser.for_reader(bytes) else {
        return;
    };
    for solution in solutions {
        let Ok(solution) = solution else { return };
        assert_eq!(solution.values().len(), solution.variables().len());
    }
}
