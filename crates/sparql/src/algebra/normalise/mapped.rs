//! Patterns over mapped graphs, and their union with stored ones.
//!
//! ```text
//! GRAPH <m> { P }     the leaves of <m>
//! GRAPH ?g  { P }     P in the stored graphs UNION, for each mapped one, { VALUES ?g { <m> } P in <m> }
//! FROM <m> FROM <s>   each pattern DISTINCT ( in <s> UNION in <m> ): the merge of graphs is a set
//! ```
//!
//! A name is that of a stored graph or of a mapped one, never of both. Without `FROM`, mapped
//! graphs are in no union of all graphs.

use std::sync::Arc;

use orrery_term::{Term, TermId};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};

use super::{Normaliser, PatternPlace, derived, union_of};
use crate::algebra::{Group, Item, Mapped, Modifier, Quad, Scope, Slot, Values, Var};
use crate::error::{QueryError, Result};
use crate::mapped::{MappedPattern, MappedTerm};
use crate::results::literal_from_oxrdf;

/// The graphs of a scope.
struct Parts {
    /// Without those that are mapped, if there are others.
    stored: Option<Scope>,
    mapped: Vec<(TermId, Arc<str>)>,
}

impl Normaliser<'_> {
    /// Takes a scope apart; nothing if none of its graphs is mapped.
    fn parts(&self, scope: &Scope) -> Option<Parts> {
        let seen = self.mapped?;
        let of = |is_in: &dyn Fn(TermId) -> bool| -> Vec<(TermId, Arc<str>)> {
            let graphs = seen.graphs.iter().filter(|(id, _)| is_in(*id));
            graphs.cloned().collect()
        };
        let others = |list: &[TermId]| -> Arc<[TermId]> {
            let is_mapped = |id: &TermId| seen.graphs.iter().any(|(graph, _)| graph == id);
            list.iter().copied().filter(|id| !is_mapped(id)).collect()
        };
        let parts = match scope {
            Scope::Default | Scope::AllUnion => return None,
            Scope::Named(name) => Parts {
                stored: None,
                mapped: of(&|id| id == *name),
            },
            Scope::Union(list) => {
                let others = others(list);
                Parts {
                    stored: (!others.is_empty()).then_some(Scope::Union(others)),
                    mapped: of(&|id| list.contains(&id)),
                }
            }
            Scope::NamedVariable { variable, allowed } => {
                let stored = allowed.as_ref().map(|list| others(list));
                let is_empty = stored.as_ref().is_some_and(|list| list.is_empty());
                Parts {
                    stored: (!is_empty).then_some(Scope::NamedVariable {
                        variable: *variable,
                        allowed: stored,
                    }),
                    mapped: of(&|id| allowed.as_ref().is_none_or(|list| list.contains(&id))),
                }
            }
        };
        (!parts.mapped.is_empty()).then_some(parts)
    }

    /// Whether a graph of a scope is mapped.
    pub(super) fn has_mapped(&self, scope: &Scope) -> bool {
        self.parts(scope).is_some()
    }

    /// The id of the name of a mapped graph.
    pub(super) fn mapped_graph(&self, name: &str) -> Option<TermId> {
        self.mapped?.id(name)
    }

    /// The names of the mapped graphs.
    pub(super) fn mapped_names(&self) -> impl Iterator<Item = TermId> {
        let graphs = self.mapped.map(|seen| seen.graphs.as_slice());
        graphs.unwrap_or_default().iter().map(|(id, _)| *id)
    }

    /// The names of the graphs of a scope.
    pub(super) fn names_of_graphs(&self, scope: &Scope) -> Group {
        let (Some(parts), Some(variable)) = (self.parts(scope), scope.variable()) else {
            return Group::of(Item::Graphs(scope.clone()));
        };
        let rows = parts.mapped.iter().map(|(id, _)| vec![Some(*id)]);
        let mapped = Group::of(Item::Values(Values {
            variables: vec![variable],
            rows: rows.collect(),
        }));
        match parts.stored {
            Some(stored) => union_of(vec![Group::of(Item::Graphs(stored)), mapped]),
            None => mapped,
        }
    }

    /// A basic graph pattern whose scope has mapped graphs. Nothing where all are stored.
    pub(super) fn mapped_basic(
        &mut self,
        patterns: &[TriplePattern],
        place: &PatternPlace,
    ) -> Result<Option<Group>> {
        let parts = self.parts(&place.scope);
        // The empty pattern reads no graph.
        let Some(parts) = parts.filter(|_| !patterns.is_empty()) else {
            return Ok(None);
        };
        let is_merge = place.scope.variable().is_none();
        let is_one = parts.stored.is_none() && parts.mapped.len() == 1;
        if is_merge && !is_one {
            let mut group = Group::default();
            for pattern in patterns {
                let pattern = std::slice::from_ref(pattern);
                let merged = self.merged(pattern, &parts, place)?;
                group = self.join(group, merged);
            }
            return Ok(Some(group));
        }
        let mut branches = Vec::new();
        if let Some(stored) = &parts.stored {
            branches.push(self.in_stored(patterns, stored, place)?);
        }
        for (id, name) in &parts.mapped {
            let mut group = self.in_mapped(name, patterns)?;
            if let Some(variable) = place.scope.variable() {
                // Matched where the pattern itself has the variable.
                let name = Group::of(Item::Values(Values {
                    variables: vec![variable],
                    rows: vec![vec![Some(*id)]],
                }));
                group = self.join(name, group);
            }
            branches.push(group);
        }
        Ok(Some(match branches.len() {
            1 => branches.swap_remove(0),
            _ => union_of(branches),
        }))
    }

    fn in_stored(
        &mut self,
        patterns: &[TriplePattern],
        scope: &Scope,
        place: &PatternPlace,
    ) -> Result<Group> {
        let inside = PatternPlace {
            scope: scope.clone(),
            ..place.clone()
        };
        self.stored_basic(patterns, &inside)
    }

    /// One pattern in the merge of several graphs.
    fn merged(
        &mut self,
        pattern: &[TriplePattern],
        parts: &Parts,
        place: &PatternPlace,
    ) -> Result<Group> {
        let mut branches = Vec::new();
        if let Some(stored) = &parts.stored {
            branches.push(self.in_stored(pattern, stored, place)?);
        }
        for (_, name) in &parts.mapped {
            branches.push(self.in_mapped(name, pattern)?);
        }
        Ok(derived(union_of(branches), Modifier::Distinct))
    }

    /// A pattern whose ends are slots, as those of paths are.
    pub(super) fn mapped_step(
        &mut self,
        (subject, predicate, object): (Slot, &str, Slot),
        place: &PatternPlace,
    ) -> Result<Option<Group>> {
        let Some(parts) = self.parts(&place.scope) else {
            return Ok(None);
        };
        let pattern = MappedPattern {
            subject: self.of_slot(subject)?,
            predicate: MappedTerm::Constant(Term::iri(predicate.to_owned())),
            object: self.of_slot(object)?,
        };
        let variable = place.scope.variable();
        let mut branches = Vec::new();
        if let Some(stored) = &parts.stored {
            let quad = Quad {
                object_ranges: None,
                subject,
                predicate: self.constant(&Term::iri(predicate))?,
                object,
                scope: stored.clone(),
            };
            branches.push(Group::of(Item::Quad(quad)));
        }
        for (id, name) in &parts.mapped {
            let mut group = self.leaves(name, std::slice::from_ref(&pattern))?;
            if let Some(variable) = variable {
                let name = Group::of(Item::Values(Values {
                    variables: vec![variable],
                    rows: vec![vec![Some(*id)]],
                }));
                group = self.join(name, group);
            }
            branches.push(group);
        }
        let is_one = branches.len() == 1;
        let group = union_of(branches);
        Ok(Some(match variable.is_none() && !is_one {
            true => derived(group, Modifier::Distinct),
            false => group,
        }))
    }

    /// Refuses a path of any length where a graph is mapped.
    pub(super) fn refuse_mapped_path(&self, scope: &Scope) -> Result<()> {
        match self.parts(scope) {
            Some(parts) => {
                let (_, name) = &parts.mapped[0];
                Err(QueryError::unsupported(format!(
                    "a path with *, +, ? or ! over the mapped graph <{name}>; MATERIALIZE GRAPH makes a copy of it, over which there are paths"
                )))
            }
            None => Ok(()),
        }
    }

    fn of_slot(&self, slot: Slot) -> Result<MappedTerm> {
        Ok(match slot {
            Slot::Variable(var) => MappedTerm::Variable(Arc::clone(self.table.name(var))),
            Slot::Constant(id) => MappedTerm::Constant(self.context.term(id)?),
            // No mapping gives it; neither does this one.
            Slot::Absent => MappedTerm::Constant(Term::iri("")),
        })
    }

    fn in_mapped(&mut self, graph: &str, patterns: &[TriplePattern]) -> Result<Group> {
        let mut mapped = Vec::with_capacity(patterns.len());
        let mut is_possible = true;
        for pattern in patterns {
            let predicate = match &pattern.predicate {
                NamedNodePattern::NamedNode(node) => {
                    MappedTerm::Constant(Term::iri(node.as_str().to_owned()))
                }
                NamedNodePattern::Variable(variable) => {
                    let var = self.variable(variable);
                    MappedTerm::Variable(Arc::clone(self.table.name(var)))
                }
            };
            let subject = self.mapped_term(&pattern.subject);
            let object = self.mapped_term(&pattern.object);
            let (Some(subject), Some(object)) = (subject, object) else {
                // Mappings make no triple terms.
                is_possible = false;
                continue;
            };
            mapped.push(MappedPattern {
                subject,
                predicate,
                object,
            });
        }
        if is_possible {
            return self.leaves(graph, &mapped);
        }
        let mut variables: Vec<Var> = Vec::new();
        for pattern in patterns {
            let bgp = spargebra::algebra::GraphPattern::Bgp {
                patterns: vec![pattern.clone()],
            };
            bgp.on_in_scope_variable(|variable| {
                let var = self.variable(variable);
                if !variables.contains(&var) {
                    variables.push(var);
                }
            });
        }
        Ok(nothing(variables))
    }

    fn mapped_term(&mut self, term: &TermPattern) -> Option<MappedTerm> {
        Some(match term {
            TermPattern::NamedNode(node) => {
                MappedTerm::Constant(Term::iri(node.as_str().to_owned()))
            }
            TermPattern::Literal(literal) => {
                MappedTerm::Constant(literal_from_oxrdf(literal).into_owned())
            }
            TermPattern::Variable(variable) => {
                let var = self.variable(variable);
                MappedTerm::Variable(Arc::clone(self.table.name(var)))
            }
            TermPattern::BlankNode(_) => match self.slot(term, &mut Vec::new()) {
                Ok(Slot::Variable(var)) => MappedTerm::Variable(Arc::clone(self.table.name(var))),
                _ => return None,
            },
            TermPattern::Triple(_) => return None,
        })
    }

    fn leaves(&mut self, graph: &str, patterns: &[MappedPattern]) -> Result<Group> {
        let Some(seen) = self.mapped else {
            return Err(QueryError::internal("a mapped graph without mappings"));
        };
        self.context.patience().check()?;
        let mut all = Group::default();
        for part in seen.dataset.matches(graph, patterns)? {
            let names = part.variables.iter();
            let variables: Vec<Var> = names.map(|name| self.table.of(name)).collect();
            let branches = part.branches.into_iter().map(|rows| {
                Group::of(Item::Mapped(Box::new(Mapped {
                    rows,
                    variables: variables.clone(),
                    conditions: Vec::new(),
                })))
            });
            let mut branches: Vec<Group> = branches.collect();
            let mut group = match branches.len() {
                0 => nothing(variables),
                1 => branches.swap_remove(0),
                _ => union_of(branches),
            };
            if !part.is_distinct {
                group = derived(group, Modifier::Distinct);
            }
            all = self.join(all, group);
        }
        Ok(all)
    }
}

fn nothing(variables: Vec<Var>) -> Group {
    Group::of(Item::Values(Values {
        variables,
        rows: Vec::new(),
    }))
}
