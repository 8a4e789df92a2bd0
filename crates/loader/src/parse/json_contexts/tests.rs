//! Tests of contexts at the limits and beyond, read in pieces of any size.

use super::*;
use crate::sources::format::Format;
use crate::{DocumentBounds, read_document};

/// What is said of a text; the same in whatever pieces it comes.
fn refused(text: &str) -> Option<String> {
    let in_pieces = |length: usize| {
        let mut scan = Scan::default();
        let mut pieces = text.as_bytes().chunks(length);
        pieces.find_map(|piece| scan.push(piece).err().map(|error| error.to_string()))
    };
    let whole = in_pieces(text.len());
    assert_eq!(in_pieces(1), whole);
    assert_eq!(in_pieces(7), whole);
    whole
}

/// Definitions of which each needs the next, by every way.
fn chains(length: usize) -> Vec<String> {
    let ways: [fn(usize) -> String; 7] = [
        |it| format!("\"t{it}\":\"t{}:x\"", it + 1),
        |it| format!("\"t{it}\":\"t{}\"", it + 1),
        |it| format!("\"t{it}\":{{\"@id\":\"t{}\"}}", it + 1),
        |it| {
            format!(
                "\"t{it}\":{{\"@id\":\"http://e/\",\"@type\":\"t{}\"}}",
                it + 1
            )
        },
        |it| format!("\"t{it}\":{{\"@reverse\":\"t{}:x\"}}", it + 1),
        |it| {
            format!(
                "\"t{it}\":{{\"@id\":\"http://e/\",\"@container\":\"@index\",\"@index\":\"t{}\"}}",
                it + 1
            )
        },
        |it| format!("\"\\u0074{it}\":{{\"\\u0040id\":\"\\u0074{}:x\"}}", it + 1),
    ];
    let of_way = |way: &fn(usize) -> String| {
        let links: Vec<String> = (0..length - 1).map(way).collect();
        format!("{{{},\"t{}\":\"http://e/\"}}", links.join(","), length - 1)
    };
    ways.iter().map(of_way).collect()
}

/// Contexts of terms, one in the other.
fn scoped(levels: usize) -> String {
    let open = "{\"t\":{\"@id\":\"http://e/\",\"@context\":".repeat(levels - 1);
    format!("{open}{{\"t\":\"http://e/\"}}{}", "}}".repeat(levels - 1))
}

/// A document with a context, and what uses it.
fn document(context: &str) -> String {
    format!(
        "{{\"@context\":{context},\"@id\":\"http://e/a\",\"t0\":{{\"t0:b\":1}},\"t\":{{\"t\":2}}}}"
    )
}

#[test]
fn definitions_that_need_each_other_are_bounded_by_every_way() {
    let max = DEPENDENT_DEFINITIONS_MAX;
    for (right, wrong) in chains(max).iter().zip(chains(max + 1)) {
        assert_eq!(refused(&document(right)), None, "{right}");
        let of_wrong = refused(&document(&wrong)).unwrap();
        assert!(of_wrong.contains("more than 256 in a row"), "{of_wrong}");
        // In arrays, within a definition, with the key escaped, anywhere in a document.
        for around in [
            format!("[\"http://e/\",null,{wrong}]"),
            format!("{{\"a\":{{\"@id\":\"http://e/\",\"@context\":{wrong}}}}}"),
            format!("{{\"a\":{{\"@context\":[null,{wrong}],\"@id\":\"http://e/\"}}}}"),
        ] {
            assert!(refused(&document(&around)).is_some(), "{around}");
        }
        let deep = format!(
            "[{{\"a\":[\"@context\",{}]}}]",
            document(&wrong).replace("@context", "\\u0040\\u0063ontext")
        );
        assert!(refused(&deep).is_some());
    }
    assert_eq!(refused(&document(&scoped(max))), None);
    assert!(refused(&document(&scoped(max + 1))).is_some());
    // Half of them in the context around.
    let half = chains(max / 2 + 1).remove(0);
    let both = half.replace(
        "\"http://e/\"}",
        &format!("{{\"@id\":\"http://e/\",\"@context\":{half}}}}}"),
    );
    assert!(refused(&document(&both)).is_some());
    let nulls = |count: usize| document(&format!("[{}{{}}]", "null, ".repeat(count)));
    assert_eq!(refused(&nulls(8)), None);
    assert!(refused(&nulls(9)).unwrap().contains("8 nulls"));
    let circle: Vec<String> = (0..max + 1)
        .map(|it| format!("\"t{it}\":\"t{}:x\"", (it + 1) % (max + 1)))
        .collect();
    let circle = format!(
        "\n{{\"@id\":\"a\",\n\"@context\":{{{}}}}}",
        circle.join(",\n")
    );
    let of_circle = refused(&circle).unwrap();
    assert!(of_circle.contains("begins in line 3 "), "{of_circle}");
}

#[test]
fn contexts_of_many_terms_are_taken() {
    let mut terms: Vec<String> = (0..1_000)
        .map(|it| {
            let of_it = format!("\"@id\":\"s:t{it}\",\"@type\":\"x:date\",\"@language\":\"t1\"");
            format!("\"t{it}\":{{{of_it},\"@context\":{{\"u\":\"t{it}:u\"}}}},\"s:t{it}\":{{}}")
        })
        .collect();
    for own in [
        "\"s\":\"http://e/\",\"x\":{\"@id\":\"s:x/\",\"@prefix\":true}",
        "\"http\":\"http://e/\",\"https\":\"https://e/\",\"name\":{\"@id\":\"name\"}",
        "\"id\":\"@id\",\"type\":\"@type\",\"@vocab\":\"s:v\",\"@base\":\"t1\"",
    ] {
        terms.push(own.to_owned());
    }
    let context = format!("{{{}}}", terms.join(","));
    assert_eq!(refused(&document(&context)), None);
    // What is no context is not looked at.
    let wrong = chains(1_000).remove(0);
    for text in [
        format!("{{\"context\":{wrong},\"a\":\"@context\",\"b\":{wrong}}}"),
        format!("[\"@context\",{wrong}]"),
        format!("{{\"@context\":\"http://e/c\",\"b\":{wrong}}}"),
    ] {
        assert_eq!(refused(&text), None);
    }
}

#[test]
fn copies_of_definitions_are_bounded_by_the_text() {
    let each = |count: usize, text: fn(usize) -> String| {
        let all: Vec<String> = (0..count).map(text).collect();
        all.join(",")
    };
    let terms = |count| each(count, |it| format!("\"t{it}\":\"http://e/{it}\""));
    let many = terms(10_000);
    let long = "x".repeat(300);
    let scoped = "\"@id\":\"http://e/s\",\"@context\":";
    let text =
        |context: &str, nodes: &str| format!("{{\"@context\":{context},\"@graph\":[{nodes}]}}");
    let uses = |node: &str| vec![node; 20_000].join(",");
    for (context, nodes) in [
        (format!("{{{many}}}"), uses("{\"@context\":{}}")),
        (format!("[{{{many}}},{{}}]"), uses("{\"@context\":[{}]}")),
        (
            format!("{{{many},\"s\":{{{scoped}{{}}}}}}"),
            uses("{\"s\":{}}"),
        ),
        (
            format!("{{{many},\"s\":{{{scoped}null}}}}"),
            uses("{\"\\u0073\":{}}"),
        ),
        (
            format!("{{{many},\"s\":{{{scoped}[]}}}}"),
            uses("{\"@type\":\"s\"}"),
        ),
        (
            format!("{{{many},\"{long}\":{{{scoped}[]}}}}"),
            vec![format!("{{\"{long}\":1}}"); 20_000].join(","),
        ),
        (
            format!(
                "{{{}}}",
                each(20_000, |it| format!(
                    "\"t{it}\":{{\"@id\":\"http://e/{it}\",\"@context\":{{}}}}"
                ))
            ),
            String::new(),
        ),
    ] {
        let of_wrong = refused(&text(&context, &nodes)).unwrap();
        assert!(of_wrong.contains("too many terms"), "{of_wrong}");
    }
    // As many as people have.
    let few = terms(300);
    let node = "{\"@type\":\"s\",\"s\":{\"t1\":1,\"t2\":\"a text of a node\"},\"t3\":{\"s\":1}}";
    let context = format!("{{{few},\"s\":{{{scoped}{{\"u\":\"http://e/u\"}}}}}}");
    assert_eq!(refused(&text(&context, &uses(node))), None);
    // Those of other nodes do not hold.
    let own = format!("{{\"@context\":{{{}}},\"t1\":1}}", terms(10));
    assert_eq!(refused(&format!("[{}]", uses(&own))), None);
}

#[test]
fn a_context_in_a_small_circle_is_left_to_the_parser() {
    assert_eq!(refused(&document("{\"a\":\"b:x\",\"b\":\"a:x\"}")), None);
}

fn read(text: String) -> Result<u64, String> {
    let bounds = DocumentBounds {
        memory_bytes: 256 << 20,
        hold: &mut |_| true,
        waiting: None,
    };
    let input = io::Cursor::new(text.into_bytes());
    match read_document(input, "test", Format::JsonLd, None, bounds) {
        Ok(document) => Ok(document.quads().count() as u64),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn a_context_that_would_take_more_stack_than_there_is_ends_its_load_alone() {
    for chain in chains(20_000) {
        let error = read(document(&chain)).unwrap_err();
        assert!(
            error.contains("the @context that begins in line 1"),
            "{error}"
        );
    }
    let nulls = "null,".repeat(200_000);
    let of_type = format!(
        "{{\"@context\":{{\"T\":{{\"@id\":\"http://e/T\",\"@context\":[{nulls}{{}}]}}}},\"@type\":\"T\"}}"
    );
    assert!(read(of_type).unwrap_err().contains("nulls"));
    let deep = "[".repeat(1_000_000);
    assert!(read(deep).unwrap_err().contains("nested deeper"));
}

#[test]
fn what_is_allowed_fits_a_quarter_of_the_stack() {
    let thread = std::thread::Builder::new().stack_size(PARSER_STACK_BYTES / 4);
    let reading = thread.spawn(|| {
        for chain in chains(DEPENDENT_DEFINITIONS_MAX) {
            let _ = read(document(&chain));
        }
        read(document(&scoped(DEPENDENT_DEFINITIONS_MAX))).unwrap();
        // Each node is of a type whose context holds those before it.
        let level = format!(
            "{{\"@context\":{{\"T\":{{\"@id\":\"http://e/T\",\"@context\":[{}{{\"p\":\"http://e/p\"}}]}}}},\
             \"@type\":\"T\",\"p\":",
            "null,".repeat(8)
        );
        let nested = format!("{}1{}", level.repeat(900), "}".repeat(900));
        read(nested)
    });
    assert_eq!(reading.unwrap().join().unwrap(), Ok(1_800));
}
