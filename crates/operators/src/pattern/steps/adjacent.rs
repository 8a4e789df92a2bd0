//! Look-ups of a step in an adjacency, in the order of the chunk's rows.
//!
//! ```text
//! key of row 0, 1, 2 ..  -> rank -> values         no keys are sorted, nothing is sought or decoded
//! rows with touched keys -> set aside              looked up in the permutation afterwards
//! ```
//!
//! Whether it is done this way is decided for each chunk: an adjacency may have been built
//! meanwhile, or given up. Keys that changes since the base was written touch ([`Touched`]) go the
//! old way, all together when the other rows of their chunk are done.
//!
//! Where each row has one match, the columns that go on are those of the chunk and nothing is
//! copied.

use std::sync::Arc;

use arrow::array::UInt64Array;
use arrow::buffer::ScalarBuffer;
use datafusion_common::Result;
use orrery_storage::adjacency::Touched;
use orrery_storage::{Adjacency, AdjacencySlot};
use orrery_term::TermId;

use crate::context::QueryContext;
use crate::pattern::chunk::{Chunk, repeat};
use crate::pattern::id_set::IdSet;
use crate::pattern::program::{AdjacentStep, Key, StepProgram, ThirdColumn};
use crate::solutions::{gather, storage_error};

/// Rows and values looked at in one call, at least.
const WORK_MIN: usize = 4_096;

/// An adjacency with the keys that changes touch.
pub(crate) type WithTouched = (Arc<Adjacency>, Touched);

impl AdjacentStep {
    /// What is looked up for the rows of a chunk.
    pub(crate) fn key_of<'a>(&self, input: &'a Chunk) -> ColumnOrConstant<'a> {
        ColumnOrConstant::of(self.key, input)
    }

    /// The adjacency for a chunk of so many rows, if it is there by now, with the keys that changes
    /// touch.
    pub(crate) fn find(
        &self,
        slot: &Arc<AdjacencySlot>,
        context: &QueryContext,
        rows: usize,
    ) -> Result<Option<WithTouched>> {
        let of = (&self.index, self.predicate);
        let found = context
            .adjacencies()
            .find(slot, of, rows, context.workers());
        let Some(adjacency) = found else {
            return Ok(None);
        };
        let touched = self
            .index
            .touched(self.predicate, rows)
            .map_err(storage_error)?;
        Ok(Some((adjacency, touched)))
    }
}

/// The work of one step on one chunk.
pub(crate) struct AdjacentExpansion {
    input: Chunk,
    adjacency: Arc<Adjacency>,
    touched: Touched,
    /// Only values of this set count.
    set: Option<Arc<IdSet>>,
    /// The row to go on with, and how many of its values are done.
    next: usize,
    offset: usize,
    /// Rows with touched keys.
    aside: Vec<u32>,
}

/// What some rows of a chunk gave.
#[derive(Default)]
struct AdjacentMatches {
    /// A row for each match, ascending.
    rows: Vec<u32>,
    /// The value of each match, if they are read.
    values: Vec<u64>,
    /// Not every row gave one match.
    is_uneven: bool,
}

impl AdjacentExpansion {
    pub(crate) fn new(
        input: Chunk,
        (adjacency, touched): WithTouched,
        set: Option<Arc<IdSet>>,
    ) -> Self {
        Self {
            input,
            adjacency,
            touched,
            set,
            next: 0,
            offset: 0,
            aside: Vec::new(),
        }
    }

    /// At most `limit` further matches, before the step's filters. The flag says that there are no
    /// more.
    pub(crate) fn advance(
        &mut self,
        program: &StepProgram,
        step: &AdjacentStep,
        limit: usize,
        matched: Option<&[bool]>,
        keys: &mut usize,
    ) -> Result<(Chunk, bool)> {
        let first = self.next;
        let mut found = AdjacentMatches::default();
        self.read_single_values(program, step, limit, &mut found)?;
        if self.next == first {
            self.look_up(program, step, limit, matched, &mut found)?;
        }
        *keys += self.next - first;
        let chunk = self.chunk_of(program, first, found)?;
        Ok((chunk, self.next == self.input.rows))
    }

    /// The rows whose keys are touched.
    pub(crate) fn into_aside(self) -> Result<Option<Chunk>> {
        aside_of(&self.input, &self.aside)
    }

    /// The most frequent case, in the tightest loops: each key has one value, and it is read.
    fn read_single_values(
        &mut self,
        program: &StepProgram,
        step: &AdjacentStep,
        limit: usize,
        found: &mut AdjacentMatches,
    ) -> Result<()> {
        let (ThirdColumn::Read(ranges), Key::Column(column)) = (&step.third, step.key) else {
            return Ok(());
        };
        if !self.adjacency.is_functional() || program.existence_of.is_some() {
            return Ok(());
        }
        let first = self.next;
        let end = self.input.rows.min(first + limit);
        let keys = &self.input.columns[column].values()[first..end];
        let (rows, values) = (&mut found.rows, &mut found.values);
        match split_touched(&self.touched, keys)? {
            None => self
                .adjacency
                .single_values(keys, first as u32, rows, values),
            Some((untouched, touched)) => {
                let of = |place: &u32| keys[*place as usize];
                let keys: Vec<u64> = untouched.iter().map(of).collect();
                self.adjacency.single_values(&keys, 0, rows, values);
                for row in rows.iter_mut() {
                    *row = first as u32 + untouched[*row as usize];
                }
                let touched = touched.iter().map(|place| first as u32 + place);
                self.aside.extend(touched);
            }
        }
        if let Some(set) = &self.set {
            retain(rows, values, |value| set.contains(value));
        }
        if let Some(ranges) = ranges {
            match ranges.intervals() {
                &[(low, high)] => {
                    let (low, width) = (low.bits(), high.bits().wrapping_sub(low.bits()));
                    retain(rows, values, |value| value.wrapping_sub(low) <= width);
                }
                _ => retain(rows, values, |value| {
                    ranges.contains(TermId::from_bits(value))
                }),
            }
        }
        found.is_uneven = rows.len() < keys.len();
        self.next = end;
        Ok(())
    }

    /// The general case, from the next row on.
    fn look_up(
        &mut self,
        program: &StepProgram,
        step: &AdjacentStep,
        limit: usize,
        matched: Option<&[bool]>,
        found: &mut AdjacentMatches,
    ) -> Result<()> {
        let lists = ValueLists {
            adjacency: &self.adjacency,
            third: &step.third,
            first_match_only: program.first_match_only,
            set: self.set.as_deref(),
        };
        let keys = ColumnOrConstant::of(step.key, &self.input);
        let equals = match step.third {
            ThirdColumn::Equals(value) => Some(ColumnOrConstant::of(value, &self.input)),
            ThirdColumn::Any | ThirdColumn::Read(_) => None,
        };
        let numbers = program
            .existence_of
            .map(|column| self.input.columns[column].values());
        let mut work_left = limit.max(WORK_MIN);
        while self.next < self.input.rows && found.count() < limit && work_left > 0 {
            let row = self.next;
            let key = keys.at(row);
            let is_done = match (numbers, matched) {
                (Some(numbers), Some(matched)) => matched[numbers[row] as usize],
                _ => false,
            };
            let matches = if is_done {
                MatchesOfRow::Done(0)
            } else if !self.touched.is_empty()
                && self.touched.contains(key).map_err(storage_error)?
            {
                self.aside.push(row as u32);
                MatchesOfRow::Done(0)
            } else if let Some(equals) = &equals {
                MatchesOfRow::Done(usize::from(lists.contains(key, equals.at(row))))
            } else {
                let room = (limit - found.count()).min(work_left);
                lists.read(key, self.offset, room, &mut found.values)
            };
            match matches {
                MatchesOfRow::Done(count) => {
                    found.push_rows(row, count);
                    found.is_uneven |= self.offset > 0;
                    self.offset = 0;
                    self.next += 1;
                }
                MatchesOfRow::More { count, taken } => {
                    found.push_rows(row, count);
                    found.is_uneven = true;
                    self.offset += taken;
                    return Ok(());
                }
            }
            work_left -= 1;
        }
        Ok(())
    }

    /// What was found from row `first` on, as a chunk of the outgoing layout.
    fn chunk_of(
        &self,
        program: &StepProgram,
        first: usize,
        found: AdjacentMatches,
    ) -> Result<Chunk> {
        let rows = found.count();
        let is_same_rows = !found.is_uneven && rows == self.next - first;
        let mut columns = Vec::with_capacity(program.carried.len() + program.produced.len());
        for &column in &program.carried {
            let column = &self.input.columns[column];
            columns.push(match (is_same_rows, self.input.rows) {
                (true, _) => column.slice(first, rows),
                (false, 1) => repeat(column, rows),
                (false, _) => gather(column, &found.rows)?,
            });
        }
        if !program.produced.is_empty() {
            let values = ScalarBuffer::from(found.values);
            columns.push(UInt64Array::new(values, None));
        }
        Ok(Chunk { columns, rows })
    }
}

/// What a step asks of the values of its keys.
struct ValueLists<'a> {
    adjacency: &'a Adjacency,
    third: &'a ThirdColumn,
    first_match_only: bool,
    set: Option<&'a IdSet>,
}

/// The matches of one row.
enum MatchesOfRow {
    /// So many, and there are no more.
    Done(usize),
    /// So many, of so many values; others are still to be looked at.
    More { count: usize, taken: usize },
}

impl ValueLists<'_> {
    /// Whether a value is among those of a key.
    #[inline]
    fn contains(&self, key: u64, value: u64) -> bool {
        let rank = self.adjacency.rank(key);
        rank.is_some_and(|rank| {
            self.adjacency
                .contains(self.adjacency.positions(rank), value)
        })
    }

    /// Appends the values of a key from `offset` on, if they are read; looks at no more than
    /// `room`.
    #[inline]
    fn read(&self, key: u64, offset: usize, room: usize, values: &mut Vec<u64>) -> MatchesOfRow {
        let Some(rank) = self.adjacency.rank(key) else {
            return MatchesOfRow::Done(0);
        };
        let mut positions = self.adjacency.positions(rank);
        if self.first_match_only {
            return MatchesOfRow::Done(1);
        }
        positions.start += offset;
        let is_last = positions.len() <= room;
        positions.end = positions.end.min(positions.start + room);
        let taken = positions.len();
        let count = match (self.third, self.set) {
            (ThirdColumn::Any | ThirdColumn::Equals(_), _) => taken,
            (ThirdColumn::Read(None), None) => {
                self.adjacency.extend(positions, values);
                taken
            }
            (ThirdColumn::Read(ranges), set) => {
                let before = values.len();
                for position in positions {
                    let value = self.adjacency.value(position);
                    let is_kept = set.is_none_or(|set| set.contains(value))
                        && ranges
                            .as_ref()
                            .is_none_or(|ranges| ranges.contains(TermId::from_bits(value)));
                    if is_kept {
                        values.push(value);
                    }
                }
                values.len() - before
            }
        };
        match is_last {
            true => MatchesOfRow::Done(count),
            false => MatchesOfRow::More { count, taken },
        }
    }
}

impl AdjacentMatches {
    /// Matches so far.
    fn count(&self) -> usize {
        self.rows.len()
    }

    #[inline]
    fn push_rows(&mut self, row: usize, count: usize) {
        self.is_uneven |= count != 1;
        self.rows.extend(std::iter::repeat_n(row as u32, count));
    }
}

/// The places of the keys that changes do not touch, and of those that they do; nothing if they
/// touch none.
fn split_touched(touched: &Touched, keys: &[u64]) -> Result<Option<(Vec<u32>, Vec<u32>)>> {
    if touched.is_empty() {
        return Ok(None);
    }
    let (mut others, mut places) = (Vec::with_capacity(keys.len()), Vec::new());
    for (place, &key) in (0u32..).zip(keys) {
        match touched.contains(key).map_err(storage_error)? {
            true => places.push(place),
            false => others.push(place),
        }
    }
    Ok((!places.is_empty()).then_some((others, places)))
}

/// Keeps the rows whose values are such. Without a branch on that, for nothing foretells it.
#[inline]
fn retain(rows: &mut Vec<u32>, values: &mut Vec<u64>, is_kept: impl Fn(u64) -> bool) {
    let mut kept = 0;
    for at in 0..values.len().min(rows.len()) {
        let (row, value) = (rows[at], values[at]);
        rows[kept] = row;
        values[kept] = value;
        kept += usize::from(is_kept(value));
    }
    rows.truncate(kept);
    values.truncate(kept);
}

/// Some rows of a chunk, if there are any.
pub(crate) fn aside_of(input: &Chunk, rows: &[u32]) -> Result<Option<Chunk>> {
    if rows.is_empty() {
        return Ok(None);
    }
    let columns = input.columns.iter().map(|column| gather(column, rows));
    Ok(Some(Chunk {
        columns: columns.collect::<Result<_>>()?,
        rows: rows.len(),
    }))
}

/// Where a known position comes from, at hand.
pub(crate) enum ColumnOrConstant<'a> {
    Column(&'a [u64]),
    Constant(u64),
}

impl<'a> ColumnOrConstant<'a> {
    fn of(key: Key, input: &'a Chunk) -> Self {
        match key {
            Key::Constant(term) => Self::Constant(term.bits()),
            Key::Column(column) => Self::Column(input.columns[column].values()),
        }
    }

    #[inline]
    pub(crate) fn at(&self, row: usize) -> u64 {
        match self {
            Self::Column(values) => values[row],
            Self::Constant(value) => *value,
        }
    }
}
