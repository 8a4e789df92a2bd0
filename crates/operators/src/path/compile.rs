//! The compilation of paths: predicates are looked up, and reversals pushed down to links.

use std::sync::Arc;

use orrery_term::{Term, TermId};
use spargebra::algebra::PropertyPathExpression;
use spargebra::term::NamedNode;

use crate::context::QueryContext;
use crate::error::Result;

/// Which way a triple is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the subject to the object.
    Forward,
    /// From the object to the subject.
    Backward,
}

impl Direction {
    fn reversed(self) -> Self {
        match self {
            Self::Forward => Self::Backward,
            Self::Backward => Self::Forward,
        }
    }
}

/// A path to walk from its first node to its last.
#[derive(Debug)]
pub(super) enum Path {
    /// One triple with this predicate; `None` if the database does not know it.
    Link(Option<TermId>, Direction),
    /// One triple with any predicate but these (ascending).
    Negated(Arc<[TermId]>, Direction),
    /// One after the other.
    Sequence(Vec<Path>),
    /// Any of them.
    Alternative(Vec<Path>),
    /// The inner path several times; each end once.
    Repeat {
        /// What is repeated.
        inner: Box<Path>,
        /// Whether not at all will do, too.
        from_zero: bool,
        /// Whether more than once will do.
        many: bool,
    },
}

impl Path {
    /// The single triples of which it leads along any one, if it is nothing more than that.
    pub(super) fn links(&self) -> Option<Vec<&Path>> {
        match self {
            Self::Link(..) | Self::Negated(..) => Some(vec![self]),
            Self::Alternative(parts) => {
                let parts: Option<Vec<Vec<&Path>>> = parts.iter().map(Self::links).collect();
                Some(parts?.concat())
            }
            Self::Sequence(_) | Self::Repeat { .. } => None,
        }
    }

    /// Whether it leads from every node to itself.
    pub(super) fn can_be_empty(&self) -> bool {
        match self {
            Self::Link(..) | Self::Negated(..) => false,
            Self::Sequence(parts) => parts.iter().all(Self::can_be_empty),
            Self::Alternative(parts) => parts.iter().any(Self::can_be_empty),
            Self::Repeat {
                inner, from_zero, ..
            } => *from_zero || inner.can_be_empty(),
        }
    }
}

/// Compiles a path for walking it in a direction.
pub(super) fn compile(
    context: &QueryContext,
    path: &PropertyPathExpression,
    direction: Direction,
) -> Result<Path> {
    let repeat = |inner: &PropertyPathExpression, from_zero, many| {
        Ok(repeated(
            compile(context, inner, direction)?,
            from_zero,
            many,
        ))
    };
    match path {
        PropertyPathExpression::NamedNode(predicate) => {
            Ok(Path::Link(predicate_id(context, predicate)?, direction))
        }
        PropertyPathExpression::Reverse(inner) => compile(context, inner, direction.reversed()),
        PropertyPathExpression::Sequence(first, second) => {
            let first = compile(context, first, direction)?;
            let second = compile(context, second, direction)?;
            Ok(Path::Sequence(match direction {
                Direction::Forward => vec![first, second],
                Direction::Backward => vec![second, first],
            }))
        }
        PropertyPathExpression::Alternative(a, b) => Ok(Path::Alternative(vec![
            compile(context, a, direction)?,
            compile(context, b, direction)?,
        ])),
        PropertyPathExpression::ZeroOrMore(inner) => repeat(inner, true, true),
        PropertyPathExpression::OneOrMore(inner) => repeat(inner, false, true),
        PropertyPathExpression::ZeroOrOne(inner) => repeat(inner, true, false),
        PropertyPathExpression::NegatedPropertySet(predicates) => {
            let mut excluded = Vec::with_capacity(predicates.len());
            for predicate in predicates {
                excluded.extend(predicate_id(context, predicate)?);
            }
            excluded.sort_unstable();
            Ok(Path::Negated(excluded.into(), direction))
        }
    }
}

/// Repetitions give each end once, so that those of repetitions are one: `(p?)+` is `p*`.
fn repeated(path: Path, from_zero: bool, many: bool) -> Path {
    match path {
        Path::Repeat {
            inner,
            from_zero: inner_from_zero,
            many: inner_many,
        } => Path::Repeat {
            inner,
            from_zero: from_zero || inner_from_zero,
            many: many || inner_many,
        },
        inner => Path::Repeat {
            inner: Box::new(inner),
            from_zero,
            many,
        },
    }
}

fn predicate_id(context: &QueryContext, predicate: &NamedNode) -> Result<Option<TermId>> {
    let term = Term::Iri(predicate.as_str().into());
    Ok(context.view().id_in_quads(&term)?)
}
