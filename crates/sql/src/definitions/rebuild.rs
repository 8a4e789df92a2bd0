//! A table written anew under another number, for what its files cannot take: another primary key, another type of a column.

use datafusion::arrow::array::ArrayRef;
use datafusion::execution::SessionState;
use orrery_storage::Transaction;
use orrery_storage::table::{DefinitionChange, RelationId, TableDefinition, TableState};

use super::create::not_unique;
use super::drop::referring;
use crate::evaluate::Conditions;
use crate::types::assign;
use crate::{Error, Result, SqlState};

/// Rows that are read and inserted at a time.
const ROWS_AT_ONCE: usize = 32 * 1024;

/// Puts a definition in the place of a table that has the same columns by their numbers, with all rows.
pub(super) fn rebuild(
    transaction: &mut Transaction,
    state: &SessionState,
    table: &TableState,
    mut definition: TableDefinition,
) -> Result<()> {
    let old = table.definition().id;
    let mut next = transaction.tables().next_relation();
    let mut number = || {
        next += 1;
        RelationId(next - 1)
    };
    definition.id = number();
    for index in &mut definition.indexes {
        index.id = number();
    }
    for key in &mut definition.foreign_keys {
        if key.table == old {
            key.table = definition.id;
        }
    }
    let others = referring(transaction.tables(), old);
    transaction.define(DefinitionChange::DropTable(old))?;
    transaction.define(DefinitionChange::CreateTable(definition.clone()))?;
    for other in others {
        let mut other = (*other).clone();
        for key in &mut other.foreign_keys {
            if key.table == old {
                key.table = definition.id;
            }
        }
        transaction.define(DefinitionChange::AlterTable(other))?;
    }
    copy(transaction, state, table, &definition)
}

fn copy(
    transaction: &mut Transaction,
    state: &SessionState,
    table: &TableState,
    definition: &TableDefinition,
) -> Result<()> {
    let primary = table.primary();
    let places = definition
        .columns
        .iter()
        .map(|column| primary.layout().position(column.id));
    let places: Option<Vec<usize>> = places.collect();
    let places = places.ok_or_else(|| {
        Error::new(
            SqlState::InternalError,
            "a column of a table that is written anew is missing",
        )
    })?;
    // Another type may be another value, and another answer of a condition.
    let conditions = Conditions::of(state, definition)?;
    let mut wanted = places.clone();
    wanted.sort_unstable();
    let mut pieces = primary.pieces(&wanted, ROWS_AT_ONCE);
    while let Some(read) = pieces.next_piece()? {
        let columns = definition.columns.iter().zip(&places);
        let columns = columns.map(|(column, place)| {
            let values = &read[wanted.partition_point(|other| other < place)];
            assign(values, &column.name, column.column_type)
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        conditions.check_stored(&columns)?;
        transaction
            .insert_rows(definition.id, &columns)
            .map_err(|error| not_unique(error, true))?;
    }
    Ok(())
}
