//! Declared column types of `sparql(...)`: `AS t(s text, price numeric(10,2))`.
//!
//! The planner knows names alone in that place, so the list becomes the second argument of the
//! function before there is a plan.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, TableFactor, Value, VisitorMut,
};
use orrery_storage::table::ColumnType;

use crate::parse::identifiers::folded;
use crate::parse::statement::parse_one;
use crate::parse::visit::visit_mut;
use crate::values::data_types::column_type;
use crate::{Error, Result, SqlState};

/// The function's name.
const SPARQL: &str = "sparql";

/// Moves the types of declared columns to where the function finds them.
pub(crate) fn declare_columns(statement: &mut Parsed) -> Result<()> {
    match statement {
        Parsed::Statement(statement) => match visit_mut(statement, &mut Declarations) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        },
        Parsed::Explain(explain) => declare_columns(&mut explain.statement),
        _ => Ok(()),
    }
}

struct Declarations;

impl VisitorMut for Declarations {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let TableFactor::Table {
            name, alias, args, ..
        } = factor
        else {
            return ControlFlow::Continue(());
        };
        let Some(alias) = alias else {
            return ControlFlow::Continue(());
        };
        let has_types = alias
            .columns
            .iter()
            .any(|column| column.data_type.is_some());
        if !has_types {
            return ControlFlow::Continue(());
        }
        let is_sparql = name.to_string().eq_ignore_ascii_case(SPARQL);
        let Some(args) = args
            .as_mut()
            .filter(|args| is_sparql && args.args.len() == 1)
        else {
            return ControlFlow::Break(Error::new(
                SqlState::SyntaxError,
                format!("a list of columns with types is for {SPARQL}('...') alone"),
            ));
        };
        let mut list = Vec::with_capacity(alias.columns.len());
        for column in &mut alias.columns {
            match column.data_type.take() {
                Some(data_type) => list.push(format!("{} {data_type}", column.name)),
                None => {
                    return ControlFlow::Break(Error::new(
                        SqlState::SyntaxError,
                        format!("column {} has no type, and others have one", column.name),
                    ));
                }
            }
        }
        let list = Value::SingleQuotedString(list.join(", "));
        let list = FunctionArgExpr::Expr(Expr::Value(list.with_empty_span()));
        args.args.push(FunctionArg::Unnamed(list));
        ControlFlow::Continue(())
    }
}

/// The columns of a list.
pub(super) fn declared(list: &str) -> Result<Vec<(String, ColumnType)>> {
    let wrong = || {
        Error::new(
            SqlState::SyntaxError,
            format!(
                "{list:?} is no list of columns with types, such as 's text, price numeric(10,2)'"
            ),
        )
    };
    let Parsed::Statement(statement) =
        parse_one(&format!("CREATE TABLE t ({list})")).map_err(|_| wrong())?
    else {
        return Err(wrong());
    };
    let ast::Statement::CreateTable(table) = *statement else {
        return Err(wrong());
    };
    if !table.constraints.is_empty() {
        return Err(wrong());
    }
    let columns = table.columns.iter().map(|column| {
        if !column.options.is_empty() {
            return Err(wrong());
        }
        Ok((folded(&column.name)?, column_type(&column.data_type)?))
    });
    columns.collect()
}
