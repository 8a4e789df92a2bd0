//! The names of unnamed result columns, as PostgreSQL gives them (`FigureColname`).
//!
//! | selected | called |
//! | --- | --- |
//! | `a`, `t.a`, `a::text` | `a` |
//! | `count(*)`, `max(a)::int` | `count`, `max` |
//! | `1::int`, `date '2026-01-01'` | `int4`, `date` |
//! | `CASE ... ELSE a END`, `CASE ... ELSE 1 END` | `a`, `case` |
//! | `1`, `a + 1` | `?column?` |
//!
//! Several columns of one name are nothing to PostgreSQL; the planner refuses them. So all but the
//! first get a mark behind their names, which no text can write, and which is taken off where the
//! rows leave ([`shown_name`]).

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, DataType, Expr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr,
    Statement, TableFactor, TimezoneInfo, TrimWhereField, Value, VisitorMut,
};
use futures::StreamExt;

use crate::parse::visit::visit_mut;

/// Names have no control characters.
const MARK: char = '\u{1}';
/// What has no name.
const NAMELESS: &str = "?column?";

/// Gives the columns of a statement's query their names, and those of the tables in its FROM and
/// WITH.
pub(crate) fn name_columns(statement: &mut Parsed) {
    match statement {
        Parsed::Explain(explain) => name_columns(&mut explain.statement),
        Parsed::Statement(statement) => {
            let _: ControlFlow<()> = visit_mut(&mut **statement, &mut Naming);
            if let Statement::Query(query) = &mut **statement {
                name_query(query);
            }
        }
        _ => {}
    }
}

/// A column's name as whoever asked is told.
pub(crate) fn shown_name(name: &str) -> &str {
    name.split_once(MARK).map_or(name, |(name, _)| name)
}

/// Columns with their names as whoever asked is told: several may be the same.
pub(crate) fn shown_columns(columns: &SchemaRef) -> SchemaRef {
    if columns.fields().iter().all(|it| !it.name().contains(MARK)) {
        return Arc::clone(columns);
    }
    let fields = columns.fields().iter().map(|field| {
        let name = shown_name(field.name());
        field.as_ref().clone().with_name(name)
    });
    let fields: Vec<_> = fields.collect();
    Arc::new(Schema::new_with_metadata(
        fields,
        columns.metadata().clone(),
    ))
}

/// Rows with these names.
pub(crate) fn shown_rows(rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let columns = rows.schema();
    let shown = shown_columns(&columns);
    if Arc::ptr_eq(&columns, &shown) {
        return rows;
    }
    let schema = Arc::clone(&shown);
    let rows = rows.map(move |batch| {
        let batch = batch?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&shown),
            columns,
            &options,
        )?)
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

/// Queries in FROM and WITH, wherever they stand. Those that stand as values need no names.
struct Naming;

impl VisitorMut for Naming {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for table in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            name_query(&mut table.query);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Derived { subquery, .. } = table {
            name_query(subquery);
        }
        ControlFlow::Continue(())
    }
}

fn name_query(query: &mut Query) {
    name_set(&mut query.body);
    // After DISTINCT, rows are ordered by what is selected: the planner wants to see its name.
    let (SetExpr::Select(select), Some(order)) = (&*query.body, &mut query.order_by) else {
        return;
    };
    let OrderByKind::Expressions(order) = &mut order.kind else {
        return;
    };
    if select.distinct.is_none() {
        return;
    }
    // A number is that of a column, not a value that some column may have.
    for by in order
        .iter_mut()
        .filter(|by| !matches!(by.expr, Expr::Value(_)))
    {
        let selected = select.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if *expr == by.expr => Some(alias.clone()),
            _ => None,
        });
        if let Some(alias) = selected {
            by.expr = Expr::Identifier(alias);
        }
    }
}

fn name_set(set: &mut SetExpr) {
    match set {
        SetExpr::Select(select) => name_selected(select),
        SetExpr::Query(query) => name_query(query),
        SetExpr::SetOperation { left, right, .. } => {
            name_set(left);
            name_set(right);
        }
        _ => {}
    }
}

fn name_selected(select: &mut Select) {
    let has_wildcard = select.projection.iter().any(|item| {
        matches!(
            item,
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
        )
    });
    let mut taken: HashSet<String> = HashSet::new();
    for (place, item) in select.projection.iter_mut().enumerate() {
        let marked = |name: &str| Ident::with_quote('"', format!("{name}{MARK}{place}"));
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let (name, is_column) = (name_of(expr), is_column(expr));
                let is_new = taken.insert(name.clone());
                // Whatever `*` stands for may have the name, too.
                if is_new && !has_wildcard && is_column {
                    continue;
                }
                let alias = match is_new && !has_wildcard {
                    true => Ident::with_quote('"', name),
                    false => marked(&name),
                };
                let expr = std::mem::replace(expr, Expr::value(Value::Null));
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
            SelectItem::ExprWithAlias { alias, .. } => {
                let name = folded(alias);
                if !taken.insert(name.clone()) {
                    *alias = marked(&name);
                }
            }
            _ => {}
        }
    }
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

fn folded(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

fn name_of(expr: &Expr) -> String {
    figured(expr).map_or_else(|| NAMELESS.to_owned(), |(name, _)| name)
}

/// The name of a value, and whether it is better than that of the type to which it is cast.
fn figured(expr: &Expr) -> Option<(String, bool)> {
    let called = |name: &str| Some((name.to_owned(), true));
    match expr {
        Expr::Identifier(name) => Some((folded(name), true)),
        Expr::CompoundIdentifier(parts) => parts.last().map(|name| (folded(name), true)),
        Expr::CompoundFieldAccess { root, access_chain } => {
            use datafusion::sql::sqlparser::ast::AccessExpr;
            match access_chain.last() {
                Some(AccessExpr::Dot(Expr::Identifier(name))) => Some((folded(name), true)),
                _ => figured(root),
            }
        }
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => figured(inner),
        Expr::Function(function) => {
            let name = function.name.0.last()?.as_ident()?;
            Some((folded(name), true))
        }
        Expr::Cast {
            expr, data_type, ..
        } => match figured(expr) {
            Some((name, true)) => Some((name, true)),
            _ => Some((type_name(data_type), false)),
        },
        Expr::TypedString(typed) => Some((type_name(&typed.data_type), false)),
        Expr::Interval(_) => Some(("interval".to_owned(), false)),
        Expr::Value(value) if matches!(value.value, Value::Boolean(_)) => {
            Some(("bool".to_owned(), false))
        }
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(figured) {
            Some((name, true)) => Some((name, true)),
            _ => Some(("case".to_owned(), false)),
        },
        Expr::Subquery(query) => figured_query(query),
        Expr::Exists { negated: false, .. } => called("exists"),
        Expr::Array(_) => called("array"),
        Expr::Tuple(_) => called("row"),
        Expr::Extract { .. } => called("extract"),
        Expr::Ceil { .. } => called("ceil"),
        Expr::Floor { .. } => called("floor"),
        Expr::Position { .. } => called("position"),
        Expr::Substring { .. } => called("substring"),
        Expr::Overlay { .. } => called("overlay"),
        Expr::Trim { trim_where, .. } => called(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            Some(TrimWhereField::Both) | None => "btrim",
        }),
        Expr::AtTimeZone { .. } => called("timezone"),
        _ => None,
    }
}

/// A query as a value has the name of its one column.
fn figured_query(query: &Query) -> Option<(String, bool)> {
    let mut set = &*query.body;
    loop {
        set = match set {
            SetExpr::Select(select) => {
                return match select.projection.first()? {
                    SelectItem::ExprWithAlias { alias, .. } => Some((folded(alias), true)),
                    SelectItem::UnnamedExpr(expr) => Some((name_of(expr), true)),
                    _ => None,
                };
            }
            SetExpr::Query(query) => &query.body,
            SetExpr::SetOperation { left, .. } => left,
            _ => return None,
        };
    }
}

/// A type's name in PostgreSQL's catalog.
fn type_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => "int4",
        DataType::BigInt(_) | DataType::Int8(_) => "int8",
        DataType::SmallInt(_) | DataType::Int2(_) => "int2",
        DataType::Real | DataType::Float4 => "float4",
        DataType::Double(_) | DataType::DoublePrecision | DataType::Float8 | DataType::Float(_) => {
            "float8"
        }
        DataType::Numeric(_) | DataType::Decimal(_) | DataType::Dec(_) => "numeric",
        DataType::Varchar(_) | DataType::CharacterVarying(_) | DataType::CharVarying(_) => {
            "varchar"
        }
        DataType::Char(_) | DataType::Character(_) => "bpchar",
        DataType::Text => "text",
        DataType::Bool | DataType::Boolean => "bool",
        DataType::Date => "date",
        DataType::Time(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => "timetz",
        DataType::Time(..) => "time",
        DataType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => "timestamptz",
        DataType::Timestamp(..) => "timestamp",
        DataType::Interval { .. } => "interval",
        DataType::Bytea => "bytea",
        DataType::Uuid => "uuid",
        DataType::JSON => "json",
        DataType::JSONB => "jsonb",
        DataType::Regclass => "regclass",
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => return type_name(element),
        DataType::Custom(name, _) => {
            let last = name.0.last().and_then(|part| part.as_ident());
            return last.map_or_else(|| NAMELESS.to_owned(), folded);
        }
        other => return other.to_string().to_lowercase(),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::statement::parse_one;

    #[track_caller]
    fn check(written: &str, planned: &str) {
        let mut statement = parse_one(written).unwrap();
        name_columns(&mut statement);
        let planned = planned.replace('^', &MARK.to_string());
        assert_eq!(statement.to_string(), planned);
    }

    #[test]
    fn columns_without_names_are_called_as_postgresql_calls_them() {
        for (value, name) in [
            ("1", "?column?"),
            ("a + 1", "?column?"),
            ("(lower(a))", "lower"),
            ("pg_catalog.version()", "version"),
            ("count(*)", "count"),
            ("sum(a) OVER ()", "sum"),
            ("a::text", "a"),
            ("max(a)::INT", "max"),
            ("1::INT", "int4"),
            ("'x'::varchar(3)", "varchar"),
            ("(a + 1)::DOUBLE PRECISION", "float8"),
            ("DATE '2026-01-01'", "date"),
            ("true", "bool"),
            ("INTERVAL '1' DAY", "interval"),
            ("CASE WHEN true THEN 1 END", "case"),
            ("CASE WHEN true THEN 1 ELSE b END", "b"),
            ("coalesce(a, 1)", "coalesce"),
            ("(SELECT max(b) FROM u)", "max"),
            ("(SELECT 1 AS x)", "x"),
            ("EXISTS (SELECT 1)", "exists"),
            ("EXTRACT(YEAR FROM a)", "extract"),
            ("TRIM(LEADING ' ' FROM a)", "ltrim"),
            ("a IS NULL", "?column?"),
            ("$1", "?column?"),
        ] {
            let mut statement = parse_one(&format!("SELECT {value}")).unwrap();
            name_columns(&mut statement);
            let statement = statement.to_string();
            let alias = format!(" AS \"{name}\"");
            assert!(statement.ends_with(&alias), "{statement} has no {name}");
        }
    }

    #[test]
    fn what_is_a_column_stays_and_what_is_there_twice_is_marked() {
        check("SELECT a, t.b FROM t", "SELECT a, t.b FROM t");
        check(
            "SELECT a, a, 1, 2, b AS a FROM t",
            "SELECT a, a AS \"a^1\", 1 AS \"?column?\", 2 AS \"?column?^3\", b AS \"a^4\" FROM t",
        );
        check(
            "SELECT *, a, b AS c FROM t",
            "SELECT *, a AS \"a^1\", b AS c FROM t",
        );
        check(
            "WITH w AS (SELECT count(*) FROM t) SELECT count FROM (SELECT max(count) FROM w) AS v",
            "WITH w AS (SELECT count(*) AS \"count\" FROM t) SELECT count FROM (SELECT max(count) AS \"max\" FROM w) AS v",
        );
        check(
            "SELECT DISTINCT lower(a) FROM t ORDER BY lower(a), b",
            "SELECT DISTINCT lower(a) AS \"lower\" FROM t ORDER BY \"lower\", b",
        );
        check(
            "SELECT DISTINCT a AS b, 1 AS c FROM t ORDER BY 1",
            "SELECT DISTINCT a AS b, 1 AS c FROM t ORDER BY 1",
        );
        check(
            "SELECT 1 UNION SELECT 2",
            "SELECT 1 AS \"?column?\" UNION SELECT 2 AS \"?column?\"",
        );
        check(
            "SELECT a FROM t WHERE b = (SELECT max(b) FROM t) AND EXISTS (SELECT 1)",
            "SELECT a FROM t WHERE b = (SELECT max(b) FROM t) AND EXISTS (SELECT 1)",
        );
        assert_eq!(shown_name("a\u{1}12"), "a");
        assert_eq!(shown_name("a"), "a");
    }
}
