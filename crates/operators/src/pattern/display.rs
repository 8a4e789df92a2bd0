//! The text of patterns in `explain`.

use orrery_term::TermId;

use super::specification::{GraphScope, QuadPattern, Slot};
use crate::context::QueryContext;

/// A pattern as SPARQL would write it.
pub(crate) fn quad_pattern(context: &QueryContext, pattern: &QuadPattern) -> String {
    let triple = format!(
        "{} {} {}",
        slot(context, &pattern.subject),
        slot(context, &pattern.predicate),
        slot(context, &pattern.object)
    );
    match graph_scope(context, &pattern.graph) {
        Some(graph) => format!("{graph} {{ {triple} }}"),
        None => triple,
    }
}

/// A term or a variable as SPARQL would write it.
pub(crate) fn slot(context: &QueryContext, slot: &Slot) -> String {
    match slot {
        Slot::Constant(id) => term(context, *id),
        Slot::Variable(name) => format!("?{name}"),
    }
}

/// The graphs; nothing for the default graph.
pub(crate) fn graph_scope(context: &QueryContext, scope: &GraphScope) -> Option<String> {
    match scope {
        GraphScope::Default => None,
        GraphScope::Union(graphs) => Some(format!("MERGE OF {} GRAPHS", graphs.len())),
        GraphScope::AllUnion => Some("MERGE OF ALL GRAPHS".to_owned()),
        GraphScope::Named(graph) => Some(format!("GRAPH {}", term(context, *graph))),
        GraphScope::NamedVariable { variable, allowed } => Some(match allowed {
            None => format!("GRAPH ?{variable}"),
            Some(graphs) => format!("GRAPH ?{variable} OF {}", graphs.len()),
        }),
    }
}

fn term(context: &QueryContext, id: TermId) -> String {
    match context.term(id) {
        Ok(term) => term.to_string(),
        // Explaining must not fail because of a damaged page.
        Err(_) => format!("{id:?}"),
    }
}
