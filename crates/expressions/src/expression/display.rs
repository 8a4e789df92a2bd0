//! The text of expressions in `explain`: SPARQL with few parentheses and plain numbers.

use std::fmt::{self, Display, Formatter};

use orrery_term::vocabulary::xsd;
use spargebra::algebra::{Expression, Function};
use spargebra::term::Literal;

use crate::values::compare::Comparison;
use crate::values::operator::Arithmetic;

/// Shows an expression as SPARQL.
pub struct Sparql<'a>(pub &'a Expression);

impl Display for Sparql<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_expression(self.0, f)
    }
}

fn write_expression(expression: &Expression, f: &mut Formatter<'_>) -> fmt::Result {
    match expression {
        Expression::NamedNode(iri) => write!(f, "{iri}"),
        Expression::Literal(literal) => write_literal(literal, f),
        Expression::Variable(variable) => write!(f, "{variable}"),
        Expression::Or(left, right) => write_binary(left, "||", right, f),
        Expression::And(left, right) => write_binary(left, "&&", right, f),
        Expression::Equal(left, right) => write_binary(left, "=", right, f),
        Expression::SameTerm(left, right) => {
            write_call("sameTerm", [left.as_ref(), right.as_ref()], f)
        }
        Expression::Greater(left, right) => {
            write_binary(left, Comparison::Greater.symbol(), right, f)
        }
        Expression::GreaterOrEqual(left, right) => {
            write_binary(left, Comparison::GreaterOrEqual.symbol(), right, f)
        }
        Expression::Less(left, right) => write_binary(left, Comparison::Less.symbol(), right, f),
        Expression::LessOrEqual(left, right) => {
            write_binary(left, Comparison::LessOrEqual.symbol(), right, f)
        }
        Expression::In(needle, list) => {
            write_operand(needle, f)?;
            write_call(" IN ", list, f)
        }
        Expression::Add(left, right) => write_binary(left, Arithmetic::Add.symbol(), right, f),
        Expression::Subtract(left, right) => {
            write_binary(left, Arithmetic::Subtract.symbol(), right, f)
        }
        Expression::Multiply(left, right) => {
            write_binary(left, Arithmetic::Multiply.symbol(), right, f)
        }
        Expression::Divide(left, right) => {
            write_binary(left, Arithmetic::Divide.symbol(), right, f)
        }
        Expression::UnaryPlus(part) => write_prefixed("+", part, f),
        Expression::UnaryMinus(part) => write_prefixed("-", part, f),
        Expression::Not(part) => match part.as_ref() {
            Expression::Equal(left, right) => write_binary(left, "!=", right, f),
            Expression::In(needle, list) => {
                write_operand(needle, f)?;
                write_call(" NOT IN ", list, f)
            }
            Expression::Exists(_) => f.write_str("NOT EXISTS {..}"),
            part => write_prefixed("!", part, f),
        },
        Expression::Exists(_) => f.write_str("EXISTS {..}"),
        Expression::Bound(variable) => write!(f, "BOUND({variable})"),
        Expression::If(condition, then, otherwise) => {
            write_call("IF", [condition.as_ref(), then, otherwise], f)
        }
        Expression::Coalesce(parts) => write_call("COALESCE", parts, f),
        Expression::FunctionCall(Function::Custom(iri), arguments) => {
            match iri.as_str().strip_prefix(xsd::NAMESPACE) {
                Some(local) => write_call(&format!("xsd:{local}"), arguments, f),
                None => write_call(&iri.to_string(), arguments, f),
            }
        }
        Expression::FunctionCall(function, arguments) => {
            write_call(&function.to_string(), arguments, f)
        }
    }
}

fn write_literal(literal: &Literal, f: &mut Formatter<'_>) -> fmt::Result {
    let datatype = literal.datatype();
    match datatype.as_str() {
        xsd::INTEGER | xsd::DECIMAL | xsd::BOOLEAN => f.write_str(literal.value()),
        xsd::STRING => write!(f, "{literal}"),
        other => match other.strip_prefix(xsd::NAMESPACE) {
            Some(local) => write!(f, "\"{}\"^^xsd:{local}", literal.value()),
            None => write!(f, "{literal}"),
        },
    }
}

/// An operand: in parentheses if it has operands itself.
fn write_operand(expression: &Expression, f: &mut Formatter<'_>) -> fmt::Result {
    let is_simple = match expression {
        Expression::NamedNode(_)
        | Expression::Literal(_)
        | Expression::Variable(_)
        | Expression::SameTerm(_, _)
        | Expression::Bound(_)
        | Expression::If(_, _, _)
        | Expression::Coalesce(_)
        | Expression::FunctionCall(_, _)
        | Expression::Exists(_) => true,
        Expression::Or(_, _)
        | Expression::And(_, _)
        | Expression::Equal(_, _)
        | Expression::Greater(_, _)
        | Expression::GreaterOrEqual(_, _)
        | Expression::Less(_, _)
        | Expression::LessOrEqual(_, _)
        | Expression::In(_, _)
        | Expression::Add(_, _)
        | Expression::Subtract(_, _)
        | Expression::Multiply(_, _)
        | Expression::Divide(_, _)
        | Expression::UnaryPlus(_)
        | Expression::UnaryMinus(_)
        | Expression::Not(_) => false,
    };
    if is_simple {
        write_expression(expression, f)
    } else {
        f.write_str("(")?;
        write_expression(expression, f)?;
        f.write_str(")")
    }
}

fn write_binary(
    left: &Expression,
    symbol: &str,
    right: &Expression,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    write_operand(left, f)?;
    write!(f, " {symbol} ")?;
    write_operand(right, f)
}

fn write_prefixed(symbol: &str, part: &Expression, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str(symbol)?;
    write_operand(part, f)
}

fn write_call<'a>(
    name: &str,
    arguments: impl IntoIterator<Item = &'a Expression>,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    write!(f, "{name}(")?;
    for (at, argument) in arguments.into_iter().enumerate() {
        if at > 0 {
            f.write_str(", ")?;
        }
        write_expression(argument, f)?;
    }
    f.write_str(")")
}
