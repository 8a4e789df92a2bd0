//! Mends that are made of what stands around the error: calls, names and IRIs as they were meant.

use super::{Failure, Parser};
use crate::error::{ErrorKind, Hint};
use crate::lexer::Lexer;
use crate::token::{Token, TokenKind};

/// Bytes of the text that a mend repeats.
const REPEATED_BYTES_MAX: usize = 60;

impl Parser<'_, '_> {
    /// The text of the call that begins here, if there is one; `expression` if it is long.
    pub(super) fn call_here(&self) -> Option<&str> {
        if self.second().kind != TokenKind::LeftParen {
            return None;
        }
        let start = self.token.start as usize;
        let mut lexer = Lexer::starting_at(self.text, start);
        let mut depth = 0_usize;
        loop {
            let token = lexer.next_token();
            let end = token.end as usize;
            match token.kind {
                TokenKind::LeftParen => depth += 1,
                TokenKind::RightParen => depth -= 1,
                TokenKind::End => return Some("expression"),
                _ => {}
            }
            if end - start > REPEATED_BYTES_MAX {
                return Some("expression");
            }
            if token.kind == TokenKind::RightParen && depth == 0 {
                let call = &self.text[start..end];
                return Some(match call.contains('\n') {
                    true => "expression",
                    false => call,
                });
            }
        }
    }

    /// `?x AS ?y` without its brackets: the `AS` is here.
    pub(super) fn named_without_brackets(&self) -> Failure {
        let second = self.second();
        let name = match second.kind {
            TokenKind::Variable => self.text_of(second),
            _ => "?name",
        };
        let hint = Hint::Write(format!("({} AS {name})", self.text_of(self.previous)));
        let failure = self.error(ErrorKind::ExpressionWithoutBrackets);
        failure.with_hint(hint)
    }

    /// `ASC` or `DESC` without its bracket, behind what it was meant for or before it.
    pub(super) fn direction_without_bracket(&self, before: Token, direction: Token) -> Failure {
        let meant = [self.token, before]
            .into_iter()
            .find(|it| it.kind == TokenKind::Variable);
        let Some(meant) = meant else {
            return self.no_bracket("(", direction);
        };
        let direction_text = self.text_of(direction);
        let kind = ErrorKind::MissingBracket {
            bracket: "(",
            after: direction_text.to_owned(),
        };
        let hint = Hint::Write(format!("{direction_text}({})", self.text_of(meant)));
        self.error_at(direction, kind).with_hint(hint)
    }

    /// `http://example.com/` without its signs: a prefix for the lexer.
    pub(super) fn iri_without_signs(&self, prefix: Token) -> Option<Failure> {
        let start = prefix.start as usize;
        let rest = self.text.get(start..)?;
        let behind = self.text.get(prefix.end as usize..)?;
        if !behind.starts_with("//") {
            return None;
        }
        let ends =
            |character: char| character.is_whitespace() || "<>\"{}|^`\\()[];,".contains(character);
        let iri = &rest[..rest.find(ends).unwrap_or(rest.len())];
        let iri = iri.trim_end_matches('.');
        let hint = match iri.len() <= REPEATED_BYTES_MAX {
            true => Hint::Write(format!("<{iri}>")),
            false => Hint::Note("an IRI stands between `<` and `>`"),
        };
        let failure = self.error_in(start..start + iri.len(), ErrorKind::BareWord);
        Some(failure.with_hint(hint))
    }
}
