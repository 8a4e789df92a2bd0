//! One delta as a level of a cursor, and the merge of several levels.

use crate::quads::index::piece::Piece;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::base::BaseCursor;
use super::slot::gallop;
use super::{Prefix, QuadRow, RowRange, Side};
use crate::Result;
use crate::quads::delta::{Chunk, DeltaIndex, UNKNOWN};

/// A delta and where the last look-ups in it ended.
#[derive(Debug)]
pub(super) struct DeltaLevel {
    delta: DeltaIndex,
    /// Where the last search by prefix ended.
    seeking: EntryPlace,
    /// The entries around that place, and the net count before it.
    around: Option<Around>,
    /// Where the last read ended.
    reading: EntryPlace,
    /// Rows `after.0 < row <= after.1` of the whole stand between the entry before `reading` and
    /// the one at it.
    gap: Option<(Option<u64>, u64)>,
}

/// Two neighbouring entries and the net count between them.
#[derive(Debug)]
struct Around {
    before: Option<QuadRow>,
    after: Option<QuadRow>,
    net: i64,
}

/// Between two entries: before the entry with this number of the chunk, or behind the chunk's last.
#[derive(Debug, Default)]
struct EntryPlace {
    chunk: Option<HeldChunk>,
    entry: usize,
}

#[derive(Debug)]
struct HeldChunk {
    number: usize,
    chunk: Arc<Chunk>,
    /// The first row of the chunk behind it.
    next: Option<QuadRow>,
    /// Net count of the chunks before it.
    net: i64,
}

impl DeltaLevel {
    pub(super) fn new(delta: DeltaIndex) -> Self {
        Self {
            delta,
            seeking: EntryPlace::default(),
            around: None,
            reading: EntryPlace::default(),
            gap: None,
        }
    }

    /// Net counts of the entries before both boundaries of a prefix.
    #[inline]
    pub(super) fn nets_around(&mut self, prefix: &Prefix) -> Result<Range<i64>> {
        // Mostly there are no entries with the prefix, and the one ahead is the same as the last
        // time. Two comparisons instead of six.
        if !self.is_around(prefix) {
            self.net_before(prefix, Side::Before)?;
        }
        let start = self.around.as_ref().map_or(0, |around| around.net);
        let ahead = self
            .around
            .as_ref()
            .and_then(|around| around.after.as_ref());
        if !ahead.is_some_and(|next| prefix.is_behind(next, Side::After)) {
            return Ok(start..start);
        }
        Ok(start..self.net_before(prefix, Side::After)?)
    }

    /// Whether the boundary before the prefix stands between the entries that are known.
    #[inline]
    fn is_around(&self, prefix: &Prefix) -> bool {
        let is_behind = |row: &QuadRow| prefix.is_behind(row, Side::Before);
        self.around.as_ref().is_some_and(|around| {
            around.before.as_ref().is_none_or(is_behind)
                && !around.after.as_ref().is_some_and(is_behind)
        })
    }

    /// Net count of the entries before a boundary.
    fn net_before(&mut self, prefix: &Prefix, side: Side) -> Result<i64> {
        let is_behind = |row: &QuadRow| prefix.is_behind(row, side);
        let place = &mut self.seeking;
        let is_here = place.chunk.as_ref().is_some_and(|held| {
            is_behind(&held.chunk.rows()[0]) && !held.next.as_ref().is_some_and(is_behind)
        });
        if !is_here {
            let firsts = self.delta.firsts();
            let hint = place.chunk.as_ref().map_or(0, |held| held.number);
            let behind = gallop(firsts, hint, is_behind);
            if firsts.is_empty() {
                return Ok(0); // and there is nothing around
            }
            place.hold(&self.delta, behind.saturating_sub(1))?;
        }
        let Some(held) = &place.chunk else {
            return Ok(0); // not reached: a chunk was taken in hand
        };
        place.entry = gallop(held.chunk.rows(), place.entry, is_behind);
        let net = held.net + i64::from(held.chunk.nets()[place.entry]);
        let rows = held.chunk.rows();
        // Before a chunk's first entry only if that is the first of all.
        self.around = Some(Around {
            before: place.entry.checked_sub(1).map(|before| rows[before]),
            after: rows.get(place.entry).or(held.next.as_ref()).copied(),
            net,
        });
        Ok(net)
    }
}

impl EntryPlace {
    /// Takes a chunk in hand; the place is before its first entry.
    fn hold(&mut self, delta: &DeltaIndex, number: usize) -> Result<()> {
        let held = self.chunk.as_ref().map(|held| held.number);
        if held != Some(number) {
            self.chunk = Some(HeldChunk {
                number,
                chunk: delta.chunk(number)?,
                next: delta.firsts().get(number + 1).copied(),
                net: delta.nets()[number],
            });
        }
        self.entry = 0;
        Ok(())
    }
}

/// The file and the deltas over it, from the lowest up.
pub(super) struct Stack<'a> {
    base: &'a mut BaseCursor,
    levels: &'a mut [DeltaLevel],
}

impl<'a> Stack<'a> {
    pub(super) fn new(base: &'a mut BaseCursor, levels: &'a mut [DeltaLevel]) -> Self {
        Self { base, levels }
    }

    /// The number of rows before the boundary.
    pub(super) fn boundary(&mut self, prefix: &Prefix, side: Side) -> Result<u64> {
        let mut row = self.base.boundary(prefix, side)?;
        for level in &mut *self.levels {
            row = row.saturating_add_signed(level.net_before(prefix, side)?);
        }
        Ok(row)
    }

    /// Appends the pieces that a range is made of.
    pub(super) fn plan(&mut self, range: RowRange, pieces: &mut Vec<Piece>) -> Result<()> {
        match self.levels.split_last_mut() {
            Some((top, below)) => top.plan(Stack::new(self.base, below), range, pieces),
            None => {
                self.base.plan(range, pieces);
                Ok(())
            }
        }
    }
}

impl DeltaLevel {
    /// Appends the pieces of a range of the rows that this delta makes of those below.
    ///
    /// Once it has begun it counts rows below only, chunk by chunk, so an entry costs little more
    /// than its position.
    fn plan(
        &mut self,
        mut below: Stack<'_>,
        range: RowRange,
        pieces: &mut Vec<Piece>,
    ) -> Result<()> {
        if self.delta.is_empty() {
            return below.plan(range, pieces);
        }
        if range.is_empty() {
            return Ok(());
        }
        self.go_to(&mut below, range.start)?;
        let mut after = self.gap.take().and_then(|(after, _)| after);
        let mut left = range.len();
        let mut row = range.start.saturating_add_signed(-self.net_of_place());
        while let Some(held) = &self.reading.chunk {
            let (number, chunk) = (held.number, Arc::clone(&held.chunk));
            for entry in self.reading.entry..chunk.len() {
                self.reading.entry = entry;
                let mut position = chunk.positions()[entry].load(Ordering::Relaxed);
                if position == UNKNOWN {
                    position = self.resolve(&mut below, number, entry)?;
                }
                let run = left.min(position.saturating_sub(row));
                if run > 0 {
                    below.plan(RowRange::new(row, row + run), pieces)?;
                    (row, left) = (row + run, left - run);
                }
                if left == 0 {
                    return self.set_gap(&mut below, after);
                }
                after = Some(range.end - left);
                if chunk.is_insertion(entry) {
                    pieces.push(Piece::Inserted(chunk.rows()[entry]));
                    left -= 1;
                } else {
                    row += 1;
                }
            }
            self.reading.entry = chunk.len();
            if number + 1 == self.delta.chunk_count() {
                break;
            }
            self.reading.hold(&self.delta, number + 1)?;
        }
        if left > 0 {
            below.plan(RowRange::new(row, row + left), pieces)?;
        }
        self.set_gap(&mut below, after)
    }

    /// Net count of the entries before the place of reading.
    fn net_of_place(&self) -> i64 {
        self.reading.chunk.as_ref().map_or(0, |held| {
            held.net + i64::from(held.chunk.nets()[self.reading.entry])
        })
    }

    /// Goes to the first entry that stands at `row` of the whole or behind it.
    fn go_to(&mut self, below: &mut Stack<'_>, row: u64) -> Result<()> {
        if let Some((after, next)) = self.gap
            && after.is_none_or(|after| after < row)
            && row <= next
        {
            return Ok(());
        }
        self.gap = None;
        if self.go_forward(below, row)? {
            return Ok(());
        }
        let mut chunk = 0; // the first entries of the chunks up to this one stand before the row
        let mut end = self.delta.chunk_count();
        while chunk + 1 < end {
            let middle = chunk.midpoint(end);
            let mut position = self.delta.first_position(middle);
            if position == UNKNOWN {
                position = self.resolve(below, middle, 0)?;
            }
            if position.saturating_add_signed(self.delta.nets()[middle]) < row {
                chunk = middle;
            } else {
                end = middle;
            }
        }
        self.reading.hold(&self.delta, chunk)?;
        let len = self.chunk_len();
        self.go_within(below, row, 0, len)
    }

    /// The same, if the place is a little ahead in the chunk in hand. In growing steps.
    fn go_forward(&mut self, below: &mut Stack<'_>, row: u64) -> Result<bool> {
        let (entry, len) = (self.reading.entry, self.chunk_len());
        if entry >= len || self.row_of(below, entry)? >= row {
            return Ok(false);
        }
        let (mut low, mut step) = (entry + 1, 1);
        loop {
            let probe = low + step - 1;
            if probe >= len {
                // It may be in the next chunk.
                if self.row_of(below, len - 1)? < row {
                    return Ok(false);
                }
                self.go_within(below, row, low, len)?;
                return Ok(true);
            }
            if self.row_of(below, probe)? >= row {
                self.go_within(below, row, low, probe)?;
                return Ok(true);
            }
            low = probe + 1;
            step *= 2;
        }
    }

    /// Goes to the first entry at `row` or behind it, in the chunk in hand: all before `low` stand
    /// before the row, none from `high` on does.
    fn go_within(
        &mut self,
        below: &mut Stack<'_>,
        row: u64,
        mut low: usize,
        mut high: usize,
    ) -> Result<()> {
        while low < high {
            let middle = low.midpoint(high);
            if self.row_of(below, middle)? < row {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.reading.entry = low;
        let after = match low.checked_sub(1) {
            Some(before) => Some(self.row_of(below, before)?),
            None => None,
        };
        self.set_gap(below, after)
    }

    /// Looks where the entry ahead stands; behind the last entry of a chunk goes on to the next
    /// chunk.
    fn set_gap(&mut self, below: &mut Stack<'_>, after: Option<u64>) -> Result<()> {
        self.gap = None; // should reading fail
        if self.reading.entry == self.chunk_len()
            && let Some(held) = &self.reading.chunk
            && held.number + 1 < self.delta.chunk_count()
        {
            let next = held.number + 1;
            self.reading.hold(&self.delta, next)?;
        }
        let next = match self.reading.entry < self.chunk_len() {
            true => self.row_of(below, self.reading.entry)?,
            false => u64::MAX,
        };
        self.gap = Some((after, next));
        Ok(())
    }

    fn chunk_len(&self) -> usize {
        self.reading
            .chunk
            .as_ref()
            .map_or(0, |held| held.chunk.len())
    }

    /// Where an entry of the chunk in hand stands in the whole.
    fn row_of(&self, below: &mut Stack<'_>, entry: usize) -> Result<u64> {
        let Some(held) = &self.reading.chunk else {
            return Ok(u64::MAX); // not reached: a chunk is in hand
        };
        let mut position = held.chunk.positions()[entry].load(Ordering::Relaxed);
        if position == UNKNOWN {
            position = self.resolve(below, held.number, entry)?;
        }
        Ok(position.saturating_add_signed(held.net + i64::from(held.chunk.nets()[entry])))
    }

    /// Looks up the position of an entry in what is below.
    #[cold]
    fn resolve(&self, below: &mut Stack<'_>, number: usize, entry: usize) -> Result<u64> {
        let chunk = self.delta.chunk(number)?;
        let prefix = Prefix::from_values(&chunk.rows()[entry]);
        let position = below.boundary(&prefix, Side::Before)?;
        chunk.positions()[entry].store(position, Ordering::Relaxed);
        Ok(position)
    }
}
