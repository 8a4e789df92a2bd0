//! Tests of messages about wrong data: each common mistake with its message, in `messages.md`.
//!
//! `UPDATE_MESSAGES=1 cargo test --release --workspace --test loader messages` writes it anew.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail on the spot"
)]

use orrery_loader::{
    DocumentBounds, DocumentError, Format, LoadError, LoadOptions, SilentProgress, Source,
    SyntaxError, load, read_document,
};
use std::fmt::Write as _;
use std::io::Cursor;

const EX: &str = "@prefix ex: <http://example.org/> .\n";

/// Format, text (behind the declaration of `ex:` where it is Turtle or TriG).
const MISTAKES: &[(Format, &str)] = &[
    (Format::Turtle, "ex:a ex:p \"not closed .\nex:b ex:p 1 .\n"),
    (Format::Turtle, "ex:a foaf:name \"Alice\" .\n"),
    (Format::Turtle, "ex:a my:name \"Alice\" .\n"),
    (Format::Turtle, "ex:a ex:p ex:b\nex:c ex:p ex:d .\n"),
    (Format::Turtle, "ex:a ex:p ex:b ex:c .\n"),
    (Format::Turtle, "ex:a ex:p <http://exa mple.org/> .\n"),
    (Format::Turtle, "ex:a ex:p <http://example.org/{x}> .\n"),
    (
        Format::Turtle,
        "ex:a ex:p <http://example.org/x .\nex:b ex:p 1 .\n",
    ),
    (Format::Turtle, "ex:a ex:p <relative> .\n"),
    (Format::Turtle, "ex:a ex:p \"colour\"@en_GB .\n"),
    (Format::Turtle, "ex:a ex:p \"colour\"@ en .\n"),
    (Format::Turtle, "ex:a ex:p \"1\"^^\"integer\" .\n"),
    (Format::Turtle, "ex:a ex:p ex:b ;\n"),
    (Format::Turtle, "@prefix e <http://example.org/> .\n"),
    (Format::Turtle, "ex:a ex:p [ ex:q 1 .\n"),
    (Format::Turtle, "\"text\" ex:p ex:b .\n"),
    (Format::Turtle, "ex:a \"p\" ex:b .\n"),
    (Format::Turtle, "ex:a ex:p bare .\n"),
    (Format::Turtle, "bare ex:p ex:b .\n"),
    (Format::Turtle, "ex:a ex:p “quoted” .\n"),
    (Format::Turtle, "ex:a ex:p \"a \"quoted\" word\" .\n"),
    (Format::Turtle, "ex:a ex:p 1 .. \n"),
    (Format::Turtle, "ex:a ex:p .\n"),
    (Format::Turtle, "ex:a ex:p ex:b, .\n"),
    (Format::Turtle, "GRAPH ex:g { ex:a ex:p 1 }\n"),
    (Format::Turtle, "ex:g { ex:a ex:p 1 }\n"),
    (Format::Turtle, "ex:a ex:p \"C:\\data\" .\n"),
    (Format::Turtle, "ex:a ex:p True .\n"),
    (Format::Turtle, "ex:a ex:p 2020-12-31 .\n"),
    (Format::Turtle, "ex:a ex:p ex:b/c .\n"),
    (Format::Turtle, "ex:a ex:p ?x .\n"),
    (Format::Turtle, "ex:a ex:p [ ex:q ] .\n"),
    (Format::Turtle, "ex:a ex:p [ ex:q 1 ] ] .\n"),
    (Format::Turtle, "] ex:p 1 .\n"),
    (
        Format::Turtle,
        "<http://e/a\\u0020b> <http://e/p> \"x y\" .\n",
    ),
    (
        Format::Turtle,
        "<http://e/a\\u007Bb> <http://e/p> \"{\" .\n",
    ),
    (
        Format::Turtle,
        "<http://e/a\\u003Cb> <http://e/p> <http://e/o> .\n",
    ),
    (Format::Turtle, "http://e/a ex:p 1 .\n"),
    (Format::Turtle, "ex:a ex:p urn:isbn:0451450523 .\n"),
    (
        Format::Turtle,
        "ex:a ex:p https://example.org/a/long/path/to/a/page .\n",
    ),
    (Format::Turtle, "ex:a ex:p s3://bucket/key .\n"),
    (
        Format::Turtle,
        "ex:a ex:p \"\"\"never closed .\n\nex:b ex:p 1 .\n",
    ),
    (Format::Turtle, "ex:a ex:p '''never closed .\n"),
    (Format::Turtle, "ex:a ex:p 'not closed"),
    // What steers a terminal.
    (Format::Turtle, "ex:a ex:p \u{1b}[31mred .\n"),
    (Format::Turtle, "ex:a ex:p \u{202e}left .\n"),
    (Format::Turtle, "ex:a ex:p \"x\"^^\"\u{1b}[31m\" .\n"),
    (Format::Turtle, "ex:a ex:p <http://e/\u{1b}[31m> .\n"),
    (Format::NTriples, "<http://e/a> <http://e/p> \u{1b}[31m .\n"),
    (
        Format::NTriples,
        "<http://e/a> <http://e/p> <\u{1b}[31m> .\n",
    ),
    (
        Format::NTriples,
        "<http://e/a> <http://e/p> e:\u{9b}31m .\n",
    ),
    (Format::TriG, "ex:g { ex:a ex:p 1 \n"),
    (Format::TriG, "ex:g { ex:a ex:p }\n"),
    (
        Format::NTriples,
        "@prefix ex: <http://example.org/> .\nex:a ex:p ex:b .\n",
    ),
    (Format::NTriples, "ex:a ex:p ex:b .\n"),
    (Format::NTriples, "http://e/a <http://e/p> <http://e/o> .\n"),
    (
        Format::NTriples,
        "<http://e/a\\u0020b> <http://e/p> \"x y\" .\n",
    ),
    (Format::NTriples, "<a> <http://e/p> <http://e/o> .\n"),
    (
        Format::NTriples,
        "<http://e/a> <http://e/p> <http://e/o>\n<http://e/a> <http://e/p> <http://e/o> .\n",
    ),
    (
        Format::NTriples,
        "<http://e/a> <http://e/p> \"not closed .\n",
    ),
    (
        Format::NTriples,
        "<http://e/a> <http://e/p> \"a \"quoted\" word\" .\n",
    ),
    (
        Format::NTriples,
        "<http://e/a> <http://e/p> \"colour\"@en_GB .\n",
    ),
    (Format::NTriples, "<http://e/a> <http://e/p q> \"x\" .\n"),
    (Format::NTriples, "<http://e/a> <http://e/p> 5 .\n"),
    (Format::NTriples, "<http://e/a> <http://e/p> true .\n"),
    (
        Format::NTriples,
        "<http://e/a> <http://e/p> \"x\" <http://e/g> .\n",
    ),
    (Format::NTriples, "<http://e/a> a <http://e/T> .\n"),
    (
        Format::NTriples,
        "<http://e/a> <http://e/p> \"1\"^^xsd:int .\n",
    ),
    (
        Format::NTriples,
        "<http://e/a> <http://e/p> <http://e/o> ; <http://e/q> <http://e/o> .\n",
    ),
    (
        Format::Turtle,
        "<?xml version='1.0'?>\n<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>\n",
    ),
    (
        Format::RdfXml,
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>\n  <foaf:Person/>\n</rdf:RDF>\n",
    ),
    (
        Format::RdfXml,
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>\n  <e:P><e:q>this & that</e:q></e:P>\n</rdf:RDF>\n",
    ),
    (
        Format::RdfXml,
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>\n  <e:P><e:q>&lt;this&#62; &amp; that & those</e:q></e:P>\n</rdf:RDF>\n",
    ),
    (
        Format::JsonLd,
        "{\n  \"@id\": \"http://e/a\",\n  \"http://e/p\": 5,\n}\n",
    ),
    (Format::Turtle, "ex:a ex:p 'it's' .\n"),
    (Format::Turtle, "ex:a ex:p ( ex:b ex:c .\n"),
    (Format::TriG, "GRAPH { ex:a ex:p ex:b }\n"),
    (
        Format::RdfXml,
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>\n<rdf:Description rdf:about='http://e/a'><e:b>x</e:c></rdf:Description>\n</rdf:RDF>\n",
    ),
    (
        Format::RdfXml,
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>\n<rdf:Description rdf:about='http://e/a'><f:b>x</f:b></rdf:Description>\n</rdf:RDF>\n",
    ),
    (
        Format::RdfXml,
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>\n<rdf:Description rdf:ID='1 2'/>\n</rdf:RDF>\n",
    ),
    (
        Format::RdfXml,
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>\n<rdf:Description rdf:about='http://e/a'><e:b rdf:resource='http://e/x y'/></rdf:Description>\n</rdf:RDF>\n",
    ),
    (
        Format::RdfXml,
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>\n<rdf:Description rdf:about=http://e/a/>\n</rdf:RDF>\n",
    ),
    (
        Format::RdfXml,
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>\n<e:T/> some text <e:T/>\n</rdf:RDF>\n",
    ),
    (
        Format::RdfXml,
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>\n<rdf:Description rdf:about='http://e/a'><e:b>caf&eacute;</e:b></rdf:Description>\n</rdf:RDF>\n",
    ),
    (
        Format::RdfXml,
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>\n<rdf:Description rdf:about='http://e/a'>\n",
    ),
    (
        Format::RdfXml,
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>\n<rdf:Description\n",
    ),
    (Format::JsonLd, "{'@id': 'http://e/a'}\n"),
    (Format::JsonLd, "{\n  \"@id\": 5,\n  \"http://e/p\": 5\n}\n"),
    (
        Format::JsonLd,
        "{\n  \"@context\": \"https://schema.org/\",\n  \"@id\": \"http://e/a\",\n  \"name\": 5\n}\n",
    ),
    (
        Format::JsonLd,
        "{\n  \"@context\": {\"e\": 5},\n  \"@id\": \"http://e/a\",\n  \"e:p\": 5\n}\n",
    ),
    (
        Format::JsonLd,
        "{\n  \"@id\": \"http://e/a\",\n  \"http://e/p\": {\"@value\": \"x\", \"@type\": \"http://e/t\", \"@language\": \"en\"}\n}\n",
    ),
    (
        Format::JsonLd,
        "{\n  \"@id\": \"http://e/a\",\n  \"http://e/p\": [{\"@value\": \"x\"}, {\"@value\": [\"y\"]}]\n}\n",
    ),
    (
        Format::JsonLd,
        "{\n  \"@id\": \"http://e/a\",\n  \"http://e/p\": {\"@list\": [1], \"@id\": \"http://e/b\"}\n}\n",
    ),
    (
        Format::JsonLd,
        "{\n  \"@id\": \"http://e/a\"\n  \"http://e/p\": 5\n}\n",
    ),
    (
        Format::RdfXml,
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>\n<rdf:Description rdf:about='http://e/a'><e:b rdf:resource='http://e/x<y'/></rdf:Description>\n</rdf:RDF>\n",
    ),
    (
        Format::RdfXml,
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>\n<rdf:Description rdf:about='http://e/a'><e:c>1</e:c><e:b>x</e:c></rdf:Description>\n</rdf:RDF>\n",
    ),
    (
        Format::JsonLd,
        "{\n  \"@context\": {\"@base\": \"x/\"},\n  \"@id\": \"a\",\n  \"http://e/p\": 5\n}\n",
    ),
    (
        Format::JsonLd,
        "{\n  \"@context\": {\"@direction\": \"up\"},\n  \"http://e/p\": 5\n}\n",
    ),
    (Format::JsonLd, "[\n  {\"@id\": 5},\n  {\"@id\": 6}\n]\n"),
];

fn error_of(format: Format, text: &str) -> SyntaxError {
    let bounds = DocumentBounds {
        memory_bytes: 1 << 24,
        hold: &mut |_| true,
        waiting: None,
    };
    let name = format!("data.{}", format.short_name());
    let input = Cursor::new(text.to_owned().into_bytes());
    match read_document(input, &name, format, None, bounds) {
        Err(DocumentError::Syntax(error)) => *error,
        Err(other) => panic!("{text}: {other}"),
        Ok(_) => panic!("this is right: {text}"),
    }
}

#[test]
fn each_common_mistake_in_data_has_its_message() {
    let mut all = "# What is said of wrong data\n\nWritten by `UPDATE_MESSAGES=1 cargo test --release --workspace --test \
                   loader messages`; the line of Turtle's and TriG's first prefix is left out.\n"
        .to_owned();
    for (format, text) in MISTAKES {
        let has_prefix =
            matches!(format, Format::Turtle | Format::TriG) && !text.starts_with("<?xml");
        let whole = match has_prefix {
            true => format!("{EX}{text}"),
            false => (*text).to_owned(),
        };
        let error = error_of(*format, &whole);
        let steers = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!error.to_string().contains(steers), "{error:?}");
        // Clients over HTTP are told the same, and have no command line.
        assert!(!error.to_string().contains("--"), "{error:?}");
        all.push_str("\n```text\n");
        // Where the text ended, there is no line to show.
        if let Some(excerpt) = &error.excerpt {
            let [line, carets] = excerpt.lines(error.line);
            writeln!(all, "{line}\n{carets}").unwrap();
        }
        writeln!(all, "{error}\n```").unwrap();
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/loader/messages.md");
    if std::env::var_os("UPDATE_MESSAGES").is_some() {
        std::fs::write(&path, &all).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    for (found, expected) in all.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(all.lines().count(), expected.lines().count());
}

#[test]
fn a_wrong_line_of_any_block_has_its_number_and_its_text() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("large.nt");
    let mut text = String::new();
    // Several blocks of a mebibyte.
    let lines = 60_000;
    for number in 0..lines {
        match number == lines - 1000 {
            true => text.push_str("<http://e/a> <http://e/p> oops .\n"),
            false => writeln!(text, "<http://e/subject{number}> <http://e/p> \"x y z\" .").unwrap(),
        }
    }
    assert!(text.len() > 2 << 20);
    std::fs::write(&file, text).unwrap();
    let options = LoadOptions {
        threads: 4,
        ..LoadOptions::default()
    };
    let database = directory.path().join("db");
    let loaded = load(&database, &[Source::File(file)], &options, &SilentProgress);
    let Err(LoadError::Syntax(error)) = loaded else {
        panic!("it is wrong");
    };
    assert_eq!(
        (error.line, error.column),
        (Some(lines - 1000 + 1), Some(27))
    );
    let [line, caret] = error.excerpt.unwrap().lines(error.line);
    assert_eq!(line, "59001 | <http://e/a> <http://e/p> oops .");
    assert_eq!(caret.find('^'), line.find("oops"));
}
