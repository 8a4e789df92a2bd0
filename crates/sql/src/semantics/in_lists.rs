//! Lists of `IN` that the optimizer must not merge.
//!
//! The optimizer makes one list of two about the same value: `a NOT IN (1, 2) OR a NOT IN (3, 4)`
//! is true to it, as no value is in both; but it is unknown where `a` is NULL. Of lists with a
//! NULL, or with columns, it takes what is written in one of them for what the other has not. Its
//! lists are right where unknown counts as false, and these stay:
//!
//! ```text
//! a IN (1, NULL)                          ->  a IN (1) OR NULL
//! a NOT IN (1, NULL)                      ->  a NOT IN (1) AND NULL
//! a IN (1, b)                             ->  apart(a) IN (1, b)
//! a NOT IN (1, 2) OR a NOT IN (3, 4)      ->  apart(a) NOT IN (1, 2) OR apart(a) NOT IN (3, 4)       where a may be NULL
//! ```
//!
//! What a query below names, `SELECT a IN (1, 2) AS p`, one above may put together with another, so
//! lists are apart there even alone.
//!
//! `apart` gives what it is given; no two of them are equal to the engine. It makes lists of
//! `a = 1 OR a = 2`, too, and of what it finds behind `NOT`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::plan::walk::Walk;
use crate::{Error, SqlState};

/// Where an expression stands.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Stands {
    /// It decides which rows there are: what is unknown counts as false.
    AsCondition,
    /// It is a column, which a query above may ask for.
    AsColumn,
    Elsewhere,
}

/// An expression whose types are settled.
pub(crate) fn with_lists_apart(
    expr: Expr,
    stands: Stands,
    schema: &DFSchema,
) -> Result<Transformed<Expr>> {
    let mut compares = 0;
    let mut has_list = false;
    expr.apply_by(&mut |part| {
        has_list |= matches!(part, Expr::InList(_));
        compares += u32::from(operand(part).is_some());
        Ok(TreeNodeRecursion::Continue)
    })?;
    match has_list || compares > 1 {
        true => apart(expr, stands, schema),
        false => Ok(Transformed::no(expr)),
    }
}

/// Conditions between which the engine may put lists together: a tree of `AND`, `OR` and `NOT`.
struct Conditions {
    /// What they compare; whether a list could be made of that with another where this is wrong.
    compared: Vec<(Expr, bool)>,
    /// So many of the same are too many.
    together_min: usize,
}

impl Conditions {
    fn of(expr: &Expr, stands: Stands) -> Self {
        let is_false = stands == Stands::AsCondition;
        let mut shape = Shape::default();
        shape.see(expr);
        let mut conditions = Self {
            compared: Vec::new(),
            together_min: match stands {
                Stands::AsColumn => 1,
                Stands::AsCondition | Stands::Elsewhere => 2,
            },
        };
        // `a = 1 OR a = 2` is right in one list, and `a IN (1, 2) AND a IN (3, 4)` where unknown
        // counts as false.
        let may_be_wrong = match is_false {
            true => shape.has_or || shape.has_not,
            false if stands == Stands::AsColumn => true,
            false => shape.has_and || shape.has_not || shape.has_negated,
        };
        if may_be_wrong {
            conditions.collect(expr, is_false);
        } else {
            conditions.collect(expr, true);
            conditions
                .compared
                .iter_mut()
                .for_each(|(_, is)| *is = false);
        }
        conditions
    }

    fn collect(&mut self, expr: &Expr, is_false: bool) {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.is_logic_operator() => {
                self.collect(left, is_false);
                self.collect(right, is_false);
            }
            Expr::Not(of) => self.collect(of, false),
            leaf => {
                if let Some(of) = operand(leaf) {
                    let is_negated = matches!(leaf, Expr::InList(list) if list.negated);
                    self.compared.push((of.clone(), !is_false || is_negated));
                }
            }
        }
    }

    fn are_several(&self, of: &Expr) -> bool {
        self.compared
            .iter()
            .filter(|(other, _)| other == of)
            .count()
            > 1
    }

    fn may_be_wrong(&self, of: &Expr) -> bool {
        let same = self
            .compared
            .iter()
            .filter(|(other, is)| *is && other == of);
        same.count() >= self.together_min
    }
}

/// What a tree of conditions has.
#[derive(Default)]
struct Shape {
    has_and: bool,
    has_or: bool,
    has_not: bool,
    has_negated: bool,
}

impl Shape {
    fn see(&mut self, expr: &Expr) {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.is_logic_operator() => {
                self.has_and |= *op == Operator::And;
                self.has_or |= *op == Operator::Or;
                self.see(left);
                self.see(right);
            }
            Expr::Not(of) => {
                self.has_not = true;
                self.see(of);
            }
            Expr::InList(list) => self.has_negated |= list.negated,
            _ => (),
        }
    }
}

fn apart(expr: Expr, stands: Stands, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Expr::Alias(_) = expr {
        return expr.map_children(|of| apart(of, stands, schema));
    }
    let conditions = Conditions::of(&expr, stands);
    within(expr, stands == Stands::AsCondition, &conditions, schema)
}

fn within(
    expr: Expr,
    is_false: bool,
    conditions: &Conditions,
    schema: &DFSchema,
) -> Result<Transformed<Expr>> {
    match &expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) if op.is_logic_operator() => {
            expr.map_children(|part| within(part, is_false, conditions, schema))
        }
        Expr::Not(_) => expr.map_children(|part| within(part, false, conditions, schema)),
        _ => expr
            .map_children(|part| apart(part, Stands::Elsewhere, schema))?
            .transform_data(|leaf| comparison(leaf, is_false, conditions, schema)),
    }
}

/// One that compares, whose parts are done.
fn comparison(
    expr: Expr,
    is_false: bool,
    conditions: &Conditions,
    schema: &DFSchema,
) -> Result<Transformed<Expr>> {
    let Some(of) = operand(&expr) else {
        return Ok(Transformed::no(expr));
    };
    let may_be_null = of.nullable(schema).unwrap_or(true);
    let mut is_apart = may_be_null && conditions.may_be_wrong(of);
    let are_several = conditions.are_several(of);
    let mut list = match expr {
        Expr::InList(list) => list,
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_apart => {
            let (left, right) = match column(&left) {
                Some(_) => (Box::new(named_apart(*left)), right),
                None => (left, Box::new(named_apart(*right))),
            };
            let expr = Expr::BinaryExpr(BinaryExpr { left, op, right });
            return Ok(Transformed::yes(expr));
        }
        expr => return Ok(Transformed::no(expr)),
    };
    // The engine has a join for it.
    if matches!(list.list.as_slice(), [Expr::ScalarSubquery(_)]) {
        return Ok(Transformed::no(Expr::InList(list)));
    }
    let written = list.list.len();
    list.list.retain(|value| !is_null(value));
    let has_null = list.list.len() < written;
    let is_column = |value: &Expr| value.any_column_refs();
    is_apart |= list.list.iter().any(is_column);
    is_apart |= are_several && !list.list.iter().all(is_written);
    let unknown = || Expr::Literal(ScalarValue::Boolean(None), None);
    if list.list.is_empty() && has_null {
        return Ok(Transformed::yes(unknown()));
    }
    if is_apart {
        list.expr = Box::new(named_apart(*list.expr));
    }
    let is_negated = list.negated;
    let list = Expr::InList(list);
    Ok(match has_null {
        true if is_negated => Transformed::yes(list.and(unknown())),
        true if is_false => Transformed::yes(list),
        true => Transformed::yes(list.or(unknown())),
        false if is_apart => Transformed::yes(list),
        false => Transformed::no(list),
    })
}

/// What is compared with constants, without the casts that the engine may take away.
fn operand(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::InList(list) => Some(without_casts(&list.expr)),
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Eq | Operator::NotEq,
            right,
        }) => match (column(left), column(right)) {
            (Some(of), None) | (None, Some(of)) => Some(of),
            _ => None,
        },
        _ => None,
    }
}

fn column(expr: &Expr) -> Option<&Expr> {
    let of = without_casts(expr);
    matches!(of, Expr::Column(_)).then_some(of)
}

fn without_casts(mut expr: &Expr) -> &Expr {
    loop {
        expr = match expr {
            Expr::Cast(cast) => &cast.expr,
            Expr::TryCast(cast) => &cast.expr,
            of => return of,
        }
    }
}

fn is_null(value: &Expr) -> bool {
    matches!(without_casts(value), Expr::Literal(of, _) if of.is_null())
}

/// Whether a value stands in the text.
fn is_written(value: &Expr) -> bool {
    match without_casts(value) {
        Expr::Negative(of) => is_written(of),
        of => matches!(of, Expr::Literal(..)),
    }
}

fn named_apart(expr: Expr) -> Expr {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    Expr::ScalarFunction(ScalarFunction {
        func: Arc::new(ScalarUDF::new_from_impl(Apart {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            signature: Signature::any(1, Volatility::Immutable),
        })),
        args: vec![expr],
    })
}

/// See the module.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Apart {
    number: u64,
    signature: Signature,
}

fn nothing_given() -> Error {
    Error::new(SqlState::InternalError, "no operand of IN is given")
}

impl ScalarUDFImpl for Apart {
    fn name(&self) -> &str {
        "apart"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        args.first().cloned().ok_or_else(|| nothing_given().into())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let of = args.arg_fields.first().cloned();
        of.ok_or_else(|| nothing_given().into())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let of = args.args.into_iter().next();
        of.ok_or_else(|| nothing_given().into())
    }
}
