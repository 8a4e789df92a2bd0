//! The dispatch of patterns that are no triples: lists (`lists`), text searches (`text/foreign`),
//! places (`nearby`), relations of places (`related`).

use orrery_geo::Relation;
use oxrdf::NamedNode;
use oxrdf::vocab::rdf;
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};

/// GeoSPARQL's namespace.
pub(super) const GEO: &str = "http://www.opengis.net/ont/geosparql#";
/// Jena's namespace of predicates that ask for places.
const SPATIAL: &str = "http://jena.apache.org/spatial#";
/// Jena's namespace of functions of lists.
const LIST: &str = "http://jena.apache.org/ARQ/list#";
pub(super) const RDFS_MEMBER: &str = "http://www.w3.org/2000/01/rdf-schema#member";

/// What `rdfs:member` is called here; no text can write it as a name of a list's.
pub(super) const CONTAINER: &str = "a container";

/// Jena's search in texts, and what it is called here.
const JENA_TEXTS: &str = "http://jena.apache.org/text#query";
pub(super) const TEXTS: &str = "a search in texts";

/// Whether some of the patterns ask for places.
pub(super) fn has_places(patterns: &[TriplePattern]) -> bool {
    patterns.iter().any(|it| place_called(it).is_some())
}

/// The name by which a pattern asks for places.
pub(super) fn place_called(pattern: &TriplePattern) -> Option<&str> {
    match &pattern.predicate {
        NamedNodePattern::NamedNode(node) => node.as_str().strip_prefix(SPATIAL),
        NamedNodePattern::Variable(_) => None,
    }
}

/// Whether some of the patterns ask for relations of places.
pub(super) fn has_relations(patterns: &[TriplePattern]) -> bool {
    patterns.iter().any(|it| relation_of(it).is_some())
}

/// The relation that a pattern asks for.
pub(super) fn relation_of(pattern: &TriplePattern) -> Option<Relation> {
    match &pattern.predicate {
        NamedNodePattern::NamedNode(node) => relation_named(node),
        NamedNodePattern::Variable(_) => None,
    }
}

/// The relation that a property is.
pub(super) fn relation_named(node: &NamedNode) -> Option<Relation> {
    Relation::of_name(node.as_str().strip_prefix(GEO)?)
}

/// Whether some of the patterns stand for a walk or a search.
pub(super) fn has_calls(patterns: &[TriplePattern]) -> bool {
    patterns.iter().any(|pattern| called(pattern).is_some())
}

/// Whether some of them stand for a walk over a list, or have lists for a search.
pub(super) fn has_lists(patterns: &[TriplePattern]) -> bool {
    patterns
        .iter()
        .any(|pattern| matches!(called(pattern), Some(name) if name != CONTAINER))
}

/// The name that a pattern calls.
pub(super) fn called(pattern: &TriplePattern) -> Option<&str> {
    match &pattern.predicate {
        NamedNodePattern::NamedNode(node) if node.as_str() == RDFS_MEMBER => Some(CONTAINER),
        NamedNodePattern::NamedNode(node) if node.as_str() == JENA_TEXTS => Some(TEXTS),
        NamedNodePattern::NamedNode(node) => node.as_str().strip_prefix(LIST),
        NamedNodePattern::Variable(_) => None,
    }
}

/// Takes the triples of a list `(?a ?b ...)` out of the patterns: its members. `None` where it has
/// more than `most`, or the patterns have no such list.
pub(super) fn taken_list(
    patterns: &mut Vec<TriplePattern>,
    list: &TermPattern,
    most: usize,
) -> Option<Vec<TermPattern>> {
    let nil = TermPattern::NamedNode(rdf::NIL.into_owned());
    let mut members = Vec::new();
    let mut cell = list.clone();
    while cell != nil {
        let mut of_cell = |predicate: NamedNode| {
            let predicate = NamedNodePattern::from(predicate);
            let is_it = |it: &TriplePattern| it.subject == cell && it.predicate == predicate;
            let at = patterns.iter().position(is_it)?;
            Some(patterns.remove(at).object)
        };
        if !matches!(cell, TermPattern::BlankNode(_)) || members.len() == most {
            return None;
        }
        members.push(of_cell(rdf::FIRST.into_owned())?);
        cell = of_cell(rdf::REST.into_owned())?;
    }
    Some(members)
}
