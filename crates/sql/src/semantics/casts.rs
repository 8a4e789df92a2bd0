//! Casts that the planner would wrongly simplify.
//!
//! The planner knows the columns of groups and windows by their names, and a cast has the name of
//! its operand: `sum(n)` and `sum(n::numeric)` are one name, and so are the keys of
//! `GROUP BY at, at::date`. So is a key and a column that is called as its operand. Where a query
//! has two such expressions, or a key that is a cast, its casts are put into calls that do nothing,
//! which have names; casts to another type into more of them:
//!
//! ```text
//! SELECT sum(n), sum(n::numeric) FROM t           ->   SELECT sum(n), sum(coalesce(n::numeric)) FROM t
//! SELECT sum(n::bigint), sum(n::numeric) FROM t   ->   SELECT sum(coalesce(n::bigint)), sum(coalesce(coalesce(n::numeric))) FROM t
//! ```

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    DataType, Expr, GroupByExpr, OrderBy, Query, Select, SelectItem, VisitMut, VisitorMut,
};

use crate::parse::query_depth::query_depth;
use crate::parse::visit::visit_mut;
use crate::parse::words::{call, each_select, taken};

/// Does so in all queries of a statement.
pub(crate) fn keep_casts_apart<T: VisitMut>(statement: &mut T) {
    let _: ControlFlow<()> = visit_mut(statement, &mut Queries);
}

struct Queries;

impl VisitorMut for Queries {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        each_select(query, |select, order| {
            keep_apart(select, order);
            ControlFlow::Continue(())
        })
    }
}

fn keep_apart(select: &mut Select, order: Option<&mut OrderBy>) {
    if !has_like_names(select) {
        return;
    }
    let mut calls = IntoCalls {
        depth: 0,
        types: Vec::new(),
    };
    let _: ControlFlow<()> = visit_mut(&mut select.projection, &mut calls);
    let _: ControlFlow<()> = visit_mut(&mut select.group_by, &mut calls);
    let _: ControlFlow<()> = visit_mut(&mut select.having, &mut calls);
    let _: ControlFlow<()> = visit_mut(&mut select.qualify, &mut calls);
    if let Some(order) = order {
        // It may be by a column of the groups.
        let _: ControlFlow<()> = visit_mut(order, &mut calls);
    }
}

/// Whether a query has two expressions that are alike but for casts, among what it selects, its
/// keys and its calls.
fn has_like_names(select: &mut Select) -> bool {
    let mut casts = Casts::default();
    let _: ControlFlow<()> = visit_mut(&mut select.projection, &mut casts);
    let _: ControlFlow<()> = visit_mut(&mut select.group_by, &mut casts);
    let _: ControlFlow<()> = visit_mut(&mut select.having, &mut casts);
    let is_grouped =
        !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    if !casts.is_any || casts.calls.is_empty() && !is_grouped {
        return false;
    }
    let mut named = casts.calls;
    for item in &select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            named.push(expr.clone());
        }
    }
    if let GroupByExpr::Expressions(keys, _) = &select.group_by {
        if keys.iter().any(is_cast) {
            return true;
        }
        named.extend(keys.iter().cloned());
    }
    let mut seen: HashMap<String, String> = HashMap::new();
    named.into_iter().any(|mut expr| {
        let _: ControlFlow<()> = visit_mut(&mut expr, &mut Plain { keeps_casts: true });
        let text = expr.to_string();
        let _: ControlFlow<()> = visit_mut(&mut expr, &mut Plain { keeps_casts: false });
        let known = seen.entry(expr.to_string()).or_insert_with(|| text.clone());
        *known != text
    })
}

fn is_cast(key: &Expr) -> bool {
    match key {
        Expr::Nested(of) => is_cast(of),
        Expr::Cast { expr, .. } => !matches!(**expr, Expr::Value(_)),
        _ => false,
    }
}

/// Whether there are casts of what is no constant, and the calls.
#[derive(Default)]
struct Casts {
    is_any: bool,
    calls: Vec<Expr>,
}

impl VisitorMut for Casts {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Cast { expr, .. } => self.is_any |= !matches!(**expr, Expr::Value(_)),
            Expr::Function(_) => self.calls.push(expr.clone()),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// An expression without parentheses, and columns without their tables; without casts, too, unless
/// these are kept.
struct Plain {
    keeps_casts: bool,
}

impl VisitorMut for Plain {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Nested(of) => *expr = taken(of),
            Expr::Cast { expr: of, .. } if !self.keeps_casts => *expr = taken(of),
            Expr::CompoundIdentifier(parts) => {
                if let Some(column) = parts.pop() {
                    *expr = Expr::Identifier(column);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Puts casts into calls.
struct IntoCalls {
    /// Within so many subqueries, which have names of their own.
    depth: usize,
    /// What was cast to so far: casts to the first are put into one call, to the second into two.
    types: Vec<DataType>,
}

impl VisitorMut for IntoCalls {
    type Break = ();

    query_depth!();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Cast {
                expr: of,
                data_type,
                ..
            } = &*expr
            && !matches!(**of, Expr::Value(_))
        {
            let known = self.types.iter().position(|known| known == data_type);
            let place = known.unwrap_or_else(|| {
                self.types.push(data_type.clone());
                self.types.len() - 1
            });
            for _ in 0..=place {
                *expr = call("coalesce", vec![taken(expr)]);
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn apart(text: &str) -> String {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, text).unwrap();
        keep_casts_apart(&mut statements[0]);
        statements[0].to_string()
    }

    #[test]
    fn casts_beside_their_operands_get_names() {
        for (text, expected) in [
            (
                "SELECT sum(n), sum(n::numeric) FROM t",
                "SELECT sum(n), sum(coalesce(n::NUMERIC)) FROM t",
            ),
            (
                "SELECT sum(n::bigint), sum(n::numeric), max(n::bigint) FROM t",
                "SELECT sum(coalesce(n::BIGINT)), sum(coalesce(coalesce(n::NUMERIC))), max(coalesce(n::BIGINT)) FROM t",
            ),
            (
                "SELECT at::date, t.at FROM t GROUP BY 1, 2 ORDER BY at::date",
                "SELECT coalesce(at::DATE), t.at FROM t GROUP BY 1, 2 ORDER BY coalesce(at::DATE)",
            ),
            ("SELECT sum(n), max(n::numeric) FROM t", ""),
            ("SELECT sum((n)::numeric), sum(n::numeric) FROM t", ""),
            ("SELECT 'a'::text, 'a' FROM t", ""),
        ] {
            let expected = if expected.is_empty() {
                Parser::parse_sql(&PostgreSqlDialect {}, text).unwrap()[0].to_string()
            } else {
                expected.to_owned()
            };
            assert_eq!(apart(text), expected);
        }
    }
}
