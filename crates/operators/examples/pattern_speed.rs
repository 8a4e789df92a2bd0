//! Measures patterns on a BSBM database:
//! `cargo run --release --example pattern_speed -- DIR [WORD]`, where WORD selects patterns by
//! name.
//!
//! The C library's allocator gives large buffers back to the system and takes them again, which
//! costs more than the work measured here. The product uses another one; here set
//! `MALLOC_MMAP_THRESHOLD_` and `MALLOC_TRIM_THRESHOLD_` to 4294967296.
//!
//! Prints for each pattern the rows, the time of one run (plan and execution, median of several),
//! and the time per row.

use std::sync::Arc;
use std::time::Instant;

use datafusion_execution::TaskContext;
use datafusion_physical_plan::ExecutionPlan;
use futures::StreamExt;
use orrery_operators::pattern::{GraphScope, PatternExec, PatternSpecification, QuadPattern, Slot};
use orrery_operators::{ContextOptions, QueryContext};
use orrery_storage::Database;
use orrery_term::Term;

const BSBM: &str = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/";
const INSTANCES: &str = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/";
const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const RDFS_LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let directory = std::env::args().nth(1).ok_or("usage: pattern_speed DIR")?;
    let database = Database::open(&directory)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let context = QueryContext::new(database.view_of_process(), ContextOptions::default())?;
    let product =
        "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/dataFromProducer1/Product1";
    let cases: [(&str, Vec<[String; 3]>); 9] = [
        ("one triple", vec![row(product, RDFS_LABEL, "?label")]),
        (
            "star of 5 around a product",
            vec![
                row(product, RDFS_LABEL, "?label"),
                row(product, &bsbm("producer"), "?producer"),
                row("?producer", RDFS_LABEL, "?producerLabel"),
                row(product, &bsbm("productFeature"), "?feature"),
                row("?feature", RDFS_LABEL, "?featureLabel"),
            ],
        ),
        (
            "scan of one predicate",
            vec![row("?s", &bsbm("reviewFor"), "?o")],
        ),
        ("scan of everything", vec![row("?s", "?p", "?o")]),
        (
            "join of two predicates, in order",
            vec![
                row("?review", &bsbm("reviewFor"), "?product"),
                row("?review", RDF_TYPE, "?type"),
            ],
        ),
        (
            "join of two predicates, out of order",
            vec![
                row("?review", &bsbm("reviewFor"), "?product"),
                row("?product", RDFS_LABEL, "?label"),
            ],
        ),
        (
            "offers of the products of each producer",
            vec![
                row("?product", &bsbm("producer"), "?producer"),
                row("?offer", &bsbm("product"), "?product"),
                row("?offer", &bsbm("price"), "?price"),
            ],
        ),
        (
            "countries of reviewers of products with a feature",
            vec![
                row(
                    "?product",
                    &bsbm("productFeature"),
                    &format!("{INSTANCES}ProductFeature1"),
                ),
                row("?review", &bsbm("reviewFor"), "?product"),
                row("?review", "http://purl.org/stuff/rev#reviewer", "?person"),
                row("?person", &bsbm("country"), "?country"),
            ],
        ),
        (
            "pairs of products with a common feature of one product",
            vec![
                row(product, &bsbm("productFeature"), "?feature"),
                row("?other", &bsbm("productFeature"), "?feature"),
                row("?other", &bsbm("productFeature"), "?another"),
            ],
        ),
    ];
    let word = std::env::args().nth(2).unwrap_or_default();
    for (name, patterns) in cases {
        if !name.contains(&word) {
            continue;
        }
        let patterns: Vec<QuadPattern> = patterns
            .iter()
            .map(|triple| pattern(&context, triple))
            .collect::<Outcome<_>>()?;
        let mut times = Vec::new();
        let mut rows = 0;
        let begun = Instant::now();
        while times.len() < 5 || (begun.elapsed().as_millis() < 300 && times.len() < 1_000) {
            let start = Instant::now();
            rows = runtime.block_on(run(plan(&context, patterns.clone())?))?;
            times.push(start.elapsed());
        }
        times.sort();
        let median = times[times.len() / 2];
        let per_row = median.as_nanos() as f64 / rows.max(1) as f64;
        println!("{name}: {rows} rows, {median:?}, {per_row:.1} ns/row");
    }
    Ok(())
}

fn bsbm(name: &str) -> String {
    format!("{BSBM}{name}")
}

fn row(subject: &str, predicate: &str, object: &str) -> [String; 3] {
    [subject, predicate, object].map(str::to_owned)
}

fn pattern(context: &QueryContext, triple: &[String; 3]) -> Outcome<QuadPattern> {
    let slot = |text: &str| -> Outcome<Slot> {
        Ok(match text.strip_prefix('?') {
            Some(name) => Slot::Variable(Arc::from(name)),
            None => Slot::Constant(context.intern(&Term::Iri(text.into()))?),
        })
    };
    Ok(QuadPattern {
        subject: slot(&triple[0])?,
        predicate: slot(&triple[1])?,
        object: slot(&triple[2])?,
        graph: GraphScope::Default,
    })
}

fn plan(
    context: &Arc<QueryContext>,
    patterns: Vec<QuadPattern>,
) -> Outcome<Arc<dyn ExecutionPlan>> {
    let mut output = Vec::new();
    for pattern in &patterns {
        for variable in pattern.variables() {
            if !output.contains(variable) {
                output.push(Arc::clone(variable));
            }
        }
    }
    let specification = PatternSpecification::inner(patterns, output);
    Ok(PatternExec::try_new(
        Arc::clone(context),
        None,
        specification,
    )?)
}

async fn run(plan: Arc<dyn ExecutionPlan>) -> Outcome<usize> {
    let mut stream = plan.execute(0, Arc::new(TaskContext::default()))?;
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        rows += batch?.num_rows();
    }
    Ok(rows)
}
