//! The encoding of algebra expressions in postfix order.
//!
//! ```text
//! ?a + 1 < ?b      Variable a, Text 1, Add, Variable b, Less
//! ```
//!
//! Read from left to right, each operator takes its operands from the end of what was built so far.
//! Neither writing nor reading needs recursion, which a chain of twenty thousand operations would
//! not forgive.

mod operator;
mod read;
mod write;

use serde::{Deserialize, Serialize};
use spargebra::algebra::{Expression, GraphPattern, PropertyPathExpression};

#[cfg(test)]
pub(super) use self::operator::FUNCTIONS;
use self::operator::Operator;
use self::read::{Builder, Built};
use self::write::{Part, operators};
use super::error::CodecError;

type Result<T> = std::result::Result<T, CodecError>;

/// An expression, a graph pattern or a property path as a list; see the module's documentation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AlgebraText(Vec<Operator>);

impl AlgebraText {
    /// The description of an expression.
    pub fn of_expression(expression: &Expression) -> Result<Self> {
        Self::of(Part::Expression(expression))
    }

    /// The description of a graph pattern.
    pub fn of_pattern(pattern: &GraphPattern) -> Result<Self> {
        Self::of(Part::Pattern(pattern))
    }

    /// The description of a property path.
    pub fn of_path(path: &PropertyPathExpression) -> Result<Self> {
        Self::of(Part::Path(path))
    }

    fn of(root: Part<'_>) -> Result<Self> {
        Ok(Self(operators(root)?))
    }

    /// The expression that is described.
    pub fn to_expression(&self) -> Result<Expression> {
        self.build()?.last(Built::into_expression)
    }

    /// The graph pattern that is described.
    pub fn to_pattern(&self) -> Result<GraphPattern> {
        self.build()?.last(Built::into_pattern)
    }

    /// The property path that is described.
    pub fn to_path(&self) -> Result<PropertyPathExpression> {
        self.build()?.last(Built::into_path)
    }

    fn build(&self) -> Result<Builder> {
        Builder::of(&self.0)
    }
}
