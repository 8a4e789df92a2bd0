//! Which patterns stand for a walk over a list or a container (`lists`).

use spargebra::term::{NamedNodePattern, TriplePattern};

/// Jena's namespace of functions of lists.
const LIST: &str = "http://jena.apache.org/ARQ/list#";
pub(super) const RDFS_MEMBER: &str = "http://www.w3.org/2000/01/rdf-schema#member";

/// What `rdfs:member` is called here; no text can write it as a name of a list's.
pub(super) const CONTAINER: &str = "a container";

/// Whether some of the patterns stand for a walk.
pub(super) fn has_calls(patterns: &[TriplePattern]) -> bool {
    patterns.iter().any(|pattern| called(pattern).is_some())
}

/// Whether some of them stand for a walk over a list.
pub(super) fn has_lists(patterns: &[TriplePattern]) -> bool {
    patterns
        .iter()
        .any(|pattern| matches!(called(pattern), Some(name) if name != CONTAINER))
}

/// The name that a pattern calls.
pub(super) fn called(pattern: &TriplePattern) -> Option<&str> {
    match &pattern.predicate {
        NamedNodePattern::NamedNode(node) if node.as_str() == RDFS_MEMBER => Some(CONTAINER),
        NamedNodePattern::NamedNode(node) => node.as_str().strip_prefix(LIST),
        NamedNodePattern::Variable(_) => None,
    }
}
