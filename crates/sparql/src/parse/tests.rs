use super::*;

fn based(base_iri: &str) -> Assumed<'_> {
    Assumed {
        base_iri: Some(base_iri),
        prefixes: None,
        waiting: None,
    }
}

fn read(text: &str) -> Result<Query, QueryError> {
    let query = parse(text, based("http://example.com/"), Stack::Large);
    query.map(|(query, _)| query).map_err(Refused::into_error)
}

#[test]
fn words_are_those_outside_of_strings_iris_comments_and_variables() {
    let text = "SELECT ?from { <http://x/GRAPH> a ex:graph-1 ; ex:p 'FROM' . # GRAPH\n ?é \"\"\"GRAPH\"\"\" ?s } LIMIT 1";
    let words: Vec<&str> = words_of(text).collect();
    assert_eq!(words, ["SELECT", "a", "LIMIT"]);
    for text in ["", "?", "'", "'\\", "<", "#", "é", "\"\"\""] {
        assert!(words_of(text).all(|word| word == "é"), "{text}");
    }
}

#[test]
fn a_syntax_error_names_line_column_and_word() {
    let error = read("SELECT * WHERE {\n  ?s ?p FOO }").expect_err("not SPARQL");
    match error {
        QueryError::Syntax {
            message,
            line,
            column,
            detail,
        } => {
            assert_eq!((line, column), (2, 9), "{message}");
            assert!(message.contains("FOO"), "{message}");
            assert_eq!(detail.map(|it| it.span), Some(25..28));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn an_update_for_a_query_is_told_as_such() {
    let message = |text: &str| read(text).expect_err("no query").to_string();
    assert!(message("DELETE WHERE { ?s ?p ?o }").contains("this is an update"));
    // Nothing is no update.
    for text in ["SELEC", "EXPLAIN"] {
        assert!(!message(text).contains("update"), "{text}");
    }
}

#[test]
fn what_is_unusual_asks_for_a_large_stack_and_what_is_hostile_is_refused() {
    let nested = |levels: usize| {
        format!(
            "ASK {{ FILTER({}1{}) }}",
            "(".repeat(levels),
            ")".repeat(levels)
        )
    };
    assert!(parse(&nested(3), Assumed::default(), Stack::Ordinary).is_ok());
    for text in [
        nested(20),
        format!("ASK {{ FILTER({} true) }}", "?x || ".repeat(500)),
        format!("ASK {{ {} }}", "OPTIONAL { ?s ?p ?o } ".repeat(500)),
    ] {
        let ordinary = parse(&text, Assumed::default(), Stack::Ordinary);
        assert!(matches!(ordinary, Err(Refused::NeedsLargeStack)), "{text}");
        on_large_stack("test", || {
            parse(&text, Assumed::default(), Stack::Large).map_err(Refused::into_error)?;
            Ok(())
        })
        .expect("in bounds");
    }
    let text = format!("SELECT * {{\n{}", "{".repeat(100_000));
    match read(&text) {
        Err(QueryError::Syntax { line, column, .. }) => {
            assert_eq!((line, column), (2, LARGE.nesting_max));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_guess_at_the_size_looks_at_length_and_brackets() {
    assert!(looks_small("ASK { ?s ?p ?o }", 100));
    assert!(!looks_small("ASK { ?s ?p ?o }", 10));
    assert!(!looks_small(&"(".repeat(20), 100));
}
