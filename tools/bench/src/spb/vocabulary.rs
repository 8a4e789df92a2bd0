//! The IRIs of the BBC's ontologies and of the data set.

/// Creative works: their classes and properties.
pub const CWORK: &str = "http://www.bbc.co.uk/ontologies/creativework/";
/// Documents in which works are shown.
pub const BBC: &str = "http://www.bbc.co.uk/ontologies/bbc/";
/// Places, as GeoNames describes them.
pub const GEO_ONT: &str = "http://www.geonames.org/ontology#";
/// Latitudes and longitudes.
pub const WGS: &str = "http://www.w3.org/2003/01/geo/wgs84_pos#";
/// Types.
pub const RDF_TYPE: &str = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";
/// Two names of one entity.
pub const SAME_AS: &str = "<http://www.w3.org/2002/07/owl#sameAs>";

/// What entities of the reference data are called by. The ontologies make all of them
/// `ldbcspb:prefLabel`; without inference they are all named.
pub const LABELS: [&str; 6] = [
    "<http://www.ldbcouncil.org/spb#prefLabel>",
    "<http://www.w3.org/2000/01/rdf-schema#label>",
    "<http://xmlns.com/foaf/0.1/name>",
    "<http://www.geonames.org/ontology#name>",
    "<http://www.bbc.co.uk/ontologies/bbc/preferredLabel>",
    "<http://www.bbc.co.uk/ontologies/domain/canonicalName>",
];

const WORKS: &str = "http://www.bbc.co.uk/things/";
const GRAPHS: &str = "http://www.bbc.co.uk/context/";

/// A property or class of creative works.
pub fn cwork(name: &str) -> String {
    format!("<{CWORK}{name}>")
}

/// A property or class of documents.
pub fn bbc(name: &str) -> String {
    format!("<{BBC}{name}>")
}

/// A property or class of places.
pub fn geo_ont(name: &str) -> String {
    format!("<{GEO_ONT}{name}>")
}

/// The creative work of a number.
pub fn work(number: u64) -> String {
    format!("<{WORKS}{number}#id>")
}

/// The graph that has all of a creative work.
pub fn graph(number: u64) -> String {
    format!("<{GRAPHS}{number}#id>")
}

/// The number of a work's graph, from its address without brackets.
pub fn number_of_graph(address: &str) -> Option<u64> {
    let rest = address.strip_prefix(GRAPHS)?;
    rest.strip_suffix("#id")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_has_the_number_of_its_work() {
        let address = graph(17);
        assert_eq!(number_of_graph(address.trim_matches(['<', '>'])), Some(17));
        assert_eq!(
            number_of_graph("http://www.bbc.co.uk/contexts/0a27dfda#id"),
            None
        );
        assert_eq!(work(3), "<http://www.bbc.co.uk/things/3#id>");
    }
}
