//! The hint that all data are in named graphs.
//!
//! SPARQL's patterns match the default graph alone unless a query says otherwise. Whoever loads
//! N-Quads and asks `SELECT * { ?s ?p ?o }` gets an empty table, rightly, and does not know why.

use orrery_storage::{Permutation, ReadView, Result};
use orrery_term::TermId;

use crate::parse::words_of;

/// Words after which somebody knows of graphs.
const GRAPH_WORDS: [&str; 3] = ["GRAPH", "FROM", "SERVICE"];

/// Number of quads in named graphs, if there are none elsewhere, and the text of the query names no
/// graph: why its answer is empty, or its counts are zero.
pub fn only_in_named_graphs(view: &ReadView, text: &str) -> Result<Option<u64>> {
    let Some(index) = view.index(Permutation::Gspo) else {
        return Ok(None);
    };
    let quads = view.quad_count();
    if quads == 0 || !index.range(&[TermId::DEFAULT_GRAPH])?.is_empty() {
        return Ok(None);
    }
    Ok((!names_graphs(text)).then_some(quads))
}

/// Whether a text may be about graphs that are named.
pub(crate) fn names_graphs(text: &str) -> bool {
    words_of(text).any(|word| {
        GRAPH_WORDS
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known))
    })
}
