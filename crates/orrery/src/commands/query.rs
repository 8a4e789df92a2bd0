//! `orrery query`: one SPARQL query, its answer in the chosen format.

use std::io::IsTerminal;

use orrery_server::format::{
    GraphFormat, GraphSerializer, SolutionFormat, SolutionSerializer, graph_format_names,
    solution_format_names,
};
use orrery_sparql::{QueryKind, QueryOptions, QueryResults, SolutionStream, TripleStream};

use super::output::Output;
use super::query_text::runtime_for;
use crate::arguments::QueryArguments;
use crate::failure::Failure;

/// The format, which must fit the form of the query.
enum Format {
    Solutions(SolutionFormat),
    Graph(GraphFormat),
}

pub(crate) fn run(arguments: QueryArguments) -> Result<(), Failure> {
    let text = arguments.text.read()?;
    let engine = arguments.text.engine(&arguments.database)?;
    let at = arguments.at.map(|at| engine.database().snapshot_at(at));
    let options = QueryOptions {
        snapshot: at.transpose()?,
        timeout: arguments.timeout.map(|time| time.0),
        ..arguments.text.options()
    };
    let prepared = engine.prepare(&text, &options)?;
    let format = choose_format(prepared.kind(), arguments.format.as_deref())?;
    runtime_for(&prepared, &engine)?.block_on(async {
        let mut output = Output::open(None)?;
        match (prepared.execute().await?, format) {
            (QueryResults::Boolean(value), Format::Solutions(format)) => {
                let mut buffer = Vec::new();
                SolutionSerializer::boolean(format, value, &mut buffer)?;
                output.drain(&mut buffer)?;
            }
            (QueryResults::Solutions(stream), Format::Solutions(format)) => {
                write_solutions(stream, format, &mut output).await?;
            }
            (QueryResults::Triples(stream), Format::Graph(format)) => {
                write_triples(stream, format, &mut output).await?;
            }
            (_, Format::Solutions(_) | Format::Graph(_)) => {
                return Err(Failure::Other(
                    "the answer is not of the form that the query announced".to_owned(),
                ));
            }
        }
        output.finish()
    })
}

/// A table for people at a terminal, JSON and Turtle for programs.
fn choose_format(kind: QueryKind, name: Option<&str>) -> Result<Format, Failure> {
    let unknown = |name: &str, names: String| {
        Failure::Other(format!(
            "unknown format '{name}' for this form of query; there are: {names}"
        ))
    };
    match kind {
        QueryKind::Select | QueryKind::Ask => match name {
            Some(name) => {
                let format = SolutionFormat::from_name(name)
                    .ok_or_else(|| unknown(name, solution_format_names()))?;
                if format.is_binary() && std::io::stdout().is_terminal() {
                    return Err(Failure::Other(format!(
                        "'{name}' is no text for a terminal; write it to a file with > FILE"
                    )));
                }
                Ok(Format::Solutions(format))
            }
            None if std::io::stdout().is_terminal() => Ok(Format::Solutions(SolutionFormat::Table)),
            None => Ok(Format::Solutions(SolutionFormat::Json)),
        },
        QueryKind::Construct | QueryKind::Describe => match name {
            Some(name) => GraphFormat::from_name(name)
                .map(Format::Graph)
                .ok_or_else(|| unknown(name, graph_format_names())),
            None => Ok(Format::Graph(GraphFormat::Turtle)),
        },
    }
}

async fn write_solutions(
    mut stream: SolutionStream,
    format: SolutionFormat,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut buffer = Vec::new();
    let mut serializer = SolutionSerializer::start(format, stream.variables(), &mut buffer);
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        for row in 0..batch.rows() {
            let terms = (0..batch.columns()).map(|column| batch.term(row, column));
            serializer.row(terms, &mut buffer)?;
        }
        output.drain(&mut buffer)?;
    }
    while !serializer.finish(&mut buffer)? {
        output.drain(&mut buffer)?;
    }
    output.drain(&mut buffer)
}

async fn write_triples(
    mut stream: TripleStream,
    format: GraphFormat,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut buffer = Vec::new();
    let mut serializer = GraphSerializer::start(format);
    while let Some(batch) = stream.next().await {
        for (subject, predicate, object) in batch?.iter() {
            serializer.triple(subject, predicate, object, &mut buffer)?;
        }
        output.drain(&mut buffer)?;
    }
    serializer.finish(&mut buffer)?;
    output.drain(&mut buffer)
}
