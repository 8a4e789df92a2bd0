//! `DELETE`.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{Delete, FromTable, TableFactor};

use super::returning;
use super::select::{Target, item, select};
use crate::answers::outcome::Outcome;
use crate::answers::tag::Tag;
use crate::catalog::lookup::table_named;
use crate::catalog::scope::RowsChange;
use crate::changes::change::Change;
use crate::changes::references;
use crate::changes::rows::{all_rows, columns_at, found, state_of};
use crate::{Error, Result};

/// Does it.
pub(super) async fn run(change: &mut Change, statement: &Delete, text: &str) -> Result<Outcome> {
    if !statement.tables.is_empty()
        || statement.output.is_some()
        || statement.limit.is_some()
        || !statement.order_by.is_empty()
    {
        return Err(Error::unsupported("an option of DELETE"));
    }
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &statement.from;
    let [written] = from.as_slice() else {
        return Err(Error::unsupported("DELETE from several tables"));
    };
    let TableFactor::Table { name, .. } = &written.relation else {
        return Err(Error::unsupported("DELETE from what is not a table"));
    };
    let tables = change.tables()?;
    let state = table_named(&*change.seen()?, name)?.clone();
    let definition = Arc::clone(state.definition());
    change.require_rows(&definition, RowsChange::Go)?;
    let planner = change.planner()?;
    let target = Target::new(&planner, &state, written)?;
    let mut from = vec![target.from.clone()];
    from.extend(statement.using.iter().flatten().cloned());
    let items = target.key.iter().cloned().enumerate();
    let items = items.map(|(number, expr)| item(expr, number)).collect();
    let query = select(items, from, statement.selection.clone())?;
    let plan = planner.query(query, text).await?;
    let memory = change.memory("rows of a DELETE");
    let batch = all_rows(planner.stream(&plan, text).await?, &memory).await?;

    let of_rows = Arc::clone(&definition);
    let keeps = statement.returning.is_some();
    let is_referred = tables.tables().any(|table| {
        let keys = &table.definition().foreign_keys;
        keys.iter().any(|key| key.table == definition.id)
    });
    let (rows, count) = change
        .apply(move |transaction| {
            let table = state_of(transaction.tables(), of_rows.id)?;
            let found = found(&table, batch.columns())?;
            let gone = match keeps || is_referred {
                true => columns_at(&table, &found.places)?,
                false => Vec::new(),
            };
            let count = transaction.delete_rows(of_rows.id, found.places)?;
            if is_referred && count > 0 {
                references::refuse_referred(transaction.tables(), &of_rows, &gone)?;
            }
            Ok((gone, count))
        })
        .await?;
    returning::outcome(
        change,
        statement.returning.as_ref(),
        &definition,
        target.alias,
        rows,
        Tag::Delete(count),
        text,
    )
    .await
}
