//! `orrery load`: loads files into a database, with a progress bar and a report.

use std::path::{Path, PathBuf};

use orrery_loader::{Format, LoadOptions, LoadReport, MEMORY_BYTES_MIN, Source, TerminalProgress};
use orrery_storage::ByteCount;

use crate::arguments::{LoadArguments, ReportFormat};
use crate::commands::data::files_below::files_below;
use crate::commands::data::http_files::{FormPart, post_file, post_form};
use crate::commands::http::server_url;
use crate::commands::output::Output;
use crate::database_place::DatabasePlace;
use crate::failure::Failure;
use crate::units::{Counted, ShowCount};

pub(crate) fn run(arguments: LoadArguments) -> Result<(), Failure> {
    let format = match arguments.format.as_deref().map(str::parse::<Format>) {
        None => None,
        Some(Ok(format)) => Some(format),
        Some(Err(unknown)) => return Err(Failure::Other(unknown.to_string())),
    };
    let files = files(&arguments, format)?;
    let directory = match (&arguments.directory, &arguments.server) {
        (Some(directory), None) => directory,
        (_, Some(server)) => return through_server(server, &arguments, &files, format),
        (None, None) => {
            return Err(Failure::Other(
                "no database; give --db DIR or --server URL".to_owned(),
            ));
        }
    };
    let sources: Vec<Source> = files
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
        lenient_iris: arguments.lenient_iris,
        base_iri: arguments.base,
        ..LoadOptions::default()
    };
    if let Some(threads) = arguments.threads {
        options.threads = threads.max(1);
    }
    warn_of_little_memory("load", options.memory_bytes);
    orrery_allocator::for_load(options.memory_bytes);
    let place = DatabasePlace::of(directory, &arguments.cache)?;
    let progress = TerminalProgress::new();
    let report = orrery_loader::load_with(
        &place.file_system(),
        place.directory(),
        &sources,
        &options,
        &progress,
    )?;
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

/// The files to load: those named and, with --recursive, those below directories.
fn files(arguments: &LoadArguments, format: Option<Format>) -> Result<Vec<PathBuf>, Failure> {
    if !arguments.recursive {
        return Ok(arguments.files.clone());
    }
    let mut files = Vec::new();
    let mut passed_over = 0;
    for path in &arguments.files {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let found = files_below(path, format.is_some())?;
        passed_over += found.passed_over;
        files.extend(found.files);
    }
    if passed_over > 0 {
        eprintln!(
            "note: {} passed over, whose names tell no format of RDF",
            Counted(passed_over, "file")
        );
    }
    if files.is_empty() {
        let named = arguments
            .files
            .iter()
            .map(|path| path.display().to_string());
        return Err(Failure::Other(format!(
            "there is no file of RDF below {}; with --format all files are taken",
            named.collect::<Vec<_>>().join(", ")
        )));
    }
    Ok(files)
}

/// Warns about a memory limit that a load or a compaction works with, but does not keep to.
pub(crate) fn warn_of_little_memory(work: &str, memory_bytes: u64) {
    if memory_bytes < MEMORY_BYTES_MIN {
        eprintln!(
            "note: to {work} may take more than {} of memory; --memory is kept from {}M on",
            ByteCount(memory_bytes),
            MEMORY_BYTES_MIN >> 20
        );
    }
}

/// Sends all files in one request, and so as one commit.
fn through_server(
    server: &str,
    arguments: &LoadArguments,
    files: &[PathBuf],
    format: Option<Format>,
) -> Result<(), Failure> {
    let mut named = Vec::with_capacity(files.len());
    for file in files {
        let format = format.or_else(|| Format::from_path(file)).ok_or_else(|| {
            let name = file.display();
            Failure::Other(format!(
                "cannot load {name}: its format is unknown; give --format nt, nq, ttl, trig, rdf or jsonld"
            ))
        })?;
        named.push((file.as_path(), format));
    }
    // Without a graph, quads go into the graphs that they name.
    let is_of_quads =
        |(_, format): &(&Path, Format)| matches!(format, Format::NQuads | Format::TriG);
    let (quads, triples): (Vec<_>, Vec<_>) = named.iter().partition(|it| is_of_quads(it));
    let mut url = server_url(server, "graphs")?;
    match &arguments.graph {
        Some(graph) => drop(url.query_pairs_mut().append_pair("graph", graph)),
        None if quads.is_empty() => url.set_query(Some("default")),
        None => {}
    }
    if arguments.forget_history {
        url.query_pairs_mut().append_pair("forget-history", "true");
    }
    let text = match named.as_slice() {
        [(file, format)] => {
            let report = post_file(url, media_type(*format), file)?;
            format!("{}: {report}", file.display())
        }
        several => {
            let file = |(path, format)| FormPart::File(path, media_type(format));
            let mut parts: Vec<FormPart<'_>> = quads.into_iter().map(file).collect();
            if !parts.is_empty() && arguments.graph.is_none() {
                // The files of triples that follow go to the default graph.
                parts.push(FormPart::Field("default"));
            }
            parts.extend(triples.into_iter().map(file));
            let report = post_form(url, &parts)?;
            format!("{}: {report}", Counted(several.len() as u64, "file"))
        }
    };
    let mut output = Output::open(None)?;
    output.drain(&mut text.into_bytes())?;
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
        "{} in {:.1} s, {} a second\n\
         {} added, {} left out; the database has {}\n\
         {} on disk, {:.1} bytes a quad; peak memory {}\n",
        Counted(report.quads_read, "statement"),
        report.seconds,
        ShowCount(report.quads_per_second() as u64),
        Counted(report.quads_added, "quad"),
        Counted(report.duplicates, "duplicate"),
        ShowCount(report.quads),
        ByteCount(report.database_bytes),
        report.bytes_per_quad(),
        ByteCount(report.peak_memory_bytes),
    );
    if report.quads_added == 0 {
        text += &format!(
            "nothing new came, the last commit is still {}\n",
            report.commit
        );
    }
    if report.errors_skipped > 0 {
        text += &format!(
            "{} left out\n",
            Counted(report.errors_skipped, "wrong statement")
        );
    }
    if report.left_out > 0 {
        text += &format!(
            "{} of JSON-LD left out, see the warnings\n",
            Counted(report.left_out, "statement")
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
