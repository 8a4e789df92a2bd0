//! Fixes built from the text around an error: calls, names and IRIs.

use super::{Failure, Parser};
use crate::error::{ErrorKind, Hint, REPEATED_BYTES_MAX};
use crate::lexer::Lexer;
use crate::token::{Token, TokenKind};
use crate::word::{BuiltIn, Keyword};

/// Stands for one that is too long to be repeated.
pub(super) const EXPRESSION: &str = "expression";

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
                TokenKind::End => return Some(EXPRESSION),
                _ => {}
            }
            if end - start > REPEATED_BYTES_MAX {
                return Some(EXPRESSION);
            }
            if token.kind == TokenKind::RightParen && depth == 0 {
                let call = &self.text[start..end];
                return Some(match call.contains('\n') {
                    true => EXPRESSION,
                    false => call,
                });
            }
        }
    }

    /// `COUNT(?x)`, or `COUNT(?x) AS ?y`, among columns without its brackets: the function is here.
    pub(super) fn call_among_columns(&self) -> Failure {
        let Some(call) = self.call_here() else {
            let hint = Hint::Write(format!("?{}", self.text_of(self.token)));
            return self.error(ErrorKind::BareWord).with_hint(hint);
        };
        let failure = self.error(ErrorKind::ExpressionWithoutBrackets);
        if call == EXPRESSION {
            return failure.with_hint(Hint::Note("write `(expression AS ?name)`"));
        }
        let start = self.token.start as usize;
        let end_of_call = start + call.len();
        let named = self.name_behind(end_of_call);
        let (name, end) = named.unwrap_or_else(|| ("?name".to_owned(), end_of_call));
        failure.with_hint(Hint::Replace {
            span: start..end,
            text: format!("({call} AS {name})"),
        })
    }

    /// The variable of an `AS ?y` that begins behind a place, and where it ends; also of SQL's
    /// `AS y`.
    fn name_behind(&self, place: usize) -> Option<(String, usize)> {
        let mut lexer = Lexer::starting_at(self.text, place);
        let is_named = lexer.next_token().kind == TokenKind::Keyword(Keyword::As);
        let name = lexer.next_token();
        let text = self.text_of(name);
        let variable = match name.kind {
            TokenKind::Variable => text.to_owned(),
            TokenKind::Word if text.bytes().all(crate::chars::is_ascii_variable) => {
                format!("?{text}")
            }
            _ => return None,
        };
        is_named.then_some((variable, name.end as usize))
    }

    /// `?x AS ?y` without its brackets: the `AS` is here.
    pub(super) fn named_without_brackets(&self) -> Failure {
        let second = self.second();
        let name = match second.kind {
            TokenKind::Variable => self.text_of(second),
            _ => "?name",
        };
        let end = match second.kind {
            TokenKind::Variable => second.end,
            _ => self.token.end,
        };
        let hint = Hint::Replace {
            span: self.previous.start as usize..end as usize,
            text: format!("({} AS {name})", self.text_of(self.previous)),
        };
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
        let hint = Hint::Replace {
            span: direction.start.min(meant.start) as usize..direction.end.max(meant.end) as usize,
            text: format!("{direction_text}({})", self.text_of(meant)),
        };
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

    /// `data/file.ttl` without its signs: a word for the lexer.
    pub(super) fn address_without_signs(&self) -> Failure {
        let start = self.token.start as usize;
        let rest = self.text.get(start..).unwrap_or_default();
        let ends =
            |character: char| character.is_whitespace() || "<>\"'{}|^`\\()[];,".contains(character);
        let address = &rest[..rest.find(ends).unwrap_or(rest.len())];
        let address = address.trim_end_matches('.');
        let failure = self.error_in(start..start + address.len(), ErrorKind::BareWord);
        failure.with_hint(match address.len() <= REPEATED_BYTES_MAX {
            true => Hint::Write(format!("<{address}>")),
            false => Hint::Note("an IRI stands between `<` and `>`"),
        })
    }

    /// `@prefix ub: <...> .`, `@base <...> .`: Turtle's way, whose `@` is here.
    pub(super) fn turtle_declaration(&self, keyword: &str) -> Failure {
        let mut lexer = Lexer::starting_at(self.text, self.token.end as usize);
        let mut words = vec![keyword];
        let mut end = self.token.end;
        let mut token = lexer.next_token();
        for kind in [TokenKind::PrefixedName, TokenKind::Iri] {
            if token.kind == kind {
                words.push(self.text_of(token));
                end = token.end;
                token = lexer.next_token();
            }
        }
        if token.kind == TokenKind::Dot {
            end = token.end;
        }
        let text = words.join(" ");
        let failure = self.error(ErrorKind::ForeignOperator);
        failure.with_hint(
            match text.len() <= 2 * REPEATED_BYTES_MAX && words.len() > 1 {
                true => Hint::Replace {
                    span: self.token.start as usize..end as usize,
                    text,
                },
                false => Hint::Note("write `PREFIX name: <...>` or `BASE <...>`, without a dot"),
            },
        )
    }

    /// `LIMIT 10, 5`: the comma is here.
    pub(super) fn limit_of_two(&self, limit: Token) -> Option<Failure> {
        let second = self.second();
        let is_here = self.token.kind == TokenKind::Comma
            && second.kind == TokenKind::Integer
            && self.text_of(limit).eq_ignore_ascii_case("LIMIT");
        is_here.then(|| {
            let span = limit.start as usize..second.end as usize;
            let (start, length) = (self.text_of(self.previous), self.text_of(second));
            let failure = self.error(ErrorKind::ForeignOperator);
            failure.with_hint(Hint::Replace {
                span,
                text: format!("LIMIT {length} OFFSET {start}"),
            })
        })
    }

    /// `GROUP_CONCAT(?x, ', ')` and `COUNT(DISTINCT ?a, ?b)`: the comma is here.
    pub(super) fn second_argument(&self, function: BuiltIn, is_concat: bool) -> Failure {
        let second = self.second();
        if is_concat && second.kind == TokenKind::String {
            let failure = self.error(ErrorKind::Unexpected);
            return failure.with_hint(Hint::Replace {
                span: self.token.start as usize..second.end as usize,
                text: format!("; SEPARATOR = {}", self.text_of(second)),
            });
        }
        let failure = self.error(ErrorKind::ArgumentCount {
            function: function.name(),
            least: 1,
            most: 1,
            given: 2,
        });
        failure.with_hint(Hint::Note(
            "several variables are aggregated behind a subquery: `{ SELECT DISTINCT ?a ?b { .. } }`",
        ))
    }
}

/// A character as IRIs hold it.
pub(super) fn percent_encoded(character: char) -> String {
    let mut bytes = [0; 4];
    let bytes = character.encode_utf8(&mut bytes).bytes();
    bytes.map(|byte| format!("%{byte:02X}")).collect()
}
