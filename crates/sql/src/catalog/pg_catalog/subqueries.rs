//! Rewrites of scalar subqueries in catalog queries, such as psql's.
//!
//! PostgreSQL runs them for each row; the planner makes joins of them, for which it wants to see
//! that there is one row at most, and that outer columns stand in equalities alone. So, of a query
//! of the catalog:
//!
//! - what it selects is put under `max`, or under `array_agg` for `ARRAY(SELECT ...)`;
//! - conditions on outer columns alone go before it: `CASE WHEN a.atthasdef THEN (SELECT ...) END`;
//! - where `c.oid = a.attcollation`, other conditions say `c.oid` for `a.attcollation`;
//! - one over a table that is always empty is NULL; and so is what a query over such a table
//!   selects by subqueries, for it has no rows;
//! - `EXISTS` among the selected columns is `(SELECT count(*) > 0 ...)`;
//! - `(SELECT oid FROM pg_class WHERE relname = 'x')` is the number of `x`.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    self, ArrayElemTypeDef, BinaryOperator, CaseWhen, CastKind, DataType, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, GroupByExpr,
    JoinOperator, LimitClause, OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor, Value,
    Visitor,
};

use super::columns::is_always_empty;
use crate::parse::visit::{visit, visit_expressions, visit_expressions_mut};
use crate::parse::words::{call, parts, taken};

/// What stands for `(SELECT ...)` as a value.
pub(super) fn value(query: &mut Query) -> Option<Expr> {
    match number_of_relation(query) {
        Some(name) => Some(call("to_regclass", vec![name])),
        None => planned(query, "max", || Expr::value(Value::Null)),
    }
}

/// What stands for `ARRAY(SELECT ...)`.
pub(super) fn array(query: &mut Query) -> Option<Expr> {
    planned(query, "array_agg", || {
        let text = Box::new(DataType::Text);
        null_of(DataType::Array(ArrayElemTypeDef::SquareBracket(text, None)))
    })
}

fn null_of(data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::value(Value::Null)),
        data_type,
        array: false,
        format: None,
    }
}

/// Of `SELECT oid FROM pg_class WHERE relname = 'x'`, the name.
fn number_of_relation(query: &Query) -> Option<Expr> {
    let SetExpr::Select(select) = &*query.body else {
        return None;
    };
    let ([SelectItem::UnnamedExpr(selected)], [from], Some(condition)) = (
        select.projection.as_slice(),
        select.from.as_slice(),
        &select.selection,
    ) else {
        return None;
    };
    let TableFactor::Table { name, .. } = &from.relation else {
        return None;
    };
    let Expr::BinaryOp {
        left,
        op: BinaryOperator::Eq,
        right,
    } = condition
    else {
        return None;
    };
    let is_last = |expr: &Expr, name: &str| {
        column_of(expr).is_some_and(|column| column.last().is_some_and(|last| last == name))
    };
    let is_it = from.joins.is_empty()
        && parts(name).last().is_some_and(|name| name == "pg_class")
        && is_last(selected, "oid")
        && is_last(left, "relname")
        && matches!(**right, Expr::Value(_));
    is_it.then(|| (**right).clone())
}

/// What a query selects by subqueries, before these are looked at.
pub(super) fn selected(select: &mut Select) {
    let is_empty = reads_nothing(select) && select.having.is_none();
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            continue;
        };
        let has_subquery = visit_expressions(expr, |expr| match expr {
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                ControlFlow::Break(())
            }
            Expr::Function(function) if matches!(function.args, FunctionArguments::Subquery(_)) => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        });
        if has_subquery.is_continue() {
            continue;
        }
        if is_empty && !is_aggregate(expr) {
            *expr = null_of(DataType::Text);
            continue;
        }
        let _: ControlFlow<()> = visit_expressions_mut(expr, |expr: &mut Expr| {
            if let Some(counted) = counted(expr) {
                *expr = counted;
            }
            ControlFlow::Continue(())
        });
    }
}

/// `EXISTS (SELECT 1 ...)` as a number of rows that is compared.
fn counted(expr: &mut Expr) -> Option<Expr> {
    let Expr::Exists { subquery, negated } = expr else {
        return None;
    };
    let_all(subquery);
    let is_negated = *negated;
    let is_limited = subquery.limit_clause.is_some() || subquery.fetch.is_some();
    let SetExpr::Select(select) = &mut *subquery.body else {
        return None;
    };
    let is_plain = select.distinct.is_none()
        && select.having.is_none()
        && matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
    if is_limited || !is_plain {
        return None;
    }
    select.projection = vec![SelectItem::UnnamedExpr(call(
        "count",
        vec![Expr::value(Value::Number("1".into(), false))],
    ))];
    subquery.order_by = None;
    Some(Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(Expr::Subquery(subquery.clone())),
        op: if is_negated {
            BinaryOperator::Eq
        } else {
            BinaryOperator::Gt
        },
        right: Box::new(Expr::value(Value::Number("0".into(), false))),
    })))
}

fn planned(query: &mut Query, aggregate: &str, null: impl FnOnce() -> Expr) -> Option<Expr> {
    let order = query.order_by.take();
    if order.is_none() {
        let_all(query);
    }
    let is_limited = query.limit_clause.is_some() || query.fetch.is_some();
    let SetExpr::Select(select) = &mut *query.body else {
        query.order_by = order;
        return None;
    };
    let is_value = matches!(
        select.projection.as_slice(),
        [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] if !is_aggregate(value)
    );
    if is_value && reads_nothing(select) {
        return Some(null());
    }
    if let [SelectItem::UnnamedExpr(value)] = select.projection.as_slice()
        && !is_value
        && reads_nothing(select)
        && select.having.is_none()
        && matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty())
    {
        return Some(of_no_rows(value.clone()));
    }
    // A count of nothing is no NULL.
    let before = conditions_before(select, is_value);
    if is_value && !is_limited && select.distinct.is_none() {
        gathered(select, aggregate, order);
    } else {
        query.order_by = order;
    }
    let subquery = Expr::Subquery(Box::new(query.clone()));
    Some(match conjunction(before) {
        None => subquery,
        Some(condition) => Expr::Case {
            case_token: AttachedToken::empty(),
            end_token: AttachedToken::empty(),
            operand: None,
            conditions: vec![CaseWhen {
                condition,
                result: subquery,
            }],
            else_result: None,
        },
    })
}

/// Takes a LIMIT 1 off: of rows without an order any one is right, and one that is there is all
/// that EXISTS asks for.
pub(super) fn let_all(query: &mut Query) {
    if let Some(LimitClause::LimitOffset {
        limit: Some(limit),
        offset: None,
        limit_by,
    }) = &query.limit_clause
        && limit_by.is_empty()
        && is_number(limit, "1")
    {
        query.limit_clause = None;
    }
}

fn is_number(expr: &Expr, wanted: &str) -> bool {
    matches!(expr, Expr::Value(value) if matches!(&value.value, Value::Number(number, _) if number == wanted))
}

/// Puts what is selected under an aggregate.
fn gathered(select: &mut Select, aggregate: &str, order: Option<ast::OrderBy>) {
    let Some(SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }) =
        select.projection.first_mut()
    else {
        return;
    };
    let selected = taken(value);
    *value = call(aggregate, vec![selected.clone()]);
    // The order of an array's elements is that of the rows.
    if let (Expr::Function(function), Some(order)) = (value, order)
        && aggregate == "array_agg"
        && let OrderByKind::Expressions(mut order) = order.kind
        && let FunctionArguments::List(list) = &mut function.args
    {
        // The first column is what is gathered.
        for by in &mut order {
            if is_number(&by.expr, "1") {
                by.expr = selected.clone();
            }
        }
        list.clauses.push(FunctionArgumentClause::OrderBy(order));
    }
}

/// Takes conditions on outer columns alone out of a WHERE, and puts inner columns in the place of
/// outer ones that are equal to them.
fn conditions_before(select: &mut Select, may_go: bool) -> Vec<Expr> {
    let (Some(names), Some(condition)) = (names_of(select), select.selection.take()) else {
        return Vec::new();
    };
    let is_inner =
        |column: &[String]| column.len() > 1 && names.contains(&column[column.len() - 2]);
    let mut all = Vec::new();
    split(condition, &mut all);
    let (before, mut rest): (Vec<Expr>, Vec<Expr>) = all.into_iter().partition(|it| {
        let columns = columns_of(it).filter(|_| may_go);
        columns.is_some_and(|columns| {
            !columns.is_empty()
                && columns
                    .iter()
                    .all(|column| column.len() > 1 && !is_inner(column))
        })
    });
    let mut equal: HashMap<Vec<String>, Expr> = HashMap::new();
    for condition in &rest {
        if let Some((left, right)) = equality(condition) {
            for (inner, outer) in [(left, right), (right, left)] {
                let (Some(one), Some(other)) = (column_of(inner), column_of(outer)) else {
                    continue;
                };
                if is_inner(&one) && other.len() > 1 && !is_inner(&other) {
                    equal.insert(other, inner.clone());
                }
            }
        }
    }
    let _: ControlFlow<()> = visit_where(&mut rest, &equal);
    select.selection = conjunction(rest);
    before
}

fn visit_where(conditions: &mut [Expr], equal: &HashMap<Vec<String>, Expr>) -> ControlFlow<()> {
    for condition in conditions {
        if equality(condition).is_some() {
            continue;
        }
        visit_expressions_mut(condition, |expr: &mut Expr| {
            if let Some(inner) = column_of(expr).and_then(|column| equal.get(&column)) {
                *expr = inner.clone();
            }
            ControlFlow::<()>::Continue(())
        })?;
    }
    ControlFlow::Continue(())
}

/// Two columns that are to be equal.
fn equality(condition: &Expr) -> Option<(&Expr, &Expr)> {
    match condition {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        } => {
            let both = column_of(left).is_some() && column_of(right).is_some();
            both.then_some((left, right))
        }
        Expr::Nested(inner) => equality(inner),
        _ => None,
    }
}

fn column_of(expr: &Expr) -> Option<Vec<String>> {
    let name = |part: &ast::Ident| part.value.to_lowercase();
    match expr {
        Expr::CompoundIdentifier(parts) => Some(parts.iter().map(name).collect()),
        Expr::Identifier(part) => Some(vec![name(part)]),
        Expr::Nested(inner) => column_of(inner),
        _ => None,
    }
}

/// The columns that a condition names; none where it has a subquery.
fn columns_of(condition: &Expr) -> Option<Vec<Vec<String>>> {
    let mut columns = Vec::new();
    let seen = visit_expressions(condition, |expr| {
        match expr {
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                return ControlFlow::Break(());
            }
            Expr::CompoundIdentifier(_) | Expr::Identifier(_) => columns.extend(column_of(expr)),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    seen.is_continue().then_some(columns)
}

fn split(condition: Expr, all: &mut Vec<Expr>) {
    match condition {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => {
            split(*left, all);
            split(*right, all);
        }
        Expr::Nested(inner) => split(*inner, all),
        other => all.push(other),
    }
}

/// Each in brackets, as it stood between its neighbours in brackets of its own.
fn conjunction(conditions: Vec<Expr>) -> Option<Expr> {
    let nested = |it: Expr| match it {
        Expr::BinaryOp {
            op: BinaryOperator::Or,
            ..
        } => Expr::Nested(Box::new(it)),
        it => it,
    };
    conditions
        .into_iter()
        .map(nested)
        .reduce(|left, right| Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::And,
            right: Box::new(right),
        })
}

fn tables_of(select: &Select) -> impl Iterator<Item = &TableFactor> {
    select.from.iter().flat_map(|from| {
        let joined = from.joins.iter().map(|join| &join.relation);
        std::iter::once(&from.relation).chain(joined)
    })
}

/// What its own columns stand behind; none where that is not known of all tables.
fn names_of(select: &Select) -> Option<HashSet<String>> {
    let names = tables_of(select).map(|table| {
        let alias = match table {
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. } => alias,
            _ => return None,
        };
        match (alias, table) {
            (Some(alias), _) => Some(alias.name.value.to_lowercase()),
            (None, TableFactor::Table { name, .. }) => parts(name).pop(),
            (None, _) => None,
        }
    });
    names.collect()
}

/// Whether it joins a table of the catalog that is always empty.
fn reads_nothing(select: &Select) -> bool {
    let is_empty = |table: &TableFactor| match table {
        TableFactor::Table {
            name,
            args: Some(arguments),
            ..
        } => is_unnest_of_nothing(name, &arguments.args),
        TableFactor::Table { name, .. } => is_always_empty(&parts(name)),
        _ => false,
    };
    select.from.iter().any(|from| {
        let is_inner = |join: &&ast::Join| {
            matches!(
                join.join_operator,
                JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_)
            )
        };
        // Of other joins, one side may be empty and rows are there.
        let is_plain = from.joins.iter().all(|join| is_inner(&join));
        is_plain
            && (is_empty(&from.relation) || from.joins.iter().any(|join| is_empty(&join.relation)))
    })
}

/// `unnest(c.reloptions)`: relations have no options here.
fn is_unnest_of_nothing(name: &ast::ObjectName, arguments: &[FunctionArg]) -> bool {
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = arguments else {
        return false;
    };
    let column = column_of(argument);
    parts(name).last().is_some_and(|name| name == "unnest")
        && column.is_some_and(|column| column.last().is_some_and(|it| it == "reloptions"))
}

/// Whether a value is one of an aggregate already; those of subqueries within it are not its own.
fn is_aggregate(expr: &Expr) -> bool {
    let mut looking = Aggregates {
        depth: 0,
        is_found: false,
    };
    let _: ControlFlow<()> = visit(expr, &mut looking);
    looking.is_found
}

struct Aggregates {
    depth: usize,
    is_found: bool,
}

impl Visitor for Aggregates {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let (0, Expr::Function(function)) = (self.depth, expr) {
            self.is_found |= aggregate_name(function).is_some();
        }
        ControlFlow::Continue(())
    }
}

fn aggregate_name(function: &Function) -> Option<String> {
    const AGGREGATES: [&str; 9] = [
        "count",
        "sum",
        "min",
        "max",
        "avg",
        "array_agg",
        "string_agg",
        "bool_and",
        "bool_or",
    ];
    let name = parts(&function.name).pop()?;
    AGGREGATES.contains(&name.as_str()).then_some(name)
}

/// What aggregates of no rows come to.
fn of_no_rows(mut value: Expr) -> Expr {
    let _: ControlFlow<()> = visit_expressions_mut(&mut value, |expr: &mut Expr| {
        if let Expr::Function(function) = expr
            && let Some(name) = aggregate_name(function)
        {
            *expr = Expr::value(match name.as_str() {
                "count" => Value::Number("0".into(), false),
                _ => Value::Null,
            });
        }
        ControlFlow::Continue(())
    });
    Expr::Nested(Box::new(value))
}
