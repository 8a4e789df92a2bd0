//! The sentences of syntax errors.

use std::borrow::Cow;
use std::fmt;

use crate::error::{ErrorKind, Hint, SyntaxError};
use crate::parser::closing;

impl SyntaxError {
    /// What is wrong and how to mend it, in one line, without the place.
    pub fn message(&self) -> String {
        let what = self.what();
        match self.mend() {
            Some(mend) => format!("{what}; {mend}"),
            None => what,
        }
    }

    /// How to mend it, if that can be told.
    pub fn mend(&self) -> Option<String> {
        self.hint.as_ref().map(sentence)
    }

    /// The line of the text with a mark under the place.
    ///
    /// ```text
    /// SELECT ?s, ?o WHERE { ?s ?p ?o }
    ///          ^
    /// ```
    pub fn drawn(&self, text: &str) -> String {
        let start = self.span.start.min(text.len());
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |place| place + 1);
        let line = text.get(line_start..).unwrap_or_default();
        let line = line.lines().next().unwrap_or_default();
        let column = start - line_start;
        // A long line is cut around the place.
        let from = floor(line, column.saturating_sub(WIDTH_MAX * 2 / 3));
        let to = floor(line, (from + WIDTH_MAX).min(line.len()));
        let shown = line[from..to].replace('\t', " ");
        let place = line.get(from..column).unwrap_or(line).chars().count();
        let marked = text.get(self.span.clone()).unwrap_or_default();
        let marked = marked.lines().next().unwrap_or_default().chars().count();
        let room = shown.chars().count().saturating_sub(place);
        let marks = marked.min(room).max(1);
        format!("{shown}\n{}{}", " ".repeat(place), "^".repeat(marks))
    }

    /// What stands where something else has to, and that.
    fn unexpected(&self) -> String {
        let (found, expected) = (&self.found, self.expected);
        // A mend says more than a long list.
        let is_told = !expected.is_empty()
            && (self.hint.is_none() || expected.iter().count() <= LISTED_BESIDE_MEND_MAX);
        match (found.is_empty(), !is_told) {
            (true, true) => "the text ends too early".to_owned(),
            (true, false) => format!("the text ends where there should be {expected}"),
            (false, true) => format!("`{found}` cannot stand here"),
            (false, false) => format!("`{found}` cannot stand here, only {expected}"),
        }
    }

    /// `before `x``, or at the end.
    fn before_found(&self) -> String {
        match self.found.is_empty() {
            true => "at the end".to_owned(),
            false => format!("before `{}`", self.found),
        }
    }

    fn what(&self) -> String {
        let found = &self.found;
        match &self.kind {
            ErrorKind::Unexpected => self.unexpected(),
            ErrorKind::Empty => "there is neither a query nor an update here".to_owned(),
            ErrorKind::UnknownKeyword => format!("unknown keyword {found}"),
            ErrorKind::BareWord => format!("`{found}` is no variable, IRI or keyword"),
            ErrorKind::IsUpdate => "this is an update, not a query".to_owned(),
            ErrorKind::IsQuery => "this is a query, not an update".to_owned(),
            ErrorKind::UndeclaredPrefix { prefix } => {
                format!("the prefix `{}:` is not declared", shortly(prefix))
            }
            ErrorKind::RelativeIri { iri } => {
                format!("`<{}>` is relative and there is no base", shortly(iri))
            }
            ErrorKind::InvalidIri { iri, reason } => {
                format!("`<{}>` is no IRI: {}", shortly(iri), shortly(reason))
            }
            ErrorKind::CharacterInIri { character } => match character {
                ' ' => "a space in an IRI".to_owned(),
                other => format!("`{}` in an IRI", other.escape_default()),
            },
            ErrorKind::UnclosedIri => format!(
                "the IRI begun at column {} is not closed with `>`",
                self.column
            ),
            ErrorKind::UnclosedString => {
                format!("the string begun at column {} is not closed", self.column)
            }
            ErrorKind::InvalidEscape => format!("`{found}` is no escape"),
            ErrorKind::InvalidLanguageTag => format!("`{found}` is no language tag"),
            ErrorKind::UnclosedBracket {
                bracket,
                opened,
                after,
            } => {
                let place = match opened.line == self.line {
                    true => format!("column {}", opened.column),
                    false => format!("line {}, column {}", opened.line, opened.column),
                };
                format!(
                    "`{}` is missing after `{after}`: the `{bracket}` at {place} is not closed",
                    closing(bracket)
                )
            }
            ErrorKind::UnopenedBracket => format!("`{found}` closes nothing"),
            ErrorKind::MissingBracket { bracket, after } => match after.is_empty() {
                true => format!("`{bracket}` is missing"),
                false => format!("`{bracket}` is missing after {after}"),
            },
            ErrorKind::MissingAs if self.names_itself() => {
                format!("AS is missing before `{found}`")
            }
            ErrorKind::MissingAs => format!("`AS ?name` is missing {}", self.before_found()),
            ErrorKind::MissingKeyword { keyword } => {
                format!("{keyword} is missing {}", self.before_found())
            }
            ErrorKind::MissingPart { part } => {
                format!("{part} is missing {}", self.before_found())
            }
            ErrorKind::NotBoundByPattern { variable } => {
                format!(
                    "the pattern that begins here does not bind ?{}",
                    shortly(variable)
                )
            }
            ErrorKind::Misplaced { clause, place } => format!("{clause} stands {place}"),
            ErrorKind::OtherLanguage { language } => {
                format!("this looks like {language}, not like SPARQL")
            }
            ErrorKind::ForeignCharacter { character } => {
                let code = u32::from(*character);
                match character.is_whitespace()
                    || character.is_control()
                    || is_invisible(*character)
                {
                    true => format!("the invisible character U+{code:04X} is no space of SPARQL"),
                    false => format!("`{character}` (U+{code:04X}) is no sign of SPARQL"),
                }
            }
            ErrorKind::ExpressionWithoutBrackets => {
                "an expression in SELECT stands in brackets and has a name".to_owned()
            }
            ErrorKind::MissingComma => {
                format!("a comma is missing between the arguments, before `{found}`")
            }
            ErrorKind::NeedlessComma { between } => format!("no commas between {between}"),
            ErrorKind::MissingDot => format!("a `.` is missing before `{found}`"),
            ErrorKind::MissingSemicolon => {
                format!("`;` is missing between operations, before `{found}`")
            }
            ErrorKind::ForeignOperator => format!("`{found}` is not SPARQL"),
            ErrorKind::UnknownFunction { name } => {
                format!("there is no function `{}`", shortly(name))
            }
            ErrorKind::ArgumentCount {
                function,
                least,
                most,
                given,
            } => format!("{function} takes {}, not {given}", counted(*least, *most)),
            ErrorKind::ClauseOrder { clause, before } => {
                format!("{clause} comes before {before}")
            }
            ErrorKind::InvalidNumber { clause } => {
                format!("{clause} takes a whole number from 0")
            }
            ErrorKind::NotGrouped {
                variable,
                has_group_by: true,
            } => format!("`?{}` is not in GROUP BY", shortly(variable)),
            ErrorKind::NotGrouped { variable, .. } => {
                let variable = shortly(variable);
                format!("`?{variable}` stands beside an aggregate and is not grouped by")
            }
            ErrorKind::AlreadyBound { variable } => {
                format!("`?{}` is bound already", shortly(variable))
            }
            ErrorKind::AssignedInLateral { variable } => format!(
                "`?{}` has a value before LATERAL, and cannot get another one inside",
                shortly(variable)
            ),
            ErrorKind::RepeatedVariable { variable } => {
                format!("`?{}` stands twice", shortly(variable))
            }
            ErrorKind::StarWithGroups { has_group_by: true } => {
                "SELECT * cannot be grouped".to_owned()
            }
            ErrorKind::StarWithGroups { .. } => {
                "an aggregate needs groups, which SELECT * has not".to_owned()
            }
            ErrorKind::MisplacedAggregate => {
                format!("{found} is an aggregate, which cannot stand here")
            }
            ErrorKind::NestedAggregate => "an aggregate stands inside another".to_owned(),
            ErrorKind::RowLength { expected, given } => format!(
                "a row of VALUES has {} for {}",
                number_of(*given, "term"),
                number_of(*expected, "variable")
            ),
            ErrorKind::VariableInData => {
                format!("`{found}`: DATA holds no variables; INSERT {{ .. }} WHERE {{ .. }} does")
            }
            ErrorKind::BlankNodeInDelete => {
                format!(
                    "`{found}`: what is deleted has no blank nodes; a variable and WHERE find them"
                )
            }
            ErrorKind::SharedLabel { label } => format!(
                "the blank node label _:{} stands in two groups or operations, where it would mean two nodes",
                shortly(label)
            ),
            ErrorKind::InvalidSubject => {
                format!("`{found}` is no subject: it is an IRI, a blank node or a variable")
            }
            ErrorKind::AnnotatedPath => "a path has no reifiers or annotations".to_owned(),
            ErrorKind::TooDeep { nesting_max } => {
                format!("brackets are nested deeper than {nesting_max} levels")
            }
            ErrorKind::TooManyOperators { operators_max } => {
                format!("more than {operators_max} operators and groups in one request")
            }
            ErrorKind::TooManyCopies { bytes_max } => {
                format!("long terms or paths stand for many: more than {bytes_max} bytes of them")
            }
            ErrorKind::TooLong => "the text is longer than 4 GiB".to_owned(),
        }
    }
}

/// The most that may stand at a place that is listed beside a mend.
const LISTED_BESIDE_MEND_MAX: usize = 3;
/// Bytes of a name or an IRI that are repeated.
const NAME_BYTES_MAX: usize = 200;
/// Characters of a line that are shown.
const WIDTH_MAX: usize = 120;

/// What a message repeats of a name or an IRI.
fn shortly(text: &str) -> Cow<'_, str> {
    match text.len() <= NAME_BYTES_MAX {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("{}…", &text[..floor(text, NAME_BYTES_MAX)])),
    }
}

/// The last boundary of characters up to a place.
fn floor(line: &str, mut place: usize) -> usize {
    while !line.is_char_boundary(place) {
        place -= 1;
    }
    place
}

/// Whether nothing is seen where a character stands.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    )
}

fn number_of(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

fn counted(least: usize, most: usize) -> String {
    const WORDS: [&str; 5] = ["no", "one", "two", "three", "four"];
    let word = |count: usize| WORDS.get(count).copied().unwrap_or("many");
    let noun = if most == 1 { "argument" } else { "arguments" };
    match least == most {
        true => format!("{} {noun}", word(least)),
        false => format!("{} or {} {noun}", word(least), word(most)),
    }
}

fn sentence(hint: &Hint) -> String {
    match hint {
        Hint::DeclarePrefix { prefix, iri, .. } => format!("add `PREFIX {prefix}: <{iri}>`"),
        Hint::DeclareUnknownPrefix { prefix } => {
            format!("add `PREFIX {prefix}: <...>` before it, with the IRI that it stands for")
        }
        Hint::Write(text) | Hint::Replace { text, .. } => format!("write `{}`", text.trim()),
        Hint::WriteOneOf(all) => {
            let all: Vec<String> = all
                .iter()
                .map(|(text, meant)| format!("`{text}` for {meant}"))
                .collect();
            format!("write {}", all.join(", "))
        }
        Hint::Meant(word) => format!("{word}?"),
        Hint::LeaveOut => "leave it out".to_owned(),
        Hint::GroupBy {
            variable,
            has_group_by: false,
        } => format!("add `GROUP BY ?{variable}`, or take an aggregate of it"),
        Hint::GroupBy { variable, .. } => {
            format!("add it there, or take an aggregate of it: `(SAMPLE(?{variable}) AS ?name)`")
        }
        Hint::SetBase => "write it in full, or give `--base` or `BASE <...>`".to_owned(),
        Hint::SendAsUpdate => "send it as one (`orrery update`, or parameter `update`)".to_owned(),
        Hint::SendAsQuery => "send it as one (`orrery query`, or parameter `query`)".to_owned(),
        Hint::Comment => "comments begin with `#`".to_owned(),
        Hint::Note(note) => (*note).to_owned(),
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, column {}: {}",
            self.line,
            self.column,
            self.message()
        )
    }
}

impl std::error::Error for SyntaxError {}
