//! The build side of a join.

use std::hash::{BuildHasher, Hasher};

use arrow::array::{Array, UInt64Array};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// At most so many variables may be shared by the two sides.
pub(super) const SHARED_VARIABLES_MAX: usize = 64;

/// No row: the end of a chain.
pub(super) const NO_ROW: u32 = u32::MAX;

/// Rows put into a table per call, so that a large table does not hold up the scheduler.
const INSERTS_PER_CALL: usize = 16_384;

/// Bytes that a table needs for one row: its place in the hash table at the usual load, and its
/// link.
pub(super) const TABLE_BYTES_PER_ROW: usize = 16;

/// Which of the shared variables, one bit each.
pub(super) type VariableSet = u64;

/// The set of so many variables.
pub(super) fn all_of(variables: usize) -> VariableSet {
    match variables {
        0 => 0,
        count => u64::MAX >> (64 - count),
    }
}

/// The collected rows, complete.
pub(super) struct BuildSide {
    pub(super) columns: Vec<UInt64Array>,
    pub(super) groups: Vec<BuildGroup>,
    /// The column of each shared variable.
    shared: Vec<usize>,
    reservation: MemoryReservation,
    /// What is reserved for tables that are not there yet.
    spare_bytes: usize,
}

/// Rows in which the same shared variables are unbound.
pub(super) struct BuildGroup {
    pub(super) unbound: VariableSet,
    pub(super) rows: Vec<u32>,
    tables: Vec<KeyTable>,
}

/// A hash table from the values of some shared variables to the rows that have them.
struct KeyTable {
    keys: VariableSet,
    /// For each distinct key the last inserted position in the group's rows.
    heads: HashTable<u32>,
    /// For each position the one inserted before it with the same key.
    next: Vec<u32>,
    /// Positions from here on are in the table: it is filled from the end, so that chains ascend.
    filled_from: usize,
}

/// The columns of the variables of a key.
#[derive(Clone, Copy)]
struct KeyColumns<'a> {
    columns: &'a [UInt64Array],
    shared: &'a [usize],
    keys: VariableSet,
}

impl KeyColumns<'_> {
    #[inline]
    fn value(self, variable: usize, row: usize) -> u64 {
        self.columns[self.shared[variable]].values()[row]
    }

    #[inline]
    fn hash(self, row: usize) -> u64 {
        let mut hasher = FixedState::default().build_hasher();
        let mut rest = self.keys;
        while rest != 0 {
            hasher.write_u64(self.value(rest.trailing_zeros() as usize, row));
            rest &= rest - 1;
        }
        hasher.finish()
    }

    #[inline]
    fn equal(self, row: usize, other: Self, other_row: usize) -> bool {
        let mut rest = self.keys;
        while rest != 0 {
            let variable = rest.trailing_zeros() as usize;
            if self.value(variable, row) != other.value(variable, other_row) {
                return false;
            }
            rest &= rest - 1;
        }
        true
    }
}

/// Which shared variables are unbound in a row.
pub(super) fn unbound_in(columns: &[UInt64Array], shared: &[usize], row: usize) -> VariableSet {
    let mut unbound = 0;
    for (variable, &column) in shared.iter().enumerate() {
        unbound |= u64::from(columns[column].is_null(row)) << variable;
    }
    unbound
}

impl BuildSide {
    /// Groups the collected batches, each given as its columns, fewer rows than [`NO_ROW`]. The
    /// reservation already counts them, their numbers, one table, and a column that exists twice
    /// while it is put together.
    pub(super) fn new(
        mut batches: Vec<Vec<UInt64Array>>,
        rows: usize,
        column_count: usize,
        shared: Vec<usize>,
        reservation: MemoryReservation,
    ) -> Result<Self> {
        let columns: Vec<UInt64Array> = (0..column_count)
            .map(|column| concatenate(&mut batches, column, rows))
            .collect();
        let kept = rows * (column_count * size_of::<u64>() + size_of::<u32>());
        let spare_bytes = rows * TABLE_BYTES_PER_ROW;
        reservation.try_resize(kept + spare_bytes)?;

        let mut groups: Vec<BuildGroup> = Vec::new();
        let is_bound = shared
            .iter()
            .all(|&column| columns[column].null_count() == 0);
        if rows > 0 && is_bound {
            groups.push(BuildGroup::new(0, (0..rows as u32).collect()));
        } else {
            for row in 0..rows {
                let unbound = unbound_in(&columns, &shared, row);
                match groups.iter_mut().find(|group| group.unbound == unbound) {
                    Some(group) => group.rows.push(row as u32),
                    None => groups.push(BuildGroup::new(unbound, vec![row as u32])),
                }
            }
        }
        Ok(Self {
            columns,
            groups,
            shared,
            reservation,
            spare_bytes,
        })
    }

    /// The number of a group's table on these variables; it may still have to be filled.
    pub(super) fn table(&mut self, group: usize, keys: VariableSet) -> Result<usize> {
        let tables = &self.groups[group].tables;
        if let Some(table) = tables.iter().position(|table| table.keys == keys) {
            return Ok(table);
        }
        let rows = self.groups[group].rows.len();
        self.reserve_table(rows * TABLE_BYTES_PER_ROW)?;
        let group = &mut self.groups[group];
        group.tables.push(KeyTable {
            keys,
            heads: HashTable::new(),
            next: vec![NO_ROW; rows],
            filled_from: rows,
        });
        Ok(group.tables.len() - 1)
    }

    /// Room for a table. If there is none, all tables go: they can be made again.
    fn reserve_table(&mut self, bytes: usize) -> Result<()> {
        if self.spare_bytes < bytes {
            let missing = bytes - self.spare_bytes;
            if let Err(error) = self.reservation.try_grow(missing) {
                let tables = self.groups.iter_mut().flat_map(|it| it.tables.drain(..));
                let rows: usize = tables.map(|table| table.next.len()).sum();
                self.spare_bytes += rows * TABLE_BYTES_PER_ROW;
                if self.spare_bytes < bytes {
                    return Err(error);
                }
            } else {
                self.spare_bytes = bytes;
            }
        }
        self.spare_bytes -= bytes;
        Ok(())
    }

    /// Puts some more rows into a table; whether it is complete now.
    pub(super) fn fill_table(&mut self, group: usize, table: usize) -> bool {
        let BuildGroup { rows, tables, .. } = &mut self.groups[group];
        let table = &mut tables[table];
        if table.filled_from == 0 {
            return true;
        }
        let columns = KeyColumns {
            columns: &self.columns,
            shared: &self.shared,
            keys: table.keys,
        };
        let row_at = |position: u32| rows[position as usize] as usize;
        let stop = table.filled_from.saturating_sub(INSERTS_PER_CALL);
        for position in (stop..table.filled_from).rev() {
            let row = rows[position] as usize;
            let entry = table.heads.entry(
                columns.hash(row),
                |&head| columns.equal(row_at(head), columns, row),
                |&head| columns.hash(row_at(head)),
            );
            match entry {
                Entry::Occupied(mut entry) => {
                    table.next[position] = *entry.get();
                    *entry.get_mut() = position as u32;
                }
                Entry::Vacant(entry) => {
                    entry.insert(position as u32);
                }
            }
        }
        table.filled_from = stop;
        stop == 0
    }

    /// The first position in a group's rows whose key equals that of a left row.
    pub(super) fn find(
        &self,
        group: usize,
        table: usize,
        left: &[UInt64Array],
        left_shared: &[usize],
        row: usize,
    ) -> u32 {
        let group = &self.groups[group];
        let table = &group.tables[table];
        let probe = KeyColumns {
            columns: left,
            shared: left_shared,
            keys: table.keys,
        };
        let build = KeyColumns {
            columns: &self.columns,
            shared: &self.shared,
            keys: table.keys,
        };
        let found = table.heads.find(probe.hash(row), |&head| {
            let build_row = group.rows[head as usize] as usize;
            build.equal(build_row, probe, row)
        });
        found.copied().unwrap_or(NO_ROW)
    }

    /// The position after this one in its chain.
    pub(super) fn next(&self, group: usize, table: usize, position: u32) -> u32 {
        self.groups[group].tables[table].next[position as usize]
    }
}

impl BuildGroup {
    fn new(unbound: VariableSet, rows: Vec<u32>) -> Self {
        Self {
            unbound,
            rows,
            tables: Vec::new(),
        }
    }
}

/// Puts the parts of a column together and drops them.
fn concatenate(batches: &mut [Vec<UInt64Array>], column: usize, rows: usize) -> UInt64Array {
    let has_nulls = batches.iter().any(|batch| batch[column].null_count() > 0);
    let mut values = Vec::with_capacity(rows);
    let mut valid = Vec::with_capacity(if has_nulls { rows } else { 0 });
    for batch in batches {
        let part = std::mem::replace(&mut batch[column], UInt64Array::new_null(0));
        values.extend_from_slice(part.values());
        if has_nulls {
            valid.extend((0..part.len()).map(|row| part.is_valid(row)));
        }
    }
    let nulls = has_nulls.then(|| NullBuffer::from(valid));
    UInt64Array::new(ScalarBuffer::from(values), nulls)
}
