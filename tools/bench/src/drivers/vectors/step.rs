//! The look-up step of which index plans are made.
//!
//! ```text
//! vector of rows -> keys, sorted, each once -> look-up, from one to the next -> numbers of rows, which ascend -> columns of these
//!                -> the vector's rows in the order of the keys, once for each row found, with the new columns
//! ```
//!
//! A step waits until it has a vector full; at the end each gets what is left.

use super::profit::{PROFIT_SLOTS, Profits};
use super::store::Table;
use super::vector::{Limit, Reach, Size, Stop, VectorSize, Waiting};
use crate::drivers::BenchError;
use orrery_storage::table::SomeRows;

/// One look-up. Slots are places of columns in a vector.
struct Step<'t> {
    table: &'t Table,
    /// The slots that are looked up as the first columns of the table's key.
    key: Vec<usize>,
    /// The slots that are still needed.
    kept: Vec<usize>,
    /// The columns of the table that come behind them.
    fetched: Vec<usize>,
}

/// The look-ups of a plan, and what the columns of the vectors are.
pub(super) struct Steps<'t> {
    steps: Vec<Step<'t>>,
    slots: Vec<&'static str>,
}

impl<'t> Steps<'t> {
    /// From vectors of one column on.
    pub(super) fn from(slot: &'static str) -> Self {
        Self {
            steps: Vec::new(),
            slots: vec![slot],
        }
    }

    /// Looks slots up as the first columns of a table's key, and has further columns of the table
    /// from there on, but some slots no more.
    pub(super) fn look_up(
        mut self,
        table: &'t Table,
        key: &[&'static str],
        fetched: &[&'static str],
        dropped: &[&'static str],
    ) -> Result<Self, BenchError> {
        let key = key.iter().map(|name| self.slot(name));
        let key = key.collect::<Result<_, _>>()?;
        let fetched_columns = fetched.iter().map(|name| table.column(name));
        let fetched_columns = fetched_columns.collect::<Result<_, _>>()?;
        let is_kept = |slot: &usize| !dropped.contains(&self.slots[*slot]);
        let kept: Vec<usize> = (0..self.slots.len()).filter(is_kept).collect();
        let names = kept.iter().map(|slot| self.slots[*slot]);
        self.slots = names.chain(fetched.iter().copied()).collect();
        self.steps.push(Step {
            table,
            key,
            kept,
            fetched: fetched_columns,
        });
        Ok(self)
    }

    fn slot(&self, name: &str) -> Result<usize, BenchError> {
        let slot = self.slots.iter().position(|slot| *slot == name);
        slot.ok_or_else(|| BenchError::Engine {
            message: format!("no step before gives {name}"),
        })
    }
}

impl Step<'_> {
    fn run(&self, vector: &[Vec<i64>]) -> Result<(Vec<Vec<i64>>, Reach), BenchError> {
        let keys: Vec<&[i64]> = self.key.iter().map(|slot| &vector[*slot][..]).collect();
        let order = sorted(&keys);
        let is_same = |one: &u32, other: &u32| {
            let (one, other) = (*one as usize, *other as usize);
            keys.iter().all(|key| key[one] == key[other])
        };
        let firsts: Vec<usize> = order
            .chunk_by(is_same)
            .map(|same| same[0] as usize)
            .collect();
        let of_key = |key: &&[i64]| firsts.iter().map(|row| key[*row]).collect();
        let distinct = self.table.keys(keys.iter().map(of_key).collect());
        let ranges = self.table.stored.look_up(&distinct)?;
        let mut rows = Vec::with_capacity(ranges.len());
        ranges
            .iter()
            .for_each(|range| rows.extend(range.start..range.end));
        let mut fetched = vec![Vec::with_capacity(rows.len()); self.fetched.len()];
        let stored = &self.table.stored;
        stored.numbers(SomeRows::Ascending(&rows), &self.fetched, &mut fetched)?;

        let mut out = vec![Vec::with_capacity(rows.len()); self.kept.len() + fetched.len()];
        let (kept, new) = out.split_at_mut(self.kept.len());
        let mut start = 0;
        for (same, range) in order.chunk_by(is_same).zip(&ranges) {
            let found = (range.end - range.start) as usize;
            for &row in same {
                for (slot, out) in self.kept.iter().zip(kept.iter_mut()) {
                    let value = vector[*slot][row as usize];
                    out.extend(std::iter::repeat_n(value, found));
                }
                for (column, out) in fetched.iter().zip(new.iter_mut()) {
                    out.extend_from_slice(&column[start..start + found]);
                }
            }
            start += found;
        }
        Ok((out, Reach::of(&rows)))
    }
}

/// The numbers of rows in the order of their keys.
fn sorted(keys: &[&[i64]]) -> Vec<u32> {
    let rows = keys.first().map_or(0, |key| key.len());
    let mut order: Vec<u32> = (0..rows as u32).collect();
    match keys {
        [key] => order.sort_unstable_by_key(|row| key[*row as usize]),
        [first, second] => {
            order.sort_unstable_by_key(|row| (first[*row as usize], second[*row as usize]));
        }
        keys => order.sort_unstable_by(|one, other| {
            let of = |row: u32| keys.iter().map(move |key| key[row as usize]);
            of(*one).cmp(of(*other))
        }),
    }
    order
}

/// Steps under way, with what waits for each.
pub(super) struct Pipeline<'s, 't> {
    steps: &'s Steps<'t>,
    waiting: Vec<Waiting>,
    size: Size,
    limit: Limit,
    profits: Profits,
    /// The slots that are summed up in the end.
    summed: [usize; 6],
}

impl<'s, 't> Pipeline<'s, 't> {
    pub(super) fn new(
        steps: &'s Steps<'t>,
        size: VectorSize,
        limit: Limit,
    ) -> Result<Self, BenchError> {
        let mut summed = [0; 6];
        for (slot, name) in summed.iter_mut().zip(PROFIT_SLOTS) {
            *slot = steps.slot(name)?;
        }
        // What comes into a step: what it takes on.
        let waiting = steps.steps.iter().map(|_| Waiting::new(1)).collect();
        Ok(Self {
            steps,
            waiting,
            size: Size::new(size),
            limit,
            profits: Profits::default(),
            summed,
        })
    }

    /// Rows that a vector has now.
    pub(super) fn rows(&self) -> usize {
        self.size.rows()
    }

    /// Rows for the first step.
    pub(super) fn push(&mut self, vector: Vec<Vec<i64>>) -> Result<(), Stop> {
        self.push_to(0, vector)
    }

    fn push_to(&mut self, step: usize, vector: Vec<Vec<i64>>) -> Result<(), Stop> {
        if step == self.steps.steps.len() {
            let columns = self.summed.map(|slot| vector[slot].as_slice());
            return Ok(self.profits.add(columns)?);
        }
        self.waiting[step].append(vector);
        while self.waiting[step].len() >= self.size.rows() {
            self.run(step)?;
        }
        Ok(())
    }

    fn run(&mut self, step: usize) -> Result<(), Stop> {
        self.limit.check()?;
        let vector = self.waiting[step].take(self.size.rows());
        let (out, reach) = self.steps.steps[step].run(&vector)?;
        self.size
            .looked_up(vector.first().map_or(0, Vec::len), reach);
        match out.first().is_none_or(Vec::is_empty) {
            true => Ok(()),
            false => self.push_to(step + 1, out),
        }
    }

    /// What is left goes through all steps. Returns the sums, and how large vectors became.
    pub(super) fn finish(mut self) -> Result<(Profits, usize), Stop> {
        for step in 0..self.waiting.len() {
            while self.waiting[step].len() > 0 {
                self.run(step)?;
            }
        }
        Ok((self.profits, self.size.rows()))
    }
}
