//! The quads that a full-text search may return by the index's rules: their classes and graphs.
//!
//! A search by classes finds what its pattern with `?entity rdf:type <class>` beside it would: in
//! the same graph, or in one of the merged ones. A search by graphs looks in those that the pattern
//! and the rules have in common. So the state, the rules and the pattern decide what is found; that
//! the index also has texts of deleted quads or of other graphs makes no difference.
//!
//! For an asker who does not see all graphs, [`TextRule::has_quad`] says which literals an index of
//! the visible graphs would have. The index has the other literals because of hidden quads, and
//! nothing may follow from these, be it a count, a limit or a cost.

use std::sync::Arc;

use orrery_storage::text::TextRules;
use orrery_storage::{COLUMNS, Permutation, ReadView};
use orrery_term::vocabulary::rdf;
use orrery_term::{Term, TermId};

use crate::algebra::{Group, Item, Quad, Scope, Slot, Values, VariableTable};
use crate::error::Result;

/// The classes and graphs of the rules, in the ids of what somebody sees.
pub(crate) struct TextRule {
    predicates: Option<Vec<TermId>>,
    graphs: Option<Vec<TermId>>,
    /// `rdf:type` and the classes.
    classes: Option<(Option<TermId>, Vec<TermId>)>,
}

impl TextRule {
    pub(crate) fn of(rules: &TextRules, view: &ReadView) -> Result<Self> {
        let ids = |iris: &[String]| -> Result<Option<Vec<TermId>>> {
            if iris.is_empty() {
                return Ok(None);
            }
            let mut ids = Vec::with_capacity(iris.len());
            for iri in iris {
                match iri.is_empty() {
                    true => ids.push(TermId::DEFAULT_GRAPH),
                    false => ids.extend(view.id_in_quads(&Term::iri(iri.clone()))?),
                }
            }
            ids.sort_unstable();
            ids.dedup();
            Ok(Some(ids))
        };
        let classes = match ids(&rules.classes)? {
            None => None,
            Some(classes) => Some((view.id_in_quads(&Term::iri(rdf::TYPE))?, classes)),
        };
        Ok(Self {
            predicates: ids(&rules.predicates)?,
            graphs: ids(&rules.graphs)?,
            classes,
        })
    }

    /// Whether quads are left out by it.
    pub(crate) fn is_of_quads(&self) -> bool {
        self.predicates.is_some() || self.graphs.is_some() || self.classes.is_some()
    }

    /// The graphs of a pattern, less those that are not in the rules; `None` if none is left.
    pub(crate) fn scope(&self, scope: &Scope) -> Option<Scope> {
        let Some(graphs) = &self.graphs else {
            return Some(scope.clone());
        };
        let both = |of_pattern: &[TermId]| -> Arc<[TermId]> {
            let both = of_pattern.iter().filter(|graph| graphs.contains(graph));
            both.copied().collect()
        };
        let left = match scope {
            Scope::Default if graphs.contains(&TermId::DEFAULT_GRAPH) => Scope::Default,
            Scope::Named(name) if graphs.contains(name) => Scope::Named(*name),
            Scope::Default | Scope::Named(_) => return None,
            Scope::Union(of_pattern) => Scope::Union(both(of_pattern)),
            Scope::AllUnion => Scope::Union(graphs.as_slice().into()),
            Scope::NamedVariable { variable, allowed } => {
                let named = graphs.iter().copied();
                let named: Vec<TermId> = named.filter(|id| *id != TermId::DEFAULT_GRAPH).collect();
                let allowed = allowed.as_deref().map_or(named.as_slice().into(), both);
                Scope::NamedVariable {
                    variable: *variable,
                    allowed: Some(allowed),
                }
            }
        };
        (!left.is_empty()).then_some(left)
    }

    /// Lets only subjects of the classes through; `scope` is that of the pattern. Each comes once,
    /// however many classes it has. Whether any can come.
    pub(crate) fn restrict(
        &self,
        group: &mut Group,
        subject: Slot,
        scope: &Scope,
        table: &mut VariableTable,
    ) -> bool {
        let Some((rdf_type, classes)) = &self.classes else {
            return true;
        };
        let (Some(rdf_type), [first, others @ ..]) = (rdf_type, classes.as_slice()) else {
            return false;
        };
        let pattern = |object| {
            Item::Quad(Quad {
                subject,
                predicate: Slot::Constant(*rdf_type),
                object,
                scope: scope.clone(),
                object_ranges: None,
            })
        };
        if others.is_empty() {
            group.push(pattern(Slot::Constant(*first)));
            return true;
        }
        let class = table.fresh("class");
        let mut inner = Group::of(pattern(Slot::Variable(class)));
        inner.push(Item::Values(Values {
            variables: vec![class],
            rows: classes.iter().map(|id| vec![Some(*id)]).collect(),
        }));
        group.exists(inner, false);
        true
    }

    /// Whether the subject of a quad in a graph has one of the classes where a pattern looks for
    /// it.
    pub(crate) fn has_class(
        &self,
        view: &ReadView,
        subject: TermId,
        (graph, scope): (TermId, &Scope),
    ) -> Result<bool> {
        let Some((rdf_type, classes)) = &self.classes else {
            return Ok(true);
        };
        let (Some(rdf_type), Some(index)) = (rdf_type, view.index(Permutation::Posg)) else {
            return Ok(false);
        };
        for class in classes {
            let before = [*rdf_type, *class, subject];
            let is_there = match scope {
                Scope::Default | Scope::Named(_) | Scope::NamedVariable { .. } => {
                    !index.range(&[&before[..], &[graph]].concat())?.is_empty()
                }
                Scope::AllUnion => !index.range(&before)?.is_empty(),
                Scope::Union(graphs) => {
                    let mut found = false;
                    for graph in graphs.iter() {
                        found |= !index.range(&[&before[..], &[*graph]].concat())?.is_empty();
                    }
                    found
                }
            };
            if is_there {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a literal stands in a quad of the rules, in any graph, that is seen.
    pub(crate) fn has_quad(&self, view: &ReadView, literal: TermId) -> Result<bool> {
        let Some(index) = view.index(Permutation::Ospg) else {
            return Ok(false);
        };
        let range = index.range(&[literal])?;
        if !self.is_of_quads() || range.is_empty() {
            return Ok(!range.is_empty());
        }
        if let (Some(predicates), Some(posg)) = (&self.predicates, view.index(Permutation::Posg)) {
            // A look-up for each, before all quads of the literal are looked at.
            let mut has_predicate = false;
            for predicate in predicates {
                has_predicate |= !posg.range(&[*predicate, literal])?.is_empty();
            }
            if !has_predicate || self.graphs.is_none() && self.classes.is_none() {
                return Ok(has_predicate);
            }
        }
        let mut scan = index.scan(range, [false, true, true, true]);
        while let Some(vector) = scan.next_vector()? {
            let columns: [&[u64]; COLUMNS - 1] = std::array::from_fn(|at| vector.column(at + 1));
            for row in 0..columns[0].len() {
                let [subject, predicate, graph] =
                    columns.map(|column| TermId::from_bits(column[row]));
                let takes = |ids: &Option<Vec<TermId>>, id| {
                    ids.as_ref().is_none_or(|ids| ids.contains(&id))
                };
                if takes(&self.predicates, predicate)
                    && takes(&self.graphs, graph)
                    && self.has_class(view, subject, (graph, &Scope::AllUnion))?
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
