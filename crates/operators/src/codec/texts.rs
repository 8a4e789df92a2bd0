//! The encoding of names, ids, graphs and patterns within other descriptions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use orrery_expressions::codec::AlgebraText;
use orrery_term::{TermId, TermKind};
use serde::{Deserialize, Serialize};
use spargebra::algebra::Expression;

use super::error::{CodecError, Result};
use crate::context::QueryContext;
use crate::pattern::{FoundIds, GraphScope, QuadPattern, Slot};
use crate::service::ServiceOptions;

/// What a process gives the nodes that are made in it.
pub(super) struct Place<'a> {
    pub(super) context: &'a Arc<QueryContext>,
    pub(super) service: Option<&'a ServiceOptions>,
    pub(super) check: IdCheck,
    /// The places of ids that nodes find for each other, by their numbers.
    pub(super) found: RefCell<HashMap<u32, FoundIds>>,
}

impl Place<'_> {
    /// The place of this number, which is for one variable in all nodes.
    pub(super) fn found_ids(&self, variable: &str, number: u32) -> Result<FoundIds> {
        let mut places = self.found.borrow_mut();
        let place = places
            .entry(number)
            .or_insert_with(|| FoundIds::new(Arc::from(variable), number));
        match **place.variable() == *variable {
            true => Ok(place.clone()),
            false => Err(CodecError::damaged(format!(
                "place {number} is for ids of two variables"
            ))),
        }
    }
}

/// Names of variables.
pub(super) type Names = Vec<String>;

pub(super) fn names(variables: &[Arc<str>]) -> Names {
    variables.iter().map(ToString::to_string).collect()
}

pub(super) fn variables(names: &[String]) -> Vec<Arc<str>> {
    names.iter().map(|name| Arc::from(name.as_str())).collect()
}

pub(super) fn conditions(filters: &[Expression]) -> Result<Vec<AlgebraText>> {
    let texts = filters.iter().map(AlgebraText::of_expression);
    Ok(texts.collect::<std::result::Result<_, _>>()?)
}

pub(super) fn expressions(conditions: &[AlgebraText]) -> Result<Vec<Expression>> {
    let expressions = conditions.iter().map(AlgebraText::to_expression);
    Ok(expressions.collect::<std::result::Result<_, _>>()?)
}

/// What ids may stand in a plan: those of the state, and so many of the query's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdCheck {
    pub(super) own_terms: u64,
}

impl IdCheck {
    pub(super) fn id(self, bits: u64) -> Result<TermId> {
        let id = TermId::from_bits(bits);
        let is_known = match id.checked_kind() {
            Some(TermKind::QueryLocal) => id.payload() < self.own_terms,
            Some(_) => true,
            None => false,
        };
        match is_known {
            true => Ok(id),
            false => Err(CodecError::damaged(format!("there is no id {bits:#x}"))),
        }
    }

    fn ids(self, bits: &[u64]) -> Result<Arc<[TermId]>> {
        bits.iter().map(|bits| self.id(*bits)).collect()
    }
}

fn bits(ids: &[TermId]) -> Vec<u64> {
    ids.iter().map(|id| id.bits()).collect()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum SlotText {
    Constant(u64),
    Variable(String),
}

impl From<&Slot> for SlotText {
    fn from(slot: &Slot) -> Self {
        match slot {
            Slot::Constant(id) => Self::Constant(id.bits()),
            Slot::Variable(name) => Self::Variable(name.to_string()),
        }
    }
}

impl SlotText {
    pub(super) fn build(&self, check: IdCheck) -> Result<Slot> {
        Ok(match self {
            Self::Constant(bits) => Slot::Constant(check.id(*bits)?),
            Self::Variable(name) => Slot::Variable(Arc::from(name.as_str())),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum GraphText {
    Default,
    Union(Vec<u64>),
    AllUnion,
    Named(u64),
    NamedVariable(String, Option<Vec<u64>>),
}

impl From<&GraphScope> for GraphText {
    fn from(scope: &GraphScope) -> Self {
        match scope {
            GraphScope::Default => Self::Default,
            GraphScope::Union(graphs) => Self::Union(bits(graphs)),
            GraphScope::AllUnion => Self::AllUnion,
            GraphScope::Named(graph) => Self::Named(graph.bits()),
            GraphScope::NamedVariable { variable, allowed } => {
                Self::NamedVariable(variable.to_string(), allowed.as_deref().map(bits))
            }
        }
    }
}

impl GraphText {
    pub(super) fn build(&self, check: IdCheck) -> Result<GraphScope> {
        Ok(match self {
            Self::Default => GraphScope::Default,
            Self::Union(graphs) => GraphScope::Union(check.ids(graphs)?),
            Self::AllUnion => GraphScope::AllUnion,
            Self::Named(graph) => GraphScope::Named(check.id(*graph)?),
            Self::NamedVariable(variable, allowed) => GraphScope::NamedVariable {
                variable: Arc::from(variable.as_str()),
                allowed: allowed_graphs(allowed.as_deref(), check)?,
            },
        })
    }
}

pub(super) fn allowed_graphs(
    allowed: Option<&[u64]>,
    check: IdCheck,
) -> Result<Option<Arc<[TermId]>>> {
    allowed.map(|graphs| check.ids(graphs)).transpose()
}

pub(super) fn allowed_bits(allowed: Option<&[TermId]>) -> Option<Vec<u64>> {
    allowed.map(bits)
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct QuadText {
    slots: [SlotText; 3],
    graph: GraphText,
}

impl From<&QuadPattern> for QuadText {
    fn from(pattern: &QuadPattern) -> Self {
        Self {
            slots: [&pattern.subject, &pattern.predicate, &pattern.object].map(SlotText::from),
            graph: (&pattern.graph).into(),
        }
    }
}

impl QuadText {
    pub(super) fn build(&self, check: IdCheck) -> Result<QuadPattern> {
        let [subject, predicate, object] = &self.slots;
        Ok(QuadPattern {
            subject: subject.build(check)?,
            predicate: predicate.build(check)?,
            object: object.build(check)?,
            graph: self.graph.build(check)?,
        })
    }
}
