//! The parser of statements about mapped graphs.
//!
//! The library's syntax tree has no node for them, so they become calls of a procedure that no text
//! can name.

use datafusion::common::DataFusionError;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Statement, Value,
};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::definition::{MappedGraph, MappingSource};
use crate::names::SCHEMA;
use crate::parse::identifiers::folded;
use crate::{Error, Result};

/// The procedure.
const PROCEDURE: &str = "\u{1}graph";

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GraphStatement {
    Create(MappedGraph),
    Drop { name: String, if_exists: bool },
    Materialize { name: String, into: Option<String> },
}

/// Whether such a statement begins here.
pub(crate) fn begins(parser: &Parser<'_>) -> bool {
    let is_word = |place, word: &str| {
        matches!(&parser.peek_nth_token_ref(place).token,
            Token::Word(it) if it.quote_style.is_none() && it.value.eq_ignore_ascii_case(word))
    };
    is_word(1, "GRAPH") && (is_word(0, "CREATE") || is_word(0, "DROP") || is_word(0, "MATERIALIZE"))
}

/// Takes the statement that begins here. `text` is what the parser is for.
pub(crate) fn parse(parser: &mut Parser<'_>, text: &str) -> Result<Statement> {
    let parsed = statement(parser).map_err(|error| match error {
        Refused::Syntax(error) => {
            Error::of_engine(&DataFusionError::SQL(Box::new(error), None), text)
        }
        Refused::Other(error) => error,
    });
    Ok(call(&parsed?))
}

enum Refused {
    Syntax(ParserError),
    Other(Error),
}

impl From<ParserError> for Refused {
    fn from(error: ParserError) -> Self {
        Self::Syntax(error)
    }
}

fn statement(parser: &mut Parser<'_>) -> std::result::Result<GraphStatement, Refused> {
    let first = word(parser, "CREATE, DROP or MATERIALIZE")?;
    expect(parser, "GRAPH")?;
    match first.as_str() {
        "CREATE" => {
            let name = string(parser)?;
            expect(parser, "FROM")?;
            let source = match word(parser, "MAPPING or TABLES")?.as_str() {
                "MAPPING" => MappingSource::R2rml(string(parser)?),
                "TABLES" => MappingSource::Direct(schema(parser)?),
                _ => return Err(expected(parser, "MAPPING or TABLES").into()),
            };
            let base = match taken(parser, "BASE") {
                true => Some(string(parser)?),
                false => None,
            };
            Ok(GraphStatement::Create(MappedGraph { name, source, base }))
        }
        "DROP" => {
            expect(parser, "MAPPING")?;
            let if_exists = taken(parser, "IF");
            if if_exists {
                expect(parser, "EXISTS")?;
            }
            Ok(GraphStatement::Drop {
                name: string(parser)?,
                if_exists,
            })
        }
        _ => Ok(GraphStatement::Materialize {
            name: string(parser)?,
            into: match taken(parser, "INTO") {
                true => Some(string(parser)?),
                false => None,
            },
        }),
    }
}

/// The name of a schema, if one stands here; else that in which tables are.
fn schema(parser: &mut Parser<'_>) -> std::result::Result<String, Refused> {
    let is_name = match &parser.peek_token_ref().token {
        Token::Word(word) => word.quote_style.is_some() || !word.value.eq_ignore_ascii_case("BASE"),
        _ => false,
    };
    match is_name {
        true => folded(&parser.parse_identifier()?).map_err(Refused::Other),
        false => Ok(SCHEMA.to_owned()),
    }
}

/// `'...'` or `$$...$$`.
fn string(parser: &mut Parser<'_>) -> std::result::Result<String, ParserError> {
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Ok(text),
        Token::DollarQuotedString(text) => Ok(text.value),
        _ => parser.expected("a text in single quotes", token),
    }
}

fn word(parser: &mut Parser<'_>, wanted: &str) -> std::result::Result<String, ParserError> {
    let token = parser.next_token();
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Ok(word.value.to_ascii_uppercase()),
        _ => parser.expected(wanted, token),
    }
}

/// Takes a word if it stands here.
fn taken(parser: &mut Parser<'_>, wanted: &str) -> bool {
    let is_here = matches!(&parser.peek_token_ref().token,
        Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted));
    if is_here {
        parser.next_token();
    }
    is_here
}

fn expect(parser: &mut Parser<'_>, wanted: &str) -> std::result::Result<(), ParserError> {
    match taken(parser, wanted) {
        true => Ok(()),
        false => parser.expected(wanted, parser.peek_token()),
    }
}

fn expected(parser: &Parser<'_>, wanted: &str) -> ParserError {
    match parser.expected::<()>(wanted, parser.peek_token()) {
        Err(error) => error,
        Ok(()) => ParserError::ParserError(wanted.to_owned()),
    }
}

/// The statement as the tree has it: its parts as texts.
fn call(statement: &GraphStatement) -> Statement {
    let parts: Vec<&str> = match statement {
        GraphStatement::Create(MappedGraph { name, source, base }) => {
            let (kind, source) = match source {
                MappingSource::R2rml(text) => ("mapping", text),
                MappingSource::Direct(schema) => ("tables", schema),
            };
            let parts = ["create", name, kind, source];
            parts.into_iter().chain(base.as_deref()).collect()
        }
        GraphStatement::Drop { name, if_exists } => {
            let how = if *if_exists { "if exists" } else { "" };
            vec!["drop", name, how]
        }
        GraphStatement::Materialize { name, into } => {
            let parts = ["materialize", name];
            parts.into_iter().chain(into.as_deref()).collect()
        }
    };
    let args = parts.into_iter().map(|part| {
        let value = Value::SingleQuotedString(part.to_owned());
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::value(value)))
    });
    Statement::Call(Function {
        name: ObjectName::from(vec![Ident::new(PROCEDURE)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// The statement that is in a tree, if it is one of these.
pub(crate) fn of(statement: &Statement) -> Option<GraphStatement> {
    let Statement::Call(function) = statement else {
        return None;
    };
    let is_ours = matches!(function.name.0.as_slice(), [part]
        if part.as_ident().is_some_and(|ident| ident.value == PROCEDURE));
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let parts = list.args.iter().map(|part| match part {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.as_str()),
            _ => None,
        },
        _ => None,
    });
    let parts: Vec<&str> = parts.collect::<Option<_>>().filter(|_| is_ours)?;
    let owned = |text: &str| text.to_owned();
    Some(match parts.as_slice() {
        ["create", name, kind, source, base @ ..] => GraphStatement::Create(MappedGraph {
            name: owned(name),
            source: match *kind {
                "mapping" => MappingSource::R2rml(owned(source)),
                _ => MappingSource::Direct(owned(source)),
            },
            base: base.first().copied().map(owned),
        }),
        ["drop", name, how] => GraphStatement::Drop {
            name: owned(name),
            if_exists: !how.is_empty(),
        },
        ["materialize", name, into @ ..] => GraphStatement::Materialize {
            name: owned(name),
            into: into.first().copied().map(owned),
        },
        _ => return None,
    })
}
