//! The dataset of a query: from the protocol, else its `FROM` clauses, else the store's.

use std::sync::Arc;

use orrery_operators::context::QueryContext;
use orrery_storage::{Permutation, ReadView};
use orrery_term::{Term, TermId};
use spargebra::algebra::QueryDataset;

use crate::algebra::{Dataset, Scope, SeenMapped};
use crate::error::QueryError;
use crate::options::QueryOptions;

/// SPARQL 1.1 Protocol, 2.1.4: a dataset of the protocol replaces that of the query.
pub(crate) fn dataset(
    context: &QueryContext,
    of_query: Option<&QueryDataset>,
    options: &QueryOptions,
    mapped: Option<&SeenMapped>,
) -> Result<Dataset, QueryError> {
    let known = |names: &mut dyn Iterator<Item = &str>| known(context, names, mapped);
    let of_protocol = !options.default_graphs.is_empty() || !options.named_graphs.is_empty();
    if of_protocol {
        let default = options.default_graphs.iter().map(String::as_str);
        let named = options.named_graphs.iter().map(String::as_str);
        return Ok(Dataset {
            default: Scope::Union(known(&mut { default })?),
            named: Some(known(&mut { named })?),
        });
    }
    let Some(of_query) = of_query else {
        let default = if options.union_default_graph {
            Scope::AllUnion
        } else {
            Scope::Default
        };
        return Ok(Dataset {
            default,
            named: None,
        });
    };
    let default = of_query.default.iter().map(|node| node.as_str());
    // Without a list (`WITH` of an update) all named graphs are seen.
    let named = match &of_query.named {
        Some(named) => Some(known(&mut named.iter().map(|node| node.as_str()))?),
        None => None,
    };
    Ok(Dataset {
        default: Scope::Union(known(&mut { default })?),
        named,
    })
}

/// The graphs that the store knows, or that are mapped, each once.
fn known(
    context: &QueryContext,
    names: &mut dyn Iterator<Item = &str>,
    mapped: Option<&SeenMapped>,
) -> Result<Arc<[TermId]>, QueryError> {
    let mut graphs = Vec::new();
    for name in names {
        let graph = mapped.and_then(|mapped| mapped.id(name));
        let id = match graph {
            Some(id) => Some(id),
            None => context.view().id_in_quads(&Term::iri(name))?,
        };
        if let Some(id) = id
            && !graphs.contains(&id)
        {
            graphs.push(id);
        }
    }
    Ok(graphs.into())
}

/// The names of the first `most` graphs that have quads.
pub(crate) fn named_graphs(view: &ReadView, most: usize) -> Result<Vec<TermId>, QueryError> {
    let mut graphs = Vec::new();
    let Some(index) = view.index(Permutation::Gspo) else {
        return Ok(graphs);
    };
    let mut cursor = index.cursor();
    let mut after = Some(TermId::DEFAULT_GRAPH);
    while graphs.len() < most
        && let Some(graph) = cursor.distinct_next(&[], after)?
    {
        graphs.push(graph);
        after = Some(graph);
    }
    Ok(graphs)
}
