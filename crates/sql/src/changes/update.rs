//! `UPDATE`.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Update, UpdateTableFromKind,
};
use orrery_storage::Transaction;
use orrery_storage::table::{ColumnId, RowPlace, TableDefinition, Tables};

use super::maker::{default_of, is_default};
use super::returning;
use super::select::{Target, item, select};
use crate::answers::outcome::Outcome;
use crate::answers::tag::Tag;
use crate::catalog::lookup::{column_named, table_named};
use crate::catalog::scope::RowsChange;
use crate::changes::change::Change;
use crate::changes::references;
use crate::changes::rows::{all_rows, columns_at, found, state_of, taken};
use crate::parse::identifiers::simple;
use crate::plan::evaluate::Conditions;
use crate::values::data_types::assign;
use crate::{Error, Result, SqlState};

/// Does it.
pub(super) async fn run(change: &mut Change, statement: &Update, text: &str) -> Result<Outcome> {
    if statement.or.is_some()
        || statement.output.is_some()
        || statement.limit.is_some()
        || !statement.order_by.is_empty()
    {
        return Err(Error::unsupported("an option of UPDATE"));
    }
    let name = match &statement.table.relation {
        datafusion::sql::sqlparser::ast::TableFactor::Table { name, .. } => name,
        _ => return Err(Error::unsupported("UPDATE of what is not a table")),
    };
    let state = table_named(&*change.seen()?, name)?.clone();
    let definition = Arc::clone(state.definition());
    change.require_rows(&definition, RowsChange::Both)?;
    let planner = change.planner()?;
    let target = Target::new(&planner, &state, &statement.table)?;
    let assigned = assigned(&definition, &statement.assignments)?;
    let mut from = vec![target.from.clone()];
    match &statement.from {
        Some(UpdateTableFromKind::AfterSet(others) | UpdateTableFromKind::BeforeSet(others)) => {
            from.extend(others.iter().cloned());
        }
        None => {}
    }
    let values = assigned.iter().map(|(_, value)| value.clone());
    let items = target.key.iter().cloned().chain(values);
    let items = items.enumerate().map(|(number, expr)| item(expr, number));
    let query = select(items.collect(), from, statement.selection.clone())?;
    let plan = planner.query(query, text).await?;
    let memory = change.memory("rows of an UPDATE");
    let batch = all_rows(planner.stream(&plan, text).await?, &memory).await?;

    let columns: Vec<ColumnId> = assigned.into_iter().map(|(column, _)| column).collect();
    let update = Rewrite::new(change.state(), &definition, columns)?;
    let keys = target.key.len();
    let rows = change
        .apply(move |transaction| {
            let (keys, values) = batch.columns().split_at(keys);
            let table = state_of(transaction.tables(), update.definition.id)?;
            let found = found(&table, keys)?;
            let values = taken(values, &found.order)?;
            update.apply(transaction, found.places, &values)
        })
        .await?;
    let count = rows.first().map_or(0, |column| column.len() as u64);
    returning::outcome(
        change,
        statement.returning.as_ref(),
        &definition,
        target.alias,
        rows,
        Tag::Update(count),
        text,
    )
    .await
}

/// The columns that get new values, and these.
pub(super) fn assigned(
    definition: &TableDefinition,
    assignments: &[Assignment],
) -> Result<Vec<(ColumnId, Expr)>> {
    let mut assigned: Vec<(ColumnId, Expr)> = Vec::new();
    for assignment in assignments {
        let pairs = match (&assignment.target, &assignment.value) {
            (AssignmentTarget::ColumnName(name), value) => vec![(name, value)],
            (AssignmentTarget::Tuple(names), Expr::Tuple(values))
                if names.len() == values.len() =>
            {
                names.iter().zip(values).collect()
            }
            (AssignmentTarget::Tuple(_), Expr::Tuple(_)) => {
                return Err(Error::new(
                    SqlState::SyntaxError,
                    "number of columns does not match number of values",
                ));
            }
            (AssignmentTarget::Tuple(_), _) => {
                return Err(Error::unsupported("SET (...) = a subquery"));
            }
        };
        for (name, value) in pairs {
            let column = column_named(definition, &simple(name)?)?;
            if assigned.iter().any(|(id, _)| *id == column.id) {
                return Err(Error::new(
                    SqlState::SyntaxError,
                    format!("multiple assignments to same column \"{}\"", column.name),
                ));
            }
            let value = match is_default(value) {
                true => default_of(column)?,
                false => value.clone(),
            };
            assigned.push((column.id, value));
        }
    }
    Ok(assigned)
}

/// Rows as they were, and as they are.
#[derive(Default)]
pub(super) struct Rewritten {
    before: Vec<ArrayRef>,
    pub(super) after: Vec<ArrayRef>,
}

/// Rows of a table that get other values in some columns.
pub(super) struct Rewrite {
    pub(super) definition: Arc<TableDefinition>,
    columns: Vec<ColumnId>,
    conditions: Conditions,
}

impl Rewrite {
    pub(super) fn new(
        state: &SessionState,
        definition: &Arc<TableDefinition>,
        columns: Vec<ColumnId>,
    ) -> Result<Self> {
        Ok(Self {
            definition: Arc::clone(definition),
            columns,
            conditions: Conditions::of(state, definition)?,
        })
    }

    /// Gives the rows at some places other values, in the order of the columns; the rows as they
    /// are then, in the order of the table's columns.
    pub(super) fn apply(
        &self,
        transaction: &mut Transaction,
        places: Vec<RowPlace>,
        values: &[ArrayRef],
    ) -> Result<Vec<ArrayRef>> {
        let rewritten = self.write(transaction, places, values)?;
        self.check(&Arc::clone(transaction.tables()), &rewritten)?;
        Ok(rewritten.after)
    }

    /// The same without a look at foreign keys, which is to follow.
    pub(super) fn write(
        &self,
        transaction: &mut Transaction,
        places: Vec<RowPlace>,
        values: &[ArrayRef],
    ) -> Result<Rewritten> {
        if places.is_empty() {
            return Ok(Rewritten::default());
        }
        let definition = &self.definition;
        let table = state_of(transaction.tables(), definition.id)?;
        let before = columns_at(&table, &places)?;
        let columns = definition.columns.iter().zip(&before);
        let after = columns.map(|(column, before)| {
            match self.columns.iter().position(|id| *id == column.id) {
                Some(place) => assign(&values[place], &column.name, column.column_type),
                None => Ok(Arc::clone(before)),
            }
        });
        let after: Vec<ArrayRef> = after.collect::<Result<_>>()?;
        self.conditions.check(&after)?;
        // First all go, then all come: keys may change places.
        transaction.delete_rows(definition.id, places)?;
        transaction.insert_rows(definition.id, &after)?;
        Ok(Rewritten { before, after })
    }

    /// Fails if a foreign key does not hold any more.
    pub(super) fn check(&self, tables: &Tables, rows: &Rewritten) -> Result<()> {
        if rows.after.is_empty() {
            return Ok(());
        }
        references::require(tables, &self.with_assigned_keys(), &rows.after)?;
        references::refuse_referred(tables, &self.definition, &rows.before)
    }

    /// The definition with the foreign keys alone that the new values may break.
    fn with_assigned_keys(&self) -> TableDefinition {
        let mut definition = (*self.definition).clone();
        let is_assigned = |id: &ColumnId| self.columns.contains(id);
        let keys = &mut definition.foreign_keys;
        keys.retain(|key| key.columns.iter().any(is_assigned));
        definition
    }
}

/// The columns of a batch behind the first.
pub(super) fn behind(batch: &RecordBatch, columns: usize) -> &[ArrayRef] {
    batch.columns().get(columns..).unwrap_or_default()
}
