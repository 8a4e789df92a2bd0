//! `INSERT ... ON CONFLICT`.
//!
//! ```text
//! rows to come -> each looked up by the keys that may conflict -> new ones | those that are there already
//!   DO NOTHING    the new ones are inserted
//!   DO UPDATE     a query over both kinds of row side by side, the one that is there and the one that was to come (EXCLUDED) -> new values
//! ```
//!
//! All rows are in memory at once: whether one comes twice is known when all are seen.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, UInt32Array};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, ConflictTarget, DoUpdate, Expr, Ident, OnConflict, OnConflictAction,
};
use orrery_storage::table::{
    ColumnId, KeyRows, Projection, RelationId, RowPlace, TableDefinition, TableState,
};

use super::maker::Maker;
use super::returning::batch_of;
use super::select::{column, item, select, table};
use super::update::{Rewrite, assigned, behind};
use crate::catalog::lookup::unique_key;
use crate::changes::change::Change;
use crate::changes::references;
use crate::changes::rows::{all_rows, columns_at, joined, state_of, taken};
use crate::parse::identifiers::{folded, quoted, simple};
use crate::{Error, Result, SqlState};

/// The column that pairs a row that is there with the one that was to come.
const PAIR_NAME: &str = "\u{1}pair";

/// What rows that come may have in common with others.
#[derive(Clone)]
struct Arbiter {
    relation: RelationId,
    columns: Vec<ColumnId>,
}

/// Rows to come, taken apart.
struct Split {
    rows: Vec<ArrayRef>,
    new: UInt32Array,
    /// Those whose key is there already, and where.
    conflicts: UInt32Array,
    places: Vec<RowPlace>,
}

/// Inserts rows of a query where their keys are free, and does what is wanted where they are not.
/// The rows that came or were changed, and how many.
pub(super) async fn insert(
    change: &mut Change,
    maker: &Maker,
    stream: SendableRecordBatchStream,
    on: &OnConflict,
    alias: &Ident,
    text: &str,
) -> Result<(Vec<ArrayRef>, u64)> {
    let arbiters = arbiters(&maker.definition, on)?;
    let memory = change.memory("rows of an INSERT ... ON CONFLICT");
    let batch = all_rows(stream, &memory).await?;
    let is_update = matches!(on.action, OnConflictAction::DoUpdate(_));
    let own = maker.clone();
    let split = change
        .apply(move |transaction| {
            let rows = own.rows(&batch)?;
            own.check(&rows)?;
            let table = state_of(transaction.tables(), own.table)?;
            split(&table, &arbiters, rows, is_update)
        })
        .await?;
    let mut updated = None;
    if let OnConflictAction::DoUpdate(update) = &on.action
        && !split.places.is_empty()
    {
        updated = Some(new_values(change, maker, &split, update, alias, text).await?);
    }
    let own = maker.clone();
    let rows = change
        .apply(move |transaction| {
            let mut changed = Vec::new();
            let rewritten = updated.map(|(rewrite, places, values)| {
                let rewritten = rewrite.write(transaction, places, &values)?;
                Ok::<_, Error>((rewrite, rewritten))
            });
            let rewritten = rewritten.transpose()?;
            let new = taken(&split.rows, &split.new)?;
            transaction.insert_rows(own.table, &new)?;
            // When all rows are there: they may refer to each other.
            let tables = Arc::clone(transaction.tables());
            if let Some((rewrite, rewritten)) = rewritten {
                rewrite.check(&tables, &rewritten)?;
                changed.push(rewritten.after);
            }
            references::require(&tables, &own.definition, &new)?;
            changed.push(new);
            changed.retain(|rows| !rows.is_empty());
            joined(&changed)
        })
        .await?;
    let count = rows.first().map_or(0, |column| column.len() as u64);
    Ok((rows, count))
}

/// The keys that a statement says, or all.
fn arbiters(definition: &TableDefinition, on: &OnConflict) -> Result<Vec<Arbiter>> {
    let unmatched = || {
        Error::new(
            SqlState::InvalidColumnReference,
            "there is no unique or exclusion constraint matching the ON CONFLICT specification",
        )
    };
    let arbiter = |(relation, columns): (RelationId, &[ColumnId])| Arbiter {
        relation,
        columns: columns.to_vec(),
    };
    let primary = definition.primary_key.iter().map(|key| {
        let columns = key.columns.as_slice();
        (key.name.as_str(), (definition.id, columns))
    });
    let indexes = definition.indexes.iter().filter(|index| index.is_unique);
    let indexes = indexes.map(|index| {
        let columns = index.columns.as_slice();
        (index.name.as_str(), (index.id, columns))
    });
    let mut all = primary.chain(indexes);
    match &on.conflict_target {
        Some(ConflictTarget::Columns(names)) => {
            let columns = names.iter().map(|name| {
                let name = folded(name)?;
                Ok(crate::catalog::lookup::column_named(definition, &name)?.id)
            });
            let columns: Vec<ColumnId> = columns.collect::<Result<_>>()?;
            let key = unique_key(definition, &columns).ok_or_else(unmatched)?;
            Ok(vec![arbiter(key)])
        }
        Some(ConflictTarget::OnConstraint(name)) => {
            let name = simple(name)?;
            let key = all.find(|(other, _)| *other == name).ok_or_else(|| {
                Error::new(
                    SqlState::UndefinedObject,
                    format!(
                        "constraint \"{name}\" for table \"{}\" does not exist",
                        definition.name
                    ),
                )
            })?;
            Ok(vec![arbiter(key.1)])
        }
        None if matches!(on.action, OnConflictAction::DoUpdate(_)) => Err(Error::new(
            SqlState::SyntaxError,
            "ON CONFLICT DO UPDATE requires inference specification or constraint name",
        )),
        None => Ok(all.map(|(_, key)| arbiter(key)).collect()),
    }
}

fn split(
    table: &TableState,
    arbiters: &[Arbiter],
    rows: Vec<ArrayRef>,
    is_update: bool,
) -> Result<Split> {
    let count = rows.first().map_or(0, |column| column.len());
    let keys = arbiters
        .iter()
        .map(|arbiter| Keys::new(table, arbiter, &rows));
    let mut keys: Vec<Keys<'_>> = keys.collect::<Result<_>>()?;
    let (mut new, mut conflicts, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..count {
        let mut is_conflict = false;
        for key in &keys {
            let Some(place) = key.conflict(row, is_update)? else {
                continue;
            };
            is_conflict = true;
            if let Some(place) = place {
                conflicts.push(row as u32);
                places.extend(key.place_in_primary(table, place)?);
            }
            break;
        }
        if !is_conflict {
            new.push(row as u32);
        }
        // A row that is passed over takes nobody's key.
        if !is_conflict || is_update {
            keys.iter_mut().for_each(|key| key.note(row));
        }
    }
    if !is_update {
        conflicts.clear();
        places.clear();
    }
    Ok(Split {
        rows,
        new: UInt32Array::from(new),
        conflicts: UInt32Array::from(conflicts),
        places,
    })
}

/// One arbiter's keys of the rows to come.
struct Keys<'a> {
    projection: &'a Projection,
    is_primary: bool,
    keys: KeyRows,
    /// Rows with a NULL in it conflict with none.
    has_null: Vec<bool>,
    /// Those of rows that come, or are changed.
    seen: HashSet<Vec<u8>>,
}

impl<'a> Keys<'a> {
    fn new(table: &'a TableState, arbiter: &Arbiter, rows: &[ArrayRef]) -> Result<Self> {
        let mut projections = table.projections();
        let projection = projections.find(|it| it.layout().relation == arbiter.relation);
        let projection = projection
            .ok_or_else(|| Error::new(SqlState::InternalError, "an index has no projection"))?;
        let columns = &table.definition().columns;
        let arrays = arbiter.columns.iter().filter_map(|id| {
            let place = columns.iter().position(|column| column.id == *id)?;
            rows.get(place).cloned()
        });
        let arrays: Vec<ArrayRef> = arrays.collect();
        let mut keys = KeyRows::default();
        projection.keys().encode_rows(&arrays, &mut keys)?;
        let count = arrays.first().map_or(0, |column| column.len());
        let has_null = |row: usize| arrays.iter().any(|column| column.is_null(row));
        Ok(Self {
            is_primary: arbiter.relation == table.definition().id,
            projection,
            has_null: (0..count).map(has_null).collect(),
            keys,
            seen: HashSet::new(),
        })
    }

    /// Whether the key of a row is there: in the table, at a place, or in a row before.
    fn conflict(&self, row: usize, is_update: bool) -> Result<Option<Option<RowPlace>>> {
        if self.has_null[row] {
            return Ok(None);
        }
        let key = self.keys.get(row);
        let is_first = !self.seen.contains(key);
        if !is_first && is_update {
            return Err(Error::new(
                SqlState::CardinalityViolation,
                "ON CONFLICT DO UPDATE command cannot affect row a second time",
            )
            .with_hint(
                "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
            ));
        }
        if !is_first {
            return Ok(Some(None));
        }
        let place = self.projection.locate_prefix(key)?.into_iter().next();
        Ok(place.map(Some))
    }

    /// Notes that a row comes, or is changed.
    fn note(&mut self, row: usize) {
        if !self.has_null[row] {
            self.seen.insert(self.keys.get(row).to_vec());
        }
    }

    /// Where the row at a place of this projection is in the primary one.
    fn place_in_primary(&self, table: &TableState, place: RowPlace) -> Result<Option<RowPlace>> {
        if self.is_primary {
            return Ok(Some(place));
        }
        let primary = table.primary();
        let of_key = primary.layout().key().iter();
        let wanted = of_key.filter_map(|column| self.projection.layout().position(column.id));
        let wanted: Vec<usize> = wanted.collect();
        let mut ascending = wanted.clone();
        ascending.sort_unstable();
        let read = self.projection.rows_at(&[place], &ascending)?;
        let ordered = wanted
            .iter()
            .map(|place| Arc::clone(&read[ascending.partition_point(|other| other < place)]));
        let ordered: Vec<ArrayRef> = ordered.collect();
        let mut keys = KeyRows::default();
        primary.keys().encode_rows(&ordered, &mut keys)?;
        Ok(primary.locate(&keys)?.into_iter().next().flatten())
    }
}

/// What `DO UPDATE` gives the rows that are there: their places, as far as its condition holds, and
/// the values.
async fn new_values(
    change: &Change,
    maker: &Maker,
    split: &Split,
    update: &DoUpdate,
    alias: &Ident,
    text: &str,
) -> Result<(Rewrite, Vec<RowPlace>, Vec<ArrayRef>)> {
    let definition = &maker.definition;
    let table_state = state_of(&*change.tables()?, maker.table)?;
    let planner = change.planner()?;
    let there = paired(definition, columns_at(&table_state, &split.places)?)?;
    let to_come = paired(definition, taken(&split.rows, &split.conflicts)?)?;
    let there = planner.add_rows("there", there.schema(), vec![there])?;
    let to_come = planner.add_rows("to come", to_come.schema(), vec![to_come])?;
    let excluded = quoted("excluded");
    let pair = column(alias, PAIR_NAME);
    let is_pair = Expr::BinaryOp {
        left: Box::new(pair.clone()),
        op: BinaryOperator::Eq,
        right: Box::new(column(&excluded, PAIR_NAME)),
    };
    let condition = match &update.selection {
        None => is_pair,
        Some(selection) => Expr::BinaryOp {
            left: Box::new(is_pair),
            op: BinaryOperator::And,
            right: Box::new(Expr::Nested(Box::new(selection.clone()))),
        },
    };
    let assigned = assigned(definition, &update.assignments)?;
    let values = assigned.iter().map(|(_, value)| value.clone());
    let items = std::iter::once(pair).chain(values).enumerate();
    let items = items.map(|(number, expr)| item(expr, number)).collect();
    let from = vec![table(there, alias.clone())?, table(to_come, excluded)?];
    let plan = planner
        .query(select(items, from, Some(condition))?, text)
        .await?;
    let memory = change.memory("rows of an INSERT ... ON CONFLICT");
    let batch = all_rows(planner.stream(&plan, text).await?, &memory).await?;
    let numbers = batch.columns().first().and_then(|column| {
        use datafusion::arrow::array::AsArray;
        column.as_primitive_opt::<Int64Type>().cloned()
    });
    let numbers = numbers.unwrap_or_else(|| Int64Array::from(Vec::<i64>::new()));
    let places = numbers.values().iter().filter_map(|number| {
        let place = usize::try_from(*number).ok()?;
        split.places.get(place).cloned()
    });
    let places: Vec<RowPlace> = places.collect();
    let columns = assigned.into_iter().map(|(column, _)| column).collect();
    let rewrite = Rewrite::new(change.state(), definition, columns)?;
    Ok((rewrite, places, behind(&batch, 1).to_vec()))
}

/// Rows with their numbers behind them.
fn paired(definition: &TableDefinition, rows: Vec<ArrayRef>) -> Result<RecordBatch> {
    let batch = batch_of(definition, rows)?;
    let numbers = Int64Array::from_iter_values(0..batch.num_rows() as i64);
    let mut columns = batch.columns().to_vec();
    columns.push(Arc::new(numbers));
    let mut fields: Vec<Field> = batch
        .schema()
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_nullable(true))
        .collect();
    fields.push(Field::new(PAIR_NAME, DataType::Int64, false));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
    batch.map_err(|error| Error::of_run(&error.into()))
}
