//! The catalog's storage: rows of a system table in the database.
//!
//! ```text
//! access(kind text, id text, value text), primary key (kind, id)
//! kind     user, group, key, rule: the id, and what it is as JSON
//!          decoys: one row, the secret of what names without a user show to clients of PostgreSQL
//!          next: one row, the next number
//! ```
//!
//! So it is in the same log, checkpoints and backups as the data, and a commit that changes a user
//! is one like others. A database without users has no such table. Old states are read with the
//! catalog of now: who was taken a right from has it no more, whatever they ask for.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::catalog::{Catalog, Change};
use crate::entries::{Entries, damaged};
use crate::error::{Error, Result};
use crate::names::Name;
use crate::password::{KeptPassword, new_password};
use crate::users::{User, UserId};
use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use orrery_storage::table::{
    ColumnDefinition, ColumnId, ColumnType, DefinitionChange, PrimaryKey, RelationId,
    SYSTEM_SCHEMA, TableDefinition, TableState, Tables,
};
use orrery_storage::{CommitOptions, PendingCommit, Transaction, Writer};

const TABLE: &str = "access";
const COLUMNS: [&str; 3] = ["kind", "id", "value"];
const KEY_COLUMNS: usize = 2;
/// The name of the administrator that is made where there are no users.
const FIRST_ADMINISTRATOR: &str = "administrator";
/// Rows that are read at once.
const ROWS_AT_ONCE: usize = 4096;

/// Reads the catalog from the tables of a database.
///
/// # Errors
/// When they cannot be read, or are not what this program writes: then nobody is let in.
pub fn read(tables: &Tables) -> Result<Catalog> {
    let Some(table) = tables.system_table(TABLE) else {
        return Ok(Catalog::default());
    };
    let mut entries = Entries::new();
    let places: Vec<usize> = (1..=COLUMNS.len() as u32)
        .filter_map(|id| table.primary().layout().position(ColumnId(id)))
        .collect();
    if places.len() != COLUMNS.len() {
        return Err(damaged("its columns are others"));
    }
    let mut pieces = table.primary().pieces(&places, ROWS_AT_ONCE);
    while let Some(columns) = pieces.next_piece().map_err(of_storage)? {
        let [kinds, ids, values] = columns.as_slice() else {
            return Err(damaged("its columns are others"));
        };
        let (kinds, ids) = (kinds.as_string_view(), ids.as_string_view());
        let values = values.as_string_view();
        for row in 0..kinds.len() {
            let key = (kinds.value(row).to_owned(), ids.value(row).to_owned());
            entries.insert(key, values.value(row).to_owned());
        }
    }
    Catalog::of_entries(&entries)
}

/// Writes what is different in another state of the catalog than a transaction has.
///
/// # Errors
/// When the transaction cannot take the rows; it is to be undone then.
pub fn write(transaction: &mut Transaction, after: &Catalog) -> Result<()> {
    let before = read(transaction.tables())?.entries()?;
    let after = after.entries()?;
    let gone = before
        .iter()
        .filter(|(key, value)| after.get(*key) != Some(*value));
    let come = after
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(*value));
    let (gone, come): (Vec<_>, Vec<_>) = (gone.collect(), come.collect());
    if gone.is_empty() && come.is_empty() {
        return Ok(());
    }
    let table = match transaction.tables().system_table(TABLE) {
        Some(table) => table.definition().id,
        None => create(transaction)?,
    };
    let state = transaction.tables().table(table).cloned();
    let state = state.ok_or_else(|| damaged("it is gone"))?;
    let keys = columns_of(
        gone.iter()
            .map(|(key, _)| [key.0.as_str(), key.1.as_str(), ""]),
    );
    delete(transaction, &state, &keys[..KEY_COLUMNS])?;
    let rows = come
        .iter()
        .map(|(key, value)| [key.0.as_str(), key.1.as_str(), value.as_str()]);
    let rows = transaction.insert_rows(table, &columns_of(rows));
    rows.map(drop).map_err(of_storage)
}

/// Changes the catalog of a database, in a transaction of its own. `who` is told by the log.
/// Returns what the change gives, and the number of the last commit.
///
/// # Errors
/// When the change fails, or it cannot be written; nothing is changed then.
pub fn change<T>(
    writer: &Writer,
    who: &str,
    change: impl FnOnce(&Catalog) -> Result<(Catalog, T)>,
) -> Result<(T, u64)> {
    let mut transaction = writer.begin().map_err(of_storage)?;
    let before = read(transaction.tables())?;
    let (after, given) = change(&before)?;
    write(&mut transaction, &after)?;
    let options = CommitOptions {
        who: who.to_owned(),
        ..CommitOptions::default()
    };
    let commit = transaction.commit(options).and_then(PendingCommit::wait);
    Ok((given, commit.map_err(of_storage)?))
}

/// Creates an administrator in a database without users, and returns name and password; the
/// password is stored nowhere. `None` where there are users.
///
/// # Errors
/// When it cannot be written.
pub fn first_administrator(writer: &Writer) -> Result<Option<(Name, String)>> {
    let (made, _commit) = change(writer, "orrery serve --auth", |catalog| {
        if !catalog.is_empty() {
            return Ok((catalog.clone(), None));
        }
        let (name, password) = (Name::new(FIRST_ADMINISTRATOR)?, new_password());
        let user = User {
            id: UserId(catalog.next_number()),
            name: name.clone(),
            password: Some(KeptPassword::new(&password)?),
            is_administrator: true,
            is_locked: false,
            identities: BTreeSet::new(),
            groups: BTreeSet::new(),
        };
        let catalog = catalog.after(Change::PutUser(user))?;
        Ok((catalog, Some((name, password))))
    })?;
    Ok(made)
}

fn create(transaction: &mut Transaction) -> Result<RelationId> {
    let id = RelationId(transaction.tables().next_relation());
    let column = |(number, name): (u32, &&str)| ColumnDefinition {
        id: ColumnId(number),
        name: (*name).to_owned(),
        column_type: ColumnType::Text {
            length_max: None,
            is_padded: false,
        },
        is_nullable: false,
        default: None,
        initial: None,
    };
    let definition = TableDefinition {
        id,
        schema: SYSTEM_SCHEMA.to_owned(),
        name: TABLE.to_owned(),
        columns: (1..).zip(&COLUMNS).map(column).collect(),
        next_column: COLUMNS.len() as u32 + 1,
        primary_key: Some(PrimaryKey {
            name: format!("{TABLE}_pkey"),
            columns: (1..=KEY_COLUMNS as u32).map(ColumnId).collect(),
        }),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
    };
    let change = DefinitionChange::CreateTable(definition);
    transaction.define(change).map_err(of_storage)?;
    Ok(id)
}

fn delete(transaction: &mut Transaction, table: &TableState, keys: &[ArrayRef]) -> Result<()> {
    let keys = table.primary().keys_of(keys).map_err(of_storage)?;
    let places = table.primary().locate(&keys).map_err(of_storage)?;
    let places = places.into_iter().flatten().collect();
    let deleted = transaction.delete_rows(table.definition().id, places);
    deleted.map(drop).map_err(of_storage)
}

fn columns_of<'a>(rows: impl Iterator<Item = [&'a str; 3]>) -> Vec<ArrayRef> {
    let rows: Vec<[&str; 3]> = rows.collect();
    let column = |place: usize| -> ArrayRef {
        Arc::new(StringViewArray::from_iter_values(
            rows.iter().map(|row| row[place]),
        ))
    };
    (0..COLUMNS.len()).map(column).collect()
}

fn of_storage(error: orrery_storage::Error) -> Error {
    Error::Kept {
        what: error.to_string(),
    }
}
