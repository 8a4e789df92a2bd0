//! The probe of one left batch against the build side, a bounded number of pairs at a time.

use arrow::array::{Array, UInt64Array};
use datafusion_common::Result;

use super::build::{BuildSide, NO_ROW, all_of, unbound_in};
use super::compiled::CountedVariables;

/// Pairs per call.
const PAIRS_PER_CALL: usize = 8_192;
/// Left rows looked at per call, in each group.
const PROBES_PER_CALL: usize = 16_384;

/// Row numbers of compatible solutions.
#[derive(Default)]
pub(super) struct RowPairs {
    pub(super) left: Vec<u32>,
    pub(super) right: Vec<u32>,
}

/// How far a left batch has come.
pub(super) struct Probe {
    pub(super) columns: Vec<UInt64Array>,
    pub(super) rows: usize,
    /// Whether a left row has found a match; the caller sets it, after the filters.
    pub(super) matched: Vec<bool>,
    /// Whether any shared variable is unbound in some row.
    may_be_unbound: bool,
    group: usize,
    row: usize,
    /// What is left of the current row's matches.
    candidates: Candidates,
}

/// Matches of one left row in one group.
#[derive(Clone, Copy)]
enum Candidates {
    /// Not looked up yet.
    Unknown,
    /// The next in a table's chain.
    Chain { table: usize, position: u32 },
    /// All rows of the group, from this one on: no variable is bound on both sides.
    All { position: u32 },
}

/// What the pairs are for.
#[derive(Clone, Copy)]
pub(super) struct ProbeRules<'p> {
    /// Rows that have matched need no further pairs.
    pub(super) is_existence: bool,
    /// The first pair of a row decides: there are no filters.
    pub(super) first_decides: bool,
    /// Solutions that share no bound variable of these are no match.
    pub(super) counted: Option<&'p CountedVariables>,
}

impl Probe {
    pub(super) fn new(columns: Vec<UInt64Array>, rows: usize, shared: &[usize]) -> Self {
        Self {
            may_be_unbound: shared
                .iter()
                .any(|&column| columns[column].null_count() > 0),
            matched: vec![false; rows],
            columns,
            rows,
            group: 0,
            row: 0,
            candidates: Candidates::Unknown,
        }
    }

    /// Some further pairs, perhaps none. The flag says that there are no more.
    pub(super) fn advance(
        &mut self,
        build: &mut BuildSide,
        shared: &[usize],
        rules: ProbeRules<'_>,
    ) -> Result<(RowPairs, bool)> {
        let mut pairs = RowPairs::default();
        let mut probes = 0;
        while pairs.left.len() < PAIRS_PER_CALL && probes < PROBES_PER_CALL {
            if self.row == self.rows {
                self.row = 0;
                self.group += 1;
            }
            if self.group >= build.groups.len() || self.rows == 0 {
                return Ok((pairs, true));
            }
            probes += 1;
            if rules.is_existence && self.matched[self.row] {
                self.next_row();
                continue;
            }
            match self.candidates {
                Candidates::Unknown => {
                    if !self.look_up(build, shared, rules)? {
                        return Ok((pairs, false));
                    }
                }
                Candidates::Chain { table, position } => {
                    self.follow_chain(build, table, position, rules, &mut pairs);
                }
                Candidates::All { position } => {
                    self.take_all(build, position, rules, &mut pairs);
                }
            }
        }
        Ok((pairs, false))
    }

    /// Finds the current row's candidates in the current group; `false` while the table is being
    /// made.
    fn look_up(
        &mut self,
        build: &mut BuildSide,
        shared: &[usize],
        rules: ProbeRules<'_>,
    ) -> Result<bool> {
        let mut unbound = build.groups[self.group].unbound;
        if self.may_be_unbound {
            unbound |= unbound_in(&self.columns, shared, self.row);
        }
        let keys = all_of(shared.len()) & !unbound;
        if let Some(counted) = rules.counted
            && keys & counted.in_row(&self.columns, self.row) == 0
        {
            self.next_row();
            return Ok(true);
        }
        if keys == 0 {
            self.candidates = Candidates::All { position: 0 };
            return Ok(true);
        }
        let table = build.table(self.group, keys)?;
        if !build.fill_table(self.group, table) {
            return Ok(false);
        }
        match build.find(self.group, table, &self.columns, shared, self.row) {
            NO_ROW => self.next_row(),
            position => self.candidates = Candidates::Chain { table, position },
        }
        Ok(true)
    }

    fn follow_chain(
        &mut self,
        build: &BuildSide,
        table: usize,
        mut position: u32,
        rules: ProbeRules<'_>,
        pairs: &mut RowPairs,
    ) {
        while position != NO_ROW {
            if pairs.left.len() == PAIRS_PER_CALL {
                self.candidates = Candidates::Chain { table, position };
                return;
            }
            pairs.left.push(self.row as u32);
            pairs
                .right
                .push(build.groups[self.group].rows[position as usize]);
            if rules.first_decides {
                break;
            }
            position = build.next(self.group, table, position);
        }
        self.next_row();
    }

    fn take_all(
        &mut self,
        build: &BuildSide,
        position: u32,
        rules: ProbeRules<'_>,
        pairs: &mut RowPairs,
    ) {
        let rows = &build.groups[self.group].rows[position as usize..];
        let room = match rules.first_decides {
            true => 1,
            false => PAIRS_PER_CALL - pairs.left.len(),
        };
        let taken = rows.len().min(room);
        pairs.right.extend_from_slice(&rows[..taken]);
        pairs
            .left
            .extend(std::iter::repeat_n(self.row as u32, taken));
        if rules.first_decides || taken == rows.len() {
            self.next_row();
        } else {
            self.candidates = Candidates::All {
                position: position + taken as u32,
            };
        }
    }

    fn next_row(&mut self) {
        self.row += 1;
        self.candidates = Candidates::Unknown;
    }
}
