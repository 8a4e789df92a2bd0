//! Access to the operands of an expression, for all passes.

use spargebra::algebra::Expression;

/// Visits what an expression borrowed in either way has.
macro_rules! visit_operands {
    ($expression:ident, $visit:ident, $iterate:ident) => {
        match $expression {
            Expression::NamedNode(_)
            | Expression::Literal(_)
            | Expression::Variable(_)
            | Expression::Bound(_)
            | Expression::Exists(_) => {}
            Expression::Or(a, b)
            | Expression::And(a, b)
            | Expression::Equal(a, b)
            | Expression::SameTerm(a, b)
            | Expression::Greater(a, b)
            | Expression::GreaterOrEqual(a, b)
            | Expression::Less(a, b)
            | Expression::LessOrEqual(a, b)
            | Expression::Add(a, b)
            | Expression::Subtract(a, b)
            | Expression::Multiply(a, b)
            | Expression::Divide(a, b) => {
                $visit(a);
                $visit(b);
            }
            Expression::UnaryPlus(a) | Expression::UnaryMinus(a) | Expression::Not(a) => $visit(a),
            Expression::In(a, list) => {
                $visit(a);
                list.$iterate().for_each($visit);
            }
            Expression::If(a, b, c) => {
                $visit(a);
                $visit(b);
                $visit(c);
            }
            Expression::Coalesce(list) | Expression::FunctionCall(_, list) => {
                list.$iterate().for_each($visit);
            }
        }
    };
}

/// Calls `visit` for each direct operand of an expression, in the order of its text. `EXISTS` has
/// a pattern and no operands.
pub fn for_each_child<'e>(expression: &'e Expression, visit: &mut dyn FnMut(&'e Expression)) {
    visit_operands!(expression, visit, iter);
}

/// Visits the operands, which may be changed.
pub fn for_each_child_mut(expression: &mut Expression, visit: &mut dyn FnMut(&mut Expression)) {
    visit_operands!(expression, visit, iter_mut);
}
