//! Syntax errors: what is wrong, where, and the likely fix.
//!
//! The parser makes these as data; the sentences for people are in [`message`](crate::message).

use std::ops::Range;

use crate::expected::ExpectedSet;

/// Bytes of the text that a mend repeats of each of its parts.
pub(crate) const REPEATED_BYTES_MAX: usize = 60;
/// What a mend writes: two or three parts of the text, and some words.
const WRITTEN_BYTES_MAX: usize = 4 * REPEATED_BYTES_MAX;

/// An error of syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// What is wrong.
    pub kind: ErrorKind,
    /// The bytes of the text that are wrong; empty at its end.
    pub span: Range<usize>,
    /// Its line, from 1.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
    /// What stands there, cut to a readable length; empty at the end of the text.
    pub found: String,
    /// What may stand there. Where [`kind`](Self::kind) says what is missing this is more than
    /// that.
    pub expected: ExpectedSet,
    /// The likely mend.
    pub hint: Option<Hint>,
}

/// A change of a text that mends it, or lets the reader come further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The bytes of the text that go; empty where something is put in.
    pub span: Range<usize>,
    /// What stands there then.
    pub text: String,
}

/// A place in the text for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl Position {
    /// Of a byte of a text.
    pub fn of(text: &str, byte: usize) -> Self {
        let bytes = text.as_bytes();
        let before = &bytes[..byte.min(bytes.len())];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |place| place + 1);
        Self {
            line: memchr::memchr_iter(b'\n', before).count() + 1,
            column: String::from_utf8_lossy(&before[line_start..])
                .chars()
                .count()
                + 1,
        }
    }
}

/// Kinds of errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Something that may not stand there.
    Unexpected,
    /// There is nothing in the text.
    Empty,
    /// A word that is no keyword, where one has to stand.
    UnknownKeyword,
    /// A word where a variable or an IRI has to stand.
    BareWord,
    /// A query was asked for, and this is an update.
    IsUpdate,
    /// An update was asked for, and this is a query.
    IsQuery,
    /// `prefix:` without its declaration.
    UndeclaredPrefix {
        /// The prefix without its colon.
        prefix: String,
    },
    /// A relative IRI without a base.
    RelativeIri {
        /// As it is written.
        iri: String,
    },
    /// An IRI that is none.
    InvalidIri {
        /// As it is written, or with its prefix resolved.
        iri: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A blank or another character in an IRI that it cannot hold.
    CharacterInIri {
        /// The character.
        character: char,
    },
    /// An IRI without its `>`.
    UnclosedIri,
    /// A string without its end.
    UnclosedString,
    /// A `\` in a string or IRI that begins no escape.
    InvalidEscape,
    /// A language tag, or base direction, that is none.
    InvalidLanguageTag,
    /// A bracket is not closed before the text ends, or before something that cannot stand in it.
    UnclosedBracket {
        /// The bracket.
        bracket: &'static str,
        /// Where it is opened.
        opened: Position,
        /// The token after which it should be closed.
        after: String,
    },
    /// A bracket that closes nothing.
    UnopenedBracket,
    /// A bracket has to follow a word.
    MissingBracket {
        /// `{` or `(`.
        bracket: &'static str,
        /// The word before it.
        after: String,
    },
    /// `AS ?name` is missing in a bracket of `SELECT`, or of `BIND`.
    MissingAs,
    /// A function or aggregate in `SELECT` outside of brackets.
    ExpressionWithoutBrackets,
    /// A comma is missing between arguments.
    MissingComma,
    /// A comma where there is none.
    NeedlessComma {
        /// Of what the list is.
        between: &'static str,
    },
    /// A word of the grammar is missing.
    MissingKeyword {
        /// The word.
        keyword: &'static str,
    },
    /// A part of a triple or of an expression is missing.
    MissingPart {
        /// `an object` and the like.
        part: &'static str,
    },
    /// A clause that belongs somewhere else.
    Misplaced {
        /// The clause.
        clause: &'static str,
        /// Where it stands.
        place: &'static str,
    },
    /// A text of another language.
    OtherLanguage {
        /// Its name.
        language: &'static str,
    },
    /// A character that no token of SPARQL begins with, but looks like one that does.
    ForeignCharacter {
        /// The character.
        character: char,
    },
    /// A pattern of `PATHS` without the variable that it is for.
    NotBoundByPattern {
        /// Without `?`.
        variable: String,
    },
    /// A `.` is missing between triples.
    MissingDot,
    /// A `;` is missing between operations.
    MissingSemicolon,
    /// A sign or word of another language.
    ForeignOperator,
    /// A function that SPARQL does not have.
    UnknownFunction {
        /// As it is written.
        name: String,
    },
    /// Too many or too few arguments.
    ArgumentCount {
        /// The function.
        function: &'static str,
        /// The fewest that it takes.
        least: usize,
        /// The most.
        most: usize,
        /// How many there are.
        given: usize,
    },
    /// A clause behind one that it must stand before.
    ClauseOrder {
        /// The clause.
        clause: &'static str,
        /// The one that it comes before.
        before: &'static str,
    },
    /// `LIMIT`, `OFFSET`: no whole number, or too large.
    InvalidNumber {
        /// The clause.
        clause: &'static str,
    },
    /// A variable is selected that is not grouped by.
    NotGrouped {
        /// Its name without the mark.
        variable: String,
        /// Whether the query has a `GROUP BY`.
        has_group_by: bool,
    },
    /// `BIND` or `SELECT (... AS ...)` to a variable that has values already.
    AlreadyBound {
        /// Its name without the mark.
        variable: String,
    },
    /// An assignment inside of `LATERAL` to a variable that has a value before it.
    AssignedInLateral {
        /// Its name without the mark.
        variable: String,
    },
    /// A variable twice in a list where it stands once.
    RepeatedVariable {
        /// Its name without the mark.
        variable: String,
    },
    /// `SELECT *` of groups.
    StarWithGroups {
        /// Whether the query has a `GROUP BY`.
        has_group_by: bool,
    },
    /// An aggregate where none can be computed.
    MisplacedAggregate,
    /// An aggregate inside another.
    NestedAggregate,
    /// A row of `VALUES` with more or fewer terms than variables.
    RowLength {
        /// As many as variables.
        expected: usize,
        /// How many there are.
        given: usize,
    },
    /// A variable in `INSERT DATA` or `DELETE DATA`.
    VariableInData,
    /// A blank node in what is deleted.
    BlankNodeInDelete,
    /// A blank node label in two groups of patterns, or in two operations, each of which would mean
    /// another node.
    SharedLabel {
        /// Without its `_:`.
        label: String,
    },
    /// A literal or triple term as the subject of data, or of a triple term.
    InvalidSubject,
    /// A reifier or annotation at a path.
    AnnotatedPath,
    /// Brackets inside each other.
    TooDeep {
        /// The bound.
        nesting_max: usize,
    },
    /// Operators and groups one after the other.
    TooManyOperators {
        /// The bound.
        operators_max: usize,
    },
    /// Long terms or paths that stand for many, as those of subjects with many objects.
    TooManyCopies {
        /// The bound of what they take together.
        bytes_max: usize,
    },
    /// More text than can be read.
    TooLong,
}

/// The likely mend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Declare the prefix.
    DeclarePrefix {
        /// Without its colon.
        prefix: String,
        /// What it most probably stands for.
        iri: &'static str,
        /// The byte of the text before which declarations stand.
        at: usize,
    },
    /// Declare the prefix, whatever it stands for.
    DeclareUnknownPrefix {
        /// Without its colon.
        prefix: String,
    },
    /// Write this instead.
    Write(String),
    /// Write this instead of more than what is wrong.
    Replace {
        /// The bytes of the text that go.
        span: Range<usize>,
        /// What stands there then.
        text: String,
    },
    /// Write one of these instead, by what is meant.
    WriteOneOf(Vec<(String, &'static str)>),
    /// Was this meant?
    Meant(&'static str),
    /// Leave it out.
    LeaveOut,
    /// `GROUP BY ?variable`.
    GroupBy {
        /// Without its mark.
        variable: String,
        /// Whether there is a `GROUP BY` of others.
        has_group_by: bool,
    },
    /// `BASE <...>`, or the option.
    SetBase,
    /// Send it as the other one.
    SendAsUpdate,
    /// Send it as the other one.
    SendAsQuery,
    /// Comments begin with `#`.
    Comment,
    /// A sentence that fits this place only.
    Note(&'static str),
}

impl Hint {
    /// Bytes of what it writes, all that it may repeat of the text among them.
    fn written_bytes(&self) -> usize {
        match self {
            Self::Write(text) | Self::Replace { text, .. } => text.len(),
            Self::WriteOneOf(all) => all.iter().map(|(text, _)| text.len()).sum(),
            Self::DeclarePrefix { prefix, .. } | Self::DeclareUnknownPrefix { prefix } => {
                prefix.len()
            }
            Self::GroupBy { variable, .. } => variable.len(),
            Self::Meant(_)
            | Self::LeaveOut
            | Self::SetBase
            | Self::SendAsUpdate
            | Self::SendAsQuery
            | Self::Comment
            | Self::Note(_) => 0,
        }
    }
}

impl SyntaxError {
    /// The same as it leaves the parser: without a mend that repeats so much of the text that
    /// nobody reads it.
    pub(crate) fn for_people(mut self: Box<Self>) -> Box<Self> {
        if let Some(hint) = &self.hint
            && hint.written_bytes() > WRITTEN_BYTES_MAX
        {
            self.hint = None;
        }
        self
    }
}
