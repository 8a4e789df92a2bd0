//! Tests of long lists, chains and nesting.

use orrery_syntax::{ErrorKind, Limits, ParserOptions, parse_query, parse_update};

/// Dropping a tree recurses: what is as deep as the bounds allow needs this much.
fn on_large_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(256 << 20)
        .spawn(work);
    let joined = thread.map(std::thread::JoinHandle::join);
    assert!(matches!(joined, Ok(Ok(()))));
}

fn filter(condition: &str) -> String {
    format!("ASK {{ ?s ?p ?o FILTER({condition}) }}")
}

#[test]
fn lists_of_any_length_deepen_nothing() {
    let numbers: Vec<String> = (0..50_000).map(|number| number.to_string()).collect();
    let rows: String = numbers.iter().map(|number| format!("({number})")).collect();
    for text in [
        filter(&format!("?s IN ({})", numbers.join(", "))),
        format!("ASK {{ VALUES (?x) {{ {rows} }} }}"),
        format!("ASK {{ ?s ?p {} }}", numbers.join(", ")),
        format!("ASK {{ ?s ?p ({}) }}", numbers.join(" ")),
    ] {
        let (_, shape) = parse_query(&text, &ParserOptions::default()).expect("a list");
        assert!(shape.operators < 10 && shape.nesting < 5, "{shape:?}");
    }
    let data = "<http://a/s> <http://a/p> [ <http://a/q> 1 ] . ".repeat(30_000);
    let update = parse_update(
        &format!("INSERT DATA {{ {data} }}"),
        &ParserOptions::default(),
    );
    assert!(update.is_ok());
}

#[test]
fn chains_are_long_and_bounded() {
    on_large_stack(|| {
        for operator in ["||", "&&", "+", "*"] {
            let chain =
                |operators: usize| filter(&format!("?x {operator} ").repeat(operators).add("?x"));
            // The filter and the triples count, too.
            assert!(
                parse_query(&chain(19_990), &ParserOptions::default()).is_ok(),
                "{operator}"
            );
            let error =
                parse_query(&chain(20_001), &ParserOptions::default()).expect_err("too long");
            assert!(
                matches!(error.kind, ErrorKind::TooManyOperators { .. }),
                "{error}"
            );
        }
        let negations = filter(&format!("{}?x", "!".repeat(10_000)));
        assert!(parse_query(&negations, &ParserOptions::default()).is_ok());
    });
}

trait Add {
    fn add(self, end: &str) -> String;
}

impl Add for String {
    fn add(mut self, end: &str) -> String {
        self.push_str(end);
        self
    }
}

#[test]
fn brackets_nest_to_their_bound_whatever_they_are() {
    for (open, close) in [
        ("(", ")"),
        ("!(", ")"),
        ("STR(", ")"),
        ("IF(?x, 1, ", ")"),
        ("?x IN (", ")"),
        ("EXISTS { FILTER(", ") }"),
        ("<<( ?x ?y ", ")>>"),
    ] {
        let nested = |levels: usize| {
            filter(&format!(
                "{}?x{}",
                open.repeat(levels),
                close.repeat(levels)
            ))
        };
        assert!(
            parse_query(&nested(40), &ParserOptions::default()).is_ok(),
            "{open}"
        );
        let error = parse_query(&nested(100_000), &ParserOptions::default()).expect_err("too deep");
        assert!(
            matches!(error.kind, ErrorKind::TooDeep { nesting_max: 128 }),
            "{open} {error}"
        );
    }
    for open in [
        "{",
        "[ ?p ",
        "(",
        "<< ",
        "{ SELECT * ",
        "?s ?p ?o {| ?p ",
        "OPTIONAL {",
    ] {
        let text = format!("ASK {{ {}", open.repeat(100_000));
        assert!(
            parse_query(&text, &ParserOptions::default()).is_err(),
            "{open}"
        );
    }
    let limits = Limits {
        nesting_max: 3,
        operators_max: 5,
    };
    let options = ParserOptions {
        limits,
        ..ParserOptions::default()
    };
    assert!(parse_query("ASK { FILTER((1)) }", &options).is_ok());
    assert!(parse_query("ASK { FILTER(((1))) }", &options).is_err());
}

#[test]
fn an_error_is_told_before_there_are_too_many_operators() {
    let limits = Limits {
        operators_max: 5,
        ..Limits::default()
    };
    let options = ParserOptions {
        limits,
        ..ParserOptions::default()
    };
    let is_too_many = |text: &str| {
        let error = parse_query(text, &options).expect_err("wrong");
        matches!(error.kind, ErrorKind::TooManyOperators { .. })
    };
    let objects = "?b , ?c , ?d , ?e , ?f , ?g , ?h";
    assert!(is_too_many(&format!("ASK {{ ?a !<p:p> {objects} }}")));
    assert!(!is_too_many(&format!(
        "ASK {{ ?a !<p:p> {objects} ; <p:q> }}"
    )));
}

#[test]
fn a_comparison_is_no_operand_of_another() {
    for (condition, is_right) in [
        ("?a = ?b = ?c", false),
        ("?a || ?b = ?c = ?d", false),
        ("?a && ?b < ?c > ?d", false),
        ("?a IN (1) = ?b", false),
        ("?a || ?b = ?c || ?d = ?e && ?f", true),
        ("?a + ?b * ?c - ?d = ?e / ?f && ?g", true),
        ("(?a = ?b) = ?c", true),
    ] {
        let read = parse_query(&filter(condition), &ParserOptions::default());
        assert_eq!(read.is_ok(), is_right, "{condition}");
    }
}

#[test]
fn a_text_that_nobody_waits_for_is_not_read_on() {
    let quads: String = (0..100_000)
        .map(|n| format!("<http://e/{n}> <http://e/p> {n} .\n"))
        .collect();
    let text = format!("INSERT DATA {{ {quads} }}");
    let looks = std::cell::Cell::new(0);
    let from_second_on = || {
        looks.set(looks.get() + 1);
        looks.get() >= 2
    };
    let options = ParserOptions {
        abandoned: Some(&from_second_on),
        ..ParserOptions::default()
    };
    parse_update(&text, &options).expect_err("half a text");
    assert!(looks.get() <= 3, "{}", looks.get());
}
