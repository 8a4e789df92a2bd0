//! GET `/sparql` without a query: the SPARQL 1.1 Service Description.
//!
//! <https://www.w3.org/TR/sparql11-service-description/>

use crate::errors::ServerError;
use crate::format::{GraphFormat, GraphSerializer, SolutionFormat};
use crate::negotiate::Wish;
use axum::http::{header, request::Parts};
use axum::response::{IntoResponse, Response};
use orrery_term::{Term, vocabulary::rdf};

const SD: &str = "http://www.w3.org/ns/sparql-service-description#";
const FORMATS: &str = "http://www.w3.org/ns/formats/";

/// What this endpoint can do, in a graph format of the client's choice.
pub(crate) fn describe(parts: &Parts, format: Option<String>) -> Result<Response, ServerError> {
    let chosen = Wish::new(&parts.headers, format).graph()?;
    let mut serializer = GraphSerializer::start(chosen.format);
    let mut out = Vec::new();
    let service = Term::BlankNode(0);
    for (predicate, object) in statements(parts) {
        serializer.triple(
            &service,
            &Term::iri(predicate),
            &Term::iri(object),
            &mut out,
        )?;
    }
    serializer.finish(&mut out)?;
    Ok(([(header::CONTENT_TYPE, chosen.content_type())], out).into_response())
}

/// Predicates and objects of the service.
fn statements(parts: &Parts) -> Vec<(String, String)> {
    let sd = |name: &str| format!("{SD}{name}");
    let mut statements = vec![
        (rdf::TYPE.to_owned(), sd("Service")),
        (sd("supportedLanguage"), sd("SPARQL11Query")),
    ];
    // The endpoint's own address is known only as the client wrote it.
    let host = parts
        .headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    if let Some(host) = host.filter(|host| is_host(host)) {
        statements.push((sd("endpoint"), format!("http://{host}{}", parts.uri.path())));
    }
    let solutions = SolutionFormat::ALL
        .into_iter()
        .filter_map(|format| match format {
            SolutionFormat::Json => Some("SPARQL_Results_JSON"),
            SolutionFormat::Xml => Some("SPARQL_Results_XML"),
            SolutionFormat::Csv => Some("SPARQL_Results_CSV"),
            SolutionFormat::Tsv => Some("SPARQL_Results_TSV"),
            // The W3C has no names for these.
            SolutionFormat::Arrow | SolutionFormat::Parquet | SolutionFormat::Table => None,
        });
    let graphs = GraphFormat::ALL.into_iter().map(|format| match format {
        GraphFormat::Turtle => "Turtle",
        GraphFormat::NTriples => "N-Triples",
        GraphFormat::NQuads => "N-Quads",
        GraphFormat::TriG => "TriG",
        GraphFormat::RdfXml => "RDF_XML",
        GraphFormat::JsonLd => "JSON-LD",
    });
    for name in solutions.chain(graphs) {
        statements.push((sd("resultFormat"), format!("{FORMATS}{name}")));
    }
    statements
}

/// A header is not to be trusted to be fit for an IRI.
fn is_host(host: &str) -> bool {
    host.bytes().all(|byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']')
    })
}
