//! `x < ANY (array)`, rewritten as a negated comparison with all elements.
//!
//! The planner finds the least or the greatest element for ANY, and forgets what is unknown beside
//! it: NULL among the elements, or in the place of `x`. It does not for ALL, and one is the other's
//! contrary, in a logic of three values, too:
//!
//! ```text
//! x < ANY (array)     ->  NOT (x >= ALL (array))
//! x = ANY (array)         stays: it is a function with three-valued logic (`crate::functions::array_has`),
//!                         and a list of IN where the array is a constant
//! ```

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value, VisitorMut};

/// Says so in all expressions of a statement.
pub(super) struct AnyOf;

impl VisitorMut for AnyOf {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::AnyOp {
            compare_op, right, ..
        } = expr
        else {
            return ControlFlow::Continue(());
        };
        let contrary = match compare_op {
            BinaryOperator::NotEq => BinaryOperator::Eq,
            BinaryOperator::Lt => BinaryOperator::GtEq,
            BinaryOperator::LtEq => BinaryOperator::Gt,
            BinaryOperator::Gt => BinaryOperator::LtEq,
            BinaryOperator::GtEq => BinaryOperator::Lt,
            _ => return ControlFlow::Continue(()),
        };
        if matches!(**right, Expr::Subquery(_)) {
            return ControlFlow::Continue(());
        }
        let any = std::mem::replace(expr, Expr::value(Value::Null));
        if let Expr::AnyOp { left, right, .. } = any {
            let all = Expr::AllOp {
                left,
                compare_op: contrary,
                right,
            };
            *expr = Expr::Nested(Box::new(Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr: Box::new(Expr::Nested(Box::new(all))),
            }));
        }
        ControlFlow::Continue(())
    }
}
