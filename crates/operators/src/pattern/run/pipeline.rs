//! The pipeline of a pattern's steps, each with its own position.
//!
//! The deepest level with work left goes first, so that at any moment there is at most one
//! chunk per level, whatever the pattern multiplies out to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use datafusion_common::{Result, internal_err};
use datafusion_execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use orrery_storage::{AdjacencySlot, RowRange};

use crate::context::QueryContext;
use crate::pattern::chunk::Chunk;
use crate::pattern::found_ids::{FoundFilter, Published};
use crate::pattern::id_set::IdSet;
use crate::pattern::intersection::{InMemoryIntersection, Intersection, find_sides, set_of_values};
use crate::pattern::program::{IntersectionProgram, Program, StepProgram};
use crate::pattern::steps::adjacent::{AdjacentExpansion, WithTouched};
use crate::pattern::steps::cursors::Cursors;
use crate::pattern::steps::expansion::Expansion;
use crate::pattern::steps::span::{SCANNED_KEYS_MIN, SetFilter};

/// What one step has done so far; shared by all executions of the plan.
#[derive(Debug, Default)]
pub(crate) struct StepCounters {
    pub(crate) rows: AtomicUsize,
    pub(crate) seeks: AtomicUsize,
    /// Keys looked up in an adjacency in memory.
    pub(crate) in_memory: AtomicUsize,
    /// Rows that were found and dropped by a condition, as far as they are the same ones whatever
    /// way the step is done.
    pub(crate) dropped: AtomicUsize,
}

impl StepCounters {
    /// Rows that were touched: each that came out was found and handed on, each that was dropped
    /// was found.
    pub(crate) fn touches(&self) -> u64 {
        let kept = self.rows.load(Ordering::Relaxed) as u64;
        let dropped = self.dropped.load(Ordering::Relaxed) as u64;
        kept.saturating_mul(2).saturating_add(dropped)
    }
}

/// What a call gave.
pub(crate) enum PipelineProgress {
    /// Some matches of the last step, at least one.
    Chunk(Chunk),
    /// Nothing yet, and the time is up.
    Working,
    /// There are no more.
    Exhausted,
}

/// The levels of one program.
pub(crate) struct Pipeline {
    pub(crate) program: Arc<Program>,
    levels: Vec<StepLevel>,
    /// The entry chunk of a program without steps.
    passed_through: Option<Chunk>,
}

impl Pipeline {
    /// `found`: what is published in this execution, for each place of the specification.
    pub(crate) fn new(
        program: Arc<Program>,
        context: &Arc<QueryContext>,
        found: &[Option<Published>],
    ) -> Self {
        let steps = program.steps.iter();
        let levels = steps.map(|step| StepLevel::new(Arc::clone(step), context));
        let mut levels: Vec<StepLevel> = levels.collect();
        for (place, ids) in program.found.iter().zip(found) {
            if let (Some((step, column)), Some(ids)) = (place, ids) {
                levels[*step]
                    .found
                    .push(FoundFilter::new(*column, ids.clone()));
            }
        }
        Self {
            program,
            levels,
            passed_through: None,
        }
    }

    /// Begins with the next chunk of input rows. The one before must be exhausted.
    /// Of the first step only these rows of its permutation count, if there are any given.
    pub(crate) fn start(&mut self, mut chunk: Chunk, within: Option<RowRange>) -> Result<()> {
        for filter in &self.program.entry_filters {
            chunk = filter.apply(chunk)?;
        }
        if chunk.rows == 0 {
            return Ok(());
        }
        match self.levels.first_mut() {
            Some(level) => level.start(chunk, within)?,
            None => self.passed_through = Some(chunk),
        }
        Ok(())
    }

    /// Works until there is a chunk of matches, nothing is left, or the deadline has passed.
    pub(crate) fn advance(
        &mut self,
        vector_rows: &mut VectorRows,
        matched: Option<&[bool]>,
        counters: &[StepCounters],
        deadline: Instant,
    ) -> Result<PipelineProgress> {
        if let Some(chunk) = self.passed_through.take() {
            return Ok(PipelineProgress::Chunk(chunk));
        }
        loop {
            let Some(deepest) = self.levels.iter().rposition(StepLevel::has_work) else {
                return Ok(PipelineProgress::Exhausted);
            };
            let mut limit = vector_rows.next(deepest == 0, deepest + 1 == self.levels.len());
            if self
                .levels
                .get(deepest + 1)
                .is_some_and(StepLevel::is_in_memory)
            {
                limit = limit.min(IN_MEMORY_ROWS_MAX);
            }
            let chunk = self.levels[deepest].advance(limit, matched, counters)?;
            if let Some(chunk) = chunk {
                match self.levels.get_mut(deepest + 1) {
                    Some(level) => level.start(chunk, None)?,
                    None => return Ok(PipelineProgress::Chunk(chunk)),
                }
            }
            if Instant::now() >= deadline {
                return Ok(PipelineProgress::Working);
            }
        }
    }
}

/// How many rows a chunk gets: grows each time the first step goes on, because larger key vectors
/// touch each vector of the permutation less often. What the chunks take is reserved; where there
/// is no room, they stay short.
#[derive(Debug)]
pub(crate) struct VectorRows {
    current: usize,
    max: usize,
    row_bytes: usize,
    reservation: MemoryReservation,
}

/// The first chunks of a pattern without limit.
const VECTOR_ROWS_START: usize = 8_192;
/// The first chunks under a limit on the rows.
const VECTOR_ROWS_START_LIMITED: usize = 256;
/// The largest chunks between steps. On 10 million triples, 570,000 offers looked up in the order
/// of their products cost 270 ns each with 32,768 keys at a time, and 90 ns with these.
pub(crate) const VECTOR_ROWS_MAX: usize = 131_072;
/// The largest chunks for a step that is done in memory, which gains nothing by long ones: a few
/// columns of it fit into the second cache.
const IN_MEMORY_ROWS_MAX: usize = 16_384;
/// What the chunks of all steps together take, about; patterns with many variables get shorter
/// chunks.
const CHUNK_BYTES_MAX: usize = 64 << 20;
/// Chunks so short are never refused.
const VECTOR_ROWS_MIN: usize = 512;
/// A chunk, what is gathered of the next, and the sorted keys of a look-up.
const COPIES: usize = 3;
/// The chunks of one pattern take at most one part of so many of what may be on its way.
const ON_THE_WAY_PART: usize = 16;
/// The largest chunks that go out.
pub(crate) const OUTPUT_ROWS_MAX: usize = 32_768;

impl VectorRows {
    pub(crate) fn new(
        fixed: Option<usize>,
        fetch: Option<usize>,
        program: &Program,
        pool: &Arc<dyn MemoryPool>,
    ) -> Self {
        let reservation = MemoryConsumer::new("chunks of a pattern").register(pool);
        let columns = program
            .steps
            .iter()
            .map(|step| step.columns())
            .sum::<usize>();
        let max = (CHUNK_BYTES_MAX / (columns.max(1) * size_of::<u64>()))
            .clamp(VECTOR_ROWS_START, VECTOR_ROWS_MAX);
        let row_bytes = columns.max(1) * size_of::<u64>() * COPIES;
        let fitting = match pool.memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / ON_THE_WAY_PART / row_bytes,
            MemoryLimit::Infinite | MemoryLimit::Unknown => max,
        };
        let max = max.min(fitting).max(VECTOR_ROWS_MIN);
        let (current, max) = match (fixed, fetch) {
            (Some(rows), _) => (rows.max(1), rows.max(1)),
            (None, Some(_)) => (VECTOR_ROWS_START_LIMITED, max),
            (None, None) => (VECTOR_ROWS_START.min(max), max),
        };
        let mut rows = Self {
            current,
            max,
            row_bytes,
            reservation,
        };
        while !rows.reserve(rows.current) && rows.current > VECTOR_ROWS_MIN && fixed.is_none() {
            rows.current = (rows.current / 2).max(VECTOR_ROWS_MIN);
        }
        rows
    }

    fn reserve(&self, rows: usize) -> bool {
        self.reservation.try_resize(rows * self.row_bytes).is_ok()
    }

    /// Whether there is room for a chunk of so many rows that goes out, made otherwise.
    pub(crate) fn has_room(&self, rows: usize, row_bytes: usize) -> bool {
        let bytes = rows * row_bytes;
        rows <= VECTOR_ROWS_MIN
            || bytes <= self.reservation.size()
            || self.reservation.try_resize(bytes).is_ok()
    }

    /// There will be no more chunks.
    pub(crate) fn release(&self) {
        self.reservation.free();
    }

    fn next(&mut self, is_first_step: bool, is_last_step: bool) -> usize {
        let rows = self.current;
        if is_first_step {
            let more = (rows * 2).min(self.max);
            if more > rows && self.reserve(more) {
                self.current = more;
            }
        }
        match is_last_step {
            true => rows.min(OUTPUT_ROWS_MAX),
            false => rows,
        }
    }
}

/// What a level does with a chunk.
#[allow(
    clippy::large_enum_variant,
    reason = "there is one a level, and a box would cost each small query an allocation a step"
)]
enum StepWork {
    /// One pattern.
    Expansion(Expansion),
    /// Several patterns that bind one variable.
    Intersection(Intersection),
    /// The same as a scan of one of them, the others as a set.
    SetScan(Expansion),
    /// Either of the first and the last, in an adjacency in memory.
    Adjacent(AdjacentExpansion),
    /// The second in adjacencies in memory.
    InMemory(InMemoryIntersection),
}

struct StepLevel {
    program: Arc<StepProgram>,
    context: Arc<QueryContext>,
    /// The place of the adjacency by which the step can be done; looked for at the first need.
    slot: Option<Arc<AdjacencySlot>>,
    /// Those of the sides of an intersection.
    side_slots: Vec<Arc<AdjacencySlot>>,
    /// One pair for each permutation that the step reads; made at the first need.
    cursors: Vec<Cursors>,
    work: Option<StepWork>,
    /// Ids that others find of variables that the step binds.
    found: Vec<FoundFilter>,
    /// Small chunks, put together before they go on: a selective step would otherwise starve the
    /// later ones of rows to sort.
    gathered: Vec<Chunk>,
    gathered_rows: usize,
}

impl StepLevel {
    fn new(program: Arc<StepProgram>, context: &Arc<QueryContext>) -> Self {
        Self {
            program,
            context: Arc::clone(context),
            slot: None,
            side_slots: Vec::new(),
            cursors: Vec::new(),
            work: None,
            found: Vec::new(),
            gathered: Vec::new(),
            gathered_rows: 0,
        }
    }

    /// Whether it was done by an adjacency, or would be now.
    fn is_in_memory(&self) -> bool {
        let mut slots = self.slot.iter().chain(&self.side_slots);
        slots.next().is_some_and(|slot| slot.get().is_some())
    }

    fn has_work(&self) -> bool {
        self.work.is_some()
    }

    fn start(&mut self, chunk: Chunk, within: Option<RowRange>) -> Result<()> {
        debug_assert!(!self.has_work());
        debug_assert!(within.is_none() || self.program.intersection.is_none());
        self.work = Some(
            if let Some((adjacency, set)) = self.find_adjacency(&chunk, within)? {
                StepWork::Adjacent(AdjacentExpansion::new(chunk, adjacency, set))
            } else if let Some(sides) = self.find_sides(chunk.rows)? {
                StepWork::InMemory(InMemoryIntersection::new(chunk, sides))
            } else {
                self.work_in_permutation(chunk, within)?
            },
        );
        Ok(())
    }

    /// The adjacencies by which the sides of an intersection can be done for so many rows.
    fn find_sides(&mut self, rows: usize) -> Result<Option<Vec<WithTouched>>> {
        let Some(intersection) = &self.program.intersection else {
            return Ok(None);
        };
        let steps = &intersection.adjacent;
        if steps.len() < intersection.sides.len() {
            return Ok(None);
        }
        if self.side_slots.is_empty() {
            for step in steps {
                self.side_slots.extend(step.slot()?);
            }
        }
        let slots = &self.side_slots;
        find_sides(steps, |number, step| match slots.get(number) {
            Some(slot) => step.find(slot, &self.context, rows),
            None => Ok(None),
        })
    }

    /// The adjacency by which a chunk can be done, and the set in which its values must be, if
    /// there is one.
    fn find_adjacency(
        &mut self,
        chunk: &Chunk,
        within: Option<RowRange>,
    ) -> Result<Option<FoundAdjacency>> {
        let program = Arc::clone(&self.program);
        let Some((_, step)) = program.adjacent_program().filter(|_| within.is_none()) else {
            return Ok(None);
        };
        if self.slot.is_none() {
            self.slot = step.slot()?;
        }
        let Some(slot) = &self.slot else {
            return Ok(None);
        };
        let Some(adjacency) = step.find(slot, &self.context, chunk.rows)? else {
            return Ok(None);
        };
        let set = match (&program.intersection, program.set_scan()) {
            (Some(intersection), Some(by_set)) => {
                let cursors = self.cursors();
                let set = set_of_values(intersection, by_set, cursors, chunk.rows)?;
                if set.is_none() {
                    return Ok(None);
                }
                set
            }
            _ => None,
        };
        Ok(Some((adjacency, set)))
    }

    fn cursors(&mut self) -> &mut [Cursors] {
        if self.cursors.is_empty() {
            self.cursors = Cursors::of(&self.program);
        }
        &mut self.cursors
    }

    /// The way in which a chunk is done without an adjacency.
    fn work_in_permutation(&mut self, chunk: Chunk, within: Option<RowRange>) -> Result<StepWork> {
        let program = Arc::clone(&self.program);
        let cursors = self.cursors();
        Ok(match &program.intersection {
            None => StepWork::Expansion(Expansion::new(&program, chunk).within(within)),
            Some(intersection) => intersect(intersection, cursors, chunk)?,
        })
    }

    /// Ends what was done; begins with the rows that an adjacency left to the permutation. Whether
    /// there are any.
    fn begin_aside(&mut self) -> Result<bool> {
        let aside = match self.work.take() {
            Some(StepWork::Adjacent(adjacent)) => adjacent.into_aside()?,
            Some(StepWork::InMemory(sides)) => sides.into_aside()?,
            Some(StepWork::Expansion(_) | StepWork::Intersection(_) | StepWork::SetScan(_))
            | None => None,
        };
        self.work = match aside {
            Some(chunk) => Some(self.work_in_permutation(chunk, None)?),
            None => None,
        };
        Ok(self.has_work())
    }

    /// One bounded piece of work. A chunk that comes back is not empty.
    fn advance(
        &mut self,
        limit: usize,
        matched: Option<&[bool]>,
        all_counters: &[StepCounters],
    ) -> Result<Option<Chunk>> {
        let Some(work) = &mut self.work else {
            return Ok(None);
        };
        let program = &self.program;
        let mut seeks = 0;
        let mut in_memory = 0;
        let mut dropped = 0;
        let (mut chunk, is_exhausted) = match work {
            StepWork::Expansion(expansion) => {
                let (cursors, seeks) = (&mut self.cursors[0], &mut seeks);
                let found = expansion.advance(program, cursors, limit, matched, seeks)?;
                // An adjacency would not have looked at them.
                if program.adjacent_program().is_none() {
                    dropped += expansion.take_dropped();
                }
                found
            }
            StepWork::Intersection(intersection) => {
                intersection.advance(program, &mut self.cursors, limit, matched, &mut seeks)?
            }
            StepWork::SetScan(scan) => match program.set_scan() {
                Some(by_set) => {
                    let cursors = &mut self.cursors[by_set.side];
                    scan.advance(&by_set.step, cursors, limit, matched, &mut seeks)?
                }
                None => return internal_err!("a step without sets is scanned by one"),
            },
            StepWork::InMemory(sides) => match &program.intersection {
                Some(intersection) => {
                    sides.advance(program, intersection, limit, matched, &mut in_memory)?
                }
                None => return internal_err!("a step of one pattern is no intersection"),
            },
            StepWork::Adjacent(adjacent) => match program.adjacent_program() {
                Some((step_program, step)) => {
                    adjacent.advance(step_program, step, limit, matched, &mut in_memory)?
                }
                None => return internal_err!("a step without adjacency is done by one"),
            },
        };
        let found = chunk.rows;
        for filter in &self.program.filters {
            if chunk.rows > 0 {
                chunk = filter.apply(chunk)?;
            }
        }
        for filter in &mut self.found {
            if chunk.rows > 0 {
                chunk = filter.apply(chunk)?;
            }
        }
        dropped += found - chunk.rows;
        let counters = self.program.members.first();
        if let Some(counters) = counters.and_then(|&step| all_counters.get(step)) {
            counters.seeks.fetch_add(seeks, Ordering::Relaxed);
            counters.in_memory.fetch_add(in_memory, Ordering::Relaxed);
            counters.rows.fetch_add(chunk.rows, Ordering::Relaxed);
            if dropped > 0 {
                counters.dropped.fetch_add(dropped, Ordering::Relaxed);
            }
        }
        let is_exhausted = is_exhausted && !self.begin_aside()?;
        if chunk.rows > 0 {
            self.gathered_rows += chunk.rows;
            self.gathered.push(chunk);
        }
        if self.gathered_rows == 0 || (!is_exhausted && self.gathered_rows < limit / 2) {
            return Ok(None);
        }
        self.gathered_rows = 0;
        Chunk::concatenate(std::mem::take(&mut self.gathered))
    }
}

/// An adjacency with the keys that changes touch, and the set in which its values must be, if there
/// is one.
type FoundAdjacency = (WithTouched, Option<Arc<IdSet>>);

/// The way in which the patterns of an intersection are matched for a chunk.
fn intersect(
    program: &IntersectionProgram,
    cursors: &mut [Cursors],
    chunk: Chunk,
) -> Result<StepWork> {
    if let Some(by_set) = &program.by_set
        && chunk.rows >= SCANNED_KEYS_MIN
        && let Some(ids) = set_of_values(program, by_set, cursors, chunk.rows)?
    {
        let mut scan = Expansion::new(&by_set.step, chunk);
        let filter = SetFilter::new(by_set.read, ids);
        return Ok(
            match scan.scan(&by_set.step, &mut cursors[by_set.side], Some(filter))? {
                true => StepWork::SetScan(scan),
                false => StepWork::Intersection(Intersection::new(scan.into_input())),
            },
        );
    }
    Ok(StepWork::Intersection(Intersection::new(chunk)))
}
