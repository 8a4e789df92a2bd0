//! The diagnosis of a syntax error: its kind and fix, from the tokens around it.

mod clauses;
mod foreign;
mod terms;

use super::mend::percent_encoded;
use super::{FOUND_CHARACTERS_MAX, Failure, Opened, Parser};
use crate::error::REPEATED_BYTES_MAX;
use crate::error::{ErrorKind, Hint, Position};
use crate::expected::Thing;
use crate::suggest::closest;
use crate::token::{Token, TokenKind};
use crate::word::Keyword;

/// Whether what stands between `<` and `>` was meant as one IRI: `{` in it is, but not if blanks
/// are in it, too.
fn is_one_iri(inner: &str) -> bool {
    let has_signs = inner.contains(['{', '}', ';']);
    !(inner.contains('<') || has_signs && inner.contains(char::is_whitespace))
}

/// How to close a string that is not closed.
fn closing_of_string(string: &str) -> &'static str {
    match string.get(..3) {
        Some("\"\"\"") => "put `\"\"\"` at its end",
        Some("'''") => "put `'''` at its end",
        _ => "put the same mark at its end; a text over several lines stands between three of them",
    }
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

    /// A word of the grammar has to stand here.
    pub(super) fn no_keyword(&self, keyword: Keyword) -> Failure {
        if let Some(failure) = self.wrong_token() {
            return failure;
        }
        if let Some(meant) = self.misspelled() {
            let failure = self.error(ErrorKind::UnknownKeyword);
            return failure.with_hint(Hint::Meant(meant));
        }
        self.error(ErrorKind::MissingKeyword {
            keyword: keyword.text(),
        })
    }

    /// The text of a token, cut to a readable length.
    fn shortly(&self, token: Token) -> String {
        let text = self.text_of(token);
        text.chars().take(FOUND_CHARACTERS_MAX).collect()
    }

    /// What is wrong with the token itself.
    fn wrong_token(&self) -> Option<Failure> {
        let token = self.token;
        match token.kind {
            TokenKind::UnclosedString => {
                let start = token.start as usize;
                let failure = self.error_in(start..start + 1, ErrorKind::UnclosedString);
                Some(failure.with_hint(Hint::Note(closing_of_string(self.text_of(token)))))
            }
            TokenKind::Minus | TokenKind::Slash => self.foreign_comment(),
            TokenKind::Unknown => self.foreign_character(),
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
                let span = place..place + character.len_utf8();
                let failure = self.error_in(span, ErrorKind::CharacterInIri { character });
                failure.with_hint(Hint::Write(percent_encoded(character)))
            }
            _ => {
                let end = start + 1 + bad.unwrap_or(inner.len());
                let failure = self.error_in(start..start + 1, ErrorKind::UnclosedIri);
                failure.with_hint(match end - start <= REPEATED_BYTES_MAX {
                    true => Hint::Replace {
                        span: start..end,
                        text: format!("{}>", &self.text[start..end]),
                    },
                    false => Hint::Note("put `>` behind it"),
                })
            }
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
            TokenKind::Dot if bracket == "{" => self.unexpected(),
            TokenKind::End
            | TokenKind::Dot
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
                let kind = ErrorKind::UnclosedBracket {
                    bracket,
                    opened,
                    after: self.shortly(self.previous),
                };
                self.error_in(place, kind)
            }
            _ => self.unexpected(),
        }
    }
}
