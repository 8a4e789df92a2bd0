//! The limits on a text's demands of stack and memory, checked before parsing.
//!
//! The parser counts brackets and subqueries, but makes a tree as deep as the text is long of
//! `1 + 1 + 1 + ...`, of `... UNION SELECT ...` and of `... JOIN ...`, and drops it by recursion.
//! So there are limits to what may stand in a row without a comma between the same two brackets,
//! and to how often the words that make such trees may stand in a statement, commas or not.
//!
//! ```text
//! 1 IN (1, 1) OR 1 IN (1, 1) OR ...      a comma ends the row of its own brackets alone; brackets are one sign of the row around them
//! ```

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::{Error, Result, SqlState};

/// So many words, numbers, signs and blanks are taken; each takes some 100 bytes while the text is
/// parsed.
const TOKENS_MAX: usize = 1_500_000;
/// So many words, numbers and signs may follow each other without a comma. A tree of so many
/// operators is dropped within 2 MB of stack.
const TOKENS_IN_A_ROW_MAX: usize = 4_000;
/// So many `UNION`, `INTERSECT`, `EXCEPT`, `MINUS` and `JOIN` may stand in one statement.
const BRANCHES_MAX: usize = 1_000;
/// So many `OVER` may stand in one statement: each order of a window is a node of the plan, with
/// all columns of those below.
const WINDOWS_MAX: usize = 500;

/// Refuses texts whose tokens would take too much.
pub(super) fn refuse_many_tokens(text: &str) -> Result<()> {
    if tokens_at_most(text) > TOKENS_MAX {
        return Err(Error::new(
            SqlState::ProgramLimitExceeded,
            format!("a text has more than {TOKENS_MAX} words, signs and blanks"),
        )
        .with_hint("Give its statements one after the other."));
    }
    Ok(())
}

/// Refuses texts whose trees would take too much, by their tokens.
pub(super) fn refuse_excess(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut statement = Counted::default();
    tokens
        .iter()
        .try_for_each(|token| statement.count(&token.token))
}

/// How many tokens a text has at most, without making any. What quotes hold is one, unless
/// something may hold a quote that is none.
pub(super) fn tokens_at_most(text: &str) -> usize {
    let may_hide_quotes = ["--", "/*", "$", "\\"]
        .iter()
        .any(|sign| text.contains(sign));
    let mut quote = None;
    let mut was_word = false;
    let mut count = 0;
    for byte in text.bytes() {
        match quote {
            Some(open) if byte == open => quote = None,
            Some(_) => continue,
            None if !may_hide_quotes && matches!(byte, b'\'' | b'"') => quote = Some(byte),
            None => {}
        }
        let is_word = byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
        count += usize::from(!(is_word && was_word));
        was_word = is_word;
    }
    count
}

/// What was counted of one statement.
#[derive(Default)]
struct Counted {
    /// Tokens in a row, around each pair of brackets that is open.
    around: Vec<usize>,
    /// The same within the innermost.
    in_a_row: usize,
    branches: usize,
    windows: usize,
    explains: usize,
    /// Whether what an `EXPLAIN` is about has begun, or there is none.
    is_explained: bool,
}

impl Counted {
    fn count(&mut self, token: &Token) -> Result<()> {
        match token {
            Token::Whitespace(_) => return Ok(()),
            Token::SemiColon => {
                *self = Self::default();
                return Ok(());
            }
            Token::Comma => self.in_a_row = 0,
            Token::LParen | Token::LBracket | Token::LBrace => {
                self.around.push(self.in_a_row + 1);
                self.in_a_row = 0;
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                self.in_a_row = self.around.pop().unwrap_or(self.in_a_row);
            }
            Token::Word(word) => {
                self.in_a_row += 1;
                self.count_word(word.keyword)?;
            }
            _ => self.in_a_row += 1,
        }
        if self.in_a_row > TOKENS_IN_A_ROW_MAX {
            return Err(too_complex(format!(
                "more than {TOKENS_IN_A_ROW_MAX} words and signs stand in a row"
            )));
        }
        Ok(())
    }

    fn count_word(&mut self, word: Keyword) -> Result<()> {
        let is_branch = matches!(
            word,
            Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::MINUS | Keyword::JOIN
        );
        self.branches += usize::from(is_branch);
        self.windows += usize::from(word == Keyword::OVER);
        match word {
            _ if self.is_explained => {}
            // Each of them is a call of the parser by itself.
            Keyword::EXPLAIN => {
                self.explains += 1;
                if self.explains > 1 {
                    return Err(Error::new(
                        SqlState::SyntaxError,
                        "syntax error at or near \"EXPLAIN\": an EXPLAIN cannot be explained",
                    ));
                }
            }
            Keyword::SELECT
            | Keyword::WITH
            | Keyword::VALUES
            | Keyword::INSERT
            | Keyword::UPDATE
            | Keyword::DELETE
            | Keyword::CREATE
            | Keyword::FROM => self.is_explained = true,
            // Before these there are options of EXPLAIN.
            _ => self.is_explained = self.explains == 0,
        }
        if self.branches > BRANCHES_MAX {
            return Err(too_complex(format!(
                "a statement has more than {BRANCHES_MAX} joins and set operations"
            )));
        }
        if self.windows > WINDOWS_MAX {
            return Err(too_complex(format!(
                "a statement has more than {WINDOWS_MAX} window functions"
            )));
        }
        Ok(())
    }
}

fn too_complex(what: String) -> Error {
    Error::new(SqlState::StatementTooComplex, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::statement::tokens::tokens;

    fn refuse_text(text: &str) -> Result<()> {
        refuse_many_tokens(text)?;
        refuse_excess(&tokens(text).unwrap())
    }

    #[test]
    fn tokens_are_never_more_than_estimated() {
        for text in [
            "select 1, 'it''s  a   text', \"a name\" from t -- 'what\n where x = 'y'",
            "select $$ ' $$, 1, 2, 3",
            "select E'\\'', 1, 2, 3, '",
            "select 1>-+-+1",
            "insert into t values (1,2),(3,4.5e6)",
            "",
        ] {
            if let Ok(tokens) = tokens(text) {
                assert!(tokens.len() <= tokens_at_most(text), "{text}");
            }
        }
        let long = format!("select '{}'", "a b ".repeat(1_000));
        assert!(tokens_at_most(&long) < 10);
    }

    #[test]
    fn commas_end_the_row_of_their_own_brackets_alone() {
        let refused = |text: &str| refuse_text(text).unwrap_err().state.code();
        assert_eq!(
            refused(&format!("select {}true", "1 in (1,1) or ".repeat(100_000))),
            "54001"
        );
        assert_eq!(
            refused(&format!(
                "select 1{}",
                ", 1 union all select 1".repeat(2_000)
            )),
            "54001"
        );
        assert_eq!(
            refused(&format!(
                "select 1, 1{}",
                " minus select 1, 1".repeat(2_000)
            )),
            "54001"
        );
        assert_eq!(
            refused(&format!(
                "select 1{}",
                ", sum(x) over (order by x)".repeat(1_000)
            )),
            "54001"
        );
        assert_eq!(
            refused(&format!("select 1>{}1", "+-".repeat(4_000))),
            "54001"
        );
        assert_eq!(refused(&"explain ".repeat(4_000)), "42601");
        assert_eq!(
            refused("explain (format tree) explain format indent explain select 1"),
            "42601"
        );
        assert_eq!(refused(&",".repeat(2_000_000)), "54000");
        refuse_text(&format!("select {}true", "1 in (1,1), ".repeat(50_000))).unwrap();
        refuse_text(&format!(
            "insert into t values (1){}",
            ", (1, -2)".repeat(50_000)
        ))
        .unwrap();
        refuse_text(&"select 1 union select 2; ".repeat(2_000)).unwrap();
        refuse_text("explain analyze verbose select explain.explain from explain").unwrap();
    }
}
