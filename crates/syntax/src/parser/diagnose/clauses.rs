//! Diagnoses where a clause is expected.

use crate::error::{ErrorKind, Hint};
use crate::expected::Thing;
use crate::lexer::Lexer;
use crate::parser::triples::begins_triples;
use crate::parser::{Failure, Parser};
use crate::suggest::closest;
use crate::token::TokenKind;
use crate::word::Keyword;

const JOINED: Hint =
    Hint::Note("patterns are joined as they stand, in one group: `{ ?a ex:p ?b . ?b ex:q ?c }`");
/// What ends the group before it.
const ENDING: [Keyword; 5] = [
    Keyword::Group,
    Keyword::Having,
    Keyword::Order,
    Keyword::Limit,
    Keyword::Offset,
];

/// The clause that a keyword begins.
fn clause_of(keyword: Keyword) -> &'static str {
    match keyword {
        Keyword::Group => "GROUP BY",
        Keyword::Order => "ORDER BY",
        other => other.text(),
    }
}

const ELEMENT_WORDS: [&str; 9] = [
    "OPTIONAL", "UNION", "MINUS", "LATERAL", "GRAPH", "SERVICE", "FILTER", "BIND", "VALUES",
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
                let mut failure = self.error(ErrorKind::MissingAs);
                if self.is_variable_in_brackets() {
                    let note = "a variable by itself stands without brackets";
                    failure.hint = Some(Hint::Note(note));
                }
                failure
            }
            _ => self.unclosed(),
        }
    }

    /// Whether the last bracket has nothing but a variable, so far.
    fn is_variable_in_brackets(&self) -> bool {
        let Some(opened) = self.opened.last() else {
            return false;
        };
        let between = opened.at as usize + 1..self.previous.start as usize;
        self.previous.kind == TokenKind::Variable
            && self
                .text
                .get(between)
                .is_some_and(|it| it.trim().is_empty())
    }

    /// Whether something stands among columns that was meant as one.
    pub(in crate::parser) fn is_wrong_column(&self) -> bool {
        matches!(
            self.token.kind,
            TokenKind::Comma
                | TokenKind::Word
                | TokenKind::BuiltIn(_)
                | TokenKind::PrefixedName
                | TokenKind::String
                | TokenKind::Keyword(
                    Keyword::A | Keyword::As | Keyword::Distinct | Keyword::Reduced
                )
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
            TokenKind::Comma => self.comma_between_variables(),
            TokenKind::Keyword(keyword @ (Keyword::Distinct | Keyword::Reduced)) => {
                self.error(ErrorKind::ClauseOrder {
                    clause: keyword.text(),
                    before: "the variables",
                })
            }
            TokenKind::Keyword(Keyword::Where | Keyword::From) | TokenKind::LeftBrace
                if is_first =>
            {
                let hint = Hint::Note("name the variables that SELECT gives, or write `*` for all");
                self.error(ErrorKind::Unexpected).with_hint(hint)
            }
            TokenKind::String => self.quoted_name().unwrap_or_else(|| self.unexpected()),
            TokenKind::BuiltIn(_) => self.call_among_columns(),
            TokenKind::Keyword(Keyword::As) if self.previous.kind == TokenKind::Variable => {
                self.named_without_brackets()
            }
            TokenKind::Keyword(Keyword::A) => self.no_variable(),
            TokenKind::Word => self.word_among_columns(),
            _ => self.unexpected(),
        }
    }

    fn word_among_columns(&self) -> Failure {
        let word = self.text_of(self.token);
        if let Some(meant) = closest(word, ["DISTINCT", "REDUCED", "WHERE", "FROM"]) {
            let failure = self.error(ErrorKind::UnknownKeyword);
            return failure.with_hint(Hint::Meant(meant));
        }
        if word.eq_ignore_ascii_case("TOP") {
            let failure = self.error(ErrorKind::ForeignOperator);
            return failure.with_hint(Hint::Note("write LIMIT at the end of the query"));
        }
        self.other_language().unwrap_or_else(|| self.no_variable())
    }

    fn comma_between_variables(&self) -> Failure {
        self.error(ErrorKind::NeedlessComma {
            between: "variables",
        })
        .with_hint(Hint::LeaveOut)
    }

    /// A comma between graphs, each of which has a keyword of its own.
    pub(in crate::parser) fn comma_between_graphs(&self, keyword: Keyword) -> Failure {
        self.error(ErrorKind::NeedlessComma { between: "graphs" })
            .with_hint(Hint::Write(format!(" {}", keyword.text())))
    }

    pub(in crate::parser) fn no_order_key(&self) -> Failure {
        match self.token.kind {
            TokenKind::Comma => self.comma_between_variables(),
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
            return self.word_among_elements();
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
        let misplaced = |clause, place| self.error(ErrorKind::Misplaced { clause, place });
        let with_note = |note| {
            self.error(ErrorKind::Unexpected)
                .with_hint(Hint::Note(note))
        };
        match kind {
            TokenKind::RightParen if !self.has_opened("(") => self.unopened(),
            TokenKind::RightBracket if !self.has_opened("[") => self.unopened(),
            TokenKind::RightParen | TokenKind::RightBracket => self.unclosed(),
            TokenKind::BuiltIn(_) | TokenKind::Keyword(Keyword::Exists | Keyword::Not) => {
                self.no_keyword(Keyword::Filter)
            }
            TokenKind::Keyword(Keyword::Union) => {
                with_note("UNION stands between two groups in braces: `{ .. } UNION { .. }`")
            }
            TokenKind::Keyword(Keyword::Select) => {
                with_note("a subquery stands in braces of its own: `{ SELECT .. }`")
            }
            TokenKind::Keyword(Keyword::Where) => {
                with_note("a group has no WHERE of its own; conditions stand in FILTER( )")
            }
            TokenKind::Keyword(keyword) if ENDING.contains(&keyword) => {
                match self.is_closed_later() {
                    true => misplaced(clause_of(keyword), "behind the `}` of the group"),
                    false => self.unclosed(),
                }
            }
            _ => self.unexpected(),
        }
    }

    /// A word where an element of a group has to begin.
    fn word_among_elements(&self) -> Failure {
        let word = self.text_of(self.token);
        if let Some(meant) = closest(word, ELEMENT_WORDS) {
            let failure = self.error(ErrorKind::UnknownKeyword);
            return failure.with_hint(Hint::Meant(meant));
        }
        let mend = match word.to_ascii_uppercase().as_str() {
            "OR" => Some(Hint::Write("UNION".to_owned())),
            "AND" | "JOIN" => Some(JOINED),
            _ => None,
        };
        match mend {
            Some(mend) => self.error(ErrorKind::ForeignOperator).with_hint(mend),
            None => self.no_term(),
        }
    }

    fn has_opened(&self, bracket: &str) -> bool {
        self.opened.iter().any(|it| it.bracket == bracket)
    }

    fn unopened(&self) -> Failure {
        let failure = self.error(ErrorKind::UnopenedBracket);
        failure.with_hint(Hint::Note("leave it out, or open it before"))
    }

    /// Whether as many braces as are open are closed behind this place.
    fn is_closed_later(&self) -> bool {
        let mut open = self.opened.iter().filter(|it| it.bracket == "{").count();
        let mut lexer = Lexer::starting_at(self.text, self.token.start as usize);
        loop {
            match lexer.next_token().kind {
                TokenKind::End => return open == 0,
                TokenKind::LeftBrace => open += 1,
                TokenKind::RightBrace => open = open.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Nothing that quads or the triples of a template can hold begins here; where conditions
    /// stand.
    pub(in crate::parser) fn no_quad(&self, note: &'static str) -> Failure {
        let holds_no_conditions = [
            Keyword::Filter,
            Keyword::Optional,
            Keyword::Bind,
            Keyword::Minus,
            Keyword::Lateral,
            Keyword::Service,
            Keyword::Values,
            Keyword::Union,
        ];
        match self.token.kind {
            TokenKind::End => self.unclosed(),
            TokenKind::Keyword(keyword) if holds_no_conditions.contains(&keyword) => {
                let failure = self.error(ErrorKind::Misplaced {
                    clause: keyword.text(),
                    place: "among patterns, not in a list of triples",
                });
                failure.with_hint(Hint::Note(note))
            }
            _ => self.no_element(),
        }
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
        if let Some(failure) = self.wrong_token() {
            return Some(failure);
        }
        let token = self.token;
        let text = self.text_of(token);
        match token.kind {
            TokenKind::End => Some(self.error(ErrorKind::Empty)),
            TokenKind::LanguageTag if text.eq_ignore_ascii_case("@prefix") => {
                Some(self.turtle_declaration("PREFIX"))
            }
            TokenKind::LanguageTag if text.eq_ignore_ascii_case("@base") => {
                Some(self.turtle_declaration("BASE"))
            }
            TokenKind::Dot | TokenKind::Semicolon | TokenKind::Comma
                if self.previous.kind == TokenKind::Iri =>
            {
                Some(self.error(ErrorKind::Unexpected).with_hint(Hint::LeaveOut))
            }
            TokenKind::LeftBrace if words.contains(&Keyword::Select) => {
                let start = token.start as usize;
                let hint = Hint::Replace {
                    span: start..start,
                    text: "SELECT * WHERE ".to_owned(),
                };
                Some(self.error(ErrorKind::Unexpected).with_hint(hint))
            }
            TokenKind::Word => Some(self.word_at_the_beginning(words)),
            _ => None,
        }
    }

    fn word_at_the_beginning(&self, words: &[Keyword]) -> Failure {
        let text = self.text_of(self.token);
        let words = words.iter().chain(&Keyword::DECLARATIONS);
        let mut failure = self.error(ErrorKind::UnknownKeyword);
        if let Some(meant) = closest(text, words.map(|it| it.text())) {
            failure.hint = Some(Hint::Meant(meant));
            return failure;
        }
        failure.hint = Some(Hint::Note(match text.to_ascii_uppercase().as_str() {
            "EXPLAIN" | "ANALYZE" | "PROFILE" => {
                "`orrery explain`, or the address /explain, shows the plan of a query"
            }
            "SPARQL" => "leave it out",
            "DEFINE" => "it is Virtuoso's: there are no pragmas here, leave it out",
            "UPDATE" | "UPSERT" | "MERGE" | "REPLACE" => {
                "data are changed by `DELETE { .. } INSERT { .. } WHERE { .. }`"
            }
            "SHOW" | "USE" => "a query begins with SELECT, ASK, CONSTRUCT or DESCRIBE",
            "MATCH" => {
                failure.kind = ErrorKind::OtherLanguage { language: "Cypher" };
                "write `SELECT * WHERE { ?subject ?predicate ?object }`"
            }
            _ => return failure,
        }));
        failure
    }

    /// Something stands behind a query.
    pub(in crate::parser) fn behind_query(&self) -> Failure {
        if let Some(failure) = self.wrong_token() {
            return failure;
        }
        let with_note = |note| {
            self.error(ErrorKind::Unexpected)
                .with_hint(Hint::Note(note))
        };
        match self.token.kind {
            TokenKind::RightBrace | TokenKind::RightParen | TokenKind::RightBracket => {
                self.unopened()
            }
            TokenKind::Word => self.word_behind_query(),
            TokenKind::Semicolon => self.error(ErrorKind::Unexpected).with_hint(Hint::LeaveOut),
            TokenKind::Keyword(Keyword::From) => self.error(ErrorKind::ClauseOrder {
                clause: "FROM",
                before: "WHERE",
            }),
            TokenKind::Keyword(Keyword::Union) => with_note(
                "the groups of a UNION stand in the braces of the WHERE: `{ { .. } UNION { .. } }`",
            ),
            TokenKind::Keyword(
                keyword @ (Keyword::Filter
                | Keyword::Optional
                | Keyword::Bind
                | Keyword::Minus
                | Keyword::Lateral
                | Keyword::Graph
                | Keyword::Service),
            ) => self.error(ErrorKind::Misplaced {
                clause: keyword.text(),
                place: "inside of the braces of the WHERE",
            }),
            kind if Keyword::QUERIES.map(TokenKind::Keyword).contains(&kind) => {
                with_note("a text has one query; a further one is sent by itself")
            }
            _ => self.unexpected(),
        }
    }

    fn word_behind_query(&self) -> Failure {
        let mut failure = self.error(ErrorKind::UnknownKeyword);
        let word = self.text_of(self.token);
        failure.hint = match word.to_ascii_uppercase().as_str() {
            "SORT" => Some(Hint::Meant("ORDER")),
            "SKIP" => Some(Hint::Meant("OFFSET")),
            "TOP" | "FETCH" | "FIRST" => Some(Hint::Meant("LIMIT")),
            "JOIN" | "AND" => Some(JOINED),
            _ => closest(word, MODIFIER_WORDS).map(Hint::Meant),
        };
        failure
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

    /// `WHERE` has to follow what an update changes.
    pub(in crate::parser) fn no_where(&self) -> Failure {
        let failure = self.no_keyword(Keyword::Where);
        match failure.kind {
            // By itself it would not mend what has no pattern either.
            ErrorKind::MissingKeyword { .. } if self.token.kind != TokenKind::LeftBrace => failure.with_hint(Hint::Note(
                "`INSERT { .. } WHERE { .. }` inserts what a pattern finds, `INSERT DATA { .. }` what stands in it; DELETE likewise",
            )),
            _ => failure,
        }
    }

    /// `WITH <g> INSERT DATA`: the `INSERT` is here.
    pub(in crate::parser) fn data_with_graph(&self) -> Failure {
        let failure = self.error(ErrorKind::Unexpected);
        failure.with_hint(Hint::Note(
            "DATA has no WITH; the graph stands inside: `INSERT DATA { GRAPH <...> { .. } }`",
        ))
    }

    /// `DELETE FROM`, `INSERT INTO`: the second word is here.
    pub(in crate::parser) fn no_table(&self) -> Failure {
        let failure = match self.other_language() {
            Some(failure) => return failure,
            None => self.error(ErrorKind::Unexpected),
        };
        failure.with_hint(Hint::Note(
            "a graph stands inside of the braces, `{ GRAPH <...> { .. } }`, or before the operation, `WITH <...>`",
        ))
    }

    /// A pattern has to begin here.
    pub(in crate::parser) fn no_pattern(&self) -> Failure {
        let unexpected = |note| {
            self.error(ErrorKind::Unexpected)
                .with_hint(Hint::Note(note))
        };
        match self.token.kind {
            TokenKind::Variable | TokenKind::LeftParen if self.previous.kind == TokenKind::Star => {
                unexpected("`*` is all variables already; leave out either")
            }
            TokenKind::Keyword(keyword) if ENDING.contains(&keyword) => {
                self.error(ErrorKind::ClauseOrder {
                    clause: "WHERE { .. }",
                    before: clause_of(keyword),
                })
            }
            _ => self.no_bracket("{", self.previous),
        }
    }
}
