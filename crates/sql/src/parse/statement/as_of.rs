//! `FROM t FOR SYSTEM_TIME AS OF '17'`: a table at an older commit or time.
//!
//! ```text
//!   s.t FOR SYSTEM_TIME AS OF '17' [AS x]    ->    "\u{1}work"."as of\u{1}17\u{1}s\u{1}t" AS x        the alias is t where there is none
//! ```
//!
//! The parser knows this form in other dialects alone, so its words are taken out of the tokens
//! before. What stands there instead is a name that no text can have; who plans the statement takes
//! it apart again ([`OldTable::of`]).

use datafusion::sql::sqlparser::keywords::{Keyword, RESERVED_FOR_TABLE_ALIAS};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::names::{SCHEMA, WORK_SCHEMA};

/// What the names begin with.
const MARK: &str = "as of";
/// Between the parts of such a name.
const BETWEEN: char = '\u{1}';

/// A table as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OldTable {
    /// The commit, or the time, as the text has it.
    pub(crate) at: String,
    pub(crate) schema: String,
    pub(crate) table: String,
}

impl OldTable {
    /// The one that a name of the work schema stands for, if it does.
    pub(crate) fn of(schema: &str, name: &str) -> Option<Self> {
        let mut parts = name.split(BETWEEN);
        if schema != WORK_SCHEMA || parts.next() != Some(MARK) {
            return None;
        }
        let (at, schema, table) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self {
            at: at.to_owned(),
            schema: schema.to_owned(),
            table: table.to_owned(),
        })
    }

    fn name(&self) -> String {
        [MARK, &self.at, &self.schema, &self.table].join(&BETWEEN.to_string())
    }
}

/// The tokens of a text, old tables by their names.
pub(super) fn with_old_tables(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_meant = tokens.iter().any(|token| match &token.token {
        Token::Word(word) => word.value.eq_ignore_ascii_case(SYSTEM_TIME),
        _ => false,
    });
    if !is_meant {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut rest = tokens.as_slice();
    while let Some((first, after)) = rest.split_first() {
        let found = clause(rest).and_then(|(at, after)| {
            let (start, schema, table) = name_before(&out)?;
            Some((OldTable { at, schema, table }, start, after))
        });
        let Some((old, start, after_clause)) = found else {
            out.push(first.clone());
            rest = after;
            continue;
        };
        out.truncate(start);
        let mut push = |token| out.push(TokenWithSpan::new(token, first.span));
        push(quoted(WORK_SCHEMA));
        push(Token::Period);
        push(quoted(&old.name()));
        if !has_alias(after_clause) {
            push(Token::make_keyword("AS"));
            push(quoted(&old.table));
        }
        rest = after_clause;
    }
    out
}

const SYSTEM_TIME: &str = "SYSTEM_TIME";

fn quoted(name: &str) -> Token {
    Token::make_word(name, Some('"'))
}

fn is_blank(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// The next token that is none of blanks and comments, and what is behind it.
fn next(tokens: &[TokenWithSpan]) -> Option<(&Token, &[TokenWithSpan])> {
    let place = tokens.iter().position(|token| !is_blank(token))?;
    Some((&tokens[place].token, &tokens[place + 1..]))
}

/// `FOR SYSTEM_TIME AS OF` with what is named by it, and what is behind that.
fn clause(tokens: &[TokenWithSpan]) -> Option<(String, &[TokenWithSpan])> {
    let mut rest = tokens;
    for wanted in ["FOR", SYSTEM_TIME, "AS", "OF"] {
        let (token, after) = next(rest)?;
        match token {
            Token::Word(word) if word.quote_style.is_none() => {
                if !word.value.eq_ignore_ascii_case(wanted) {
                    return None;
                }
            }
            _ => return None,
        }
        rest = after;
    }
    let (token, after) = next(rest)?;
    match token {
        Token::SingleQuotedString(at) | Token::Number(at, false) => Some((at.clone(), after)),
        Token::Word(word) if word.keyword == Keyword::TIMESTAMP => match next(after)? {
            (Token::SingleQuotedString(at), after) => Some((at.clone(), after)),
            _ => None,
        },
        _ => None,
    }
}

/// The name that tokens end with: where it begins, its schema and the table.
fn name_before(tokens: &[TokenWithSpan]) -> Option<(usize, String, String)> {
    let last = |end: usize| tokens[..end].iter().rposition(|token| !is_blank(token));
    let word = |place: usize| match &tokens[place].token {
        Token::Word(word) => Some(folded(word)),
        _ => None,
    };
    let place = last(tokens.len())?;
    let table = word(place)?;
    let before = last(place);
    let Some(period) = before.filter(|it| tokens[*it].token == Token::Period) else {
        return Some((place, SCHEMA.to_owned(), table));
    };
    let place = last(period)?;
    Some((place, word(place)?, table))
}

fn folded(word: &Word) -> String {
    match word.quote_style {
        Some(_) => word.value.clone(),
        None => word.value.to_lowercase(),
    }
}

fn has_alias(tokens: &[TokenWithSpan]) -> bool {
    match next(tokens) {
        Some((Token::Word(word), _)) => {
            word.keyword == Keyword::AS || !RESERVED_FOR_TABLE_ALIAS.contains(&word.keyword)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::statement::parse_one;

    fn parsed(text: &str) -> String {
        let text = parse_one(text).unwrap().to_string();
        text.replace(WORK_SCHEMA, "W").replace(BETWEEN, "|")
    }

    #[test]
    fn the_words_become_a_name() {
        for (text, expected) in [
            (
                "select * from t for system_time as of '17'",
                "SELECT * FROM \"W\".\"as of|17|public|t\" AS \"t\"",
            ),
            (
                "select x.a from S.\"T\" /* then */ FOR System_Time\nAS OF 17 x join u on true",
                "SELECT x.a FROM \"W\".\"as of|17|s|T\" x JOIN u ON true",
            ),
            (
                "select * from t for system_time as of timestamp '2026-11-21T10:00:00Z' where a > 1",
                "SELECT * FROM \"W\".\"as of|2026-11-21T10:00:00Z|public|t\" AS \"t\" WHERE a > 1",
            ),
            (
                "select 'for system_time as of 1' from t for update",
                "SELECT 'for system_time as of 1' FROM t FOR UPDATE",
            ),
        ] {
            let found = parsed(text).replace(" AS x", " x");
            assert_eq!(found, expected);
        }
        for wrong in [
            "select * from t for system_time as of",
            "select * from t for system_time as of now()",
            "select * from (select 1) for system_time as of '17'",
        ] {
            assert!(parse_one(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_is_taken_apart_again() {
        let old = OldTable {
            at: "17".to_owned(),
            schema: "s".to_owned(),
            table: "t".to_owned(),
        };
        assert_eq!(OldTable::of(WORK_SCHEMA, &old.name()), Some(old.clone()));
        assert_eq!(OldTable::of("public", &old.name()), None);
        assert_eq!(OldTable::of(WORK_SCHEMA, "returned"), None);
    }
}
