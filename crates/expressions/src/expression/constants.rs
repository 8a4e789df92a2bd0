//! The replacement of constants in an expression.

use spargebra::algebra::Expression;

use super::children::for_each_child_mut;

/// Calls `change` for each constant of an expression, which may put another one in its place. Not
/// for those of patterns in `EXISTS`.
pub fn for_each_constant_mut(expression: &mut Expression, change: &mut dyn FnMut(&mut Expression)) {
    match expression {
        Expression::NamedNode(_) | Expression::Literal(_) => change(expression),
        other => for_each_child_mut(other, &mut |child| for_each_constant_mut(child, change)),
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
