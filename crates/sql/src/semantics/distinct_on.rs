//! The keys of `DISTINCT ON` in the order of `ORDER BY`.
//!
//! In PostgreSQL the first keys of `ORDER BY` are those of `DISTINCT ON` in any order, or
//! `ORDER BY` has only some of them. A number is a column of the answer, as in `ORDER BY`. The
//! planner wants the same keys in the same order.
//!
//! ```text
//! SELECT DISTINCT ON (a, b) ... ORDER BY b DESC, a, c    ->   SELECT DISTINCT ON (b, a) ... ORDER BY b DESC, a, c
//! SELECT DISTINCT ON (a, b) ... ORDER BY b               ->   SELECT DISTINCT ON (b, a) ... ORDER BY b, a
//! SELECT DISTINCT ON (2) a, b ...                        ->   SELECT DISTINCT ON (b) a, b ...
//! ```

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, OrderByExpr, OrderByKind, OrderByOptions, Query, Select, SelectItem, Value,
    VisitMut, VisitorMut,
};

use crate::parse::words::{each_select, folded};

/// Orders the keys in all queries of a statement.
pub(crate) fn with_keys_in_order<T: VisitMut>(statement: &mut T) {
    let _: ControlFlow<()> = statement.visit(&mut Queries);
}

struct Queries;

impl VisitorMut for Queries {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        each_select(query, |select, order| {
            let order = order.and_then(|order| match &mut order.kind {
                OrderByKind::Expressions(keys) => Some(keys),
                OrderByKind::All(_) => None,
            });
            order_keys(select, order);
            ControlFlow::Continue(())
        })
    }
}

fn order_keys(select: &mut Select, order: Option<&mut Vec<OrderByExpr>>) {
    let Some(Distinct::On(on)) = &mut select.distinct else {
        return;
    };
    for key in on.iter_mut() {
        if let Some(column) = numbered(key, &select.projection) {
            *key = column.clone();
        }
    }
    let Some(order) = order.filter(|order| !order.is_empty()) else {
        return;
    };
    let (mut left, mut ordered) = (on.clone(), Vec::with_capacity(on.len()));
    let mut repeated = Vec::new();
    for (place, by) in order.iter().enumerate() {
        if left.is_empty() {
            break;
        }
        let meant = meant(&by.expr, &select.projection);
        let is_meant = |key: &Expr| {
            is_same(key, &by.expr) || is_same(self::meant(key, &select.projection), meant)
        };
        if let Some(at) = left.iter().position(is_meant) {
            ordered.push(left.remove(at));
        } else if ordered.iter().any(is_meant) {
            // It says nothing.
            repeated.push(place);
        } else {
            // Of a key that is none of them the planner says so.
            return;
        }
    }
    for place in repeated.into_iter().rev() {
        order.remove(place);
    }
    order.extend(left.iter().map(|key| OrderByExpr {
        expr: key.clone(),
        options: OrderByOptions {
            asc: None,
            nulls_first: None,
        },
        with_fill: None,
    }));
    ordered.append(&mut left);
    *on = ordered;
}

/// What a key is: a column of the answer by its number or its name, or itself.
fn meant<'a>(key: &'a Expr, columns: &'a [SelectItem]) -> &'a Expr {
    if let Some(column) = numbered(key, columns) {
        return column;
    }
    let named = columns.iter().find_map(|column| match (column, key) {
        (SelectItem::ExprWithAlias { expr, alias }, Expr::Identifier(name)) => {
            (folded(alias) == folded(name)).then_some(expr)
        }
        _ => None,
    });
    match (named, key) {
        (Some(column), _) => column,
        (None, Expr::Nested(within)) => meant(within, columns),
        (None, key) => key,
    }
}

/// The column of the answer that a number says, if that is known before tables are.
fn numbered<'a>(key: &Expr, columns: &'a [SelectItem]) -> Option<&'a Expr> {
    let Expr::Value(value) = key else { return None };
    let Value::Number(number, _) = &value.value else {
        return None;
    };
    let place = number.parse::<usize>().ok()?.checked_sub(1)?;
    let expr_of = |column: &'a SelectItem| match column {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    };
    let columns: Option<Vec<&Expr>> = columns.get(..=place)?.iter().map(expr_of).collect();
    columns?.pop()
}

fn is_same(one: &Expr, other: &Expr) -> bool {
    match (one, other) {
        (Expr::Identifier(one), Expr::Identifier(other)) => folded(one) == folded(other),
        (Expr::CompoundIdentifier(one), Expr::CompoundIdentifier(other)) => {
            one.iter().map(folded).eq(other.iter().map(folded))
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::statement::parse_one;

    #[test]
    fn keys_follow_the_order() {
        for (text, expected) in [
            (
                "SELECT DISTINCT ON (a, b) a, b FROM t ORDER BY b DESC, A, c",
                "SELECT DISTINCT ON (b, a) a, b FROM t ORDER BY b DESC, A, c",
            ),
            (
                "SELECT DISTINCT ON (t.a, b) b FROM t ORDER BY b, b, t.a",
                "SELECT DISTINCT ON (b, t.a) b FROM t ORDER BY b, t.a",
            ),
            (
                "SELECT DISTINCT ON (a, b + 1) a FROM t ORDER BY b + 1",
                "SELECT DISTINCT ON (b + 1, a) a FROM t ORDER BY b + 1, a",
            ),
            (
                "SELECT DISTINCT ON (x, 2) a AS x, b FROM t ORDER BY 2, a",
                "SELECT DISTINCT ON (b, x) a AS x, b FROM t ORDER BY 2, a",
            ),
            (
                "SELECT DISTINCT ON (a, b) a FROM t ORDER BY a, c, b",
                "SELECT DISTINCT ON (a, b) a FROM t ORDER BY a, c, b",
            ),
            (
                "SELECT DISTINCT ON (a, b) * FROM t",
                "SELECT DISTINCT ON (a, b) * FROM t",
            ),
        ] {
            let mut parsed = parse_one(text).unwrap();
            let datafusion::sql::parser::Statement::Statement(statement) = &mut parsed else {
                panic!("{text}");
            };
            with_keys_in_order(&mut **statement);
            assert_eq!(statement.to_string(), expected, "{text}");
        }
    }
}
