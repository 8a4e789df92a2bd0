//! From text to a prepared query: parse, resolve the dataset, normalise, plan.

use std::collections::HashMap;
use std::sync::Arc;

use orrery_operators::context::{ContextOptions, QueryContext};
use orrery_storage::{Permutation, Snapshot};
use orrery_term::{Term, TermId};
use spargebra::Query;
use spargebra::algebra::GraphPattern;
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern, Variable};

use crate::algebra::{Group, Normaliser, Var, VarSet};
use crate::dataset::dataset;
use crate::engine::{Engine, PreparedQuery, QueryKind};
use crate::error::QueryError;
use crate::options::QueryOptions;
use crate::parse;
use crate::plan::{Planner, Relation};
use crate::results::{Template, TemplateSlot, literal_from_oxrdf};
use crate::statistics::Estimator;

/// Parses and plans a query that the scan of its text let through.
pub(crate) fn prepare(
    engine: &Engine,
    text: &str,
    options: &QueryOptions,
) -> Result<PreparedQuery, QueryError> {
    let query = parse::parse(text, options.base_iri.as_deref())?;
    let snapshot = match &options.snapshot {
        Some(snapshot) => Arc::clone(snapshot),
        None => engine.database().snapshot(),
    };
    let base_iri = query.base_iri().map(|iri| iri.as_str().to_owned());
    let context = QueryContext::new(
        Arc::clone(&snapshot),
        ContextOptions {
            base_iri,
            memory_pool: Arc::clone(&engine.runtime().memory_pool),
            now: None,
        },
    )?;
    let dataset = dataset(&context, query.dataset(), options)?;
    let named_graphs = || named_graphs(&snapshot);
    let mut normaliser = Normaliser::new(&context, &dataset, &named_graphs, options.tuning);
    let (kind, pattern) = form(&query);
    let group = normaliser.query(pattern)?;
    let (variables, vars) = answer_variables(&query, &group, &mut normaliser);
    let template_vars = template_variables(&query, &mut normaliser);
    let mut needed = VarSet::of(vars.iter().copied());
    needed.extend(&VarSet::of(template_vars.values().copied()));

    let estimator = Estimator::new(&snapshot);
    let mut planner = Planner::new(
        Arc::clone(&context),
        estimator,
        normaliser.table,
        options.tuning,
    );
    let relation = plan(&mut planner, kind, &group, &needed)?;
    let template = match &query {
        Query::Construct { template, .. } => {
            construct_template(&context, template, &template_vars, &relation)?
        }
        _ => Template::default(),
    };
    Ok(PreparedQuery {
        kind,
        variables,
        columns: vars.iter().map(|var| relation.column(*var)).collect(),
        template,
        plan: relation.plan,
        estimates: planner.estimates,
        context,
        runtime: Arc::clone(engine.runtime()),
        session: engine.session(options.tuning.vector_rows),
        limits: engine.limits(options.timeout),
    })
}

fn form(query: &Query) -> (QueryKind, &GraphPattern) {
    match query {
        Query::Select { pattern, .. } => (QueryKind::Select, pattern),
        Query::Ask { pattern, .. } => (QueryKind::Ask, pattern),
        Query::Construct { pattern, .. } => (QueryKind::Construct, pattern),
        Query::Describe { pattern, .. } => (QueryKind::Describe, pattern),
    }
}

fn plan(
    planner: &mut Planner<'_>,
    kind: QueryKind,
    group: &Group,
    needed: &VarSet,
) -> Result<Relation, QueryError> {
    match kind {
        QueryKind::Select | QueryKind::Construct | QueryKind::Describe => {
            planner.group(group, None, needed, None)
        }
        QueryKind::Ask => {
            let relation = planner.group(group, None, &VarSet::default(), Some(1))?;
            planner.limited(relation, 0, Some(1))
        }
    }
}

/// The variables of the answer: what a `SELECT` projects, what a `DESCRIBE` describes.
fn answer_variables(
    query: &Query,
    group: &Group,
    normaliser: &mut Normaliser<'_>,
) -> (Arc<[String]>, Vec<Var>) {
    match query {
        Query::Select { pattern, .. } => {
            let projected = projected(pattern);
            let names = projected.iter().map(|v| v.as_str().to_owned()).collect();
            let vars = projected.iter().map(|v| normaliser.variable(v)).collect();
            (names, vars)
        }
        Query::Describe { .. } => (Arc::from([]), group.visible.iter().collect()),
        Query::Ask { .. } | Query::Construct { .. } => (Arc::from([]), Vec::new()),
    }
}

/// The variables of the outermost projection.
fn projected(pattern: &GraphPattern) -> &[Variable] {
    match pattern {
        GraphPattern::Project { variables, .. } => variables,
        GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. } => projected(inner),
        _ => &[],
    }
}

fn template_variables(query: &Query, normaliser: &mut Normaliser<'_>) -> HashMap<String, Var> {
    let mut variables = HashMap::new();
    let Query::Construct { template, .. } = query else {
        return variables;
    };
    for triple in template {
        if let NamedNodePattern::Variable(variable) = &triple.predicate {
            variables.insert(variable.as_str().to_owned(), normaliser.variable(variable));
        }
        for term in [&triple.subject, &triple.object] {
            if let TermPattern::Variable(variable) = term {
                variables.insert(variable.as_str().to_owned(), normaliser.variable(variable));
            }
        }
    }
    variables
}

fn construct_template(
    context: &QueryContext,
    template: &[TriplePattern],
    variables: &HashMap<String, Var>,
    relation: &Relation,
) -> Result<Template, QueryError> {
    let mut blank_nodes: Vec<&str> = Vec::new();
    let column = |variable: &Variable| {
        let var = variables.get(variable.as_str());
        TemplateSlot::Column(var.and_then(|var| relation.column(*var)))
    };
    let mut triples = Vec::with_capacity(template.len());
    for triple in template {
        let slot = |term: &TermPattern| -> Result<TemplateSlot, QueryError> {
            Ok(match term {
                TermPattern::Variable(variable) => column(variable),
                TermPattern::NamedNode(node) => {
                    TemplateSlot::Constant(context.intern(&Term::iri(node.as_str()))?)
                }
                TermPattern::Literal(literal) => {
                    TemplateSlot::Constant(context.intern(&literal_from_oxrdf(literal))?)
                }
                TermPattern::BlankNode(_) => TemplateSlot::BlankNode(0),
                // rdf-12: not supported yet.
                TermPattern::Triple(_) => return Err(QueryError::unsupported("triple terms")),
            })
        };
        let mut subject = slot(&triple.subject)?;
        let mut object = slot(&triple.object)?;
        for (term, slot) in [
            (&triple.subject, &mut subject),
            (&triple.object, &mut object),
        ] {
            if let TermPattern::BlankNode(node) = term {
                let known = blank_nodes.iter().position(|label| *label == node.as_str());
                let number = known.unwrap_or_else(|| {
                    blank_nodes.push(node.as_str());
                    blank_nodes.len() - 1
                });
                *slot = TemplateSlot::BlankNode(number);
            }
        }
        let predicate = match &triple.predicate {
            NamedNodePattern::NamedNode(node) => {
                TemplateSlot::Constant(context.intern(&Term::iri(node.as_str()))?)
            }
            NamedNodePattern::Variable(variable) => column(variable),
        };
        triples.push([subject, predicate, object]);
    }
    Ok(Template {
        triples,
        blank_nodes: blank_nodes.len(),
    })
}

/// The names of the graphs that have quads.
fn named_graphs(snapshot: &Snapshot) -> Result<Vec<TermId>, QueryError> {
    let mut graphs = Vec::new();
    let Some(index) = snapshot.index(Permutation::Gspo) else {
        return Ok(graphs);
    };
    let mut cursor = index.cursor();
    let mut after = Some(TermId::DEFAULT_GRAPH);
    while let Some(graph) = cursor.distinct_next(&[], after)? {
        graphs.push(graph);
        after = Some(graph);
    }
    Ok(graphs)
}
