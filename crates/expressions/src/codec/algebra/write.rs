//! The encoder from algebra to operators.

use oxrdf::Variable;
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, GraphPattern, OrderExpression,
    PropertyPathExpression,
};

use super::operator::{AggregateFunctionName, AggregateName, Operator};
use crate::codec::error::CodecError;
use crate::codec::terms::TermText;

type Result<T> = std::result::Result<T, CodecError>;

/// A part of the algebra.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    Expression(&'a Expression),
    Pattern(&'a GraphPattern),
    Path(&'a PropertyPathExpression),
}

/// The operators from the root on, of each the last operand first: the order of reading, backwards.
pub(super) fn operators(root: Part<'_>) -> Result<Vec<Operator>> {
    let mut open = vec![root];
    let mut operators = Vec::new();
    while let Some(part) = open.pop() {
        operators.push(match part {
            Part::Expression(expression) => expression_operator(expression, &mut open),
            Part::Pattern(pattern) => pattern_operator(pattern, &mut open)?,
            Part::Path(path) => path_operator(path, &mut open),
        });
    }
    operators.reverse();
    Ok(operators)
}

/// The operator of an expression; its operands are put to the end of `open`, in order.
fn expression_operator<'a>(expression: &'a Expression, open: &mut Vec<Part<'a>>) -> Operator {
    let mut operands = |all: &[&'a Expression]| {
        open.extend(all.iter().map(|operand| Part::Expression(operand)));
    };
    let (operator, left, right) = match expression {
        Expression::NamedNode(node) => return Operator::Term(node.into()),
        Expression::Literal(literal) => return Operator::Term(literal.into()),
        Expression::Variable(variable) => return Operator::Term(variable.into()),
        Expression::Bound(variable) => return Operator::Bound(variable.as_str().to_owned()),
        Expression::Exists(pattern) => {
            open.push(Part::Pattern(pattern));
            return Operator::Exists;
        }
        Expression::UnaryPlus(inner) => {
            operands(&[inner]);
            return Operator::UnaryPlus;
        }
        Expression::UnaryMinus(inner) => {
            operands(&[inner]);
            return Operator::UnaryMinus;
        }
        Expression::Not(inner) => {
            operands(&[inner]);
            return Operator::Not;
        }
        Expression::If(condition, then, otherwise) => {
            operands(&[condition, then, otherwise]);
            return Operator::If;
        }
        Expression::In(needle, others) => {
            operands(&[needle]);
            open.extend(others.iter().map(Part::Expression));
            return Operator::In(others.len());
        }
        Expression::Coalesce(parts) => {
            open.extend(parts.iter().map(Part::Expression));
            return Operator::Coalesce(parts.len());
        }
        Expression::FunctionCall(function, arguments) => {
            open.extend(arguments.iter().map(Part::Expression));
            return Operator::Call(function.into(), arguments.len());
        }
        Expression::Or(left, right) => (Operator::Or, left, right),
        Expression::And(left, right) => (Operator::And, left, right),
        Expression::Equal(left, right) => (Operator::Equal, left, right),
        Expression::SameTerm(left, right) => (Operator::SameTerm, left, right),
        Expression::Greater(left, right) => (Operator::Greater, left, right),
        Expression::GreaterOrEqual(left, right) => (Operator::GreaterOrEqual, left, right),
        Expression::Less(left, right) => (Operator::Less, left, right),
        Expression::LessOrEqual(left, right) => (Operator::LessOrEqual, left, right),
        Expression::Add(left, right) => (Operator::Add, left, right),
        Expression::Subtract(left, right) => (Operator::Subtract, left, right),
        Expression::Multiply(left, right) => (Operator::Multiply, left, right),
        Expression::Divide(left, right) => (Operator::Divide, left, right),
    };
    operands(&[left, right]);
    operator
}

fn path_operator<'a>(path: &'a PropertyPathExpression, open: &mut Vec<Part<'a>>) -> Operator {
    use PropertyPathExpression as Path;
    match path {
        Path::NamedNode(node) => Operator::PathPredicate(node.as_str().to_owned()),
        Path::NegatedPropertySet(nodes) => {
            let nodes = nodes.iter().map(|node| node.as_str().to_owned());
            Operator::PathNegated(nodes.collect())
        }
        Path::Reverse(inner) => {
            open.push(Part::Path(inner));
            Operator::PathReverse
        }
        Path::ZeroOrMore(inner) => {
            open.push(Part::Path(inner));
            Operator::PathZeroOrMore
        }
        Path::OneOrMore(inner) => {
            open.push(Part::Path(inner));
            Operator::PathOneOrMore
        }
        Path::ZeroOrOne(inner) => {
            open.push(Part::Path(inner));
            Operator::PathZeroOrOne
        }
        Path::Sequence(first, second) => {
            open.extend([Part::Path(first), Part::Path(second)]);
            Operator::PathSequence
        }
        Path::Alternative(first, second) => {
            open.extend([Part::Path(first), Part::Path(second)]);
            Operator::PathAlternative
        }
    }
}

fn names(variables: &[Variable]) -> Vec<String> {
    let names = variables
        .iter()
        .map(|variable| variable.as_str().to_owned());
    names.collect()
}

fn pattern_operator<'a>(pattern: &'a GraphPattern, open: &mut Vec<Part<'a>>) -> Result<Operator> {
    Ok(match pattern {
        GraphPattern::Bgp { patterns } => {
            let triples = patterns.iter().map(TermText::triple_of);
            Operator::Triples(triples.collect::<Result<_>>()?)
        }
        GraphPattern::Path {
            subject,
            path,
            object,
        } => {
            open.push(Part::Path(path));
            Operator::Path(
                TermText::of_pattern(subject)?,
                TermText::of_pattern(object)?,
            )
        }
        GraphPattern::Join { left, right } => {
            open.extend([Part::Pattern(left), Part::Pattern(right)]);
            Operator::Join
        }
        GraphPattern::LeftJoin {
            left,
            right,
            expression,
        } => {
            open.extend([Part::Pattern(left), Part::Pattern(right)]);
            open.extend(expression.iter().map(Part::Expression));
            Operator::LeftJoin(expression.is_some())
        }
        GraphPattern::Filter { expr, inner } => {
            open.extend([Part::Pattern(inner), Part::Expression(expr)]);
            Operator::Filter
        }
        GraphPattern::Union { left, right } => {
            open.extend([Part::Pattern(left), Part::Pattern(right)]);
            Operator::Union
        }
        GraphPattern::Graph { name, inner } => {
            open.push(Part::Pattern(inner));
            Operator::Graph(name.into())
        }
        GraphPattern::Extend {
            inner,
            variable,
            expression,
        } => {
            open.extend([Part::Pattern(inner), Part::Expression(expression)]);
            Operator::Extend(variable.as_str().to_owned())
        }
        GraphPattern::Minus { left, right } => {
            open.extend([Part::Pattern(left), Part::Pattern(right)]);
            Operator::Minus
        }
        GraphPattern::Lateral { left, right } => {
            open.extend([Part::Pattern(left), Part::Pattern(right)]);
            Operator::Lateral
        }
        GraphPattern::Values {
            variables,
            bindings,
        } => {
            let row = |row: &Vec<Option<spargebra::term::GroundTerm>>| {
                let terms = row.iter().map(|term| match term {
                    Some(term) => TermText::of_ground(term).map(Some),
                    None => Ok(None),
                });
                terms.collect::<Result<Vec<_>>>()
            };
            let rows = bindings.iter().map(row).collect::<Result<_>>()?;
            Operator::Values(names(variables), rows)
        }
        GraphPattern::OrderBy { inner, expression } => {
            open.push(Part::Pattern(inner));
            let mut descends = Vec::with_capacity(expression.len());
            for key in expression {
                let (OrderExpression::Asc(key_expression) | OrderExpression::Desc(key_expression)) =
                    key;
                open.push(Part::Expression(key_expression));
                descends.push(matches!(key, OrderExpression::Desc(_)));
            }
            Operator::OrderBy(descends)
        }
        GraphPattern::Project { inner, variables } => {
            open.push(Part::Pattern(inner));
            Operator::Project(names(variables))
        }
        GraphPattern::Distinct { inner } => {
            open.push(Part::Pattern(inner));
            Operator::Distinct
        }
        GraphPattern::Reduced { inner } => {
            open.push(Part::Pattern(inner));
            Operator::Reduced
        }
        GraphPattern::Slice {
            inner,
            start,
            length,
        } => {
            open.push(Part::Pattern(inner));
            Operator::Slice(*start, *length)
        }
        GraphPattern::Group {
            inner,
            variables,
            aggregates,
        } => {
            open.push(Part::Pattern(inner));
            let aggregate = |(variable, aggregate): &'a (Variable, AggregateExpression)| {
                let (function, is_distinct, argument) = aggregate_parts(aggregate);
                open.extend(argument.map(Part::Expression));
                AggregateName {
                    variable: variable.as_str().to_owned(),
                    is_distinct,
                    function,
                }
            };
            let aggregates = aggregates.iter().map(aggregate).collect();
            Operator::Group(names(variables), aggregates)
        }
        GraphPattern::Service {
            name,
            inner,
            silent,
        } => {
            open.push(Part::Pattern(inner));
            Operator::Service(name.into(), *silent)
        }
    })
}

fn aggregate_parts(
    aggregate: &AggregateExpression,
) -> (AggregateFunctionName, bool, Option<&Expression>) {
    use AggregateFunctionName as Name;
    match aggregate {
        AggregateExpression::CountSolutions { distinct } => (Name::Solutions, *distinct, None),
        AggregateExpression::FunctionCall {
            name,
            expr,
            distinct,
        } => {
            let name = match name {
                AggregateFunction::Count => Name::Count,
                AggregateFunction::Sum => Name::Sum,
                AggregateFunction::Avg => Name::Avg,
                AggregateFunction::Min => Name::Min,
                AggregateFunction::Max => Name::Max,
                AggregateFunction::Sample => Name::Sample,
                AggregateFunction::GroupConcat { separator } => {
                    Name::GroupConcat(separator.clone())
                }
                AggregateFunction::Custom(iri) => Name::Custom(iri.as_str().to_owned()),
            };
            (name, *distinct, Some(expr))
        }
    }
}
