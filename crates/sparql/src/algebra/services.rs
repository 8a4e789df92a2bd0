//! The names of built-in services.

use orrery_syntax::WEIGHT_NAMES;
use spargebra::term::NamedNodePattern;

/// The services that find paths, and what the names of their settings begin with.
const SERVICES: [&str; 2] = [
    "https://orrery-db.org/path#search",
    "http://www.ontotext.com/path#search",
];
const NAMES: [&str; 2] = [
    "https://orrery-db.org/path#",
    "http://www.ontotext.com/path#",
];

/// Whether a service is answered here.
pub(crate) fn finds_paths(name: &NamedNodePattern) -> bool {
    match name {
        NamedNodePattern::NamedNode(iri) => SERVICES.contains(&iri.as_str()),
        NamedNodePattern::Variable(_) => false,
    }
}

/// The name of a setting without what it begins with.
pub(super) fn local_name(iri: &str) -> Option<&str> {
    NAMES.iter().find_map(|names| iri.strip_prefix(names))
}

/// Whether a setting of a search says where paths begin or end.
pub(crate) fn names_end(name: &NamedNodePattern) -> bool {
    let name = match name {
        NamedNodePattern::NamedNode(iri) => local_name(iri.as_str()),
        NamedNodePattern::Variable(_) => None,
    };
    matches!(name, Some("sourceNode" | "destinationNode"))
}

/// The service that runs algorithms over graphs, and what the names of its settings begin with.
const ALGORITHMS: &str = "https://orrery-db.org/algorithm#run";
const ALGORITHM_NAMES: &str = "https://orrery-db.org/algorithm#";

/// Whether a service runs an algorithm over a graph.
pub(crate) fn runs_algorithm(name: &NamedNodePattern) -> bool {
    match name {
        NamedNodePattern::NamedNode(iri) => iri.as_str() == ALGORITHMS,
        NamedNodePattern::Variable(_) => false,
    }
}

/// The name of a setting of an algorithm without what it begins with.
pub(super) fn algorithm_name(iri: &str) -> Option<&str> {
    iri.strip_prefix(ALGORITHM_NAMES)
}

/// The service that searches in the index of texts.
pub(super) const TEXTS: &str = "https://orrery-db.org/text#search";

/// Whether a service searches in the index of texts.
pub(crate) fn searches_texts(name: &NamedNodePattern) -> bool {
    matches!(name, NamedNodePattern::NamedNode(iri) if iri.as_str() == TEXTS)
}

/// The name of a setting of the service that reads edge weights without what it begins with.
pub(super) fn weight_name(iri: &str) -> Option<&str> {
    iri.strip_prefix(WEIGHT_NAMES)
}

/// Whether a service reads edge weights.
pub(crate) fn reads_weights(name: &NamedNodePattern) -> bool {
    matches!(name, NamedNodePattern::NamedNode(iri) if weight_name(iri.as_str()) == Some("read"))
}

/// Whether a service is answered here, without asking anybody.
pub(crate) fn is_answered_here(name: &NamedNodePattern) -> bool {
    finds_paths(name) || runs_algorithm(name) || searches_texts(name) || reads_weights(name)
}
