//! GET `/sparql` without a query: the SPARQL 1.1 Service Description.
//!
//! <https://www.w3.org/TR/sparql11-service-description/>
//!
//! The vocabulary has no names for the languages of SPARQL 1.2.

use crate::edge::guard::{host_of, scheme_of};
use crate::request::negotiate::AcceptedFormats;
use axum::http::{header, request::Parts};
use axum::response::{IntoResponse, Response};
use orrery_formats::{GraphFormat, GraphSerializer, SolutionFormat};
use orrery_service::errors::ServiceError;
use orrery_term::{Term, vocabulary::rdf};

const SD: &str = "http://www.w3.org/ns/sparql-service-description#";
const FORMATS: &str = "http://www.w3.org/ns/formats/";

/// The optional features of an endpoint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Capabilities {
    /// The default graph of a query without dataset is the union of all graphs.
    pub(crate) union_default_graph: bool,
    /// `SERVICE` may ask other endpoints.
    pub(crate) federation: bool,
    /// The endpoint takes updates.
    pub(crate) update: bool,
}

/// Describes this endpoint, in a graph format of the client's choice.
pub(crate) fn describe(
    parts: &Parts,
    format: Option<String>,
    capabilities: Capabilities,
) -> Result<Response, ServiceError> {
    let chosen = AcceptedFormats::new(&parts.headers, format).graph()?;
    let mut serializer = GraphSerializer::start(chosen.format);
    let mut out = Vec::new();
    for [subject, predicate, object] in statements(parts, capabilities) {
        serializer.triple(&subject, &predicate, &object, &mut out)?;
    }
    serializer.finish(&mut out)?;
    Ok(([(header::CONTENT_TYPE, chosen.content_type())], out).into_response())
}

type Statement = [Term<'static>; 3];

fn statements(parts: &Parts, capabilities: Capabilities) -> Vec<Statement> {
    let sd = |name: &str| Term::iri(format!("{SD}{name}"));
    let w3c_format = |name: &str| Term::iri(format!("{FORMATS}{name}"));
    let [service, dataset, default_graph] = [0, 1, 2].map(Term::BlankNode);
    let mut of_service = vec![
        (Term::iri(rdf::TYPE), sd("Service")),
        (sd("supportedLanguage"), sd("SPARQL10Query")),
        (sd("supportedLanguage"), sd("SPARQL11Query")),
    ];
    if capabilities.update {
        of_service.push((sd("supportedLanguage"), sd("SPARQL11Update")));
    }
    // The endpoint's own address is known only as the client wrote it.
    if let Some(host) = host_of(parts).ok().filter(|host| is_host(host.as_str())) {
        let endpoint = format!("{}://{host}{}", scheme_of(parts), parts.uri.path());
        of_service.push((sd("endpoint"), Term::iri(endpoint)));
    }
    if capabilities.union_default_graph {
        of_service.push((sd("feature"), sd("UnionDefaultGraph")));
    }
    if capabilities.federation {
        of_service.push((sd("feature"), sd("BasicFederatedQuery")));
    }
    for name in solution_formats().chain(graph_formats()) {
        of_service.push((sd("resultFormat"), w3c_format(name)));
    }
    if capabilities.update {
        for name in graph_formats() {
            of_service.push((sd("inputFormat"), w3c_format(name)));
        }
    }
    of_service.push((sd("defaultDataset"), dataset.clone()));
    let mut statements: Vec<Statement> = of_service
        .into_iter()
        .map(|(predicate, object)| [service.clone(), predicate, object])
        .collect();
    statements.push([dataset.clone(), Term::iri(rdf::TYPE), sd("Dataset")]);
    statements.push([dataset, sd("defaultGraph"), default_graph.clone()]);
    statements.push([default_graph, Term::iri(rdf::TYPE), sd("Graph")]);
    statements
}

fn solution_formats() -> impl Iterator<Item = &'static str> {
    SolutionFormat::ALL
        .into_iter()
        .filter_map(|format| match format {
            SolutionFormat::Json => Some("SPARQL_Results_JSON"),
            SolutionFormat::Xml => Some("SPARQL_Results_XML"),
            SolutionFormat::Csv => Some("SPARQL_Results_CSV"),
            SolutionFormat::Tsv => Some("SPARQL_Results_TSV"),
            // The W3C has no names for these.
            SolutionFormat::Arrow | SolutionFormat::Parquet | SolutionFormat::Table => None,
        })
}

fn graph_formats() -> impl Iterator<Item = &'static str> {
    GraphFormat::ALL.into_iter().map(|format| match format {
        GraphFormat::Turtle => "Turtle",
        GraphFormat::NTriples => "N-Triples",
        GraphFormat::NQuads => "N-Quads",
        GraphFormat::TriG => "TriG",
        GraphFormat::RdfXml => "RDF_XML",
        GraphFormat::JsonLd => "JSON-LD",
    })
}

/// Whether a `Host` header is fit for an IRI.
fn is_host(host: &str) -> bool {
    host.bytes().all(|byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']')
    })
}
