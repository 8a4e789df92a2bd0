//! Foreign key checks, in both directions.
//!
//! A row that comes needs one in the table that it refers to, which the primary key or a unique
//! index finds. A row that goes must not be referred to, unless another of its key has come: an
//! index whose first columns are those of the foreign key finds who does; without one the referring
//! table is read as a whole, once a statement.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, UInt32Array};
use datafusion::arrow::util::display::array_value_to_string;
use orrery_storage::table::{
    ColumnId, ForeignKey, KeyEncoder, KeyRows, Projection, ProjectionColumn, RelationId,
    TableDefinition, TableState, Tables,
};

use crate::catalog::lookup::unique_key;
use crate::changes::key_sets::KeySets;
use crate::changes::rows::{state_of, taken};
use crate::execute::rows_at_once::RowsAtOnce;
use crate::execute::threads::require_waited_for;
use crate::{Error, Result, SqlState};

/// Fails if a row, given as arrays in the order of the definition's columns, refers to one that is
/// not there.
pub(crate) fn require(
    tables: &Tables,
    definition: &TableDefinition,
    rows: &[ArrayRef],
) -> Result<()> {
    require_within(tables, definition, rows, None)
}

/// The same of many rows, with the keys that are known to be there.
pub(crate) fn require_within(
    tables: &Tables,
    definition: &TableDefinition,
    rows: &[ArrayRef],
    known: Option<&KeySets>,
) -> Result<()> {
    for (number, key) in definition.foreign_keys.iter().enumerate() {
        let referring = columns_of(definition, rows, &key.columns)?;
        let referring = without_nulls(&referring)?;
        if known.is_some_and(|known| known.has_all(number, &referring)) {
            continue;
        }
        let other = state_of(tables, key.table)?;
        let wanted = Wanted::new(&other, &key.referenced, &referring)?;
        if let Some(row) = wanted.missing()? {
            return Err(Error::new(
                SqlState::ForeignKeyViolation,
                format!(
                    "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
                    definition.name, key.name
                ),
            )
            .with_detail(format!(
                "Key ({})=({}) is not present in table \"{}\".",
                names(definition, &key.columns),
                values(&referring, row),
                other.definition().name
            ))
            .of_table(&definition.schema, &definition.name)
            .of_constraint(&key.name));
        }
    }
    Ok(())
}

/// Fails if rows that have gone from a table, given as above, are still referred to.
pub(crate) fn refuse_referred(
    tables: &Tables,
    definition: &TableDefinition,
    gone: &[ArrayRef],
) -> Result<()> {
    let now = state_of(tables, definition.id)?;
    for other in tables.tables() {
        let keys = other.definition().foreign_keys.iter();
        for key in keys.filter(|key| key.table == definition.id) {
            let gone = columns_of(definition, gone, &key.referenced)?;
            let gone = without_nulls(&gone)?;
            let still_there = Wanted::new(&now, &key.referenced, &gone)?;
            let gone = taken(&gone, &still_there.all_missing()?)?;
            if gone.first().is_none_or(|column| column.is_empty()) {
                continue;
            }
            if let Some(row) = referred(other, key, &gone)? {
                return Err(Error::new(
                    SqlState::ForeignKeyViolation,
                    format!(
                        "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
                        definition.name,
                        key.name,
                        other.definition().name
                    ),
                )
                .with_detail(format!(
                    "Key ({})=({}) is still referenced from table \"{}\".",
                    names(definition, &key.referenced),
                    values(&gone, row),
                    other.definition().name
                ))
                .of_table(&other.definition().schema, &other.definition().name)
                .of_constraint(&key.name));
            }
        }
    }
    Ok(())
}

/// Keys that are looked up before it is looked whether somebody still waits. They ascend, so that
/// those of one part are near each other.
const KEYS_AT_ONCE: usize = 2_048;

/// Keys to be found in what makes some columns of a table unique.
struct Wanted {
    projection: Projection,
    /// Whether the columns are the whole key of the projection.
    is_whole: bool,
    /// Ascending, each once.
    keys: KeyRows,
    /// The row that each was made from.
    rows: Vec<u32>,
}

impl Wanted {
    /// Of rows that have the values of `columns`, in their order.
    fn new(table: &TableState, columns: &[ColumnId], rows: &[ArrayRef]) -> Result<Self> {
        let definition = table.definition();
        let (relation, order) = unique_key(definition, columns).ok_or_else(|| {
            Error::new(
                SqlState::InternalError,
                format!("a foreign key to {} has lost its index", definition.name),
            )
        })?;
        let projection = projection_of(table, relation)?.clone();
        let ordered = in_order(order, columns, rows);
        let mut unsorted = KeyRows::default();
        projection.keys().encode_rows(&ordered, &mut unsorted)?;
        let mut order: Vec<u32> = (0..unsorted.len() as u32).collect();
        let key = |row: &u32| unsorted.get(*row as usize);
        order.sort_by(|one, other| key(one).cmp(key(other)));
        order.dedup_by(|one, other| key(one) == key(other));
        let mut keys = KeyRows::default();
        for row in &order {
            keys.push(key(row));
        }
        Ok(Self {
            is_whole: projection.layout().key_columns == columns.len(),
            projection,
            keys,
            rows: order,
        })
    }

    fn missing(&self) -> Result<Option<usize>> {
        let all = self.all_missing()?;
        Ok((!all.is_empty()).then(|| all.value(0) as usize))
    }

    /// The rows whose keys are not there.
    fn all_missing(&self) -> Result<UInt32Array> {
        let mut missing = Vec::new();
        for (part, rows) in self.rows.chunks(KEYS_AT_ONCE).enumerate() {
            require_waited_for()?;
            let first = part * KEYS_AT_ONCE;
            let keys = (first..first + rows.len()).map(|number| self.keys.get(number));
            if self.is_whole {
                let mut wanted = KeyRows::default();
                keys.for_each(|key| wanted.push(key));
                let found = self.projection.locate(&wanted)?;
                let pairs = found.iter().zip(rows);
                missing.extend(pairs.filter(|(it, _)| it.is_none()).map(|(_, row)| *row));
            } else {
                for (key, row) in keys.zip(rows) {
                    if self.projection.locate_prefix(key)?.is_empty() {
                        missing.push(*row);
                    }
                }
            }
        }
        Ok(UInt32Array::from(missing))
    }
}

/// The first of some keys that a row of a table refers to.
fn referred(other: &TableState, key: &ForeignKey, gone: &[ArrayRef]) -> Result<Option<usize>> {
    let begins_with = |projection: &&Projection| {
        let first = projection.layout().key().get(..key.columns.len());
        first.is_some_and(|first| first.iter().all(|it| key.columns.contains(&it.id)))
    };
    let Some(projection) = other.projections().find(begins_with) else {
        return read_for(other, key, gone);
    };
    let first = projection.layout().key().iter().take(key.columns.len());
    let order: Vec<ColumnId> = first.map(|column| column.id).collect();
    let ordered = in_order(&order, &key.columns, gone);
    let mut prefixes = KeyRows::default();
    projection.keys().encode_rows(&ordered, &mut prefixes)?;
    for row in 0..prefixes.len() {
        if row % KEYS_AT_ONCE == 0 {
            require_waited_for()?;
        }
        if !projection.locate_prefix(prefixes.get(row))?.is_empty() {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// The same by reading all rows.
fn read_for(other: &TableState, key: &ForeignKey, gone: &[ArrayRef]) -> Result<Option<usize>> {
    let primary = other.primary();
    let columns = key.columns.iter().filter_map(|id| {
        let column = other.definition().column(*id)?;
        Some(ProjectionColumn {
            id: *id,
            column_type: column.column_type,
            is_nullable: true,
        })
    });
    let columns: Vec<ProjectionColumn> = columns.collect();
    let encoder = KeyEncoder::new(&columns);
    let mut wanted = KeyRows::default();
    encoder.encode_rows(gone, &mut wanted)?;
    let numbers = (0..wanted.len()).map(|row| (wanted.get(row), row));
    let numbers: HashMap<&[u8], usize> = numbers.collect();
    let places = columns
        .iter()
        .filter_map(|it| primary.layout().position(it.id));
    let places: Vec<usize> = places.collect();
    let ascending: Vec<usize> = {
        let mut ascending = places.clone();
        ascending.sort_unstable();
        ascending
    };
    let positions = primary.positions();
    let mut at_once = RowsAtOnce::default();
    let mut start = positions.start;
    while start < positions.end {
        require_waited_for()?;
        let end = positions.end.min(start + at_once.rows() as u64);
        let read = primary.read(start..end, &ascending)?;
        at_once.have_come(&read);
        let ordered = places
            .iter()
            .map(|place| Arc::clone(&read[ascending.partition_point(|other| other < place)]));
        let ordered: Vec<ArrayRef> = ordered.collect();
        let mut keys = KeyRows::default();
        encoder.encode_rows(&ordered, &mut keys)?;
        if let Some(row) = (0..keys.len()).find_map(|row| numbers.get(keys.get(row))) {
            return Ok(Some(*row));
        }
        start = end;
    }
    Ok(None)
}

fn projection_of(table: &TableState, relation: RelationId) -> Result<&Projection> {
    let mut projections = table.projections();
    let found = projections.find(|it| it.layout().relation == relation);
    found.ok_or_else(|| Error::new(SqlState::InternalError, "an index has no projection"))
}

/// Arrays in the order in which a key has their columns.
fn in_order(order: &[ColumnId], columns: &[ColumnId], arrays: &[ArrayRef]) -> Vec<ArrayRef> {
    let place = |id: &ColumnId| columns.iter().position(|column| column == id);
    let places = order.iter().filter_map(place);
    places.map(|place| Arc::clone(&arrays[place])).collect()
}

/// Some columns out of all of a definition.
fn columns_of(
    definition: &TableDefinition,
    rows: &[ArrayRef],
    columns: &[ColumnId],
) -> Result<Vec<ArrayRef>> {
    let place = |id: &ColumnId| definition.columns.iter().position(|it| it.id == *id);
    let arrays = columns.iter().map(|id| rows.get(place(id)?).cloned());
    let arrays: Option<Vec<ArrayRef>> = arrays.collect();
    arrays.ok_or_else(|| Error::new(SqlState::InternalError, "a column of a key is missing"))
}

/// The rows of which no column is NULL: others refer to nothing.
fn without_nulls(columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    if columns.iter().all(|column| column.null_count() == 0) {
        return Ok(columns.to_vec());
    }
    let rows = columns.first().map_or(0, |column| column.len());
    let full = (0..rows).filter(|row| columns.iter().all(|column| column.is_valid(*row)));
    let full: Vec<u32> = full.map(|row| row as u32).collect();
    taken(columns, &UInt32Array::from(full))
}

fn names(definition: &TableDefinition, columns: &[ColumnId]) -> String {
    let columns = columns.iter().filter_map(|id| definition.column(*id));
    let names: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
    names.join(", ")
}

fn values(columns: &[ArrayRef], row: usize) -> String {
    let values = columns
        .iter()
        .map(|column| array_value_to_string(column, row).unwrap_or_default());
    values.collect::<Vec<_>>().join(", ")
}
