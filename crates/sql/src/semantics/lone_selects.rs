//! Correlated subqueries that are single expressions, which the planner does not inline.
//!
//! ```text
//! SELECT (SELECT (SELECT t.a)) FROM t    ->    SELECT ((t.a)) FROM t
//! ```
//!
//! Among what is selected, and in conditions: elsewhere a bare name or number is another. What has
//! calls stays: one may be an aggregate of the query around it, or be computed once. What names no
//! column is planned as it is.

use std::ops::ControlFlow;
use std::sync::LazyLock;

use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Expr, Query, Select, SelectItem, SetExpr, Statement, VisitMut, VisitorMut,
};

use crate::parse::query_depth::query_depth;
use crate::parse::statement::parse_one;
use crate::parse::visit::{visit_expressions, visit_mut};

/// The parser's types have many fields, all of which are as it makes them for the simplest query.
static SIMPLEST: LazyLock<Option<Query>> = LazyLock::new(|| match parse_one("SELECT 1") {
    Ok(Parsed::Statement(statement)) => match *statement {
        Statement::Query(query) => Some(*query),
        _ => None,
    },
    _ => None,
});

/// Puts expressions in the place of such subqueries in all queries of a statement.
pub(crate) fn without_lone_selects<T: VisitMut>(statement: &mut T) {
    let _: ControlFlow<()> = visit_mut(statement, &mut Selects);
}

struct Selects;

impl VisitorMut for Selects {
    type Break = ();

    /// Those within come first.
    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let mut here = Here { depth: 0 };
        let _: ControlFlow<()> = visit_mut(&mut select.projection, &mut here);
        visit_mut(&mut select.selection, &mut here)
    }
}

/// Expressions of one query without those of the queries in it.
struct Here {
    depth: usize,
}

impl VisitorMut for Here {
    type Break = ();

    query_depth!();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Subquery(query) = expr
            && let Some(alone) = alone(query)
        {
            *expr = Expr::Nested(Box::new(alone));
        }
        ControlFlow::Continue(())
    }
}

/// The expression that is all of a query.
fn alone(query: &Query) -> Option<Expr> {
    let SetExpr::Select(select) = &*query.body else {
        return None;
    };
    let [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] =
        select.projection.as_slice()
    else {
        return None;
    };
    if !select.from.is_empty() || !is_of_columns(expr) {
        return None;
    }
    let mut simplest = SIMPLEST.clone()?;
    if let SetExpr::Select(simplest) = &mut *simplest.body {
        simplest.projection.clone_from(&select.projection);
    }
    (simplest == *query).then(|| expr.clone())
}

/// Whether columns stand in an expression, and no calls.
fn is_of_columns(expr: &Expr) -> bool {
    let mut has_columns = false;
    let walked = visit_expressions(expr, |part| {
        has_columns |= matches!(part, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        match part {
            Expr::Function(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    has_columns && walked.is_continue()
}
