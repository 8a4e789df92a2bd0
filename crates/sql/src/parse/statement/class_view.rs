//! `CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name FROM CLASS <iri>`: a view over `class` with
//! discovered columns.
//!
//! An IRI that is not made of SQL's tokens (a comment would begin in it, or a string) can be given
//! in quotes: `FROM CLASS 'http://e/a--b'`.

use datafusion::common::DataFusionError;
use datafusion::sql::sqlparser::ast::{ObjectName, Statement};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token};

use crate::values::iri::require_iri;
use crate::{Error, Result};

/// What comes before the IRI.
struct Head {
    or_replace: bool,
    if_not_exists: bool,
    name: ObjectName,
}

/// Takes such a statement, if the next is one. `text` is what the parser is for.
pub(super) fn parse(parser: &mut Parser<'_>, text: &str) -> Result<Option<Statement>> {
    if !parser.peek_keyword(Keyword::CREATE) {
        return Ok(None);
    }
    let of_parser = |error| Error::of_engine(&DataFusionError::SQL(Box::new(error), None), text);
    let Some(head) = parser.maybe_parse(head).map_err(of_parser)? else {
        return Ok(None);
    };
    let iri = iri(parser, text).map_err(of_parser)?;
    require_iri(&iri)?;
    let or_replace = if head.or_replace { "OR REPLACE " } else { "" };
    let if_not_exists = if head.if_not_exists {
        "IF NOT EXISTS "
    } else {
        ""
    };
    let written = format!(
        "CREATE {or_replace}VIEW {if_not_exists}{} AS SELECT * FROM class('{}')",
        head.name,
        iri.replace('\'', "''")
    );
    let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(&written);
    let statement = parsed.and_then(|mut parser| parser.parse_statement());
    statement.map(Some).map_err(of_parser)
}

fn head(parser: &mut Parser<'_>) -> std::result::Result<Head, ParserError> {
    parser.expect_keyword(Keyword::CREATE)?;
    let or_replace = parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    parser.expect_keyword(Keyword::VIEW)?;
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    parser.expect_keyword(Keyword::FROM)?;
    let word = parser.parse_identifier()?;
    match word.quote_style.is_none() && word.value.eq_ignore_ascii_case("class") {
        true => Ok(Head {
            or_replace,
            if_not_exists,
            name,
        }),
        false => parser.expected("CLASS", parser.peek_token()),
    }
}

/// `<iri>`, or a string. Its tokens say nothing of it, so what is between the signs is taken from
/// the text.
fn iri(parser: &mut Parser<'_>, text: &str) -> std::result::Result<String, ParserError> {
    let first = parser.next_token();
    if let Token::SingleQuotedString(iri) = &first.token {
        return Ok(iri.clone());
    }
    let start = offset(text, first.span.start).filter(|start| text[*start..].starts_with('<'));
    let iri = start.and_then(|start| text[start + 1..].split_once('>'));
    let (Some(start), Some((iri, _))) = (start, iri) else {
        return parser.expected("the IRI of a class: <http://...>", first);
    };
    let end = start + 1 + iri.len();
    loop {
        let next = parser.peek_token();
        let is_within = offset(text, next.span.start).is_some_and(|next| next <= end);
        if next.token == Token::EOF || !is_within {
            return Ok(iri.to_owned());
        }
        parser.advance_token();
    }
}

/// The bytes before a place.
fn offset(text: &str, place: Location) -> Option<usize> {
    let line = usize::try_from(place.line).ok()?.checked_sub(1)?;
    let column = usize::try_from(place.column).ok()?.checked_sub(1)?;
    let before: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = text.get(before..)?;
    let within: usize = rest.chars().take(column).map(char::len_utf8).sum();
    Some(before + within)
}

#[cfg(test)]
mod tests {
    use crate::parse::statement::parse_one;

    #[test]
    fn the_iri_is_taken_from_the_text_as_it_stands_there() {
        for (text, expected) in [
            (
                "create view v from class <http://e/a#B>",
                "CREATE VIEW v AS SELECT * FROM class('http://e/a#B')",
            ),
            (
                "/* ä */\n Create Or Replace View s.\"V\" From\n Class <http://e/x/> ;",
                "CREATE OR REPLACE VIEW s.\"V\" AS SELECT * FROM class('http://e/x/')",
            ),
            (
                "create view if not exists v from class 'http://e/it''s--one'",
                "CREATE VIEW IF NOT EXISTS v AS SELECT * FROM class('http://e/it''s--one')",
            ),
        ] {
            assert_eq!(parse_one(text).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn what_is_no_iri_is_refused() {
        for text in [
            "create view v from class",
            "create view v from class http://e/a",
            "create view v from class <http://e/a",
            "create view v from class <a>",
            "create view v from class <http://e/a b>",
            "create view v from class <http://e/a> <http://e/b>",
            "create view v from classes <http://e/a>",
        ] {
            assert!(parse_one(text).is_err(), "{text}");
        }
    }
}
