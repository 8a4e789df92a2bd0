//! Tables over files: `'file.csv'` in place of a table, and `CREATE EXTERNAL TABLE`.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::execution::SessionState;
use datafusion::sql::parser::{CreateExternalTable, Statement};
use datafusion::sql::sqlparser::ast::{self, ObjectName, Value};
use datafusion::sql::sqlparser::tokenizer::Token;
use orrery_postgres_tables::{ForeignAccess, ForeignColumn};

use super::csv::{Column, CsvTable};
use super::foreign::ForeignSource;
use super::kind::Kind;
use super::listing::{Listed, listed};
use super::location::{FileAccess, FoundFile};
use crate::parse::identifiers::{folded, qualified};
use crate::parse::statement::parse_one;
use crate::parse::visit::{visit_relations, visit_relations_mut};
use crate::values::data_types::column_type;
use crate::{Error, Result, SqlState};

/// What the text of an external table begins with, where a view has its query.
const EXTERNAL: &str = "CREATE EXTERNAL TABLE ";

/// A definition that is understood.
#[derive(Debug)]
pub(crate) struct ExternalTable {
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) if_not_exists: bool,
    pub(crate) or_replace: bool,
    columns: Vec<Column>,
    stored_as: String,
    options: Vec<(String, String)>,
    stored: Stored,
    locations: Vec<String>,
}

/// What a table is made of.
#[derive(Debug)]
enum Stored {
    Files(Kind),
    Foreign(ForeignSource),
}

/// What a definition knows of a table of another server.
pub(crate) struct KnownOfForeign<'d> {
    pub(crate) columns: Vec<ForeignColumn>,
    /// The columns of its primary key; none if it has no key.
    pub(crate) key: &'d [String],
    /// About how many, when it was defined.
    pub(crate) rows: Option<u64>,
}

/// Whether a definition with a text is an external table, and not a view.
pub(crate) fn is_external(text: &str) -> bool {
    text.starts_with(EXTERNAL)
}

/// What a session may do with files.
fn access(state: &SessionState) -> FileAccess {
    let access = state.config().get_extension::<FileAccess>();
    access.map_or_else(FileAccess::refused, |access| (*access).clone())
}

/// The names of files that a statement has in the place of tables: those in single quotes.
pub(crate) fn named_files(statement: &Statement) -> Vec<String> {
    let mut names = Vec::new();
    if let Some(statement) = plain(statement) {
        let _: ControlFlow<()> = visit_relations(statement, |name| {
            names.extend(file_name(name).filter(|name| !names.contains(name)));
            ControlFlow::Continue(())
        });
    }
    names
}

/// Gives tables other names.
pub(crate) fn rename_files(statement: &mut Statement, names: &[(String, ObjectName)]) {
    let mut explained = statement;
    while let Statement::Explain(explain) = explained {
        explained = &mut explain.statement;
    }
    if let Statement::Statement(statement) = explained {
        let _: ControlFlow<()> = visit_relations_mut(&mut **statement, |name| {
            let file = file_name(name);
            let other = names.iter().find(|(old, _)| Some(old) == file.as_ref());
            if let Some((_, other)) = other {
                *name = other.clone();
            }
            ControlFlow::Continue(())
        });
    }
}

fn plain(statement: &Statement) -> Option<&ast::Statement> {
    let mut explained = statement;
    while let Statement::Explain(explain) = explained {
        explained = &explain.statement;
    }
    match explained {
        Statement::Statement(statement) => Some(statement),
        _ => None,
    }
}

fn file_name(name: &ObjectName) -> Option<String> {
    let [part] = name.0.as_slice() else {
        return None;
    };
    let ident = part.as_ident()?;
    (ident.quote_style == Some('\'')).then(|| ident.value.clone())
}

/// The table that is at a location, of the kind that its name says.
pub(crate) async fn file_table(
    state: &SessionState,
    location: &str,
) -> Result<Arc<dyn TableProvider>> {
    let location = access(state).open(location, state.runtime_env())?;
    let unknown = || {
        Error::unsupported(format!("the kind of file of {}", location.name)).with_hint(
            "Names end with .csv, .tsv, .parquet, .json, .jsonl or .ndjson; CREATE EXTERNAL TABLE ... STORED AS says it of others.",
        )
    };
    let of_name = Kind::of(&location.name);
    let files = location.files(|name| Kind::of(name).is_some()).await?;
    let kinds = files.iter().map(|file| Kind::of(&file.name));
    let kind = of_name.or_else(|| kinds.clone().next().flatten());
    let kind = kind.ok_or_else(unknown)?;
    if kinds.flatten().any(|other| other != kind) {
        return Err(Error::new(
            SqlState::InvalidParameterValue,
            format!("{} has files of several kinds", location.name),
        ));
    }
    of_kind(state, files, &kind, None).await
}

async fn of_kind(
    state: &SessionState,
    files: Vec<FoundFile>,
    kind: &Kind,
    columns: Option<Vec<Column>>,
) -> Result<Arc<dyn TableProvider>> {
    let schema = columns.as_ref().map(|columns| {
        let fields = columns.iter();
        let fields = fields.map(|(name, of)| Field::new(name, of.arrow(), true));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    });
    match kind {
        Kind::Delimited(dialect) => {
            let table = CsvTable::new(files, dialect.clone(), columns).await?;
            Ok(Arc::new(table))
        }
        Kind::Parquet => listed(state, &files, Listed::Parquet, schema).await,
        Kind::Json => listed(state, &files, Listed::Json, schema).await,
    }
}

impl ExternalTable {
    /// Of a statement.
    pub(crate) fn new(statement: &CreateExternalTable) -> Result<Self> {
        let is_foreign = ForeignSource::is_it(&statement.file_type);
        let given = [
            (
                !statement.table_partition_cols.is_empty(),
                "PARTITIONED BY of an external table",
            ),
            (
                !statement.order_exprs.is_empty(),
                "WITH ORDER of an external table",
            ),
            (statement.temporary, "a temporary table"),
            (statement.unbounded, "an unbounded table"),
            (
                !statement.constraints.is_empty() && !is_foreign,
                "a constraint of an external table",
            ),
        ];
        if let Some((_, what)) = given.into_iter().find(|(is_given, _)| *is_given) {
            return Err(Error::unsupported(what));
        }
        let columns = statement.columns.iter().map(|column| {
            if let Some(option) = column.options.first()
                && !is_foreign
            {
                return Err(Error::unsupported(format!(
                    "{} of an external table's column",
                    option.option
                )));
            }
            Ok((folded(&column.name)?, column_type(&column.data_type)?))
        });
        let options = statement.options.iter().map(|(name, value)| {
            let value = match value {
                Value::SingleQuotedString(text) => text.clone(),
                Value::Boolean(value) => value.to_string(),
                Value::Number(number, _) => number.clone(),
                other => other.to_string(),
            };
            (name.clone(), value)
        });
        let options: Vec<(String, String)> = options.collect();
        let (schema, name) = qualified(&statement.name)?;
        let stored = match is_foreign {
            true => Stored::Foreign(ForeignSource::new(statement, &name, &options)?),
            false => Stored::Files(Kind::stored_as(&statement.file_type, &options)?),
        };
        Ok(Self {
            schema,
            name,
            if_not_exists: statement.if_not_exists,
            or_replace: statement.or_replace,
            columns: columns.collect::<Result<_>>()?,
            stored,
            stored_as: statement.file_type.to_ascii_uppercase(),
            options,
            locations: statement.locations.clone(),
        })
    }

    /// Of a statement that somebody has written: what a definition keeps of the other server is
    /// none of theirs.
    pub(crate) fn of_statement(statement: &CreateExternalTable) -> Result<Self> {
        let table = Self::new(statement)?;
        match &table.stored {
            Stored::Foreign(source) if source.is_known() => Err(Error::new(
                SqlState::InvalidParameterValue,
                "source_types is what the other server says, and no option",
            )),
            Stored::Files(_) | Stored::Foreign(_) => Ok(table),
        }
    }

    /// Of the text that the definition keeps.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        match parse_one(text)? {
            Statement::CreateExternalTable(statement) => Self::new(&statement),
            _ => Err(Error::new(
                SqlState::InternalError,
                "the definition of an external table is none",
            )),
        }
    }

    /// Whether it is of another server.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self.stored, Stored::Foreign(_))
    }

    /// Asks the other server what the table has there, if it is to be asked and was not. Whoever
    /// may create it may read it from then on.
    pub(crate) async fn look(&mut self, state: &SessionState) -> Result<()> {
        let Stored::Foreign(source) = &mut self.stored else {
            return Ok(());
        };
        if source.is_known() {
            return Ok(());
        }
        if source.names_files() && !access(state).is_allowed() {
            return Err(Error::new(
                SqlState::InsufficientPrivilege,
                "permission denied to name files in options",
            )
            .with_hint("passfile and sslrootcert are for sessions that may read files; the password may be in PGPASSFILE of the server's process."));
        }
        let foreign = state.config().get_extension::<ForeignAccess>();
        let foreign = foreign.map_or_else(ForeignAccess::refused, |it| (*it).clone());
        self.columns = source.look(&foreign, &self.columns).await?;
        Ok(())
    }

    /// What is known of a table of another server.
    pub(crate) fn foreign(&self) -> Result<Option<KnownOfForeign<'_>>> {
        match &self.stored {
            Stored::Files(_) => Ok(None),
            Stored::Foreign(source) => Ok(Some(KnownOfForeign {
                columns: source.columns(&self.columns)?,
                key: source.key(),
                rows: source.rows(),
            })),
        }
    }

    /// The table.
    pub(crate) async fn provider(&self, state: &SessionState) -> Result<Arc<dyn TableProvider>> {
        let kind = match &self.stored {
            Stored::Files(kind) => kind,
            Stored::Foreign(source) => {
                let name = match self.schema == crate::names::SCHEMA {
                    true => self.name.clone(),
                    false => format!("{}.{}", self.schema, self.name),
                };
                let table = source.table(name, &self.columns)?;
                return Ok(Arc::new(table));
            }
        };
        let access = access(state);
        let mut files = Vec::new();
        for location in &self.locations {
            let location = access.open(location, state.runtime_env())?;
            // Whatever they are called: the kind is said.
            files.extend(location.files(|_| true).await?);
        }
        let columns = (!self.columns.is_empty()).then(|| self.columns.clone());
        of_kind(state, files, kind, columns).await
    }

    /// Keeps the columns that files of CSV have now: those of others are in each file.
    pub(crate) fn keep_columns(&mut self, table: &dyn TableProvider) {
        if self.columns.is_empty()
            && let Some(table) = (table as &dyn std::any::Any).downcast_ref::<CsvTable>()
        {
            self.columns = table.columns().to_vec();
        }
    }

    /// As a definition keeps it.
    pub(crate) fn text(&self) -> String {
        let quoted = |text: &str| Token::SingleQuotedString(text.replace('\'', "''")).to_string();
        let named = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let mut text = format!("{EXTERNAL}{}.{}", named(&self.schema), named(&self.name));
        let foreign = match &self.stored {
            Stored::Files(_) => None,
            Stored::Foreign(source) => Some(source),
        };
        if !self.columns.is_empty() {
            let columns = self.columns.iter();
            let mut parts: Vec<String> = columns
                .map(|(name, of)| {
                    let is_required = foreign.is_some_and(|it| it.is_required(name));
                    let required = if is_required { " NOT NULL" } else { "" };
                    format!("{} {of}{required}", named(name))
                })
                .collect();
            let key = foreign.map_or(&[][..], ForeignSource::key);
            if !key.is_empty() {
                let key: Vec<String> = key.iter().map(|name| named(name)).collect();
                parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
            }
            text.push_str(&format!(" ({})", parts.join(", ")));
        }
        text.push_str(&format!(" STORED AS {}", self.stored_as));
        let found = foreign.map(ForeignSource::found).unwrap_or_default();
        if !self.options.is_empty() || !found.is_empty() {
            let options = self.options.iter().chain(&found);
            let options =
                options.map(|(name, value)| format!("{} {}", quoted(name), quoted(value)));
            text.push_str(&format!(
                " OPTIONS ({})",
                options.collect::<Vec<_>>().join(", ")
            ));
        }
        let locations: Vec<String> = self.locations.iter().map(|it| quoted(it)).collect();
        match locations.as_slice() {
            [location] => text.push_str(&format!(" LOCATION {location}")),
            several => text.push_str(&format!(" LOCATION ({})", several.join(", "))),
        }
        text
    }
}
