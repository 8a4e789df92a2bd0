//! The table `quads`: all statements of the database, with NULL for the default graph.

use orrery_storage::table::ColumnType;

use super::SeenGraphs;
use super::condition::Seen;
use super::table::GraphTable;

/// The table's name.
pub(crate) const QUADS: &str = "quads";

const QUERY: &str = "SELECT ?s ?p ?o ?g (STR(DATATYPE(?o)) AS ?datatype) (LANG(?o) AS ?language) \
     WHERE { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";

/// The table, in a state.
pub(crate) fn quads(seen: &SeenGraphs) -> GraphTable {
    let text = ColumnType::Text {
        length_max: None,
        is_padded: false,
    };
    let columns = [
        ("s", true),
        ("p", true),
        ("o", false),
        ("g", true),
        ("datatype", false),
        ("language", false),
    ];
    let columns = columns.map(|(name, is_resource)| {
        let seen = Seen {
            name: name.to_owned(),
            column_type: text,
            is_resource,
        };
        (name.to_owned(), seen)
    });
    GraphTable::new(seen, QUERY.into(), columns.into()).of_quads()
}
