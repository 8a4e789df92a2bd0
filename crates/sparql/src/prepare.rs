//! From text to a prepared query: parse, resolve the dataset, normalise, plan.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use datafusion_physical_plan::ExecutionPlan;
use orrery_operators::context::{ContextOptions, QueryContext};
use orrery_storage::{Permutation, Snapshot};
use orrery_term::TermId;
use spargebra::Query;
use spargebra::algebra::{GraphPattern, QueryDataset};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern, Variable};

use crate::algebra::{Dataset, Group, Normaliser, Scope, Var, VarSet};
use crate::dataset::dataset;
use crate::engine::{Engine, Preparation, PreparedQuery, QueryKind};
use crate::error::QueryError;
use crate::options::QueryOptions;
use crate::plan::{Planner, Relation};
use crate::results::{Template, for_each_template_variable};
use crate::statistics::Estimator;

/// Parses and plans a query that the scan of its text let through.
pub(crate) fn prepare(
    engine: &Engine,
    text: &str,
    options: &QueryOptions,
) -> Result<PreparedQuery, QueryError> {
    let started = Instant::now();
    let query = engine.shapes().parse(text, options.base_iri.as_deref())?;
    let parsed = Instant::now();
    let snapshot = match &options.snapshot {
        Some(snapshot) => Arc::clone(snapshot),
        None => engine.database().snapshot(),
    };
    let base_iri = query.base_iri().map(|iri| iri.as_str().to_owned());
    let context = QueryContext::new(
        Arc::clone(&snapshot),
        ContextOptions {
            base_iri,
            memory_pool: Arc::clone(&engine.memory().operators),
            on_the_way_pool: Arc::clone(&engine.memory().on_the_way),
            now: None,
            workers: Arc::clone(engine.workers()),
            adjacencies: Arc::clone(engine.adjacencies()),
        },
    )?;
    let dataset = dataset(&context, query.dataset(), options)?;
    let named_graphs = |most| named_graphs(&snapshot, most);
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
    )
    .with_service(engine.options().service.clone())
    .with_orders(engine.orders());
    planner.is_set = is_set(&query);
    let mut relation = plan(&mut planner, kind, &group, &needed)?;
    let in_one = Arc::clone(&relation.plan);
    relation.plan = planner.parallel(relation.plan)?;
    let template = match &query {
        Query::Construct { template, .. } => Template::compile(&context, template, |variable| {
            let var = template_vars.get(variable.as_str())?;
            relation.column(*var)
        })?,
        _ => Template::default(),
    };
    Ok(PreparedQuery {
        kind,
        variables,
        columns: vars.iter().map(|var| relation.column(*var)).collect(),
        template,
        gives_each_triple_once: gives_each_triple_once(&query, &dataset),
        described: dataset.graphs(),
        is_parallel: !Arc::ptr_eq(&in_one, &relation.plan),
        plan: relation.plan,
        estimates: planner.estimates,
        context,
        task: engine.task(options.tuning.vector_rows),
        memory: engine.memory().clone(),
        limits: engine.limits(options.timeout),
        preparation: Preparation {
            parse: parsed - started,
            plan: parsed.elapsed(),
        },
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

/// Whether the answer is the same however often a solution comes.
fn is_set(query: &Query) -> bool {
    match query {
        Query::Select { .. } => false,
        Query::Ask { .. } | Query::Describe { .. } => true,
        // Blank nodes of the template are new ones for each solution.
        Query::Construct { template, .. } => template.iter().all(|triple| {
            [&triple.subject, &triple.object].iter().all(|term| {
                matches!(
                    term,
                    TermPattern::NamedNode(_) | TermPattern::Literal(_) | TermPattern::Variable(_)
                )
            })
        }),
    }
}

/// Whether no triple of a `CONSTRUCT` can come twice, so that none has to be remembered: each solution is another triple of one
/// graph, and all its variables are in the one triple that is made of it. So is the answer for a whole graph.
fn gives_each_triple_once(query: &Query, dataset: &Dataset) -> bool {
    let Query::Construct {
        template, pattern, ..
    } = query
    else {
        return false;
    };
    let pattern = match pattern {
        GraphPattern::Project { inner, .. } => inner,
        other => other,
    };
    let (found, is_one_graph) = match pattern {
        GraphPattern::Bgp { patterns } => (patterns, matches!(dataset.default, Scope::Default)),
        GraphPattern::Graph {
            name: NamedNodePattern::NamedNode(_),
            inner,
        } => match &**inner {
            GraphPattern::Bgp { patterns } => (patterns, true),
            _ => return false,
        },
        _ => return false,
    };
    let ([made], [found]) = (&template[..], &found[..]) else {
        return false;
    };
    let is_plain = |triple: &TriplePattern| {
        [&triple.subject, &triple.object].iter().all(|term| {
            matches!(
                term,
                TermPattern::NamedNode(_) | TermPattern::Literal(_) | TermPattern::Variable(_)
            )
        })
    };
    let variables = |triple| {
        let mut variables = HashSet::new();
        for_each_template_variable(std::slice::from_ref(triple), &mut |variable| {
            variables.insert(variable);
        });
        variables
    };
    is_one_graph
        && is_plain(made)
        && is_plain(found)
        && variables(found).is_subset(&variables(made))
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
    if let Query::Construct { template, .. } = query {
        for_each_template_variable(template, &mut |variable| {
            variables.insert(variable.as_str().to_owned(), normaliser.variable(variable));
        });
    }
    variables
}

/// The names of the first `most` graphs that have quads.
fn named_graphs(snapshot: &Snapshot, most: usize) -> Result<Vec<TermId>, QueryError> {
    let mut graphs = Vec::new();
    let Some(index) = snapshot.index(Permutation::Gspo) else {
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

/// The `WHERE` of an update.
pub(crate) struct Pattern<'p> {
    pub(crate) pattern: &'p GraphPattern,
    /// The variables whose values are wanted.
    pub(crate) variables: &'p [Variable],
    pub(crate) using: Option<&'p QueryDataset>,
    pub(crate) base_iri: Option<String>,
}

/// A planned `WHERE`.
pub(crate) struct PreparedPattern {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    pub(crate) context: Arc<QueryContext>,
    /// The column of each variable that can be bound.
    pub(crate) columns: HashMap<String, usize>,
}

/// Plans the `WHERE` of an update over a snapshot.
pub(crate) fn prepare_pattern(
    engine: &Engine,
    snapshot: Arc<Snapshot>,
    pattern: &Pattern<'_>,
    options: &QueryOptions,
) -> Result<PreparedPattern, QueryError> {
    let context = QueryContext::new(
        Arc::clone(&snapshot),
        ContextOptions {
            base_iri: pattern.base_iri.clone(),
            memory_pool: Arc::clone(&engine.memory().operators),
            on_the_way_pool: Arc::clone(&engine.memory().on_the_way),
            now: None,
            workers: Arc::clone(engine.workers()),
            adjacencies: Arc::clone(engine.adjacencies()),
        },
    )?;
    let dataset = dataset(&context, pattern.using, options)?;
    let named_graphs = |most| named_graphs(&snapshot, most);
    let mut normaliser = Normaliser::new(&context, &dataset, &named_graphs, options.tuning);
    let projected = GraphPattern::Project {
        inner: Box::new(pattern.pattern.clone()),
        variables: pattern.variables.to_vec(),
    };
    let group = normaliser.query(&projected)?;
    let vars: Vec<Var> = pattern
        .variables
        .iter()
        .map(|variable| normaliser.variable(variable))
        .collect();
    let needed = VarSet::of(vars.iter().copied());
    let estimator = Estimator::new(&snapshot);
    let mut planner = Planner::new(
        Arc::clone(&context),
        estimator,
        normaliser.table,
        options.tuning,
    )
    .with_orders(engine.orders());
    let relation = planner.group(&group, None, &needed, None)?;
    let columns = pattern
        .variables
        .iter()
        .zip(vars)
        .filter_map(|(name, var)| {
            let column = relation.column(var)?;
            Some((name.as_str().to_owned(), column))
        });
    Ok(PreparedPattern {
        columns: columns.collect(),
        plan: relation.plan,
        context,
    })
}
