//! The type of a function: its implementation, and what it reads of its arguments.

use orrery_term::Term;

use crate::columns::column::Reading;
use crate::context::ExpressionContext;
use crate::error::Result;
use crate::values::value::Value;

/// A function of its arguments alone.
pub(crate) type PureFunction = fn(&[&Value]) -> Option<Value>;

/// A function of its arguments alone that makes a term, whose form a value would forget.
pub(crate) type TermFunction = fn(&[&Value]) -> Option<Term<'static>>;

/// A function of its arguments, the query and the number of the row.
pub(crate) type QueryFunction = fn(&[&Value], &ExpressionContext, u64) -> Result<Option<Value>>;

/// How a function is run.
#[derive(Clone, Copy)]
pub(crate) enum Implementation {
    /// From its arguments alone.
    Pure(PureFunction),
    /// From its arguments alone, a term as it is written.
    Term(TermFunction),
    /// From its arguments alone, which are read once each, not once a row.
    Places(&'static orrery_geo::Function),
    /// With the query's context; the same arguments give the same result.
    OfQuery(QueryFunction),
    /// With the query's context; every call may give another result.
    Volatile(QueryFunction),
}

/// A function of SPARQL, ready to be called.
#[derive(Clone, Copy)]
pub(crate) struct ScalarFunction {
    /// What it does.
    pub(crate) implementation: Implementation,
    /// How it wants its arguments.
    pub(crate) reading: Reading,
}
