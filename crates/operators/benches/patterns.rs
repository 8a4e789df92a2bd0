//! Benchmark of scans and joins of basic graph patterns over 300,000 quads:
//! `cargo bench -p orrery-operators --bench patterns`.
//!
//! The rates are rows of the first step a second.

#![expect(clippy::unwrap_used, reason = "a bench stops at the first failure")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use datafusion_execution::TaskContext;
use datafusion_physical_plan::ExecutionPlan;
use futures::StreamExt;
use futures::executor::block_on;
use orrery_operators::pattern::{
    GraphScope, PatternExec, PatternMode, PatternSpecification, PatternStep, QuadPattern, Slot,
};
use orrery_operators::{ContextOptions, QueryContext};
use orrery_storage::build_small;
use orrery_term::Term;
use orrery_term::vocabulary::xsd;

const OFFERS: usize = 60_000;
const PRODUCTS: usize = 6_000;
const VENDORS: usize = 50;

fn iri(kind: &str, number: usize) -> Term<'static> {
    Term::iri(format!("http://example.com/{kind}{number}"))
}

/// Offers with a product (in scattered order), a price and a vendor; products with a label, and
/// every third with a number; every tenth vendor with a country.
fn context(directory: &std::path::Path) -> Arc<QueryContext> {
    let mut quads = Vec::new();
    let mut add = |subject: Term<'static>, predicate: usize, object: Term<'static>| {
        quads.push((subject, iri("p", predicate), object, None));
    };
    for offer in 0..OFFERS {
        add(
            iri("offer", offer),
            0,
            iri("product", offer * 7919 % PRODUCTS),
        );
        add(
            iri("offer", offer),
            1,
            Term::typed((offer % 5000).to_string(), xsd::INTEGER),
        );
        add(iri("offer", offer), 2, iri("vendor", offer % VENDORS));
    }
    for product in 0..PRODUCTS {
        add(
            iri("product", product),
            3,
            Term::string(format!("label of product {product}")),
        );
        if product % 3 == 0 {
            add(
                iri("product", product),
                4,
                Term::typed(product.to_string(), xsd::INTEGER),
            );
        }
    }
    for vendor in (0..VENDORS).step_by(10) {
        add(iri("vendor", vendor), 5, iri("country", 0));
    }
    let view = build_small(directory, &quads).unwrap().view_of_process();
    QueryContext::new(view, ContextOptions::default()).unwrap()
}

struct Patterns(Arc<QueryContext>);

impl Patterns {
    /// `?subject <p..> ?object`
    fn step(&self, subject: &str, predicate: usize, object: &str) -> PatternStep {
        PatternStep::new(QuadPattern {
            subject: Slot::Variable(subject.into()),
            predicate: Slot::Constant(self.0.intern(&iri("p", predicate)).unwrap()),
            object: Slot::Variable(object.into()),
            graph: GraphScope::Default,
        })
    }

    /// `?subject <p..> <object>`
    fn step_to(&self, subject: &str, predicate: usize, object: &Term<'_>) -> PatternStep {
        let mut step = self.step(subject, predicate, "object");
        step.pattern.object = Slot::Constant(self.0.intern(object).unwrap());
        step
    }

    fn plan(
        &self,
        input: Option<Arc<dyn ExecutionPlan>>,
        mode: PatternMode,
        steps: Vec<PatternStep>,
        output: &[&str],
    ) -> Arc<dyn ExecutionPlan> {
        let output = output.iter().map(|name| Arc::from(*name)).collect();
        let specification = PatternSpecification {
            mode,
            steps,
            ..PatternSpecification::inner(Vec::new(), output)
        };
        PatternExec::try_new(Arc::clone(&self.0), input, specification).unwrap()
    }
}

fn rows(plan: &Arc<dyn ExecutionPlan>, task: &Arc<TaskContext>) -> usize {
    let mut stream = plan.execute(0, Arc::clone(task)).unwrap();
    let mut rows = 0;
    while let Some(batch) = block_on(stream.next()) {
        rows += batch.unwrap().num_rows();
    }
    rows
}

fn benches(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let patterns = Patterns(context(directory.path()));
    let step = |subject: &str, predicate, object: &str| patterns.step(subject, predicate, object);
    let inner = |steps, output: &[&str]| patterns.plan(None, PatternMode::Inner, steps, output);
    let products = || inner(vec![step("product", 3, "label")], &["product", "label"]);
    let number = || vec![step("product", 4, "number")];
    let cases = [
        (
            "scan",
            OFFERS,
            OFFERS,
            inner(vec![step("offer", 0, "product")], &["offer", "product"]),
        ),
        (
            "join in the order of the keys",
            OFFERS,
            OFFERS,
            inner(
                vec![step("offer", 0, "product"), step("offer", 1, "price")],
                &["product", "price"],
            ),
        ),
        (
            "join by scattered look-ups",
            OFFERS,
            OFFERS,
            inner(
                vec![step("offer", 0, "product"), step("product", 3, "label")],
                &["offer", "label"],
            ),
        ),
        (
            "join with many matches a key",
            PRODUCTS,
            OFFERS,
            inner(
                vec![step("product", 3, "label"), step("offer", 0, "product")],
                &["offer", "label"],
            ),
        ),
        (
            "optional",
            PRODUCTS,
            PRODUCTS,
            patterns.plan(
                Some(products()),
                PatternMode::Optional,
                number(),
                &["product", "number"],
            ),
        ),
        (
            "join that a set of ids narrows",
            OFFERS,
            OFFERS / 10,
            inner(
                vec![
                    step("offer", 0, "product"),
                    step("offer", 2, "vendor"),
                    patterns.step_to("vendor", 5, &iri("country", 0)),
                ],
                &["product", "vendor"],
            ),
        ),
        (
            "exists",
            PRODUCTS,
            PRODUCTS / 3,
            patterns.plan(Some(products()), PatternMode::Semi, number(), &["product"]),
        ),
    ];
    let task = Arc::new(TaskContext::default());
    let mut group = criterion.benchmark_group("patterns");
    for (name, read, expected, plan) in &cases {
        assert_eq!(rows(plan, &task), *expected, "{name}");
        group.throughput(Throughput::Elements(*read as u64));
        group.bench_function(*name, |bencher| {
            bencher.iter(|| black_box(rows(plan, &task)));
        });
    }
    group.finish();
}

criterion_group!(pattern_benches, benches);
criterion_main!(pattern_benches);
