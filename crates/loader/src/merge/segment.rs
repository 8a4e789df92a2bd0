//! Stages two and three: from batches to the files of a segment.
//!
//! ```text
//! batches, old dictionary --- merge ---> keys in order ---> dictionary   (a thread of its own)
//!                               |
//!                               v
//!                          ordinals ---> each permutation: sort, merge with the old, write
//! ```
//!
//! If all batches are in memory, the merge only notes the order of the keys and the permutations
//! are sorted while the dictionary is still being compressed. If they are on disk, keys pass
//! through a bounded queue, so that the merge waits for the dictionary.

use crate::error::LoadError;
use crate::ingest::batch::{MemoryBatch, SortedTerms, SpilledBatch};
use crate::ingest::large_literals::LargeLiterals;
use crate::ingest::stage_dir::StageDir;
use crate::merge::ordinals::{Ordinal, OrdinalSpace};
use crate::merge::permutations::{ExistingRows, LoadedQuads, PermutationSort};
use crate::merge::row_packing::{OrdinalSet, PackedRow, RowPacking};
use crate::merge::terms::{KeyBlock, KeyStream, Run, merge_terms};
use crate::merge::used_terms::UsedTerms;
use crate::progress::check_cancelled;
use crate::progress::{Progress, Stage};
use crate::report::{Effort, Stopwatch};
use crate::threads::joined;
use crate::workers::members::LoadWorkers;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use orrery_storage::Permutation;
use orrery_storage::dictionary::{KeyCursor, KeySource};
use orrery_storage::{
    Dictionary, DictionaryWriter, PublishedCounts, ReadView, SegmentFiles, StatisticsBuilder,
};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Blocks of keys between the merge and the dictionary, if the memory is bounded.
const QUEUED_KEY_BLOCKS: usize = 8;

/// Buffers of the runs during the merge, each.
const RUN_BUFFER_BYTES_MIN: usize = 16 << 10;
const RUN_BUFFER_BYTES_MAX: usize = 1 << 20;

/// A sort never holds fewer rows, however little memory was given.
const CAPACITY_ROWS_MIN: usize = 1 << 16;

/// All batches of a load: in memory, or all in the stage directory.
pub(crate) enum Batches {
    Memory(Vec<MemoryBatch>),
    Spilled(Vec<SpilledBatch>),
}

/// What the load knows and is given.
pub(crate) struct SegmentInput<'a> {
    pub(crate) batches: Batches,
    pub(crate) existing: &'a ReadView,
    pub(crate) has_named_graphs: bool,
    pub(crate) stage: &'a StageDir,
    /// What [`crate::LoadOptions::usable_bytes`] says.
    pub(crate) memory_bytes: usize,
    pub(crate) threads: usize,
    pub(crate) progress: &'a dyn Progress,
    /// Those who sort, if others do.
    pub(crate) workers: Option<&'a LoadWorkers>,
}

/// What was written.
pub(crate) struct SegmentOutput {
    pub(crate) counts: PublishedCounts,
    pub(crate) statistics: StatisticsBuilder,
    /// What the two stages took.
    pub(crate) stages: [Effort; 2],
}

/// Writes the dictionary and all permutations.
pub(crate) fn write_segment(
    files: &SegmentFiles,
    input: SegmentInput<'_>,
) -> Result<SegmentOutput, LoadError> {
    let SegmentInput {
        batches, existing, ..
    } = &input;
    let old_terms = existing.snapshot().dictionary().len();
    let is_spilled = matches!(batches, Batches::Spilled(_));
    let is_bounded = is_spilled || old_terms > 0;
    let (keys_in, keys_out) = if is_bounded {
        bounded(QUEUED_KEY_BLOCKS)
    } else {
        // In memory a block is but eight bytes a term.
        unbounded()
    };
    let writer = files.dictionary()?;
    let (terms, quads) = split(input.batches);
    let terms = Arc::new(terms);
    let plan = Plan {
        stage: input.stage,
        existing: input.existing,
        progress: input.progress,
        memory_bytes: input.memory_bytes,
        threads: input.threads.max(1),
        has_named_graphs: input.has_named_graphs,
        workers: input.workers,
    };
    let start = Stopwatch::start();
    thread::scope(|scope| {
        let terms_of_dictionary = Arc::clone(&terms);
        let large = Arc::clone(plan.stage.large_literals());
        let dictionary = thread::Builder::new()
            .name("load-dictionary".to_owned())
            .spawn_scoped(scope, move || {
                write_dictionary(writer, &keys_out, &terms_of_dictionary, &large)
            })
            .map_err(LoadError::Thread)?;
        let written = plan.run(files, terms, quads, keys_in, start);
        let dictionary = match dictionary.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        // If the dictionary failed, the merge failed for it could not send: the former is the
        // cause.
        let terms = dictionary?;
        let mut output = written?;
        // The dictionary may have taken longer than the permutations.
        let [terms_effort, permutations] = &mut output.stages;
        *permutations = start.effort() - *terms_effort;
        debug_assert_eq!(output.counts.terms, terms);
        Ok(output)
    })
}

/// The terms of batches in memory, and the quads of all.
fn split(batches: Batches) -> (Vec<SortedTerms>, UnnumberedQuads) {
    match batches {
        Batches::Memory(batches) => {
            let (terms, quads) = batches
                .into_iter()
                .map(|batch| (batch.terms, batch.quads))
                .unzip();
            (terms, UnnumberedQuads::Memory(quads))
        }
        Batches::Spilled(batches) => (Vec::new(), UnnumberedQuads::Spilled(batches)),
    }
}

/// Quads before their batches' numbers became ordinals.
enum UnnumberedQuads {
    Memory(Vec<Vec<Vec<[u32; 4]>>>),
    Spilled(Vec<SpilledBatch>),
}

/// Takes the keys from the queue into the dictionary. Returns how many there were.
fn write_dictionary(
    mut writer: DictionaryWriter,
    keys: &Receiver<KeyBlock>,
    terms: &[SortedTerms],
    large: &LargeLiterals,
) -> Result<u64, LoadError> {
    let mut push = |key: &[u8]| match large.is_large(key) {
        false => writer.push(key).map_err(LoadError::from),
        true => {
            let source = large.source(key).ok_or(LoadError::DamagedStage)?;
            Ok(writer.push_streamed(key, source)?)
        }
    };
    for block in keys {
        match block {
            KeyBlock::References(references) => {
                for (run, local) in references {
                    push(terms[run as usize].key(local))?;
                }
            }
            KeyBlock::Bytes { bytes, ends } => {
                let mut start = 0;
                for end in ends {
                    push(&bytes[start..end as usize])?;
                    start = end as usize;
                }
            }
        }
    }
    Ok(writer.finish()?.terms)
}

/// The keys of the database's dictionary as a run of the merge, without those that nothing uses any
/// more.
struct DictionaryKeys<'a> {
    cursor: KeyCursor<'a>,
    large: &'a LargeLiterals,
    terms: u64,
    next_rank: u64,
    used: Option<UsedTerms>,
}

impl KeyStream for DictionaryKeys<'_> {
    fn next_key(&mut self, key: &mut Vec<u8>) -> orrery_storage::Result<Option<usize>> {
        key.clear();
        let mut ranks = self.next_rank..self.terms;
        let next = ranks.find(|&rank| self.used.as_ref().is_none_or(|used| used.contains(rank)));
        self.next_rank = ranks.start;
        let Some(rank) = next else { return Ok(None) };
        let streamed = self.cursor.streamed(rank)?;
        let is_large = |bytes: u64| bytes > self.large.key_bytes_max() as u64;
        if let Some(streamed) = streamed.filter(|streamed| is_large(streamed.bytes())) {
            self.large.take(Arc::new(streamed), key)?;
            return Ok(Some(rank as usize));
        }
        let stored = self.cursor.at(rank)?;
        match self.large.is_large(stored) {
            true => self.large.take_key(stored, key)?,
            false => key.extend_from_slice(stored),
        }
        Ok(Some(rank as usize))
    }
}

/// What both stages need to know.
struct Plan<'a> {
    stage: &'a StageDir,
    existing: &'a ReadView,
    progress: &'a dyn Progress,
    memory_bytes: usize,
    threads: usize,
    has_named_graphs: bool,
    workers: Option<&'a LoadWorkers>,
}

impl Plan<'_> {
    fn run(
        &self,
        files: &SegmentFiles,
        terms: Arc<Vec<SortedTerms>>,
        quads: UnnumberedQuads,
        keys: Sender<KeyBlock>,
        start: Stopwatch,
    ) -> Result<SegmentOutput, LoadError> {
        let terms_bytes = terms.iter().map(SortedTerms::memory_bytes).sum();
        let numbered = self.number_terms(&terms, quads, &keys)?;
        // From here on only the dictionary's thread needs the terms and waits for keys.
        drop((keys, terms));
        let terms_effort = start.effort();
        let start = Stopwatch::start();
        let (quads, statistics) = self.write_permutations(files, &numbered, terms_bytes)?;
        Ok(SegmentOutput {
            counts: PublishedCounts {
                quads,
                terms: numbered.space.dictionary_terms(),
                next_blank_node: numbered.space.next_blank_node(),
            },
            statistics,
            stages: [terms_effort, start.effort()],
        })
    }

    /// Merges the terms, hands the keys on, and gives the quads in memory their ordinals.
    fn number_terms(
        &self,
        terms: &[SortedTerms],
        quads: UnnumberedQuads,
        keys: &Sender<KeyBlock>,
    ) -> Result<Numbered, LoadError> {
        let mut runs: Vec<Run<'_>> = terms.iter().map(Run::memory).collect();
        let mut total: usize = terms.iter().map(SortedTerms::len).sum();
        if let UnnumberedQuads::Spilled(batches) = &quads {
            let buffer_bytes = (self.memory_bytes / 8 / batches.len().max(1))
                .clamp(RUN_BUFFER_BYTES_MIN, RUN_BUFFER_BYTES_MAX);
            for batch in batches {
                total += batch.term_count;
                runs.push(Run::spilled(batch, self.stage, buffer_bytes)?);
            }
        }
        let dictionary: &Dictionary = self.existing.snapshot().dictionary();
        let old_terms = usize::try_from(dictionary.len()).unwrap_or(usize::MAX);
        if old_terms > 0 {
            total += old_terms;
            let keys = DictionaryKeys {
                cursor: dictionary.iter(0),
                large: self.stage.large_literals(),
                terms: dictionary.len(),
                next_rank: 0,
                used: UsedTerms::of(self.existing)?,
            };
            runs.push(Run::existing(Box::new(keys), old_terms));
        }
        self.progress.begin(Stage::Terms, Some(total as u64));
        let space = merge_terms(
            &mut runs,
            self.existing.snapshot().next_blank_node(),
            &mut |block| keys.send(block).map_err(|_| LoadError::Interrupted),
            &mut |passed| {
                self.progress.advance(passed, 0);
                check_cancelled(self.progress)
            },
        )?;
        let mut roles = Roles::new(&space);
        for [predicates, graphs] in runs.iter().filter_map(Run::roles) {
            predicates.iter().for_each(|&o| roles.predicates.insert(o));
            graphs.iter().for_each(|&o| roles.graphs.insert(o));
        }
        let mut maps: Vec<Vec<Ordinal>> = runs.into_iter().filter_map(Run::into_map).collect();
        let old_ordinals = if old_terms > 0 { maps.pop() } else { None };
        let quads = match quads {
            UnnumberedQuads::Memory(batches) => {
                LoadedQuads::Memory(renumber(batches, maps, &mut roles))
            }
            UnnumberedQuads::Spilled(batches) => LoadedQuads::Spilled(batches),
        };
        Ok(Numbered {
            packing: RowPacking::new(&space, roles.predicates, roles.graphs),
            space,
            quads,
            old_ordinals: old_ordinals.unwrap_or_default(),
        })
    }

    /// Writes all permutations, as many at a time as threads and memory allow. Returns the number
    /// of quads.
    fn write_permutations(
        &self,
        files: &SegmentFiles,
        numbered: &Numbered,
        terms_bytes: usize,
    ) -> Result<(u64, StatisticsBuilder), LoadError> {
        let permutations: Vec<Permutation> = Permutation::ALL
            .into_iter()
            .filter(|&permutation| permutation != Permutation::Gspo || self.has_named_graphs)
            .collect();
        let (workers, capacity_rows) =
            self.divide_memory(numbered, terms_bytes, permutations.len());
        let rows_each = numbered.quads.len() + self.existing.quad_count();
        let total = rows_each * permutations.len() as u64;
        self.progress.begin(Stage::Permutations, Some(total));
        let jobs = PermutationJobs {
            files,
            numbered,
            existing: self.existing,
            stage: self.stage,
            progress: self.progress,
            workers: self.workers,
            permutations,
            capacity_rows,
            next: AtomicUsize::new(0),
            rows_written: AtomicU64::new(0),
            outcome: Mutex::new(Outcome::default()),
        };
        thread::scope(|scope| {
            for number in 1..workers {
                let spawned = thread::Builder::new()
                    .name(format!("load-sort-{number}"))
                    .spawn_scoped(scope, || jobs.work());
                // This thread works too, so fewer threads only take longer.
                if let Err(error) = spawned {
                    tracing::warn!(%error, "sorting with fewer threads");
                }
            }
            jobs.work();
        });
        let outcome = jobs
            .outcome
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = outcome.error {
            return Err(error);
        }
        Ok((outcome.quads.unwrap_or_default(), outcome.statistics))
    }

    /// How many permutations are sorted at a time, and how many rows each may hold.
    fn divide_memory(
        &self,
        numbered: &Numbered,
        terms_bytes: usize,
        permutations: usize,
    ) -> (usize, usize) {
        let new_quads = usize::try_from(numbered.quads.len()).unwrap_or(usize::MAX);
        let held = match &numbered.quads {
            LoadedQuads::Memory(_) => new_quads * size_of::<[Ordinal; 4]>(),
            LoadedQuads::Spilled(_) => 0,
        };
        let old_ordinals = numbered.old_ordinals.len() * size_of::<Ordinal>();
        let available = self
            .memory_bytes
            .saturating_sub(held + terms_bytes + old_ordinals);
        let map_bytes = numbered.quads.largest_map() * size_of::<Ordinal>();
        let row_bytes = numbered.packing.row_bytes();
        let sort_bytes = new_quads.saturating_mul(row_bytes).max(1);
        let workers_max = self.threads.min(permutations).max(1);
        // Fewer at a time if that keeps them in memory; spilled ones are on disk anyway.
        let workers = match &numbered.quads {
            LoadedQuads::Memory(_) => (available / sort_bytes).clamp(1, workers_max),
            LoadedQuads::Spilled(_) => workers_max,
        };
        let capacity_rows = (available / workers).saturating_sub(map_bytes) / row_bytes;
        (workers, capacity_rows.max(CAPACITY_ROWS_MIN))
    }
}

/// What the merge of the terms led to.
struct Numbered {
    space: OrdinalSpace,
    packing: RowPacking,
    quads: LoadedQuads,
    /// Ordinals by old rank.
    old_ordinals: Vec<Ordinal>,
}

/// The terms that occur as predicates, and those that occur as graphs.
struct Roles {
    limit: u64,
    predicates: OrdinalSet,
    graphs: OrdinalSet,
}

impl Roles {
    fn new(space: &OrdinalSpace) -> Self {
        let limit = space.limit();
        Self {
            limit,
            predicates: OrdinalSet::new(limit),
            graphs: OrdinalSet::new(limit),
        }
    }
}

/// Replaces local numbers by ordinals, in place, one thread a batch, and notes what the terms are.
fn renumber(
    mut batches: Vec<Vec<Vec<[u32; 4]>>>,
    maps: Vec<Vec<Ordinal>>,
    roles: &mut Roles,
) -> Vec<Vec<[Ordinal; 4]>> {
    let limit = roles.limit;
    let of_batches: Vec<[OrdinalSet; 2]> = thread::scope(|scope| {
        let threads: Vec<_> = batches
            .iter_mut()
            .zip(maps)
            .map(|(batch, map)| {
                scope.spawn(move || {
                    let mut sets = [OrdinalSet::new(limit), OrdinalSet::new(limit)];
                    let [predicates, graphs] = &mut sets;
                    for quad in batch.iter_mut().flatten() {
                        *quad = quad.map(|number| map[number as usize]);
                        predicates.insert(quad[1]);
                        graphs.insert(quad[3]);
                    }
                    sets
                })
            })
            .collect();
        threads.into_iter().map(joined).collect()
    });
    for [predicates, graphs] in &of_batches {
        roles.predicates.union(predicates);
        roles.graphs.union(graphs);
    }
    batches.into_iter().flatten().collect()
}

/// The permutations still to be written, shared by the threads that write them.
struct PermutationJobs<'a> {
    files: &'a SegmentFiles,
    numbered: &'a Numbered,
    existing: &'a ReadView,
    stage: &'a StageDir,
    progress: &'a dyn Progress,
    workers: Option<&'a LoadWorkers>,
    permutations: Vec<Permutation>,
    capacity_rows: usize,
    next: AtomicUsize,
    rows_written: AtomicU64,
    outcome: Mutex<Outcome>,
}

#[derive(Default)]
struct Outcome {
    /// Rows of each permutation so far; they must agree.
    quads: Option<u64>,
    statistics: StatisticsBuilder,
    error: Option<LoadError>,
}

impl PermutationJobs<'_> {
    /// Writes one permutation after the other until all are taken or one failed.
    fn work(&self) {
        if self.numbered.packing.row_bytes() == size_of::<u64>() {
            self.work_with::<u64>();
        } else {
            self.work_with::<u128>();
        }
    }

    fn work_with<R: PackedRow>(&self) {
        let mut memory: Vec<R> = Vec::new();
        loop {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&permutation) = self.permutations.get(next) else {
                return;
            };
            let result = self.write(permutation, &mut memory);
            let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
            match result {
                Ok((rows, statistics)) => {
                    assert!(
                        outcome.quads.is_none_or(|other| other == rows),
                        "permutations of the same quads have as many rows"
                    );
                    outcome.quads = Some(rows);
                    outcome.statistics.merge(statistics);
                }
                Err(error) => {
                    outcome.error.get_or_insert(error);
                    self.next.store(self.permutations.len(), Ordering::Relaxed);
                }
            }
        }
    }

    fn write<R: PackedRow>(
        &self,
        permutation: Permutation,
        memory: &mut Vec<R>,
    ) -> Result<(u64, StatisticsBuilder), LoadError> {
        let mut writer = self.files.index(permutation)?;
        let mut statistics = StatisticsBuilder::default();
        // Without a GSPO yet, all old quads are in the default graph: SPOG has the same order.
        let old_index = self.existing.index(permutation);
        let old_index = old_index.or_else(|| self.existing.index(Permutation::Spog));
        let sort = PermutationSort {
            quads: &self.numbered.quads,
            space: &self.numbered.space,
            packing: &self.numbered.packing,
            stage: self.stage,
            permutation,
            capacity_rows: self.capacity_rows,
            existing: old_index.as_ref().map(|index| ExistingRows {
                index,
                ordinals: &self.numbered.old_ordinals,
            }),
            workers: self.workers,
        };
        let rows = sort.run(memory, &mut |rows| {
            match permutation {
                Permutation::Psog => statistics.observe_psog(rows),
                Permutation::Posg => statistics.observe_posg(rows),
                Permutation::Spog => statistics.observe_spog(rows),
                Permutation::Ospg => statistics.observe_ospg(rows),
                Permutation::Gspo => statistics.observe_gspo(rows),
            }
            writer.push_rows(rows)?;
            let count = rows.len() as u64;
            let written = self.rows_written.fetch_add(count, Ordering::Relaxed) + count;
            self.progress.advance(written, 0);
            check_cancelled(self.progress)
        })?;
        writer.finish()?;
        Ok((rows, statistics))
    }
}
