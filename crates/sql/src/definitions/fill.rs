//! The filling of new indexes with a table's rows.
//!
//! ```text
//! few rows, of few bytes   Transaction::define fills the indexes in memory
//! others                   the table is emptied, defined, and its files are written anew with all indexes (crate::changes::load)
//! ```
//!
//! In memory an index takes some ten times its file, and whoever reads the log fills it there
//! again.

use orrery_storage::Transaction;
use orrery_storage::table::{DefinitionChange, ProjectionLayout, TableDefinition, TableState};

use super::row_work::RowWork;
use crate::changes::change::Change;
use crate::changes::load;
use crate::execute::threads::require_waited_for;
use crate::{Error, Result, SqlState};

/// An index of a table with more rows is written to a file.
const ROWS_IN_MEMORY_MAX: u64 = 10_000;
/// One that would take more bytes in memory, too.
const BYTES_IN_MEMORY_MAX: u64 = 16 << 20;
/// A row is read, and written to an index.
const TOUCHES_OF_ROW: u64 = 2;

/// Gives a table another definition, with the same columns in its primary key. Where its indexes
/// are to be written to files, it is empty then, and returned as it was, for [`refill`].
pub(super) fn define(
    transaction: &mut Transaction,
    table: &TableState,
    definition: TableDefinition,
    work: &RowWork,
) -> Result<Option<TableState>> {
    let is_there = |layout: &ProjectionLayout| {
        let mut there = table.projections().map(|projection| projection.layout());
        there.any(|other| other == layout)
    };
    let mut layouts = definition.layouts();
    let is_laid_out_anew = layouts.next().is_some_and(|layout| !is_there(&layout));
    let filled = layouts.filter(|layout| !is_there(layout)).count() as u64;
    let is_small = filled == 0 || table.rows() <= ROWS_IN_MEMORY_MAX;
    let id = definition.id;
    let change = DefinitionChange::AlterTable(definition);
    if is_small {
        let laid_out = match is_laid_out_anew {
            true => table.primary().changes().inserted(),
            false => 0,
        };
        work.pay(laid_out + TOUCHES_OF_ROW * filled * table.rows())?;
        let mut is_too_large = false;
        let defined = transaction.define_while(change.clone(), |bytes| {
            is_too_large = filled > 0 && bytes > BYTES_IN_MEMORY_MAX;
            !is_too_large && require_waited_for().is_ok()
        });
        if !is_too_large {
            defined.map_err(not_unique)?;
            return Ok(None);
        }
    }
    transaction.truncate(id)?;
    transaction.define(change)?;
    Ok(Some(table.clone()))
}

/// Puts the rows into a table again that was emptied.
pub(super) async fn refill(change: &mut Change, emptied: Option<TableState>) -> Result<()> {
    let Some(before) = emptied else {
        return Ok(());
    };
    let task = change.planner()?.task();
    let filled = load::refill(change.transaction_mut()?, &before, &task).await;
    filled.map_err(|error| match error.state {
        SqlState::UniqueViolation => {
            let detail = error.detail.unwrap_or_default();
            let index = error.message.split_once("constraint ");
            let index = index.map_or("", |(_, index)| index);
            Error {
                objects: error.objects,
                ..Error::new(
                    SqlState::UniqueViolation,
                    format!("could not create unique index {index}"),
                )
                .with_detail(detail.replace(" already exists.", " is duplicated."))
            }
        }
        _ => error,
    })
}

/// What is said where rows that are there already break what is to make them unique.
pub(super) fn not_unique(error: orrery_storage::Error) -> Error {
    match error {
        orrery_storage::Error::Duplicate {
            table,
            constraint,
            columns,
            key,
        } => Error::new(
            SqlState::UniqueViolation,
            format!("could not create unique index \"{constraint}\""),
        )
        .with_detail(format!("Key ({columns})=({key}) is duplicated."))
        .of_table(&table.schema, &table.name)
        .of_constraint(&constraint),
        error => error.into(),
    }
}
