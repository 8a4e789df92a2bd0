//! Diagnoses where a term, an expression or a bracket is expected.

use crate::error::{ErrorKind, Hint};
use crate::expected::Thing;
use crate::parser::{Failure, Parser};
use crate::suggest::{datatype_for, function_for};
use crate::token::{Token, TokenKind};
use crate::word::Keyword;

const PATH_WITHOUT_VARIABLES: Hint =
    Hint::Note("a path has no variables; a variable stands by itself where a predicate does");
const TRIPLE: Hint = Hint::Note("a triple has a subject, a predicate and an object");

/// Whether nothing is here where a part has to be.
fn ends_part(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::End
            | TokenKind::RightBrace
            | TokenKind::RightBracket
            | TokenKind::Dot
            | TokenKind::Semicolon
            | TokenKind::Comma
    )
}

impl Parser<'_, '_> {
    /// A word that stands for a variable, perhaps.
    fn bare_word(&self) -> Option<Failure> {
        // `a` is a keyword for predicates only.
        let is_word = matches!(
            self.token.kind,
            TokenKind::Word | TokenKind::Keyword(Keyword::A)
        );
        if !is_word {
            return None;
        }
        let hint = Hint::Write(format!("?{}", self.text_of(self.token)));
        Some(self.error(ErrorKind::BareWord).with_hint(hint))
    }

    /// A word that stands for a variable, or for what else a term may be.
    fn bare_term(&self, others: &[(&str, &str, &'static str)]) -> Option<Failure> {
        let mut failure = self.bare_word()?;
        let word = self.text_of(self.token);
        let mut all = vec![(format!("?{word}"), "a variable")];
        let others = others.iter();
        all.extend(others.map(|(before, after, meant)| (format!("{before}{word}{after}"), *meant)));
        failure.hint = Some(Hint::WriteOneOf(all));
        Some(failure)
    }

    pub(in crate::parser) fn no_variable(&self) -> Failure {
        self.wrong_token()
            .or_else(|| self.bare_word())
            .or_else(|| self.quoted_name())
            .unwrap_or_else(|| self.unexpected())
    }

    /// `'name'` where a variable has to stand.
    pub(super) fn quoted_name(&self) -> Option<Failure> {
        let text = self.text_of(self.token);
        let name = text.trim_matches(['"', '\'']);
        let is_name = self.token.kind == TokenKind::String
            && !name.is_empty()
            && name.bytes().all(crate::chars::is_ascii_variable);
        is_name.then(|| {
            let hint = Hint::Write(format!("?{name}"));
            self.error(ErrorKind::Unexpected).with_hint(hint)
        })
    }

    pub(in crate::parser) fn no_iri(&self) -> Failure {
        if let Some(failure) = self.wrong_token() {
            return failure;
        }
        match self.token.kind {
            TokenKind::PrefixedName => match self.iri_without_signs(self.token) {
                Some(failure) => failure,
                None => self.unexpected(),
            },
            TokenKind::Word => {
                let is_table = self.previous.kind == TokenKind::Keyword(Keyword::From);
                if is_table && let Some(failure) = self.other_language() {
                    return failure;
                }
                self.address_without_signs()
            }
            TokenKind::LeftBrace if self.previous.kind == TokenKind::Keyword(Keyword::Graph) => {
                let hint = Hint::Write("?g {".to_owned());
                self.error(ErrorKind::MissingPart {
                    part: "the graph, an IRI or a variable,",
                })
                .with_hint(hint)
            }
            _ => self.unexpected(),
        }
    }

    /// What stands behind `^^`.
    pub(in crate::parser) fn no_datatype(&self) -> Failure {
        let mut failure = self.no_iri();
        if self.token.kind == TokenKind::Word {
            let known = datatype_for(self.text_of(self.token));
            failure.hint = known.or(failure.hint);
        }
        failure
    }

    pub(in crate::parser) fn no_prefix(&self) -> Failure {
        match self.token.kind {
            TokenKind::Word | TokenKind::Keyword(_) | TokenKind::BuiltIn(_) => {
                let hint = Hint::Write(format!("{}:", self.text_of(self.token)));
                self.error(ErrorKind::Unexpected).with_hint(hint)
            }
            TokenKind::PrefixedName => {
                let hint = Hint::Note("a prefix ends with its colon");
                self.error(ErrorKind::Unexpected).with_hint(hint)
            }
            TokenKind::Iri => self
                .error(ErrorKind::MissingPart {
                    part: "the prefix with its colon",
                })
                .with_hint(Hint::Note(
                    "write `PREFIX name: <...>`, or `BASE <...>` for relative IRIs",
                )),
            _ => self.unexpected(),
        }
    }

    pub(in crate::parser) fn no_term(&self) -> Failure {
        if let Some(failure) = self.wrong_token() {
            return failure;
        }
        if let Some(meant) = self.misspelled() {
            let failure = self.error(ErrorKind::UnknownKeyword);
            return failure.with_hint(Hint::Meant(meant));
        }
        if let Some(failure) =
            self.bare_term(&[("ex:", "", "an IRI of a prefix"), ("\"", "\"", "a text")])
        {
            return failure;
        }
        let kind = self.token.kind;
        let is_in_list = self.opened.last().is_some_and(|it| it.bracket == "(");
        if is_in_list && kind == TokenKind::Comma {
            let kind = ErrorKind::NeedlessComma {
                between: "the items of a list",
            };
            return self.error(kind).with_hint(Hint::LeaveOut);
        }
        if is_in_list && ends_part(kind) {
            return self.unclosed();
        }
        if ends_part(kind) {
            let part = "an object";
            return self
                .error(ErrorKind::MissingPart { part })
                .with_hint(TRIPLE);
        }
        let is_path = matches!(
            kind,
            TokenKind::Slash | TokenKind::Bar | TokenKind::Star | TokenKind::QuestionMark
        );
        if is_path && self.previous.kind == TokenKind::Variable {
            let failure = self.error(ErrorKind::Unexpected);
            return failure.with_hint(PATH_WITHOUT_VARIABLES);
        }
        if kind == TokenKind::LeftBrace
            && matches!(self.second().kind, TokenKind::Integer | TokenKind::Comma)
        {
            let hint = Hint::Note(
                "a path is repeated by `?`, `*` and `+` only; write the steps out: `ex:p/ex:p/ex:p?`",
            );
            return self.error(ErrorKind::Unexpected).with_hint(hint);
        }
        self.unexpected()
    }

    pub(in crate::parser) fn no_data(&self) -> Failure {
        match self.token.kind {
            TokenKind::Variable => {
                let hint = Hint::Note("VALUES lists IRIs, literals and UNDEF");
                self.error(ErrorKind::Unexpected).with_hint(hint)
            }
            TokenKind::BlankNodeLabel => {
                let hint = Hint::Note("a blank node has no name that VALUES could give");
                self.error(ErrorKind::Unexpected).with_hint(hint)
            }
            TokenKind::Comma => self
                .error(ErrorKind::NeedlessComma { between: "values" })
                .with_hint(Hint::LeaveOut),
            TokenKind::LeftParen => {
                let hint = Hint::Note(
                    "rows stand in brackets where the variables do: `VALUES (?x) { (1) }`, but `VALUES ?x { 1 }`",
                );
                self.error(ErrorKind::Unexpected).with_hint(hint)
            }
            TokenKind::Word => {
                let mut failure = self.no_iri();
                let word = self.text_of(self.token);
                failure.hint = Some(Hint::WriteOneOf(vec![
                    (format!("\"{word}\""), "a text"),
                    (format!("ex:{word}"), "an IRI of a prefix"),
                ]));
                failure
            }
            _ => self.no_iri(),
        }
    }

    /// Where a row of `VALUES` has to begin.
    pub(in crate::parser) fn no_row(&self) -> Failure {
        match self.token.kind {
            TokenKind::Comma => self
                .error(ErrorKind::NeedlessComma { between: "rows" })
                .with_hint(Hint::LeaveOut),
            TokenKind::End => self.unclosed(),
            _ => {
                let hint = Hint::Note("each row stands in brackets, as the variables do");
                self.unexpected().with_hint(hint)
            }
        }
    }

    pub(in crate::parser) fn no_predicate(&self) -> Failure {
        if let Some(failure) = self.wrong_token() {
            return failure;
        }
        let kind = self.token.kind;
        let unexpected = |hint| self.error(ErrorKind::Unexpected).with_hint(hint);
        match kind {
            TokenKind::Word if self.text_of(self.token) == "A" => {
                let hint = Hint::Write("a".to_owned());
                self.error(ErrorKind::BareWord).with_hint(hint)
            }
            TokenKind::Word => self
                .bare_term(&[("ex:", "", "an IRI of a prefix")])
                .unwrap_or_else(|| self.unexpected()),
            TokenKind::String | TokenKind::Integer | TokenKind::Decimal | TokenKind::Double => {
                unexpected(Hint::Note("a predicate is an IRI or a variable"))
            }
            TokenKind::Equal
            | TokenKind::NotEqual
            | TokenKind::Less
            | TokenKind::LessOrEqual
            | TokenKind::Greater
            | TokenKind::GreaterOrEqual => unexpected(Hint::Note("conditions stand in FILTER( )")),
            TokenKind::Variable if self.expected.has_thing(Thing::Path) => {
                unexpected(PATH_WITHOUT_VARIABLES)
            }
            kind if ends_part(kind) => {
                let part = "a predicate";
                self.error(ErrorKind::MissingPart { part })
                    .with_hint(TRIPLE)
            }
            _ => self.unexpected(),
        }
    }

    /// A step of a negated set.
    pub(in crate::parser) fn no_step(&self) -> Failure {
        match self.token.kind {
            TokenKind::Variable => {
                let failure = self.error(ErrorKind::Unexpected);
                failure.with_hint(PATH_WITHOUT_VARIABLES)
            }
            _ => self.no_iri(),
        }
    }

    pub(in crate::parser) fn no_expression(&self) -> Failure {
        if let Some(failure) = self.wrong_token().or_else(|| self.unknown_function()) {
            return failure;
        }
        if let Some(failure) = self.bare_term(&[("\"", "\"", "a text")]) {
            return failure;
        }
        match self.token.kind {
            kind if ends_part(kind) || kind == TokenKind::RightParen => {
                let part = "an expression";
                self.error(ErrorKind::MissingPart { part })
            }
            _ => self.unexpected(),
        }
    }

    /// A word before a bracket.
    fn unknown_function(&self) -> Option<Failure> {
        let is_call =
            self.token.kind == TokenKind::Word && self.second().kind == TokenKind::LeftParen;
        if !is_call {
            return None;
        }
        let name = self.text_of(self.token).to_owned();
        let mend = function_for(&name);
        let mut failure = self.error(ErrorKind::UnknownFunction { name });
        failure.hint = mend;
        Some(failure)
    }

    /// `FILTER` or `HAVING` without brackets.
    pub(in crate::parser) fn no_constraint(&self, after: Keyword) -> Failure {
        if let Some(failure) = self.wrong_token().or_else(|| self.unknown_function()) {
            return failure;
        }
        let kind = ErrorKind::MissingBracket {
            bracket: "(",
            after: after.text().to_owned(),
        };
        self.error(kind)
    }

    /// An operator behind a call that was the whole condition for want of brackets. The call begins
    /// at a token.
    pub(in crate::parser) fn condition_without_brackets(
        &self,
        after: Keyword,
        call: Token,
    ) -> Option<Failure> {
        let is_operator = matches!(
            self.token.kind,
            TokenKind::Equal
                | TokenKind::NotEqual
                | TokenKind::Less
                | TokenKind::LessOrEqual
                | TokenKind::Greater
                | TokenKind::GreaterOrEqual
                | TokenKind::And
                | TokenKind::Or
                | TokenKind::Keyword(Keyword::In)
        );
        is_operator.then(|| {
            let kind = ErrorKind::MissingBracket {
                bracket: "(",
                after: after.text().to_owned(),
            };
            let hint = Hint::Note("a condition with operators stands in brackets as a whole");
            self.error_at(call, kind).with_hint(hint)
        })
    }

    /// A bracket has to follow a token.
    pub(in crate::parser) fn no_bracket(&self, bracket: &'static str, after: Token) -> Failure {
        if let Some(failure) = self.wrong_token() {
            return failure;
        }
        if let Some(meant) = self.misspelled() {
            let failure = self.error(ErrorKind::UnknownKeyword);
            return failure.with_hint(Hint::Meant(meant));
        }
        let after = self.shortly(after);
        self.error(ErrorKind::MissingBracket { bracket, after })
    }
}
