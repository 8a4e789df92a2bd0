//! The translation of triple terms in patterns.
//!
//! A triple term without variables is a constant like any other. One with variables,
//! `?r rdf:reifies <<( ?s :p ?o )>>`, becomes a variable of ours that is taken apart:
//!
//! ```text
//! ?r rdf:reifies ?t   FILTER sameTerm(PREDICATE(?t), :p)   BIND(SUBJECT(?t) AS ?s)   BIND(OBJECT(?t) AS ?o)
//! ```
//!
//! A part that the patterns around bind already is compared instead of bound. Patterns that
//! only hang together by parts of a triple term would become a cross product that way; such groups
//! of patterns are kept apart, and join on what their triple terms bind.

use spargebra::algebra::{Expression, Function};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern, Variable};

use super::Normaliser;
use super::ground::{Ground, ground_triple};
use super::taken_apart::{TakenApart, TripleTermPart};
use crate::algebra::{Group, Item, Slot, VarSet};
use crate::error::{QueryError, Result};

impl Normaliser<'_> {
    /// The slot of a triple term; one with variables is added to those that are taken apart.
    pub(super) fn triple_slot(
        &mut self,
        pattern: &TriplePattern,
        taken_apart: &mut Vec<TakenApart>,
    ) -> Result<Slot> {
        match ground_triple(pattern) {
            Ground::Term(term) => return self.constant(&term),
            Ground::Impossible => return Ok(Slot::Absent),
            Ground::Open => {}
        }
        let triple = self.table.fresh("triple");
        let subject = self.part(&pattern.subject, taken_apart)?;
        let predicate = match &pattern.predicate {
            NamedNodePattern::NamedNode(node) => TripleTermPart::Constant(node.clone().into()),
            NamedNodePattern::Variable(variable) => {
                TripleTermPart::Variable(self.variable(variable))
            }
        };
        let object = self.part(&pattern.object, taken_apart)?;
        let parts = [
            (Function::Subject, subject),
            (Function::Predicate, predicate),
            (Function::Object, object),
        ];
        taken_apart.push(TakenApart { triple, parts });
        Ok(Slot::Variable(triple))
    }

    fn part(
        &mut self,
        term: &TermPattern,
        taken_apart: &mut Vec<TakenApart>,
    ) -> Result<TripleTermPart> {
        if let Some(constant) = constant_expression(term) {
            return Ok(TripleTermPart::Constant(constant));
        }
        match self.slot(term, taken_apart)? {
            Slot::Variable(var) => Ok(TripleTermPart::Variable(var)),
            // A term without an expression has a variable.
            Slot::Constant(_) | Slot::Absent => Err(QueryError::unsupported(format!(
                "{term} within a triple term"
            ))),
        }
    }

    /// The group with its triple terms taken apart.
    pub(super) fn take_apart(&mut self, group: Group, taken_apart: Vec<TakenApart>) -> Group {
        if taken_apart.is_empty() {
            return group;
        }
        debug_assert!(group.filters.is_empty() && group.steps.is_empty());
        let mut components: Vec<Component> = Vec::new();
        for item in group.items {
            Component::of(item).join_into(&mut components);
        }
        // An outer one was added after those within, and binds what they take apart.
        for triple in taken_apart.into_iter().rev() {
            let home = components
                .iter()
                .position(|component| component.group.visible.contains(triple.triple));
            if let Some(home) = home {
                self.take_apart_in(&mut components[home].group, triple);
            }
        }
        components
            .into_iter()
            .map(|component| component.group)
            .reduce(|all, more| self.join(all, more))
            .unwrap_or_default()
    }

    fn take_apart_in(&self, group: &mut Group, taken_apart: TakenApart) {
        let name = |var| Variable::new_unchecked(self.table.name(var).as_ref());
        let call = |function| {
            let triple = Expression::Variable(name(taken_apart.triple));
            Expression::FunctionCall(function, vec![triple])
        };
        group.filter(call(Function::IsTriple), &VarSet::default(), &self.table);
        for (function, part) in taken_apart.parts {
            let found = call(function);
            let expected = match part {
                TripleTermPart::Constant(constant) => constant,
                TripleTermPart::Variable(var) if group.visible.contains(var) => {
                    Expression::Variable(name(var))
                }
                TripleTermPart::Variable(var) => {
                    group.bind_surely(var, found, &self.table);
                    continue;
                }
            };
            let is_same = Expression::SameTerm(Box::new(found), Box::new(expected));
            group.filter(is_same, &VarSet::default(), &self.table);
        }
    }
}

/// Items that hang together by variables, not counting that of a `GRAPH` around them.
struct Component {
    group: Group,
    variables: VarSet,
}

impl Component {
    fn of(item: Item) -> Self {
        let scope = match &item {
            Item::Quad(quad) => quad.scope.variable(),
            Item::Path(path) => path.scope.variable(),
            _ => None,
        };
        let group = Group::of(item);
        let variables = group.visible.difference(&VarSet::of(scope));
        Self { group, variables }
    }

    /// Adds this one to the others, joined to those that it has a variable in common with.
    fn join_into(mut self, others: &mut Vec<Self>) {
        let (connected, apart): (Vec<_>, Vec<_>) = std::mem::take(others)
            .into_iter()
            .partition(|other| other.variables.intersects(&self.variables));
        *others = apart;
        for other in connected {
            self.variables.extend(&other.variables);
            for item in other.group.items {
                self.group.push(item);
            }
        }
        others.push(self);
    }
}

/// The expression of a pattern without variables.
fn constant_expression(term: &TermPattern) -> Option<Expression> {
    match term {
        TermPattern::NamedNode(node) => Some(node.clone().into()),
        TermPattern::Literal(literal) => Some(literal.clone().into()),
        TermPattern::BlankNode(_) | TermPattern::Variable(_) => None,
        TermPattern::Triple(triple) => {
            let NamedNodePattern::NamedNode(predicate) = &triple.predicate else {
                return None;
            };
            let parts = vec![
                constant_expression(&triple.subject)?,
                predicate.clone().into(),
                constant_expression(&triple.object)?,
            ];
            Some(Expression::FunctionCall(Function::Triple, parts))
        }
    }
}
