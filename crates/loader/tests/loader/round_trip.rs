//! Property tests: any set of quads loads and reads back, in memory and through disk.

#![expect(clippy::expect_used, reason = "helpers of tests are tests")]

use orrery_loader::{LoadOptions, SilentProgress, Source, load};
use orrery_storage::Database;
use oxrdf::{GraphName, Literal, NamedNode, Quad, Term};
use oxttl::NQuadsParser;
use proptest::prelude::*;
use std::collections::HashSet;
use std::fmt::Write;

fn iri() -> impl Strategy<Value = NamedNode> {
    "(http://example\\.org/|urn:|http://é\\.example/\\?q=)[a-zA-Z0-9é中😀._~-]{0,12}"
        .prop_map(NamedNode::new_unchecked)
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        "[+-]?0{0,3}[0-9]{0,30}",
        "[+-]?[0-9]{0,9}\\.[0-9]{0,9}",
        "-?[0-9]\\.[0-9]{1,17}[eE][+-]?[0-9]{1,3}",
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| format!("{n:E}")),
        Just("-0.0".to_owned()),
        Just("NaN".to_owned()),
        Just("-INF".to_owned()),
        Just("true".to_owned()),
    ]
}

fn moment() -> impl Strategy<Value = String> {
    "-?[0-9]{4,6}-[01][0-9]-[0-3][0-9](T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,12})?)?(Z|[+-]1[0-4]:00)?"
}

fn literal() -> impl Strategy<Value = Literal> {
    let types = [
        "integer",
        "int",
        "byte",
        "unsignedLong",
        "decimal",
        "double",
        "float",
        "boolean",
        "date",
        "dateTime",
        "gYear",
        "time",
        "string",
        "anyURI",
    ];
    let datatype = proptest::sample::select(types.to_vec()).prop_map(|name| {
        NamedNode::new_unchecked(format!("http://www.w3.org/2001/XMLSchema#{name}"))
    });
    let tags = ["en", "EN-us", "de-AT-1996", "x-mine", "zh-Hant"];
    prop_oneof![
        any::<String>().prop_map(Literal::new_simple_literal),
        ".{0,9}".prop_map(Literal::new_simple_literal),
        ("[a-c]{0,3}", 0..3000_usize)
            .prop_map(|(text, times)| Literal::new_simple_literal(text.repeat(times))),
        (any::<String>(), proptest::sample::select(tags.to_vec())).prop_map(|(text, tag)| {
            let tag = tag.to_ascii_lowercase();
            Literal::new_language_tagged_literal_unchecked(text, tag)
        }),
        (
            prop_oneof![number(), moment(), any::<String>()],
            prop_oneof![datatype, iri()]
        )
            .prop_map(|(text, datatype)| Literal::new_typed_literal(text, datatype)),
    ]
}

fn quad() -> impl Strategy<Value = Quad> {
    let object = prop_oneof![iri().prop_map(Term::from), literal().prop_map(Term::from)];
    let graph = prop_oneof![
        3 => Just(GraphName::DefaultGraph),
        1 => iri().prop_map(GraphName::from),
    ];
    (iri(), iri(), object, graph).prop_map(|(s, p, o, g)| Quad::new(s, p, o, g))
}

fn parse(text: &str) -> HashSet<Quad> {
    let quads = NQuadsParser::new().for_slice(text);
    quads.map(|quad| quad.expect("valid N-Quads")).collect()
}

proptest! {
    // Every case creates and publishes databases, with real files.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn quads_come_back_to_the_letter(
        first in proptest::collection::vec(quad(), 0..200),
        second in proptest::collection::vec(quad(), 0..200),
        memory_bytes in prop_oneof![Just(1_u64 << 20), Just(256 << 20)],
    ) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let db = directory.path().join("db");
        let options = LoadOptions { memory_bytes, threads: 2, ..LoadOptions::default() };
        for (number, quads) in [&first, &second].into_iter().enumerate() {
            let mut text = String::new();
            for quad in quads {
                writeln!(text, "{quad} .").expect("a string takes all");
            }
            let path = directory.path().join(format!("{number}.nq"));
            std::fs::write(&path, text).expect("a file");
            load(&db, &[Source::File(path)], &options, &SilentProgress).expect("a load");
        }

        let database = Database::open(&db).expect("a database");
        let view = database.view_of_process();
        let mut dump = String::new();
        let mut quads = view.quads().expect("quads");
        while let Some(batch) = quads.next_batch().expect("a batch") {
            for quad in batch.iter() {
                write!(dump, "{} {} {} ", quad.subject, quad.predicate, quad.object).expect("text");
                let graph = quad.graph.map(ToString::to_string).unwrap_or_default();
                writeln!(dump, "{graph} .").expect("text");
            }
        }
        let expected: HashSet<Quad> = first.into_iter().chain(second).collect();
        prop_assert_eq!(view.quad_count(), expected.len() as u64);
        prop_assert_eq!(parse(&dump), expected);
    }
}
