//! The keys of one side of an intersection, their ranges, and which of these are read.

use datafusion_common::Result;
use orrery_storage::{Cursor, RowRange};
use orrery_term::TermId;

use super::super::chunk::Chunk;
use super::super::program::{IntersectionProgram, Key, SideProgram};
use super::super::steps::cursors::Cursors;
use super::super::steps::sort::sort_rows;
use super::matches::{GRAPH_COLUMN, VALUE_COLUMN};
use crate::solutions::storage_error;

/// A range is read if it has up to so many rows for each candidate: a look-up costs some tens of
/// nanoseconds, a row read one or two.
pub(super) const ROWS_PER_CANDIDATE_MAX: u64 = if cfg!(test) { 2 } else { 16 };
/// Rows that the lists of one side of a block have together, at most: 16 MB. What is beyond is
/// probed.
const LIST_ROWS_MAX: u64 = 1 << 21;
/// A list longer than the other by this factor is galloped through.
const GALLOP_FACTOR: usize = 16;

/// The different keys of one side in a chunk.
pub(super) struct SideKeys {
    /// The key columns, key after key, ascending.
    values: Vec<u64>,
    width: usize,
    /// The number of each row's key; empty if there are no key columns, and so one key.
    numbers: Vec<u32>,
    /// By number, as all that follows.
    ranges: Vec<RowRange>,
    demands: Vec<RangeDemand>,
    /// Keys with demands.
    demanded: Vec<u32>,
    lists: Vec<ReadList>,
    list_values: Vec<u64>,
}

/// What a block wants of a range.
#[derive(Clone, Copy, Default)]
struct RangeDemand {
    /// Values that are to be found in it.
    candidates: u64,
    /// Whether it gives the candidates of a row.
    drives: bool,
}

/// Where the values of a range stand in `list_values`, if it was read.
#[derive(Clone, Copy)]
struct ReadList {
    start: usize,
    end: usize,
}

impl ReadList {
    const UNREAD: Self = Self { start: 1, end: 0 };
}

impl SideKeys {
    /// Looks up the ranges of all keys; also gives the rows of the chunk in the order of their
    /// keys, if there are key columns.
    pub(super) fn look_up(
        side: &SideProgram,
        input: &Chunk,
        seeker: &mut Cursor,
    ) -> Result<(Self, Option<Vec<u32>>)> {
        let columns: Vec<&[u64]> = side
            .key_columns()
            .into_iter()
            .map(|column| &input.columns[column].values()[..])
            .collect();
        let width = columns.len();
        let (sorted, order) = match columns[..] {
            [] => (Vec::new().into(), None),
            [a] => sort_rows([a]),
            [a, b] => sort_rows([a, b]),
            [a, b, c, ..] => sort_rows([a, b, c]),
        };
        let mut keys = Self {
            values: Vec::new(),
            width,
            numbers: Vec::new(),
            ranges: Vec::new(),
            demands: Vec::new(),
            demanded: Vec::new(),
            lists: Vec::new(),
            list_values: Vec::new(),
        };
        match &order {
            None => keys.push_key(side, &[], seeker)?,
            Some(order) => {
                keys.numbers.resize(input.rows, 0);
                for (key, &row) in sorted.chunks_exact(width).zip(order) {
                    if !keys.values.ends_with(key) {
                        keys.push_key(side, key, seeker)?;
                    }
                    keys.numbers[row as usize] = keys.ranges.len() as u32 - 1;
                }
            }
        }
        keys.demands
            .resize(keys.ranges.len(), RangeDemand::default());
        keys.lists.resize(keys.ranges.len(), ReadList::UNREAD);
        Ok((keys, order))
    }

    fn push_key(&mut self, side: &SideProgram, key: &[u64], seeker: &mut Cursor) -> Result<()> {
        self.values.extend_from_slice(key);
        let (prefix, _) = resolve(side, key);
        self.ranges
            .push(seeker.seek(&prefix).map_err(storage_error)?);
        Ok(())
    }

    /// How many different keys there are.
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The number of a row's key.
    pub(super) fn number(&self, row: usize) -> u32 {
        self.numbers.get(row).copied().unwrap_or(0)
    }

    /// The first two columns of a key's range, and the graph if the side asks for one.
    pub(super) fn prefix(&self, side: &SideProgram, number: u32) -> ([TermId; 2], Option<TermId>) {
        let start = number as usize * self.width;
        resolve(side, &self.values[start..start + self.width])
    }

    /// The range of a row's key. With graphs to be checked it may have more rows than values.
    pub(super) fn range(&self, row: usize) -> RowRange {
        self.ranges[self.number(row) as usize]
    }

    /// Notes that so many candidates of a row are to be found in the range of its key, or that it
    /// gives them.
    pub(super) fn want(&mut self, row: usize, candidates: u64, drives: bool) {
        let number = self.number(row);
        let wish = &mut self.demands[number as usize];
        if wish.candidates == 0 {
            self.demanded.push(number);
        }
        wish.candidates += candidates;
        wish.drives |= drives;
    }

    /// Reads the ranges that give candidates, and those in which many are to be found.
    pub(super) fn read_lists(&mut self, side: &SideProgram, reader: &mut Cursor) -> Result<()> {
        self.demanded.sort_unstable();
        let is_plain = !side.checks_graph() && !side.merges;
        let mut rows_read = 0;
        let mut pending: Option<RowRange> = None;
        let mut pending_rows = 0;
        for at in 0..self.demanded.len() {
            let number = self.demanded[at];
            let (wish, range) = (self.demands[number as usize], self.ranges[number as usize]);
            let is_worthwhile = range.len() <= wish.candidates * ROWS_PER_CANDIDATE_MAX
                && rows_read + range.len() <= LIST_ROWS_MAX;
            if !wish.drives && !is_worthwhile {
                continue;
            }
            rows_read += range.len();
            if !is_plain {
                let start = self.list_values.len();
                let (_, graph) = self.prefix(side, number);
                read_values(side, graph, reader, range, &mut self.list_values)?;
                self.lists[number as usize] = ReadList {
                    start,
                    end: self.list_values.len(),
                };
                continue;
            }
            // Neighbouring ranges are read as one.
            let start = self.list_values.len() + pending_rows;
            self.lists[number as usize] = ReadList {
                start,
                end: start + range.len() as usize,
            };
            pending_rows += range.len() as usize;
            match &mut pending {
                Some(before) if before.end == range.start => before.end = range.end,
                _ => {
                    if let Some(before) = pending.replace(range) {
                        read_column(reader, before, VALUE_COLUMN, &mut self.list_values)?;
                        pending_rows = range.len() as usize;
                    }
                }
            }
        }
        if let Some(range) = pending {
            read_column(reader, range, VALUE_COLUMN, &mut self.list_values)?;
        }
        Ok(())
    }

    /// The values of a row's range, if they were read.
    pub(super) fn list(&self, row: usize) -> Option<&[u64]> {
        let ReadList { start, end } = self.lists[self.number(row) as usize];
        self.list_values.get(start..end)
    }

    /// Ends a block.
    pub(super) fn forget_lists(&mut self) {
        for &number in &self.demanded {
            self.demands[number as usize] = RangeDemand::default();
            self.lists[number as usize] = ReadList::UNREAD;
        }
        self.demanded.clear();
        self.list_values.clear();
    }

    /// Reads a part of a row's range, to the end of the value it ends with. Up to which row that
    /// is.
    pub(super) fn read_piece(
        &self,
        side: &SideProgram,
        row: usize,
        mut piece: RowRange,
        cursors: &mut Cursors,
        out: &mut Vec<u64>,
    ) -> Result<u64> {
        let (prefix, graph) = self.prefix(side, self.number(row));
        let all = self.range(row);
        if side.merges && piece.end < all.end {
            let mut last = Vec::new();
            let last_row = RowRange::new(piece.end - 1, piece.end);
            read_column(&mut cursors.reader, last_row, VALUE_COLUMN, &mut last)?;
            for value in last {
                let whole = [prefix[0], prefix[1], TermId::from_bits(value)];
                let rows = cursors.seeker.seek(&whole).map_err(storage_error)?;
                piece.end = piece.end.max(rows.end);
            }
        }
        read_values(side, graph, &mut cursors.reader, piece, out)?;
        Ok(piece.end)
    }
}

/// The first two columns of a key's range, and the graph if the side asks for one.
fn resolve(side: &SideProgram, key: &[u64]) -> ([TermId; 2], Option<TermId>) {
    let mut columns = key.iter();
    let mut of = |key: Key| match key {
        Key::Constant(term) => term,
        Key::Column(_) => columns
            .next()
            .map_or(TermId::MIN, |&bits| TermId::from_bits(bits)),
    };
    let prefix = side.prefix.map(&mut of);
    (prefix, side.graph.map(of))
}

/// The values that all sides but one have, if those sides are the same for every row and none has
/// more than so many.
pub(super) fn values_without(
    program: &IntersectionProgram,
    dependent: usize,
    cursors: &mut [Cursors],
    ids_max: u64,
) -> Result<Option<Vec<u64>>> {
    let others = || (0..program.sides.len()).filter(|&number| number != dependent);
    let mut ranges = Vec::with_capacity(program.sides.len());
    for number in others() {
        let (prefix, graph) = resolve(&program.sides[number], &[]);
        let seeker = &mut cursors[number].seeker;
        let range = seeker.seek(&prefix).map_err(storage_error)?;
        if range.len() > ids_max {
            return Ok(None);
        }
        ranges.push((range, graph));
    }
    let mut common: Option<Vec<u64>> = None;
    for (number, (range, graph)) in others().zip(ranges) {
        let mut values = Vec::new();
        let reader = &mut cursors[number].reader;
        read_values(&program.sides[number], graph, reader, range, &mut values)?;
        match &mut common {
            None => common = Some(values),
            Some(common) => retain_common(common, &values),
        }
    }
    Ok(common)
}

fn read_column(
    reader: &mut Cursor,
    range: RowRange,
    column: usize,
    out: &mut Vec<u64>,
) -> Result<()> {
    reader.read(range, column, out).map_err(storage_error)
}

/// Appends the values of a range in the graphs asked for, each once, ascending.
pub(super) fn read_values(
    side: &SideProgram,
    graph: Option<TermId>,
    reader: &mut Cursor,
    range: RowRange,
    out: &mut Vec<u64>,
) -> Result<()> {
    let start = out.len();
    read_column(reader, range, VALUE_COLUMN, out)?;
    let mut kept = start;
    if side.checks_graph() {
        let mut graphs = Vec::new();
        read_column(reader, range, GRAPH_COLUMN, &mut graphs)?;
        for (at, graph_of_row) in graphs.into_iter().enumerate() {
            out[kept] = out[start + at];
            kept += usize::from(side.takes_graph(graph, TermId::from_bits(graph_of_row)));
        }
        out.truncate(kept);
    }
    if side.merges {
        kept = start;
        for at in start..out.len() {
            let value = out[at];
            if kept == start || out[kept - 1] != value {
                out[kept] = value;
                kept += 1;
            }
        }
        out.truncate(kept);
    }
    Ok(())
}

impl SideProgram {
    /// Whether a row of this graph counts, if the side asks for `graph`.
    pub(super) fn takes_graph(&self, graph: Option<TermId>, graph_of_row: TermId) -> bool {
        graph.is_none_or(|graph| graph == graph_of_row)
            && self
                .one_of
                .as_ref()
                .is_none_or(|graphs| graphs.binary_search(&graph_of_row).is_ok())
    }
}

/// Keeps the values that the list has too; both ascend strictly.
pub(super) fn retain_common(values: &mut Vec<u64>, list: &[u64]) {
    let mut kept = 0;
    if values.len() < list.len() / GALLOP_FACTOR {
        let mut rest = list;
        for at in 0..values.len() {
            let value = values[at];
            rest = &rest[gallop(rest, value)..];
            match rest.first() {
                None => break,
                Some(&found) => {
                    values[kept] = value;
                    kept += usize::from(found == value);
                }
            }
        }
    } else {
        // Without a branch on what is compared: 5 ns a value with one, where neither list foretells
        // the other.
        let (mut at, mut other) = (0, 0);
        while at < values.len() && other < list.len() {
            let (value, found) = (values[at], list[other]);
            values[kept] = value;
            kept += usize::from(value == found);
            at += usize::from(value <= found);
            other += usize::from(found <= value);
        }
    }
    values.truncate(kept);
}

/// How many values at the start are below the bound, looked for in growing steps.
fn gallop(values: &[u64], bound: u64) -> usize {
    let mut step = 1;
    while values.get(step - 1).is_some_and(|&value| value < bound) {
        step *= 2;
    }
    let (low, high) = (step / 2, values.len().min(step));
    low + values[low..high].partition_point(|&value| value < bound)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ascending(range: std::ops::Range<u64>, len: usize) -> impl Strategy<Value = Vec<u64>> {
        proptest::collection::btree_set(range, 0..len).prop_map(|set| set.into_iter().collect())
    }

    proptest! {
        #[test]
        fn the_common_values_are_those_in_both(
            mut few in ascending(0..400, 8),
            mut many in ascending(0..400, 300),
        ) {
            let expected: Vec<u64> = few.iter().copied().filter(|value| many.contains(value)).collect();
            let few_before = few.clone();
            retain_common(&mut few, &many);
            prop_assert_eq!(&few, &expected);
            retain_common(&mut many, &few_before);
            prop_assert_eq!(&many, &expected);
        }

        #[test]
        fn galloping_finds_the_place(values in ascending(0..100, 60), bound in 0..110_u64) {
            let expected = values.partition_point(|&value| value < bound);
            prop_assert_eq!(gallop(&values, bound), expected);
        }
    }
}
