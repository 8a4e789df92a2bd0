//! What a failure most probably means: from the tokens around it to a kind of error and a mend.

use super::{FOUND_CHARACTERS_MAX, Failure, Opened, Parser};
use crate::error::{ErrorKind, Hint, Position};
use crate::expected::Thing;
use crate::suggest::{closest, function_for};
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

const ELEMENT_WORDS: [&str; 8] = [
    "OPTIONAL", "UNION", "MINUS", "GRAPH", "SERVICE", "FILTER", "BIND", "VALUES",
];
const MODIFIER_WORDS: [&str; 7] = [
    "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES", "WHERE",
];

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

    pub(super) fn no_variable(&self) -> Failure {
        self.wrong_token()
            .or_else(|| self.bare_word())
            .unwrap_or_else(|| self.unexpected())
    }

    pub(super) fn no_iri(&self) -> Failure {
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

    pub(super) fn no_prefix(&self) -> Failure {
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

    pub(super) fn no_term(&self) -> Failure {
        if let Some(failure) = self.wrong_token() {
            return failure;
        }
        if let Some(meant) = self.misspelled() {
            let failure = self.error(ErrorKind::UnknownKeyword);
            return failure.with_hint(Hint::Meant(meant));
        }
        self.bare_word().unwrap_or_else(|| self.unexpected())
    }

    pub(super) fn no_data(&self) -> Failure {
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

    pub(super) fn no_predicate(&self) -> Failure {
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

    pub(super) fn no_expression(&self) -> Failure {
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
    pub(super) fn no_constraint(&self, after: Keyword) -> Failure {
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
    pub(super) fn no_bracket(&self, bracket: &'static str, after: Token) -> Failure {
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

    /// `AS ?name` has to stand here.
    pub(super) fn no_as(&self) -> Failure {
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
    pub(super) fn is_wrong_column(&self) -> bool {
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
    pub(super) fn no_column(&mut self, is_first: bool) -> Failure {
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

    pub(super) fn no_order_key(&self) -> Failure {
        match self.token.kind {
            TokenKind::Comma => self
                .error(ErrorKind::NeedlessComma)
                .with_hint(Hint::LeaveOut),
            _ => self.no_variable(),
        }
    }

    /// Nothing that a group can hold begins here.
    pub(super) fn no_element(&self) -> Failure {
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
        let is_dot_missing = is_behind_triples && super::triples::begins_triples(kind);
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
    pub(super) fn no_quad(&mut self) -> Failure {
        if self.token.kind == TokenKind::End {
            return self.unclosed();
        }
        self.no_element()
    }

    /// No query begins here.
    pub(super) fn no_query(&mut self) -> Failure {
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
    pub(super) fn behind_query(&self) -> Failure {
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
    pub(super) fn behind_update(&self, has_operations: bool) -> Failure {
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
