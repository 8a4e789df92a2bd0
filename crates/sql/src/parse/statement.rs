//! The parser from texts to statements, within limits.
//!
//! Before there is a tree, its depth and its memory are bounded by what its tokens are
//! ([`limits`]), and the time for it by the steps that the parser has ([`dialect`]). Of the tree
//! itself, expressions may not be too deep: the planner clones them by recursion, at about 1 KB of
//! stack a level; and the tables of a statement, each of which makes its plan deeper, are counted.

mod any_of;
mod as_of;
mod class_view;
mod dialect;
mod doubling;
mod fetch;
mod grouping;
mod limits;
mod precedence;
mod tokens;

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::sql::parser::{DFParserBuilder, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{self, Expr, SelectItem, SetExpr, TableFactor, Visitor};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use self::any_of::AnyOf;
pub(crate) use self::as_of::OldTable;
use self::dialect::Steps;
use self::doubling::Doubling;
use self::grouping::refuse_many_sets;
use self::limits::{refuse_excess, refuse_many_tokens, tokens_at_most};
use self::precedence::Precedence;
use crate::execute::threads::on_own_thread;
use crate::parse::comments::with_blanks_before;
use crate::parse::visit::{visit, visit_mut, visit_relations};
use crate::{Error, Result, SqlState, copy, mapped};

/// Longer texts are refused: a plan takes a hundred times the memory of its text.
pub const SQL_BYTES_MAX: usize = 4 << 20;
/// Texts as long are read within some 10 ms.
const SHORT_TEXT_BYTES_MAX: usize = 32 << 10;
/// More statements are refused.
const STATEMENTS_MAX: usize = 100_000;
/// No function has a longer name.
const FUNCTION_NAME_BYTES_MAX: usize = 256;
/// Brackets and subqueries may be nested so deep.
const NESTING_MAX: usize = 100;
/// Operators may stand below each other so deep.
const EXPRESSION_DEPTH_MAX: usize = 500;
/// Tables, views and subqueries that the FROM clauses of one statement may name.
const RELATIONS_MAX: usize = 1_000;
/// Tables that a common table expression may come to, with those that it names in the place of
/// their names.
const EXPANDED_RELATIONS_MAX: u64 = 5_000;
/// So much stack is there wherever the planner begins to recurse: enough for a clone of the deepest
/// expression.
pub(crate) const STACK_BYTES_MIN: usize = 1 << 20;

/// A statement that is SQL; whether it can be run is not known yet.
#[derive(Debug, Clone)]
pub struct Statement {
    pub(crate) parsed: Parsed,
    /// All of the text in which it is: places are of this.
    pub(crate) text: Arc<str>,
    /// Which of the text's statements it is, or is within, counted from 0.
    pub(crate) place: usize,
}

impl Statement {
    /// The only one of a text.
    pub(crate) fn alone(parsed: Parsed, text: &str) -> Self {
        Self {
            parsed,
            text: text.into(),
            place: 0,
        }
    }
}

/// What a statement prepares, if it is PREPARE; else the statement.
pub(crate) fn prepared_in(statement: Parsed) -> Parsed {
    match statement {
        Parsed::Statement(parsed) => Parsed::Statement(match *parsed {
            ast::Statement::Prepare { statement, .. } => statement,
            other => Box::new(other),
        }),
        other => other,
    }
}

/// All statements of a text; of a long one on a thread of its own, until what is returned is
/// dropped.
pub(crate) async fn parse_apart(text: &str) -> Result<VecDeque<Parsed>> {
    if text.len() <= SHORT_TEXT_BYTES_MAX {
        return parse(text);
    }
    let text = text.to_owned();
    on_own_thread(move || parse(&text)).await
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
    refuse_many_tokens(text)?;
    let tokens = tokens::tokens(&with_blanks_before(text));
    let tokens = tokens.map_err(|error| {
        Error::of_engine(&DataFusionError::from(ParserError::from(error)), text)
    })?;
    refuse_excess(&tokens)?;
    let steps = Steps::for_tokens(tokens_at_most(text));
    let parsed = parse_all(text, tokens, &steps);
    if steps.are_spent() {
        return Err(Error::new(
            SqlState::StatementTooComplex,
            "the statement takes too many steps to read: its brackets are nested in too many ways",
        ));
    }
    let mut statements = parsed?;
    if statements.len() > STATEMENTS_MAX {
        return Err(Error::new(
            SqlState::ProgramLimitExceeded,
            format!("a text has more than {STATEMENTS_MAX} statements"),
        ));
    }
    statements.iter().try_for_each(refuse_depth)?;
    for statement in &mut statements {
        if let Parsed::Statement(parsed) = explained(statement) {
            let _: ControlFlow<()> = visit_mut(parsed, &mut Precedence);
            let _: ControlFlow<()> = visit_mut(parsed, &mut AnyOf);
        }
    }
    Ok(statements)
}

/// Statements and the semicolons between them. `COPY`, `CREATE VIEW ... FROM CLASS` and what is
/// about mapped graphs are parsed by ourselves.
fn parse_all(text: &str, tokens: Vec<TokenWithSpan>, steps: &Steps) -> Result<VecDeque<Parsed>> {
    let of_engine = |error| Error::of_engine(&error, text);
    let mut parser = DFParserBuilder::new(as_of::with_old_tables(tokens))
        .with_dialect(steps)
        .with_recursion_limit(NESTING_MAX)
        .build()
        .map_err(of_engine)?;
    let mut statements = VecDeque::new();
    loop {
        while parser.parser.consume_token(&Token::SemiColon) {}
        if parser.parser.peek_token_ref().token == Token::EOF {
            return Ok(statements);
        }
        let parser_of_sql = &mut parser.parser;
        statements.push_back(if parser_of_sql.peek_keyword(Keyword::COPY) {
            Parsed::Statement(Box::new(copy::parse(parser_of_sql, text)?))
        } else if parser_of_sql.peek_keyword(Keyword::FETCH) {
            let fetch = fetch::parse(parser_of_sql);
            let fetch = fetch.map_err(|error| DataFusionError::SQL(Box::new(error), None));
            Parsed::Statement(Box::new(fetch.map_err(of_engine)?))
        } else if mapped::begins(parser_of_sql) {
            Parsed::Statement(Box::new(mapped::parse(parser_of_sql, text)?))
        } else if let Some(view) = class_view::parse(parser_of_sql, text)? {
            Parsed::Statement(Box::new(view))
        } else {
            parser.parse_statement().map_err(of_engine)?
        });
        let next = parser.parser.peek_token();
        if !matches!(next.token, Token::SemiColon | Token::EOF) {
            let error = parser.parser.expected("end of statement", next);
            return error.map_err(|error| of_engine(DataFusionError::SQL(Box::new(error), None)));
        }
    }
}

/// The statement of a text that has one.
pub(crate) fn parse_one(text: &str) -> Result<Parsed> {
    only(parse(text)?)
}

/// The same, where others wait.
pub(crate) async fn parse_one_apart(text: &str) -> Result<Parsed> {
    only(parse_apart(text).await?)
}

fn only(mut statements: VecDeque<Parsed>) -> Result<Parsed> {
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

/// What an EXPLAIN is about: there is one at most.
fn explained(statement: &mut Parsed) -> &mut Parsed {
    match statement {
        Parsed::Explain(explain) => &mut explain.statement,
        other => other,
    }
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
    match visit(statement, &mut Seen::default()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Where the visitor is, and what it has seen.
#[derive(Default)]
struct Seen {
    /// How deep in expressions.
    depth: usize,
    /// Tables, views and subqueries in FROM.
    relations: usize,
    doubling: Doubling,
}

impl Visitor for Seen {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        if let Expr::Function(call) = expr
            && let Some(long) = call.name.0.iter().find(|part| is_long_name(part))
        {
            return ControlFlow::Break(Error::new(
                SqlState::UndefinedFunction,
                format!("function {long} does not exist"),
            ));
        }
        self.depth += 1;
        if self.depth > EXPRESSION_DEPTH_MAX {
            return ControlFlow::Break(Error::new(
                SqlState::StatementTooComplex,
                format!("an expression is more than {EXPRESSION_DEPTH_MAX} operators deep"),
            ));
        }
        self.doubling.begin();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        self.depth -= 1;
        match self.doubling.end(expr) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(Error::new(
                SqlState::StatementTooComplex,
                "functions and CASE are nested in each other too deeply: give a name to a part in a subquery or in WITH",
            )),
        }
    }

    /// Whether a WITH is too large.
    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<Error> {
        if query.with.as_ref().is_some_and(is_expanded_too_far) {
            return ControlFlow::Break(Error::new(
                SqlState::StatementTooComplex,
                format!(
                    "common table expressions name each other more than {EXPANDED_RELATIONS_MAX} times"
                ),
            ));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<Error> {
        match refuse_many_sets(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<Error> {
        self.relations += 1;
        if self.relations > RELATIONS_MAX {
            return ControlFlow::Break(Error::new(
                SqlState::StatementTooComplex,
                format!("a statement names more than {RELATIONS_MAX} tables"),
            ));
        }
        ControlFlow::Continue(())
    }
}

/// Whether no function is called so: the library looks how far it is from the name of each, which
/// takes as long as all of these are together.
fn is_long_name(part: &ast::ObjectNamePart) -> bool {
    part.as_ident()
        .is_some_and(|name| name.value.len() > FUNCTION_NAME_BYTES_MAX)
}

/// Whether a table of a WITH has too many relations when those before it stand in the place of
/// their names: the planner looks at each again and again.
fn is_expanded_too_far(with: &ast::With) -> bool {
    let mut sizes: HashMap<String, u64> = HashMap::new();
    for table in &with.cte_tables {
        let mut size = 1_u64;
        let _: ControlFlow<()> = visit_relations(&*table.query, |name| {
            let named = sizes.get(&name.to_string().to_lowercase());
            size = size.saturating_add(named.copied().unwrap_or(1));
            ControlFlow::Continue(())
        });
        if size > EXPANDED_RELATIONS_MAX {
            return true;
        }
        sizes.insert(table.alias.name.to_string().to_lowercase(), size);
    }
    false
}
