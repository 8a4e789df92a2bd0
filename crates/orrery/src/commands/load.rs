//! `orrery load`: files into a database, with a progress bar and a report.

use std::path::Path;

use orrery_loader::{Format, LoadOptions, LoadReport, Source, TerminalProgress};

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
    let progress = TerminalProgress::new();
    let report = orrery_loader::load(&arguments.database.directory, &sources, &options, &progress)?;
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
        .map(|(stage, seconds)| format!("{stage} {seconds:.1} s"))
        .collect();
    text += &format!("{}\n", stages.join(", "));
    text
}
