//! The parser of `COPY`, with both of PostgreSQL's forms of options:
//!
//! ```text
//! COPY t (a, b) FROM 'file' WITH (FORMAT csv, HEADER, NULL 'x')
//! COPY (SELECT ...) TO STDOUT WITH CSV HEADER DELIMITER AS ';'
//! ```
//!
//! DataFusion's parser has a `COPY` of its own; the one below it takes what follows `FROM STDIN`
//! for data.

use datafusion::common::DataFusionError;
use datafusion::sql::sqlparser::ast::{CopyOption, CopySource, CopyTarget, Ident, Statement};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{IsOptional, Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::{Error, Result, SqlState};

/// Takes the statement that begins with the word `COPY`. `text` is what the parser is for.
pub(crate) fn parse(parser: &mut Parser<'_>, text: &str) -> Result<Statement> {
    let mut copy = Copy {
        parser,
        refused: None,
    };
    copy.statement().map_err(|error| match copy.refused.take() {
        Some(refused) => refused,
        None => Error::of_engine(&DataFusionError::SQL(Box::new(error), None), text),
    })
}

struct Copy<'p, 't> {
    parser: &'p mut Parser<'t>,
    /// What is understood, and not there.
    refused: Option<Error>,
}

type Parsed<T> = std::result::Result<T, ParserError>;

impl Copy<'_, '_> {
    fn statement(&mut self) -> Parsed<Statement> {
        let parser = &mut *self.parser;
        parser.expect_keyword(Keyword::COPY)?;
        let source = if parser.consume_token(&Token::LParen) {
            let query = parser.parse_query()?;
            parser.expect_token(&Token::RParen)?;
            CopySource::Query(query)
        } else {
            CopySource::Table {
                table_name: parser.parse_object_name(false)?,
                columns: parser.parse_parenthesized_column_list(IsOptional::Optional, false)?,
            }
        };
        let to = match parser.parse_one_of_keywords(&[Keyword::FROM, Keyword::TO]) {
            Some(Keyword::FROM) => false,
            Some(_) => true,
            None => return parser.expected("FROM or TO", parser.peek_token()),
        };
        if !to && matches!(source, CopySource::Query(_)) {
            return parser.expected("TO behind a query", parser.peek_token());
        }
        let target = self.target(to)?;
        let _ = self.parser.parse_keyword(Keyword::WITH);
        let options = match self.parser.consume_token(&Token::LParen) {
            true => {
                let mut options = Vec::new();
                loop {
                    options.extend(self.option()?);
                    if !self.parser.consume_token(&Token::Comma) {
                        break;
                    }
                }
                self.parser.expect_token(&Token::RParen)?;
                options
            }
            false => self.old_options()?,
        };
        if self.parser.peek_keyword(Keyword::WHERE) {
            return self.refuse("COPY FROM ... WHERE");
        }
        Ok(Statement::Copy {
            source,
            to,
            target,
            options,
            legacy_options: Vec::new(),
            values: Vec::new(),
        })
    }

    fn target(&mut self, to: bool) -> Parsed<CopyTarget> {
        let parser = &mut *self.parser;
        if parser.parse_keyword(Keyword::PROGRAM) {
            return self.refuse("COPY FROM or TO PROGRAM");
        }
        if to && parser.parse_keyword(Keyword::STDOUT) {
            return Ok(CopyTarget::Stdout);
        }
        if !to && parser.parse_keyword(Keyword::STDIN) {
            return Ok(CopyTarget::Stdin);
        }
        Ok(CopyTarget::File {
            filename: parser.parse_literal_string()?,
        })
    }

    /// One within brackets.
    fn option(&mut self) -> Parsed<Option<CopyOption>> {
        let name = self.parser.parse_identifier()?.value.to_lowercase();
        Ok(Some(match name.as_str() {
            "format" => CopyOption::Format(self.name()?),
            "freeze" => CopyOption::Freeze(self.boolean()?),
            "delimiter" => CopyOption::Delimiter(self.character("delimiter")?),
            "null" => CopyOption::Null(self.parser.parse_literal_string()?),
            "header" => {
                if self.word_is("match") {
                    return self.refuse("COPY with HEADER MATCH");
                }
                CopyOption::Header(self.boolean()?)
            }
            "quote" => CopyOption::Quote(self.character("quote")?),
            "escape" => CopyOption::Escape(self.character("escape")?),
            "force_quote" => CopyOption::ForceQuote(self.columns()?),
            "force_not_null" => CopyOption::ForceNotNull(self.columns()?),
            "force_null" => CopyOption::ForceNull(self.columns()?),
            "encoding" => CopyOption::Encoding(self.parser.parse_literal_string()?),
            "on_error" => {
                let what = self.name()?.value.to_lowercase();
                if what != "stop" {
                    return self.refuse(&format!("COPY with ON_ERROR {what}"));
                }
                return Ok(None);
            }
            "default" | "log_verbosity" | "reject_limit" => {
                return self.refuse(&format!("COPY with {}", name.to_uppercase()));
            }
            other => {
                let words = format!("option \"{other}\" not recognized");
                self.refused = Some(Error::new(SqlState::SyntaxError, words));
                return Err(ParserError::ParserError(String::new()));
            }
        }))
    }

    /// Those without brackets.
    fn old_options(&mut self) -> Parsed<Vec<CopyOption>> {
        let mut options = Vec::new();
        loop {
            let parser = &mut *self.parser;
            if parser.parse_keyword(Keyword::BINARY) {
                options.push(CopyOption::Format(Ident::new("binary")));
            } else if parser.parse_keyword(Keyword::FREEZE) {
                options.push(CopyOption::Freeze(true));
            } else if parser.parse_keyword(Keyword::CSV) {
                options.push(CopyOption::Format(Ident::new("csv")));
            } else if parser.parse_keyword(Keyword::HEADER) {
                options.push(CopyOption::Header(true));
            } else if parser.parse_keyword(Keyword::DELIMITER) {
                let _ = parser.parse_keyword(Keyword::AS);
                options.push(CopyOption::Delimiter(self.character("delimiter")?));
            } else if parser.parse_keyword(Keyword::NULL) {
                let _ = parser.parse_keyword(Keyword::AS);
                options.push(CopyOption::Null(parser.parse_literal_string()?));
            } else if parser.parse_keyword(Keyword::QUOTE) {
                let _ = parser.parse_keyword(Keyword::AS);
                options.push(CopyOption::Quote(self.character("quote")?));
            } else if parser.parse_keyword(Keyword::ESCAPE) {
                let _ = parser.parse_keyword(Keyword::AS);
                options.push(CopyOption::Escape(self.character("escape")?));
            } else if parser.parse_keywords(&[Keyword::FORCE, Keyword::NOT, Keyword::NULL]) {
                options.push(CopyOption::ForceNotNull(self.old_columns()?));
            } else if parser.parse_keywords(&[Keyword::FORCE, Keyword::NULL]) {
                options.push(CopyOption::ForceNull(self.old_columns()?));
            } else if parser.parse_keywords(&[Keyword::FORCE, Keyword::QUOTE]) {
                options.push(CopyOption::ForceQuote(self.old_columns()?));
            } else if parser.parse_keyword(Keyword::ENCODING) {
                options.push(CopyOption::Encoding(parser.parse_literal_string()?));
            } else {
                return Ok(options);
            }
        }
    }

    /// A word or a text.
    fn name(&mut self) -> Parsed<Ident> {
        self.parser.parse_identifier()
    }

    fn word_is(&mut self, wanted: &str) -> bool {
        matches!(&self.parser.peek_token_ref().token, Token::Word(word) if word.value.eq_ignore_ascii_case(wanted))
    }

    /// `true`, `on`, `1`, nothing; or their opposites.
    fn boolean(&mut self) -> Parsed<bool> {
        let token = self.parser.peek_token();
        let word = match &token.token {
            Token::Word(word) => word.value.to_lowercase(),
            Token::Number(number, _) => number.clone(),
            Token::SingleQuotedString(text) => text.to_lowercase(),
            _ => return Ok(true),
        };
        let is_true = match word.as_str() {
            "true" | "on" | "1" => true,
            "false" | "off" | "0" => false,
            _ => return self.parser.expected("a boolean value", token),
        };
        self.parser.next_token();
        Ok(is_true)
    }

    fn character(&mut self, what: &str) -> Parsed<char> {
        let text = self.parser.parse_literal_string()?;
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => Ok(character),
            _ => {
                self.refused = Some(Error::new(
                    SqlState::InvalidParameterValue,
                    format!("COPY {what} must be a single one-byte character"),
                ));
                Err(ParserError::ParserError(String::new()))
            }
        }
    }

    /// `(a, b)` or `*`.
    fn columns(&mut self) -> Parsed<Vec<Ident>> {
        if self.parser.consume_token(&Token::Mul) {
            return Ok(vec![Ident::new("*")]);
        }
        self.parser
            .parse_parenthesized_column_list(IsOptional::Mandatory, false)
    }

    /// `a, b` or `*`.
    fn old_columns(&mut self) -> Parsed<Vec<Ident>> {
        if self.parser.consume_token(&Token::Mul) {
            return Ok(vec![Ident::new("*")]);
        }
        self.parser.parse_comma_separated(Parser::parse_identifier)
    }

    fn refuse<T>(&mut self, what: &str) -> Parsed<T> {
        self.refused = Some(Error::unsupported(what));
        Err(ParserError::ParserError(String::new()))
    }
}
