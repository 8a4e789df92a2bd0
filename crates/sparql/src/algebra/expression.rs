//! Helpers for spargebra expressions: variables, conjuncts, substitution.
//!
//! All walks recurse, and are bounded: the text's nesting and operators are bounded
//! by the scan before parsing, and long chains of `||` and `&&` are balanced
//! ([`balanced`]) so that what is evaluated later is flat.

use orrery_expressions::for_each_child;
use spargebra::algebra::Expression;
use spargebra::term::Variable;

use super::{VarSet, VariableTable};
use crate::error::QueryError;

/// Depth that an expression may have when it is evaluated.
const DEPTH_MAX: usize = 200;
/// Operations in a row, such as `1 + 1 + ...`: they are computed one after the other, but shown and
/// dropped as a tree.
const CHAIN_MAX: usize = 4_000;

/// Calls `visit` for each variable outside of `EXISTS`.
pub(crate) fn for_each_variable(expression: &Expression, visit: &mut impl FnMut(&Variable)) {
    match expression {
        Expression::Variable(variable) | Expression::Bound(variable) => visit(variable),
        other => for_each_child(other, &mut |child| for_each_variable(child, visit)),
    }
}

/// The known variables of an expression without `EXISTS`.
pub(crate) fn variables(expression: &Expression, table: &VariableTable) -> VarSet {
    let mut set = VarSet::default();
    for_each_variable(expression, &mut |variable| {
        if let Some(var) = table.get(variable.as_str()) {
            set.insert(var);
        }
    });
    set
}

/// Rebuilds an expression with its direct children mapped.
pub(crate) fn map_children<E>(
    expression: Expression,
    map: &mut dyn FnMut(Expression) -> Result<Expression, E>,
) -> Result<Expression, E> {
    let mut boxed =
        |child: Box<Expression>| -> Result<Box<Expression>, E> { Ok(Box::new(map(*child)?)) };
    Ok(match expression {
        Expression::Or(a, b) => Expression::Or(boxed(a)?, boxed(b)?),
        Expression::And(a, b) => Expression::And(boxed(a)?, boxed(b)?),
        Expression::Equal(a, b) => Expression::Equal(boxed(a)?, boxed(b)?),
        Expression::SameTerm(a, b) => Expression::SameTerm(boxed(a)?, boxed(b)?),
        Expression::Greater(a, b) => Expression::Greater(boxed(a)?, boxed(b)?),
        Expression::GreaterOrEqual(a, b) => Expression::GreaterOrEqual(boxed(a)?, boxed(b)?),
        Expression::Less(a, b) => Expression::Less(boxed(a)?, boxed(b)?),
        Expression::LessOrEqual(a, b) => Expression::LessOrEqual(boxed(a)?, boxed(b)?),
        Expression::Add(a, b) => Expression::Add(boxed(a)?, boxed(b)?),
        Expression::Subtract(a, b) => Expression::Subtract(boxed(a)?, boxed(b)?),
        Expression::Multiply(a, b) => Expression::Multiply(boxed(a)?, boxed(b)?),
        Expression::Divide(a, b) => Expression::Divide(boxed(a)?, boxed(b)?),
        Expression::UnaryPlus(a) => Expression::UnaryPlus(boxed(a)?),
        Expression::UnaryMinus(a) => Expression::UnaryMinus(boxed(a)?),
        Expression::Not(a) => Expression::Not(boxed(a)?),
        Expression::If(a, b, c) => Expression::If(boxed(a)?, boxed(b)?, boxed(c)?),
        Expression::In(a, list) => Expression::In(
            boxed(a)?,
            list.into_iter().map(map).collect::<Result<_, E>>()?,
        ),
        Expression::Coalesce(list) => {
            Expression::Coalesce(list.into_iter().map(map).collect::<Result<_, E>>()?)
        }
        Expression::FunctionCall(function, list) => Expression::FunctionCall(
            function,
            list.into_iter().map(map).collect::<Result<_, E>>()?,
        ),
        leaf @ (Expression::NamedNode(_)
        | Expression::Literal(_)
        | Expression::Variable(_)
        | Expression::Bound(_)
        | Expression::Exists(_)) => leaf,
    })
}

/// Whether an `EXISTS` stands in the expression.
pub(crate) fn has_exists(expression: &Expression) -> bool {
    if matches!(expression, Expression::Exists(_)) {
        return true;
    }
    let mut found = false;
    for_each_child(expression, &mut |child| found |= has_exists(child));
    found
}

/// Whether each evaluation gives another value, so that it must stay where it is.
pub(crate) fn is_volatile(expression: &Expression) -> bool {
    use spargebra::algebra::Function;
    if let Expression::FunctionCall(
        Function::Rand | Function::Uuid | Function::StrUuid | Function::BNode,
        _,
    ) = expression
    {
        return true;
    }
    let mut found = false;
    for_each_child(expression, &mut |child| found |= is_volatile(child));
    found
}

/// The members of a conjunction, without recursion over its chain.
pub(crate) fn conjuncts(expression: Expression) -> Vec<Expression> {
    let mut open = vec![expression];
    let mut members = Vec::new();
    while let Some(next) = open.pop() {
        match next {
            Expression::And(a, b) => {
                open.push(*b);
                open.push(*a);
            }
            other => members.push(other),
        }
    }
    members
}

/// Rebuilds long chains of `||` and `&&` as balanced trees, and refuses what is still deep.
pub(crate) fn balanced(expression: Expression) -> Result<Expression, QueryError> {
    let expression = rebalance(expression)?;
    let Depth {
        evaluation,
        chain_max,
    } = depth(&expression);
    if evaluation > DEPTH_MAX {
        return Err(QueryError::unsupported(format!(
            "an expression that is nested deeper than {DEPTH_MAX} levels"
        )));
    }
    if chain_max > CHAIN_MAX {
        return Err(QueryError::unsupported(format!(
            "more than {CHAIN_MAX} operations in a row"
        )));
    }
    Ok(expression)
}

fn rebalance(expression: Expression) -> Result<Expression, QueryError> {
    match expression {
        chain @ Expression::Or(..) => {
            let mut members = Vec::new();
            let mut open = vec![chain];
            while let Some(next) = open.pop() {
                match next {
                    Expression::Or(a, b) => {
                        open.push(*b);
                        open.push(*a);
                    }
                    other => members.push(rebalance(other)?),
                }
            }
            Ok(tree(members, Expression::Or))
        }
        chain @ Expression::And(..) => {
            let members: Result<Vec<_>, _> = conjuncts(chain).into_iter().map(rebalance).collect();
            Ok(tree(members?, Expression::And))
        }
        other => map_children(other, &mut rebalance),
    }
}

/// Joins at least one expression into a balanced binary tree.
fn tree(
    mut members: Vec<Expression>,
    join: fn(Box<Expression>, Box<Expression>) -> Expression,
) -> Expression {
    while members.len() > 1 {
        let mut halved = Vec::with_capacity(members.len().div_ceil(2));
        let mut rest = members.into_iter();
        while let Some(first) = rest.next() {
            halved.push(match rest.next() {
                Some(second) => join(Box::new(first), Box::new(second)),
                None => first,
            });
        }
        members = halved;
    }
    members
        .pop()
        .unwrap_or_else(|| Expression::Literal(true.into()))
}

/// How deep an expression is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Depth {
    /// Levels of its evaluation, for which a chain of operations is one.
    evaluation: usize,
    /// The longest chain of operations.
    chain_max: usize,
}

fn depth(expression: &Expression) -> Depth {
    let mut deepest = Depth::default();
    let mut add = |part: &Expression| {
        let part = depth(part);
        deepest.evaluation = deepest.evaluation.max(part.evaluation);
        deepest.chain_max = deepest.chain_max.max(part.chain_max);
    };
    let (mut first, mut operations) = (expression, 0);
    while let Expression::Add(left, right)
    | Expression::Subtract(left, right)
    | Expression::Multiply(left, right)
    | Expression::Divide(left, right) = first
    {
        operations += 1;
        add(right);
        first = left;
    }
    match operations {
        0 => for_each_child(first, &mut add),
        _ => add(first),
    }
    Depth {
        evaluation: deepest.evaluation + 1,
        chain_max: deepest.chain_max.max(operations),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_chains_become_flat_trees() {
        let leaf = || Expression::Variable(Variable::new_unchecked("x"));
        let chain = (0..5_000).fold(leaf(), |chain, _| {
            Expression::Or(Box::new(chain), Box::new(leaf()))
        });
        let flat = balanced(chain).expect("a chain is fine");
        assert!(depth(&flat).evaluation < 20);
        let deep = (0..300).fold(leaf(), |inner, _| Expression::Not(Box::new(inner)));
        assert!(balanced(deep).is_err());
    }

    #[test]
    fn operations_in_a_row_are_one_level_up_to_a_limit() {
        let leaf = || Expression::Variable(Variable::new_unchecked("x"));
        let sum = |terms: usize| {
            (1..terms).fold(leaf(), |sum, _| {
                Expression::Add(Box::new(sum), Box::new(leaf()))
            })
        };
        // As queries with so many operators are planned.
        let planned = crate::parse::on_large_stack("long-sums", || {
            let sum_of_thousand = balanced(sum(1_000))?;
            let expected = Depth {
                evaluation: 2,
                chain_max: 999,
            };
            assert_eq!(depth(&sum_of_thousand), expected);
            assert!(balanced(sum(CHAIN_MAX + 2)).is_err());
            Ok(())
        });
        planned.expect("a long sum is fine");
        let nested_right = (0..300).fold(leaf(), |inner, _| {
            Expression::Add(Box::new(leaf()), Box::new(inner))
        });
        assert!(balanced(nested_right).is_err());
    }

    #[test]
    fn conjuncts_keep_their_order() {
        let of = |name: &str| Expression::Variable(Variable::new_unchecked(name));
        let chain = Expression::And(
            Box::new(Expression::And(Box::new(of("a")), Box::new(of("b")))),
            Box::new(of("c")),
        );
        assert_eq!(conjuncts(chain), [of("a"), of("b"), of("c")]);
    }
}
