//! From a text to statements, within limits.
//!
//! The parser counts brackets and subqueries, but not `1 + 1 + 1 + ...`, which is as deep as it is long. Such a tree is dropped by recursion, so there
//! is a limit to what may stand in a row without a comma, before there is a tree; and the planner clones it by recursion, at about 1 KB of stack a
//! level, so there is one to the depth of expressions.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::sql::parser::{DFParserBuilder, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{self, Expr, SelectItem, SetExpr, Visit, Visitor};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::{Error, Result, SqlState};

/// Longer texts are refused: a plan takes a hundred times the memory of its text.
pub const SQL_BYTES_MAX: usize = 4 << 20;
/// More statements are refused.
const STATEMENTS_MAX: usize = 100_000;
/// Brackets and subqueries may be nested so deep.
const NESTING_MAX: usize = 100;
/// So many words, numbers and signs may follow each other without a comma. A tree of so many operators is dropped within 2 MB of stack.
const TOKENS_IN_A_ROW_MAX: usize = 4_000;
/// Operators may stand below each other so deep.
const EXPRESSION_DEPTH_MAX: usize = 500;
/// So much stack is there wherever the planner begins to recurse: enough for a clone of the deepest expression.
pub(crate) const STACK_BYTES_MIN: usize = 1 << 20;

/// A statement that is SQL; whether it can be run is not known yet.
#[derive(Debug, Clone)]
pub struct Statement {
    pub(crate) parsed: Parsed,
    /// All of the text in which it is: places are of this.
    pub(crate) text: Arc<str>,
}

/// All statements of a text.
pub(crate) fn parse(text: &str) -> Result<VecDeque<Parsed>> {
    if text.len() > SQL_BYTES_MAX {
        return Err(Error::new(
            SqlState::ProgramLimitExceeded,
            format!(
                "a text of {} bytes is longer than the {SQL_BYTES_MAX} that are taken",
                text.len()
            ),
        ));
    }
    refuse_rows_of_tokens(text)?;
    let statements = DFParserBuilder::new(text)
        .with_dialect(&PostgreSqlDialect {})
        .with_recursion_limit(NESTING_MAX)
        .build()
        .and_then(|mut parser| parser.parse_statements())
        .map_err(|error| Error::of_engine(&error, text))?;
    if statements.len() > STATEMENTS_MAX {
        return Err(Error::new(
            SqlState::ProgramLimitExceeded,
            format!("a text has more than {STATEMENTS_MAX} statements"),
        ));
    }
    statements.iter().try_for_each(refuse_depth)?;
    Ok(statements)
}

/// The statement of a text that has one.
pub(crate) fn parse_one(text: &str) -> Result<Parsed> {
    let mut statements = parse(text)?;
    match (statements.pop_front(), statements.len()) {
        (Some(statement), 0) => Ok(statement),
        (Some(_), _) => Err(Error::new(
            SqlState::SyntaxError,
            "one statement at a time can be planned",
        )),
        (None, _) => Err(Error::new(SqlState::SyntaxError, "there is no statement")),
    }
}

/// An expression that a definition has as a text.
pub(crate) fn parse_expression(text: &str) -> Result<Expr> {
    let Parsed::Statement(statement) = parse_one(&format!("SELECT {text}"))? else {
        return Err(not_an_expression(text));
    };
    let ast::Statement::Query(query) = *statement else {
        return Err(not_an_expression(text));
    };
    let SetExpr::Select(select) = *query.body else {
        return Err(not_an_expression(text));
    };
    match <[SelectItem; 1]>::try_from(select.projection) {
        Ok([SelectItem::UnnamedExpr(expr)]) => Ok(expr),
        _ => Err(not_an_expression(text)),
    }
}

fn not_an_expression(text: &str) -> Error {
    Error::new(
        SqlState::InternalError,
        format!("a definition has {text:?} where an expression should be"),
    )
}

fn refuse_rows_of_tokens(text: &str) -> Result<()> {
    let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize() else {
        // The parser says where.
        return Ok(());
    };
    let mut in_a_row = 0;
    for token in tokens {
        match token {
            Token::Comma | Token::SemiColon => in_a_row = 0,
            Token::Whitespace(_) => {}
            _ => in_a_row += 1,
        }
        if in_a_row > TOKENS_IN_A_ROW_MAX {
            return Err(Error::new(
                SqlState::StatementTooComplex,
                format!("more than {TOKENS_IN_A_ROW_MAX} words and signs stand in a row"),
            ));
        }
    }
    Ok(())
}

fn refuse_depth(statement: &Parsed) -> Result<()> {
    let mut explained = statement;
    while let Parsed::Explain(explain) = explained {
        explained = &explain.statement;
    }
    let Parsed::Statement(statement) = explained else {
        // Expressions have no place in the others.
        return Ok(());
    };
    match statement.visit(&mut Depth(0)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::new(
            SqlState::StatementTooComplex,
            format!("an expression is more than {EXPRESSION_DEPTH_MAX} operators deep"),
        )),
    }
}

/// How deep the visitor is.
struct Depth(usize);

impl Visitor for Depth {
    type Break = ();

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.0 += 1;
        if self.0 > EXPRESSION_DEPTH_MAX {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.0 -= 1;
        ControlFlow::Continue(())
    }
}
