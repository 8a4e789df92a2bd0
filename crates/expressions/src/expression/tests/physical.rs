//! Tests of physical expressions: filters, ids, sort keys.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::datatypes::{DataType, UInt64Type};
use datafusion_physical_expr::expressions::Column;
use orrery_term::vocabulary::xsd;
use orrery_term::{Term, TermId};

use crate::expression::TermExpression;
use crate::testing::{batch, context, evaluate, parse, run, schema};
use crate::values::Value;
use crate::values::compare::{Comparison, compares, equals};

fn integers(values: &[Option<i64>]) -> Vec<Vec<Option<Term<'static>>>> {
    values
        .iter()
        .map(|value| vec![value.map(|value| Term::typed(value.to_string(), xsd::INTEGER))])
        .collect()
}

#[test]
fn a_filter_is_null_for_an_error() {
    let context = context(&[]);
    let batch = batch(&["x"], &integers(&[Some(1), None, Some(3)]), &context);
    let filter = TermExpression::compile(&parse("?x > 2"), &batch.schema(), &context)
        .unwrap()
        .into_filter();
    assert_eq!(
        filter.data_type(&batch.schema()).unwrap(),
        DataType::Boolean
    );
    let found = run(&filter, &batch);
    assert_eq!(
        found.as_boolean(),
        &BooleanArray::from(vec![Some(false), None, Some(true)])
    );
}

#[test]
fn strings_of_the_dictionary_are_compared_and_cut() {
    let stored = [
        Term::string("a string that is longer than seven bytes"),
        Term::string("another string of the dictionary"),
        Term::language("a tagged one", "en"),
        Term::typed("0.1234567890123456", xsd::DECIMAL),
        Term::typed("007", xsd::INTEGER),
        Term::iri("http://example.com/iri"),
    ];
    let context = context(&stored);
    let mut rows: Vec<Vec<Option<Term<'static>>>> =
        stored.iter().map(|term| vec![Some(term.clone())]).collect();
    rows.push(vec![None]);
    rows.push(vec![Some(Term::string("another string of the dictionary"))]);
    rows.push(vec![Some(Term::string("a computed string, not stored"))]);
    rows.push(vec![Some(Term::string("short"))]);
    let batch = batch(&["x"], &rows, &context);
    let show = |text: &str| -> String {
        evaluate(&parse(text), &batch, &context)
            .iter()
            .map(|term| match term {
                None => '-',
                Some(term) if *term == Term::typed("true", xsd::BOOLEAN) => 't',
                Some(term) if *term == Term::typed("false", xsd::BOOLEAN) => 'f',
                Some(_) => '?',
            })
            .collect()
    };
    assert_eq!(
        show("?x = \"another string of the dictionary\""),
        "ftffff-tff"
    );
    assert_eq!(show("?x = 7"), "fffftf-fff");
    assert_eq!(show("?x < 8"), "---tt-----");
    assert_eq!(show("?x < \"another\""), "tf-----ftf");
    assert_eq!(show("?x = <http://example.com/iri>"), "ffffft-fff");
    assert_eq!(show("?x = \"a tagged one\"@en"), "fftfff-fff");
    assert_eq!(show("STRSTARTS(?x, \"a\")"), "ttt----ttf");
    assert_eq!(show("REGEX(?x, \"string\")"), "ttf----ttf");
    assert_eq!(show("isIRI(?x)"), "ffffft-fff");
    assert_eq!(show("BOUND(?x) && isIRI(?x)"), "ffffftffff");
    assert_eq!(show("COALESCE(STRLEN(?x) > 30, false)"), "ttffffftff");
    assert_eq!(show("?x = ?x"), "tttttt-ttt");
}

#[test]
fn inline_dates_compare_from_their_bits_as_from_their_text() {
    let context = context(&[]);
    let lexical = [
        "2000-01-01",
        "2000-01-02",
        "2000-01-01Z",
        "2000-01-01+14:00",
        "1999-12-31-14:00",
    ];
    let mut rows: Vec<_> = lexical
        .iter()
        .map(|text| vec![Some(Term::typed(*text, xsd::DATE))])
        .collect();
    rows.extend(lexical.iter().map(|text| {
        let (day, zone) = text.split_at(10);
        vec![Some(Term::typed(
            format!("{day}T00:00:00{zone}"),
            xsd::DATE_TIME,
        ))]
    }));
    let batch = batch(&["x"], &rows, &context);
    for (at, row) in rows.iter().enumerate() {
        let Some(Term::Literal(constant)) = &row[0] else {
            panic!("no literal")
        };
        for operator in ["<", "<=", "=", ">", "!="] {
            let datatype = constant.datatype();
            let fast = format!("?x {operator} \"{}\"^^<{datatype}>", constant.lexical);
            let slow: Vec<_> = rows
                .iter()
                .map(|other| {
                    let value = |term: &Option<Term<'_>>| Value::from_term(term.as_ref().unwrap());
                    let (a, b) = (value(&other[0]), value(&rows[at][0]));
                    match operator {
                        "=" => equals(&a, &b),
                        "!=" => equals(&a, &b).map(|equal| !equal),
                        "<" => compares(Comparison::Less, &a, &b),
                        "<=" => compares(Comparison::LessOrEqual, &a, &b),
                        _ => compares(Comparison::Greater, &a, &b),
                    }
                })
                .collect();
            let filter = TermExpression::compile(&parse(&fast), &batch.schema(), &context)
                .unwrap()
                .into_filter();
            let found = run(&filter, &batch);
            assert_eq!(found.as_boolean(), &BooleanArray::from(slow), "{fast}");
        }
    }
}

#[test]
fn sort_keys_are_never_null_and_ascend() {
    let context = context(&[]);
    let rows = vec![
        vec![Some(Term::string("b"))],
        vec![Some(Term::typed("10", xsd::INTEGER))],
        vec![None],
        vec![Some(Term::iri("http://example.com/a"))],
        vec![Some(Term::typed("9.5", xsd::DECIMAL))],
        vec![Some(Term::BlankNode(4))],
    ];
    let batch = batch(&["x"], &rows, &context);
    let key = TermExpression::compile(&parse("?x"), &batch.schema(), &context)
        .unwrap()
        .into_sort_key();
    let keys = run(&key, &batch);
    let keys = keys.as_binary::<i32>();
    assert_eq!(keys.null_count(), 0);
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&row| keys.value(row));
    assert_eq!(order, [2, 5, 3, 4, 1, 0]);
}

#[test]
fn an_expression_reads_the_columns_it_is_given() {
    let context = context(&[]);
    let rows = vec![vec![
        Some(Term::typed("1", xsd::INTEGER)),
        Some(Term::typed("2", xsd::INTEGER)),
    ]];
    let batch = batch(&["x", "y"], &rows, &context);
    let sum = TermExpression::compile(&parse("?x + 10"), &batch.schema(), &context)
        .unwrap()
        .into_value();
    assert_eq!(sum.to_string(), "?x + 10");
    let moved = Arc::clone(&sum)
        .with_new_children(vec![Arc::new(Column::new("y", 1))])
        .unwrap();
    let twelve = TermId::integer(12).unwrap().bits();
    assert_eq!(
        run(&moved, &batch).as_primitive::<UInt64Type>().value(0),
        twelve
    );
    assert_ne!(&sum, &moved);
    let again = TermExpression::compile(&parse("?x + 10"), &batch.schema(), &context)
        .unwrap()
        .into_value();
    assert_eq!(&sum, &again);
}

#[test]
fn constants_are_known_when_compiled() {
    let context = context(&[]);
    let compile =
        |text: &str| TermExpression::compile(&parse(text), &schema(&["x"]), &context).unwrap();
    assert_eq!(
        compile("STRLEN(CONCAT(\"a\", \"b\")) + 1").as_constant(),
        Some(TermId::integer(3))
    );
    assert_eq!(compile("1 / 0").as_constant(), Some(None));
    assert_eq!(compile("?absent").as_constant(), Some(None));
    assert_eq!(compile("?x").as_constant(), None);
    assert_eq!(compile("RAND()").as_constant(), None);
    assert!(compile("RAND()").is_volatile());
}

#[test]
fn a_label_names_one_blank_node_in_a_solution() {
    let context = context(&[]);
    let rows = vec![
        vec![Some(Term::string("l")), Some(Term::string("l"))],
        vec![Some(Term::string("l")), Some(Term::string("m"))],
    ];
    let batch = batch(&["x", "y"], &rows, &context);
    let first = evaluate(&parse("BNODE(?x)"), &batch, &context);
    let second = evaluate(&parse("BNODE(?y)"), &batch, &context);
    assert_eq!(first[0], second[0]);
    assert_ne!(first[0], first[1]);
    assert_ne!(first[1], second[1]);
}

#[test]
fn explain_shows_sparql() {
    for (text, shown) in [
        ("?x>5&&!BOUND(?y)", "(?x > 5) && (!BOUND(?y))"),
        ("?x != \"a\"@en", "?x != \"a\"@en"),
        (
            "xsd:double(?x) IN (1e0, :a)",
            "xsd:double(?x) IN (\"1e0\"^^xsd:double, <http://example.com/a>)",
        ),
        ("REGEX(?x,\"a\",\"i\")", "REGEX(?x, \"a\", \"i\")"),
    ] {
        let context = context(&[]);
        let expression =
            TermExpression::compile(&parse(text), &schema(&["x", "y"]), &context).unwrap();
        assert_eq!(expression.to_string(), shown);
    }
}
