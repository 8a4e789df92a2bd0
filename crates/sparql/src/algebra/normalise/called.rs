//! Which patterns stand for a walk over a list or a container (`lists`).

use spargebra::term::{NamedNodePattern, TriplePattern};

/// Jena's namespace of functions of lists.
const LIST: &str = "http://jena.apache.org/ARQ/list#";
pub(super) const RDFS_MEMBER: &str = "http://www.w3.org/2000/01/rdf-schema#member";

/// Whether some of the patterns stand for a walk.
pub(super) fn has_calls(patterns: &[TriplePattern]) -> bool {
    patterns.iter().any(|pattern| called(pattern).is_some())
}

/// The name that a pattern calls.
pub(super) fn called(pattern: &TriplePattern) -> Option<&str> {
    match &pattern.predicate {
        NamedNodePattern::NamedNode(node) if node.as_str() == RDFS_MEMBER => Some("container"),
        NamedNodePattern::NamedNode(node) => node.as_str().strip_prefix(LIST),
        NamedNodePattern::Variable(_) => None,
    }
}
