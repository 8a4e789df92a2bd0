//! The base level of a cursor: a permutation file, as it is or as GSPO of the default graph,
//! without masked rows.

use std::sync::Arc;

use orrery_term::TermId;

use super::file_cursor::FileCursor;
use super::mask::Mask;
use super::piece::Piece;
use super::{Permutation, Prefix, QuadIndex, QuadRow, RowRange, Side};
use crate::Result;

/// The column of the graph in SPOG.
const GRAPH_COLUMN: usize = 3;

/// A cursor in the file of a permutation.
#[derive(Debug)]
pub(super) struct BaseCursor {
    file: FileCursor,
    /// Those that are visible.
    rows: u64,
    mask: Option<Arc<Mask>>,
    /// The file holds SPOG of the default graph and is read as GSPO.
    is_turned: bool,
}

impl BaseCursor {
    pub(super) fn new(index: &QuadIndex) -> Self {
        let file = index.file();
        Self {
            is_turned: index.permutation() == Permutation::Gspo
                && file.permutation() != Permutation::Gspo,
            rows: index.mask().map_or(file.rows(), |mask| mask.rows()),
            mask: index.mask().cloned(),
            file: FileCursor::new(Arc::clone(file)),
        }
    }

    /// The rows that begin with the prefix; an empty range where there are none.
    #[inline]
    pub(super) fn seek(&mut self, prefix: &Prefix) -> Result<RowRange> {
        if self.is_turned {
            let start = self.boundary(prefix, Side::Before)?;
            return Ok(RowRange::new(start, self.boundary(prefix, Side::After)?));
        }
        let rows = self.file.seek(prefix)?;
        match &self.mask {
            None => Ok(rows),
            Some(mask) => Ok(RowRange::new(
                mask.visible_before(rows.start),
                mask.visible_before(rows.end),
            )),
        }
    }

    /// Whether rows of the file are hidden, so that those to be read are found by [`Self::plan`].
    #[inline]
    pub(super) fn is_masked(&self) -> bool {
        self.mask.is_some()
    }

    /// Appends the pieces of the file that a range of the rows is made of.
    pub(super) fn plan(&self, range: RowRange, pieces: &mut Vec<Piece>) {
        let mut push = |range: RowRange| match pieces.last_mut() {
            Some(Piece::File(last)) if last.end == range.start => last.end = range.end,
            _ => pieces.push(Piece::File(range)),
        };
        match &self.mask {
            None => push(range),
            Some(mask) => mask.runs(range, push),
        }
    }

    /// Whether it is worth while to say which look-ups will follow.
    #[inline]
    pub(super) fn is_cold(&self) -> bool {
        self.file.is_cold()
    }

    /// Asks the disk for what look-ups of these prefixes will touch, and does not wait for it.
    pub(super) fn will_seek(&self, prefixes: impl Iterator<Item = Prefix>) -> Result<()> {
        if !self.is_turned {
            return self.file.will_seek(prefixes);
        }
        let default = TermId::DEFAULT_GRAPH.bits();
        self.file
            .will_seek(prefixes.filter_map(|prefix| match prefix.as_slice() {
                [graph, rest @ ..] if *graph == default => Some(Prefix::from_values(rest)),
                _ => None,
            }))
    }

    /// The number of rows before the boundary.
    pub(super) fn boundary(&mut self, prefix: &Prefix, side: Side) -> Result<u64> {
        let mut prefix = *prefix;
        if self.is_turned
            && let Some((&graph, rest)) = prefix.as_slice().split_first()
        {
            if graph != TermId::DEFAULT_GRAPH.bits() {
                let is_behind = graph > TermId::DEFAULT_GRAPH.bits();
                return Ok(if is_behind { self.rows } else { 0 });
            }
            prefix = Prefix::from_values(rest);
        }
        if prefix.columns == 0 {
            return Ok(if side == Side::After { self.rows } else { 0 });
        }
        let row = self.file.boundary(&prefix, side)?;
        Ok(self
            .mask
            .as_ref()
            .map_or(row, |mask| mask.visible_before(row)))
    }

    /// Appends one column of a range that lies within the rows, none of which is hidden.
    #[inline]
    pub(super) fn read(
        &mut self,
        range: RowRange,
        column: usize,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        self.file.read(range, self.file_column(column), out)
    }

    /// Appends one column of pieces, whose ranges are of the file.
    pub(super) fn read_pieces(
        &mut self,
        pieces: &[Piece],
        column: usize,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        let inserted = |row: &QuadRow| row[column];
        self.file
            .read_pieces(pieces, self.file_column(column), inserted, out)
    }

    fn file_column(&self, column: usize) -> usize {
        match (self.is_turned, column) {
            (false, column) => column,
            (true, 0) => GRAPH_COLUMN,
            (true, column) => column - 1,
        }
    }
}
