//! The evaluation of the index rules: which quads they select by predicate, graph and class.
//!
//! A class counts in whichever graph the type stands. So the index has what every search may need:
//! one that reads several graphs as one finds the type in another of them than the text. What a
//! search finds is narrower, and is decided where it is planned.
//!
//! Cost: two sets of ids; for each quad whose subject needs a class, one look-up in POSG for each
//! class.

use std::collections::HashSet;

use orrery_term::vocabulary::rdf;
use orrery_term::{Term, TermId};

use super::rules::TextRules;
use crate::Result;
use crate::quads::index::Cursor;

/// The rules, in the ids of a state.
pub(super) struct Selection {
    /// None: all.
    predicates: Option<HashSet<u64>>,
    graphs: Option<HashSet<u64>>,
    /// `rdf:type`, and the classes that are known.
    classes: Option<(Option<TermId>, Vec<TermId>)>,
}

impl Selection {
    /// `id_of` tells the ids of terms.
    pub(super) fn new(
        rules: &TextRules,
        id_of: &dyn Fn(&Term<'_>) -> Result<Option<TermId>>,
    ) -> Result<Self> {
        let of_iri = |iri: &String| match iri.is_empty() {
            true => Ok(Some(TermId::DEFAULT_GRAPH)),
            false => id_of(&Term::iri(iri.as_str())),
        };
        let known = |iris: &[String]| -> Result<Vec<TermId>> {
            let mut ids = Vec::new();
            for iri in iris {
                ids.extend(of_iri(iri)?);
            }
            Ok(ids)
        };
        let set = |iris: &[String]| -> Result<Option<HashSet<u64>>> {
            let ids = known(iris)?;
            let ids = ids.into_iter().map(TermId::bits).collect();
            Ok((!iris.is_empty()).then_some(ids))
        };
        let classes = match rules.classes.is_empty() {
            true => None,
            false => Some((id_of(&Term::iri(rdf::TYPE))?, known(&rules.classes)?)),
        };
        Ok(Self {
            predicates: set(&rules.predicates)?,
            graphs: set(&rules.graphs)?,
            classes,
        })
    }

    /// Whether it depends on a literal's quads whether it is indexed.
    pub(super) fn is_of_quads(&self) -> bool {
        self.predicates.is_some() || self.graphs.is_some() || self.classes.is_some()
    }

    /// Whether subjects need a class.
    pub(super) fn needs_class(&self) -> bool {
        self.classes.is_some()
    }

    /// Whether a quad has such a predicate and is in such a graph.
    pub(super) fn takes(&self, predicate: u64, graph: u64) -> bool {
        let has = |ids: &Option<HashSet<u64>>, id| ids.as_ref().is_none_or(|ids| ids.contains(&id));
        has(&self.predicates, predicate) && has(&self.graphs, graph)
    }

    /// Whether a quad gives its subject a class that counts.
    pub(super) fn is_type(&self, predicate: u64, object: u64) -> bool {
        self.classes.as_ref().is_some_and(|(rdf_type, classes)| {
            rdf_type.is_some_and(|id| id.bits() == predicate)
                && classes.iter().any(|class| class.bits() == object)
        })
    }

    /// Whether a subject has a class that counts, in any graph, by POSG; also where it needs none.
    pub(super) fn has_class(&self, posg: Option<&mut Cursor>, subject: TermId) -> Result<bool> {
        let Some((rdf_type, classes)) = &self.classes else {
            return Ok(true);
        };
        let (Some(rdf_type), Some(posg)) = (rdf_type, posg) else {
            return Ok(false);
        };
        for &class in classes {
            if !posg.seek(&[*rdf_type, class, subject])?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
