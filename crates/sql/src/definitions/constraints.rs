//! A table definition under construction, to which `CREATE TABLE` and `ALTER TABLE` add columns and
//! constraints.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    CheckConstraint, ColumnDef, ColumnOption, ConstraintReferenceMatchKind, Expr,
    ForeignKeyConstraint, Ident, IndexColumn, NullsDistinctOption, ReferentialAction,
    TableConstraint,
};
use orrery_storage::table::{
    COLUMNS_MAX, Check, ColumnDefinition, ColumnId, ColumnType, ForeignKey, IndexDefinition,
    PrimaryKey, RelationId, TableDefinition, Tables,
};

use crate::catalog::lookup::{chosen_name, column_named, table_named, unique_key};
use crate::parse::identifiers::{folded, qualified};
use crate::plan::evaluate;
use crate::plan::planner::expression;
use crate::values::data_types::{column_type, schema_of};
use crate::{Error, Result, SqlState};

/// Columns that a key may have.
const KEY_COLUMNS_MAX: usize = 32;
/// Indexes, foreign keys and checks that a table may have, each.
const CONSTRAINTS_MAX: usize = 1_000;

/// A definition that grows.
pub(super) struct Draft<'a> {
    pub(super) tables: &'a Tables,
    pub(super) state: &'a SessionState,
    pub(super) definition: TableDefinition,
    /// The number that the next new index gets.
    pub(super) next_relation: u32,
}

impl Draft<'_> {
    fn name(&self, given: Option<&Ident>, parts: &[&str]) -> Result<String> {
        let is_used = |name: &str| {
            let it = &self.definition;
            it.name == name
                || it.primary_key.as_ref().is_some_and(|key| key.name == name)
                || it.indexes.iter().any(|index| index.name == name)
                || it.foreign_keys.iter().any(|key| key.name == name)
                || it.checks.iter().any(|check| check.name == name)
        };
        match given {
            Some(given) => {
                let name = folded(given)?;
                match is_used(&name) {
                    true => Err(Error::new(
                        SqlState::DuplicateObject,
                        format!(
                            "constraint \"{name}\" for relation \"{}\" already exists",
                            self.definition.name
                        ),
                    )),
                    false => Ok(name),
                }
            }
            None => {
                let schema = &self.definition.schema;
                Ok(chosen_name(self.tables, schema, &parts.join("_"), is_used))
            }
        }
    }

    fn relation(&mut self) -> RelationId {
        let id = RelationId(self.next_relation);
        self.next_relation += 1;
        id
    }

    /// The columns of a key, each once.
    pub(super) fn key_columns<'n>(
        &self,
        names: impl IntoIterator<Item = &'n Ident>,
    ) -> Result<Vec<ColumnId>> {
        let mut columns = Vec::new();
        for name in names {
            let name = folded(name)?;
            let column = self.definition.column_named(&name).ok_or_else(|| {
                Error::new(
                    SqlState::UndefinedColumn,
                    format!("column \"{name}\" named in key does not exist"),
                )
            })?;
            if columns.contains(&column.id) {
                return Err(Error::new(
                    SqlState::DuplicateColumn,
                    format!("column \"{name}\" appears twice in a key"),
                ));
            }
            columns.push(column.id);
        }
        if columns.len() > KEY_COLUMNS_MAX {
            return Err(Error::new(
                SqlState::TooManyColumns,
                format!("a key has at most {KEY_COLUMNS_MAX} columns"),
            ));
        }
        Ok(columns)
    }

    pub(super) fn column_names(&self, columns: &[ColumnId]) -> Vec<&str> {
        let columns = columns.iter().filter_map(|id| self.definition.column(*id));
        columns.map(|column| column.name.as_str()).collect()
    }

    /// Puts a column behind the others, with the constraints that stand with it.
    pub(super) fn add_column(&mut self, column: &ColumnDef) -> Result<ColumnId> {
        let name = folded(&column.name)?;
        let column_type = column_type(&column.data_type)?;
        let id = self.push_column(name, column_type)?;
        for option in &column.options {
            self.add_option(id, option.name.as_ref(), &option.option)?;
        }
        Ok(id)
    }

    /// A column of which nothing else is said.
    pub(super) fn push_column(
        &mut self,
        name: String,
        column_type: orrery_storage::table::ColumnType,
    ) -> Result<ColumnId> {
        if self.definition.column_named(&name).is_some() {
            return Err(Error::new(
                SqlState::DuplicateColumn,
                format!(
                    "column \"{name}\" of relation \"{}\" already exists",
                    self.definition.name
                ),
            ));
        }
        if self.definition.columns.len() >= COLUMNS_MAX {
            return Err(Error::new(
                SqlState::TooManyColumns,
                format!("tables can have at most {COLUMNS_MAX} columns"),
            ));
        }
        let id = ColumnId(self.definition.next_column);
        self.definition.next_column += 1;
        self.definition.columns.push(ColumnDefinition {
            id,
            name,
            column_type,
            is_nullable: true,
            default: None,
            initial: None,
        });
        Ok(id)
    }

    /// The column with a number, to be changed.
    pub(super) fn column_mut(&mut self, id: ColumnId) -> Result<&mut ColumnDefinition> {
        let mut columns = self.definition.columns.iter_mut();
        columns
            .find(|column| column.id == id)
            .ok_or_else(|| Error::new(SqlState::InternalError, "a column of a draft is missing"))
    }

    fn add_option(
        &mut self,
        id: ColumnId,
        name: Option<&Ident>,
        option: &ColumnOption,
    ) -> Result<()> {
        match option {
            ColumnOption::Null => {}
            ColumnOption::NotNull => self.column_mut(id)?.is_nullable = false,
            ColumnOption::Default(default) => self.set_default(id, Some(default))?,
            ColumnOption::PrimaryKey(key) => {
                refuse_timing(key.characteristics.is_some())?;
                self.add_primary_key(name.or(key.name.as_ref()), vec![id])?;
            }
            ColumnOption::Unique(unique) => {
                refuse_timing(unique.characteristics.is_some())?;
                refuse_nulls_alike(unique.nulls_distinct)?;
                self.add_unique(name.or(unique.name.as_ref()), vec![id])?;
            }
            ColumnOption::ForeignKey(key) => {
                self.add_foreign_key(name.or(key.name.as_ref()), vec![id], key)?;
            }
            ColumnOption::Check(check) => self.add_check(name, check, Some(id))?,
            other => {
                let what = other.to_string();
                let what: Vec<&str> = what.split_whitespace().take(2).collect();
                return Err(Error::unsupported(format!(
                    "{} of a column",
                    what.join(" ")
                )));
            }
        }
        Ok(())
    }

    /// Sets what new rows get in a column, or takes it away.
    pub(super) fn set_default(&mut self, id: ColumnId, default: Option<&Expr>) -> Result<()> {
        if let Some(default) = default {
            // So that what cannot be computed, or assigned, is refused here and not at the first
            // row.
            evaluate::constant(self.state, default, self.column_mut(id)?)?;
        }
        let default = default.map(ToString::to_string);
        self.column_mut(id)?.default = default;
        Ok(())
    }

    /// Puts a constraint to the table.
    pub(super) fn add_constraint(&mut self, constraint: &TableConstraint) -> Result<()> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                refuse_timing(key.characteristics.is_some())?;
                let columns = self.key_columns(plain_columns(&key.columns)?)?;
                self.add_primary_key(key.name.as_ref(), columns)
            }
            TableConstraint::Unique(unique) => {
                refuse_timing(unique.characteristics.is_some())?;
                refuse_nulls_alike(unique.nulls_distinct)?;
                let columns = self.key_columns(plain_columns(&unique.columns)?)?;
                self.add_unique(unique.name.as_ref(), columns)
            }
            TableConstraint::ForeignKey(key) => {
                let columns = self.key_columns(&key.columns)?;
                self.add_foreign_key(key.name.as_ref(), columns, key)
            }
            TableConstraint::Check(check) => self.add_check(check.name.as_ref(), check, None),
            other => Err(Error::unsupported(format!("the constraint {other}"))),
        }
    }

    fn add_primary_key(&mut self, name: Option<&Ident>, columns: Vec<ColumnId>) -> Result<()> {
        if self.definition.primary_key.is_some() {
            return Err(Error::new(
                SqlState::InvalidTableDefinition,
                format!(
                    "multiple primary keys for table \"{}\" are not allowed",
                    self.definition.name
                ),
            ));
        }
        let name = self.name(name, &[&self.definition.name, "pkey"])?;
        for id in &columns {
            self.column_mut(*id)?.is_nullable = false;
        }
        self.definition.primary_key = Some(PrimaryKey { name, columns });
        Ok(())
    }

    fn add_unique(&mut self, name: Option<&Ident>, columns: Vec<ColumnId>) -> Result<()> {
        let mut parts = vec![self.definition.name.as_str()];
        parts.extend(self.column_names(&columns));
        parts.push("key");
        let name = self.name(name, &parts)?;
        self.add_index(name, columns, Vec::new(), true, true)
    }

    /// Puts a projection to the table.
    pub(super) fn add_index(
        &mut self,
        name: String,
        columns: Vec<ColumnId>,
        included: Vec<ColumnId>,
        is_unique: bool,
        is_constraint: bool,
    ) -> Result<()> {
        within_limit(self.definition.indexes.len(), "indexes")?;
        let id = self.relation();
        self.definition.indexes.push(IndexDefinition {
            id,
            name,
            columns,
            included,
            is_unique,
            is_constraint,
        });
        Ok(())
    }

    fn add_check(
        &mut self,
        name: Option<&Ident>,
        check: &CheckConstraint,
        column: Option<ColumnId>,
    ) -> Result<()> {
        within_limit(self.definition.checks.len(), "checks")?;
        if check.enforced == Some(false) {
            return Err(Error::unsupported("NOT ENFORCED"));
        }
        let mut parts = vec![self.definition.name.as_str()];
        let columns: Vec<ColumnId> = column.into_iter().collect();
        parts.extend(self.column_names(&columns));
        parts.push("check");
        let name = self.name(name.or(check.name.as_ref()), &parts)?;
        let schema = schema_of(&self.definition);
        let schema = DFSchema::try_from_qualified_schema(self.definition.name.as_str(), &schema);
        let schema = schema.map_err(|error| Error::of_run(&error))?;
        let condition = expression(self.state, &check.expr, &schema)?;
        let data_type = condition.data_type(schema.as_arrow());
        let data_type = data_type.map_err(|error| Error::of_run(&error))?;
        evaluate::require_boolean(&data_type)?;
        self.definition.checks.push(Check {
            name,
            condition: evaluate::unqualified((*check.expr).clone()).to_string(),
        });
        Ok(())
    }

    fn add_foreign_key(
        &mut self,
        name: Option<&Ident>,
        columns: Vec<ColumnId>,
        key: &ForeignKeyConstraint,
    ) -> Result<()> {
        within_limit(self.definition.foreign_keys.len(), "foreign keys")?;
        refuse_timing(key.characteristics.is_some())?;
        for (event, action) in [("DELETE", &key.on_delete), ("UPDATE", &key.on_update)] {
            match action {
                None | Some(ReferentialAction::NoAction | ReferentialAction::Restrict) => {}
                Some(other) => {
                    return Err(Error::unsupported(format!("ON {event} {other}")));
                }
            }
        }
        if let Some(ConstraintReferenceMatchKind::Full | ConstraintReferenceMatchKind::Partial) =
            key.match_kind
        {
            return Err(Error::unsupported("MATCH FULL or PARTIAL"));
        }
        let target = qualified(&key.foreign_table)?;
        let own = (&self.definition.schema, &self.definition.name);
        let other = match own == (&target.0, &target.1) {
            true => self.definition.clone(),
            false => (**table_named(self.tables, &key.foreign_table)?.definition()).clone(),
        };
        let referenced = referenced_columns(&other, &key.referred_columns)?;
        if referenced.len() != columns.len() {
            return Err(Error::new(
                SqlState::InvalidForeignKey,
                "number of referencing and referenced columns for foreign key disagree",
            ));
        }
        let mut parts = vec![self.definition.name.as_str()];
        parts.extend(self.column_names(&columns));
        parts.push("fkey");
        let name = self.name(name, &parts)?;
        for (one, two) in columns.iter().zip(&referenced) {
            let types = (
                self.definition
                    .column(*one)
                    .map(|it| key_type(it.column_type)),
                other.column(*two).map(|it| key_type(it.column_type)),
            );
            if types.0 != types.1 {
                return Err(Error::new(
                    SqlState::DatatypeMismatch,
                    format!("foreign key constraint \"{name}\" cannot be implemented"),
                )
                .with_detail("The columns are of different types."));
            }
        }
        self.definition.foreign_keys.push(ForeignKey {
            name,
            columns,
            table: other.id,
            referenced,
        });
        Ok(())
    }
}

/// What two columns have in common whose keys can be compared: of `char(n)` they have no blanks at
/// their end.
fn key_type(of: ColumnType) -> (DataType, bool) {
    let is_padded = matches!(
        of,
        ColumnType::Text {
            is_padded: true,
            ..
        }
    );
    (of.arrow(), is_padded)
}

/// The columns that a foreign key refers to, which something must make unique.
fn referenced_columns(other: &TableDefinition, names: &[Ident]) -> Result<Vec<ColumnId>> {
    if names.is_empty() {
        let key = other.primary_key.as_ref().ok_or_else(|| {
            Error::new(
                SqlState::UndefinedObject,
                format!(
                    "there is no primary key for referenced table \"{}\"",
                    other.name
                ),
            )
        })?;
        return Ok(key.columns.clone());
    }
    let columns = names
        .iter()
        .map(|name| Ok(column_named(other, &folded(name)?)?.id));
    let columns: Vec<ColumnId> = columns.collect::<Result<_>>()?;
    match unique_key(other, &columns) {
        Some(_) => Ok(columns),
        None => Err(Error::new(
            SqlState::InvalidForeignKey,
            format!(
                "there is no unique constraint matching given keys for referenced table \"{}\"",
                other.name
            ),
        )),
    }
}

/// The columns of a key or an index, none of which may be an expression.
pub(super) fn plain_columns(columns: &[IndexColumn]) -> Result<Vec<&Ident>> {
    let names = columns.iter().map(|column| {
        let options = &column.column.options;
        if options.asc == Some(false) || options.nulls_first == Some(true) {
            return Err(Error::unsupported("DESC or NULLS FIRST in a key"));
        }
        if column.operator_class.is_some() {
            return Err(Error::unsupported("an operator class"));
        }
        match &column.column.expr {
            Expr::Identifier(name) => Ok(name),
            _ => Err(Error::unsupported("an expression in a key")),
        }
    });
    names.collect()
}

fn refuse_timing(is_given: bool) -> Result<()> {
    match is_given {
        true => Err(Error::unsupported("DEFERRABLE, or NOT ENFORCED,")),
        false => Ok(()),
    }
}

fn refuse_nulls_alike(option: NullsDistinctOption) -> Result<()> {
    match option {
        NullsDistinctOption::NotDistinct => Err(Error::unsupported("NULLS NOT DISTINCT")),
        NullsDistinctOption::Distinct | NullsDistinctOption::None => Ok(()),
    }
}

fn within_limit(there: usize, what: &str) -> Result<()> {
    match there < CONSTRAINTS_MAX {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::ProgramLimitExceeded,
            format!("a table has at most {CONSTRAINTS_MAX} {what}"),
        )),
    }
}
