//! The whole load, stage by stage.

use crate::LoadOptions;
use crate::batch::{MemoryBatch, seal, spill};
use crate::compact::changes_of;
use crate::delta_batch::{delta_batches, has_named_graphs};
use crate::error::LoadError;
use crate::ingest::{Ingested, SHARE_BYTES_MIN, ingest};
use crate::ntriples::check_iri;
use crate::progress::{Progress, Stage};
use crate::report::{Effort, LoadReport, StageReport, Stopwatch, peak_memory_bytes};
use crate::row_sort::ROW_BYTES_MAX;
use crate::segment::{Batches, SegmentInput, SegmentOutput, write_segment};
use crate::source::{CheckedSource, Source};
use crate::stage_dir::StageDir;
use orrery_storage::io::{FileSystem, LocalFileSystem};
use orrery_storage::{
    Database, PublishedCounts, ReadView, SegmentBuilder, SegmentFiles, Snapshot, Statistics,
    Writer, WriterLock,
};
use orrery_term::LanguageTags;
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// Loads `sources` into the database in `dir`, which is created if it is not there.
///
/// What the database has already stays, and quads that come several times are kept once. Where nothing new comes, there is no
/// commit, and older states stay. On an
/// error the database is as it was before; a directory that this call created is removed again.
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
    let start = Stopwatch::start();
    let sources = check(sources, options, files)?;
    let created = first_missing(&**files, dir)?;
    let result = load_checked(dir, files, &sources, options, progress, start);
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

fn check(
    sources: &[Source],
    options: &LoadOptions,
    files: &Arc<dyn FileSystem>,
) -> Result<Vec<CheckedSource>, LoadError> {
    check_option("graph", options.graph.as_deref())?;
    check_option("base IRI", options.base_iri.as_deref())?;
    sources
        .iter()
        .map(|source| {
            CheckedSource::check(source, options.format, options.base_iri.as_deref(), files)
        })
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
    sources: &[CheckedSource],
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
        let parsed = parse(sources, &stage, options, progress)?;
        let language_tags = parsed.language_tags();
        let written = write(
            parsed,
            &existing,
            builder.files(),
            &stage,
            options,
            progress,
        )?;
        Ok::<_, LoadError>((written, language_tags))
    };
    let result = run().and_then(|(written, language_tags)| {
        if written.changes_nothing(&existing) {
            return Ok(written.unchanged(&existing));
        }
        written.publish(&existing, progress, |counts, statistics| {
            let mut builder = builder;
            builder.add_language_tags(&language_tags);
            builder.publish(counts, statistics)
        })
    });
    let is_published = match &result {
        Ok(report) => report.quads_added > 0,
        // Where nobody knows which manifest is on the disk, it may name these files.
        Err(LoadError::Storage(orrery_storage::Error::WritingStopped { .. })) => true,
        Err(_) => false,
    };
    if !is_published {
        // Give its space back; if this fails, the next load does it.
        let _ = files.remove_dir_all(&segment_directory);
    }
    result.map(|report| finished(report, start))
}

/// Loads `sources` into a database that is open for writing, while others read and, until all is parsed, write. What was loaded
/// becomes visible at once, as one commit; where nothing new comes, there is none. On an error the database is as it was.
pub fn load_into(
    writer: &Writer,
    sources: &[Source],
    options: &LoadOptions,
    progress: &dyn Progress,
) -> Result<LoadReport, LoadError> {
    let start = Stopwatch::start();
    let database = writer.database();
    let sources = check(sources, options, database.file_system())?;
    let stage = StageDir::create_beside_others(
        Arc::clone(database.file_system()),
        database.directory(),
        options.literal_bytes_max,
    )?;
    let run = || {
        let parsed = parse(&sources, &stage, options, progress)?;
        let mut rebase = writer.begin_load()?;
        rebase.add_language_tags(&parsed.language_tags());
        let existing = ReadView::of_process(Arc::clone(rebase.source()));
        let written = write(parsed, &existing, rebase.files(), &stage, options, progress)?;
        if written.changes_nothing(&existing) {
            return Ok(written.unchanged(&existing));
        }
        written.publish(&existing, progress, |counts, statistics| {
            rebase.publish(counts, statistics)
        })
    };
    let result = run();
    progress.end();
    result.map(|report| finished(report, start))
}

pub(crate) fn finished(report: LoadReport, start: Stopwatch) -> LoadReport {
    let effort = start.effort();
    LoadReport {
        seconds: effort.seconds,
        cpu_seconds: effort.cpu_seconds,
        peak_memory_bytes: peak_memory_bytes(),
        ..report
    }
}

/// What the sources held.
pub(crate) struct Parsed {
    ingested: Ingested,
    effort: Effort,
}

impl Parsed {
    /// How the language tags of the sources were written.
    fn language_tags(&self) -> LanguageTags {
        let mut tags = LanguageTags::default();
        for worker in &self.ingested.open {
            tags.note_all(worker.language_tags());
        }
        tags
    }

    /// What was ingested in another way.
    pub(crate) fn of(ingested: Ingested) -> Self {
        Self {
            ingested,
            effort: Effort::default(),
        }
    }

    pub(crate) fn nothing() -> Self {
        Self {
            ingested: Ingested::nothing(),
            effort: Effort::default(),
        }
    }
}

fn parse(
    sources: &[CheckedSource],
    stage: &StageDir,
    options: &LoadOptions,
    progress: &dyn Progress,
) -> Result<Parsed, LoadError> {
    let start = Stopwatch::start();
    let total_bytes = sources.iter().map(|source| source.bytes).sum();
    progress.begin(Stage::Parse, total_bytes);
    let ingested = ingest(options, sources, stage, progress)?;
    Ok(Parsed {
        ingested,
        effort: start.effort(),
    })
}

/// A segment with all its files but the statistics.
pub(crate) struct Written {
    output: SegmentOutput,
    quads_read: u64,
    errors_skipped: u64,
    left_out: u64,
    warnings: Vec<String>,
    parse_effort: Effort,
}

/// Writes a segment with what was parsed and what there is already.
pub(crate) fn write(
    parsed: Parsed,
    existing: &ReadView,
    files: &SegmentFiles,
    stage: &StageDir,
    options: &LoadOptions,
    progress: &dyn Progress,
) -> Result<Written, LoadError> {
    let start = Stopwatch::start();
    let mut ingested = parsed.ingested;
    if changes_of(existing) > 0 {
        let share_bytes = (options.usable_bytes() / 2).max(SHARE_BYTES_MIN);
        let number = ingested.next_batch_number;
        let delta = delta_batches(existing, stage, share_bytes, number, progress)?;
        ingested.next_batch_number += delta.spilled.len() as u32;
        ingested.spilled.extend(delta.spilled);
        ingested.open.push(delta.open);
    }
    let (quads_read, errors_skipped) = (ingested.quads_read, ingested.errors_skipped);
    let (left_out, warnings) = (ingested.left_out, std::mem::take(&mut ingested.warnings));
    let has_named_graphs = ingested.has_named_graphs || has_named_graphs(existing)?;
    let batches = close_batches(ingested, stage, options.usable_bytes())?;
    let parse_effort = parsed.effort + start.effort();
    let input = SegmentInput {
        batches,
        existing,
        has_named_graphs,
        stage,
        memory_bytes: options.usable_bytes(),
        threads: options.threads,
        progress,
    };
    Ok(Written {
        output: write_segment(files, input)?,
        quads_read,
        errors_skipped,
        left_out,
        warnings,
        parse_effort,
    })
}

impl Written {
    /// Whether the segment has just the quads that were there before: a load only adds.
    pub(crate) fn changes_nothing(&self, existing: &ReadView) -> bool {
        self.output.counts.quads == existing.quad_count()
    }

    /// The report of a load that is no commit.
    fn unchanged(self, existing: &ReadView) -> LoadReport {
        LoadReport {
            commit: existing.snapshot().commit(),
            quads_read: self.quads_read,
            duplicates: self.quads_read,
            errors_skipped: self.errors_skipped,
            left_out: self.left_out,
            quads: existing.quad_count(),
            terms: existing.snapshot().dictionary().len() + existing.snapshot().delta_terms(),
            database_bytes: existing.snapshot().file_bytes(),
            stages: self.stages(Effort::default()),
            warnings: self.warnings,
            ..LoadReport::default()
        }
    }

    fn stages(&self, publish: Effort) -> Vec<StageReport> {
        let [terms, permutations] = self.output.stages;
        let stages = [
            (Stage::Parse, self.parse_effort),
            (Stage::Terms, terms),
            (Stage::Permutations, permutations),
            (Stage::Publish, publish),
        ];
        let stages = stages.map(|(stage, effort)| StageReport {
            stage: stage.name(),
            effort,
        });
        stages.into()
    }

    /// Lets `publish` make it the database.
    pub(crate) fn publish(
        self,
        existing: &ReadView,
        progress: &dyn Progress,
        publish: impl FnOnce(PublishedCounts, &Statistics) -> orrery_storage::Result<Arc<Snapshot>>,
    ) -> Result<LoadReport, LoadError> {
        let start = Stopwatch::start();
        progress.begin(Stage::Publish, None);
        let counts = self.output.counts;
        let (quads_read, errors_skipped) = (self.quads_read, self.errors_skipped);
        let (left_out, warnings) = (self.left_out, self.warnings.clone());
        let mut stages = self.stages(Effort::default());
        let snapshot = publish(counts, &self.output.statistics.finish())?;
        if let Some(last) = stages.last_mut() {
            last.effort = start.effort();
        }
        let added = counts.quads.saturating_sub(existing.quad_count());
        Ok(LoadReport {
            commit: snapshot.commit(),
            quads_read,
            quads_added: added,
            duplicates: quads_read.saturating_sub(added),
            errors_skipped,
            left_out,
            quads: counts.quads,
            terms: counts.terms,
            database_bytes: snapshot.file_bytes(),
            stages,
            warnings,
            ..LoadReport::default()
        })
    }
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
        held,
        mut spilled,
        next_batch_number,
        ..
    } = ingested;
    let open_bytes: usize = open.iter().map(|interner| interner.memory_bytes()).sum();
    let held_bytes: usize = held.iter().map(MemoryBatch::memory_bytes).sum();
    // The maps of the merge are about what the sort of the terms was; then one permutation is sorted.
    let open_quads: u64 = open.iter().map(|interner| interner.quad_count()).sum();
    let quads = open_quads + held.iter().map(|batch| batch.quad_count).sum::<u64>();
    let needed = (open_bytes + held_bytes) as u64 + quads * ROW_BYTES_MAX as u64;
    let fits = spilled.is_empty() && needed <= memory_bytes as u64;
    thread::scope(|scope| {
        if fits {
            let sealed: Vec<_> = open
                .into_iter()
                .map(|mut interner| scope.spawn(move || seal(interner.take())))
                .collect();
            let batches = sealed.into_iter().map(joined).chain(held);
            return Ok(Batches::Memory(batches.collect()));
        }
        let mut numbers = next_batch_number..;
        let written: Vec<_> = (&mut numbers)
            .zip(open)
            .map(|(number, mut interner)| {
                scope.spawn(move || spill(seal(interner.take()), stage, number))
            })
            .collect();
        for (number, batch) in numbers.zip(held) {
            spilled.push(spill(batch, stage, number)?);
        }
        for handle in written {
            spilled.push(joined(handle)?);
        }
        Ok(Batches::Spilled(spilled))
    })
}

/// What a thread gave; its panic is ours.
pub(crate) fn joined<T>(handle: thread::ScopedJoinHandle<'_, T>) -> T {
    match handle.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
