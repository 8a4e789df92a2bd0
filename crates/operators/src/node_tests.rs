//! Tests of every plan node with other inputs: its own, different ones, too many and too few.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use datafusion_execution::TaskContext;
use datafusion_physical_expr_common::sort_expr::{LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::expressions::Column;
use datafusion_physical_plan::limit::GlobalLimitExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions, collect, displayable,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use orrery_geo::Relation;
use orrery_term::{Term, TermId};
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, GraphPattern, PropertyPathExpression,
};
use spargebra::term::{NamedNode, TermPattern, TriplePattern, Variable};

use crate::aggregate::{self, grouped};
use crate::algorithms::{Algorithm, AlgorithmColumn, AlgorithmExec, AlgorithmSpecification};
use crate::codec::{self, Destination, EncodedPlan};
use crate::complement::{ComplementExec, ComplementInputs};
use crate::context::{ContextOptions, QueryContext};
use crate::count::CountExec;
use crate::dealing::{Dealing, Spread};
use crate::graph_names::GraphNamesExec;
use crate::join::{JoinMode, JoinSpecification, KeysExec, SolutionJoinExec};
use crate::kept::KeptPlan;
use crate::nodes::{
    AppendExec, CandidatesExec, DistinctExec, FirstEnoughExec, LimitOfEachExec, NumberedExec,
    OrderExec, SharedExec,
};
use crate::path::{PathExec, PathSpecification};
use crate::pattern::ordered::{FirstRows, OrderedExec};
use crate::pattern::{
    FoundIds, GivenIds, GraphScope, PatternExec, PatternSpecification, PatternStep, QuadPattern,
    Slot,
};
use crate::places::{Nearness, PlacesCondition, PlacesJoinExec};
use crate::rows::RowsExec;
use crate::run_counts::{RunCountsExec, RunCountsSpecification};
use crate::search::{
    FrontierExec, PathKind, SearchColumn, SearchExec, SearchInputs, SearchSpecification,
};
use crate::service::{
    Endpoint, RemoteAnswer, RemoteEndpoints, RemoteFailure, ServiceExec, ServiceOptions,
    ServiceSpecification, ServiceVariable,
};
use crate::test_support::{Quad, Solution, context_of, names, term, var};

type Plan = Arc<dyn ExecutionPlan>;

/// Made while a plan runs, of a stream that is read once, or standing for an input of a plan that
/// is kept: no plan that runs holds them. And the order of kept plans, which goes by the name of
/// the sort that it stands for. What solutions are made of that come of no quads is known to its
/// own process, and so is a table of edge weights. A frontier gives nothing by itself; it is below
/// the search for paths.
const NOT_IN_PLANS: [&str; 6] = [
    "StreamExec",
    "StandInExec",
    "OrderExec",
    "SourceExec",
    "FrontierExec",
    "WeightsExec",
];

/// Subjects 0 to 39 with the predicate 100, each to itself times ten; the first ten in the graph 7
/// as well.
fn quads() -> Vec<Quad> {
    let triple = |subject: i64| [term(subject), term(100), term(subject * 10)];
    let in_default = (0..40).map(triple);
    let in_named = (0..10).map(triple);
    let quad = |[s, p, o]: [TermId; 3], graph| [s, p, o, graph];
    in_default
        .map(|triple| quad(triple, TermId::DEFAULT_GRAPH))
        .chain(in_named.map(|triple| quad(triple, term(7))))
        .collect()
}

fn pattern() -> QuadPattern {
    QuadPattern {
        subject: var("s"),
        predicate: Slot::Constant(term(100)),
        object: var("o"),
        graph: GraphScope::Default,
    }
}

/// Twenty rows of `?s` and `?x`.
fn rows() -> Plan {
    let row = |number: i64| vec![Some(term(number / 2)), Some(term(number % 5))];
    let rows: Vec<_> = (0..20).map(row).collect();
    RowsExec::try_new(&names(&["s", "x"]), &rows).unwrap()
}

fn scan(context: &Arc<QueryContext>) -> Plan {
    let specification = PatternSpecification::inner(vec![pattern()], names(&["s", "o"]));
    PatternExec::try_new(Arc::clone(context), None, specification).unwrap()
}

/// A pattern that is given what one of its variables may be.
fn given(context: &Arc<QueryContext>) -> Plan {
    let mut specification = PatternSpecification::inner(vec![pattern()], names(&["s", "o"]));
    let ids = vec![term(3), term(17), term(99)];
    specification.given = vec![GivenIds::new(Arc::from("s"), ids)];
    PatternExec::try_new(Arc::clone(context), None, specification).unwrap()
}

/// Places of one side that are within an area of the other.
fn join_by_place(context: &Arc<QueryContext>) -> Plan {
    let rows = |variable: &str, texts: &[&str]| {
        let id = |text: &&str| {
            let term = Term::typed(text.to_string(), orrery_geo::WKT_LITERAL);
            vec![Some(context.expressions().intern(&term).unwrap())]
        };
        let rows: Vec<_> = texts.iter().map(id).collect();
        RowsExec::try_new(&names(&[variable]), &rows).unwrap()
    };
    let condition = PlacesCondition {
        left: Arc::from("a"),
        right: Arc::from("b"),
        nearness: Nearness::Relation(Relation::SfWithin),
        is_turned: false,
    };
    let points = rows("a", &["POINT(1 1)", "POINT(5 5)", "POINT(9 9)"]);
    let areas = rows("b", &["POLYGON((0 0, 6 0, 6 6, 0 6, 0 0))"]);
    let output = names(&["b", "a"]);
    PlacesJoinExec::try_new(Arc::clone(context), points, areas, condition, &output).unwrap()
}

fn sum_of_x() -> [(String, AggregateExpression); 1] {
    let sum = AggregateExpression::FunctionCall {
        name: AggregateFunction::Sum,
        expr: Expression::Variable(Variable::new_unchecked("x")),
        distinct: false,
    };
    [("sum".to_owned(), sum)]
}

fn group(context: &Arc<QueryContext>, mode: AggregateMode) -> Plan {
    let input = rows();
    let schema = input.schema();
    let functions = aggregate::plan(&sum_of_x(), &schema, context).unwrap();
    let key = Arc::new(Column::new("s", 0));
    let by = PhysicalGroupBy::new_single(vec![(key, "s".to_owned())]);
    grouped(AggregateExec::try_new(mode, by, functions, vec![None], input, schema).unwrap())
}

fn complement(context: &Arc<QueryContext>) -> Plan {
    let groups = (1..4).map(|group| vec![Some(term(group))]);
    let groups = RowsExec::try_new(&names(&["g"]), &groups.collect::<Vec<_>>()).unwrap();
    let matches = [vec![Some(term(1)), Some(term(2))]];
    let matches = RowsExec::try_new(&names(&["g", "s"]), &matches).unwrap();
    let members = rows();
    let functions = aggregate::plan(&sum_of_x(), &members.schema(), context).unwrap();
    let inputs = ComplementInputs {
        groups,
        members,
        matches,
    };
    ComplementExec::try_new(inputs, (&Arc::from("g"), &Arc::from("s")), functions).unwrap()
}

fn ordered(context: &Arc<QueryContext>) -> Plan {
    let wanted = FirstRows {
        variable: Arc::from("o"),
        is_descending: true,
        rows: 2,
        rows_in_all: 40.0,
    };
    let mut step = PatternStep::new(pattern());
    step.estimated_rows = Some(40.0);
    let mut specification = PatternSpecification::inner(Vec::new(), names(&["s", "o"]));
    specification.steps = vec![step];
    let scan = PatternExec::try_new(Arc::clone(context), None, specification).unwrap();
    OrderedExec::try_new(&scan, wanted).unwrap().unwrap()
}

fn path(context: &Arc<QueryContext>, input: Option<Plan>) -> Plan {
    let predicate = NamedNode::new_unchecked("http://example.org/none");
    let specification = PathSpecification {
        subject: var("s"),
        path: PropertyPathExpression::ZeroOrMore(Box::new(predicate.into())),
        object: var("end"),
        graph: GraphScope::Default,
        is_set: false,
        output: names(&["s", "end"]),
    };
    PathExec::try_new(Arc::clone(context), input, specification).unwrap()
}

/// How far it is from each of the rows to whatever is reached, over all edges or by frontiers.
fn search(context: &Arc<QueryContext>, is_by_frontier: bool) -> Plan {
    let column = |name: &str, column| (Arc::from(name), column);
    let specification = SearchSpecification {
        kind: PathKind::Shortest { is_all: false },
        is_cyclic: false,
        is_weighted: false,
        is_bidirectional: false,
        allows_empty: false,
        is_by_path: true,
        source: var("s"),
        destination: var("end"),
        length_min: 0,
        length_max: Some(3),
        offset: 0,
        limit: None,
        begins_whole: !is_by_frontier,
        plain: None,
        exported: 0,
        output: vec![
            column("s", SearchColumn::Source),
            column("x", SearchColumn::Input),
            column("end", SearchColumn::Destination),
            column("length", SearchColumn::Length),
        ],
    };
    let over = |input| {
        let specification = PatternSpecification::inner(vec![pattern()], names(&["s", "o"]));
        PatternExec::try_new(Arc::clone(context), input, specification).unwrap()
    };
    let at = |name: &str| over(Some(FrontierExec::leaf(&Arc::from(name))));
    let inputs = SearchInputs {
        input: Some(rows()),
        edges: over(None),
        by_frontier: is_by_frontier.then(|| [at("s"), at("o")]),
    };
    SearchExec::try_new(Arc::clone(context), inputs, specification).unwrap()
}

fn degrees(context: &Arc<QueryContext>) -> Plan {
    let specification = AlgorithmSpecification {
        algorithm: Algorithm::Degree,
        output: vec![
            (Arc::from("n"), AlgorithmColumn::Node),
            (Arc::from("in"), AlgorithmColumn::InDegree),
        ],
    };
    AlgorithmExec::over(Arc::clone(context), scan(context), specification)
}

/// Answers each request with the same two solutions.
#[derive(Debug)]
struct TwoSolutions;

impl RemoteEndpoints for TwoSolutions {
    fn ask(
        &self,
        _: &str,
        _: String,
        _: &'static str,
    ) -> BoxFuture<'static, Result<RemoteAnswer, RemoteFailure>> {
        let answer = r#"{"head":{"vars":["s","y"]},"results":{"bindings":[
            {"s":{"type":"literal","value":"1","datatype":"http://www.w3.org/2001/XMLSchema#integer"},
             "y":{"type":"literal","value":"a"}},
            {"s":{"type":"literal","value":"2","datatype":"http://www.w3.org/2001/XMLSchema#integer"},
             "y":{"type":"literal","value":"b"}}]}}"#;
        let body = futures::stream::iter([Ok(answer.into())]);
        let answer = RemoteAnswer {
            content_type: Some("application/sparql-results+json".to_owned()),
            body: Box::pin(body),
        };
        futures::future::ready(Ok(answer)).boxed()
    }
}

/// Endpoints that answer.
pub(crate) fn service_options() -> ServiceOptions {
    ServiceOptions::new(Arc::new(TwoSolutions))
}

fn service(context: &Arc<QueryContext>, input: Option<Plan>) -> Plan {
    let variable = |name: &str| ServiceVariable {
        name: Variable::new_unchecked(name),
        column: Arc::from(name),
        is_certain: true,
    };
    let triple = TriplePattern {
        subject: TermPattern::Variable(Variable::new_unchecked("s")),
        predicate: NamedNode::new_unchecked("http://example.org/p").into(),
        object: TermPattern::Variable(Variable::new_unchecked("y")),
    };
    let specification = ServiceSpecification {
        endpoint: Endpoint::Iri(Arc::from("http://example.org/sparql")),
        pattern: GraphPattern::Bgp {
            patterns: vec![triple],
        },
        is_silent: false,
        sends_keys: true,
        variables: vec![variable("s"), variable("y")],
        output: names(&["s", "x", "y"]),
    };
    ServiceExec::try_new(Arc::clone(context), service_options(), input, specification).unwrap()
}

/// Of two patterns.
fn run_counts(count: Arc<str>) -> RunCountsSpecification {
    let other = QuadPattern {
        subject: var("t"),
        ..pattern()
    };
    RunCountsSpecification {
        patterns: vec![pattern(), other],
        key: Arc::from("o"),
        counts: vec![count],
    }
}

/// One node of every kind at least, each with rows to give.
fn one_of_each() -> Vec<Plan> {
    let plans = one_of_each_with_contexts().into_iter();
    plans.map(|(plan, _)| plan).collect()
}

/// The same, each with the context that its nodes share.
pub(crate) fn one_of_each_with_contexts() -> Vec<(Plan, Arc<QueryContext>)> {
    let context = &context_of(&quads());
    let plain = &context_of(&quads()[..40]);
    let reads_counts = |plan: &Plan| plan.is::<CountExec>() || plan.is::<RunCountsExec>();
    let plans = one_of_each_over(context, plain).into_iter();
    plans
        .map(|plan| {
            let context = if reads_counts(&plan) { plain } else { context };
            (plan, Arc::clone(context))
        })
        .collect()
}

fn one_of_each_over(context: &Arc<QueryContext>, plain: &Arc<QueryContext>) -> Vec<Plan> {
    let name: Arc<str> = Arc::from("n");
    let optional = PatternSpecification::inner(vec![pattern()], names(&["s", "x", "o"]));
    let over_rows = PatternExec::try_new(Arc::clone(context), Some(rows()), optional).unwrap();
    let spread = Spread {
        partitions: 3,
        dealing: Dealing::Turns(7),
    };
    let scanned = scan(context);
    let pattern_exec = scanned.downcast_ref::<PatternExec>().unwrap();
    let join = JoinSpecification {
        mode: JoinMode::Left,
        filters: Vec::new(),
        output: names(&["s", "x", "o"]),
    };
    let join = SolutionJoinExec::try_new(Arc::clone(context), rows(), scan(context), join);
    let places = join_by_place(context);
    let partitioned = pattern_exec.spread(spread).unwrap();
    let whole_path = path(context, None);
    vec![
        rows(),
        GraphNamesExec::try_new(Arc::clone(context), Arc::from("g"), None).unwrap(),
        CountExec::try_new(plain, &pattern(), Arc::clone(&name))
            .unwrap()
            .unwrap(),
        RunCountsExec::try_new(plain, run_counts(name))
            .unwrap()
            .unwrap(),
        over_rows,
        places,
        Arc::clone(&partitioned),
        scan(context),
        given(context),
        ordered(context),
        path(context, Some(rows())),
        whole_path
            .downcast_ref::<PathExec>()
            .unwrap()
            .spread(spread)
            .unwrap(),
        whole_path,
        search(context, true),
        search(context, false),
        degrees(context),
        service(context, Some(rows())),
        service(context, None),
        join.unwrap(),
        group(context, AggregateMode::Single),
        complement(context),
        Arc::new(AppendExec::new(rows(), [rows(), rows()])),
        Arc::new(CandidatesExec::new(partitioned, 1, false, 3)),
        Arc::new(CandidatesExec::new(rows(), 1, true, 3)),
        KeysExec::try_new(rows(), FoundIds::new(Arc::from("s"), 0), 9).unwrap(),
        Arc::new(DistinctExec::new(rows())),
        // None but the last one decides: the first has too few for that.
        Arc::new(FirstEnoughExec::new([rows()], rows(), 1_000)),
        Arc::new(LimitOfEachExec::new(rows(), vec![1], 1, Some(2))),
        Arc::new(NumberedExec::new(rows(), "n")),
        Arc::new(SharedExec::new(rows())),
    ]
}

/// Its solutions from all partitions, sorted.
pub(crate) fn run(plan: &Plan) -> Vec<Solution> {
    let plan: Plan = match plan.properties().partitioning.partition_count() {
        1 => Arc::clone(plan),
        _ => Arc::new(CoalescePartitionsExec::new(Arc::clone(plan))),
    };
    // What asks other endpoints parses their answers on a thread.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let batches = collect(plan, Arc::new(TaskContext::default()));
    crate::test_support::solutions(&runtime.block_on(batches).unwrap())
}

fn replace(plan: &Plan, children: Vec<Plan>) -> datafusion_common::Result<Plan> {
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(children, options)
}

fn children(plan: &Plan) -> Vec<Plan> {
    plan.children().into_iter().map(Arc::clone).collect()
}

/// Another node that gives what a node gives.
fn another(plan: &Plan) -> Plan {
    let children = children(plan).iter().map(another).collect();
    match plan.is::<RowsExec>() {
        // A leaf that stays what it is.
        true => Arc::new(GlobalLimitExec::new(Arc::clone(plan), 0, None)),
        false => replace(plan, children).unwrap(),
    }
}

fn is_same(plan: &Plan, children: &[Plan]) -> bool {
    let its = plan.children();
    its.len() == children.len() && its.iter().zip(children).all(|(a, b)| Arc::ptr_eq(a, b))
}

#[test]
fn every_node_over_its_own_and_over_equal_children_gives_the_same() {
    for plan in one_of_each() {
        let name = plan.name().to_owned();
        let expected = run(&plan);
        assert!(!expected.is_empty(), "{name} gives nothing");
        let partitions = plan.properties().partitioning.partition_count();
        let others: Vec<Plan> = children(&plan).iter().map(another).collect();
        for children in [children(&plan), others] {
            let rebuilt = replace(&plan, children.clone()).unwrap();
            assert!(is_same(&rebuilt, &children), "{name} has other children");
            assert_eq!(rebuilt.name(), name);
            assert_eq!(rebuilt.schema(), plan.schema(), "{name}");
            let rebuilt_partitions = rebuilt.properties().partitioning.partition_count();
            assert_eq!(rebuilt_partitions, partitions, "{name}");
            assert_eq!(run(&rebuilt), expected, "{name}");
            #[expect(deprecated, reason = "what DataFusion's own rules call")]
            let rebuilt = Arc::clone(&plan).with_new_children(children).unwrap();
            assert_eq!(run(&rebuilt), expected, "{name}");
        }
    }
}

#[test]
fn every_node_reads_the_children_that_it_is_given() {
    for plan in one_of_each() {
        // An ordered scan reads pieces of a pattern: it refuses what is none.
        let is_ordered = plan.is::<OrderedExec>();
        let children = children(&plan);
        for (number, child) in children.iter().enumerate() {
            let mut others = children.clone();
            let partitions = child.properties().partitioning.partition_count();
            let whole: Plan = match partitions {
                1 => Arc::clone(child),
                _ => Arc::new(CoalescePartitionsExec::new(Arc::clone(child))),
            };
            others[number] = Arc::new(GlobalLimitExec::new(whole, 0, Some(0)));
            let rebuilt = replace(&plan, others.clone());
            if is_ordered {
                assert!(rebuilt.is_err());
                continue;
            }
            let rebuilt = rebuilt.unwrap();
            assert!(is_same(&rebuilt, &others), "{}", plan.name());
            if plan.is::<FirstEnoughExec>() && number == 0 {
                continue;
            }
            // From the few rows it goes by the frontiers that leave nodes.
            let is_by_frontier = plan.is::<SearchExec>() && children.len() == 4;
            if is_by_frontier && (number == 1 || number == 3) {
                continue;
            }
            assert_ne!(run(&rebuilt), run(&plan), "{}", plan.name());
        }
    }
}

#[test]
fn no_node_takes_another_number_of_children() {
    for plan in one_of_each() {
        let mut more = children(&plan);
        more.push(rows());
        let error = replace(&plan, more).unwrap_err().to_string();
        assert!(error.contains(plan.name()), "{error}");
        let mut fewer = children(&plan);
        if fewer.pop().is_some() {
            let error = replace(&plan, fewer).unwrap_err().to_string();
            assert!(error.contains(plan.name()), "{error}");
        }
    }
}

#[test]
fn a_node_that_reads_one_partition_refuses_several() {
    let context = context_of(&quads());
    let spread = Spread {
        partitions: 2,
        dealing: Dealing::Queue,
    };
    let pattern = scan(&context);
    let pattern = pattern.downcast_ref::<PatternExec>().unwrap();
    let several = pattern.spread(spread).unwrap();
    let distinct: Plan = Arc::new(DistinctExec::new(scan(&context)));
    let error = replace(&distinct, vec![Arc::clone(&several)]).unwrap_err();
    assert!(error.to_string().contains("partitions"), "{error}");
    let candidates: Plan = Arc::new(CandidatesExec::new(scan(&context), 1, false, 3));
    let rebuilt = replace(&candidates, vec![several]).unwrap();
    assert_eq!(rebuilt.properties().partitioning.partition_count(), 2);
}

#[test]
fn what_is_of_all_rows_together_refuses_several_partitions() {
    let context = context_of(&quads());
    let two = UnionExec::try_new(vec![rows(), rows()]).unwrap();
    let pattern = |fetch| {
        let mut specification = PatternSpecification::inner(vec![pattern()], names(&["s", "o"]));
        specification.fetch = fetch;
        PatternExec::try_new(Arc::clone(&context), Some(rows()), specification).unwrap()
    };
    for whole in [group(&context, AggregateMode::Single), pattern(Some(3))] {
        let error = replace(&whole, vec![Arc::clone(&two)]).unwrap_err();
        assert!(error.to_string().contains("partitions"), "{error}");
        assert!(replace(&whole, vec![rows()]).is_ok());
    }
    for of_each in [group(&context, AggregateMode::Partial), pattern(None)] {
        let rebuilt = replace(&of_each, vec![Arc::clone(&two)]).unwrap();
        assert_eq!(rebuilt.properties().partitioning.partition_count(), 2);
    }
}

#[test]
fn every_node_comes_back_from_its_bytes_and_gives_the_same() {
    for (plan, context) in one_of_each_with_contexts() {
        let there = travelled(&plan, &context);
        let shown = |plan: &Plan| displayable(&**plan).indent(true).to_string();
        assert_eq!(shown(&there), shown(&plan));
        assert_eq!(there.schema(), plan.schema(), "{}", plan.name());
        let partitions = |plan: &Plan| plan.properties().partitioning.partition_count();
        assert_eq!(partitions(&there), partitions(&plan), "{}", plan.name());
        assert_eq!(run(&there), run(&plan), "{}", plan.name());
    }
}

#[test]
fn the_order_of_kept_plans_travels_as_a_sort() {
    let context = context_of(&quads());
    let input = scan(&context);
    let first = Column::new(input.schema().field(0).name(), 0);
    let keys = LexOrdering::new([PhysicalSortExpr::new_default(Arc::new(first))]).unwrap();
    let properties = OrderExec::properties_of(&input.schema());
    let order: Plan = Arc::new(OrderExec::new(input, keys, Some(5), properties));
    let there = travelled(&order, &context);
    assert!(there.is::<SortExec>());
    assert_eq!(run(&there), run(&order));
}

#[test]
fn a_node_that_can_be_kept_is_the_same_for_another_query() {
    let mut kept_kinds = BTreeSet::new();
    for (plan, context) in one_of_each_with_contexts() {
        let mut says_nothing = |_: &str, _: &[Expression]| None;
        let Some(kept) = KeptPlan::of(&plan, &[], &mut says_nothing) else {
            continue;
        };
        kept_kinds.insert(plan.name().to_owned());
        let expected = run(&plan);
        for _ in 0..2 {
            let mut bindings = kept.bind(Vec::new(), &[], &mut says_nothing).unwrap();
            let again = kept.build(&mut bindings, &[], &context).unwrap();
            let shown = |plan: &Plan| displayable(&**plan).indent(true).to_string();
            assert_eq!(shown(&again), shown(&plan));
            assert_eq!(again.schema(), plan.schema(), "{}", plan.name());
            let counted = |plan: &Plan| plan.metrics().and_then(|it| it.output_rows());
            assert_eq!(counted(&again).unwrap_or_default(), 0, "{}", plan.name());
            assert_eq!(run(&again), expected, "{}", plan.name());
        }
    }
    let kept_kinds: Vec<&str> = kept_kinds.iter().map(String::as_str).collect();
    assert_eq!(
        kept_kinds,
        [
            "AlgorithmExec",
            "AppendExec",
            "CandidatesExec",
            "DistinctExec",
            "LimitOfEachExec",
            "PathExec",
            "PatternExec",
            "RowsExec",
            "SearchExec",
            "SharedExec",
            "SolutionJoinExec",
        ]
    );
}

/// The plan as another process makes it.
pub(crate) fn travelled(plan: &Plan, context: &Arc<QueryContext>) -> Plan {
    let to = Destination {
        processes: 1,
        ..Destination::default()
    };
    let bytes = codec::encode(plan, context, to).unwrap();
    let service = service_options();
    let snapshot = Arc::clone(context.snapshot());
    let there = EncodedPlan::read(&bytes).unwrap();
    let there = there.build(snapshot, ContextOptions::default(), Some(&service), 1);
    there.unwrap().plan
}

/// Whoever adds a node adds it to [`one_of_each_over`], and so to the codec.
#[test]
fn no_kind_of_node_is_left_out() {
    let mut kinds = BTreeSet::new();
    collect_kinds(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut kinds,
    );
    for kind in NOT_IN_PLANS {
        assert!(kinds.remove(kind), "there is no {kind}");
    }
    let tested = one_of_each();
    let tested: BTreeSet<String> = tested.iter().map(|plan| plan.name().to_owned()).collect();
    assert_eq!(tested, kinds);
}

fn collect_kinds(directory: &Path, kinds: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_kinds(&path, kinds);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path).unwrap();
            let lines = source.lines();
            let kind = |line: &str| {
                let kind = line.strip_prefix("impl ExecutionPlan for ")?;
                Some(kind.trim_end_matches(" {").to_owned())
            };
            kinds.extend(lines.filter_map(kind));
        }
    }
}
