//! Of what stands where a term, an expression, or the bracket around one has to stand.

use crate::error::{ErrorKind, Hint};
use crate::parser::{Failure, Parser};
use crate::suggest::function_for;
use crate::token::{Token, TokenKind};
use crate::word::Keyword;

impl Parser<'_, '_> {
    pub(in crate::parser) fn no_variable(&self) -> Failure {
        self.wrong_token()
            .or_else(|| self.bare_word())
            .unwrap_or_else(|| self.unexpected())
    }

    pub(in crate::parser) fn no_iri(&self) -> Failure {
        if let Some(failure) = self.wrong_token() {
            return failure;
        }
        match self.token.kind {
            TokenKind::Word => {
                let hint = Hint::Write(format!("<{}>", self.text_of(self.token)));
                self.error(ErrorKind::BareWord).with_hint(hint)
            }
            _ => self.unexpected(),
        }
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
        self.bare_word().unwrap_or_else(|| self.unexpected())
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
            _ => self.no_iri(),
        }
    }

    pub(in crate::parser) fn no_predicate(&self) -> Failure {
        if let Some(failure) = self.wrong_token() {
            return failure;
        }
        match self.token.kind {
            TokenKind::Word if self.text_of(self.token) == "A" => {
                let hint = Hint::Write("a".to_owned());
                self.error(ErrorKind::BareWord).with_hint(hint)
            }
            TokenKind::Word => self.bare_word().unwrap_or_else(|| self.unexpected()),
            TokenKind::String | TokenKind::Integer | TokenKind::Decimal | TokenKind::Double => {
                let hint = Hint::Note("a predicate is an IRI or a variable");
                self.error(ErrorKind::Unexpected).with_hint(hint)
            }
            _ => self.unexpected(),
        }
    }

    pub(in crate::parser) fn no_expression(&self) -> Failure {
        if let Some(failure) = self.wrong_token() {
            return failure;
        }
        if let Some(failure) = self.unknown_function() {
            return failure;
        }
        self.bare_word().unwrap_or_else(|| self.unexpected())
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

    /// A bracket has to follow a token.
    pub(in crate::parser) fn no_bracket(&self, bracket: &'static str, after: Token) -> Failure {
        if let Some(failure) = self.wrong_token() {
            return failure;
        }
        if let Some(meant) = self.misspelled() {
            let failure = self.error(ErrorKind::UnknownKeyword);
            return failure.with_hint(Hint::Meant(meant));
        }
        let after = self.text_of(after).to_owned();
        self.error(ErrorKind::MissingBracket { bracket, after })
    }
}
