//! The last stages of a load: from batches to a segment, and its publication.
//!
//! Loads, compactions and bulk changes end here: [`write()`] adds what changed since the base was
//! written, and writes all files but the statistics; [`Written::publish`] makes them the database.

use crate::LoadOptions;
use crate::error::LoadError;
use crate::ingest::batch::{MemoryBatch, seal, spill};
use crate::ingest::stage::{Ingested, SHARE_BYTES_MIN};
use crate::ingest::stage_dir::StageDir;
use crate::load::delta_batch::{changes_of, delta_batches, has_named_graphs};
use crate::merge::row_sort::ROW_BYTES_MAX;
use crate::merge::segment::{Batches, SegmentInput, SegmentOutput, write_segment};
use crate::progress::{Progress, Stage};
use crate::report::{Effort, LoadReport, StageReport, Stopwatch, peak_memory_bytes};
use crate::threads::joined;
use crate::workers::members::{LoadWorkers, WorkerCounts};
use orrery_storage::{PublishedCounts, ReadView, SegmentFiles, Snapshot, Statistics};
use orrery_term::{LanguageTags, Prefixes};
use std::sync::Arc;
use std::thread;

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
pub(crate) struct Parsed<'w> {
    ingested: Ingested,
    effort: Effort,
    workers: Option<&'w LoadWorkers>,
}

impl<'w> Parsed<'w> {
    /// How the language tags of the sources were written.
    pub(crate) fn language_tags(&self) -> LanguageTags {
        let mut tags = LanguageTags::default();
        for worker in &self.ingested.open {
            tags.note_all(worker.language_tags());
        }
        tags
    }

    /// The prefixes that the sources declare. Of several IRIs of one the first source's is kept,
    /// whichever thread was first.
    pub(crate) fn prefixes(&self) -> Prefixes {
        let workers = self.ingested.open.iter();
        let mut declared: Vec<_> = workers.flat_map(|worker| worker.prefixes()).collect();
        declared.sort_unstable();
        Prefixes::declared(declared.into_iter().map(|(_, name, iri)| (name, iri)))
    }

    /// What was ingested, and what that took.
    pub(crate) fn of(ingested: Ingested, effort: Effort) -> Self {
        Self {
            ingested,
            effort,
            workers: None,
        }
    }

    /// With the help of these.
    pub(crate) fn by(self, workers: Option<&'w LoadWorkers>) -> Self {
        Self { workers, ..self }
    }

    pub(crate) fn nothing() -> Self {
        Self::of(Ingested::nothing(), Effort::default())
    }
}

/// A segment with all its files but the statistics.
pub(crate) struct Written {
    output: SegmentOutput,
    quads_read: u64,
    errors_skipped: u64,
    left_out: u64,
    warnings: Vec<String>,
    workers: Vec<WorkerCounts>,
    parse_effort: Effort,
}

/// Writes a segment with what was parsed and what there is already.
pub(crate) fn write(
    parsed: Parsed<'_>,
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
    let (left_out, mut warnings) = (ingested.left_out, std::mem::take(&mut ingested.warnings));
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
        workers: parsed.workers.filter(|workers| workers.are_sorting),
    };
    let output = write_segment(files, input)?;
    let mut counts = Vec::new();
    if let Some(workers) = parsed.workers {
        counts = workers.counts();
        for warning in workers.take_warnings() {
            progress.warned(&warning);
            warnings.push(warning);
        }
    }
    Ok(Written {
        output,
        quads_read,
        errors_skipped,
        left_out,
        warnings,
        workers: counts,
        parse_effort,
    })
}

impl Written {
    /// Whether the segment has just the quads that were there before: a load only adds.
    pub(crate) fn changes_nothing(&self, existing: &ReadView) -> bool {
        self.output.counts.quads == existing.quad_count()
    }

    /// The report of a load that is no commit.
    pub(crate) fn unchanged(self, existing: &ReadView) -> LoadReport {
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
            workers: self.workers,
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
        let mut stages = self.stages(Effort::default());
        let (left_out, warnings, workers) = (self.left_out, self.warnings, self.workers);
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
            workers,
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
    // The maps of the merge are about what the sort of the terms was; then one permutation is
    // sorted.
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
