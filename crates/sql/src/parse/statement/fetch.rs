//! The parser of `FETCH [direction] [FROM | IN] cursor`, as in PostgreSQL: the library's parser
//! does not make the direction and `FROM` or `IN` optional.

use datafusion::sql::sqlparser::ast::{
    FetchDirection, FetchPosition, Statement, Value, ValueWithSpan,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// The statement that begins with FETCH.
pub(super) fn parse(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    parser.expect_keyword(Keyword::FETCH)?;
    let direction = direction(parser)?;
    let position = match parser.parse_one_of_keywords(&[Keyword::FROM, Keyword::IN]) {
        Some(Keyword::IN) => FetchPosition::In,
        _ => FetchPosition::From,
    };
    Ok(Statement::Fetch {
        name: parser.parse_identifier()?,
        direction,
        position,
        into: None,
    })
}

fn direction(parser: &mut Parser<'_>) -> Result<FetchDirection, ParserError> {
    let words = [
        Keyword::NEXT,
        Keyword::PRIOR,
        Keyword::FIRST,
        Keyword::LAST,
        Keyword::ABSOLUTE,
        Keyword::RELATIVE,
        Keyword::FORWARD,
        Keyword::BACKWARD,
        Keyword::ALL,
    ];
    Ok(match parser.parse_one_of_keywords(&words) {
        Some(Keyword::PRIOR) => FetchDirection::Prior,
        Some(Keyword::FIRST) => FetchDirection::First,
        Some(Keyword::LAST) => FetchDirection::Last,
        Some(Keyword::ABSOLUTE) => FetchDirection::Absolute {
            limit: number(parser)?,
        },
        Some(Keyword::RELATIVE) => FetchDirection::Relative {
            limit: number(parser)?,
        },
        Some(Keyword::FORWARD) if parser.parse_keyword(Keyword::ALL) => FetchDirection::ForwardAll,
        Some(Keyword::FORWARD) => FetchDirection::Forward {
            limit: number_if_any(parser)?,
        },
        Some(Keyword::BACKWARD) if parser.parse_keyword(Keyword::ALL) => {
            FetchDirection::BackwardAll
        }
        Some(Keyword::BACKWARD) => FetchDirection::Backward {
            limit: number_if_any(parser)?,
        },
        Some(Keyword::ALL) => FetchDirection::All,
        Some(_) => FetchDirection::Next,
        None => match number_if_any(parser)? {
            Some(limit) => FetchDirection::Count { limit },
            None => FetchDirection::Next,
        },
    })
}

fn number_if_any(parser: &mut Parser<'_>) -> Result<Option<ValueWithSpan>, ParserError> {
    let begins = matches!(
        parser.peek_token_ref().token,
        Token::Number(..) | Token::Minus | Token::Plus
    );
    begins.then(|| number(parser)).transpose()
}

fn number(parser: &mut Parser<'_>) -> Result<ValueWithSpan, ParserError> {
    let is_negative = parser.consume_token(&Token::Minus);
    if !is_negative {
        let _ = parser.consume_token(&Token::Plus);
    }
    let mut number = parser.parse_number_value()?;
    if is_negative && let Value::Number(digits, _) = &mut number.value {
        digits.insert(0, '-');
    }
    Ok(number)
}
