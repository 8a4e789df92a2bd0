//! Tests of the fast parser against the grammar.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::super::parse;
use super::*;

/// Base of relative IRIs, as the server sets one.
const BASE: &str = "http://127.0.0.1:7878/sparql";

/// The quads of each operation as text; `true` for an insertion.
fn shown(operations: &[Operation]) -> Vec<(bool, Vec<[String; 4]>)> {
    let each = |operation: &Operation| match operation {
        Operation::InsertData(data) => (true, data.shown()),
        Operation::DeleteData(data) => (false, data.shown()),
        _ => panic!("only DATA is read here"),
    };
    operations.iter().map(each).collect()
}

fn by_grammar(text: &str) -> Option<Vec<(bool, Vec<[String; 4]>)>> {
    let operations = parse::operations_by_grammar(text, Some(BASE)).ok()?;
    Some(shown(&operations))
}

fn check(text: &str) -> bool {
    let Some(operations) = read(text, &|| false) else {
        return false;
    };
    assert_eq!(Some(shown(&operations)), by_grammar(text), "{text}");
    true
}

#[test]
fn what_clients_write_is_read_here() {
    for text in [
        "INSERT DATA { <http://e/a> <http://e/p> <http://e/b> . }",
        "insert data{<http://e/a> <http://e/p> <http://e/b>}",
        "PREFIX e: <http://e/> PREFIX : <urn:x:> DELETE DATA { e:a a e:B ; :p \"x\" , \"y\"@en ; . } ;",
        "PREFIX g: <http://g/> INSERT DATA { g:a g:b g:c. GRAPH g:h { g:a g:b 12 . g:a g:b 13. } g:a g:b \"z\" }",
        "INSERT DATA { <http://e/a> <http://e/p> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer>, _:x1 . _:x1 <urn:p> _:x1 }",
        "INSERT DATA { } ; DELETE DATA { <http://e/a> <http://e/p> \"Grüße, 世界\" }",
        "PREFIX e: <http://e/> PREFIX f: <http://f/> PREFIX e: <http://g/> INSERT DATA { e:a e:p e:b } ; INSERT DATA { e:a e:p f: }",
        "INSERT DATA { <http://e/a?b=c#d> <mailto:x@y.example> \"\" }",
    ] {
        assert!(check(text), "{text}");
    }
}

#[test]
fn the_rest_is_the_grammars() {
    for text in [
        "",
        "INSERT DATA { <a> <http://e/p> <http://e/b> }",
        "INSERT DATA { <http://e/a/../b> <http://e/p> <http://e/b> }",
        "INSERT DATA { <http://e/%zz> <http://e/p> <http://e/b> }",
        "INSERT DATA { <http://e:80x/> <http://e/p> <http://e/b> }",
        "INSERT DATA { <http://e/a#b#c> <http://e/p> <http://e/b> }",
        "INSERT DATA { <http://e/a> <http://e/p> <http://e/b> <http://e/c> }",
        "INSERT DATA { <http://e/a> <http://e/p> 1.5 , 1e3, -1 }",
        "INSERT DATA { <http://e/a> <http://e/p> 1.}",
        "INSERT DATA { <http://e/a> <http://e/p> true, 'x', \"\"\"y\"\"\", \"a\\tb\" }",
        "INSERT DATA { <http://e/a> <http://e/p> \"x\"@EN-us--ltr }",
        "INSERT DATA { <http://e/a> <http://e/p> \"x\"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> }",
        "INSERT DATA { <http://e/a> <http://e/p> [] , () } # comment",
        "INSERT DATA { ?s <http://e/p> <http://e/b> }",
        "INSERT DATA { \"x\" <http://e/p> <http://e/b> }",
        "DELETE DATA { _:a <http://e/p> <http://e/b> }",
        "INSERT DATA { e:a <http://e/p> <http://e/b> }",
        "INSERT DATA { <http://e/a> <http://e/p> <http://e/b> ",
        "INSERT DATA { <http://e/a> <http://e/p> <http://e/b> } INSERT DATA { }",
        "DELETE WHERE { <http://e/a> <http://e/p> ?o }",
        "PREFIX 1e: <http://e/> INSERT DATA { 1e:a 1e:b 1e:c }",
        "PREFIX e: <http://e/> INSERT DATA { } ; PREFIX e: <http://f/> INSERT DATA { e:a e:p e: }",
        "BASE <http://e/> INSERT DATA { <a> <b> <c> }",
    ] {
        check(text);
    }
}

/// Texts of tokens that are mostly in an order that means something.
fn texts() -> impl Strategy<Value = String> {
    let node = || {
        prop_oneof![
            40 => "<(http://e\\.example|urn:x|http://h)[/:][a-z0-9/?#'-]{0,4}>",
            20 => "(e|g|graph|):[a-z0-9]{0,3}",
            1 => "(<http://a/\\.\\./%a>|e:a-b|e:a\\.b|e:a\\.|e:%41|x:y|<a>|<http://e/ü>|a)",
        ]
    };
    let literal = prop_oneof![
        20 => "\"[a-zé ]{0,3}\"(@en|@de|\\^\\^<urn:d>|\\^\\^e:d||)",
        10 => "[0-9]{1,3}",
        1 => "('x'|1\\.|1\\.5|1e3|\"\"@EN|\"\"@en-us|\"\"@x|\"\"\"y\"\"\"|\"a\\\\n\"|true|-1|\\[\\]|\"x\"\\^\\^<urn:a/\\.\\./b>)",
    ];
    let blank = "_:[a-c1]{1,2}";
    let subject = prop_oneof![8 => node(), 1 => blank];
    let object = prop_oneof![4 => node(), 4 => literal, 1 => blank];
    let predicate = prop_oneof![4 => node(), 1 => Just("a".to_owned())];
    let space =
        || prop_oneof![60 => Just(" "), 4 => Just(""), 1 => Just("\n"), 1 => Just(" # c\n")];
    let end = prop_oneof![
        16 => Just("."),
        2 => Just(";"),
        2 => Just(","),
        2 => Just("; ."),
        1 => Just(""),
        1 => Just("} GRAPH <urn:g> {")
    ];
    let triple = (
        subject,
        space(),
        predicate,
        space(),
        object,
        space(),
        end,
        space(),
    )
        .prop_map(|(s, a, p, b, o, c, e, d)| format!("{s}{a}{p}{b}{o}{c}{e}{d}"));
    let pair = (
        predicate_of_pair(),
        space(),
        "(\"x\"|e:y|7)",
        space(),
        "(\\.|;|,)",
    )
        .prop_map(|(p, a, o, b, e)| format!("{p}{a}{o}{b}{e} "));
    let item = prop_oneof![4 => triple, 1 => pair];
    let block = (
        prop_oneof![4 => Just("INSERT DATA {"), 1 => Just("delete data { "), 1 => Just("INSERT DATA { GRAPH e:g {")],
        prop::collection::vec(item, 0..5),
        prop_oneof![6 => Just("}"), 1 => Just("} }"), 1 => Just("} ."), 1 => Just("")],
    )
        .prop_map(|(begin, items, end)| format!("{begin}{}{end}", items.concat()));
    prop::collection::vec(block, 1..3).prop_map(|blocks| {
        format!(
            "PREFIX e: <http://e.example/>\nprefix g:<urn:g:> PREFIX graph: <urn:graph:> PREFIX : <urn:empty#> {}",
            blocks.join(" ; ")
        )
    })
}

fn predicate_of_pair() -> impl Strategy<Value = String> {
    "(a|e:p|<urn:p>)"
}

#[test]
fn whatever_is_read_here_the_grammar_reads_the_same() {
    const TEXTS: usize = 10_000;
    let mut runner = TestRunner::deterministic();
    let strategy = texts();
    let mut read_here = 0;
    for _ in 0..TEXTS {
        let text = strategy.new_tree(&mut runner).unwrap().current();
        read_here += usize::from(check(&text));
    }
    // Else the test says nothing.
    assert!(read_here > TEXTS / 20, "only {read_here} texts were read");
}

#[test]
fn a_text_that_nobody_waits_for_is_not_read_on() {
    let quads: String = (0..100_000)
        .map(|n| format!("<http://e/{n}> <http://e/p> {n} .\n"))
        .collect();
    let text = format!("INSERT DATA {{ {quads} }}");
    let looks = std::cell::Cell::new(0);
    let second = || {
        looks.set(looks.get() + 1);
        looks.get() == 2
    };
    assert!(read(&text, &second).is_none());
    assert_eq!(looks.get(), 2);
}
