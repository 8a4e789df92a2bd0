//! `STORED AS POSTGRES`: external tables of another server.
//!
//! The definition keeps what the server said when the table was created: columns with their types
//! on both sides, the primary key, about how many rows. So that planning asks nobody; the scan
//! looks whether the types are still those.

use std::sync::Arc;

use datafusion::sql::parser::CreateExternalTable;
use datafusion::sql::sqlparser::ast::{ColumnOption, Expr, Ident, TableConstraint};
use orrery_postgres_tables::{
    ForeignAccess, ForeignColumn, ForeignTable, Server, SourceName, SourceType, describe,
};

use super::csv::Column;
use crate::parse::identifiers::folded;
use crate::{Error, Result, SqlState};

/// What a definition keeps beside the options that were given.
const TYPES: &str = "source_types";
const ROWS: &str = "source_rows";

/// What a definition says beside the columns and their types here.
#[derive(Debug)]
pub(super) struct ForeignSource {
    server: Arc<Server>,
    source: SourceName,
    required: Vec<String>,
    key: Vec<String>,
    types: Vec<SourceType>,
    rows: Option<u64>,
}

impl ForeignSource {
    /// Whether it is what stands behind `STORED AS`.
    pub(super) fn is_it(word: &str) -> bool {
        ["POSTGRES", "POSTGRESQL"]
            .iter()
            .any(|name| name.eq_ignore_ascii_case(word))
    }

    /// Of a statement, for a table of that name.
    pub(super) fn new(
        statement: &CreateExternalTable,
        name: &str,
        options: &[(String, String)],
    ) -> Result<Self> {
        let invalid = |words: String| Error::new(SqlState::InvalidParameterValue, words);
        let [location] = statement.locations.as_slice() else {
            return Err(invalid(
                "a table stored as postgres has one location".to_owned(),
            ));
        };
        let mut of_server = Vec::new();
        let (mut table, mut types, mut rows) = (None, Vec::new(), None);
        for (option, value) in options {
            match option.to_ascii_lowercase().as_str() {
                "table" => table = Some(SourceName::parse(value)?),
                TYPES => {
                    let words = value.split(',').filter(|word| !word.is_empty());
                    types = words.map(SourceType::parse).collect::<Result<_, _>>()?;
                }
                ROWS => {
                    let number = value
                        .parse()
                        .map_err(|_| invalid(format!("{ROWS}: {value}")));
                    rows = Some(number?);
                }
                other => of_server.push((other.to_owned(), value.clone())),
            }
        }
        let source = match table {
            Some(table) => table,
            None => SourceName::parse(&format!("\"{}\"", name.replace('"', "\"\"")))?,
        };
        let mut found = Self {
            server: Arc::new(Server::parse(location, &of_server)?),
            source,
            required: Vec::new(),
            key: Vec::new(),
            types,
            rows,
        };
        if !found.types.is_empty() && found.types.len() != statement.columns.len() {
            return Err(invalid(format!(
                "{TYPES} are not as many as there are columns"
            )));
        }
        found.read_constraints(statement)?;
        Ok(found)
    }

    fn read_constraints(&mut self, statement: &CreateExternalTable) -> Result<()> {
        for column in &statement.columns {
            let name = folded(&column.name)?;
            for option in &column.options {
                match &option.option {
                    ColumnOption::NotNull => self.required.push(name.clone()),
                    ColumnOption::Null => {}
                    ColumnOption::PrimaryKey(_) => self.set_key(vec![name.clone()])?,
                    other => {
                        return Err(Error::unsupported(format!(
                            "{other} of an external table's column"
                        )));
                    }
                }
            }
        }
        for constraint in &statement.constraints {
            let TableConstraint::PrimaryKey(key) = constraint else {
                return Err(Error::unsupported("such a constraint of an external table"));
            };
            let columns = key.columns.iter().map(|column| match &column.column.expr {
                Expr::Identifier(name) => self.column_of(statement, name),
                _ => Err(Error::unsupported("an expression in a key")),
            });
            let columns = columns.collect::<Result<_>>()?;
            self.set_key(columns)?;
        }
        Ok(())
    }

    fn column_of(&self, statement: &CreateExternalTable, name: &Ident) -> Result<String> {
        let name = folded(name)?;
        let mut columns = statement.columns.iter().map(|column| folded(&column.name));
        match columns.any(|column| column.is_ok_and(|column| column == name)) {
            true => Ok(name),
            false => Err(Error::new(
                SqlState::UndefinedColumn,
                format!("column \"{name}\" named in key does not exist"),
            )),
        }
    }

    fn set_key(&mut self, columns: Vec<String>) -> Result<()> {
        if !self.key.is_empty() {
            return Err(Error::new(
                SqlState::InvalidTableDefinition,
                "multiple primary keys for an external table are not allowed",
            ));
        }
        self.required.extend(columns.iter().cloned());
        self.key = columns;
        Ok(())
    }

    /// Whether the server was asked already.
    pub(super) fn is_known(&self) -> bool {
        !self.types.is_empty()
    }

    /// Whether options name files of this machine.
    pub(super) fn names_files(&self) -> bool {
        self.server.names_files()
    }

    /// Asks the server; the columns with their types here. What the statement says of columns and
    /// key is taken as it is, as far as the source has it.
    pub(super) async fn look(
        &mut self,
        access: &ForeignAccess,
        declared: &[Column],
    ) -> Result<Vec<Column>> {
        let found = describe(access, &self.server, &self.source, declared).await?;
        if found.columns.is_empty() {
            return Err(Error::new(
                SqlState::InvalidTableDefinition,
                format!("the table {} has no columns", self.source),
            ));
        }
        self.types = found.columns.iter().map(|column| column.source).collect();
        self.rows = found.rows;
        if self.key.is_empty() {
            self.key = found.primary_key;
        }
        let required = found.columns.iter().filter(|column| !column.is_nullable);
        self.required
            .extend(required.map(|column| column.name.clone()));
        let columns = found.columns.into_iter();
        Ok(columns
            .map(|column| (column.name, column.column_type))
            .collect())
    }

    /// Whether a column is never NULL.
    pub(super) fn is_required(&self, name: &str) -> bool {
        self.required.iter().any(|required| required == name)
    }

    /// The columns of the primary key.
    pub(super) fn key(&self) -> &[String] {
        &self.key
    }

    /// About how many rows there are.
    pub(super) fn rows(&self) -> Option<u64> {
        self.rows
    }

    /// What the server said, as options that a definition keeps; none of what stands among those
    /// that were given.
    pub(super) fn found(&self) -> Vec<(String, String)> {
        let words: Vec<String> = self.types.iter().map(ToString::to_string).collect();
        let mut found = vec![(TYPES.to_owned(), words.join(","))];
        found.extend(self.rows.map(|rows| (ROWS.to_owned(), rows.to_string())));
        found
    }

    /// The columns of both sides.
    pub(super) fn columns(&self, columns: &[Column]) -> Result<Vec<ForeignColumn>> {
        if self.types.len() != columns.len() {
            return Err(Error::new(
                SqlState::InternalError,
                "the definition of an external table has no types",
            ));
        }
        let pairs = columns.iter().zip(&self.types);
        let columns = pairs.map(|((name, column_type), source)| ForeignColumn {
            name: name.clone(),
            column_type: *column_type,
            source: *source,
            is_nullable: !self.is_required(name),
        });
        Ok(columns.collect())
    }

    /// The table, which is called `name` in messages.
    pub(super) fn table(&self, name: String, columns: &[Column]) -> Result<ForeignTable> {
        Ok(ForeignTable::new(
            name,
            Arc::clone(&self.server),
            self.source.clone(),
            self.columns(columns)?,
            self.rows,
        ))
    }
}
