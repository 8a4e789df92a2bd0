//! Query evaluation tests, through our serializers and an independent parser.

use crate::w3c::engine::{engine, internal, write_solutions};
use std::path::Path;

use orrery_formats::{GraphFormat, GraphSerializer, SolutionFormat, SolutionSerializer};
use orrery_sparql::{Engine, QueryError, QueryOptions, QueryResults, TripleStream};
use spargebra::SparqlParser;
use spargebra::algebra::QueryDataset;
use tokio::runtime::Runtime;

use super::endpoints::Endpoints;
use super::expected::{Answer, compare, parse_answer};
use super::syntax::load;
use super::{Files, QueryEvaluation};

fn options(query: &str) -> QueryOptions {
    QueryOptions {
        strict_prefixes: true,
        base_iri: Some(query.to_owned()),
        ..QueryOptions::of_process()
    }
}

/// The query is accepted. That it asks for something that is not there yet, such as SERVICE,
/// is no matter of syntax.
pub(crate) fn accepted(files: &Files, directory: &Path, query: &str) -> Result<(), String> {
    let text = files.read(query)?;
    match engine(directory, None)?.prepare(&text, &options(query)) {
        Ok(_) | Err(QueryError::Unsupported { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// The query is refused, for its syntax.
pub(crate) fn refused(files: &Files, directory: &Path, query: &str) -> Result<(), String> {
    let text = files.read(query)?;
    match engine(directory, None)?.prepare(&text, &options(query)) {
        Ok(_) => Err("accepted, but wrong".to_owned()),
        Err(QueryError::Syntax { .. }) => Ok(()),
        Err(error) => Err(format!("refused, but not for its syntax: {error}")),
    }
}

/// The query has the expected answer.
pub(crate) fn evaluate(
    files: &Files,
    directory: &Path,
    runtime: &Runtime,
    test: &QueryEvaluation,
) -> Result<(), String> {
    let text = files.read(&test.query)?;
    load_data(files, directory, test, &text)?;
    let services = directory.with_extension("services");
    let endpoints = Endpoints::load(files, &services, &test.services)?;
    let engine = engine(directory, Some(endpoints.options()))?;
    let (name, bytes) = runtime
        .block_on(answer(&engine, test, &text))
        .map_err(|error| error.to_string())?;
    let actual = parse_answer(name, &bytes)
        .map_err(|error| format!("{error} in {}", String::from_utf8_lossy(&bytes)))?;
    let expected = expected(files, test)?;
    compare(&expected, &actual, test.is_lax)
}

fn expected(files: &Files, test: &QueryEvaluation) -> Result<Answer, String> {
    parse_answer(&test.result, &files.read_bytes(&test.result)?)
}

/// Loads the files of the test; where it names none, those of the query's `FROM`.
fn load_data(
    files: &Files,
    directory: &Path,
    test: &QueryEvaluation,
    text: &str,
) -> Result<(), String> {
    let wrong = |error| format!("data: {error}");
    for data in &test.data {
        load(files, directory, data, None)?.map_err(wrong)?;
    }
    let mut graphs = test.graph_data.clone();
    if test.data.is_empty() && graphs.is_empty() {
        graphs = graphs_of(text, &test.query)?;
    }
    for graph in &graphs {
        load(files, directory, graph, Some(graph))?.map_err(wrong)?;
    }
    Ok(())
}

/// The graphs that a query names with `FROM` and `FROM NAMED`; none if it cannot be read, which the
/// engine will tell.
fn graphs_of(text: &str, base: &str) -> Result<Vec<String>, String> {
    let query = SparqlParser::new()
        .with_base_iri(base)
        .map_err(|error| error.to_string())?
        .parse_query(text);
    let dataset = query.as_ref().ok().and_then(|query| query.dataset());
    let Some(QueryDataset { default, named }) = dataset else {
        return Ok(Vec::new());
    };
    let named = named.iter().flatten();
    let mut graphs: Vec<String> = default
        .iter()
        .chain(named)
        .map(|graph| graph.as_str().to_owned())
        .collect();
    graphs.sort_unstable();
    graphs.dedup();
    Ok(graphs)
}

/// The answer in bytes, under a name whose ending tells the format: that of the expected
/// answer, or JSON for solutions that are expected in the result set vocabulary.
async fn answer(
    engine: &Engine,
    test: &QueryEvaluation,
    text: &str,
) -> Result<(&'static str, Vec<u8>), QueryError> {
    let (name, format) = match test
        .result
        .rsplit_once('.')
        .map_or("", |(_, ending)| ending)
    {
        "srx" => ("http://example/answer.srx", SolutionFormat::Xml),
        "csv" => ("http://example/answer.csv", SolutionFormat::Csv),
        "tsv" => ("http://example/answer.tsv", SolutionFormat::Tsv),
        _ => ("http://example/answer.srj", SolutionFormat::Json),
    };
    let prepared = engine.prepare(text, &options(&test.query))?;
    let mut bytes = Vec::new();
    match prepared.execute().await? {
        QueryResults::Boolean(value) => {
            SolutionSerializer::boolean(format, value, &mut bytes).map_err(internal)?;
            Ok((name, bytes))
        }
        QueryResults::Solutions(stream) => {
            write_solutions(stream, format, &mut bytes).await?;
            Ok((name, bytes))
        }
        QueryResults::Triples(stream) => {
            write_triples(stream, &mut bytes).await?;
            Ok(("http://example/answer.ttl", bytes))
        }
    }
}

async fn write_triples(mut stream: TripleStream, bytes: &mut Vec<u8>) -> Result<(), QueryError> {
    let mut serializer = GraphSerializer::start(GraphFormat::Turtle);
    while let Some(batch) = stream.next().await {
        for (subject, predicate, object) in batch?.iter() {
            serializer
                .triple(subject, predicate, object, bytes)
                .map_err(internal)?;
        }
    }
    serializer.finish(bytes).map_err(internal)
}
