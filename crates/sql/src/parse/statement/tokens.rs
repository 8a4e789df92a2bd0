//! The tokenizer, with PostgreSQL's rules for operators.
//!
//! The library takes all signs of operators that follow each other for one. PostgreSQL does so too,
//! but ends an operator before a `+` or `-` at its end, unless it holds one of
//! `~ ! @ # % ^ & | ? `` ` ``:
//!
//! ```text
//!   a>-1      >- 1      ->    > - 1           a#-1      #- 1      ->    #- 1
//!   a<>-+1    <>-+ 1    ->    <> - + 1
//! ```

use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{
    Location, Span, Token, TokenWithSpan, Tokenizer, TokenizerError,
};

/// An operator with one of these may end with a sign.
const KEEP_SIGNS: &str = "~!@#%^&|?`";

/// The tokens of a text, with their places in it.
pub(super) fn tokens(text: &str) -> Result<Vec<TokenWithSpan>, TokenizerError> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location()?;
    if !tokens.iter().any(|token| parts(&token.token).is_some()) {
        return Ok(tokens);
    }
    let mut out = Vec::with_capacity(tokens.len() + 1);
    for token in tokens {
        let Some((operator, signs)) = parts(&token.token) else {
            out.push(token);
            continue;
        };
        let mut start = token.span.start;
        let mut push = |token: Token, letters: usize| {
            let end = Location::new(start.line, start.column + letters as u64);
            out.push(TokenWithSpan::new(token, Span::new(start, end)));
            start = end;
        };
        push(named(operator), operator.len());
        for sign in signs.chars() {
            let token = match sign {
                '+' => Token::Plus,
                _ => Token::Minus,
            };
            push(token, 1);
        }
    }
    Ok(out)
}

/// An operator, and the signs at its end that are none of it, where there are any.
fn parts(token: &Token) -> Option<(&str, &str)> {
    let Token::CustomBinaryOperator(letters) = token else {
        return None;
    };
    if letters.contains(|letter| KEEP_SIGNS.contains(letter)) {
        return None;
    }
    let operator = letters.trim_end_matches(['+', '-']).len().max(1);
    (operator < letters.len()).then(|| letters.split_at(operator))
}

/// The token of an operator.
fn named(operator: &str) -> Token {
    match operator {
        "<" => Token::Lt,
        ">" => Token::Gt,
        "<=" => Token::LtEq,
        ">=" => Token::GtEq,
        "<>" => Token::Neq,
        "=" => Token::Eq,
        "+" => Token::Plus,
        "-" => Token::Minus,
        "*" => Token::Mul,
        "/" => Token::Div,
        "->" => Token::Arrow,
        "->>" => Token::LongArrow,
        "<<" => Token::ShiftLeft,
        ">>" => Token::ShiftRight,
        "<->" => Token::TwoWayArrow,
        "<=>" => Token::Spaceship,
        other => Token::CustomBinaryOperator(other.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(text: &str) -> String {
        let tokens = tokens(text).unwrap();
        let words = tokens.iter().map(|token| token.token.to_string());
        let words: Vec<String> = words.filter(|word| word != " ").collect();
        words.join(" ")
    }

    #[test]
    fn an_operator_ends_before_a_sign() {
        for (text, expected) in [
            ("a>-1", "a > - 1"),
            ("a>=+1", "a >= + 1"),
            ("a<>-+1", "a <> - + 1"),
            ("a<-1", "a < - 1"),
            ("a<=-1", "a <= - 1"),
            ("a=-1", "a = - 1"),
            ("a-+1", "a - + 1"),
            ("a*-1", "a * - 1"),
            ("a/-1", "a / - 1"),
            ("a>>-1", "a >> - 1"),
            ("a->-1", "a -> - 1"),
            ("a->>-1", "a ->> - 1"),
            ("a#-1", "a #- 1"),
            ("a%-1", "a %- 1"),
            ("a||-1", "a ||- 1"),
            ("a>*1", "a >* 1"),
        ] {
            assert_eq!(spelled(text), expected, "{text}");
        }
    }

    #[test]
    fn the_parts_have_their_own_places() {
        let tokens = tokens("a\n  >=-1").unwrap();
        let places = tokens[tokens.len() - 3..].iter();
        let places: Vec<_> = places
            .map(|token| (token.span.start, token.span.end))
            .collect();
        let at = |from, to| (Location::new(2, from), Location::new(2, to));
        assert_eq!(places, [at(3, 5), at(5, 6), at(6, 7)]);
    }
}
