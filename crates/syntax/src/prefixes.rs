//! Prefixes that everybody knows.

/// Prefixes and the IRIs that they nearly always stand for.
pub const WELL_KNOWN_PREFIXES: [(&str, &str); 13] = [
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("schema", "http://schema.org/"),
    ("geo", "http://www.opengis.net/ont/geosparql#"),
    ("prov", "http://www.w3.org/ns/prov#"),
    ("void", "http://rdfs.org/ns/void#"),
    ("sh", "http://www.w3.org/ns/shacl#"),
];

/// What a prefix nearly always stands for.
pub fn well_known_prefix(prefix: &str) -> Option<&'static str> {
    let mut known = WELL_KNOWN_PREFIXES.iter();
    known.find(|(name, _)| *name == prefix).map(|(_, iri)| *iri)
}
