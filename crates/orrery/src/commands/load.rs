//! `orrery load`: files into a database, with a progress bar and a report.

use std::path::Path;

use orrery_loader::{Format, LoadOptions, LoadReport, MEMORY_BYTES_MIN, Source, TerminalProgress};

use super::http::{post_file, server_url};
use super::output::Output;
use crate::arguments::{LoadArguments, ReportFormat};
use crate::failure::Failure;
use crate::units::{ShowBytes, ShowCount};

pub(crate) fn run(arguments: LoadArguments) -> Result<(), Failure> {
    let format = match arguments.format.as_deref().map(str::parse::<Format>) {
        None => None,
        Some(Ok(format)) => Some(format),
        Some(Err(unknown)) => return Err(Failure::Other(unknown.to_string())),
    };
    let directory = match (&arguments.directory, &arguments.server) {
        (Some(directory), None) => directory.clone(),
        (_, Some(server)) => return through_server(server, &arguments, format),
        (None, None) => {
            return Err(Failure::Other(
                "no database; give --db DIR or --server URL".to_owned(),
            ));
        }
    };
    let sources: Vec<Source> = arguments
        .files
        .into_iter()
        .map(|path| {
            if path == Path::new("-") {
                Source::Stdin
            } else {
                Source::File(path)
            }
        })
        .collect();
    let mut options = LoadOptions {
        memory_bytes: arguments.memory.0,
        graph: arguments.graph,
        format,
        skip_errors: arguments.skip_errors,
        base_iri: arguments.base,
        ..LoadOptions::default()
    };
    if let Some(threads) = arguments.threads {
        options.threads = threads.max(1);
    }
    warn_of_little_memory("load", options.memory_bytes);
    crate::allocator::for_load(options.memory_bytes);
    let progress = TerminalProgress::new();
    let report = orrery_loader::load(&directory, &sources, &options, &progress)?;
    let text = match arguments.report {
        ReportFormat::Text => people(&report),
        ReportFormat::Json => {
            serde_json::to_string(&report)
                .map_err(|error| Failure::Other(format!("cannot write the report: {error}")))?
                + "\n"
        }
    };
    let mut output = Output::open(None)?;
    output.drain(&mut text.into_bytes())?;
    output.finish()
}

/// Tells of a budget that a load or a compaction works with, but does not keep.
pub(crate) fn warn_of_little_memory(work: &str, memory_bytes: u64) {
    if memory_bytes < MEMORY_BYTES_MIN {
        eprintln!(
            "note: to {work} may take more than {memory_bytes} bytes of memory; --memory is kept from {}M on",
            MEMORY_BYTES_MIN >> 20
        );
    }
}

/// Each file is one request, and so one commit.
fn through_server(
    server: &str,
    arguments: &LoadArguments,
    format: Option<Format>,
) -> Result<(), Failure> {
    let mut output = Output::open(None)?;
    for file in &arguments.files {
        let format = format.or_else(|| Format::from_path(file)).ok_or_else(|| {
            let name = file.display();
            Failure::Other(format!(
                "cannot load {name}: its format is unknown; give --format nt, nq, ttl, trig, rdf or jsonld"
            ))
        })?;
        let mut url = server_url(server, "graphs")?;
        match &arguments.graph {
            Some(graph) => drop(url.query_pairs_mut().append_pair("graph", graph)),
            // Quads go into the graphs that they name.
            None if matches!(format, Format::NQuads | Format::TriG) => {}
            None => url.set_query(Some("default")),
        }
        let report = post_file(url, media_type(format), file)?;
        let mut text = format!("{}: {report}", file.display()).into_bytes();
        output.drain(&mut text)?;
    }
    output.finish()
}

fn media_type(format: Format) -> &'static str {
    match format {
        Format::NTriples => "application/n-triples",
        Format::NQuads => "application/n-quads",
        Format::Turtle => "text/turtle",
        Format::TriG => "application/trig",
        Format::RdfXml => "application/rdf+xml",
        Format::JsonLd => "application/ld+json",
    }
}

fn people(report: &LoadReport) -> String {
    let mut text = format!(
        "{} statements in {:.1} s, {} a second\n\
         {} quads added, {} duplicates left out; the database has {}\n\
         {} on disk, {:.1} bytes a quad; peak memory {}\n",
        ShowCount(report.quads_read),
        report.seconds,
        ShowCount(report.quads_per_second() as u64),
        ShowCount(report.quads_added),
        ShowCount(report.duplicates),
        ShowCount(report.quads),
        ShowBytes(report.database_bytes),
        report.bytes_per_quad(),
        ShowBytes(report.peak_memory_bytes),
    );
    if report.errors_skipped > 0 {
        text += &format!(
            "{} wrong statements left out\n",
            ShowCount(report.errors_skipped)
        );
    }
    let stages: Vec<String> = report
        .stages
        .iter()
        .map(|stage| format!("{} {:.1} s", stage.stage, stage.effort.seconds))
        .collect();
    let cpu_seconds = report.cpu_seconds;
    text += &format!(
        "{}; {cpu_seconds:.1} s of the processors\n",
        stages.join(", ")
    );
    text
}
