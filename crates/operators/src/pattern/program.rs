//! The program that a pattern is compiled to.

use std::sync::{Arc, OnceLock};

use datafusion_common::Result;
use orrery_storage::{AdjacencySlot, IndexView};
use orrery_term::TermId;

use super::filter::ChunkFilter;
use super::id_set::IdSet;
use super::specification::ObjectRanges;
use crate::solutions::storage_error;

/// The name under which a chunk carries the number of the input row. No SPARQL variable is called
/// so.
pub(super) const ROW_NUMBER: &str = "";

/// A pattern compiled for input batches in which the same variables are unbound.
#[derive(Debug)]
pub(super) struct Program {
    /// Columns of the input that the first chunk carries.
    pub(super) entry_columns: Vec<usize>,
    /// Whether the last column of every chunk is the number of the input row.
    pub(super) counts_rows: bool,
    /// Conditions on input variables alone.
    pub(super) entry_filters: Vec<ChunkFilter>,
    /// The steps, in order.
    pub(super) steps: Vec<Arc<StepProgram>>,
    /// Where every output variable comes from.
    pub(super) output: Vec<OutputColumn>,
    /// The column of the input row's number in the last chunk.
    pub(super) row_number: Option<usize>,
    /// For each place of ids that others find, the first step whose chunks have its variable, and
    /// the column there.
    pub(super) found: Vec<Option<(usize, usize)>>,
}

/// Where an output variable comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputColumn {
    /// A column of the last chunk.
    Chunk(usize),
    /// A column of the input batch, fetched by the number of the row.
    Input(usize),
    /// Bound nowhere.
    Unbound,
}

/// Where a known column of a permutation's prefix comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// The pattern says it.
    Constant(TermId),
    /// A column of the incoming chunk.
    Column(usize),
}

/// A condition on the columns read, checked for many rows at a time. `read` is a position in
/// [`StepProgram::reads`].
#[derive(Debug)]
pub(super) enum Check {
    /// Equal to a term.
    Constant { read: usize, term: TermId },
    /// Equal to a column of the incoming chunk.
    Column { read: usize, column: usize },
    /// Two columns read are equal: a variable that stands twice in the pattern.
    Same { left: usize, right: usize },
    /// In a named graph.
    NotDefaultGraph { read: usize },
    /// One of these (ascending).
    OneOf { read: usize, terms: Arc<[TermId]> },
    /// Within bounds.
    Ranges { read: usize, ranges: ObjectRanges },
}

/// One step, compiled.
#[derive(Debug)]
pub(super) struct StepProgram {
    /// The permutation to walk.
    pub(super) index: IndexView,
    /// Its leading columns that are known.
    pub(super) prefix: Vec<Key>,
    /// Bounds on the column after the prefix; only with a prefix of constants.
    pub(super) between: Option<Vec<(TermId, TermId)>>,
    /// The columns to read, as positions in the permutation.
    pub(super) reads: Vec<usize>,
    /// What else must hold.
    pub(super) checks: Vec<Check>,
    /// Set when a triple may stand in several graphs but is to match once: the columns read
    /// (positions in `reads`) that tell two triples apart.
    pub(super) merge: Option<Vec<usize>>,
    /// Columns of the incoming chunk that go on.
    pub(super) carried: Vec<usize>,
    /// Columns read (positions in `reads`) that go on, after the carried ones.
    pub(super) produced: Vec<usize>,
    /// Conditions on the outgoing chunk.
    pub(super) filters: Vec<ChunkFilter>,
    /// Only whether there is a match counts: the first one is enough for each row.
    pub(super) first_match_only: bool,
    /// The column of the incoming chunk with the number of the input row, when rows that have
    /// matched already need no further match.
    pub(super) existence_of: Option<usize>,
    /// Set when it can be done by an adjacency in memory.
    pub(super) adjacent: Option<AdjacentStep>,
    /// The numbers of the specification's steps that this one does; several only with an
    /// intersection.
    pub(super) members: Vec<usize>,
    /// Set when several patterns bind one variable together: then `index`, `prefix` and `reads` are
    /// those of the first of them, and the other ways to match are not used.
    pub(super) intersection: Option<IntersectionProgram>,
}

/// Patterns that bind one variable together.
#[derive(Debug)]
pub(super) struct IntersectionProgram {
    /// One for each pattern, at least two.
    pub(super) sides: Vec<SideProgram>,
    /// How all of them are done by adjacencies in memory; fewer than there are sides if some cannot
    /// be.
    pub(super) adjacent: Vec<AdjacentStep>,
    /// Bounds on the variable.
    pub(super) ranges: Option<ObjectRanges>,
    /// Set if only one of the patterns depends on the chunk.
    pub(super) by_set: Option<Box<SetScanProgram>>,
}

/// One pattern alone, and the values that all the others, which are the same for every row, leave
/// its variable.
#[derive(Debug)]
pub(super) struct SetScanProgram {
    /// The number of its side.
    pub(super) side: usize,
    /// The pattern as a step; without filters.
    pub(super) step: StepProgram,
    /// The variable's column, as a position in the step's `reads`.
    pub(super) read: usize,
    /// The values, from the first scan on.
    pub(super) values: OnceLock<Arc<IdSet>>,
}

/// One pattern of an intersection: the values of its variable are a range of a permutation,
/// ascending in the third column.
#[derive(Debug)]
pub(super) struct SideProgram {
    pub(super) index: IndexView,
    /// The first two columns.
    pub(super) prefix: [Key; 2],
    /// The graph must be this.
    pub(super) graph: Option<Key>,
    /// The graph must be one of these (ascending).
    pub(super) one_of: Option<Arc<[TermId]>>,
    /// Whether a value may stand there several times, for several graphs, but counts once.
    pub(super) merges: bool,
}

impl StepProgram {
    /// The scan that may take the place of an intersection.
    pub(super) fn set_scan(&self) -> Option<&SetScanProgram> {
        self.intersection.as_ref()?.by_set.as_deref()
    }

    /// How it can be done by an adjacency: the step itself, or the scan that takes the place of an
    /// intersection.
    pub(super) fn adjacent_program(&self) -> Option<(&Self, &AdjacentStep)> {
        let program = self.set_scan().map_or(self, |by_set| &by_set.step);
        Some((program, program.adjacent.as_ref()?))
    }

    /// Whether its adjacency is in memory now, so that it will be done by that, mostly.
    pub(super) fn is_in_memory(&self) -> Result<bool> {
        let slot = match self.adjacent_program() {
            Some((_, step)) => step.slot()?,
            None => None,
        };
        Ok(slot.is_some_and(|slot| slot.get().is_some()))
    }

    /// The same, to be changed.
    pub(super) fn set_scan_mut(&mut self) -> Option<&mut SetScanProgram> {
        self.intersection.as_mut()?.by_set.as_deref_mut()
    }

    /// Columns that a chunk of this step keeps in memory.
    pub(super) fn columns(&self) -> usize {
        self.carried.len() + self.reads.len()
    }
}

/// How a step is done by an adjacency.
#[derive(Debug)]
pub(super) struct AdjacentStep {
    /// PSOG or POSG.
    pub(super) index: IndexView,
    pub(super) predicate: TermId,
    pub(super) key: Key,
    pub(super) third: ThirdColumn,
}

/// What is asked of the values of a key.
#[derive(Debug)]
pub(super) enum ThirdColumn {
    /// How many there are.
    Any,
    /// They are read; only those in the bounds count.
    Read(Option<ObjectRanges>),
    /// Whether this is among them.
    Equals(Key),
}

impl AdjacentStep {
    /// The place of the adjacency.
    pub(super) fn slot(&self) -> Result<Option<Arc<AdjacencySlot>>> {
        self.index
            .adjacency_slot(self.predicate)
            .map_err(storage_error)
    }
}
