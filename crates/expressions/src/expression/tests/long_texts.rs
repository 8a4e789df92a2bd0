//! Tests of long texts in batches of many rows: bounded memory, and the results of single rows.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use datafusion_common::DataFusionError;
use datafusion_execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use orrery_term::{Term, TermId};

use crate::context::ExpressionContext;
use crate::error::Error;
use crate::expression::TermExpression;
use crate::testing::{batch, context_within, parse, run};

fn pool(bytes: usize) -> Arc<dyn MemoryPool> {
    Arc::new(GreedyMemoryPool::new(bytes))
}

/// So many rows of short texts, none of which is another's.
fn rows(count: usize, context: &ExpressionContext) -> RecordBatch {
    let row = |number: usize| vec![Some(Term::string(format!("the text of row {number}")))];
    let rows: Vec<_> = (0..count).map(row).collect();
    batch(&["x"], &rows, context)
}

/// A text of so many repetitions of what stands in `?x`.
fn repeated(count: usize) -> String {
    format!("REPLACE(\"{}\", \"a\", STR(?x))", "a".repeat(count))
}

fn compiled(text: &str, batch: &RecordBatch, context: &Arc<ExpressionContext>) -> TermExpression {
    TermExpression::compile(&parse(text), &batch.schema(), context).unwrap()
}

#[test]
fn rows_that_are_too_much_together_are_evaluated_in_parts() {
    // A row has some 100 kB, four times that on its way: together it is half a gigabyte.
    let pool = pool(6 << 20);
    let context = context_within(&[], &pool);
    let batch = rows(800, &context);
    let long = repeated(5_000);
    let text = format!("STRLEN(CONCAT({long}, {long}, {long}, {long}))");
    let lengths: Vec<usize> = (0..800)
        .map(|row| 4 * 5_000 * format!("the text of row {row}").len())
        .collect();
    let value = compiled(&text, &batch, &context).into_value();
    let filter = compiled(&format!("{text} > 400000"), &batch, &context).into_filter();
    let before = pool.reserved();
    let ids = run(&value, &batch);
    let found: Vec<String> = ids
        .as_primitive::<UInt64Type>()
        .iter()
        .map(|id| match context.term(TermId::from_bits(id.unwrap())) {
            Ok(Term::Literal(literal)) => literal.lexical.into_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected: Vec<String> = lengths.iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);

    for _ in 0..2 {
        let answers = run(&filter, &batch);
        let found: Vec<bool> = answers.as_boolean().iter().flatten().collect();
        let expected: Vec<bool> = lengths.iter().map(|length| *length > 400_000).collect();
        assert_eq!(found, expected);
    }
    assert_eq!(pool.reserved(), before, "nothing is held afterwards");
}

#[test]
fn rows_are_told_apart_in_parts_too() {
    let context = context_within(&[], &pool(8 << 20));
    let batch = rows(100, &context);
    let long = repeated(5_000);
    let text = format!("IF(STRLEN({long}) > 0, BNODE(\"label\"), BNODE(\"other\"))");
    let ids = run(&compiled(&text, &batch, &context).into_value(), &batch);
    let mut ids: Vec<u64> = ids.as_primitive::<UInt64Type>().values().to_vec();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 100);
}

fn refused(expression: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> DataFusionError {
    match expression.evaluate(batch) {
        Err(error) => error,
        Ok(_) => panic!("{expression} was evaluated"),
    }
}

#[test]
fn what_one_row_needs_and_cannot_have_ends_the_query() {
    let pool = pool(2 << 20);
    let context = context_within(&[], &pool);
    let batch = rows(10, &context);
    for text in [
        format!("STRLEN({})", repeated(200_000)),
        format!("STRLEN(CONCAT({0}, {0}, {0}, {0}))", repeated(20_000)),
        format!("STRLEN(ENCODE_FOR_URI({}))", repeated(40_000)),
    ] {
        let expression = compiled(&text, &batch, &context).into_value();
        let before = pool.reserved();
        let error = refused(&expression, &batch);
        assert!(
            matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)),
            "{text}: {error}"
        );
        assert_eq!(pool.reserved(), before);
    }
}

#[test]
fn keys_to_sort_by_are_counted() {
    let pool = pool(8 << 20);
    let context = context_within(&[], &pool);
    let batch = rows(200, &context);
    let expression = compiled(&repeated(5_000), &batch, &context).into_sort_key();
    let error = refused(&expression, &batch);
    assert!(
        matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)),
        "{error}"
    );
    let few = batch.slice(0, 10);
    assert_eq!(run(&expression, &few).len(), 10);
}

#[test]
fn functions_end_when_nobody_waits_or_the_time_is_over() {
    let context = context_within(&[], &pool(64 << 20));
    let batch = rows(2_000, &context);
    let text = format!("STRLEN({}) > 3", repeated(1_000));
    let filter = compiled(&text, &batch, &context).into_filter();
    let root = |error: DataFusionError| match error {
        DataFusionError::External(inner) => *inner.downcast::<Error>().unwrap(),
        other => panic!("{other}"),
    };
    let waiting = context.begin_run(Some(Duration::from_secs(3_600)));
    assert_eq!(run(&filter, &batch).len(), 2_000);
    drop(waiting);
    assert!(matches!(root(refused(&filter, &batch)), Error::NobodyWaits));
    let _waiting = context.begin_run(Some(Duration::ZERO));
    assert!(matches!(
        root(refused(&filter, &batch)),
        Error::OutOfTime { .. }
    ));
}
