//! Benchmark of expressions over a batch of 8,192 rows: filters, computed values, sort keys.
//!
//! `cargo bench -p orrery-expressions --bench expressions`; the rates are rows a second.

#![expect(clippy::unwrap_used, reason = "a bench stops at the first failure")]

use std::hint::black_box;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use orrery_expressions::{ExpressionContext, ExpressionOptions, TermExpression};
use orrery_storage::build_small;
use orrery_term::Term;
use orrery_term::vocabulary::xsd;
use spargebra::algebra::{Expression, GraphPattern};
use spargebra::{Query, SparqlParser};

const ROWS: usize = 8192;

/// Small integers, doubles, dates, and strings of the dictionary: all different, and a hundred.
fn terms(row: usize) -> [Term<'static>; 5] {
    let string = |number: usize| Term::string(format!("string number {number} of many, foo bar"));
    [
        Term::typed((row * 7919 % 2000).to_string(), xsd::INTEGER),
        Term::typed(format!("{row}.5"), xsd::DOUBLE),
        Term::typed(format!("2000-01-{:02}", 1 + row % 28), xsd::DATE),
        string(row * 7919 % ROWS),
        string(row * 7919 % 100),
    ]
}

fn batch() -> (RecordBatch, Arc<ExpressionContext>) {
    let directory = tempfile::tempdir().unwrap();
    let node = Term::iri("http://example.com/s");
    let quads: Vec<_> = (0..ROWS)
        .map(|row| (node.clone(), node.clone(), terms(row)[3].clone(), None))
        .collect();
    let snapshot = build_small(directory.path(), &quads).unwrap().snapshot();
    let context = ExpressionContext::new(snapshot, ExpressionOptions::default()).unwrap();
    let columns = (0..5)
        .map(|place| {
            let ids: UInt64Array = (0..ROWS)
                .map(|row| Some(context.intern(&terms(row)[place]).unwrap().bits()))
                .collect();
            Arc::new(ids) as ArrayRef
        })
        .collect();
    let fields: Vec<Field> = ["integer", "double", "date", "string", "few"]
        .iter()
        .map(|name| Field::new(*name, DataType::UInt64, true))
        .collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    (batch, context)
}

fn parse(text: &str) -> Expression {
    let query = SparqlParser::new()
        .with_prefix("xsd", xsd::NAMESPACE)
        .unwrap()
        .parse_query(&format!("SELECT * {{ FILTER({text}) }}"))
        .unwrap();
    match query {
        Query::Select {
            pattern: GraphPattern::Project { inner, .. },
            ..
        } => match *inner {
            GraphPattern::Filter { expr, .. } => expr,
            other => panic!("no filter in {other}"),
        },
        other => panic!("no filter in {other}"),
    }
}

fn expressions(criterion: &mut Criterion) {
    let (batch, context) = batch();
    let compile = |text| TermExpression::compile(&parse(text), &batch.schema(), &context).unwrap();
    let mut group = criterion.benchmark_group("expressions");
    group.throughput(Throughput::Elements(ROWS as u64));
    for text in [
        "?integer > 500",
        "?date >= \"2000-01-10\"^^xsd:date",
        "?integer + 120 < ?double",
        "?string = \"string number 5 of many, foo bar\"",
        "REGEX(?string, \"number 5\")",
        "REGEX(?few, \"number 5\")",
        "LANG(?few) = \"en\"",
    ] {
        let filter = compile(text).into_filter();
        group.bench_function(format!("filter {text}"), |bencher| {
            bencher.iter(|| black_box(filter.evaluate(&batch).unwrap()));
        });
    }
    for text in ["?double * 2", "STRLEN(?string)", "UCASE(?few)"] {
        let value = compile(text).into_value();
        group.bench_function(format!("value {text}"), |bencher| {
            bencher.iter(|| black_box(value.evaluate(&batch).unwrap()));
        });
    }
    for text in ["?integer", "?string"] {
        let key = compile(text).into_sort_key();
        group.bench_function(format!("sort key {text}"), |bencher| {
            bencher.iter(|| black_box(key.evaluate(&batch).unwrap()));
        });
    }
    group.finish();
}

criterion_group!(benches, expressions);
criterion_main!(benches);
