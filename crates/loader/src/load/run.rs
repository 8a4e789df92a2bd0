//! The driver of a bulk load, stage by stage.
//!
//! The memory budget is divided among interners, sort buffers and merge readers. What does not fit
//! is written to `load-stage/`. A load that brings nothing new publishes nothing and makes no
//! commit.

use crate::LoadOptions;
use crate::error::LoadError;
use crate::ingest::stage::ingest;
use crate::ingest::stage_dir::StageDir;
use crate::load::publish::{Parsed, finished, write};
use crate::parse::ntriples::check_iri;
use crate::progress::{Progress, Stage};
use crate::report::{LoadReport, Stopwatch};
use crate::sources::source::{CheckedSource, Source};
use crate::workers::members::LoadWorkers;
use orrery_storage::io::{FileSystem, LocalFileSystem};
use orrery_storage::{Database, ReadView, SegmentBuilder, Writer, WriterLock};
use std::path::Path;
use std::sync::Arc;

/// Loads `sources` into the database in `dir`, which is created if it is not there.
///
/// What the database has already stays, and quads that come several times are kept once. Where
/// nothing new comes, there is no commit, and older states stay. On an error the database is as it
/// was before; a directory that this call created is removed again.
pub fn load(
    dir: &Path,
    sources: &[Source],
    options: &LoadOptions,
    progress: &dyn Progress,
) -> Result<LoadReport, LoadError> {
    load_with(
        &(Arc::new(LocalFileSystem) as Arc<dyn FileSystem>),
        dir,
        sources,
        options,
        progress,
    )
}

/// Loads through a given file system, on which the sources are, too.
pub fn load_with(
    files: &Arc<dyn FileSystem>,
    dir: &Path,
    sources: &[Source],
    options: &LoadOptions,
    progress: &dyn Progress,
) -> Result<LoadReport, LoadError> {
    load_helped(files, dir, sources, options, None, progress)
}

/// Loads like [`load_with`] with the help of workers, which parse and may sort. The database is, to
/// the byte of its segment's files, what one process would have made of the same sources; it is
/// published here, once. If workers fail, what they were to do is done by others or here.
pub fn load_by_workers(
    files: &Arc<dyn FileSystem>,
    dir: &Path,
    sources: &[Source],
    options: &LoadOptions,
    workers: &LoadWorkers,
    progress: &dyn Progress,
) -> Result<LoadReport, LoadError> {
    load_helped(files, dir, sources, options, Some(workers), progress)
}

fn load_helped(
    files: &Arc<dyn FileSystem>,
    dir: &Path,
    sources: &[Source],
    options: &LoadOptions,
    workers: Option<&LoadWorkers>,
    progress: &dyn Progress,
) -> Result<LoadReport, LoadError> {
    let start = Stopwatch::start();
    let sources = check(sources, options, files)?;
    let created = first_missing(&**files, dir)?;
    let sources = (&*sources, workers);
    let result = load_checked(dir, files, sources, options, progress, start);
    progress.end();
    if let (Err(error), Some(created)) = (&result, created)
        && !may_be_published(error)
    {
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

fn check(
    sources: &[Source],
    options: &LoadOptions,
    files: &Arc<dyn FileSystem>,
) -> Result<Vec<CheckedSource>, LoadError> {
    check_option("graph", options.graph.as_deref())?;
    check_option("base IRI", options.base_iri.as_deref())?;
    for source in sources {
        if let Source::Upload(upload) = source {
            check_option("graph", upload.graph.as_deref())?;
            check_option("base IRI", Some(&upload.base_iri))?;
        }
    }
    sources
        .iter()
        .map(|source| CheckedSource::check(source, options, files))
        .collect()
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
    (sources, workers): (&[CheckedSource], Option<&LoadWorkers>),
    options: &LoadOptions,
    progress: &dyn Progress,
    start: Stopwatch,
) -> Result<LoadReport, LoadError> {
    let database = Database::create_or_open_with(Arc::clone(files), dir)?;
    let lock = WriterLock::acquire_with(files, dir)?;
    let stage = StageDir::create(Arc::clone(files), dir, options.literal_bytes_max)?;
    let builder = SegmentBuilder::begin(&database, &lock)?;
    let existing = database.view_of_process();
    let segment_directory = builder.files().directory().to_path_buf();
    let run = || {
        let parsed = parse(sources, &stage, options, workers, progress)?;
        let (language_tags, prefixes) = (parsed.language_tags(), parsed.prefixes());
        let written = write(
            parsed,
            &existing,
            builder.files(),
            &stage,
            options,
            progress,
        )?;
        Ok::<_, LoadError>((written, language_tags, prefixes))
    };
    let mut has_new_prefixes = false;
    let result = run().and_then(|(written, language_tags, prefixes)| {
        let mut builder = builder;
        has_new_prefixes = builder.note_loaded_prefixes(&prefixes);
        if written.changes_nothing(&existing) && !has_new_prefixes {
            return Ok(written.unchanged(&existing));
        }
        written.publish(&existing, progress, |counts, statistics| {
            builder.add_language_tags(&language_tags);
            builder.set_text_memory(options.usable_bytes());
            builder.publish(counts, statistics)
        })
    });
    let is_published = match &result {
        Ok(report) => report.quads_added > 0 || has_new_prefixes,
        Err(error) => may_be_published(error),
    };
    if !is_published {
        // Give its space back; if this fails, the next load does it.
        let _ = files.remove_dir_all(&segment_directory);
    }
    result.map(|report| finished(report, start))
}

/// Whether the manifest on the disk may be the new one after an error, and name the files of the
/// load: where nobody knows which one is there.
fn may_be_published(error: &LoadError) -> bool {
    matches!(
        error,
        LoadError::Storage(orrery_storage::Error::OutcomeUnknown { .. })
    )
}

/// Loads `sources` into a database that is open for writing, while others read and, until all is
/// parsed, write. What was loaded becomes visible at once, as one commit; where nothing new comes,
/// there is none. On an error the database is as it was.
pub fn load_into(
    writer: &Writer,
    sources: &[Source],
    options: &LoadOptions,
    progress: &dyn Progress,
) -> Result<LoadReport, LoadError> {
    load_into_helped(writer, sources, options, None, progress)
}

/// Loads like [`load_into`] with the help of workers; see [`load_by_workers`].
pub fn load_into_by_workers(
    writer: &Writer,
    sources: &[Source],
    options: &LoadOptions,
    workers: &LoadWorkers,
    progress: &dyn Progress,
) -> Result<LoadReport, LoadError> {
    load_into_helped(writer, sources, options, Some(workers), progress)
}

fn load_into_helped(
    writer: &Writer,
    sources: &[Source],
    options: &LoadOptions,
    workers: Option<&LoadWorkers>,
    progress: &dyn Progress,
) -> Result<LoadReport, LoadError> {
    let start = Stopwatch::start();
    let database = writer.database();
    let sources = check(sources, options, database.file_system())?;
    let run = || {
        let stage = StageDir::create_beside_others(
            Arc::clone(database.file_system()),
            database.directory(),
            options.literal_bytes_max,
        )?;
        let parsed = parse(&sources, &stage, options, workers, progress)?;
        let mut rebase = writer.begin_load()?;
        if options.keeps_history {
            rebase.require_history()?;
        }
        if let Some(check) = &options.check {
            rebase.check_with(check.for_state());
        }
        rebase.add_language_tags(&parsed.language_tags());
        rebase.set_text_memory(options.usable_bytes());
        let has_new_prefixes =
            options.takes_prefixes && rebase.note_loaded_prefixes(&parsed.prefixes());
        let existing = ReadView::of_process(Arc::clone(rebase.source()));
        let written = write(parsed, &existing, rebase.files(), &stage, options, progress)?;
        if written.changes_nothing(&existing) && !has_new_prefixes {
            return Ok(written.unchanged(&existing));
        }
        written.publish(&existing, progress, |counts, statistics| {
            rebase.publish(counts, statistics)
        })
    };
    let result = run();
    progress.end();
    if result.as_ref().is_err_and(LoadError::is_of_the_place) {
        database.activity().loads.note_failure();
    }
    result.map(|report| finished(report, start))
}

fn parse<'w>(
    sources: &[CheckedSource],
    stage: &StageDir,
    options: &LoadOptions,
    workers: Option<&'w LoadWorkers>,
    progress: &dyn Progress,
) -> Result<Parsed<'w>, LoadError> {
    let start = Stopwatch::start();
    let total_bytes = sources.iter().map(|source| source.bytes).sum();
    progress.begin(Stage::Parse, total_bytes);
    let ingested = ingest(options, sources, stage, workers, progress)?;
    Ok(Parsed::of(ingested, start.effort()).by(workers))
}
