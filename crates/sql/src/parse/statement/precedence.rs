//! The precedence of `IS DISTINCT FROM`, above AND, OR and NOT.
//!
//! The parser takes all that follows it for its right side:
//!
//! ```text
//! p AND a IS DISTINCT FROM NULL OR q     parsed    p AND (a IS DISTINCT FROM (NULL OR q))
//!                                        meant     (p AND a IS DISTINCT FROM NULL) OR q
//! ```
//!
//! Brackets stand in the tree as such. So an operator that binds less tightly and stands without
//! them below one that binds tighter can have come that way alone, and is lifted above it, from the
//! leaves upwards.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value, VisitorMut};

/// Mends the expressions of a statement.
pub(super) struct Precedence;

impl VisitorMut for Precedence {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let is_wrong = match expr {
            Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => {
                is_looser(right, true)
            }
            Expr::BinaryOp {
                op: BinaryOperator::And,
                right,
                ..
            } => is_looser(right, false),
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr,
            } => is_looser(expr, true),
            _ => false,
        };
        if is_wrong {
            let wrong = std::mem::replace(expr, Expr::value(Value::Null));
            *expr = lifted(wrong);
        }
        ControlFlow::Continue(())
    }
}

/// Whether it is an OR, or an AND where that counts.
fn is_looser(expr: &Expr, and_counts: bool) -> bool {
    match expr {
        Expr::BinaryOp { op, .. } => {
            *op == BinaryOperator::Or || and_counts && *op == BinaryOperator::And
        }
        _ => false,
    }
}

fn lifted(expr: Expr) -> Expr {
    match expr {
        Expr::IsDistinctFrom(left, right) => {
            below(*right, true, |right| Expr::IsDistinctFrom(left, right))
        }
        Expr::IsNotDistinctFrom(left, right) => {
            below(*right, true, |right| Expr::IsNotDistinctFrom(left, right))
        }
        Expr::BinaryOp { left, op, right } => {
            below(*right, false, |right| Expr::BinaryOp { left, op, right })
        }
        Expr::UnaryOp { op, expr } => below(*expr, true, |expr| Expr::UnaryOp { op, expr }),
        other => other,
    }
}

/// Puts an operator around the leftmost operand of those that bind less tightly.
fn below(expr: Expr, and_counts: bool, around: impl FnOnce(Box<Expr>) -> Expr) -> Expr {
    if !is_looser(&expr, and_counts) {
        return around(Box::new(expr));
    }
    // From the leftmost operand upwards.
    let mut above = Vec::new();
    let mut rest = expr;
    let leftmost = loop {
        match rest {
            Expr::BinaryOp { left, op, right }
                if op == BinaryOperator::Or || and_counts && op == BinaryOperator::And =>
            {
                above.push((op, right));
                rest = *left;
            }
            other => break other,
        }
    };
    let mut whole = around(Box::new(leftmost));
    for (op, right) in above.into_iter().rev() {
        whole = Expr::BinaryOp {
            left: Box::new(whole),
            op,
            right,
        };
    }
    whole
}

#[cfg(test)]
mod tests {
    use crate::parse::statement::parse_expression;

    #[test]
    fn and_or_and_not_stand_above_is_distinct_from() {
        // Brackets in the second text are where the tree has its operators.
        for (text, same) in [
            (
                "a IS DISTINCT FROM NULL AND b",
                "(a IS DISTINCT FROM NULL) AND b",
            ),
            (
                "p AND a IS DISTINCT FROM NULL OR q",
                "(p AND (a IS DISTINCT FROM NULL)) OR q",
            ),
            (
                "NOT a IS NOT DISTINCT FROM b AND c OR d",
                "((NOT (a IS NOT DISTINCT FROM b)) AND c) OR d",
            ),
            (
                "a IS DISTINCT FROM (b AND c)",
                "a IS DISTINCT FROM (b AND c)",
            ),
            ("a IS DISTINCT FROM b = c", "a IS DISTINCT FROM (b = c)"),
            ("p AND (q OR r)", "p AND (q OR r)"),
            (
                "a IS DISTINCT FROM 1 OR b IS DISTINCT FROM 2 AND c",
                "(a IS DISTINCT FROM 1) OR ((b IS DISTINCT FROM 2) AND c)",
            ),
        ] {
            let shape = |text: &str| {
                let expr = parse_expression(text).unwrap();
                format!("{:?}", Bare(&expr))
            };
            assert_eq!(shape(text), shape(same), "{text}");
        }
    }

    /// A tree without brackets and places.
    struct Bare<'a>(&'a super::Expr);

    impl std::fmt::Debug for Bare<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            use super::Expr;
            match self.0 {
                Expr::Nested(inner) => write!(f, "{:?}", Bare(inner)),
                Expr::BinaryOp { left, op, right } => {
                    write!(f, "[{:?} {op} {:?}]", Bare(left), Bare(right))
                }
                Expr::UnaryOp { op, expr } => write!(f, "[{op} {:?}]", Bare(expr)),
                Expr::IsDistinctFrom(left, right) => {
                    write!(f, "[{:?} distinct {:?}]", Bare(left), Bare(right))
                }
                Expr::IsNotDistinctFrom(left, right) => {
                    write!(f, "[{:?} same {:?}]", Bare(left), Bare(right))
                }
                other => write!(f, "{other}"),
            }
        }
    }
}
