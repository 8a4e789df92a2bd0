//! Of what stands where a clause has to begin or to go on: columns, elements of groups, whole queries and operations.

use crate::error::{ErrorKind, Hint};
use crate::expected::Thing;
use crate::parser::triples::begins_triples;
use crate::parser::{Failure, Parser};
use crate::suggest::closest;
use crate::token::TokenKind;
use crate::word::Keyword;

const ELEMENT_WORDS: [&str; 8] = [
    "OPTIONAL", "UNION", "MINUS", "GRAPH", "SERVICE", "FILTER", "BIND", "VALUES",
];
const MODIFIER_WORDS: [&str; 7] = [
    "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES", "WHERE",
];

impl Parser<'_, '_> {
    /// `AS ?name` has to stand here.
    pub(in crate::parser) fn no_as(&self) -> Failure {
        if let Some(failure) = self.wrong_token().or_else(|| self.foreign_operator()) {
            return failure;
        }
        match self.token.kind {
            TokenKind::RightParen | TokenKind::Variable | TokenKind::Comma => {
                self.error(ErrorKind::MissingAs)
            }
            _ => self.unclosed(),
        }
    }

    /// Whether something stands among columns that was meant as one.
    pub(in crate::parser) fn is_wrong_column(&self) -> bool {
        matches!(
            self.token.kind,
            TokenKind::Comma
                | TokenKind::Word
                | TokenKind::BuiltIn(_)
                | TokenKind::PrefixedName
                | TokenKind::Keyword(Keyword::A | Keyword::As)
        )
    }

    /// No column of a `SELECT`.
    pub(in crate::parser) fn no_column(&mut self, is_first: bool) -> Failure {
        self.expected.thing(Thing::Variable);
        self.expected.token(TokenKind::LeftParen);
        if is_first {
            self.expected.token(TokenKind::Star);
        }
        match self.token.kind {
            TokenKind::Comma => self
                .error(ErrorKind::NeedlessComma)
                .with_hint(Hint::LeaveOut),
            TokenKind::BuiltIn(_) => {
                let Some(call) = self.call_here() else {
                    let hint = Hint::Write(format!("?{}", self.text_of(self.token)));
                    return self.error(ErrorKind::BareWord).with_hint(hint);
                };
                let hint = Hint::Write(format!("({call} AS ?name)"));
                self.error(ErrorKind::ExpressionWithoutBrackets)
                    .with_hint(hint)
            }
            TokenKind::Keyword(Keyword::As) if self.previous.kind == TokenKind::Variable => {
                self.named_without_brackets()
            }
            TokenKind::Keyword(Keyword::A) => self.no_variable(),
            TokenKind::Word => match closest(
                self.text_of(self.token),
                ["DISTINCT", "REDUCED", "WHERE", "FROM"],
            ) {
                Some(meant) => {
                    let failure = self.error(ErrorKind::UnknownKeyword);
                    failure.with_hint(Hint::Meant(meant))
                }
                None => self.no_variable(),
            },
            _ => self.unexpected(),
        }
    }

    pub(in crate::parser) fn no_order_key(&self) -> Failure {
        match self.token.kind {
            TokenKind::Comma => self
                .error(ErrorKind::NeedlessComma)
                .with_hint(Hint::LeaveOut),
            _ => self.no_variable(),
        }
    }

    /// Nothing that a group can hold begins here.
    pub(in crate::parser) fn no_element(&self) -> Failure {
        if let Some(failure) = self.wrong_token() {
            return failure;
        }
        let kind = self.token.kind;
        if kind == TokenKind::End {
            return self.unclosed();
        }
        if kind == TokenKind::Word {
            if let Some(meant) = closest(self.text_of(self.token), ELEMENT_WORDS) {
                let failure = self.error(ErrorKind::UnknownKeyword);
                return failure.with_hint(Hint::Meant(meant));
            }
            return self.bare_word().unwrap_or_else(|| self.unexpected());
        }
        let is_behind_triples = matches!(
            self.previous.kind,
            TokenKind::Variable
                | TokenKind::Iri
                | TokenKind::PrefixedName
                | TokenKind::String
                | TokenKind::Integer
                | TokenKind::Decimal
                | TokenKind::Double
                | TokenKind::LanguageTag
                | TokenKind::BlankNodeLabel
                | TokenKind::RightBracket
                | TokenKind::RightParen
                | TokenKind::RightTriple
                | TokenKind::RightTripleTerm
                | TokenKind::RightAnnotation
                | TokenKind::Keyword(Keyword::True | Keyword::False)
        );
        let is_dot_missing = is_behind_triples && begins_triples(kind);
        if is_dot_missing {
            return self.error(ErrorKind::MissingDot);
        }
        let closes_query = matches!(
            kind,
            TokenKind::Keyword(
                Keyword::Group
                    | Keyword::Having
                    | Keyword::Order
                    | Keyword::Limit
                    | Keyword::Offset
            )
        );
        match closes_query {
            true => self.unclosed(),
            false => self.unexpected(),
        }
    }

    /// Nothing that quads in braces can hold begins here.
    pub(in crate::parser) fn no_quad(&mut self) -> Failure {
        if self.token.kind == TokenKind::End {
            return self.unclosed();
        }
        self.no_element()
    }

    /// No query begins here.
    pub(in crate::parser) fn no_query(&mut self) -> Failure {
        if let Some(failure) = self.wrong_beginning(&Keyword::QUERIES) {
            return failure;
        }
        match self.is_one_of(&Keyword::OPERATIONS) {
            true => self
                .error(ErrorKind::IsUpdate)
                .with_hint(Hint::SendAsUpdate),
            false => self.unexpected(),
        }
    }

    fn is_one_of(&self, keywords: &[Keyword]) -> bool {
        matches!(self.token.kind, TokenKind::Keyword(keyword) if keywords.contains(&keyword))
    }

    /// What is wrong where a query or update has to begin.
    fn wrong_beginning(&self, words: &[Keyword]) -> Option<Failure> {
        let token = self.token;
        let text = self.text_of(token);
        match token.kind {
            TokenKind::End => Some(self.error(ErrorKind::Empty)),
            TokenKind::LanguageTag if ["@prefix", "@base"].contains(&text) => {
                let word = text[1..].to_ascii_uppercase();
                let hint = match word.as_str() {
                    "PREFIX" => "PREFIX name: <iri>, without the dot",
                    _ => "BASE <iri>, without the dot",
                };
                Some(
                    self.error(ErrorKind::ForeignOperator)
                        .with_hint(Hint::Write(hint.to_owned())),
                )
            }
            TokenKind::Minus if self.second().kind == TokenKind::Minus => {
                Some(self.error(ErrorKind::Unexpected).with_hint(Hint::Comment))
            }
            TokenKind::Slash => Some(self.error(ErrorKind::Unexpected).with_hint(Hint::Comment)),
            TokenKind::Word => {
                let mut failure = self.error(ErrorKind::UnknownKeyword);
                let words = words.iter().chain(&Keyword::DECLARATIONS);
                failure.hint = closest(text, words.map(|it| it.text())).map(Hint::Meant);
                Some(failure)
            }
            _ => None,
        }
    }

    /// Something stands behind a query.
    pub(in crate::parser) fn behind_query(&self) -> Failure {
        match self.token.kind {
            TokenKind::RightBrace | TokenKind::RightParen | TokenKind::RightBracket => {
                self.error(ErrorKind::UnopenedBracket)
            }
            TokenKind::Word => {
                let mut failure = self.error(ErrorKind::UnknownKeyword);
                failure.hint = closest(self.text_of(self.token), MODIFIER_WORDS).map(Hint::Meant);
                failure
            }
            TokenKind::Semicolon => self.error(ErrorKind::Unexpected).with_hint(Hint::LeaveOut),
            _ => self.unexpected(),
        }
    }

    /// Something stands behind the operations of an update, or there are none.
    pub(in crate::parser) fn behind_update(&self, has_operations: bool) -> Failure {
        let begins_operation =
            self.is_one_of(&Keyword::OPERATIONS) || self.is_one_of(&Keyword::DECLARATIONS);
        if has_operations && begins_operation {
            return self.error(ErrorKind::MissingSemicolon);
        }
        if self.is_one_of(&Keyword::QUERIES) && !has_operations {
            return self.error(ErrorKind::IsQuery).with_hint(Hint::SendAsQuery);
        }
        if !has_operations && let Some(failure) = self.wrong_beginning(&Keyword::OPERATIONS) {
            return failure;
        }
        self.behind_query()
    }
}
