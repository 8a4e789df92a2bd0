//! Comparisons of rows, which are made column by column.
//!
//! The engine compares rows as values of a structure, to which a NULL within is a value like any
//! other: `(1, NULL) = (1, NULL)` would be true. So they are said in other words, as PostgreSQL
//! defines them (9.24.5, row constructor comparison):
//!
//! ```text
//! (a, b) = (c, d)                   ->  a = c AND b = d
//! (a, b) <> (c, d)                  ->  a <> c OR b <> d
//! (a, b) < (c, d)                   ->  a < c OR a = c AND b < d
//! (a, b) IS DISTINCT FROM (c, d)    ->  a IS DISTINCT FROM c OR b IS DISTINCT FROM d
//! (a, b) IS NULL, IS NOT NULL       ->  a IS NULL AND b IS NULL;  a IS NOT NULL AND b IS NOT NULL
//! (a, b) IN ((c, d), (e, f))        ->  (a, b) = (c, d) OR (a, b) = (e, f)
//! (a, b) BETWEEN (c, d) AND (e, f)  ->  (a, b) >= (c, d) AND (a, b) <= (e, f)
//! ```
//!
//! What joins two tables is seen by the engine that way, too. A long list of rows that are written
//! down is looked up, as rows where no column is NULL:
//!
//! ```text
//! (a, b) IN (100 rows)   ->  CASE WHEN a IS NOT NULL AND b IS NOT NULL THEN row(a, b) IN (100 rows)
//!                                 WHEN a IS NULL AND b IS NOT NULL THEN b IN (100 values) AND NULL
//!                                 WHEN a IS NOT NULL AND b IS NULL THEN a IN (100 values) AND NULL
//!                                 ELSE NULL END
//! ```

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType, Expr, FunctionArg, FunctionArgExpr,
    FunctionArguments, UnaryOperator, Value, VisitMut,
};

use crate::parse::visit::visit_expressions_mut;
use crate::parse::words::{call, folded, taken};
use crate::{Error, Result, SqlState};

/// Columns of a row in an order, each of which is one level of an expression.
const ORDERED_COLUMNS_MAX: usize = 64;
/// Lists of rows up to here are tested one by one.
const LISTED_ROWS: usize = 16;
/// Rows of so many columns are looked up in longer lists: once for each set of columns.
const LOOKED_UP_COLUMNS_MAX: usize = 3;

/// Says all comparisons of rows in other words.
///
/// # Errors
/// When rows have different numbers of columns, or are too long for an order.
pub(crate) fn with_rows_compared<T: VisitMut>(statement: &mut T) -> Result<()> {
    let walked = visit_expressions_mut(statement, |expr| match in_other_words(expr) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    });
    match walked {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

fn in_other_words(expr: &mut Expr) -> Result<()> {
    let said = match expr {
        Expr::BinaryOp { left, op, right } => match (row(left), row(right)) {
            (Some(left), Some(right)) => compared(&left, op, &right)?,
            _ => None,
        },
        Expr::IsDistinctFrom(left, right) => each(left, right, Joined::ByOr, |left, right| {
            Expr::IsDistinctFrom(left, right)
        })?,
        Expr::IsNotDistinctFrom(left, right) => each(left, right, Joined::ByAnd, |left, right| {
            Expr::IsNotDistinctFrom(left, right)
        })?,
        Expr::IsNull(of) => row(of).map(|row| all(&row, Expr::IsNull)),
        Expr::IsNotNull(of) => row(of).map(|row| all(&row, Expr::IsNotNull)),
        Expr::InList {
            expr: of,
            list,
            negated,
        } => in_list(of, list, *negated)?,
        Expr::Between {
            expr: of,
            negated,
            low,
            high,
        } => match (row(of), row(low), row(high)) {
            (Some(of), Some(low), Some(high)) => {
                let from = compared(&of, &BinaryOperator::GtEq, &low)?;
                let to = compared(&of, &BinaryOperator::LtEq, &high)?;
                let both = from
                    .zip(to)
                    .map(|(from, to)| joined(vec![from, to], Joined::ByAnd));
                both.map(|both| negated_if(*negated, both))
            }
            _ => None,
        },
        _ => None,
    };
    if let Some(said) = said {
        *expr = said;
    }
    Ok(())
}

/// The columns of an expression that is a row of two or more.
fn row(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Nested(of) => row(of),
        Expr::Tuple(columns) => (columns.len() > 1).then(|| columns.clone()),
        Expr::Function(function) => {
            let name = function.name.0.as_slice();
            let is_row =
                matches!(name, [part] if part.as_ident().is_some_and(|name| folded(name) == "row"));
            let FunctionArguments::List(arguments) = &function.args else {
                return None;
            };
            if !is_row || arguments.args.len() < 2 {
                return None;
            }
            let columns = arguments.args.iter().map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(column)) => Some(column.clone()),
                _ => None,
            });
            columns.collect()
        }
        _ => None,
    }
}

/// A comparison of rows; none if the operator is no comparison.
fn compared(left: &[Expr], op: &BinaryOperator, right: &[Expr]) -> Result<Option<Expr>> {
    let strict = match op {
        BinaryOperator::Eq | BinaryOperator::NotEq => None,
        BinaryOperator::Lt | BinaryOperator::LtEq => Some(BinaryOperator::Lt),
        BinaryOperator::Gt | BinaryOperator::GtEq => Some(BinaryOperator::Gt),
        _ => return Ok(None),
    };
    let pairs = pairs(left, right)?;
    let Some(strict) = strict else {
        let by = match op {
            BinaryOperator::Eq => Joined::ByAnd,
            _ => Joined::ByOr,
        };
        let parts = pairs.into_iter().map(|(left, right)| pair(left, op, right));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        return Ok(Some(joined(parts, by)));
    };
    if pairs.len() > ORDERED_COLUMNS_MAX {
        return Err(too_long());
    }
    if pairs
        .iter()
        .any(|(left, right)| row(left).is_some() || row(right).is_some())
    {
        return Err(Error::unsupported("an order of rows within rows"));
    }
    // The last pair decides whether equal rows are in it.
    let mut said: Option<Expr> = None;
    for (left, right) in pairs.into_iter().rev() {
        said = Some(match said {
            None => binary(left, op.clone(), right),
            Some(rest) => {
                let is_equal = binary(left.clone(), BinaryOperator::Eq, right.clone());
                let is_before = binary(left, strict.clone(), right);
                let equal_so_far = joined(vec![is_equal, rest], Joined::ByAnd);
                joined(vec![is_before, equal_so_far], Joined::ByOr)
            }
        });
    }
    Ok(said)
}

/// A comparison of two columns, which may be rows themselves.
fn pair(left: Expr, op: &BinaryOperator, right: Expr) -> Result<Expr> {
    if let (Some(left), Some(right)) = (row(&left), row(&right))
        && let Some(said) = compared(&left, op, &right)?
    {
        return Ok(said);
    }
    Ok(binary(left, op.clone(), right))
}

fn in_list(of: &Expr, list: &[Expr], negated: bool) -> Result<Option<Expr>> {
    let Some(left) = row(of) else {
        return Ok(None);
    };
    let Some(rows) = list.iter().map(row).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let is_long = rows.len() > LISTED_ROWS && left.len() <= LOOKED_UP_COLUMNS_MAX;
    if is_long
        && rows.iter().flatten().all(is_written)
        && rows.iter().all(|row| row.len() == left.len())
    {
        return Ok(Some(negated_if(negated, looked_up(&left, &rows))));
    }
    let mut tests = Vec::with_capacity(rows.len());
    for right in &rows {
        tests.extend(compared(&left, &BinaryOperator::Eq, right)?);
    }
    Ok(Some(negated_if(negated, joined(tests, Joined::ByOr))))
}

/// A row in a list of rows that are written down, by look-ups. Where columns of the row are NULL,
/// it is unknown if the others are found, and else false.
fn looked_up(left: &[Expr], rows: &[Vec<Expr>]) -> Expr {
    let columns = left.len();
    let mut conditions = Vec::with_capacity(1 << columns);
    // Each set of columns that are not NULL, all of them first.
    for set in (0..1_usize << columns).rev() {
        let is_in = |at: usize| set >> at & 1 == 1;
        let of_set = |row: &[Expr]| -> Vec<Expr> {
            let columns = row.iter().enumerate().filter(|(at, _)| is_in(*at));
            columns.map(|(_, column)| column.clone()).collect()
        };
        let tested = left.iter().enumerate().map(|(at, column)| {
            let column = Box::new(column.clone());
            match is_in(at) {
                true => Expr::IsNotNull(column),
                false => Expr::IsNull(column),
            }
        });
        let condition = joined(tested.collect(), Joined::ByAnd);
        let mut seen = HashSet::new();
        let list = rows.iter().map(|row| value_of(of_set(row)));
        let list = list.filter(|value| seen.insert(value.to_string()));
        let found = Expr::InList {
            expr: Box::new(value_of(of_set(left))),
            list: list.collect(),
            negated: false,
        };
        let result = match set {
            0 => unknown(),
            _ if set + 1 == 1 << columns => found,
            _ => binary(found, BinaryOperator::And, unknown()),
        };
        conditions.push(CaseWhen { condition, result });
    }
    let case = Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions,
        else_result: None,
    };
    Expr::Nested(Box::new(case))
}

/// One column is a value, several are a row.
fn value_of(mut columns: Vec<Expr>) -> Expr {
    match columns.len() {
        1 => taken(&mut columns[0]),
        _ => call("row", columns),
    }
}

fn unknown() -> Expr {
    Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(Expr::value(Value::Null)),
        data_type: DataType::Boolean,
        array: false,
        format: None,
    }
}

/// Whether a value stands in the text, and is not NULL.
fn is_written(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => !matches!(value.value, Value::Null | Value::Placeholder(_)),
        Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        } => is_written(expr),
        _ => false,
    }
}

/// The same test of each pair of columns, if these are rows.
fn each(
    left: &Expr,
    right: &Expr,
    by: Joined,
    test: fn(Box<Expr>, Box<Expr>) -> Expr,
) -> Result<Option<Expr>> {
    let (Some(left), Some(right)) = (row(left), row(right)) else {
        return Ok(None);
    };
    let tests = pairs(&left, &right)?.into_iter().map(|(left, right)| {
        let mut tested = test(Box::new(left), Box::new(right));
        in_other_words(&mut tested)?;
        Ok(tested)
    });
    Ok(Some(joined(tests.collect::<Result<Vec<_>>>()?, by)))
}

/// The same test of each column, all of which must pass it.
fn all(row: &[Expr], test: fn(Box<Expr>) -> Expr) -> Expr {
    let tests = row.iter().map(|column| test(Box::new(column.clone())));
    joined(tests.collect(), Joined::ByAnd)
}

fn pairs(left: &[Expr], right: &[Expr]) -> Result<Vec<(Expr, Expr)>> {
    if left.len() != right.len() {
        let words = "unequal number of entries in row expressions";
        return Err(Error::new(SqlState::SyntaxError, words));
    }
    Ok(left.iter().cloned().zip(right.iter().cloned()).collect())
}

#[derive(Clone, Copy)]
enum Joined {
    ByAnd,
    ByOr,
}

/// Conditions as one, as flat as it can be: walks over an expression go as deep as it is.
fn joined(mut conditions: Vec<Expr>, by: Joined) -> Expr {
    while conditions.len() > 1 {
        let mut pairs = Vec::with_capacity(conditions.len().div_ceil(2));
        let mut rest = conditions.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => {
                    let op = match by {
                        Joined::ByAnd => BinaryOperator::And,
                        Joined::ByOr => BinaryOperator::Or,
                    };
                    binary(left, op, right)
                }
                None => left,
            });
        }
        conditions = pairs;
    }
    conditions
        .pop()
        .unwrap_or_else(|| Expr::value(Value::Boolean(true)))
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(right),
    }))
}

fn negated_if(is_negated: bool, mut expr: Expr) -> Expr {
    match is_negated {
        true => Expr::Nested(Box::new(Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(taken(&mut expr)),
        })),
        false => expr,
    }
}

fn too_long() -> Error {
    let words = format!("rows of more than {ORDERED_COLUMNS_MAX} columns have no order here");
    Error::new(SqlState::FeatureNotSupported, words)
}
