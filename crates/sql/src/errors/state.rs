//! PostgreSQL's error codes (SQLSTATE):
//! <https://www.postgresql.org/docs/current/errcodes-appendix.html>.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident $code:literal)*) => {
        /// The error code of a statement, by which clients decide what to do.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum SqlState {
            $($(#[$doc])* $name,)*
        }

        impl SqlState {
            /// The five characters.
            pub fn code(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            /// The state of a code, if there is one.
            pub fn of_code(code: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|state| state.code() == code)
            }

            const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

states! {
    /// Whether a transaction was committed is not known.
    TransactionResolutionUnknown "08007"
    /// A feature that is not there.
    FeatureNotSupported "0A000"
    /// A row twice where once is allowed, or more rows than one.
    CardinalityViolation "21000"
    /// A text longer than its column may be.
    StringDataRightTruncation "22001"
    /// A number that does not fit its type.
    NumericValueOutOfRange "22003"
    /// A text that is no date or time.
    InvalidDatetimeFormat "22007"
    /// A time that is too early or too late.
    DatetimeFieldOverflow "22008"
    /// A part of a text that cannot be.
    SubstringError "22011"
    /// Division by zero.
    DivisionByZero "22012"
    /// A number of groups that cannot be.
    InvalidArgumentForNtile "22014"
    /// A place in a window that cannot be.
    InvalidArgumentForNthValue "22016"
    /// Bytes that are no text.
    CharacterNotInRepertoire "22021"
    /// A number that has no such power or root.
    InvalidArgumentForPowerFunction "2201F"
    /// A pattern that is no regular expression.
    InvalidRegularExpression "2201B"
    /// A negative number of rows.
    InvalidRowCountInLimitClause "2201W"
    /// A negative number of rows to leave out.
    InvalidRowCountInResultOffsetClause "2201X"
    /// A setting or an argument with a value that it cannot have.
    InvalidParameterValue "22023"
    /// A text that is not a value of the type wanted.
    InvalidTextRepresentation "22P02"
    /// A row of a CSV file that is not as its table.
    BadCopyFileFormat "22P04"
    /// NULL where it must not be.
    NotNullViolation "23502"
    /// A key that is not there in the table referred to, or is still referred to.
    ForeignKeyViolation "23503"
    /// A key that is there already.
    UniqueViolation "23505"
    /// A row that breaks a condition of its table.
    CheckViolation "23514"
    /// What cannot be done within a transaction.
    ActiveSqlTransaction "25001"
    /// A change where nothing may be changed.
    ReadOnlySqlTransaction "25006"
    /// No transaction is open.
    NoActiveSqlTransaction "25P01"
    /// The transaction has failed, and can only be rolled back.
    InFailedSqlTransaction "25P02"
    /// The transaction was ended because nothing was asked in it for too long.
    IdleInTransactionSessionTimeout "25P03"
    /// No statement is kept under that name.
    InvalidSqlStatementName "26000"
    /// Somebody who is not let in.
    InvalidAuthorization "28000"
    /// A wrong password.
    InvalidPassword "28P01"
    /// Something else needs what is to go.
    DependentObjectsStillExist "2BP01"
    /// No such cursor.
    InvalidCursorName "34000"
    /// No such savepoint.
    InvalidSavepointSpecification "3B001"
    /// No such schema.
    InvalidSchemaName "3F000"
    /// Another transaction changed the same.
    SerializationFailure "40001"
    /// Neither syntax nor a name, but not to be planned.
    SyntaxErrorOrAccessRuleViolation "42000"
    /// What the session was not allowed to do.
    InsufficientPrivilege "42501"
    /// What cannot be done as it is now.
    ObjectNotInPrerequisiteState "55000"
    /// What somebody else changes at the moment.
    ObjectInUse "55006"
    /// Not SQL.
    SyntaxError "42601"
    /// A column that cannot be as it is defined.
    InvalidColumnDefinition "42611"
    /// A name longer than names may be.
    NameTooLong "42622"
    /// Two columns of one name.
    DuplicateColumn "42701"
    /// A name that two tables have a column of.
    AmbiguousColumn "42702"
    /// No such column.
    UndefinedColumn "42703"
    /// No such constraint, index or type.
    UndefinedObject "42704"
    /// A constraint of that name is there already.
    DuplicateObject "42710"
    /// A column neither grouped by nor in an aggregate.
    GroupingError "42803"
    /// Values of a type where another is wanted.
    DatatypeMismatch "42804"
    /// A view where a table is wanted, or the other way round.
    WrongObjectType "42809"
    /// A foreign key to columns that no constraint makes unique.
    InvalidForeignKey "42830"
    /// Types of which none is made into the other.
    CannotCoerce "42846"
    /// No such function, or not for such arguments.
    UndefinedFunction "42883"
    /// No such table.
    UndefinedTable "42P01"
    /// A parameter without a value.
    UndefinedParameter "42P02"
    /// A cursor of that name is there already.
    DuplicateCursor "42P03"
    /// A statement is kept under that name already.
    DuplicatePreparedStatement "42P05"
    /// A schema of that name is there already.
    DuplicateSchema "42P06"
    /// A table, view or index of that name is there already.
    DuplicateTable "42P07"
    /// No constraint makes these columns unique.
    InvalidColumnReference "42P10"
    /// A table that cannot be as it is defined.
    InvalidTableDefinition "42P16"
    /// More is asked for than can be done now.
    InsufficientResources "53000"
    /// No memory or place for spills left.
    OutOfMemory "53200"
    /// As many statements are running as may.
    TooManyConnections "53300"
    /// A limit of who asks.
    ConfigurationLimitExceeded "53400"
    /// A text longer than any that is taken.
    ProgramLimitExceeded "54000"
    /// Expressions nested deeper than they may be.
    StatementTooComplex "54001"
    /// More columns than a table may have.
    TooManyColumns "54011"
    /// A setting that says what cannot be otherwise.
    CantChangeRuntimeParam "55P02"
    /// Nobody waits for the answer any more, or time is up.
    QueryCanceled "57014"
    /// Who has to do it cannot be reached now.
    CannotConnectNow "57P03"
    /// Something of the machine fails that is no file.
    SystemError "58000"
    /// A file cannot be read or written.
    IoError "58030"
    /// No such file.
    UndefinedFile "58P01"
    /// An old state that is not kept.
    SnapshotTooOld "72000"
    /// Another endpoint did not answer as it should.
    ForeignDataError "HV000"
    /// Another server cannot be connected to.
    ForeignConnectionError "HV00N"
    /// A mistake of ours.
    InternalError "XX000"
}

impl Serialize for SqlState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for SqlState {
    /// What a newer process knows is a mistake of ours.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        Ok(Self::of_code(&code).unwrap_or(Self::InternalError))
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_five_characters_and_none_stands_twice() {
        let codes: BTreeSet<_> = SqlState::ALL.iter().map(|state| state.code()).collect();
        assert_eq!(codes.len(), SqlState::ALL.len());
        assert!(codes.iter().all(|code| code.len() == 5));
        assert_eq!(SqlState::UniqueViolation.to_string(), "23505");
    }
}
