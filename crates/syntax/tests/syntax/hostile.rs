//! Tests of hostile texts, which are refused without a crash, hang or much memory. What is refused
//! is refused on a test's stack.

use orrery_syntax::{
    ErrorKind, Limits, ParserOptions, SyntaxError, completion, parse_query, parse_update,
    read_query, read_update,
};

/// What fits an ordinary stack.
fn options() -> ParserOptions<'static> {
    ParserOptions {
        limits: Limits {
            nesting_max: 8,
            operators_max: 150,
        },
        ..ParserOptions::default()
    }
}

fn refused_query(text: &str) -> SyntaxError {
    match parse_query(text, &options()) {
        Ok(_) => panic!("read, and should be too much"),
        Err(error) => *error,
    }
}

fn refused_update(text: &str) -> SyntaxError {
    match parse_update(text, &options()) {
        Ok(_) => panic!("read, and should be too much"),
        Err(error) => *error,
    }
}

fn has_too_many_operators(error: &SyntaxError) -> bool {
    matches!(error.kind, ErrorKind::TooManyOperators { .. })
}

fn has_too_many_copies(error: &SyntaxError) -> bool {
    matches!(error.kind, ErrorKind::TooManyCopies { .. })
}

#[test]
fn triples_behind_a_graph_deepen_what_is_deleted() {
    let objects = vec!["1"; 100_000].join(",");
    let error = refused_update(&format!(
        "DELETE WHERE {{ GRAPH <g:g> {{ ?s ?p ?o }} ?s ?p {objects} }}"
    ));
    assert!(has_too_many_operators(&error), "{error}");
    // Without the graph they are one pattern.
    let flat = format!("DELETE WHERE {{ ?s ?p {objects} }}");
    let (_, shape) = parse_update(&flat, &options()).expect("triples");
    assert!(shape.operators < 5, "{shape:?}");
}

#[test]
fn paths_are_counted_before_they_are_joined() {
    let objects = vec!["1"; 100_000].join(",");
    for text in [
        format!("SELECT * {{ ?s <u:p>* {objects} }}"),
        format!("SELECT * {{ ?s <u:q> 1 ; <u:p>* {objects} }}"),
    ] {
        let error = refused_query(&text);
        assert!(has_too_many_operators(&error), "{error}");
    }
}

#[test]
fn columns_beyond_the_bound_are_skipped() {
    let columns: String = (0..400)
        .map(|number| format!("(1 AS ?a{number}) "))
        .collect();
    let text = format!("SELECT {columns} {{ ?s ?p ?o }}");
    let reading = read_query(&text, &options());
    assert!(reading.errors.len() > 90, "{}", reading.errors.len());
    completion(&text, text.len(), false, &options());
}

#[test]
fn names_are_short_whatever_the_text_holds() {
    let blanks = vec!["[]"; 20_000].join(",");
    let underscores = "_".repeat(400_000);
    let text = format!("# _g{underscores}1 _g2\nSELECT * {{ ?s ?p {blanks} }}");
    let (query, _) = parse_query(&text, &options()).expect("blank nodes");
    let tree = query.to_string();
    assert!(tree.len() < 20_000 * 40, "{}", tree.len());
    let names = ["_:_g1 ", "_:_g3 ", "_:_g20001 "];
    assert!(names.iter().all(|name| tree.contains(name)));
    assert!(!tree.contains("_:_g2 "), "the text has this one");
}

#[test]
fn copies_are_bounded() {
    let long = "x".repeat(20_000);
    let objects = vec!["1"; 10_000].join(",");
    let iris = "<a>,".repeat(10_000);
    let names = "p:a,".repeat(10_000);
    let steps = vec!["<u:a>"; 100].join("/");
    let negated = vec!["<u:a>"; 2_000].join("|");
    for text in [
        format!("ASK {{ ?s {steps} {objects} }}"),
        format!("ASK {{ ?s !({negated}) {objects} }}"),
        format!("ASK {{ ?s <u:{long}> {objects} }}"),
        format!("ASK {{ <u:{long}> ?p {objects} }}"),
        format!("ASK {{ ?s ?p '{long}' {} }}", "~".repeat(10_000)),
        format!("BASE <http://e/{long}/> ASK {{ ?s ?p {iris} 1 }}"),
        format!("PREFIX p: <http://e/{long}/> ASK {{ ?s ?p {names} 1 }}"),
    ] {
        let error = refused_query(&text);
        assert!(has_too_many_copies(&error), "{error}");
    }
    for text in [
        format!("INSERT DATA {{ GRAPH <u:{long}> {{ <u:s> <u:p> {objects} }} }}"),
        format!("WITH <u:{long}> INSERT {{ <u:s> <u:p> {objects} }} WHERE {{}}"),
    ] {
        let error = refused_update(&text);
        assert!(has_too_many_copies(&error), "{error}");
    }
    // Long terms that each stand for themselves are as long as the text.
    let own = format!("<u:{long}> ?p '{long}' . ").repeat(20);
    assert!(parse_query(&format!("ASK {{ {own} }}"), &options()).is_ok());
}

#[test]
fn a_tolerant_reader_gives_up_after_many_errors() {
    let errors = |text: &str| read_query(text, &options()).errors.len();
    let wrong = "?s ?p . ".repeat(50_000);
    assert_eq!(errors(&format!("ASK {{ {wrong} }}")), 101);
    let variables: String = (0..10_000).map(|number| format!("?v{number} ")).collect();
    let rows = "() ".repeat(50_000);
    assert_eq!(
        errors(&format!("ASK {{ VALUES ({variables}) {{ {rows} }} }}")),
        101
    );
    let update = "CLEAR EVERYTHING ; ".repeat(50_000);
    assert_eq!(read_update(&update, &options()).errors.len(), 101);
}

#[test]
fn wrong_rows_are_left_out() {
    let text = "ASK { VALUES (?a ?b) { (1 2) (3) (4 5) } }";
    let reading = read_query(text, &options());
    assert_eq!(reading.errors.len(), 1);
    let tree = reading.tree.expect("closed").to_string();
    assert!(!tree.contains("\"3\"") && tree.contains("\"5\""), "{tree}");
}

#[test]
fn open_brackets_are_skipped_in_one_pass() {
    let open = "( ".repeat(300_000);
    assert!(
        !read_query(&format!("ASK {{ ?s , {open}"), &options())
            .errors
            .is_empty()
    );
    assert!(
        !read_query(&format!("ASK {{ FILTER({open}"), &options())
            .errors
            .is_empty()
    );
    assert!(
        !read_update(&format!("INSERT {open}"), &options())
            .errors
            .is_empty()
    );
}

#[test]
fn columns_that_use_earlier_ones_are_looked_up() {
    let count = 4_000;
    let columns: String = (0..count)
        .map(|number| format!("(1 AS ?c{number}) "))
        .collect();
    let uses = vec![format!("?c{}", count - 1); 50_000].join(",");
    let text = format!("SELECT (COUNT(*) AS ?n) {columns} (CONCAT({uses}) AS ?z) {{}}");
    // Much is allowed here, which takes a stack.
    let work = move || {
        let limits = Limits {
            operators_max: count + 10,
            ..Limits::default()
        };
        let options = ParserOptions {
            limits,
            ..ParserOptions::default()
        };
        assert!(parse_query(&text, &options).is_ok());
    };
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    thread.spawn(work).unwrap().join().unwrap();
}
