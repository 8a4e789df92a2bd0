//! The check for nesting that the planner would visit exponentially often
//! ([`crate::parse::looks`]).

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};

use crate::parse::looks::{Looks, REPEATED_MAX};

/// Of expressions that are visited.
#[derive(Debug, Default)]
pub(super) struct Doubling {
    /// Parts of those around the one that is visited, the innermost last.
    open: Vec<Looks>,
    /// Of all that were visited.
    repeated: u64,
}

impl Doubling {
    pub(super) fn begin(&mut self) {
        self.open.push(Looks::default());
    }

    /// Whether there are not too many looks, with those for this expression, which is the last that
    /// began.
    pub(super) fn end(&mut self, expr: &Expr) -> bool {
        let parts = self.open.pop().unwrap_or_default();
        let looks = around(parts, expr);
        match self.open.last_mut() {
            Some(outer) => outer.add(&looks),
            None => {
                let repeated = looks.without_few_repeated().repeated();
                self.repeated = self.repeated.saturating_add(repeated);
            }
        }
        self.repeated <= REPEATED_MAX
    }
}

fn around(parts: Looks, expr: &Expr) -> Looks {
    match expr {
        // The planner makes CASE of comparisons with all elements.
        Expr::Case { .. } | Expr::AllOp { .. } | Expr::AnyOp { .. } => parts.in_case(),
        Expr::Function(call) => parts.in_function(&call.name.to_string()),
        Expr::BinaryOp { op, .. } if is_function(op) => parts.in_function(""),
        _ => parts.in_other(),
    }
}

/// Whether a function takes the place of an operator.
fn is_function(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::StringConcat
    )
}
