//! `ALTER TABLE`.
//!
//! Columns come and go without a touch of the rows: one that is new has an initial value, one that
//! is gone is passed over. A new index, a new condition and a new foreign key are checked against
//! all rows. Another primary key or type writes the table anew.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, ColumnOption, DropBehavior,
    Ident, RenameTableNameKind,
};
use orrery_storage::Transaction;
use orrery_storage::table::{
    ColumnDefinition, ColumnId, DefinitionChange, RelationId, RowCodec, TableDefinition,
    TableState, Tables,
};

use super::constraints::Draft;
use super::create::refuse_taken_names;
use super::drop::refuse_needed_key;
use super::fill;
use super::rebuild::rebuild;
use super::row_work::RowWork;
use super::views;
use crate::catalog::lookup::{
    column_named, free_relation_name, shown, still_needed, table_named, undefined,
};
use crate::catalog::scope::{Sight, seen_by};
use crate::changes::change::Change;
use crate::changes::references;
use crate::execute::threads::require_waited_for;
use crate::parse::identifiers::{folded, simple};
use crate::plan::evaluate::{Conditions, constant};
use crate::values::data_types::column_type;
use crate::{Error, Result, SqlState};

/// Rows whose conditions are computed at a time: some milliseconds of work.
const ROWS_AT_ONCE: usize = 4 * 1024;

/// Does all operations of a statement, in their order.
pub(super) async fn table(change: &mut Change, statement: &AlterTable) -> Result<()> {
    let mut id = match table_named(&*change.seen()?, &statement.name) {
        Ok(table) => table.definition().id,
        Err(error) if statement.if_exists && error.state == SqlState::UndefinedTable => {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    for operation in &statement.operations {
        let (state, sight) = (change.state().clone(), change.sight().cloned());
        let (work, operation) = (RowWork::of(change), operation.clone());
        let altered = change
            .apply(move |transaction| {
                altered(transaction, sight.as_ref(), &state, id, &operation, &work)
            })
            .await?;
        id = altered.id;
        fill::refill(change, altered.emptied).await?;
        if let Some(before) = altered.unchecked_since {
            let (state, work) = (change.state().clone(), RowWork::of(change));
            change
                .apply(move |transaction| {
                    check_rows(&state, transaction.tables(), id, &before, &work)
                })
                .await?;
        }
    }
    Ok(())
}

/// What an operation has come to.
struct Altered {
    /// The number that the table has now.
    id: RelationId,
    /// The table with its rows, which are to be put into it again.
    emptied: Option<TableState>,
    /// Its definition before, where the rows are to be checked against what it asks more.
    unchecked_since: Option<Arc<TableDefinition>>,
}

/// Does one operation.
fn altered(
    transaction: &mut Transaction,
    sight: Option<&Arc<Sight>>,
    state: &SessionState,
    id: RelationId,
    operation: &AlterTableOperation,
    work: &RowWork,
) -> Result<Altered> {
    let tables = Arc::clone(transaction.tables());
    let table = table_of(&tables, id)?;
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
        work,
        emptied: None,
        unchecked_since: None,
    };
    let renamed = alter.run(operation)?;
    let (emptied, unchecked_since) = (alter.emptied, alter.unchecked_since);
    let name = renamed.unwrap_or(name);
    let now = transaction.tables().table_named(&schema, &name);
    Ok(Altered {
        id: now.map_or(id, |table| table.definition().id),
        emptied,
        unchecked_since,
    })
}

fn table_of(tables: &Tables, id: RelationId) -> Result<&TableState> {
    tables.table(id).ok_or_else(|| {
        Error::new(
            SqlState::InternalError,
            "a table is gone while it is altered",
        )
    })
}

struct Alter<'a> {
    transaction: &'a mut Transaction,
    tables: &'a Tables,
    /// Those that whoever asks may read.
    seen: &'a Tables,
    table: &'a TableState,
    state: &'a SessionState,
    work: &'a RowWork,
    /// What it has come to; see [`Altered`].
    emptied: Option<TableState>,
    unchecked_since: Option<Arc<TableDefinition>>,
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
        let emptied = fill::define(self.transaction, self.table, definition, self.work)?;
        self.emptied = emptied;
        Ok(())
    }

    /// Takes a definition that may ask more of them; all rows are to be checked then.
    fn define_checked(&mut self, definition: TableDefinition) -> Result<()> {
        let before = Arc::clone(self.table.definition());
        let key = |definition: &TableDefinition| {
            let key = definition.primary_key.as_ref();
            key.map(|key| key.columns.clone())
        };
        match key(&before) == key(&definition) {
            true => self.define(definition)?,
            false => {
                refuse_taken_names(self.tables, &definition)?;
                refuse_nulls(self.table, &definition, self.work)?;
                self.rebuild(self.table, definition)?;
            }
        }
        self.unchecked_since = Some(before);
        Ok(())
    }

    /// Writes all rows anew under another definition.
    fn rebuild(&mut self, table: &TableState, definition: TableDefinition) -> Result<()> {
        rebuild(self.transaction, self.state, table, definition, self.work)
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
        let before = self.definition();
        let is_of_rows =
            definition.primary_key == before.primary_key && definition.indexes == before.indexes;
        if is_of_rows {
            return self.define_checked(definition);
        }
        // The rows are written anew with the column, so it has to be there before.
        let mut alone = definition.clone();
        alone.primary_key.clone_from(&before.primary_key);
        alone.indexes.clone_from(&before.indexes);
        alone.checks.clone_from(&before.checks);
        alone.foreign_keys.clone_from(&before.foreign_keys);
        self.define(alone)?;
        let tables = Arc::clone(self.transaction.tables());
        let mut with_column = Alter {
            transaction: self.transaction,
            tables: &tables,
            seen: self.seen,
            table: table_of(&tables, definition.id)?,
            state: self.state,
            work: self.work,
            emptied: None,
            unchecked_since: None,
        };
        with_column.define_checked(definition)?;
        self.emptied = with_column.emptied;
        self.unchecked_since = with_column.unchecked_since;
        Ok(())
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
                refuse_nulls(self.table, &definition, self.work)?;
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
                    if let Some(default) = crate::plan::evaluate::Default::of(self.state, column)? {
                        default.values(1)?;
                    }
                }
                return self.rebuild(self.table, definition);
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
            if cascade && crate::catalog::lookup::unique_key(&definition, columns).is_none() {
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
            return self.rebuild(table, definition);
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

/// Fails if a column has a NULL that may have none in a definition to come.
fn refuse_nulls(table: &TableState, definition: &TableDefinition, work: &RowWork) -> Result<()> {
    let columns = table.definition().columns.iter();
    let columns: Vec<&ColumnDefinition> = columns
        .filter(|column| {
            let after = definition.column(column.id);
            column.is_nullable && after.is_some_and(|after| !after.is_nullable)
        })
        .collect();
    if columns.is_empty() {
        return Ok(());
    }
    let ids: Vec<ColumnId> = columns.iter().map(|column| column.id).collect();
    work.each_piece(table, &ids, 1, |rows| {
        let mut pairs = columns.iter().zip(rows);
        match pairs.find(|(_, values)| values.null_count() > 0) {
            Some((column, _)) => Err(contains_nulls(&column.name, definition)),
            None => Ok(()),
        }
    })
}

/// Checks all rows against the conditions and foreign keys that were not there before.
fn check_rows(
    state: &SessionState,
    tables: &Tables,
    id: RelationId,
    before: &TableDefinition,
    work: &RowWork,
) -> Result<()> {
    let table = table_of(tables, id)?;
    let mut new = (**table.definition()).clone();
    new.checks.retain(|check| !before.checks.contains(check));
    new.foreign_keys
        .retain(|key| before.foreign_keys.iter().all(|old| old.name != key.name));
    if new.checks.is_empty() && new.foreign_keys.is_empty() {
        return Ok(());
    }
    let conditions = Conditions::of(state, &new)?;
    let ids: Vec<ColumnId> = new.columns.iter().map(|column| column.id).collect();
    work.each_piece(table, &ids, 1, |rows| {
        let count = rows.first().map_or(0, |column| column.len());
        for start in (0..count).step_by(ROWS_AT_ONCE) {
            require_waited_for()?;
            let length = ROWS_AT_ONCE.min(count - start);
            let columns = rows.iter().map(|column| column.slice(start, length));
            conditions.check_stored(&columns.collect::<Vec<_>>())?;
        }
        references::require(tables, &new, rows)
    })
}
