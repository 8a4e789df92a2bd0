//! Tests of the codec: descriptions read back, and damaged ones are refused.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion_execution::memory_pool::{MemoryPool, UnboundedMemoryPool};
use orrery_storage::{Snapshot, build_small};
use orrery_term::{LanguageTags, Term};
use proptest::prelude::*;
use spargebra::algebra::{Expression, GraphPattern};
use spargebra::term::Variable;
use spargebra::{Query, SparqlParser};

use super::algebra::FUNCTIONS;
use super::*;
use crate::context::{ExpressionContext, ExpressionOptions};
use crate::expression::TermExpression;

/// One query or more for every form of the algebra.
const QUERIES: [&str; 8] = [
    "SELECT ?s (COUNT(*) AS ?n) (COUNT(DISTINCT *) AS ?m) (SUM(?x + 1) AS ?t) (GROUP_CONCAT(DISTINCT ?x; separator=\"|\") AS ?g)
        (MIN(?x) AS ?a) (MAX(?x) AS ?b) (AVG(?x) AS ?c) (SAMPLE(?x) AS ?d) { ?s :p ?x } GROUP BY ?s ORDER BY DESC(?n) ?s LIMIT 3 OFFSET 1",
    "SELECT DISTINCT * { { ?s :p [] } UNION { GRAPH ?g { ?s (:p/^:q|:r*)+ ?o } } OPTIONAL { ?s !(:a|:b) ?v FILTER(?v > 1.5) }
        OPTIONAL { ?s :r? _:b } MINUS { ?s :p 1 } }",
    "SELECT REDUCED ?x { VALUES (?x ?y) { (1 UNDEF) (\"a\"@en <http://e/x>) (\"b\"@ar--rtl \"t\"^^:t) (<<( :s :p <<( :s :q 2 )>> )>> true) }
        BIND(IF(?x = ?y, COALESCE(?x, 1/0), -?x * +?y - 3) AS ?z) }",
    "SELECT * { SERVICE SILENT ?e { ?s ?p ?o } SERVICE :e { ?s :p ?o } FILTER EXISTS { ?s :p ?o FILTER NOT EXISTS { ?o ?p ?s } } }",
    "SELECT * { ?s ?p ?o FILTER(?s IN (:a, :b, ?o) && ?o NOT IN (1) || sameTerm(?s, ?o) || BOUND(?p) || !(?s != ?o)) }",
    "SELECT * { ?s ?p ?o FILTER(?s <= ?o && ?s >= ?p || ?p < ?o || REGEX(STR(?s), \"a\", \"i\") || :f(?s, 1)) }",
    "SELECT * { ?s :says <<( ?a :b <<( ?c ?d \"x\" )>> )>> . FILTER(isTRIPLE(?s)) }",
    "ASK { }",
];

fn parsed(text: &str) -> GraphPattern {
    let parser = SparqlParser::new()
        .with_prefix("", "http://example.com/")
        .unwrap();
    match parser.parse_query(text).unwrap() {
        Query::Select { pattern, .. } | Query::Ask { pattern, .. } => pattern,
        other => panic!("{other}"),
    }
}

fn through_json<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

#[test]
fn all_of_the_algebra_comes_back() {
    for text in QUERIES {
        let pattern = parsed(text);
        let described = through_json(&AlgebraText::of_pattern(&pattern).unwrap());
        assert_eq!(described.to_pattern().unwrap(), pattern, "{text}");
        assert!(described.to_expression().is_err());
        assert!(described.to_path().is_err());
    }
    for function in FUNCTIONS {
        let call = Expression::FunctionCall(function.clone(), Vec::new());
        let described = through_json(&AlgebraText::of_expression(&call).unwrap());
        assert_eq!(described.to_expression().unwrap(), call);
    }
}

#[test]
fn a_chain_of_twenty_thousand_operations_comes_back() {
    let variable = || Box::new(Expression::Variable(Variable::new_unchecked("x")));
    let work = move || {
        let mut chain = *variable();
        for _ in 0..20_000 {
            chain = Expression::Add(Box::new(chain), variable());
        }
        let described = through_json(&AlgebraText::of_expression(&chain).unwrap());
        assert_eq!(described.to_expression().unwrap(), chain);
    };
    // To compare and to drop it takes a level of recursion for each.
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    thread.spawn(work).unwrap().join().unwrap();
}

#[test]
fn what_is_too_deep_is_refused() {
    let operand = serde_json::json!({"Term": {"Text": "a"}});
    let mut all = vec![operand];
    all.extend(std::iter::repeat_n(serde_json::json!("Not"), 30_000));
    let deep: AlgebraText = serde_json::from_value(all.into()).unwrap();
    let work = move || deep.to_expression().unwrap_err().to_string();
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    let error = thread.spawn(work).unwrap().join().unwrap();
    assert!(error.contains("above each other"), "{error}");
}

#[test]
fn operands_that_are_missing_misplaced_or_left_over_are_told() {
    let text = |json: &str| serde_json::from_str::<AlgebraText>(json).unwrap();
    for (json, what) in [
        (r#"[]"#, "missing"),
        (r#"[{"Term":{"Text":"a"}},"Add"]"#, "missing"),
        (
            r#"[{"Term":{"Text":"a"}},{"Coalesce":18446744073709551615}]"#,
            "missing",
        ),
        (r#"[{"PathPredicate":"a"},"Not"]"#, "should"),
        (
            r#"[{"Term":{"Text":"a"}},{"Term":{"Text":"a"}}]"#,
            "left over",
        ),
        (r#"[{"Term":{"Blank":"a"}}]"#, "should"),
    ] {
        let error = text(json).to_expression().unwrap_err().to_string();
        assert!(error.contains(what), "{json}: {error}");
    }
    let ragged = text(r#"[{"Values":[["a","b"],[[null]]]}]"#);
    assert!(ragged.to_pattern().is_err());
}

fn operators() -> Vec<serde_json::Value> {
    let all = QUERIES.iter().flat_map(|text| {
        let described = AlgebraText::of_pattern(&parsed(text)).unwrap();
        let serde_json::Value::Array(all) = serde_json::to_value(&described).unwrap() else {
            panic!("a description is a list");
        };
        all
    });
    all.collect()
}

proptest! {
    #[test]
    fn no_list_of_operators_panics(picked in proptest::collection::vec(any::<proptest::sample::Index>(), 0..40)) {
        let all = operators();
        let picked: Vec<_> = picked.iter().map(|at| at.get(&all).clone()).collect();
        let text: AlgebraText = serde_json::from_value(picked.into()).unwrap();
        if let Ok(pattern) = text.to_pattern() {
            prop_assert_eq!(AlgebraText::of_pattern(&pattern).unwrap(), text);
        } else if let Ok(expression) = text.to_expression() {
            prop_assert_eq!(AlgebraText::of_expression(&expression).unwrap(), text);
        }
    }
}

fn snapshot() -> Arc<Snapshot> {
    let directory = tempfile::tempdir().unwrap();
    let node = Term::iri("http://example.com/s");
    let quad = (node.clone(), node.clone(), Term::BlankNode(41), None);
    build_small(directory.path(), &[quad]).unwrap().snapshot()
}

fn pool() -> Arc<dyn MemoryPool> {
    Arc::new(UnboundedMemoryPool::default())
}

#[test]
fn a_context_comes_back_with_its_time_its_terms_and_its_tags() {
    let options = ExpressionOptions {
        base_iri: Some("http://example.com/base/".to_owned()),
        ..ExpressionOptions::default()
    };
    let here = ExpressionContext::new(snapshot(), options).unwrap();
    let terms = [
        Term::iri("http://example.com/other"),
        Term::string("a text that is too long to be inline"),
        Term::language("x", "en"),
    ];
    let ids: Vec<_> = terms
        .iter()
        .map(|term| here.intern(term).unwrap())
        .collect();
    here.note_language_tags(&LanguageTags::from_iter(["en-GB", "fr"]));
    here.note_volatile();
    let described = through_json(&ContextText::of(&here, 2).unwrap());
    let there = described.build(Arc::clone(&snapshot()), pool(), 1).unwrap();
    assert_eq!(there.now(), here.now());
    assert_eq!(there.now().to_string(), here.now().to_string());
    assert_eq!(there.base_iri(), here.base_iri());
    assert!(there.depends_on_row_order());
    assert_eq!(there.noted_language_tags(), here.noted_language_tags());
    assert_eq!(described.own_terms(), 3);
    for (term, id) in terms.iter().zip(ids) {
        assert_eq!(there.term(id).unwrap(), *term);
        assert_eq!(there.intern(term).unwrap(), id);
    }
    let further = Term::string("another text that is too long");
    assert_eq!(there.intern(&further).unwrap().payload(), 3);
}

#[test]
fn parts_in_several_processes_never_make_the_same_blank_node() {
    let here = ExpressionContext::new(snapshot(), ExpressionOptions::default()).unwrap();
    let before = here.fresh_blank_node();
    let described = through_json(&ContextText::of(&here, 3).unwrap());
    let there = (1..=3).map(|part| described.build(snapshot(), pool(), part).unwrap());
    let contexts: Vec<_> = there.chain([here]).collect();
    let numbers = contexts
        .iter()
        .flat_map(|context| (0..100).map(|_| context.fresh_blank_node()));
    let mut seen: Vec<u64> = numbers.chain([before]).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 401);
    assert!(seen[0] > 41, "{seen:?}");
    assert!(described.build(snapshot(), pool(), 4).is_err());
}

#[test]
fn physical_expressions_come_back_in_their_form() {
    let context = ExpressionContext::new(snapshot(), ExpressionOptions::default()).unwrap();
    let schema = Schema::new(
        ["y", "unread", "x"]
            .map(|name| Field::new(name, DataType::UInt64, true))
            .to_vec(),
    );
    let expression = |text: &str| match parsed(&format!("SELECT * {{ BIND({text} AS ?z) }}")) {
        GraphPattern::Project { inner, .. } => match *inner {
            GraphPattern::Extend { expression, .. } => expression,
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    };
    let compiled =
        |text: &str| TermExpression::compile(&expression(text), &schema, &context).unwrap();
    for physical in [
        compiled("?x + ?y * ?nowhere").into_value(),
        compiled("?x < ?y").into_filter(),
        compiled("STRLEN(STR(?x))").into_sort_key(),
        compiled("?x").into_value(),
        compiled("?x").into_sort_key(),
        compiled("<http://www.w3.org/2001/XMLSchema#double>(STR(?x))").into_number_or_value(),
        compiled("<http://www.w3.org/2001/XMLSchema#float>(STR(?x))").into_number_or_value(),
        compiled("1 + 1").into_value(),
    ] {
        let described = through_json(&PhysicalText::of(&*physical).unwrap());
        let back = described.build(&schema, &context).unwrap();
        assert_eq!(&back, &physical);
        assert_eq!(
            back.data_type(&schema).unwrap(),
            physical.data_type(&schema).unwrap()
        );
        let narrow = Schema::new(Vec::<Field>::new());
        let reads =
            !physical.children().is_empty() || matches!(described, PhysicalText::Column(..));
        assert_eq!(described.build(&narrow, &context).is_err(), reads);
    }
    // Volatile ones are never equal.
    let physical = compiled("RAND() + ?x").into_value();
    let back = PhysicalText::of(&*physical)
        .unwrap()
        .build(&schema, &context);
    assert_eq!(back.unwrap().to_string(), physical.to_string());
    let wrong = r#"{"Computed":{"expression":[{"Term":{"Variable":"x"}}],"columns":[["y",0],["x",2]],"form":"Value"}}"#;
    let wrong: PhysicalText = serde_json::from_str(wrong).unwrap();
    assert!(wrong.build(&schema, &context).is_err());
    let wrong = r#"{"Computed":{"expression":[{"Term":{"Variable":"x"}}],"columns":[["x",2]],"form":"Double"}}"#;
    let wrong: PhysicalText = serde_json::from_str(wrong).unwrap();
    assert!(wrong.build(&schema, &context).is_err());
}
