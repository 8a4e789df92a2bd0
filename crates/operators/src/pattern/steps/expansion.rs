//! The expansion of a chunk by one step, a bounded number of matches at a time.
//!
//! The chunk's keys are sorted once, so that the cursor only moves forward and every vector of the
//! permutation is decoded once. Equal keys are looked up once. Ranges that touch are read as one,
//! so that keys that lie dense in the permutation cost what a scan costs (a merge join in effect).
//! The position survives between calls: a key with a million matches comes out piece by piece.

use crate::pattern::chunk::{Chunk, repeat};
use crate::pattern::program::{Check, Key, StepProgram};
use crate::pattern::steps::cursors::{ANNOUNCED_KEYS, Cursors, seek_ranges};
use crate::pattern::steps::sort::sort_rows;
use crate::pattern::steps::span::{SetFilter, Span, SpanMatches};
use crate::solutions::{gather, storage_error};
use arrow::array::UInt64Array;
use arrow::buffer::ScalarBuffer;
use datafusion_common::Result;
use orrery_storage::{Cursor, RowRange};
use orrery_term::TermId;

/// Look-ups per call, at least: with tiny chunks a call must still get somewhere.
const SEEKS_PER_CALL_MIN: usize = 64;
/// The keys of a chunk, ascending, and the rows they came from.
struct ChunkKeys {
    /// `width` ids per key.
    values: ScalarBuffer<u64>,
    width: usize,
    /// The chunk's row of each key; `None` when the chunk was sorted already.
    order: Option<Vec<u32>>,
    len: usize,
}

/// Rows that share a key, while their matches are given out.
struct RowsOfKey {
    /// The next key position to give matches for, and the end of the equal keys.
    position: usize,
    end: usize,
    /// Index into `ranges`, and matches given out of that range for the current position.
    range: usize,
    offset: u64,
}

/// The work of one step on one chunk.
pub(crate) struct Expansion {
    input: Chunk,
    keys: ChunkKeys,
    /// Position of the first key that was not looked up yet.
    next: usize,
    group: Option<RowsOfKey>,
    ranges: Vec<RowRange>,
    /// The last triple that came through a merge of graphs, with its row.
    last_merged: Option<(u32, [u64; 4])>,
    rows: Vec<u32>,
    row_count: usize,
    columns: Vec<Vec<u64>>,
    pending: Option<RowRange>,
    /// Whether the keys were looked at as a whole.
    is_begun: bool,
    /// The first key that the storage was not told of yet.
    next_unannounced: usize,
    span: Option<Span>,
    /// Only matches among these rows of the permutation count.
    within: Option<RowRange>,
    /// Rows that were read and dropped by checks, and not told yet.
    dropped: usize,
}

impl Expansion {
    pub(crate) fn new(program: &StepProgram, input: Chunk) -> Self {
        let key_columns: Vec<&[u64]> = program
            .prefix
            .iter()
            .filter_map(|key| match key {
                Key::Constant(_) => None,
                Key::Column(column) => Some(&input.columns[*column].values()[..]),
            })
            .collect();
        let keys = ChunkKeys::sort(&key_columns, &input, program);
        Self {
            keys,
            next: 0,
            group: None,
            ranges: Vec::new(),
            last_merged: None,
            rows: Vec::new(),
            row_count: 0,
            columns: vec![Vec::new(); program.reads.len()],
            pending: None,
            is_begun: false,
            next_unannounced: 0,
            span: None,
            within: None,
            dropped: 0,
            input,
        }
    }

    /// Leaves out what is not among these rows of the permutation. For a step whose prefix is
    /// constant.
    pub(crate) fn within(mut self, rows: Option<RowRange>) -> Self {
        debug_assert!(rows.is_none() || self.keys.width == 0);
        self.within = rows;
        self
    }

    /// Lets the keys be found by a scan, if they lie close together, that drops what is not in a
    /// set. Whether it is so.
    pub(crate) fn scan(
        &mut self,
        program: &StepProgram,
        cursors: &mut Cursors,
        filter: Option<SetFilter>,
    ) -> Result<bool> {
        self.is_begun = true;
        if self.keys.width == 1 {
            self.span = Span::open(program, cursors, &self.keys.values, filter)?;
        }
        Ok(self.span.is_some())
    }

    /// The chunk, of which nothing was done yet.
    pub(crate) fn into_input(self) -> Chunk {
        self.input
    }

    /// About `limit` further matches, before the step's filters. The flag says that there are no
    /// more.
    pub(crate) fn advance(
        &mut self,
        program: &StepProgram,
        cursors: &mut Cursors,
        limit: usize,
        matched: Option<&[bool]>,
        seeks: &mut usize,
    ) -> Result<(Chunk, bool)> {
        if !self.is_begun {
            self.scan(program, cursors, None)?;
        }
        let skip = self.rows_to_skip(program, matched);
        if let Some(span) = &mut self.span {
            let keys = &self.keys;
            let is_skipped = |position| {
                skip.as_ref()
                    .is_some_and(|skip: &Vec<bool>| skip[keys.row(position)])
            };
            let mut found = SpanMatches {
                keys: Vec::new(),
                columns: std::mem::take(&mut self.columns),
            };
            let is_exhausted = span.advance(
                program,
                cursors,
                &keys.values,
                limit,
                is_skipped,
                &mut found,
            )?;
            self.row_count = found.keys.len();
            self.columns = found.columns;
            self.rows = match &keys.order {
                Some(order) => {
                    let keys = found.keys.iter();
                    keys.map(|&key| order[key as usize]).collect()
                }
                None => found.keys,
            };
            return Ok((self.take_chunk(program)?, is_exhausted));
        }
        let is_exhausted = self.fill(program, cursors, limit, skip.as_ref(), seeks)?;
        self.flush(program, &mut cursors.reader)?;
        Ok((self.take_chunk(program)?, is_exhausted))
    }

    /// When only existence counts: for each row of the chunk whether its input row has matched
    /// already.
    fn rows_to_skip(&self, program: &StepProgram, matched: Option<&[bool]>) -> Option<Vec<bool>> {
        let numbers = self.input.columns[program.existence_of?].values();
        let matched = matched?;
        Some(
            numbers
                .iter()
                .map(|&number| matched[number as usize])
                .collect(),
        )
    }

    fn fill(
        &mut self,
        program: &StepProgram,
        cursors: &mut Cursors,
        limit: usize,
        skip: Option<&Vec<bool>>,
        seeks: &mut usize,
    ) -> Result<bool> {
        let seeks_end = *seeks + limit.max(SEEKS_PER_CALL_MIN);
        while self.row_count < limit && *seeks < seeks_end {
            if let Some(group) = self.group.take() {
                self.group = self.emit(program, &mut cursors.reader, group, limit, skip)?;
                continue;
            }
            if self.next == self.keys.len {
                return Ok(true);
            }
            let position = self.next;
            if position >= self.next_unannounced {
                self.announce(program, &cursors.seeker)?;
            }
            let end = self.keys.group_end(position);
            self.next = end;
            if let Some(skip) = skip
                && (position..end).all(|position| skip[self.keys.row(position)])
            {
                continue;
            }
            *seeks += 1;
            self.seek(program, &mut cursors.seeker, position)?;
            if self.ranges.is_empty() {
                continue;
            }
            self.group = Some(RowsOfKey {
                position,
                end,
                range: 0,
                offset: 0,
            });
        }
        Ok(self.group.is_none() && self.next == self.keys.len)
    }

    /// Tells the storage the next keys while what they lead to may be on the disk: it is read all
    /// at once, not key by key.
    fn announce(&mut self, program: &StepProgram, seeker: &Cursor) -> Result<()> {
        let from = self.next;
        let to = self.keys.len.min(from + ANNOUNCED_KEYS);
        self.next_unannounced = to;
        if to - from < 2 || program.prefix.is_empty() || !seeker.is_cold() {
            return Ok(());
        }
        let columns = program.prefix.len();
        let mut prefixes: Vec<u64> = Vec::with_capacity((to - from) * columns);
        for position in from..to {
            let prefix = self.keys.prefix(program, position);
            prefixes.extend(prefix[..columns].iter().map(|id| id.bits()));
        }
        seeker
            .will_seek(prefixes.chunks_exact(columns))
            .map_err(storage_error)
    }

    /// Fills `ranges` with the non-empty ranges of a key.
    fn seek(&mut self, program: &StepProgram, seeker: &mut Cursor, position: usize) -> Result<()> {
        self.ranges.clear();
        let prefix = self.keys.prefix(program, position);
        let prefix = &prefix[..program.prefix.len()];
        seek_ranges(program, prefix, seeker, &mut self.ranges)?;
        if let Some(within) = self.within {
            for range in &mut self.ranges {
                *range = RowRange::new(range.start.max(within.start), range.end.min(within.end));
            }
        }
        self.trim_ranges(program);
        Ok(())
    }

    /// Drops what need not be read of the ranges of a key.
    fn trim_ranges(&mut self, program: &StepProgram) {
        self.ranges.retain(|range| range.start < range.end);
        if program.first_match_only {
            self.ranges.truncate(1);
            for range in &mut self.ranges {
                range.end = range.start + 1;
            }
        }
    }

    /// Gives out matches of a group up to the limit; what is left of it comes back.
    fn emit(
        &mut self,
        program: &StepProgram,
        reader: &mut Cursor,
        mut group: RowsOfKey,
        limit: usize,
        skip: Option<&Vec<bool>>,
    ) -> Result<Option<RowsOfKey>> {
        if self.emit_copies(program, reader, &group, limit, skip)? {
            return Ok(None);
        }
        while group.position < group.end {
            let row = self.keys.row(group.position);
            if skip.is_some_and(|skip| skip[row]) {
                group.next_position();
                continue;
            }
            while group.range < self.ranges.len() {
                let room = (limit - self.row_count) as u64;
                if room == 0 {
                    return Ok(Some(group));
                }
                let range = self.ranges[group.range];
                let start = range.start + group.offset;
                let end = range.end.min(start + room);
                self.push_rows(row, (end - start) as usize);
                self.read(program, reader, RowRange { start, end })?;
                if end == range.end {
                    group.range += 1;
                    group.offset = 0;
                } else {
                    group.offset += end - start;
                }
            }
            group.next_position();
        }
        Ok(None)
    }

    /// The matches of several rows with one key, read once and copied. Returns whether it was done:
    /// not for a single row, and not when the copies would exceed the limit.
    fn emit_copies(
        &mut self,
        program: &StepProgram,
        reader: &mut Cursor,
        group: &RowsOfKey,
        limit: usize,
        skip: Option<&Vec<bool>>,
    ) -> Result<bool> {
        let copies = group.end - group.position;
        if copies < 2 || group.range > 0 || group.offset > 0 {
            return Ok(false);
        }
        let matches: u64 = self.ranges.iter().map(|range| range.len()).sum();
        let room = (limit - self.row_count) as u64;
        if matches.saturating_mul(copies as u64) > room {
            return Ok(false);
        }
        let matches = matches as usize;
        let rows = (group.position..group.end)
            .map(|position| self.keys.row(position))
            .filter(|&row| !skip.is_some_and(|skip| skip[row]));
        let mut copied = 0;
        for row in rows {
            self.rows.extend(std::iter::repeat_n(row as u32, matches));
            copied += 1;
        }
        self.row_count += copied * matches;
        if copied == 0 {
            return Ok(true);
        }
        self.flush(program, reader)?;
        let before = self.columns.first().map_or(0, Vec::len);
        for range in 0..self.ranges.len() {
            self.read(program, reader, self.ranges[range])?;
        }
        self.flush(program, reader)?;
        for column in &mut self.columns {
            let end = column.len();
            for _ in 1..copied {
                column.extend_from_within(before..end);
            }
        }
        Ok(true)
    }

    fn push_rows(&mut self, row: usize, count: usize) {
        self.row_count += count;
        if self.input.rows > 1 {
            self.rows.extend(std::iter::repeat_n(row as u32, count));
        }
    }

    /// Reads a range, or puts it off when it may grow by the next one.
    fn read(&mut self, program: &StepProgram, reader: &mut Cursor, range: RowRange) -> Result<()> {
        if program.reads.is_empty() {
            return Ok(());
        }
        if let Some(pending) = &mut self.pending
            && pending.end == range.start
        {
            pending.end = range.end;
            return Ok(());
        }
        self.flush(program, reader)?;
        self.pending = Some(range);
        Ok(())
    }

    fn flush(&mut self, program: &StepProgram, reader: &mut Cursor) -> Result<()> {
        if let Some(range) = self.pending.take() {
            for (column, values) in program.reads.iter().zip(&mut self.columns) {
                reader.read(range, *column, values).map_err(storage_error)?;
            }
        }
        Ok(())
    }

    /// Turns what was read into a chunk of the outgoing layout.
    fn take_chunk(&mut self, program: &StepProgram) -> Result<Chunk> {
        debug_assert!(
            self.columns
                .iter()
                .all(|values| values.len() == self.row_count)
        );
        if !program.checks.is_empty() || program.merge.is_some() {
            self.drop_unfit(program);
        }
        let rows = std::mem::take(&mut self.rows);
        let row_count = std::mem::take(&mut self.row_count);
        let mut columns = Vec::with_capacity(program.carried.len() + program.produced.len());
        for &column in &program.carried {
            let column = &self.input.columns[column];
            columns.push(if self.input.rows == 1 {
                repeat(column, row_count)
            } else {
                gather(column, &rows)?
            });
        }
        let mut read: Vec<Option<Vec<u64>>> = self
            .columns
            .iter_mut()
            .map(|values| Some(std::mem::take(values)))
            .collect();
        for &produced in &program.produced {
            let values = read[produced].take().unwrap_or_default();
            columns.push(UInt64Array::new(ScalarBuffer::from(values), None));
        }
        Ok(Chunk {
            columns,
            rows: row_count,
        })
    }

    /// Applies the checks and the merge of graphs to the rows read.
    fn drop_unfit(&mut self, program: &StepProgram) {
        let mut keep = vec![true; self.row_count];
        for check in &program.checks {
            self.check(check, &mut keep);
        }
        if let Some(merge) = &program.merge {
            self.drop_repeated(merge, &mut keep);
        }
        let kept = keep.iter().filter(|keep| **keep).count();
        if kept == self.row_count {
            return;
        }
        for values in &mut self.columns {
            retain(values, &keep);
        }
        if self.input.rows > 1 {
            retain(&mut self.rows, &keep);
        }
        self.dropped += self.row_count - kept;
        self.row_count = kept;
    }

    /// How many rows were read and dropped by checks since this was asked.
    pub(crate) fn take_dropped(&mut self) -> usize {
        std::mem::take(&mut self.dropped)
    }

    fn check(&self, check: &Check, keep: &mut [bool]) {
        let each = |read: usize, holds: &dyn Fn(u64) -> bool, keep: &mut [bool]| {
            for (keep, &value) in keep.iter_mut().zip(&self.columns[read]) {
                *keep &= holds(value);
            }
        };
        match check {
            Check::Constant { read, term } => each(*read, &|value| value == term.bits(), keep),
            Check::NotDefaultGraph { read } => {
                each(*read, &|value| value != TermId::DEFAULT_GRAPH.bits(), keep);
            }
            Check::OneOf { read, terms } => each(
                *read,
                &|value| terms.binary_search(&TermId::from_bits(value)).is_ok(),
                keep,
            ),
            Check::Ranges { read, ranges } => each(
                *read,
                &|value| ranges.contains(TermId::from_bits(value)),
                keep,
            ),
            Check::Same { left, right } => {
                let pairs = self.columns[*left].iter().zip(&self.columns[*right]);
                for (keep, (left, right)) in keep.iter_mut().zip(pairs) {
                    *keep &= left == right;
                }
            }
            Check::Column { read, column } => {
                let expected = self.input.columns[*column].values();
                for (number, keep) in keep.iter_mut().enumerate() {
                    *keep &= self.columns[*read][number] == expected[self.row_of(number)];
                }
            }
        }
    }

    /// The chunk's row that a match belongs to.
    fn row_of(&self, number: usize) -> usize {
        if self.input.rows > 1 {
            self.rows[number] as usize
        } else {
            0
        }
    }

    /// Of equal triples that follow each other for the same row, keeps the first.
    fn drop_repeated(&mut self, merge: &[usize], keep: &mut [bool]) {
        for (number, keep) in keep.iter_mut().enumerate() {
            if !*keep {
                continue;
            }
            let mut triple = [0; 4];
            for (slot, &read) in triple.iter_mut().zip(merge) {
                *slot = self.columns[read][number];
            }
            let current = Some((self.row_of(number) as u32, triple));
            *keep = current != self.last_merged;
            self.last_merged = current;
        }
    }
}

impl RowsOfKey {
    fn next_position(&mut self) {
        self.position += 1;
        self.range = 0;
        self.offset = 0;
    }
}

impl ChunkKeys {
    fn sort(columns: &[&[u64]], input: &Chunk, program: &StepProgram) -> Self {
        let (values, order) = match columns {
            [] => (ScalarBuffer::from(Vec::new()), None),
            [only] if only.is_sorted() => {
                let column = program.prefix.iter().find_map(|key| match key {
                    Key::Constant(_) => None,
                    Key::Column(column) => Some(*column),
                });
                let values = column.map(|column| input.columns[column].values().clone());
                (values.unwrap_or_else(|| only.to_vec().into()), None)
            }
            [a] => sort_rows([a]),
            [a, b] => sort_rows([a, b]),
            [a, b, c] => sort_rows([a, b, c]),
            [a, b, c, d, ..] => sort_rows([a, b, c, d]),
        };
        Self {
            values,
            width: columns.len(),
            order,
            len: input.rows,
        }
    }

    fn at(&self, position: usize) -> &[u64] {
        &self.values[position * self.width..(position + 1) * self.width]
    }

    /// What a key looks up: the step's constants and the key's ids, as many as the step's prefix
    /// has.
    fn prefix(&self, program: &StepProgram, position: usize) -> [TermId; 4] {
        let mut prefix = [TermId::MIN; 4];
        let mut keys = self.at(position).iter();
        for (slot, key) in prefix.iter_mut().zip(&program.prefix) {
            *slot = match key {
                Key::Constant(term) => *term,
                Key::Column(_) => keys
                    .next()
                    .map_or(TermId::MIN, |&bits| TermId::from_bits(bits)),
            };
        }
        prefix
    }

    fn row(&self, position: usize) -> usize {
        match &self.order {
            Some(order) => order[position] as usize,
            None => position,
        }
    }

    /// The end of the keys equal to the one at this position.
    fn group_end(&self, position: usize) -> usize {
        if self.width == 0 {
            return self.len;
        }
        let key = self.at(position);
        let mut end = position + 1;
        while end < self.len && self.at(end) == key {
            end += 1;
        }
        end
    }
}

fn retain<T: Copy>(values: &mut Vec<T>, keep: &[bool]) {
    let mut kept = 0;
    for position in 0..values.len() {
        values[kept] = values[position];
        kept += usize::from(keep[position]);
    }
    values.truncate(kept);
}
