//! Test helpers: small databases, and ways to run an expression.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use datafusion_execution::memory_pool::MemoryPool;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use orrery_storage::build_small;
use orrery_term::{Term, TermId};
use spargebra::algebra::{Expression, GraphPattern};
use spargebra::{Query, SparqlParser};

use crate::context::{ExpressionContext, ExpressionOptions};
use crate::expression::TermExpression;
pub(crate) use crate::oracle::{oracle, oxrdf_literal, schema, values};

/// A context over a database whose dictionary has these terms, as far as they are not inline.
pub(crate) fn context(terms: &[Term<'static>]) -> Arc<ExpressionContext> {
    context_within(terms, &ExpressionOptions::default().memory_pool)
}

/// The same with memory of this pool.
pub(crate) fn context_within(
    terms: &[Term<'static>],
    pool: &Arc<dyn MemoryPool>,
) -> Arc<ExpressionContext> {
    let directory = tempfile::tempdir().unwrap();
    let quads: Vec<_> = terms
        .iter()
        .map(|term| {
            let node = Term::iri("http://example.com/s");
            (node.clone(), node, term.clone(), None)
        })
        .collect();
    let database = build_small(directory.path(), &quads).unwrap();
    let options = ExpressionOptions {
        base_iri: Some("http://example.com/base/".to_owned()),
        now: Some("2026-11-21T08:00:00Z".parse().unwrap()),
        memory_pool: Arc::clone(pool),
    };
    ExpressionContext::new(database.snapshot(), options).unwrap()
}

/// The terms of a column of ids.
pub(crate) fn terms(ids: &UInt64Array, context: &ExpressionContext) -> Vec<Option<Term<'static>>> {
    ids.iter()
        .map(|id| id.map(|id| context.term(TermId::from_bits(id)).unwrap()))
        .collect()
}

/// The value of an expression in each row.
pub(crate) fn evaluate(
    expression: &Expression,
    batch: &RecordBatch,
    context: &Arc<ExpressionContext>,
) -> Vec<Option<Term<'static>>> {
    let compiled = TermExpression::compile(expression, &batch.schema(), context).unwrap();
    let array = run(&compiled.into_value(), batch);
    terms(arrow::array::AsArray::as_primitive(&array), context)
}

/// The array that a physical expression gives.
pub(crate) fn run(expression: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> ArrayRef {
    expression
        .evaluate(batch)
        .unwrap()
        .into_array(batch.num_rows())
        .unwrap()
}

/// An expression as written in a query; `xsd:` and `:` (http://example.com/) are known.
pub(crate) fn parse(text: &str) -> Expression {
    let query = SparqlParser::new()
        .with_prefix("xsd", orrery_term::vocabulary::xsd::NAMESPACE)
        .unwrap()
        .with_prefix("geo", "http://www.opengis.net/ont/geosparql#")
        .unwrap()
        .with_prefix("geof", orrery_geo::NAMESPACE)
        .unwrap()
        .with_prefix("uom", "http://www.opengis.net/def/uom/OGC/1.0/")
        .unwrap()
        .with_prefix("", "http://example.com/")
        .unwrap()
        .parse_query(&format!("SELECT ({text} AS ?result) {{}}"))
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let Query::Select { pattern, .. } = query else {
        panic!("no SELECT query")
    };
    let GraphPattern::Project { inner, .. } = pattern else {
        panic!("no projection")
    };
    let GraphPattern::Extend { expression, .. } = *inner else {
        panic!("no extension")
    };
    expression
}

/// A batch of these solutions.
pub(crate) fn batch(
    variables: &[&str],
    rows: &[Vec<Option<Term<'static>>>],
    context: &ExpressionContext,
) -> RecordBatch {
    crate::oracle::batch(variables, rows, |term| context.intern(term).unwrap())
}
