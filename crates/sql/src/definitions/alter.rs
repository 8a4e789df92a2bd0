//! `ALTER TABLE`.
//!
//! Columns come and go without a touch of the rows: one that is new has an initial value, one that is gone is passed over. A new index, a new condition
//! and a new foreign key are checked against all rows. Another primary key or type writes the table anew.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, ColumnOption, DropBehavior,
    Ident, RenameTableNameKind,
};
use orrery_storage::Transaction;
use orrery_storage::table::{
    ColumnId, DefinitionChange, RowCodec, TableDefinition, TableState, Tables,
};

use super::constraints::Draft;
use super::create::{not_unique, refuse_taken_names};
use super::drop::refuse_needed_key;
use super::rebuild::rebuild;
use super::views;
use crate::evaluate::{Conditions, constant};
use crate::identifiers::{folded, simple};
use crate::lookup::{
    column_named, free_relation_name, shown, still_needed, table_named, undefined,
};
use crate::references;
use crate::scope::{Sight, seen_by};
use crate::types::column_type;
use crate::{Error, Result, SqlState};

/// Rows that are checked at a time.
const ROWS_AT_ONCE: u64 = 64 * 1024;

/// Does all operations of a statement, in their order.
pub(super) fn table(
    transaction: &mut Transaction,
    sight: Option<&Arc<Sight>>,
    state: &SessionState,
    statement: &AlterTable,
) -> Result<()> {
    let seen = seen_by(sight, transaction.tables());
    let mut id = match table_named(&seen, &statement.name) {
        Ok(table) => table.definition().id,
        Err(error) if statement.if_exists && error.state == SqlState::UndefinedTable => {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    for operation in &statement.operations {
        let tables = Arc::clone(transaction.tables());
        let table = tables.table(id).ok_or_else(|| {
            Error::new(
                SqlState::InternalError,
                "a table is gone while it is altered",
            )
        })?;
        let (schema, name) = {
            let definition = table.definition();
            (definition.schema.clone(), definition.name.clone())
        };
        let seen = seen_by(sight, &tables);
        let mut alter = Alter {
            transaction,
            tables: &tables,
            seen: &seen,
            table,
            state,
        };
        let renamed = alter.run(operation)?;
        let name = renamed.unwrap_or(name);
        if let Some(table) = transaction.tables().table_named(&schema, &name) {
            id = table.definition().id;
        }
    }
    Ok(())
}

struct Alter<'a> {
    transaction: &'a mut Transaction,
    tables: &'a Tables,
    /// Those that whoever asks may read.
    seen: &'a Tables,
    table: &'a TableState,
    state: &'a SessionState,
}

impl Alter<'_> {
    /// Does one operation; the table's new name if it has one.
    fn run(&mut self, operation: &AlterTableOperation) -> Result<Option<String>> {
        use AlterTableOperation as Do;
        match operation {
            Do::AddColumn {
                if_not_exists,
                column_def,
                column_position: None,
                ..
            } => self.add_column(column_def, *if_not_exists)?,
            Do::DropColumn {
                column_names,
                if_exists,
                drop_behavior,
                ..
            } => {
                for name in column_names {
                    self.drop_column(name, *if_exists, is_cascade(drop_behavior.as_ref()))?;
                }
            }
            Do::RenameColumn {
                old_column_name,
                new_column_name,
            } => self.rename_column(old_column_name, new_column_name)?,
            Do::RenameTable { table_name } => return self.rename(table_name).map(Some),
            Do::AlterColumn { column_name, op } => self.alter_column(column_name, op)?,
            Do::AddConstraint {
                constraint,
                not_valid: false,
            } => {
                let mut draft = self.draft();
                draft.add_constraint(constraint)?;
                let definition = draft.definition;
                self.define_checked(definition)?;
            }
            Do::DropConstraint {
                if_exists,
                name,
                drop_behavior,
            } => self.drop_constraint(name, *if_exists, is_cascade(drop_behavior.as_ref()))?,
            Do::RenameConstraint { old_name, new_name } => {
                self.rename_constraint(old_name, new_name)?;
            }
            other => {
                let what = other.to_string();
                let what: Vec<&str> = what.split_whitespace().take(3).collect();
                return Err(Error::unsupported(format!(
                    "ALTER TABLE ... {}",
                    what.join(" ")
                )));
            }
        }
        Ok(None)
    }

    fn definition(&self) -> &TableDefinition {
        self.table.definition()
    }

    fn draft(&self) -> Draft<'_> {
        Draft {
            tables: self.seen,
            state: self.state,
            definition: self.definition().clone(),
            next_relation: self.tables.next_relation(),
        }
    }

    /// Takes a definition that asks no more of the rows than the old one.
    fn define(&mut self, definition: TableDefinition) -> Result<()> {
        refuse_taken_names(self.tables, &definition)?;
        Ok(self
            .transaction
            .define(DefinitionChange::AlterTable(definition))?)
    }

    /// Takes a definition that may ask more of them, and checks all rows.
    fn define_checked(&mut self, definition: TableDefinition) -> Result<()> {
        refuse_taken_names(self.tables, &definition)?;
        let before = Arc::clone(self.table.definition());
        let id = match before.primary_key.as_ref().map(|key| &key.columns)
            == definition.primary_key.as_ref().map(|key| &key.columns)
        {
            true => {
                let id = definition.id;
                let change = DefinitionChange::AlterTable(definition.clone());
                let defined = self.transaction.define(change);
                defined.map_err(|error| not_unique(error, true))?;
                id
            }
            false => {
                refuse_nulls(self.table, &definition)?;
                let (schema, name) = (definition.schema.clone(), definition.name.clone());
                rebuild(self.transaction, self.state, self.table, definition.clone())?;
                let table = self.transaction.tables().table_named(&schema, &name);
                table.map_or(before.id, |table| table.definition().id)
            }
        };
        let tables = Arc::clone(self.transaction.tables());
        let Some(table) = tables.table(id) else {
            return Ok(());
        };
        check_rows(self.state, &tables, table, &before)
    }

    fn add_column(&mut self, column: &ColumnDef, if_not_exists: bool) -> Result<()> {
        let name = folded(&column.name)?;
        if if_not_exists && self.definition().column_named(&name).is_some() {
            return Ok(());
        }
        let mut draft = self.draft();
        let id = draft.add_column(column)?;
        let default = column
            .options
            .iter()
            .find_map(|option| match &option.option {
                ColumnOption::Default(default) => Some(default),
                _ => None,
            });
        if let Some(default) = default {
            let value = constant(self.state, default, draft.column_mut(id)?)?;
            if value.is_valid(0) {
                let column = draft.column_mut(id)?;
                column.initial = Some(initial(column.column_type, &value)?);
            }
        }
        let definition = draft.definition;
        let column = definition.column(id);
        let lacks_value =
            column.is_some_and(|column| !column.is_nullable && column.initial.is_none());
        if lacks_value && self.table.rows() > 0 {
            return Err(contains_nulls(&name, &definition));
        }
        if definition.primary_key == self.definition().primary_key {
            return self.define_checked(definition);
        }
        // The rows are written anew with the column, so it has to be there before.
        let mut without_key = definition.clone();
        without_key.primary_key = None;
        self.define(without_key)?;
        let tables = Arc::clone(self.transaction.tables());
        let table = tables.table(definition.id).ok_or_else(|| {
            Error::new(
                SqlState::InternalError,
                "a table is gone while it is altered",
            )
        })?;
        let mut with_column = Alter {
            transaction: self.transaction,
            tables: &tables,
            seen: self.seen,
            table,
            state: self.state,
        };
        with_column.define_checked(definition)
    }

    fn drop_column(&mut self, name: &Ident, if_exists: bool, cascade: bool) -> Result<()> {
        let name = folded(name)?;
        // Of several in one statement, each sees what those before it did.
        let tables = Arc::clone(self.transaction.tables());
        let current = tables.table(self.definition().id);
        let mut definition = current.map_or_else(
            || self.definition().clone(),
            |table| (**table.definition()).clone(),
        );
        let id = match column_named(&definition, &name) {
            Ok(column) => column.id,
            Err(_) if if_exists => return Ok(()),
            Err(error) => return Err(error),
        };
        let what = format!("column {name} of table {}", definition.name);
        if definition.columns.len() == 1 {
            return Err(Error::unsupported("a table without columns"));
        }
        self.refuse_views(&what)?;
        if let Some(key) = &definition.primary_key
            && key.columns.contains(&id)
        {
            return Err(Error::unsupported("dropping a column of the primary key")
                .with_hint(format!("Drop the constraint {} first.", key.name)));
        }
        for index in definition.indexes.clone() {
            if index.columns.contains(&id) || index.included.contains(&id) {
                definition.indexes.retain(|other| other.id != index.id);
                if index.is_unique {
                    refuse_needed_key(&tables, &definition, &index.columns, &what)?;
                }
            }
        }
        definition
            .foreign_keys
            .retain(|key| !key.columns.contains(&id));
        let used = |condition: &str| mentions(condition, &name);
        if !cascade
            && let Some(check) = definition
                .checks
                .iter()
                .find(|check| used(&check.condition))
        {
            return Err(still_needed(&what)
                .with_detail(format!("constraint {} depends on {what}", check.name)));
        }
        definition.checks.retain(|check| !used(&check.condition));
        definition.columns.retain(|column| column.id != id);
        self.define(definition)
    }

    /// Views are texts that name columns, so a column that goes or is renamed may be one of theirs.
    fn refuse_views(&self, what: &str) -> Result<()> {
        let definition = self.definition();
        let readers = views::readers(self.tables, &definition.schema, &definition.name)?;
        match readers.first() {
            Some(view) => Err(Error::new(
                SqlState::DependentObjectsStillExist,
                format!("cannot change {what} because other objects depend on its table"),
            )
            .with_detail(format!(
                "view {} reads table {}",
                shown(&view.schema, &view.name),
                definition.name
            ))),
            None => Ok(()),
        }
    }

    fn rename_column(&mut self, old: &Ident, new: &Ident) -> Result<()> {
        let (old, new) = (folded(old)?, folded(new)?);
        let mut definition = self.definition().clone();
        let id = column_named(&definition, &old)?.id;
        if definition.column_named(&new).is_some() {
            return Err(Error::new(
                SqlState::DuplicateColumn,
                format!(
                    "column \"{new}\" of relation \"{}\" already exists",
                    definition.name
                ),
            ));
        }
        self.refuse_views(&format!("column {old} of table {}", definition.name))?;
        if let Some(check) = definition
            .checks
            .iter()
            .find(|check| mentions(&check.condition, &old))
        {
            return Err(Error::unsupported(format!(
                "renaming column \"{old}\", which the constraint \"{}\" reads,",
                check.name
            )));
        }
        for column in &mut definition.columns {
            if column.id == id {
                column.name.clone_from(&new);
            }
        }
        self.define(definition)
    }

    fn rename(&mut self, name: &RenameTableNameKind) -> Result<String> {
        let (RenameTableNameKind::To(name) | RenameTableNameKind::As(name)) = name;
        let name = simple(name)?;
        let mut definition = self.definition().clone();
        free_relation_name(self.tables, &definition.schema, &name)?;
        self.refuse_views(&format!("table {}", definition.name))?;
        definition.name.clone_from(&name);
        self.define(definition)?;
        Ok(name)
    }

    fn alter_column(&mut self, name: &Ident, operation: &AlterColumnOperation) -> Result<()> {
        let name = folded(name)?;
        let column = column_named(self.definition(), &name)?.clone();
        let mut draft = self.draft();
        match operation {
            AlterColumnOperation::SetDefault { value } => {
                draft.set_default(column.id, Some(value))?;
            }
            AlterColumnOperation::DropDefault => draft.set_default(column.id, None)?,
            AlterColumnOperation::DropNotNull => {
                let key = &self.definition().primary_key;
                if key
                    .as_ref()
                    .is_some_and(|key| key.columns.contains(&column.id))
                {
                    return Err(Error::new(
                        SqlState::InvalidTableDefinition,
                        format!("column \"{name}\" is in a primary key"),
                    ));
                }
                draft.column_mut(column.id)?.is_nullable = true;
            }
            AlterColumnOperation::SetNotNull => {
                draft.column_mut(column.id)?.is_nullable = false;
                let definition = draft.definition;
                refuse_nulls(self.table, &definition)?;
                return self.define(definition);
            }
            AlterColumnOperation::SetDataType {
                data_type,
                using: None,
                ..
            } => {
                let to = column_type(data_type)?;
                let is_key =
                    |key: &orrery_storage::table::ForeignKey| key.columns.contains(&column.id);
                let referring = super::drop::referring(self.tables, self.definition().id);
                if self.definition().foreign_keys.iter().any(is_key) || !referring.is_empty() {
                    return Err(Error::unsupported(
                        "another type of a column that is in a foreign key, or in a table that one refers to,",
                    ));
                }
                self.refuse_views(&format!("type of column {name}"))?;
                let changed = draft.column_mut(column.id)?;
                changed.column_type = to;
                changed.initial = None;
                let definition = draft.definition;
                // So that defaults and conditions are known to go with the type.
                Conditions::of(self.state, &definition)?;
                for column in &definition.columns {
                    if let Some(default) = crate::evaluate::Default::of(self.state, column)? {
                        default.values(1)?;
                    }
                }
                return rebuild(self.transaction, self.state, self.table, definition);
            }
            other => {
                return Err(Error::unsupported(format!("ALTER COLUMN ... {other}")));
            }
        }
        let definition = draft.definition;
        self.define(definition)
    }

    fn drop_constraint(&mut self, name: &Ident, if_exists: bool, cascade: bool) -> Result<()> {
        let name = folded(name)?;
        let mut definition = self.definition().clone();
        let what = format!("constraint {name} on table {}", definition.name);
        let before = definition.clone();
        definition.checks.retain(|check| check.name != name);
        definition.foreign_keys.retain(|key| key.name != name);
        let unique = before
            .indexes
            .iter()
            .find(|index| index.is_constraint && index.name == name);
        let key = before.primary_key.as_ref().filter(|key| key.name == name);
        if let Some(unique) = unique {
            definition.indexes.retain(|index| index.id != unique.id);
        }
        if key.is_some() {
            definition.primary_key = None;
        }
        let gone = unique.map(|it| &it.columns).or(key.map(|it| &it.columns));
        if let Some(columns) = gone {
            if cascade && crate::lookup::unique_key(&definition, columns).is_none() {
                self.drop_foreign_keys_to(columns)?;
                let own = definition.id;
                definition
                    .foreign_keys
                    .retain(|key| key.table != own || !are_same(&key.referenced, columns));
            } else {
                refuse_needed_key(self.tables, &definition, columns, &what)?;
            }
        }
        if key.is_some() {
            let tables = Arc::clone(self.transaction.tables());
            let table = tables.table(definition.id).unwrap_or(self.table);
            return rebuild(self.transaction, self.state, table, definition);
        }
        if definition == before {
            return match if_exists {
                true => Ok(()),
                false => Err(Error::new(
                    SqlState::UndefinedObject,
                    format!(
                        "constraint \"{name}\" of relation \"{}\" does not exist",
                        definition.name
                    ),
                )),
            };
        }
        self.define(definition)
    }

    fn drop_foreign_keys_to(&mut self, columns: &[ColumnId]) -> Result<()> {
        let id = self.definition().id;
        for other in super::drop::referring(self.tables, id) {
            let mut other = (*other).clone();
            other
                .foreign_keys
                .retain(|key| key.table != id || !are_same(&key.referenced, columns));
            self.transaction
                .define(DefinitionChange::AlterTable(other))?;
        }
        Ok(())
    }

    fn rename_constraint(&mut self, old: &Ident, new: &Ident) -> Result<()> {
        let (old, new) = (folded(old)?, folded(new)?);
        let mut definition = self.definition().clone();
        let mut names: Vec<&mut String> = Vec::new();
        names.extend(definition.primary_key.as_mut().map(|key| &mut key.name));
        let indexes = definition.indexes.iter_mut();
        names.extend(indexes.filter(|it| it.is_constraint).map(|it| &mut it.name));
        names.extend(definition.foreign_keys.iter_mut().map(|it| &mut it.name));
        names.extend(definition.checks.iter_mut().map(|it| &mut it.name));
        if names.iter().any(|name| **name == new) {
            return Err(Error::new(
                SqlState::DuplicateObject,
                format!("constraint \"{new}\" already exists"),
            ));
        }
        match names.into_iter().find(|name| **name == old) {
            Some(name) => *name = new,
            None => {
                return Err(undefined("constraint", &old));
            }
        }
        self.define(definition)
    }
}

/// Whether two keys have the same columns, in any order.
fn are_same(one: &[ColumnId], other: &[ColumnId]) -> bool {
    one.len() == other.len() && one.iter().all(|column| other.contains(column))
}

fn is_cascade(behavior: Option<&DropBehavior>) -> bool {
    matches!(behavior, Some(DropBehavior::Cascade))
}

/// Whether a condition may read a column: whether its text has the name as a word.
fn mentions(condition: &str, column: &str) -> bool {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let words = condition.split(|c: char| !is_of_word(c));
    words
        .into_iter()
        .any(|word| word.eq_ignore_ascii_case(column))
        || (!column.chars().all(is_of_word) && condition.contains(column))
}

/// A value as a definition keeps it.
fn initial(column_type: orrery_storage::table::ColumnType, value: &ArrayRef) -> Result<String> {
    let rows = RowCodec::new([column_type]).encode(std::slice::from_ref(value));
    let rows = rows.map_err(|error| Error::new(SqlState::InternalError, error.to_string()))?;
    Ok(rows
        .get(0)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn contains_nulls(column: &str, table: &TableDefinition) -> Error {
    let words = format!(
        "column \"{column}\" of relation \"{}\" contains null values",
        table.name
    );
    Error::new(SqlState::NotNullViolation, words)
        .of_table(&table.schema, &table.name)
        .of_column(column)
}

/// Calls `check` with the rows of a table, in pieces, as arrays in the order of its columns.
fn each_piece(table: &TableState, mut check: impl FnMut(&[ArrayRef]) -> Result<()>) -> Result<()> {
    let primary = table.primary();
    let columns = table.definition().columns.iter();
    let places: Vec<usize> = columns
        .filter_map(|column| primary.layout().position(column.id))
        .collect();
    let mut wanted = places.clone();
    wanted.sort_unstable();
    let positions = primary.positions();
    let mut start = positions.start;
    while start < positions.end {
        let end = positions.end.min(start + ROWS_AT_ONCE);
        let read = primary.read(start..end, &wanted)?;
        let columns = places
            .iter()
            .map(|place| Arc::clone(&read[wanted.partition_point(|other| other < place)]));
        check(&columns.collect::<Vec<_>>())?;
        start = end;
    }
    Ok(())
}

/// Fails if a column has a NULL that may have none in a definition to come.
fn refuse_nulls(table: &TableState, definition: &TableDefinition) -> Result<()> {
    let columns = &table.definition().columns;
    each_piece(table, |rows| {
        for (column, values) in columns.iter().zip(rows) {
            let after = definition.column(column.id);
            if values.null_count() > 0 && after.is_some_and(|after| !after.is_nullable) {
                return Err(contains_nulls(&column.name, definition));
            }
        }
        Ok(())
    })
}

/// Checks all rows against the conditions and foreign keys that were not there before.
fn check_rows(
    state: &SessionState,
    tables: &Tables,
    table: &TableState,
    before: &TableDefinition,
) -> Result<()> {
    let mut new = (**table.definition()).clone();
    new.checks.retain(|check| !before.checks.contains(check));
    new.foreign_keys
        .retain(|key| before.foreign_keys.iter().all(|old| old.name != key.name));
    if new.checks.is_empty() && new.foreign_keys.is_empty() {
        return Ok(());
    }
    let conditions = Conditions::of(state, &new)?;
    each_piece(table, |rows| {
        conditions.check_stored(rows)?;
        references::require(tables, &new, rows)
    })
}
