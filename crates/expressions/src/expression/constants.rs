//! Putting other constants into an expression.

use spargebra::algebra::Expression;

/// Calls `change` for each constant of an expression, which may put another one in its place. Not for those of patterns in `EXISTS`.
pub fn for_each_constant_mut(expression: &mut Expression, change: &mut dyn FnMut(&mut Expression)) {
    match expression {
        Expression::NamedNode(_) | Expression::Literal(_) => change(expression),
        Expression::Variable(_) | Expression::Bound(_) | Expression::Exists(_) => {}
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
            for_each_constant_mut(a, change);
            for_each_constant_mut(b, change);
        }
        Expression::UnaryPlus(a) | Expression::UnaryMinus(a) | Expression::Not(a) => {
            for_each_constant_mut(a, change);
        }
        Expression::If(a, b, c) => {
            for_each_constant_mut(a, change);
            for_each_constant_mut(b, change);
            for_each_constant_mut(c, change);
        }
        Expression::In(a, list) => {
            for_each_constant_mut(a, change);
            for operand in list {
                for_each_constant_mut(operand, change);
            }
        }
        Expression::Coalesce(list) | Expression::FunctionCall(_, list) => {
            for operand in list {
                for_each_constant_mut(operand, change);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use spargebra::term::{Literal, NamedNode, Variable};

    use super::*;

    #[test]
    fn each_constant_is_given_once_wherever_it_stands() {
        let literal = |value: i32| Box::new(Expression::Literal(Literal::from(value)));
        let variable = || Box::new(Expression::Variable(Variable::new_unchecked("v")));
        let node = Expression::NamedNode(NamedNode::new_unchecked("http://e/1"));
        let mut expression = Expression::And(
            Box::new(Expression::Less(variable(), literal(1))),
            Box::new(Expression::If(
                Box::new(Expression::In(variable(), vec![node, *literal(2)])),
                Box::new(Expression::UnaryMinus(literal(3))),
                Box::new(Expression::Coalesce(vec![*variable(), *literal(4)])),
            )),
        );
        let mut seen = Vec::new();
        for_each_constant_mut(&mut expression, &mut |constant| {
            seen.push(constant.to_string());
            *constant = Expression::Literal(Literal::from(seen.len() as i32 * 10));
        });
        assert_eq!(seen.len(), 5);
        let text = expression.to_string();
        for number in 1..=5 {
            assert!(text.contains(&format!("\"{number}0\"")), "{text}");
        }
    }
}
