//! The whole load, stage by stage.

use crate::LoadOptions;
use crate::batch::{seal, spill};
use crate::error::LoadError;
use crate::ingest::{Ingested, ingest};
use crate::ntriples::check_iri;
use crate::progress::{Progress, Stage};
use crate::report::{LoadReport, peak_memory_bytes};
use crate::row_sort::ROW_BYTES;
use crate::segment::{Batches, SegmentInput, write_segment};
use crate::source::{CheckedSource, Source};
use crate::stage_dir::StageDir;
use orrery_storage::io::{FileSystem, LocalFileSystem};
use orrery_storage::{Database, SegmentBuilder, WriterLock};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Loads `sources` into the database in `dir`, which is created if it is not there.
///
/// What the database has already stays, and quads that come several times are kept once. On an
/// error the database is as it was before; a directory that this call created is removed again.
pub fn load(
    dir: &Path,
    sources: &[Source],
    options: &LoadOptions,
    progress: &dyn Progress,
) -> Result<LoadReport, LoadError> {
    let start = Instant::now();
    check_option("graph", options.graph.as_deref())?;
    check_option("base IRI", options.base_iri.as_deref())?;
    let sources = sources
        .iter()
        .map(|source| CheckedSource::check(source, options.format))
        .collect::<Result<Vec<_>, _>>()?;
    let files: Arc<dyn FileSystem> = Arc::new(LocalFileSystem);
    let created = first_missing(&*files, dir)?;
    let result = load_checked(dir, &files, &sources, options, progress, start);
    progress.end();
    if let (Err(_), Some(created)) = (&result, created) {
        // Nothing of use is in it. If this fails too, the first error is the one to tell.
        let _ = files.remove_dir_all(created);
    }
    result
}

/// The topmost of the directories that must be made for `dir`, if any.
fn first_missing<'a>(files: &dyn FileSystem, dir: &'a Path) -> Result<Option<&'a Path>, LoadError> {
    let mut missing = None;
    for ancestor in dir.ancestors().filter(|path| !path.as_os_str().is_empty()) {
        if files.metadata(ancestor)?.is_some() {
            break;
        }
        missing = Some(ancestor);
    }
    Ok(missing)
}

fn check_option(option: &'static str, iri: Option<&str>) -> Result<(), LoadError> {
    let Some(iri) = iri else { return Ok(()) };
    check_iri(iri).map_err(|message| LoadError::InvalidIri {
        option,
        iri: iri.to_owned(),
        message: message.into_owned(),
    })
}

fn load_checked(
    dir: &Path,
    files: &Arc<dyn FileSystem>,
    sources: &[CheckedSource],
    options: &LoadOptions,
    progress: &dyn Progress,
    start: Instant,
) -> Result<LoadReport, LoadError> {
    let database = Database::create_or_open_with(Arc::clone(files), dir)?;
    let lock = WriterLock::acquire_with(files, dir)?;
    let stage = StageDir::create(Arc::clone(files), dir)?;
    let builder = SegmentBuilder::begin(&database, &lock)?;
    let segment_directory = builder.directory();
    let result = run_stages(&database, builder, &stage, sources, options, progress);
    match result {
        Ok(mut report) => {
            report.seconds = start.elapsed().as_secs_f64();
            report.peak_memory_bytes = peak_memory_bytes();
            Ok(report)
        }
        Err(error) => {
            // Give its space back; if this fails, the next load does it.
            let _ = files.remove_dir_all(&segment_directory);
            Err(error)
        }
    }
}

fn run_stages(
    database: &Database,
    builder: SegmentBuilder<'_>,
    stage: &StageDir,
    sources: &[CheckedSource],
    options: &LoadOptions,
    progress: &dyn Progress,
) -> Result<LoadReport, LoadError> {
    let existing = database.snapshot();
    let start = Instant::now();
    let total_bytes = sources.iter().map(|source| source.bytes).sum();
    progress.begin(Stage::Parse, total_bytes);
    let ingested = ingest(options, sources, stage, progress)?;
    let (quads_read, errors_skipped) = (ingested.quads_read, ingested.errors_skipped);
    let has_named_graphs = ingested.has_named_graphs;
    let batches = close_batches(ingested, stage, options.usable_bytes())?;
    let parse_seconds = start.elapsed().as_secs_f64();

    let input = SegmentInput {
        batches,
        existing: &existing,
        has_named_graphs,
        stage,
        memory_bytes: options.usable_bytes(),
        threads: options.threads,
        progress,
    };
    let output = write_segment(&builder, input)?;

    let start = Instant::now();
    progress.begin(Stage::Publish, None);
    let snapshot = builder.publish(output.counts, &output.statistics.finish())?;
    let added = output.counts.quads.saturating_sub(existing.quad_count());
    let [terms_seconds, permutations_seconds] = output.stage_seconds;
    let stages = [
        (Stage::Parse, parse_seconds),
        (Stage::Terms, terms_seconds),
        (Stage::Permutations, permutations_seconds),
        (Stage::Publish, start.elapsed().as_secs_f64()),
    ];
    Ok(LoadReport {
        quads_read,
        quads_added: added,
        duplicates: quads_read.saturating_sub(added),
        errors_skipped,
        quads: output.counts.quads,
        terms: output.counts.terms,
        database_bytes: snapshot.file_bytes(),
        stages: stages
            .map(|(stage, seconds)| (stage.name().to_owned(), seconds))
            .into(),
        ..LoadReport::default()
    })
}

/// Seals the last batch of each worker. All batches stay in memory if what comes next fits there
/// too; else all go to the stage directory.
fn close_batches(
    ingested: Ingested,
    stage: &StageDir,
    memory_bytes: usize,
) -> Result<Batches, LoadError> {
    let Ingested {
        open,
        mut spilled,
        next_batch_number,
        ..
    } = ingested;
    let held: usize = open.iter().map(|interner| interner.memory_bytes()).sum();
    // The maps of the merge are about what the sort of the terms was; then one permutation is sorted.
    let quads: u64 = open.iter().map(|interner| interner.quad_count()).sum();
    let needed = held as u64 + quads * ROW_BYTES as u64;
    let fits = spilled.is_empty() && needed <= memory_bytes as u64;
    thread::scope(|scope| {
        if fits {
            let sealed: Vec<_> = open
                .into_iter()
                .map(|mut interner| scope.spawn(move || seal(interner.take())))
                .collect();
            let batches = sealed.into_iter().map(joined).collect();
            return Ok(Batches::Memory(batches));
        }
        let written: Vec<_> = (next_batch_number..)
            .zip(open)
            .map(|(number, mut interner)| {
                scope.spawn(move || spill(interner.take(), stage, number))
            })
            .collect();
        for handle in written {
            spilled.push(joined(handle)?);
        }
        Ok(Batches::Spilled(spilled))
    })
}

fn joined<T>(handle: thread::ScopedJoinHandle<'_, T>) -> T {
    match handle.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
