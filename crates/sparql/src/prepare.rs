//! The preparation of a query: parse, resolve the dataset, normalize, plan.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use datafusion_physical_plan::ExecutionPlan;
use hashbrown::{HashMap, HashSet};
use orrery_operators::context::{ContextOptions, QueryContext};
use orrery_operators::service::ServiceOptions;
use orrery_runtime::Patience;
use orrery_storage::{ReadView, Snapshot};
use orrery_syntax::template_graph;
use orrery_term::language::{TagFinder, TagSyntax};
use orrery_term::{LanguageTags, Term, TermId};
use oxsdatatypes::DateTime;
use spargebra::Query;
use spargebra::algebra::{GraphPattern, QueryDataset};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern, Variable};

use crate::algebra::{Dataset, Group, Normaliser, Scope, SeenMapped, Var, VarSet};
use crate::dataset::{dataset, named_graphs};
use crate::edge_weights::definition::EdgeWeight;
use crate::edge_weights::upkeep;
use crate::engine::Engine;
use crate::error::QueryError;
use crate::explain;
use crate::narrow::{SelectedVariable, selected_variables};
use crate::options::{QueryOptions, Tuning};
use crate::parse::{self, Assumed, ReadText, Refused, Stack};
use crate::plan::{
    Constants, KeptAnswer, KeptQuery, MadePlan, PlanEstimates, PlanKey, Planner, Relation,
    compile_patterns,
};
use crate::prepared::{Preparation, PreparedQuery, QueryKind};
use crate::results::{Template, for_each_template_variable};
use crate::statistics::{Counts, Estimator};
use crate::update;

impl Engine {
    /// Parses and plans a query over the newest snapshot.
    pub fn prepare(&self, text: &str, options: &QueryOptions) -> Result<PreparedQuery, QueryError> {
        let text = parse::without_mark(text);
        parse::check_length("query", text, self.options().query_bytes_max)?;
        let started = Instant::now();
        let view = options.view(self.database())?;
        let assumed = Assumed {
            base_iri: options.base_iri.as_deref(),
            prefixes: options.assumed(view.snapshot()),
            waiting: None,
        };
        let read = |stack| {
            let read = self.shapes().read(text, assumed, stack)?;
            if options.asks_nobody && update::asks_others(&read.query()) {
                return Err(Refused::Error(QueryError::unsupported(
                    "SERVICE while other writers wait, as in a statement or a transaction that changes something",
                )));
            }
            if view.snapshot().is_far() {
                parse::constants::look_up(&read.query(), &view);
            }
            Ok(read)
        };
        match read(Stack::Ordinary) {
            Ok(read) if options.narrowing.is_empty() => {
                read_again(self, text, &read, (started, &view), options)
            }
            Ok(read) => {
                let times = (started, Instant::now());
                let query = options.narrowing.applied(read.query().into_owned());
                prepared(self, (text, &query), (times, &view), options, None)
            }
            Err(Refused::Error(error)) => Err(error),
            Err(Refused::NeedsLargeStack) => parse::on_large_stack("prepare-query", || {
                let read = read(Stack::Large).map_err(Refused::into_error)?;
                let times = (started, Instant::now());
                let query = match options.narrowing.is_empty() {
                    true => read.query(),
                    false => Cow::Owned(options.narrowing.applied(read.query().into_owned())),
                };
                prepared(self, (text, &query), (times, &view), options, None)
            }),
        }
        .map_err(|error| error.with_limit(self.options().memory_bytes))
    }
}

impl Engine {
    /// The variables that a query selects, and what its text says of them; none for a query that is
    /// no `SELECT`.
    ///
    /// # Errors
    /// When the text is no query.
    pub fn selected_variables(
        &self,
        text: &str,
        options: &QueryOptions,
    ) -> Result<Option<Vec<SelectedVariable>>, QueryError> {
        let text = parse::without_mark(text);
        parse::check_length("query", text, self.options().query_bytes_max)?;
        let view = options.view(self.database())?;
        let assumed = Assumed {
            base_iri: options.base_iri.as_deref(),
            prefixes: options.assumed(view.snapshot()),
            waiting: None,
        };
        let read = |stack| self.shapes().read(text, assumed, stack);
        match read(Stack::Ordinary) {
            Ok(read) => Ok(selected_variables(&read.query())),
            Err(Refused::Error(error)) => Err(error),
            Err(Refused::NeedsLargeStack) => parse::on_large_stack("prepare-query", || {
                let read = read(Stack::Large).map_err(Refused::into_error)?;
                Ok(selected_variables(&read.query()))
            }),
        }
    }
}

/// Takes the plan that is kept for a query, or plans it; then its plan is kept, if its shape is
/// known.
fn read_again(
    engine: &Engine,
    text: &str,
    read: &ReadText<'_>,
    (started, view): (Instant, &Arc<ReadView>),
    options: &QueryOptions,
) -> Result<PreparedQuery, QueryError> {
    let times = (started, Instant::now());
    let ReadText::Known(shape, constants) = read else {
        return prepared(engine, (text, &read.query()), (times, view), options, None);
    };
    let mut keeping = None;
    // A plan is kept for the state that a commit left: what a transaction sees has the same number,
    // and may never be committed.
    if keeps_plans(options)
        && !view.snapshot().is_of_transaction()
        && !(engine.mapped_in(view).is_some() && may_name_graphs(text))
        && let Some(constants) = Constants::of(shape, constants, view)?
    {
        let key = PlanKey::of(shape, constants.constants);
        let known = known(engine, text, (&key, &constants), (times, view), options)?;
        engine.plans().note(known.is_some());
        match known {
            Some(known) => return Ok(known),
            None if engine.plans().is_refused(&key, view.snapshot().commit()) => {}
            None => keeping = Some((key, constants)),
        }
    }
    prepared(
        engine,
        (text, &read.query()),
        (times, view),
        options,
        keeping,
    )
}

/// Whether a query may be about graphs that are named: what mapped ones there are is not told by
/// what is counted for a kept plan.
fn may_name_graphs(text: &str) -> bool {
    let has = |word: &[u8]| {
        let mut windows = text.as_bytes().windows(word.len());
        windows.any(|it| it.eq_ignore_ascii_case(word))
    };
    has(b"graph") || has(b"from")
}

/// Whether plans made with these options are kept: the cache does not tell others apart.
fn keeps_plans(options: &QueryOptions) -> bool {
    options.tuning == Tuning::default()
        && options.default_graphs.is_empty()
        && options.named_graphs.is_empty()
        && !options.union_default_graph
}

/// A query whose plan is kept.
fn known(
    engine: &Engine,
    text: &str,
    (key, constants): (&PlanKey, &Constants<'_>),
    ((started, parsed), view): ((Instant, Instant), &Arc<ReadView>),
    options: &QueryOptions,
) -> Result<Option<PreparedQuery>, QueryError> {
    let Some(variants) = engine.plans().find(key) else {
        return Ok(None);
    };
    let estimator = Estimator::new(view);
    for variant in variants.iter() {
        let Some(bindings) = variant.fits(constants, &estimator, view)? else {
            continue;
        };
        let algebra = constants.shape.algebra();
        let (kind, _) = form(algebra);
        let base_iri = algebra.base_iri().map(|iri| iri.as_str().to_owned());
        let context = context(engine, view, options, (base_iri, None))?;
        context.note_language_tags(&TagFinder::in_text(TagSyntax::At, text));
        // What cannot be made again is not tried twice. If no other plan fits, planning tells what
        // is wrong.
        let Ok(plan) = variant.build(bindings, &context) else {
            engine.plans().forget(key, variant);
            continue;
        };
        let has_own_task = compile_patterns(plan.as_ref())?;
        context.patience().end_planning();
        let answer = &variant.answer;
        let template = match kind {
            QueryKind::Construct => {
                let template = constants.shape.template(constants.constants);
                let column = |variable: &Variable| {
                    let column = answer.template_columns.get(variable.as_str());
                    column.copied().flatten()
                };
                let id = |iri: &str| match answer.template_ids.get(iri) {
                    Some(id) => Some(*id),
                    None => constants.id_of(iri).map(Some),
                };
                Template::compile_with(&context, &template, column, &id)?
            }
            QueryKind::Select | QueryKind::Ask | QueryKind::Describe => Template::default(),
        };
        return Ok(Some(PreparedQuery {
            kind,
            variables: Arc::clone(&answer.variables),
            planning_cost: context.view().cost(),
            columns: answer.columns.clone(),
            prologue: explain::prologue(text).into(),
            template,
            gives_each_triple_once: answer.gives_each_triple_once,
            described: answer.described.clone(),
            is_parallel: false,
            has_own_task,
            has_run: AtomicBool::new(false),
            plan,
            estimates: variant.estimates.clone(),
            context,
            task: engine.task(options),
            runtime: Arc::clone(engine.runtime()),
            limits: engine.limits(options.timeout),
            preparation: Preparation {
                parse: parsed - started,
                plan: parsed.elapsed(),
            },
        }));
    }
    Ok(None)
}

/// The context of a query.
fn context(
    engine: &Engine,
    view: &Arc<ReadView>,
    options: &QueryOptions,
    (base_iri, now): (Option<String>, Option<DateTime>),
) -> Result<Arc<QueryContext>, QueryError> {
    let limit = options
        .planning_timeout
        .or(engine.limits(options.timeout).timeout);
    let patience = Patience::new(limit, options.waiting.clone());
    let patience = Arc::new(patience.paid_by(options.spending.clone()));
    let context = ContextOptions {
        base_iri,
        now,
        ..engine.context_options(patience, options.memory_pool())
    };
    Ok(QueryContext::new(Arc::clone(view), context)?)
}

/// Plans a query of our own about what a text has asked. Nothing of it is kept.
pub(crate) fn prepare_parsed(
    engine: &Engine,
    (text, query): (&str, &Query),
    view: &Arc<ReadView>,
    options: &QueryOptions,
) -> Result<PreparedQuery, QueryError> {
    let now = Instant::now();
    prepared(engine, (text, query), ((now, now), view), options, None)
}

/// Plans a query that was read, and keeps its plan for the constants and under the key that are
/// given.
fn prepared(
    engine: &Engine,
    (text, query): (&str, &Query),
    ((started, parsed), view): ((Instant, Instant), &Arc<ReadView>),
    options: &QueryOptions,
    keeping: Option<(PlanKey, Constants<'_>)>,
) -> Result<PreparedQuery, QueryError> {
    let (kind, pattern) = form(query);
    let source = Source {
        view: Arc::clone(view),
        pattern,
        dataset: query.dataset(),
        base_iri: query.base_iri().map(|iri| iri.as_str().to_owned()),
        now: None,
        language_tags: TagFinder::in_text(TagSyntax::At, text),
        service: engine.options().service.clone(),
        is_ask: kind == QueryKind::Ask,
        is_set: is_set(query),
        is_repeated: false,
        is_kept: keeping.is_some() && query.dataset().is_none(),
    };
    let wanted = |group: &Group, normaliser: &mut Normaliser<'_>| {
        let (variables, vars) = answer_variables(query, group, normaliser);
        let template_vars = template_variables(query, normaliser);
        let mut needed = VarSet::of(vars.iter().copied());
        needed.extend(&VarSet::of(template_vars.values().copied()));
        (needed, (variables, vars, template_vars))
    };
    let (planned, (variables, vars, template_vars)) = source.plan(engine, options, wanted)?;
    let template = match query {
        Query::Construct { template, .. } => {
            Template::compile(&planned.context, template, |variable| {
                let var = template_vars.get(variable.as_str())?;
                planned.relation.column(*var)
            })?
        }
        _ => Template::default(),
    };
    let columns = vars.iter().map(|var| planned.relation.column(*var));
    let columns: Vec<_> = columns.collect();
    let gives_each_triple_once = gives_each_triple_once(query, &planned.dataset);
    if let (Some((key, constants)), Some(counts)) = (keeping, planned.counts) {
        let template_columns = template_vars
            .into_iter()
            .map(|(name, var)| (name, planned.relation.column(var)));
        let answer = KeptAnswer {
            variables: Arc::clone(&variables),
            columns: columns.clone(),
            template_columns: template_columns.collect(),
            template_ids: template_ids(query, planned.context.snapshot())?,
            gives_each_triple_once,
            described: planned.dataset.graphs(),
        };
        let made = MadePlan {
            plan: &planned.relation.plan,
            estimates: &planned.estimates,
            counts,
        };
        match KeptQuery::of(made, constants, &planned.context, answer) {
            Some(kept) => engine.plans().keep(key, kept),
            None => engine
                .plans()
                .refuse(key, planned.context.snapshot().commit()),
        }
    }
    Ok(PreparedQuery {
        kind,
        variables,
        planning_cost: planned.context.view().cost(),
        columns,
        prologue: explain::prologue(text).into(),
        template,
        gives_each_triple_once,
        described: planned.dataset.graphs(),
        is_parallel: planned.is_parallel,
        has_own_task: planned.has_own_task,
        has_run: AtomicBool::new(false),
        plan: planned.relation.plan,
        estimates: planned.estimates,
        context: planned.context,
        task: engine.task(options),
        runtime: Arc::clone(engine.runtime()),
        limits: engine.limits(options.timeout),
        preparation: Preparation {
            parse: parsed - started,
            plan: parsed.elapsed(),
        },
    })
}

/// What is planned, and what is seen: the pattern of a query, or the `WHERE` of an update.
struct Source<'p> {
    view: Arc<ReadView>,
    pattern: &'p GraphPattern,
    /// `FROM`, or `USING`.
    dataset: Option<&'p QueryDataset>,
    base_iri: Option<String>,
    /// What `NOW()` gives, if it was asked before.
    now: Option<DateTime>,
    /// How `SERVICE` asks other endpoints.
    service: Option<ServiceOptions>,
    /// How the text writes language tags.
    language_tags: LanguageTags,
    /// Whether only the existence of a solution is asked for.
    is_ask: bool,
    /// Whether it does not matter how often a solution comes.
    is_set: bool,
    /// Whether rows must come in the same order each time.
    is_repeated: bool,
    /// Whether the plan is to be kept, for which it must be known what was counted.
    is_kept: bool,
}

/// A plan with what it is run and read with.
struct Planned {
    relation: Relation,
    estimates: PlanEstimates,
    context: Arc<QueryContext>,
    dataset: Dataset,
    is_parallel: bool,
    has_own_task: bool,
    /// What was counted, of a plan that may be kept.
    counts: Option<Counts>,
}

impl Source<'_> {
    /// Normalises and plans; `wanted` tells which variables are needed of the normalised group, and
    /// anything else.
    fn plan<T>(
        self,
        engine: &Engine,
        options: &QueryOptions,
        wanted: impl FnOnce(&Group, &mut Normaliser<'_>) -> (VarSet, T),
    ) -> Result<(Planned, T), QueryError> {
        let context = context(engine, &self.view, options, (self.base_iri, self.now))?;
        context.note_language_tags(&self.language_tags);
        let mapped = seen_mapped(engine, &self.view, &context)?;
        let dataset = dataset(&context, self.dataset, options, mapped.as_ref())?;
        let named_graphs = |most| named_graphs(&self.view, most);
        let mut normaliser = Normaliser::new(&context, &dataset, &named_graphs, options.tuning)
            .with_mapped(mapped.as_ref());
        let limit = engine.limits(options.timeout).timeout;
        let known_weights = |weight: &EdgeWeight, scope: &Scope| {
            upkeep::table(engine, &self.view, weight, scope, limit)
        };
        if options.tuning.rewrites && mapped.is_none() && dataset.named.is_none() {
            normaliser.known_weights = Some(&known_weights);
        }
        let group = normaliser.query(self.pattern)?;
        let (needed, rest) = wanted(&group, &mut normaliser);
        let has_texts = normaliser.has_texts;
        let estimator = Estimator::new(&self.view);
        let mut planner = Planner::new(
            Arc::clone(&context),
            estimator,
            normaliser.table,
            options.tuning,
        )
        .with_service(self.service)
        .with_orders(engine.orders());
        planner.is_set = self.is_set;
        let mut relation = match self.is_ask {
            false => planner.group(&group, None, &needed, None)?,
            true => planner.any_solution(group)?,
        };
        planner.check_depth(&relation.plan)?;
        let in_one = Arc::clone(&relation.plan);
        if !self.is_repeated {
            relation.plan = planner.parallel(relation.plan)?;
        }
        let has_shared = compile_patterns(relation.plan.as_ref())?;
        let is_parallel = !Arc::ptr_eq(&in_one, &relation.plan);
        context.patience().end_planning();
        let has_own_task = is_parallel || has_shared;
        // What a search has found is of one state, and of who asks.
        let has_found = has_texts || planner.asked_places.get();
        let may_be_kept = self.is_kept && !is_parallel && !has_found;
        let planned = Planned {
            counts: may_be_kept.then(|| planner.counts()).flatten(),
            is_parallel,
            has_own_task,
            estimates: planner.estimates.of_plan(&relation.plan),
            relation,
            context,
            dataset,
        };
        Ok((planned, rest))
    }
}

/// The mapped graphs that a view shows, with ids for their names: a rule about a graph holds
/// however the graph is made.
fn seen_mapped(
    engine: &Engine,
    view: &ReadView,
    context: &QueryContext,
) -> Result<Option<SeenMapped>, QueryError> {
    let Some(mapped) = engine.mapped_in(view) else {
        return Ok(None);
    };
    let dataset = mapped.of_query(view.snapshot())?;
    let shown = view.scope().graphs();
    let is_seen = |name: &&str| shown.is_none_or(|graphs| graphs.contains(Some(&iri(name))));
    let names = dataset.names().into_iter().filter(is_seen);
    let graphs = names.map(|name| Ok((context.intern(&Term::iri(name))?, name.into())));
    let graphs = graphs.collect::<Result<_, QueryError>>()?;
    Ok(Some(SeenMapped { dataset, graphs }))
}

fn iri(name: &str) -> Term<'static> {
    Term::iri(name.to_owned())
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
        Query::Construct { template, .. } => template
            .iter()
            .all(|triple| is_same_each_time(&triple.subject) && is_same_each_time(&triple.object)),
    }
}

/// Whether a term of a template is the same for equal solutions.
pub(crate) fn is_same_each_time(term: &TermPattern) -> bool {
    match term {
        TermPattern::NamedNode(_) | TermPattern::Literal(_) | TermPattern::Variable(_) => true,
        TermPattern::BlankNode(_) | TermPattern::Triple(_) => false,
    }
}

/// Whether no triple of a `CONSTRUCT` can come twice, so that none has to be remembered: each
/// solution is another triple of one graph, and all its variables are in the one triple that is
/// made of it. So is the answer for a whole graph.
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
    if is_of_whole_graphs(template, pattern, dataset) {
        return true;
    }
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
        is_same_each_time(&triple.subject) && is_same_each_time(&triple.object)
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

/// Whether a template of quads gives back what was found, where it was found: of each graph with a
/// name, and before that of the default graph if that is asked for.
fn is_of_whole_graphs(
    template: &[TriplePattern],
    pattern: &GraphPattern,
    dataset: &Dataset,
) -> bool {
    let (default, named) = match pattern {
        GraphPattern::Union { left, right } => match &**left {
            GraphPattern::Bgp { patterns } => (patterns.as_slice(), &**right),
            _ => return false,
        },
        named => (&[][..], named),
    };
    let GraphPattern::Graph {
        name: NamedNodePattern::Variable(graph),
        inner,
    } = named
    else {
        return false;
    };
    let GraphPattern::Bgp { patterns: named } = &**inner else {
        return false;
    };
    let Some((made_in_default, [mark, made_in_named @ ..])) =
        template.split_at_checked(default.len())
    else {
        return false;
    };
    let is_of_graph = match template_graph(mark) {
        Some(Some(TermPattern::Variable(name))) => name == graph,
        _ => false,
    };
    let mut seen = HashSet::new();
    seen.insert(graph.clone());
    let all_different = default.iter().chain(named).all(|triple| {
        let predicate = match &triple.predicate {
            NamedNodePattern::Variable(variable) => Some(variable),
            NamedNodePattern::NamedNode(_) => None,
        };
        let ends = [&triple.subject, &triple.object].map(|term| match term {
            TermPattern::Variable(variable) => Some(variable),
            _ => None,
        });
        let mut variables = ends.into_iter().chain([predicate]);
        variables.all(|variable| variable.is_some_and(|it| seen.insert(it.clone())))
    });
    default.len() <= 1
        && named.len() == 1
        && all_different
        && matches!(dataset.default, Scope::Default)
        && is_of_graph
        && made_in_default == default
        && made_in_named == named
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

/// The ids of the predicates of a template. Nodes are other ones in each query, mostly.
fn template_ids(
    query: &Query,
    snapshot: &Snapshot,
) -> Result<HashMap<Box<str>, Option<TermId>>, QueryError> {
    let mut ids = HashMap::new();
    if let Query::Construct { template, .. } = query {
        let triples = template.iter().filter(|it| template_graph(it).is_none());
        for triple in triples {
            if let NamedNodePattern::NamedNode(node) = &triple.predicate {
                let id = snapshot.term_id(&Term::iri(node.as_str()))?;
                ids.insert(node.as_str().into(), id);
            }
        }
    }
    Ok(ids)
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

/// The `WHERE` of an update.
pub(crate) struct Pattern<'p> {
    pub(crate) pattern: &'p GraphPattern,
    /// The variables whose values are wanted.
    pub(crate) variables: &'p [Variable],
    pub(crate) using: Option<&'p QueryDataset>,
    pub(crate) base_iri: Option<String>,
    pub(crate) now: DateTime,
    pub(crate) language_tags: &'p LanguageTags,
    pub(crate) service: Option<ServiceOptions>,
    /// Whether it does not matter how often a solution comes.
    pub(crate) is_set: bool,
}

/// A planned `WHERE`.
pub(crate) struct PreparedPattern {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    /// Whether parts of the plan know by the task's context which execution they belong to.
    pub(crate) has_own_task: bool,
    pub(crate) context: Arc<QueryContext>,
    /// The column of each variable that can be bound.
    pub(crate) columns: HashMap<String, usize>,
}

/// Plans the `WHERE` of an update over what its asker sees.
pub(crate) fn prepare_pattern(
    engine: &Engine,
    view: Arc<ReadView>,
    pattern: &Pattern<'_>,
    options: &QueryOptions,
) -> Result<PreparedPattern, QueryError> {
    let projected = GraphPattern::Project {
        inner: Box::new(pattern.pattern.clone()),
        variables: pattern.variables.to_vec(),
    };
    let source = Source {
        view,
        pattern: &projected,
        dataset: pattern.using,
        base_iri: pattern.base_iri.clone(),
        now: Some(pattern.now),
        language_tags: pattern.language_tags.clone(),
        service: pattern.service.clone(),
        is_ask: false,
        is_set: pattern.is_set,
        // What other endpoints are asked depends on the order, and is asked again when they have
        // answered.
        is_repeated: pattern.service.is_some(),
        is_kept: false,
    };
    let wanted = |_: &Group, normaliser: &mut Normaliser<'_>| {
        let variables = pattern.variables.iter();
        let vars: Vec<Var> = variables.map(|it| normaliser.variable(it)).collect();
        (VarSet::of(vars.iter().copied()), vars)
    };
    let (planned, vars) = source.plan(engine, options, wanted)?;
    let columns = pattern
        .variables
        .iter()
        .zip(vars)
        .filter_map(|(name, var)| {
            let column = planned.relation.column(var)?;
            Some((name.as_str().to_owned(), column))
        });
    Ok(PreparedPattern {
        columns: columns.collect(),
        plan: planned.relation.plan,
        has_own_task: planned.has_own_task,
        context: planned.context,
    })
}
