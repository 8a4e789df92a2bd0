//! The rewrite of chains of patterns and paths to one path, where multiplicity does not matter.
//!
//! `?a :p/:q*/:p ?b` is a join of three items on variables that nobody asks for. By the book each
//! way through them is a solution, and their number multiplies from item to item. Below `DISTINCT`
//! (and in `ASK`, `DESCRIBE` and most `CONSTRUCT`s) only the pairs of ends count, so the chain is
//! put back together and evaluated on sets of pairs ([`orrery_operators::path`]).

use orrery_term::Term;
use spargebra::algebra::PropertyPathExpression;
use spargebra::term::NamedNode;

use crate::algebra::expression::variables;
use crate::algebra::{Group, Item, PathItem, Slot, Var, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;

/// Neighbouring items of a chain, as one path.
struct Chain {
    path: PathItem,
    /// What it was made of.
    items: Vec<Item>,
    /// Paths in it that lead on and on.
    repetitions: usize,
}

impl Planner<'_> {
    /// The group with its chains put together; `None` if there are none. Only the `needed`
    /// variables are looked at outside of the join; those of the `seed` are bound before.
    pub(in crate::plan) fn with_chains(
        &self,
        group: &Group,
        seed: &VarSet,
        needed: &VarSet,
    ) -> Result<Option<Group>> {
        let mut asked = needed.union(seed);
        for filter in &group.filters {
            asked.extend(&variables(filter, &self.table));
        }
        let mut rest = Vec::new();
        let mut chains = Vec::new();
        for item in &group.items {
            match self.as_chain(item)? {
                Some(chain) => {
                    asked.extend(&VarSet::of(chain.path.scope.variable()));
                    chains.push(chain);
                }
                None => {
                    asked.extend(&item.visible());
                    rest.push(item.clone());
                }
            }
        }
        if chains.iter().all(|chain| chain.repetitions == 0) {
            return Ok(None);
        }
        let mut is_changed = false;
        for chain in joined(chains, &asked) {
            if chain.is_worthwhile() {
                rest.push(Item::Path(chain.path));
                is_changed = true;
            } else {
                rest.extend(chain.items);
            }
        }
        let group = Group {
            items: rest,
            ..group.clone()
        };
        Ok(is_changed.then_some(group))
    }

    /// A path, or a pattern with a constant predicate, as the beginning of a chain.
    fn as_chain(&self, item: &Item) -> Result<Option<Chain>> {
        let path = match item {
            Item::Path(path) => path.clone(),
            Item::Quad(quad) if !quad.is_impossible() => {
                let Slot::Constant(predicate) = quad.predicate else {
                    return Ok(None);
                };
                let Term::Iri(iri) = self.context.term(predicate)? else {
                    return Ok(None);
                };
                let predicate = NamedNode::new_unchecked(iri.as_ref());
                PathItem {
                    subject: quad.subject,
                    path: PropertyPathExpression::NamedNode(predicate),
                    object: quad.object,
                    scope: quad.scope.clone(),
                }
            }
            _ => return Ok(None),
        };
        let leads_on = matches!(
            path.path,
            PropertyPathExpression::ZeroOrMore(_) | PropertyPathExpression::OneOrMore(_)
        );
        Ok(Some(Chain {
            path,
            items: vec![item.clone()],
            repetitions: usize::from(leads_on),
        }))
    }
}

/// Joins chains at the variables that only they have.
fn joined(mut chains: Vec<Chain>, asked: &VarSet) -> Vec<Chain> {
    let mut ends = VarSet::default();
    for chain in &chains {
        ends.extend(&chain.path.variables());
    }
    for middle in ends.difference(asked).iter() {
        let holders = chains.iter().enumerate();
        let holders: Vec<usize> = holders
            .filter(|(_, chain)| chain.path.variables().contains(middle))
            .map(|(number, _)| number)
            .collect();
        let &[first, second] = holders.as_slice() else {
            continue;
        };
        let is_inner = |chain: &Chain| chain.path.subject != chain.path.object;
        if chains[first].path.scope == chains[second].path.scope
            && is_inner(&chains[first])
            && is_inner(&chains[second])
        {
            // The second first: its removal leaves the first where it is.
            let second = chains.remove(second);
            let first = chains.remove(first);
            chains.push(first.followed_by(second, middle));
        }
    }
    chains
}

impl Chain {
    fn followed_by(mut self, mut other: Self, middle: Var) -> Self {
        let middle = Slot::Variable(middle);
        if self.path.object != middle {
            self.path = reversed(self.path);
        }
        if other.path.subject != middle {
            other.path = reversed(other.path);
        }
        self.items.append(&mut other.items);
        Self {
            path: PathItem {
                subject: self.path.subject,
                path: PropertyPathExpression::Sequence(
                    Box::new(self.path.path),
                    Box::new(other.path.path),
                ),
                object: other.path.object,
                scope: self.path.scope,
            },
            items: self.items,
            repetitions: self.repetitions + other.repetitions,
        }
    }

    /// Whether one path is better than the join of its parts. From a constant end on a single
    /// repetition, the join gives few solutions more than once, and gives them as they come.
    fn is_worthwhile(&self) -> bool {
        let path = &self.path;
        let has_constant_end = [path.subject, path.object]
            .iter()
            .any(|end| end.variable().is_none());
        match (self.items.len(), has_constant_end) {
            (0 | 1, _) => false,
            (_, false) => self.repetitions > 0,
            // A path of length zero leads from any constant to itself, the join only from nodes of
            // the graph.
            (_, true) => self.repetitions > 1 && !path.can_be_empty(),
        }
    }
}

fn reversed(path: PathItem) -> PathItem {
    PathItem {
        subject: path.object,
        path: PropertyPathExpression::Reverse(Box::new(path.path)),
        object: path.subject,
        scope: path.scope,
    }
}
