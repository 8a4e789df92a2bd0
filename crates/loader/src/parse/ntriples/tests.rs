//! Tests of the parser against oxttl: for any bytes, the same quads or both refuse.

use super::*;
use orrery_term::TRIPLE_DEPTH_MAX;
use oxrdf::{
    BaseDirection, BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term, Triple,
};
use oxttl::{NQuadsParser, NTriplesParser};
use std::fs;
use std::path::{Path, PathBuf};

/// Builds oxrdf's quads.
#[derive(Default)]
struct Collect {
    quads: Vec<Quad>,
}

fn subject(term: Term) -> NamedOrBlankNode {
    match term {
        Term::NamedNode(node) => node.into(),
        Term::BlankNode(node) => node.into(),
        other => panic!("the parser handed over {other} as a subject"),
    }
}

fn named(term: Term) -> NamedNode {
    match term {
        Term::NamedNode(node) => node,
        other => panic!("the parser handed over {other} as a predicate"),
    }
}

/// The sink's ids are indexes of a list of terms; a leak keeps this test short.
impl TermSink for Collect {
    type Id = &'static Term;

    fn iri(&mut self, iri: &str) -> Result<Self::Id, Cow<'static, str>> {
        check_iri(iri)?;
        Ok(leak(NamedNode::new_unchecked(iri)))
    }

    fn blank_node(&mut self, label: &str) -> Self::Id {
        leak(BlankNode::new_unchecked(label))
    }

    fn string(&mut self, lexical: &str) -> Self::Id {
        leak(Literal::new_simple_literal(lexical))
    }

    fn language(&mut self, lexical: &str, tag: &str) -> Self::Id {
        leak(Literal::new_language_tagged_literal_unchecked(lexical, tag))
    }

    fn directional(&mut self, lexical: &str, tag: &str, direction: Direction) -> Self::Id {
        let direction = match direction {
            Direction::LeftToRight => BaseDirection::Ltr,
            Direction::RightToLeft => BaseDirection::Rtl,
        };
        leak(Literal::new_directional_language_tagged_literal_unchecked(
            lexical, tag, direction,
        ))
    }

    fn triple(
        &mut self,
        s: Self::Id,
        p: Self::Id,
        o: Self::Id,
    ) -> Result<Self::Id, Cow<'static, str>> {
        Ok(leak(Triple::new(
            subject(s.clone()),
            named(p.clone()),
            o.clone(),
        )))
    }

    fn typed(&mut self, lexical: &str, datatype: &str) -> Result<Self::Id, Cow<'static, str>> {
        check_iri(datatype)?;
        Ok(leak(Literal::new_typed_literal(
            lexical,
            NamedNode::new_unchecked(datatype),
        )))
    }

    fn quad(&mut self, s: Self::Id, p: Self::Id, o: Self::Id, g: Option<Self::Id>) {
        let graph = match g.map(|g| subject(g.clone())) {
            None => GraphName::DefaultGraph,
            Some(NamedOrBlankNode::NamedNode(node)) => node.into(),
            Some(NamedOrBlankNode::BlankNode(node)) => node.into(),
        };
        self.quads.push(Quad::new(
            subject(s.clone()),
            named(p.clone()),
            o.clone(),
            graph,
        ));
    }
}

fn leak(term: impl Into<Term>) -> &'static Term {
    Box::leak(Box::new(term.into()))
}

fn ours(text: &[u8], with_graph: bool) -> Result<Vec<Quad>, LineError> {
    let mut sink = Collect::default();
    let mut first = None;
    parse_block(text, with_graph, &mut sink, &mut |error| {
        first = Some(error);
        AfterError::Stop
    });
    first.map_or(Ok(sink.quads), Err)
}

fn theirs(text: &[u8], with_graph: bool) -> Result<Vec<Quad>, String> {
    if with_graph {
        NQuadsParser::new()
            .for_slice(text)
            .map(|quad| quad.map_err(|error| error.to_string()))
            .collect()
    } else {
        NTriplesParser::new()
            .for_slice(text)
            .map(|triple| match triple {
                Ok(triple) => Ok(triple.in_graph(GraphName::DefaultGraph)),
                Err(error) => Err(error.to_string()),
            })
            .collect()
    }
}

/// Whether both accepted it.
fn assert_same(text: &[u8], with_graph: bool) -> bool {
    match (ours(text, with_graph), theirs(text, with_graph)) {
        (Ok(ours), Ok(theirs)) => {
            assert_eq!(ours, theirs, "{}", text.escape_ascii());
            true
        }
        (Err(_), Err(_)) => false,
        (ours, theirs) => panic!(
            "{}\nours: {:?}\ntheirs: {:?}",
            text.escape_ascii(),
            ours.err(),
            theirs.err()
        ),
    }
}

/// A small generator of pseudo-random numbers (splitmix64), the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ z >> 31) % limit as u64) as usize
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

const IRIS: &[&str] = &[
    "<http://example.org/a>",
    "<http://example.org/b?c=d#e>",
    "<urn:x>",
    "<http://\\u00e9.example/\\U0001F600>",
    "<http://example.org/\u{e9}\u{4e2d}>",
    "<http://u@h:80/%C3%A9>",
    "<http://[::1]/>",
    "<a:>",
];
const BLANK_NODES: &[&str] = &["_:a", "_:b1.c", "_:1", "_:\u{e9}-\u{b7}", "_:a_b"];
const LITERALS: &[&str] = &[
    "\"\"",
    "\"a\"",
    "\"a b \u{e9}\u{1F600}\"@en",
    "\"x\"@de-AT",
    "\"x\"@x-Klingon",
    "\"01\"^^<http://www.w3.org/2001/XMLSchema#integer>",
    "\"s\"^^<http://www.w3.org/2001/XMLSchema#string>",
    "\"\\t\\b\\n\\r\\f\\\"\\'\\\\ \\u00E9\\U0001F600\" ^^ <urn:t\\u0065>",
    "\"a\\tb\" @en-gb",
    "\"x\"@en--ltr",
    "\"x\"@de-AT--rtl",
];
const SEPARATORS: &[&str] = &[" ", "\t", "", " \t "];
const LINE_ENDS: &[&str] = &[
    "\n",
    "\r\n",
    "\r",
    " # a comment\n",
    "#\u{e9}\n",
    "\n\n#c\n",
];

fn or_blank(random: &mut Random) -> &'static str {
    if random.below(4) == 0 {
        random.of(BLANK_NODES)
    } else {
        random.of(IRIS)
    }
}

fn object(random: &mut Random, out: &mut String) {
    match random.below(10) {
        0..5 => out.push_str(random.of(LITERALS)),
        5..8 => out.push_str(or_blank(random)),
        _ => {
            out.push_str("<<(");
            for part in [or_blank(random), random.of(IRIS)] {
                out.push_str(random.of(SEPARATORS));
                out.push_str(part);
            }
            out.push_str(random.of(SEPARATORS));
            object(random, out);
            out.push_str(random.of(SEPARATORS));
            out.push_str(")>>");
        }
    }
}

fn statement(random: &mut Random, with_graph: bool, out: &mut String) {
    out.push_str(random.of(SEPARATORS));
    out.push_str(or_blank(random));
    out.push_str(random.of(SEPARATORS));
    out.push_str(random.of(IRIS));
    out.push_str(random.of(SEPARATORS));
    object(random, out);
    if with_graph && random.below(2) == 0 {
        out.push_str(random.of(SEPARATORS));
        out.push_str(or_blank(random));
    }
    out.push_str(random.of(SEPARATORS));
    out.push('.');
    out.push_str(random.of(SEPARATORS));
    out.push_str(random.of(LINE_ENDS));
}

fn document(random: &mut Random, with_graph: bool) -> String {
    let mut text = String::new();
    for _ in 0..random.below(4) + 1 {
        statement(random, with_graph, &mut text);
    }
    text
}

#[test]
fn generated_documents_are_read_as_oxttl_reads_them() {
    let mut random = Random(1);
    let mut accepted = 0;
    for round in 0..20_000 {
        let with_graph = round % 2 == 0;
        let text = document(&mut random, with_graph);
        accepted += usize::from(assert_same(text.as_bytes(), with_graph));
        // The same under the other grammar may be refused, by both.
        assert_same(text.as_bytes(), !with_graph);
    }
    // Blank nodes without a blank between them run into one another; the rest is valid.
    assert!(accepted > 15_000, "{accepted}");
}

#[test]
fn mutated_documents_are_read_or_refused_as_by_oxttl() {
    const BYTES: &[u8] = b"<>()\"'\\@^_:.#% \t\n\r-aUuxEf019{}|`/?[]\x00\x7f\x80\xc3\xff\xed\xa0";
    let mut random = Random(2);
    let mut accepted = 0;
    for round in 0..120_000 {
        let with_graph = round % 2 == 0;
        let mut text = document(&mut random, with_graph).into_bytes();
        for _ in 0..random.below(3) + 1 {
            let at = random.below(text.len());
            let byte = BYTES[random.below(BYTES.len())];
            match random.below(6) {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                2 => drop(text.remove(at)),
                3 => text.truncate(at),
                4 => text[at] = text[at].wrapping_add(1),
                _ => {
                    let from = random.below(text.len());
                    let end = (from + random.below(9)).min(text.len());
                    let piece = text[from..end].to_vec();
                    text.splice(at..at, piece);
                }
            }
            if text.is_empty() {
                break;
            }
        }
        accepted += usize::from(assert_same(&text, with_graph));
    }
    // Both branches must have been exercised for this test to mean anything.
    assert!((10_000..110_000).contains(&accepted), "{accepted}");
}

#[test]
fn mutated_terms_are_read_or_refused_as_by_oxttl() {
    let mut random = Random(3);
    let pieces: &[&str] = &[
        "\\u",
        "\\U",
        "00",
        "D800",
        "dFff",
        "0041",
        "0010FFFF",
        "00110000",
        "\\n",
        "\\x",
        "@",
        "en",
        "--ltr",
        "--rtl",
        "--LTR",
        "<<(",
        ")>>",
        "<urn:a>",
        "-",
        "-a",
        "x",
        "i-ami",
        "abcdefghi",
        "1",
        "^^",
        "^",
        "<",
        ">",
        "urn:",
        ":",
        "a",
        "\u{e000}",
        "\u{fffe}",
        "\u{1fffe}",
        " ",
        "\"",
        "_:",
        ".",
        "..",
        "%4",
        "%41",
        "\u{0}",
        "é",
        "http://",
        "//",
        "[",
        "::1",
        "v1.a",
        "]",
        "?",
        "#",
        "\\",
        "'",
        "\u{b7}",
        "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
        "<http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString>",
    ];
    for round in 0..60_000 {
        let mut soup = String::new();
        for _ in 0..random.below(7) {
            soup.push_str(random.of(pieces));
        }
        let text = match random.below(6) {
            0 => format!("<{soup}> <urn:p> <urn:o> ."),
            1 => format!("<urn:s> <urn:p> \"{soup}\" ."),
            2 => format!("<urn:s> <urn:p> \"a\"{soup} ."),
            3 => format!("<urn:s> <urn:p> _:{soup} ."),
            4 => format!("<urn:s> <urn:p> <<( <urn:s> {soup} <urn:o> )>> {soup} ."),
            _ => format!("<urn:s> <urn:p> \"a\"^^<urn:{soup}> {soup}."),
        };
        assert_same(text.as_bytes(), round % 2 == 0);
    }
}

#[test]
fn wrong_lines_are_skipped_and_the_others_read() {
    let text = b"<urn:a> <urn:b> <urn:c> .\n<urn:a> <urn:b> .\n<urn:a> <urn:b> \"\xff\" .\n\
        # \xff\n<urn:a> <urn:b> <urn:d> . # \xff\nx\n_:x <urn:b> <urn:e> .";
    let mut sink = Collect::default();
    let mut spans = Vec::new();
    let finished = parse_block(text, false, &mut sink, &mut |error| {
        spans.push(text[error.span].escape_ascii().to_string());
        AfterError::Skip
    });
    assert!(finished);
    assert_eq!(spans, [".", "\\xff", "x"]);
    let objects: Vec<String> = sink
        .quads
        .iter()
        .map(|quad| quad.object.to_string())
        .collect();
    assert_eq!(objects, ["<urn:c>", "<urn:d>", "<urn:e>"]);
}

#[test]
fn a_version_stands_on_a_line_of_its_own() {
    let text = b"VERSION \"1.2\" # announced\n\tVERSION\"1.1\"\r\n<urn:a> <urn:b> <urn:c> .\nVERSION \"1.2\"";
    for with_graph in [false, true] {
        assert_eq!(ours(text, with_graph).unwrap().len(), 1);
        for wrong in [
            "VERSION",
            "VERSION 1.2",
            "VERSION \"1.2\" .",
            "VERSION \"1.2",
            "version \"1.2\"",
        ] {
            ours(wrong.as_bytes(), with_graph).unwrap_err();
        }
    }
}

#[test]
fn nesting_has_a_limit() {
    let nested = |levels: usize| {
        let opened = "<urn:a> <urn:b> <<( ".repeat(levels);
        format!("{opened}<urn:a> <urn:b> <urn:c>{} .", " )>>".repeat(levels))
    };
    assert_eq!(
        ours(nested(TRIPLE_DEPTH_MAX).as_bytes(), false)
            .unwrap()
            .len(),
        1
    );
    ours(nested(TRIPLE_DEPTH_MAX + 1).as_bytes(), false).unwrap_err();
    ours(nested(1_000_000).as_bytes(), false).unwrap_err();
}

#[test]
fn the_w3c_suites_pass() {
    let Some(shared) = std::env::var_os("ORRERY_SHARED") else {
        eprintln!("skipped: ORRERY_SHARED is not set, so the W3C suites are not there");
        return;
    };
    let suites = Path::new(&shared).join("w3c/rdf");
    let mut files = 0;
    for (directory, ending, with_graph) in [
        ("rdf11/rdf-n-triples", "nt", false),
        ("rdf11/rdf-n-quads", "nq", true),
        ("rdf12/rdf-n-triples", "nt", false),
        ("rdf12/rdf-n-quads", "nq", true),
    ] {
        for path in files_below(&suites.join(directory)) {
            if path.extension().is_none_or(|found| found != ending) {
                continue;
            }
            let text = fs::read(&path).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let is_accepted = ours(&text, with_graph).is_ok();
            assert_eq!(is_accepted, !name.contains("bad"), "{}", path.display());
            assert_same(&text, with_graph);
            files += 1;
        }
    }
    assert!(files > 250, "{files}");
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files
}
