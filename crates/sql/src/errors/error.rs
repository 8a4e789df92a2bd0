//! The error of a statement: code, message, detail, hint and position, as PostgreSQL reports it.
//!
//! DataFusion says what went wrong by the kind of its error, and often by the words alone.
//! [`Error::of_engine`] is the one way from them to ours; what the planner says is known in
//! `engine_words`. Each has a test, so that a new version that says it otherwise is noticed.

use std::fmt;

use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, SchemaError};
use datafusion::sql::sqlparser::parser::ParserError;
use orrery_runtime::{is_refused_by_account, words_of_refusal};
use serde::{Deserialize, Serialize};

use crate::SqlState;
use crate::errors::engine_words::{of_internal, of_missing, of_plan};
use crate::errors::told::Told;
use crate::errors::type_names::with_type_names;
use crate::errors::value_words::{of_text, of_value};

/// Longer words are cut: a value that cannot be taken stands in them.
const WORDS_BYTES_MAX: usize = 2_000;
/// What is left of them at their begin, and at their end, where it is said what is wrong.
const WORDS_BYTES_LEFT: [usize; 2] = [1_000, 500];

/// What this crate's functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a statement: code, message, place and hint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Error {
    /// The code.
    pub state: SqlState,
    /// For people.
    pub message: String,
    /// The character of the text where it is, counted from one.
    pub position: Option<usize>,
    /// More of it, such as the key that is there already.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// Where it happened that is not in the text: the line of a file.
    pub context: Option<Box<str>>,
    /// What of the database it is about, as far as that is known.
    pub objects: Option<Box<ErrorObjects>>,
}

/// The objects that an error is about, for programs: constraint, table, column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorObjects {
    /// The schema of the table.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The column, where it is one.
    pub column: Option<String>,
    /// The constraint that is violated.
    pub constraint: Option<String>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(detail) = &self.detail {
            write!(f, "; {detail}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        if let Some(context) = &self.context {
            write!(f, "; {context}")?;
        }
        if let Some(position) = self.position {
            write!(f, " (at character {position})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<Error> for DataFusionError {
    /// So that an operator of ours can fail with a code of its choice; [`Error::of_engine`] finds
    /// it again.
    fn from(error: Error) -> Self {
        Self::External(Box::new(error))
    }
}

impl Error {
    /// An error without a place.
    pub fn new(state: SqlState, message: impl Into<String>) -> Self {
        Self {
            state,
            message: cut(message.into()),
            position: None,
            detail: None,
            hint: None,
            context: None,
            objects: None,
        }
    }

    /// Something of SQL that there is not, by its name.
    pub(crate) fn unsupported(what: impl fmt::Display) -> Self {
        Self::new(
            SqlState::FeatureNotSupported,
            format!("{what} is not supported"),
        )
    }

    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(cut(detail.into()));
        self
    }

    /// Unless a place is told already.
    pub(crate) fn with_context(mut self, context: impl Into<String>) -> Self {
        self.context
            .get_or_insert_with(|| cut(context.into()).into_boxed_str());
        self
    }

    /// It is about a table.
    pub(crate) fn of_table(mut self, schema: &str, table: &str) -> Self {
        self.objects = Some(Box::new(ErrorObjects {
            schema: schema.to_owned(),
            table: table.to_owned(),
            ..ErrorObjects::default()
        }));
        self
    }

    /// And about its constraint.
    pub(crate) fn of_constraint(mut self, name: &str) -> Self {
        self.objects.get_or_insert_default().constraint = Some(name.to_owned());
        self
    }

    /// And about its column.
    pub(crate) fn of_column(mut self, name: &str) -> Self {
        self.objects.get_or_insert_default().column = Some(name.to_owned());
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(cut(hint.into()));
        self
    }

    /// The line and the column of the text where it is, counted from one, and the bytes before it.
    pub fn place(&self, text: &str) -> Option<(usize, usize, usize)> {
        let offsets = text.char_indices().map(|(offset, _)| offset);
        // What is missing is behind the end.
        let offset = offsets
            .chain([text.len()])
            .nth(self.position?.checked_sub(1)?)?;
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        Some((line, before[line_start..].chars().count() + 1, offset))
    }

    /// Translates an error of DataFusion about this text.
    pub fn of_engine(error: &DataFusionError, text: &str) -> Self {
        let mut found = of_root(error.find_root());
        if found.position.is_none() {
            let span = error.diagnostic().and_then(|diagnostic| diagnostic.span);
            found.position = span
                .and_then(|span| character(text, span.start.line, span.start.column))
                .or_else(|| place_in_words(&error.message(), text));
        }
        found
    }

    /// Translates an error of DataFusion during execution, without the text.
    pub fn of_run(error: &DataFusionError) -> Self {
        Self::of_engine(error, "")
    }
}

/// Words as they are, or their begin and their end.
fn cut(words: String) -> String {
    if words.len() <= WORDS_BYTES_MAX {
        return words;
    }
    let [at_begin, at_end] = WORDS_BYTES_LEFT;
    let begin = (0..=at_begin).rev().find(|at| words.is_char_boundary(*at));
    let end = (words.len() - at_end..words.len()).find(|at| words.is_char_boundary(*at));
    let (begin, end) = (begin.unwrap_or_default(), end.unwrap_or(words.len()));
    let left_out = end - begin;
    format!(
        "{} [... {left_out} bytes ...] {}",
        &words[..begin],
        &words[end..]
    )
}

fn of_root(error: &DataFusionError) -> Error {
    match error {
        DataFusionError::SQL(error, _) => of_parser(error),
        DataFusionError::SchemaError(error, _) => of_schema(error),
        DataFusionError::ArrowError(error, _) => of_arrow(error),
        DataFusionError::ResourcesExhausted(words) => {
            of_memory(words)
        }
        DataFusionError::NotImplemented(words) => of_words(of_missing(words)),
        DataFusionError::Configuration(words) => Error::new(SqlState::InvalidParameterValue, words),
        DataFusionError::Plan(words) | DataFusionError::Execution(words) => of_words(of_plan(words)),
        DataFusionError::External(error) => of_external(&**error),
        DataFusionError::Internal(words) => of_words(of_internal(words)),
        DataFusionError::IoError(_)
        | DataFusionError::ObjectStore(_)
        | DataFusionError::ParquetError(_) => {
            Error::new(SqlState::IoError, error.strip_backtrace())
        }
        DataFusionError::ExecutionJoin(_)
        | DataFusionError::Substrait(_)
        | DataFusionError::Ffi(_)
        // Below these is the root that was asked for.
        | DataFusionError::Context(..)
        | DataFusionError::Diagnostic(..)
        | DataFusionError::Collection(_)
        | DataFusionError::Shared(_) => {
            Error::new(SqlState::InternalError, error.strip_backtrace())
        }
    }
}

/// What was said of the engine's words.
fn of_words(told: Told) -> Error {
    let error = Error::new(told.state, with_type_names(&told.message));
    match told.hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

fn of_external(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Error {
    if let Some(own) = error.downcast_ref::<Error>() {
        own.clone()
    } else if let Some(error) = error.downcast_ref::<orrery_runtime::Error>() {
        of_runtime(error)
    } else if let Some(error) = error.downcast_ref::<orrery_storage::Error>() {
        of_storage(error)
    } else if let Some(error) = error.downcast_ref::<orrery_table_scan::OutOfRange>() {
        Error::new(SqlState::NumericValueOutOfRange, error.to_string())
    } else if let Some(error) = error.downcast_ref::<orrery_postgres_tables::Error>() {
        of_foreign(error)
    } else {
        let words = error.to_string();
        match of_value(&words) {
            Some(told) => of_words(told),
            None => Error::new(SqlState::InternalError, words),
        }
    }
}

fn of_runtime(error: &orrery_runtime::Error) -> Error {
    match error {
        orrery_runtime::Error::OutOfTime { .. } => {
            Error::new(SqlState::QueryCanceled, error.to_string())
        }
        orrery_runtime::Error::Busy => Error::new(SqlState::OutOfMemory, error.to_string()),
        orrery_runtime::Error::OverBudget { .. } => {
            Error::new(SqlState::ConfigurationLimitExceeded, error.to_string())
        }
        orrery_runtime::Error::Engine(error) => of_root(error.find_root()),
    }
}

/// What befell a table of another server.
fn of_foreign(error: &orrery_postgres_tables::Error) -> Error {
    use orrery_postgres_tables::Error as Foreign;
    let made = |state| Error::new(state, error.to_string());
    match error {
        Foreign::NotAllowed { .. } => made(SqlState::InsufficientPrivilege).with_hint(
            "Hosts are allowed when the process is started: serve --foreign-allow HOST.",
        ),
        Foreign::Invalid(_) => made(SqlState::InvalidParameterValue),
        Foreign::Unsupported { hint, .. } => {
            made(SqlState::FeatureNotSupported).with_hint(hint.as_str())
        }
        Foreign::NoTable { .. } => made(SqlState::UndefinedTable),
        Foreign::Connect { .. } => made(SqlState::ForeignConnectionError),
        Foreign::Source { detail, .. } => match detail {
            Some(detail) => made(SqlState::ForeignDataError).with_detail(detail.as_str()),
            None => made(SqlState::ForeignDataError),
        },
        Foreign::Lost { .. } | Foreign::Value { .. } => made(SqlState::ForeignDataError),
        Foreign::Changed { .. } => made(SqlState::ForeignDataError)
            .with_hint("Drop the external table, and create it anew."),
    }
}

impl From<orrery_postgres_tables::Error> for Error {
    fn from(error: orrery_postgres_tables::Error) -> Self {
        of_foreign(&error)
    }
}

impl From<orrery_storage::Error> for Error {
    fn from(error: orrery_storage::Error) -> Self {
        of_storage(&error)
    }
}

impl From<orrery_runtime::Error> for Error {
    fn from(error: orrery_runtime::Error) -> Self {
        of_runtime(&error)
    }
}

/// Violations as PostgreSQL words them; what befell the files in the storage's own words.
fn of_storage(error: &orrery_storage::Error) -> Error {
    use orrery_storage::Error as Stored;
    let state = match error {
        Stored::NotNull { table, column } => {
            return Error::new(
                SqlState::NotNullViolation,
                format!(
                    "null value in column \"{column}\" of relation \"{table}\" violates not-null constraint"
                ),
            )
            .of_table(&table.schema, &table.name)
            .of_column(column);
        }
        Stored::Duplicate {
            table,
            constraint,
            columns,
            key,
        } => {
            let words = format!("duplicate key value violates unique constraint \"{constraint}\"");
            return Error::new(SqlState::UniqueViolation, words)
                .with_detail(format!("Key ({columns})=({key}) already exists."))
                .of_table(&table.schema, &table.name)
                .of_constraint(constraint);
        }
        Stored::TurnEnded { reason, .. } => {
            return Error::new(
                SqlState::SerializationFailure,
                format!("this server does not write the database any more: {reason}"),
            )
            .with_detail("Nothing of the transaction was committed.")
            .with_hint("The transaction might succeed if retried.");
        }
        Stored::OutcomeUnknown { change, what, .. } => {
            return Error::new(
                SqlState::TransactionResolutionUnknown,
                format!("it is not known whether {change} was made: {what}"),
            )
            .with_hint("Look whether what it changed is there before you change it again.");
        }
        Stored::CommitConflict { .. } => SqlState::SerializationFailure,
        Stored::NoSuchCommit { .. } => SqlState::SnapshotTooOld,
        Stored::TransactionMemory { .. } => SqlState::OutOfMemory,
        Stored::TransactionTooLarge { .. } => SqlState::ProgramLimitExceeded,
        Stored::Rows { .. } | Stored::WrongArray { .. } | Stored::InvalidInput { .. } => {
            SqlState::InternalError
        }
        _ => SqlState::IoError,
    };
    Error::new(state, error.to_string())
}

/// What a memory pool refused: for want of memory, or by a limit of who asks.
fn of_memory(words: &str) -> Error {
    let refusal = words_of_refusal(words);
    match is_refused_by_account(words) {
        true => Error::new(SqlState::ConfigurationLimitExceeded, refusal),
        false => Error::new(SqlState::OutOfMemory, format!("out of memory: {refusal}")),
    }
}

fn of_parser(error: &ParserError) -> Error {
    match error {
        ParserError::TokenizerError(words) | ParserError::ParserError(words) => {
            let words = words.split(" at Line: ").next().unwrap_or(words);
            Error::new(SqlState::SyntaxError, words)
        }
        ParserError::RecursionLimitExceeded => Error::new(
            SqlState::StatementTooComplex,
            "the statement is nested too deeply",
        ),
    }
}

fn of_schema(error: &SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound { field, .. } => {
            let name = match &field.relation {
                Some(table) => format!("{}.{}", table.table(), field.name),
                None => format!("\"{}\"", field.name),
            };
            Error::new(
                SqlState::UndefinedColumn,
                format!("column {name} does not exist"),
            )
        }
        SchemaError::AmbiguousReference { field } => Error::new(
            SqlState::AmbiguousColumn,
            format!("column reference \"{}\" is ambiguous", field.name),
        ),
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => Error::new(
            SqlState::DuplicateColumn,
            format!("column \"{name}\" is there more than once"),
        ),
    }
}

fn of_arrow(error: &ArrowError) -> Error {
    match error {
        ArrowError::DivideByZero => Error::new(SqlState::DivisionByZero, "division by zero"),
        ArrowError::ArithmeticOverflow(words) => Error::new(
            SqlState::NumericValueOutOfRange,
            format!("out of range: {words}"),
        ),
        ArrowError::CastError(words) => match of_text(words) {
            Some(told) => of_words(told),
            None => Error::new(state_of_cast(words), with_type_names(words)),
        },
        ArrowError::ParseError(words) => Error::new(SqlState::InvalidDatetimeFormat, words),
        ArrowError::NotYetImplemented(words) => of_words(of_missing(words)),
        ArrowError::MemoryError(words) => of_memory(words),
        ArrowError::CsvError(words) | ArrowError::JsonError(words) => {
            Error::new(SqlState::BadCopyFileFormat, words)
        }
        ArrowError::IoError(words, _) | ArrowError::ParquetError(words) => {
            Error::new(SqlState::IoError, words)
        }
        ArrowError::InvalidArgumentError(words) if words.contains("is too large to store") => {
            Error::new(SqlState::NumericValueOutOfRange, words)
        }
        ArrowError::InvalidArgumentError(words) => {
            Error::new(SqlState::InvalidParameterValue, with_type_names(words))
        }
        ArrowError::ExternalError(error) => match error.downcast_ref::<DataFusionError>() {
            Some(error) => of_root(error.find_root()),
            None => Error::new(SqlState::InternalError, error.to_string()),
        },
        ArrowError::ComputeError(words) => of_computation(words),
        ArrowError::OffsetOverflowError(_) => Error::new(
            SqlState::ProgramLimitExceeded,
            "the texts of one column of a batch of rows are more than 2 GB: ask for shorter values or fewer rows",
        ),
        ArrowError::SchemaError(_)
        | ArrowError::AvroError(_)
        | ArrowError::IpcError(_)
        | ArrowError::CDataInterface(_)
        | ArrowError::DictionaryKeyOverflowError
        | ArrowError::RunEndIndexOverflowError => {
            Error::new(SqlState::InternalError, error.to_string())
        }
    }
}

/// Values that a function or an operator cannot work on; arrow has words for them and no kinds.
fn of_computation(words: &str) -> Error {
    if words.contains("CompiledTooBig") {
        return Error::new(
            SqlState::StatementTooComplex,
            "a regular expression is too large when its repetitions are written out: repeat less of it, or less often",
        );
    }
    if let Some(told) = of_value(words) {
        return of_words(told);
    }
    let words = words.trim_start_matches("Execution error: ");
    let is_overflow = words.to_ascii_lowercase().contains("overflow");
    match is_overflow {
        true => Error::new(
            SqlState::NumericValueOutOfRange,
            format!("out of range: {words}"),
        ),
        false => Error::new(SqlState::InvalidParameterValue, with_type_names(words)),
    }
}

/// A cast fails over the text, over the calendar or over the range; arrow has one kind for all.
fn state_of_cast(words: &str) -> SqlState {
    if words.contains("overflow")
        || words.contains("too large")
        || words.starts_with("Can't cast value")
    {
        SqlState::NumericValueOutOfRange
    } else if words.contains("Date") || words.contains("Timestamp") || words.contains("Time") {
        SqlState::InvalidDatetimeFormat
    } else {
        SqlState::InvalidTextRepresentation
    }
}

/// The place that the parser's words end with: ` at Line: 1, Column: 8`.
fn place_in_words(words: &str, text: &str) -> Option<usize> {
    let (_, place) = words.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    let column: String = column.chars().take_while(char::is_ascii_digit).collect();
    character(text, line.parse().ok()?, column.parse().ok()?)
}

/// Characters from the begin, of a line and a column counted from one.
fn character(text: &str, line: u64, column: u64) -> Option<usize> {
    if text.is_empty() || line == 0 || column == 0 {
        return None;
    }
    let lines_before = text
        .split_inclusive('\n')
        .take(usize::try_from(line - 1).ok()?);
    let before: usize = lines_before.map(|line| line.chars().count()).sum();
    Some(before + usize::try_from(column).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_characters_of_the_text() {
        let text = "select 'ä',\n  b\nfrom t";
        assert_eq!(character(text, 1, 1), Some(1));
        assert_eq!(character(text, 2, 3), Some(15));
        assert_eq!(text.chars().nth(14), Some('b'));
        assert_eq!(character(text, 0, 0), None);
        assert_eq!(character("", 1, 1), None);
    }

    #[test]
    fn a_value_in_a_message_is_cut_and_what_is_wrong_stays() {
        let words = |value: &str| format!("Cannot cast string '{value}' to value of Int32 type");
        for value in ["1x".repeat(1 << 19), "\u{e9}\u{1f600}".repeat(200_000)] {
            let error =
                DataFusionError::ArrowError(Box::new(ArrowError::CastError(words(&value))), None);
            let told = Error::of_run(&error);
            assert_eq!(told.state.code(), "22P02");
            assert!(
                told.message.len() < WORDS_BYTES_MAX,
                "{}",
                told.message.len()
            );
            let begin = "invalid input syntax for type integer: \"";
            assert!(told.message.starts_with(begin), "{told}");
            assert!(told.message.ends_with('"'), "{told}");
            let told = Error::new(SqlState::UniqueViolation, "a").with_detail(words(&value));
            assert!(told.detail.unwrap().len() < WORDS_BYTES_MAX);
        }
        assert_eq!(
            Error::new(SqlState::IoError, words("1x")).message,
            words("1x")
        );
    }

    #[test]
    fn an_error_of_ours_comes_back_as_it_was() {
        let own = Error::new(SqlState::UniqueViolation, "key (1) is there already");
        let wrapped = DataFusionError::from(own.clone()).context("while inserting");
        assert_eq!(Error::of_run(&wrapped), own);
        let through_arrow = ArrowError::ExternalError(Box::new(DataFusionError::from(own.clone())));
        let through_arrow = DataFusionError::ArrowError(Box::new(through_arrow), None);
        assert_eq!(Error::of_run(&through_arrow), own);
    }

    #[test]
    fn a_commit_whose_outcome_is_unknown_is_told_as_such() {
        let stored = orrery_storage::Error::OutcomeUnknown {
            change: orrery_storage::PendingChange::Commit(7),
            path: "/db/log/000001.log".into(),
            what: "another node leads".to_owned(),
        };
        let told = Error::from(stored);
        assert_eq!(told.state.code(), "08007");
        assert!(
            told.message.contains("not known whether commit 7"),
            "{told}"
        );
    }

    #[test]
    fn a_message_for_people_has_the_hint_and_the_place() {
        let mut error = Error::new(SqlState::UndefinedFunction, "function sun does not exist");
        error = error.with_hint("Did you mean 'sum'?");
        error.position = Some(8);
        assert_eq!(
            error.to_string(),
            "function sun does not exist; Did you mean 'sum'? (at character 8)"
        );
    }
}
