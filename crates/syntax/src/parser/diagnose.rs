//! What a failure most probably means: from the tokens around it to a kind of error and a mend.

mod clauses;
mod terms;

use super::{FOUND_CHARACTERS_MAX, Failure, Opened, Parser};
use crate::error::{ErrorKind, Hint, Position};
use crate::expected::Thing;
use crate::suggest::closest;
use crate::token::{Token, TokenKind};
use crate::word::Keyword;

/// Whether what stands between `<` and `>` was meant as one IRI: `{` in it is, but not if blanks are in it, too.
fn is_one_iri(inner: &str) -> bool {
    let has_signs = inner.contains(['{', '}', ';']);
    !(inner.contains('<') || has_signs && inner.contains(char::is_whitespace))
}

/// The sign that closes a bracket.
pub(crate) fn closing(bracket: &str) -> &'static str {
    match bracket {
        "(" => ")",
        "{" => "}",
        "[" => "]",
        "<<" => ">>",
        "<<(" => ")>>",
        _ => "|}",
    }
}

impl Parser<'_, '_> {
    /// Something that may not stand here.
    pub(super) fn unexpected(&self) -> Failure {
        if let Some(failure) = self.wrong_token() {
            return failure;
        }
        let failure = self.error(ErrorKind::Unexpected);
        match self.misspelled() {
            Some(meant) => {
                let mut failure = failure;
                failure.kind = ErrorKind::UnknownKeyword;
                failure.with_hint(Hint::Meant(meant))
            }
            None => failure,
        }
    }

    /// The keyword that a word was meant to be, of those that may stand here.
    fn misspelled(&self) -> Option<&'static str> {
        if self.token.kind != TokenKind::Word {
            return None;
        }
        let may_stand = Keyword::ALL
            .iter()
            .filter(|keyword| self.expected.has_keyword(**keyword));
        closest(self.text_of(self.token), may_stand.map(|it| it.text()))
    }

    /// What is wrong with the token itself.
    fn wrong_token(&self) -> Option<Failure> {
        let token = self.token;
        match token.kind {
            TokenKind::UnclosedString => Some(self.error_in(
                token.start as usize..token.start as usize + 1,
                ErrorKind::UnclosedString,
            )),
            // `'it's'`: a string, and what follows it at once.
            TokenKind::Word | TokenKind::Keyword(_) | TokenKind::BuiltIn(_)
                if self.previous.kind == TokenKind::String && self.previous.end == token.start =>
            {
                let hint = Hint::Note(
                    "write a quotation mark inside of a string with a \\ before it, or the string between the other marks",
                );
                Some(
                    self.error_at(self.previous, ErrorKind::UnclosedString)
                        .with_hint(hint),
                )
            }
            TokenKind::Less => self.wrong_iri(token),
            _ => None,
        }
    }

    /// A `<` with which an IRI was meant to begin.
    fn wrong_iri(&self, token: Token) -> Option<Failure> {
        let start = token.start as usize;
        let line = self.text[start..].lines().next()?;
        let inner = &line[1..];
        let is_meant = inner
            .starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '/' | '#'));
        if !is_meant
            || self.previous.kind == TokenKind::Variable
                && self.expected.has_thing(Thing::Expression)
        {
            return None;
        }
        let bad =
            inner.find(|character: char| character <= ' ' || "<\"{}|^`\\".contains(character));
        let closed = inner.find('>');
        Some(match (bad, closed) {
            (Some(bad), Some(closed)) if bad < closed && is_one_iri(&inner[..closed]) => {
                let character = inner[bad..].chars().next().unwrap_or(' ');
                let place = start + 1 + bad;
                self.error_in(
                    place..place + character.len_utf8(),
                    ErrorKind::CharacterInIri { character },
                )
            }
            _ => self.error_in(start..start + 1, ErrorKind::UnclosedIri),
        })
    }

    /// A bracket has to be closed here, and is not.
    pub(super) fn unclosed(&self) -> Failure {
        let Some(Opened { bracket, at }) = self.opened.last().copied() else {
            return self.unexpected();
        };
        if let Some(failure) = self.wrong_token() {
            return failure;
        }
        if let Some(failure) = self.foreign_operator() {
            return failure;
        }
        match self.token.kind {
            TokenKind::End
            | TokenKind::LeftBrace
            | TokenKind::RightBrace
            | TokenKind::RightBracket
            | TokenKind::RightParen
            | TokenKind::RightTriple
            | TokenKind::RightTripleTerm
            | TokenKind::Semicolon
            | TokenKind::Keyword(
                Keyword::Where
                | Keyword::From
                | Keyword::Filter
                | Keyword::Optional
                | Keyword::Bind
                | Keyword::Group
                | Keyword::Order
                | Keyword::Limit,
            ) => {
                let end = self.previous.end as usize;
                let place = match self.token.kind {
                    TokenKind::End => end..end,
                    _ if bracket == "{" => self.token.start as usize..self.token.end as usize,
                    _ => end..end,
                };
                let opened = Position::of(self.text, at as usize);
                let after = self
                    .text_of(self.previous)
                    .chars()
                    .take(FOUND_CHARACTERS_MAX);
                let kind = ErrorKind::UnclosedBracket {
                    bracket,
                    opened,
                    after: after.collect(),
                };
                self.error_in(place, kind)
            }
            _ => self.unexpected(),
        }
    }

    /// A sign or word of another language where an operator can stand.
    fn foreign_operator(&self) -> Option<Failure> {
        let text = self.text_of(self.token);
        let mend = match self.token.kind {
            TokenKind::Word if text.eq_ignore_ascii_case("AND") => Hint::Write("&&".to_owned()),
            TokenKind::Word if text.eq_ignore_ascii_case("OR") => Hint::Write("||".to_owned()),
            TokenKind::Word if text.eq_ignore_ascii_case("LIKE") => {
                Hint::Note("write CONTAINS(text, part) or REGEX(text, pattern)")
            }
            TokenKind::Word if text.eq_ignore_ascii_case("IS") => {
                Hint::Note("write BOUND(?x) or !BOUND(?x), or `=`")
            }
            TokenKind::Word if text.eq_ignore_ascii_case("MOD") => {
                Hint::Note("SPARQL has no remainder: ?a - ?b * FLOOR(?a / ?b)")
            }
            TokenKind::Bar => Hint::Write("||".to_owned()),
            TokenKind::Unknown if text == "&" => Hint::Write("&&".to_owned()),
            TokenKind::Unknown if text == "%" => {
                Hint::Note("SPARQL has no remainder: ?a - ?b * FLOOR(?a / ?b)")
            }
            _ => return None,
        };
        Some(self.error(ErrorKind::ForeignOperator).with_hint(mend))
    }

    /// `==`, `<>`, `=>` and the like: an operator where an operand has to stand.
    pub(super) fn doubled_operator(&self, operator: Token) -> Option<Failure> {
        let mend = match (operator.kind, self.token.kind) {
            (TokenKind::Equal, TokenKind::Equal) => "=",
            (TokenKind::Less, TokenKind::Greater) => "!=",
            (TokenKind::Equal, TokenKind::Greater) => ">=",
            (TokenKind::Equal, TokenKind::Less) => "<=",
            (TokenKind::NotEqual, TokenKind::Equal) => "!=",
            _ => return None,
        };
        if operator.end != self.token.start {
            return None;
        }
        let span = operator.start as usize..self.token.end as usize;
        let failure = self.error_in(span, ErrorKind::ForeignOperator);
        Some(failure.with_hint(Hint::Write(mend.to_owned())))
    }

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
}
