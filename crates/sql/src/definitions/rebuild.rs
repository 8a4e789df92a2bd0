//! The rewrite of a table under a new number, for another primary key or column type.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::execution::SessionState;
use orrery_storage::Transaction;
use orrery_storage::table::{ColumnId, DefinitionChange, RelationId, TableDefinition, TableState};

use super::drop::referring;
use super::fill::not_unique;
use super::row_work::RowWork;
use crate::Result;
use crate::execute::threads::require_waited_for;
use crate::plan::evaluate::Conditions;
use crate::values::data_types::assign;

/// Rows that are inserted at a time: some milliseconds of work.
const ROWS_AT_ONCE: usize = 4 * 1024;
/// A row is read, and written.
const TOUCHES_OF_ROW: u64 = 2;

/// Puts a definition in the place of a table that has the same columns by their numbers, with all
/// rows.
pub(super) fn rebuild(
    transaction: &mut Transaction,
    state: &SessionState,
    table: &TableState,
    mut definition: TableDefinition,
    work: &RowWork,
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
    copy(transaction, state, table, &definition, work)
}

fn copy(
    transaction: &mut Transaction,
    state: &SessionState,
    table: &TableState,
    definition: &TableDefinition,
    work: &RowWork,
) -> Result<()> {
    // Another type may be another value, and another answer of a condition.
    let conditions = Conditions::of(state, definition)?;
    let ids: Vec<ColumnId> = definition.columns.iter().map(|column| column.id).collect();
    work.each_piece(table, &ids, TOUCHES_OF_ROW, |read| {
        for start in (0..read[0].len()).step_by(ROWS_AT_ONCE) {
            require_waited_for()?;
            let rows = ROWS_AT_ONCE.min(read[0].len() - start);
            let columns = definition.columns.iter().zip(read);
            let columns = columns.map(|(column, values)| {
                let values = values.slice(start, rows);
                assign(&values, &column.name, column.column_type)
            });
            let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
            conditions.check_stored(&columns)?;
            transaction
                .insert_rows(definition.id, &columns)
                .map_err(not_unique)?;
        }
        Ok(())
    })
}
