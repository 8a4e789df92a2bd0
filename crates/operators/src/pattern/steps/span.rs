//! A scan with pushed-down keys: a stretch of the permutation, merged with sorted keys block by
//! block.
//!
//! ```text
//! keys of the chunk     3       9 9      17
//! block of rows         1 2 3 3 5 9 | 9 9 12 ..     the key column, decoded
//! kept                      ^ ^   ^   ^ ^           only there the other columns are read
//! ```
//!
//! A look-up costs some tens of nanoseconds, decoding a row about one. So when the sorted keys of a
//! chunk lie close together, everything between the first and the last is decoded, in blocks that
//! stay in the processor's cache, and rows without a key are dropped there. (The whole stretch at
//! once, as this was first, cost a page fault for each 512 rows of each column: a third of the time
//! of BSBM BI 1 and 3.)
//!
//! A set of ids that a column must be among ([`SetFilter`]) is asked block by block too, before the
//! rows are given to the keys: of a key that comes a thousand times the rows are looked at once.
//!
//! A block holds whole runs of equal keys, so that equal triples of several graphs, which match
//! once, come out side by side.

use std::ops::{Bound, Range};
use std::sync::Arc;

use datafusion_common::Result;
use orrery_storage::{Cursor, RowRange};
use orrery_term::TermId;

use crate::pattern::id_set::IdSet;
use crate::pattern::program::{Key, StepProgram};
use crate::pattern::steps::cursors::{ANNOUNCED_KEYS, Cursors};
use crate::solutions::storage_error;

/// Fewer keys are looked up one by one. (The random databases of the tests are small.)
pub(crate) const SCANNED_KEYS_MIN: usize = if cfg!(test) { 2 } else { 32 };
/// Up to so many rows per key the stretch is scanned. Sparser keys have vectors to themselves.
const ROWS_PER_KEY_MAX: u64 = 128;
/// Rows decoded at once: two columns of it fit into the first cache.
const BLOCK_ROWS: u64 = if cfg!(test) { 3 } else { 2048 };
/// Blocks of one call, so that it gives way in time: about half a million rows.
const BLOCKS_PER_CALL: usize = if cfg!(test) { 2 } else { 256 };
/// After a block with fewer matches than one in so many rows, the next key is sought rather than
/// scanned for.
const ROWS_PER_MATCH_SPARSE: usize = 256;
/// Other columns are read row by row where one row in so many matches.
const ROWS_PER_POINT_READ: usize = 128;

/// A scan of the rows that hold the matches of all keys of a chunk.
pub(crate) struct Span {
    /// The constants before the key.
    prefix: [TermId; 4],
    /// How many there are: the position of the key column.
    key_column: usize,
    /// Where the last key's rows end.
    end: u64,
    block: KeyBlock,
    filter: Option<SetFilter>,
    /// The key to go on with, and how many of its matches in the block were given out.
    next_key: usize,
    offset: usize,
    /// Whether the last block had so few matches that the next key may be far ahead.
    is_sparse: bool,
    /// The first key that the storage was not told of yet.
    next_unannounced: usize,
    /// A column of the block.
    values: Vec<u64>,
}

/// Drops the rows in which a column has none of some ids.
pub(crate) struct SetFilter {
    /// The column, as a position in the step's `reads`.
    read: usize,
    ids: Arc<IdSet>,
    /// The column in the block.
    values: Vec<u64>,
    /// The rows of the run at hand that are left.
    rows: Vec<u32>,
}

impl SetFilter {
    pub(crate) fn new(read: usize, ids: Arc<IdSet>) -> Self {
        Self {
            read,
            ids,
            values: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Takes up other rows of the block.
    fn keep(&mut self, run: Range<usize>) {
        self.rows.clear();
        let rows = run.start as u32..run.end as u32;
        let values = &self.values[run];
        let rows = rows
            .zip(values)
            .filter(|(_, value)| self.ids.contains(**value));
        self.rows.extend(rows.map(|(row, _)| row));
    }
}

/// What matched.
#[derive(Default)]
pub(crate) struct SpanMatches {
    /// Positions of keys, one for each match.
    pub(crate) keys: Vec<u32>,
    /// The columns that the step reads.
    pub(crate) columns: Vec<Vec<u64>>,
}

impl Span {
    /// Prepares the scan for these ascending keys, if they are dense enough. The key must be the
    /// last column of the prefix, with constants before it.
    pub(crate) fn open(
        program: &StepProgram,
        cursors: &mut Cursors,
        keys: &[u64],
        filter: Option<SetFilter>,
    ) -> Result<Option<Self>> {
        let (Some((Key::Column(_), constants)), None) =
            (program.prefix.split_last(), &program.between)
        else {
            return Ok(None);
        };
        let (Some(&first), Some(&last)) = (keys.first(), keys.last()) else {
            return Ok(None);
        };
        if keys.len() < SCANNED_KEYS_MIN || constants.len() == 3 {
            return Ok(None);
        }
        let mut prefix = [TermId::MIN; 4];
        for (slot, key) in prefix.iter_mut().zip(constants) {
            match key {
                Key::Constant(term) => *slot = *term,
                Key::Column(_) => return Ok(None),
            }
        }
        let low = Bound::Included(TermId::from_bits(first));
        let high = Bound::Included(TermId::from_bits(last));
        let rows = cursors
            .seeker
            .seek_between(&prefix[..constants.len()], low, high)
            .map_err(storage_error)?;
        if rows.len() > keys.len() as u64 * ROWS_PER_KEY_MAX {
            return Ok(None);
        }
        Ok(Some(Self {
            prefix,
            key_column: constants.len(),
            end: rows.end,
            block: KeyBlock::before(rows),
            filter,
            next_key: 0,
            offset: 0,
            is_sparse: false,
            next_unannounced: 0,
            values: Vec::new(),
        }))
    }

    /// Adds further matches until there are about `limit`, or many rows were scanned. Whether all
    /// keys are done.
    pub(crate) fn advance(
        &mut self,
        program: &StepProgram,
        cursors: &mut Cursors,
        keys: &[u64],
        limit: usize,
        is_skipped: impl Fn(usize) -> bool,
        found: &mut SpanMatches,
    ) -> Result<bool> {
        let mut rows = Vec::new();
        if self.filter.is_none() {
            // Mostly each key has one match.
            let room = limit.min(keys.len() - self.next_key);
            found.keys.reserve(room);
            for column in &mut found.columns {
                column.reserve(room);
            }
        }
        for _ in 0..BLOCKS_PER_CALL {
            let first = found.keys.len();
            let is_block_done = self.merge(
                keys,
                limit,
                program.first_match_only,
                &is_skipped,
                &mut found.keys,
                &mut rows,
            );
            self.read_columns(&program.reads, &mut cursors.reader, &rows, found)?;
            rows.clear();
            if self.next_key == keys.len() {
                return Ok(true);
            }
            if !is_block_done {
                return Ok(false);
            }
            if self.block.rows.end == self.end {
                return Ok(true);
            }
            let matches = found.keys.len() - first;
            self.is_sparse = matches * ROWS_PER_MATCH_SPARSE < self.block.keys.len();
            self.next_block(program, cursors, keys)?;
        }
        Ok(false)
    }

    /// Decodes the keys of the next rows that may match.
    fn next_block(
        &mut self,
        program: &StepProgram,
        cursors: &mut Cursors,
        keys: &[u64],
    ) -> Result<()> {
        let Cursors { seeker, reader } = cursors;
        self.announce(keys, seeker)?;
        let mut start = self.block.rows.end;
        if self.is_sparse {
            self.prefix[self.key_column] = TermId::from_bits(keys[self.next_key]);
            let prefix = &self.prefix[..=self.key_column];
            let rows = seeker.seek(prefix).map_err(storage_error)?;
            start = rows.start.clamp(start, self.end);
        }
        self.block.read(start, self.end, self.key_column, seeker)?;
        if let Some(filter) = &mut self.filter {
            filter.values.clear();
            reader
                .read(
                    self.block.rows,
                    program.reads[filter.read],
                    &mut filter.values,
                )
                .map_err(storage_error)?;
        }
        Ok(())
    }

    /// Tells the storage the next keys while what they lead to may be on the disk.
    fn announce(&mut self, keys: &[u64], seeker: &Cursor) -> Result<()> {
        if self.next_key < self.next_unannounced || !seeker.is_cold() {
            return Ok(());
        }
        let to = keys.len().min(self.next_key + ANNOUNCED_KEYS);
        let columns = self.key_column + 1;
        let mut prefixes = Vec::with_capacity((to - self.next_key) * columns);
        for &key in &keys[self.next_key..to] {
            let constants = &self.prefix[..self.key_column];
            prefixes.extend(constants.iter().map(|id| id.bits()));
            prefixes.push(key);
        }
        self.next_unannounced = to;
        seeker
            .will_seek(prefixes.chunks_exact(columns))
            .map_err(storage_error)
    }

    /// Merges further keys with the block: for each match the number of the key and the row in the
    /// block, until there are `limit` keys. Whether no further key can be in the block.
    fn merge(
        &mut self,
        keys: &[u64],
        limit: usize,
        first_match_only: bool,
        is_skipped: impl Fn(usize) -> bool,
        found: &mut Vec<u32>,
        found_rows: &mut Vec<u32>,
    ) -> bool {
        let Some(&last) = self.block.keys.last() else {
            return true;
        };
        while let Some(&key) = keys.get(self.next_key) {
            if key > last {
                return true;
            }
            if found.len() >= limit {
                return false;
            }
            let is_other_run = self.block.find(key);
            if let Some(filter) = &mut self.filter
                && is_other_run
            {
                filter.keep(self.block.run.clone());
            }
            if !is_skipped(self.next_key) {
                let run = self.block.run.clone();
                let matches = self
                    .filter
                    .as_ref()
                    .map_or(run.len(), |kept| kept.rows.len());
                let mut wanted = self.offset..matches;
                if first_match_only {
                    wanted.end = wanted.end.min(wanted.start + 1);
                }
                let taken = wanted.len().min(limit - found.len());
                let given = wanted.start..wanted.start + taken;
                match (&self.filter, taken) {
                    // By far the most frequent case, and worth a push without a loop.
                    (None, 1) => {
                        found.push(self.next_key as u32);
                        found_rows.push((run.start + given.start) as u32);
                    }
                    (None, _) => {
                        found.extend(std::iter::repeat_n(self.next_key as u32, taken));
                        found_rows.extend(given.map(|row| (run.start + row) as u32));
                    }
                    (Some(kept), _) => {
                        found.extend(std::iter::repeat_n(self.next_key as u32, taken));
                        found_rows.extend_from_slice(&kept.rows[given]);
                    }
                }
                if taken < wanted.len() {
                    self.offset += taken;
                    return false;
                }
            }
            self.offset = 0;
            self.next_key += 1;
        }
        true
    }

    /// Reads the columns of the step at these rows of the block.
    fn read_columns(
        &mut self,
        reads: &[usize],
        reader: &mut Cursor,
        rows: &[u32],
        found: &mut SpanMatches,
    ) -> Result<()> {
        let (Some(&first), Some(&last)) = (rows.iter().min(), rows.iter().max()) else {
            return Ok(());
        };
        let of_block = |from: u32, to: u32| {
            let start = self.block.rows.start;
            RowRange::new(start + u64::from(from), start + u64::from(to))
        };
        let reads_points = rows.len() * ROWS_PER_POINT_READ < (last - first) as usize;
        for ((number, &column), out) in reads.iter().enumerate().zip(&mut found.columns) {
            if let Some(filter) = &self.filter
                && filter.read == number
            {
                out.extend(rows.iter().map(|&row| filter.values[row as usize]));
                continue;
            }
            if reads_points {
                for &row in rows {
                    let row = of_block(row, row + 1);
                    reader.read(row, column, out).map_err(storage_error)?;
                }
                continue;
            }
            self.values.clear();
            reader
                .read(of_block(first, last + 1), column, &mut self.values)
                .map_err(storage_error)?;
            let values = &self.values;
            out.extend(rows.iter().map(|&row| values[(row - first) as usize]));
        }
        Ok(())
    }
}

/// The key column of some rows. Rows with equal keys are in it together.
struct KeyBlock {
    rows: RowRange,
    keys: Vec<u64>,
    /// The rows, counted from the block's first, that the key sought last has.
    run: Range<usize>,
    run_key: Option<u64>,
}

impl KeyBlock {
    /// An empty block where a stretch begins.
    fn before(rows: RowRange) -> Self {
        Self {
            rows: RowRange::new(rows.start, rows.start),
            keys: Vec::new(),
            run: 0..0,
            run_key: None,
        }
    }

    /// Takes up the rows from `start` on, not beyond `end`.
    fn read(&mut self, start: u64, end: u64, column: usize, seeker: &mut Cursor) -> Result<()> {
        self.keys.clear();
        self.rows = RowRange::new(start, start);
        self.run = 0..0;
        self.run_key = None;
        while self.rows.end < end {
            let more = RowRange::new(self.rows.end, end.min(self.rows.end + BLOCK_ROWS));
            seeker
                .read(more, column, &mut self.keys)
                .map_err(storage_error)?;
            self.rows.end = more.end;
            if self.drop_last_run(end) {
                break;
            }
        }
        Ok(())
    }

    /// Leaves the last run, which may go on, to the next block. Not if it is the only one.
    fn drop_last_run(&mut self, end: u64) -> bool {
        if self.rows.end == end {
            return true;
        }
        let last = self.keys.last().copied();
        let others = self.keys.iter().rposition(|key| Some(*key) != last);
        let Some(last_of_others) = others else {
            return false;
        };
        self.keys.truncate(last_of_others + 1);
        self.rows.end = self.rows.start + self.keys.len() as u64;
        true
    }

    /// Finds the rows with this key, which is not below the key before. Whether they are others
    /// than those of the key before.
    #[inline]
    fn find(&mut self, key: u64) -> bool {
        const STRIDE: usize = 8;
        if self.run_key == Some(key) {
            return false;
        }
        self.run_key = Some(key);
        let mut row = self.run.end;
        // Mostly the next row has it. Else one comparison for eight rows, then three without a
        // branch: which of eight it is, nothing foretells.
        while self.keys.get(row).is_some_and(|&other| other < key)
            && let Some(stride) = self.keys[row..].first_chunk::<STRIDE>()
        {
            if stride[STRIDE - 1] < key {
                row += STRIDE;
                continue;
            }
            let mut behind = 0;
            for step in [4, 2, 1] {
                behind += step * usize::from(stride[behind + step - 1] < key);
            }
            row += behind;
            break;
        }
        while self.keys.get(row).is_some_and(|&other| other < key) {
            row += 1;
        }
        self.run.start = row;
        while self.keys.get(row) == Some(&key) {
            row += 1;
        }
        self.run.end = row;
        true
    }
}
