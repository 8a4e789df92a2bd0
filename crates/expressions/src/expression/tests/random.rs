//! Tests of random expressions over random solutions, against `spareval`.
//!
//! Left out is what differs on purpose (see the tables in `functions`): lexical forms that are not
//! canonical under `STR` and its like, integers beyond 64 bits and products with more than eighteen
//! digits after the point, the truth value of an ill-typed number, the order of booleans, calendar
//! types but dateTime with a time zone (one with and one without are neither equal nor different),
//! the difference of two dateTimes, and division, whose NaN the oracle finds equal to itself in
//! `<=`.

use std::sync::{Arc, OnceLock};

use orrery_term::vocabulary::xsd;
use orrery_term::{Direction, Term, Triple};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use spargebra::algebra::{Expression, Function, GraphPattern};
use spargebra::term::{NamedNode, Variable};

use crate::context::ExpressionContext;
use crate::testing::{batch, context, evaluate, oracle, oxrdf_literal, values};

const VARIABLES: [&str; 3] = ["a", "b", "c"];

/// Terms whose lexical form is canonical, booleans aside.
fn term() -> impl Strategy<Value = Term<'static>> {
    let leaf = prop_oneof![
        3 => (-3i64..4).prop_map(|value| Term::typed(value.to_string(), xsd::INTEGER)),
        1 => Just(Term::typed("10", xsd::INTEGER)),
        1 => prop_oneof![Just("0.5"), Just("-1.25"), Just("10.75"), Just("3")]
            .prop_map(|lexical| Term::typed(lexical, xsd::DECIMAL)),
        1 => prop_oneof![Just("0.5"), Just("1"), Just("-2"), Just("100000000000000000000")]
            .prop_map(|lexical| Term::typed(lexical, xsd::DOUBLE)),
        1 => prop_oneof![Just("0.5"), Just("2")].prop_map(|lexical| Term::typed(lexical, xsd::FLOAT)),
        1 => prop_oneof![
            Just("2000-01-01T00:00:00Z"),
            Just("2000-01-02T00:00:00.25Z"),
            Just("1999-12-31T23:00:00.5-05:00")
        ]
        .prop_map(|lexical| Term::typed(lexical, xsd::DATE_TIME)),
        2 => prop_oneof![Just(""), Just("a"), Just("ab"), Just("a longer string"), Just("é"), Just("1")]
            .prop_map(Term::string),
        2 => (prop_oneof![Just("a"), Just("b"), Just("a longer text")], prop_oneof![Just("en"), Just("fr")])
            .prop_map(|(lexical, tag)| Term::language(lexical, tag)),
        2 => prop_oneof![Just("http://example.com/a"), Just("http://example.com/b")].prop_map(Term::iri),
        1 => prop_oneof![Just("x"), Just("y")]
            .prop_map(|lexical| Term::typed(lexical, "http://example.com/datatype")),
        1 => Just(Term::typed("abc", xsd::INTEGER)),
        1 => (
            prop_oneof![Just("a"), Just("b")],
            prop_oneof![Just(Direction::LeftToRight), Just(Direction::RightToLeft)],
        )
            .prop_map(|(lexical, direction)| Term::directional(lexical, "en", direction)),
    ];
    leaf.prop_recursive(2, 3, 1, |object| {
        let iri = || {
            prop_oneof![Just("http://example.com/a"), Just("http://example.com/b")]
                .prop_map(Term::iri)
        };
        let triple = (iri(), iri(), object.clone())
            .prop_map(|(s, p, o)| Triple::new(s, p, o).unwrap().into());
        prop_oneof![4 => object, 1 => triple]
    })
}

fn constant(term: &Term<'static>) -> Expression {
    match term {
        Term::Iri(iri) => NamedNode::new_unchecked(iri.as_ref()).into(),
        Term::Literal(literal) => oxrdf_literal(literal).into(),
        Term::BlankNode(_) => Variable::new_unchecked("unbound").into(),
        Term::Triple(triple) => {
            let parts = triple.parts().map(constant).into();
            Expression::FunctionCall(Function::Triple, parts)
        }
    }
}

/// What may stand where its truth value is asked for: an ill-typed number is left out, for the
/// oracle calls its value an error.
fn asked(value: Expression) -> Expression {
    let call = |function, argument| Expression::FunctionCall(function, vec![argument]);
    let is_number = call(Function::IsNumeric, value.clone());
    let datatype = call(Function::Datatype, value.clone());
    let integer = NamedNode::new_unchecked(xsd::INTEGER).into();
    let is_ill_typed = Expression::Equal(Box::new(datatype), Box::new(integer));
    let false_term = constant(&Term::typed("false", xsd::BOOLEAN));
    let other = Expression::If(
        Box::new(is_ill_typed),
        Box::new(false_term),
        Box::new(value.clone()),
    );
    Expression::If(Box::new(is_number), Box::new(value), Box::new(other))
}

type Two = fn(Box<Expression>, Box<Expression>) -> Expression;

fn leaf() -> impl Strategy<Value = Expression> {
    prop_oneof![
        3 => prop_oneof![Just("a"), Just("b"), Just("c"), Just("unbound")]
            .prop_map(|name| Variable::new_unchecked(name).into()),
        2 => term().prop_map(|term| constant(&term)),
    ]
}

/// Expressions that never are boolean, so that `<` may stand above them.
fn value() -> impl Strategy<Value = Expression> {
    leaf().prop_recursive(3, 12, 3, |inner| {
        let call = |function: Function| {
            move |arguments: Vec<Expression>| Expression::FunctionCall(function.clone(), arguments)
        };
        prop_oneof![
            (
                prop_oneof![
                    Just(Expression::Add as Two),
                    Just(Expression::Multiply as Two),
                ],
                inner.clone(),
                inner.clone()
            )
                .prop_map(|(make, a, b)| make(Box::new(a), Box::new(b))),
            inner
                .clone()
                .prop_map(|a| Expression::UnaryMinus(Box::new(a))),
            inner.clone().prop_map(|a| Expression::Subtract(
                Box::new(constant(&Term::typed("2", xsd::INTEGER))),
                Box::new(a)
            )),
            vec(inner.clone(), 1..4).prop_map(Expression::Coalesce),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| Expression::If(
                Box::new(asked(a)),
                Box::new(b),
                Box::new(c)
            )),
            vec(inner.clone(), 1).prop_map(call(Function::Str)),
            vec(inner.clone(), 1).prop_map(call(Function::Lang)),
            vec(inner.clone(), 1).prop_map(call(Function::Datatype)),
            vec(inner.clone(), 1).prop_map(call(Function::UCase)),
            vec(inner.clone(), 1).prop_map(call(Function::StrLen)),
            vec(inner.clone(), 1).prop_map(call(Function::Year)),
            vec(inner.clone(), 1).prop_map(call(Function::Abs)),
            vec(inner.clone(), 1).prop_map(call(Function::Round)),
            vec(inner.clone(), 2..4).prop_map(call(Function::SubStr)),
            vec(inner.clone(), 0..3).prop_map(call(Function::Concat)),
            vec(inner.clone(), 2).prop_map(call(Function::StrAfter)),
            vec(inner.clone(), 2).prop_map(call(Function::StrLang)),
            vec(inner.clone(), 1).prop_map(call(Function::Iri)),
            vec(inner.clone(), 3).prop_map(call(Function::Triple)),
            vec(inner.clone(), 1).prop_map(call(Function::Subject)),
            vec(inner.clone(), 1).prop_map(call(Function::Predicate)),
            vec(inner.clone(), 1).prop_map(call(Function::Object)),
            vec(inner.clone(), 1).prop_map(call(Function::LangDir)),
            vec(inner.clone(), 3).prop_map(call(Function::StrLangDir)),
        ]
    })
}

fn truth() -> impl Strategy<Value = Expression> {
    let compared = (
        prop_oneof![
            Just(Expression::Less as Two),
            Just(Expression::LessOrEqual as Two),
            Just(Expression::Greater as Two),
            Just(Expression::GreaterOrEqual as Two),
            Just(Expression::Equal as Two),
            Just(Expression::SameTerm as Two),
        ],
        value(),
        value(),
    )
        .prop_map(|(make, a, b)| make(Box::new(a), Box::new(b)));
    let tested = prop_oneof![
        compared,
        prop_oneof![Just("a"), Just("b"), Just("unbound")]
            .prop_map(|name| Expression::Bound(Variable::new_unchecked(name))),
        (value(), vec(value(), 1..3)).prop_map(|(a, list)| Expression::In(Box::new(a), list)),
        value().prop_map(|a| Expression::Not(Box::new(asked(a)))),
        value().prop_map(|a| Expression::FunctionCall(Function::IsLiteral, vec![a])),
        value().prop_map(|a| Expression::FunctionCall(Function::IsNumeric, vec![a])),
        value().prop_map(|a| Expression::FunctionCall(Function::IsTriple, vec![a])),
        value().prop_map(|a| Expression::FunctionCall(Function::HasLang, vec![a])),
        value().prop_map(|a| Expression::FunctionCall(Function::HasLangDir, vec![a])),
        (value(), value())
            .prop_map(|(a, b)| Expression::FunctionCall(Function::Contains, vec![a, b])),
        (value(), value()).prop_map(|(a, b)| Expression::FunctionCall(Function::Regex, vec![a, b])),
    ];
    tested.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| Expression::And(Box::new(a), Box::new(b))),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| Expression::Or(Box::new(a), Box::new(b))),
            inner.clone().prop_map(|a| Expression::Not(Box::new(a))),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| Expression::Equal(Box::new(a), Box::new(b))),
        ]
    })
}

/// One for all cases: to make a database takes longer than the rest of a case. Some of the terms
/// stand in its dictionary, others are the query's own.
fn shared_context() -> Arc<ExpressionContext> {
    static CONTEXT: OnceLock<Arc<ExpressionContext>> = OnceLock::new();
    let context = CONTEXT.get_or_init(|| {
        context(&[
            Term::string("a longer string"),
            Term::language("b", "en"),
            Term::language("a longer text", "fr"),
            Term::iri("http://example.com/a"),
            Term::typed("x", "http://example.com/datatype"),
            Term::typed("1999-12-31T23:00:00.5-05:00", xsd::DATE_TIME),
            Term::typed("0.5", xsd::FLOAT),
            Term::directional("b", "en", Direction::LeftToRight),
            Triple::new(
                Term::iri("http://example.com/a"),
                Term::iri("http://example.com/b"),
                Term::typed("1", xsd::INTEGER),
            )
            .unwrap()
            .into(),
        ])
    });
    Arc::clone(context)
}

fn solutions() -> impl Strategy<Value = Vec<Vec<Option<Term<'static>>>>> {
    vec(vec(option::weighted(0.85, term()), VARIABLES.len()), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn random_expressions_agree_with_the_oracle(
        expression in prop_oneof![value(), truth()],
        rows in solutions(),
    ) {
        let context = shared_context();
        let batch = batch(&VARIABLES, &rows, &context);
        let found = evaluate(&expression, &batch, &context);
        let pattern = GraphPattern::Extend {
            inner: Box::new(values(&VARIABLES, &rows)),
            variable: Variable::new_unchecked("result"),
            expression: expression.clone(),
        };
        let expected = oracle(pattern, "result");
        for (row, (found, expected)) in found.iter().zip(&expected).enumerate() {
            prop_assert_eq!(found, expected, "{} on {:?}", &expression, &rows[row]);
        }
    }

    /// Lists of constants that are looked up, and lists that are compared with one by one.
    #[test]
    fn long_lists_answer_as_comparisons_do(
        list in vec(term(), 16..48),
        integers in vec(-2_i64..4, 0..24),
        others in vec(leaf(), 0..2),
        rows in solutions(),
    ) {
        let context = shared_context();
        let batch = batch(&VARIABLES, &rows, &context);
        let needle: Expression = Variable::new_unchecked("a").into();
        let integers = integers
            .iter()
            .map(|integer| Term::typed(integer.to_string(), xsd::INTEGER));
        let list: Vec<Expression> = list
            .iter()
            .filter(|term| !matches!(term, Term::Triple(_)))
            .map(constant)
            .chain(integers.map(|term| constant(&term)))
            .chain(others)
            .collect();
        let equal = list
            .iter()
            .map(|item| Expression::Equal(Box::new(needle.clone()), Box::new(item.clone())))
            .reduce(|all, more| Expression::Or(Box::new(all), Box::new(more)));
        let expected = evaluate(&equal.unwrap(), &batch, &context);
        let found = evaluate(&Expression::In(Box::new(needle), list), &batch, &context);
        for (row, (found, expected)) in found.iter().zip(&expected).enumerate() {
            prop_assert_eq!(found, expected, "{:?}", &rows[row]);
        }
    }
}
