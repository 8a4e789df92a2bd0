//! A batch of solutions with their terms, by number.

use orrery_term::Term;

/// No term: the variable is unbound in this row.
pub(super) const UNBOUND: u32 = u32::MAX;

/// Some solutions with their terms.
#[derive(Clone, Debug, Default)]
pub struct SolutionBatch {
    rows: usize,
    /// Per variable, per row: a number in `terms`, or [`UNBOUND`].
    columns: Vec<Vec<u32>>,
    terms: Vec<Term<'static>>,
}

impl SolutionBatch {
    pub(super) fn new(rows: usize, columns: Vec<Vec<u32>>, terms: Vec<Term<'static>>) -> Self {
        debug_assert!(columns.iter().all(|column| column.len() == rows));
        Self {
            rows,
            columns,
            terms,
        }
    }

    /// Number of solutions.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of variables.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// The term of a variable in a row; `None` where it is unbound.
    ///
    /// # Panics
    /// If `row` or `column` is out of bounds.
    pub fn term(&self, row: usize, column: usize) -> Option<&Term<'static>> {
        match self.columns[column][row] {
            UNBOUND => None,
            number => Some(&self.terms[number as usize]),
        }
    }

    /// The terms of the batch. Small batches have each once; in others each column has its own.
    pub fn terms(&self) -> &[Term<'static>] {
        &self.terms
    }

    /// The number in [`SolutionBatch::terms`] of a variable's term in a row: lets a
    /// serializer write each distinct term once.
    ///
    /// # Panics
    /// If `row` or `column` is out of bounds.
    pub fn term_number(&self, row: usize, column: usize) -> Option<usize> {
        match self.columns[column][row] {
            UNBOUND => None,
            number => Some(number as usize),
        }
    }
}
