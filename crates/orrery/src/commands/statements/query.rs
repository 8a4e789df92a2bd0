//! `orrery query`: runs one SPARQL query, and writes its answer in the chosen format.

use std::io::IsTerminal;

use orrery_formats::{
    GraphFormat, GraphSerializer, SolutionFormat, SolutionSerializer, dataset_format_names,
    graph_format_names, solution_format_names,
};
use orrery_sparql::{
    PreparedQuery, QueryKind, QueryOptions, QueryResults, SolutionStream, TripleStream,
    only_in_named_graphs,
};

use orrery_term::Prefixes;

use crate::arguments::QueryArguments;
use crate::commands::output::Output;
use crate::commands::query_text::{runtime_for, warn_of};
use crate::failure::Failure;
use crate::units::{ShowCount, plural};

/// The answer's format, which must fit the form of the query.
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
    let prepared = engine
        .prepare(&text, &options)
        .map_err(|error| Failure::of_text(error, &text))?;
    warn_of(&text);
    for warning in engine.never_bound(&prepared, &text, &options) {
        eprintln!("warning: {warning}");
    }
    let format = choose_format(
        prepared.kind(),
        prepared.gives_quads(),
        arguments.format.as_deref(),
    )?;
    let found = runtime_for(&prepared, &engine)?.block_on(async {
        let mut output = Output::open(None)?;
        let prefixes = prepared.view().snapshot().prefixes();
        let found = match (prepared.execute().await?, format) {
            (QueryResults::Boolean(value), Format::Solutions(format)) => {
                let mut buffer = Vec::new();
                SolutionSerializer::boolean(format, value, &mut buffer)?;
                output.drain(&mut buffer)?;
                u64::from(value)
            }
            (QueryResults::Solutions(stream), Format::Solutions(format)) => {
                write_solutions(stream, format, prefixes, &mut output).await?
            }
            (QueryResults::Triples(stream), Format::Graph(format)) => {
                write_triples(stream, format, prefixes, &mut output).await?
            }
            (_, Format::Solutions(_) | Format::Graph(_)) => {
                return Err(Failure::Other(
                    "the answer is not of the form that the query announced".to_owned(),
                ));
            }
        };
        output.finish()?;
        Ok(found)
    })?;
    if !is_nothing(&prepared, &text, found) {
        return Ok(());
    }
    if !arguments.text.union_default_graph && hint_at_graphs(&prepared, &text)? {
        return Ok(());
    }
    if prepared.kind() != QueryKind::Ask {
        let empty = engine.why_empty(&prepared, &text, &options);
        for hint in runtime_for(&prepared, &engine)?.block_on(empty) {
            eprintln!("note: {hint}");
        }
    }
    Ok(())
}

/// Whether nothing was found, or only a row of counts.
fn is_nothing(prepared: &PreparedQuery, text: &str, found: u64) -> bool {
    let may_be_counts = found == 1 && prepared.kind() == QueryKind::Select;
    found == 0 || (may_be_counts && text.to_ascii_uppercase().contains("COUNT"))
}

/// Prints a note if nothing was found because all data are in named graphs; returns whether it did.
fn hint_at_graphs(prepared: &PreparedQuery, text: &str) -> Result<bool, Failure> {
    if let Some(quads) = only_in_named_graphs(prepared.view(), text)? {
        let (count, noun) = (ShowCount(quads), plural(quads, "quad"));
        let all = match quads {
            1 => "the only".to_owned(),
            _ => format!("all {count}"),
        };
        let verb = if quads == 1 { "is" } else { "are" };
        eprintln!(
            "note: the default graph is empty, {all} {noun} {verb} in named graphs; write GRAPH ?g {{ ... }} around the \
             pattern, or ask with --union-default-graph"
        );
        return Ok(true);
    }
    Ok(false)
}

/// The format by name; by default a table at a terminal, JSON and Turtle otherwise.
fn choose_format(
    kind: QueryKind,
    gives_quads: bool,
    name: Option<&str>,
) -> Result<Format, Failure> {
    let unknown = |name: &str, names: String| {
        Failure::Other(format!(
            "unknown format '{name}' for this form of query; there are: {names}"
        ))
    };
    let no_graphs = |name: &str| {
        let names = dataset_format_names();
        Failure::Other(format!(
            "'{name}' is no format that holds the graphs of this CONSTRUCT; there are: {names}"
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
            Some(name) if gives_quads => GraphFormat::from_name_with_graphs(name)
                .map(Format::Graph)
                .ok_or_else(|| no_graphs(name)),
            Some(name) => GraphFormat::from_name(name)
                .map(Format::Graph)
                .ok_or_else(|| unknown(name, graph_format_names())),
            None if gives_quads => Ok(Format::Graph(GraphFormat::TriG)),
            None => Ok(Format::Graph(GraphFormat::Turtle)),
        },
    }
}

/// Writes solutions; returns their number.
async fn write_solutions(
    mut stream: SolutionStream,
    format: SolutionFormat,
    prefixes: &Prefixes,
    output: &mut Output,
) -> Result<u64, Failure> {
    let (mut buffer, mut rows) = (Vec::new(), 0);
    let serializer = SolutionSerializer::start(format, stream.variables(), &mut buffer);
    let mut serializer = serializer.with_prefixes(prefixes);
    if let Some(writer) = serializer.row_writer() {
        let mut stream = stream.written(writer);
        while let Some(written) = stream.next().await {
            let mut written = written?;
            rows += written.rows() as u64;
            output.drain(&mut buffer)?;
            while let Some(mut piece) = written.next_piece() {
                output.drain(&mut piece)?;
            }
        }
    } else {
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            rows += batch.rows() as u64;
            for row in 0..batch.rows() {
                let terms = (0..batch.columns()).map(|column| batch.term(row, column));
                serializer.row(terms, &mut buffer)?;
            }
            output.drain(&mut buffer)?;
        }
    }
    while !serializer.finish(&mut buffer)? {
        output.drain(&mut buffer)?;
    }
    output.drain(&mut buffer)?;
    Ok(rows)
}

/// Writes triples or quads; returns their number.
async fn write_triples(
    mut stream: TripleStream,
    format: GraphFormat,
    prefixes: &Prefixes,
    output: &mut Output,
) -> Result<u64, Failure> {
    let (mut buffer, mut triples) = (Vec::new(), 0);
    let mut serializer = GraphSerializer::with_prefixes(format, prefixes.shortener());
    while let Some(batch) = stream.next().await {
        for (subject, predicate, object, graph) in batch?.quads() {
            triples += 1;
            serializer.quad(subject, predicate, object, graph, &mut buffer)?;
        }
        output.drain(&mut buffer)?;
    }
    serializer.finish(&mut buffer)?;
    output.drain(&mut buffer)?;
    Ok(triples)
}
