//! The foreign keys of a bulk load, held in memory for their check.
//!
//! A load has millions of rows, and a search in a file for each would cost more than all else of
//! it. So the keys of the tables that it refers to are read once, where they are one or two
//! integers: one as bits of their range, if that is dense, others in a table of hashes.
//!
//! A set says only that all rows refer to what is there; where it does not, whoever asks looks into
//! the file, and tells what is missing.

use std::hash::BuildHasher;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Int16Type, Int32Type, Int64Type};
use datafusion::execution::memory_pool::MemoryReservation;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use orrery_storage::table::{
    ColumnId, ColumnType, ForeignKey, TableDefinition, TableState, Tables,
};

use crate::Result;
use crate::changes::rows::state_of;
use crate::execute::rows_at_once::RowsAtOnce;

/// Keys are bits where their range is so many times their number, at most.
const RANGE_TIMES_MAX: u64 = 64;
/// Bytes that a key takes in a table of hashes, which is between seven eighths and seven sixteenths
/// full.
const HASHED_BYTES: u64 = 40;
/// A table of so many times the rows that are loaded is searched instead.
const ROWS_TIMES_MAX: u64 = 32;

/// Of each foreign key of a table the keys that it can refer to, where they fit.
pub(crate) struct KeySets {
    sets: Vec<Option<KeySet>>,
    /// Held as long as they are.
    _memory: MemoryReservation,
}

enum KeySet {
    Bits { least: i64, bits: Vec<u64> },
    Hashed(HashTable<[i64; 2]>, RandomState),
}

impl KeySets {
    /// Reads them for a load of about so many rows, as far as the memory goes.
    pub(crate) fn new(
        tables: &Tables,
        definition: &TableDefinition,
        rows: u64,
        memory: MemoryReservation,
    ) -> Result<Arc<Self>> {
        let mut sets = Vec::with_capacity(definition.foreign_keys.len());
        for key in &definition.foreign_keys {
            let table = state_of(tables, key.table)?;
            let is_few = table.rows() / ROWS_TIMES_MAX > rows;
            sets.push(match is_few || !has_integers(&table, key) {
                true => None,
                false => KeySet::new(&table, key, &memory)?,
            });
        }
        Ok(Arc::new(Self {
            sets,
            _memory: memory,
        }))
    }

    /// Whether the foreign key of this number finds all rows, which have no NULL.
    pub(crate) fn has_all(&self, number: usize, rows: &[ArrayRef]) -> bool {
        let Some(Some(set)) = self.sets.get(number) else {
            return false;
        };
        match (set, rows) {
            (KeySet::Bits { least, bits }, [values]) => integers(values).is_some_and(|values| {
                let has = |value: &i64| {
                    let place = value.wrapping_sub(*least) as u64;
                    let word = bits.get((place / 64) as usize);
                    word.is_some_and(|word| word >> (place % 64) & 1 == 1)
                };
                values.iter().all(has)
            }),
            (KeySet::Hashed(table, state), rows) => pairs(rows).is_some_and(|pairs| {
                let has = |pair: &[i64; 2]| {
                    let found = table.find(state.hash_one(pair), |it| it == pair);
                    found.is_some()
                };
                pairs.iter().all(has)
            }),
            (KeySet::Bits { .. }, _) => false,
        }
    }
}

impl KeySet {
    /// The integers that a foreign key refers to; `None` if some are NULL, or they are too many.
    fn new(
        table: &TableState,
        key: &ForeignKey,
        memory: &MemoryReservation,
    ) -> Result<Option<Self>> {
        let rows = table.rows();
        if let [column] = key.referenced[..]
            && let Some((least, greatest)) = bounds(table, column)?
            && let Some(range) = greatest.abs_diff(least).checked_add(1)
            && range <= rows.saturating_mul(RANGE_TIMES_MAX)
        {
            let words = range.div_ceil(64) as usize;
            if memory.try_grow(8 * words).is_err() {
                return Ok(None);
            }
            let mut bits = vec![0_u64; words];
            let done = each_batch(table, &key.referenced, |columns| {
                let values = columns.first().and_then(integers)?;
                for value in values {
                    let place = value.wrapping_sub(least) as u64;
                    bits[(place / 64) as usize] |= 1 << (place % 64);
                }
                Some(())
            })?;
            if done.is_none() {
                memory.shrink(8 * words);
            }
            return Ok(done.map(|()| Self::Bits { least, bits }));
        }
        let bytes = usize::try_from(rows.saturating_mul(HASHED_BYTES)).unwrap_or(usize::MAX);
        if memory.try_grow(bytes).is_err() {
            return Ok(None);
        }
        let state = RandomState::default();
        let mut hashed = HashTable::with_capacity(rows as usize);
        let done = each_batch(table, &key.referenced, |columns| {
            for pair in pairs(columns)? {
                hashed.insert_unique(state.hash_one(pair), pair, |it| state.hash_one(it));
            }
            Some(())
        })?;
        if done.is_none() {
            memory.shrink(bytes);
        }
        Ok(done.map(|()| Self::Hashed(hashed, state)))
    }
}

/// Whether one or two columns are referred to, and all have integers.
fn has_integers(table: &TableState, key: &ForeignKey) -> bool {
    let is_integer = |id: &ColumnId| {
        table.definition().column(*id).is_some_and(|column| {
            matches!(
                column.column_type,
                ColumnType::SmallInt | ColumnType::Integer | ColumnType::BigInt
            )
        })
    };
    (1..=2).contains(&key.referenced.len()) && key.referenced.iter().all(is_integer)
}

/// The least and the greatest value of a column of integers: the first and the last, where rows are
/// sorted by it.
fn bounds(table: &TableState, column: ColumnId) -> Result<Option<(i64, i64)>> {
    let primary = table.primary();
    let rows = primary.rows();
    let first = primary.layout().key().first();
    if first.is_some_and(|first| first.id == column)
        && let Some(place) = primary.layout().position(column)
        && primary.changes().is_empty()
        && rows > 0
    {
        let ends = [0..1, rows - 1..rows];
        let mut values = Vec::new();
        for end in ends {
            let read = primary.read(end, &[place])?;
            values.extend(read.first().and_then(integers).into_iter().flatten());
        }
        return Ok(match values[..] {
            [least, greatest] => Some((least, greatest)),
            _ => None,
        });
    }
    let mut found: Option<(i64, i64)> = None;
    let done = each_batch(table, &[column], |columns| {
        for value in columns.first().and_then(integers)? {
            let (least, greatest) = found.unwrap_or((value, value));
            found = Some((least.min(value), greatest.max(value)));
        }
        Some(())
    })?;
    Ok(done.and(found))
}

/// Some columns of all rows of a table, batch by batch, as long as something is made of them.
fn each_batch(
    table: &TableState,
    columns: &[ColumnId],
    mut take: impl FnMut(&[ArrayRef]) -> Option<()>,
) -> Result<Option<()>> {
    let primary = table.primary();
    let places = columns.iter().map(|id| primary.layout().position(*id));
    let Some(places) = places.collect::<Option<Vec<usize>>>() else {
        return Ok(None);
    };
    let mut ascending = places.clone();
    ascending.sort_unstable();
    let positions = primary.positions();
    let mut at_once = RowsAtOnce::default();
    let mut start = positions.start;
    while start < positions.end {
        let end = positions.end.min(start + at_once.rows() as u64);
        let read = primary.read(start..end, &ascending)?;
        at_once.have_come(&read);
        start = end;
        let ordered = places
            .iter()
            .map(|place| Arc::clone(&read[ascending.partition_point(|other| other < place)]));
        if take(&ordered.collect::<Vec<_>>()).is_none() {
            return Ok(None);
        }
    }
    Ok(Some(()))
}

/// Integers without NULL.
fn integers(column: &ArrayRef) -> Option<Vec<i64>> {
    if column.null_count() > 0 {
        return None;
    }
    Some(match column.data_type() {
        DataType::Int16 => {
            let values = column.as_primitive::<Int16Type>().values().iter();
            values.map(|value| i64::from(*value)).collect()
        }
        DataType::Int32 => {
            let values = column.as_primitive::<Int32Type>().values().iter();
            values.map(|value| i64::from(*value)).collect()
        }
        DataType::Int64 => column.as_primitive::<Int64Type>().values().to_vec(),
        _ => return None,
    })
}

/// One or two integers of each row.
fn pairs(columns: &[ArrayRef]) -> Option<Vec<[i64; 2]>> {
    let (first, second) = match columns {
        [first] => (integers(first)?, None),
        [first, second] => (integers(first)?, Some(integers(second)?)),
        _ => return None,
    };
    Some(match second {
        Some(second) => {
            let both = first.into_iter().zip(second);
            both.map(|(first, second)| [first, second]).collect()
        }
        None => first.into_iter().map(|value| [value, 0]).collect(),
    })
}
