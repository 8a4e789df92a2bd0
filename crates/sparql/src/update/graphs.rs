//! Operations on whole graphs: `CLEAR`, `DROP`, `COPY`, `MOVE`, `ADD`, `CREATE`.
//!
//! `CLEAR` and `DROP`, and `DELETE WHERE { ?s ?p ?o }`, which is the same said in another way, name
//! graphs and no quads: the storage clears these without looking at each quad.

use orrery_storage::{GraphSet, Permutation, ReadView, Transaction};
use orrery_term::{Term, TermId};
use spargebra::algebra::{GraphPattern, GraphTarget, QueryDataset};
use spargebra::term::{
    GraphNamePattern, GroundQuadPattern, GroundTermPattern, NamedNodePattern, TermPattern,
    TriplePattern, Variable,
};

use super::UpdateOptions;
use super::paid::Paid;
use crate::error::QueryError;

/// Deletes the quads that a `CLEAR` or `DROP` means.
pub(super) fn clear(
    target: &GraphTarget,
    options: &UpdateOptions,
    transaction: &mut Transaction,
) -> Result<(), QueryError> {
    let graphs = match target {
        GraphTarget::NamedGraphs | GraphTarget::AllGraphs if !options.are_of_all_graphs() => {
            Some(seen(target, options, transaction)?)
        }
        _ => graphs_of(target, transaction)?,
    };
    match graphs {
        Some(graphs) => {
            Paid(options.query.spending.as_deref()).changed(transaction.clear(&graphs)?)
        }
        None => Ok(()),
    }
}

/// All graphs with quads that an asker sees, or all of these that are named; refused if one of them
/// may not be changed.
fn seen(
    target: &GraphTarget,
    options: &UpdateOptions,
    transaction: &mut Transaction,
) -> Result<GraphSet, QueryError> {
    let view = options.query.view_of(transaction.snapshot()?)?;
    let mut seen = Vec::new();
    if *target == GraphTarget::AllGraphs && has_quads(&view, TermId::DEFAULT_GRAPH)? {
        options.writes.require(None)?;
        seen.push(TermId::DEFAULT_GRAPH);
    }
    if let Some(index) = view.index(Permutation::Gspo) {
        let (mut cursor, mut last) = (index.cursor(), TermId::DEFAULT_GRAPH);
        while let Some(graph) = cursor.distinct_next(&[], Some(last))? {
            options
                .writes
                .require(Some(&view.snapshot().term(graph)?))?;
            seen.push(graph);
            last = graph;
        }
    }
    Ok(GraphSet::listing(seen))
}

/// The graphs of a target; `None` if it is one that no quad can be in.
fn graphs_of(
    target: &GraphTarget,
    transaction: &mut Transaction,
) -> Result<Option<GraphSet>, QueryError> {
    Ok(match target {
        GraphTarget::AllGraphs => Some(GraphSet::all()),
        GraphTarget::DefaultGraph => Some(GraphSet::one(TermId::DEFAULT_GRAPH)),
        GraphTarget::NamedNode(node) => {
            let graph = transaction.term_id(&Term::iri(node.as_str()))?;
            graph.map(GraphSet::one)
        }
        GraphTarget::NamedGraphs => Some(GraphSet::named()),
    })
}

/// The graphs that a `DELETE` with its `WHERE` clears, if it does nothing else: both are one triple
/// pattern of three different variables, in the same graph or in any (`GRAPH ?g`).
///
/// Not where a dataset is given: then the pattern is matched elsewhere. A default graph that is the
/// union of all graphs has the quads of the default graph, too.
pub(super) fn cleared_by(
    delete: &[GroundQuadPattern],
    using: Option<&QueryDataset>,
    pattern: &GraphPattern,
    options: &UpdateOptions,
) -> Option<GraphTarget> {
    let query = &options.query;
    if using.is_some() || !query.default_graphs.is_empty() || !query.named_graphs.is_empty() {
        return None;
    }
    let [quad] = delete else {
        return None;
    };
    let (graph, triples) = match pattern {
        GraphPattern::Bgp { patterns } => (None, patterns),
        GraphPattern::Graph { name, inner } => match &**inner {
            GraphPattern::Bgp { patterns } => (Some(name), patterns),
            _ => return None,
        },
        _ => return None,
    };
    let [triple] = &triples[..] else {
        return None;
    };
    let variables = variables_of(triple)?;
    if variables_of_quad(quad)? != variables || !are_distinct(&variables) {
        return None;
    }
    match (graph, &quad.graph_name) {
        (None, GraphNamePattern::DefaultGraph) => Some(GraphTarget::DefaultGraph),
        (Some(NamedNodePattern::NamedNode(name)), GraphNamePattern::NamedNode(same))
            if name == same =>
        {
            Some(GraphTarget::NamedNode(name.clone()))
        }
        (Some(NamedNodePattern::Variable(name)), GraphNamePattern::Variable(same))
            if name == same && !variables.contains(&name) =>
        {
            Some(GraphTarget::NamedGraphs)
        }
        _ => None,
    }
}

fn variables_of(triple: &TriplePattern) -> Option<[&Variable; 3]> {
    match (&triple.subject, &triple.predicate, &triple.object) {
        (
            TermPattern::Variable(subject),
            NamedNodePattern::Variable(predicate),
            TermPattern::Variable(object),
        ) => Some([subject, predicate, object]),
        _ => None,
    }
}

fn variables_of_quad(quad: &GroundQuadPattern) -> Option<[&Variable; 3]> {
    match (&quad.subject, &quad.predicate, &quad.object) {
        (
            GroundTermPattern::Variable(subject),
            NamedNodePattern::Variable(predicate),
            GroundTermPattern::Variable(object),
        ) => Some([subject, predicate, object]),
        _ => None,
    }
}

fn are_distinct([a, b, c]: &[&Variable; 3]) -> bool {
    a != b && b != c && a != c
}

/// How many quads a named graph has.
pub(super) fn quads_of(view: &ReadView, graph: TermId) -> Result<u64, QueryError> {
    match view.index(Permutation::Gspo) {
        Some(index) => {
            let rows = index.cursor().seek(&[graph])?;
            Ok(rows.end - rows.start)
        }
        None => Ok(0),
    }
}

/// Whether a graph has quads.
pub(super) fn has_quads(view: &ReadView, graph: TermId) -> Result<bool, QueryError> {
    match view.index(Permutation::Gspo) {
        Some(index) => Ok(!index.cursor().seek(&[graph])?.is_empty()),
        // There is the default graph only.
        None => Ok(graph == TermId::DEFAULT_GRAPH && view.quad_count() > 0),
    }
}
