//! Tests of `--skip-errors` on documents of all formats with one random error: every loaded
//! statement was in the undamaged document.
//!
//! One character is wrong, but none that makes a comment longer: of a text in three quotes whose
//! beginning is a part of a comment, the next line may be a right statement, which is taken before
//! anything is wrong. Where the damaged text is right in itself nobody can know better, and a term
//! that only the damaged text has is what that says; everything else is held against the undamaged
//! document. `ORRERY_DAMAGES` is how many times as many are tried.

use crate::load::document::{Document, DocumentTerm, read_skipping};
use crate::sources::format::Format;
use orrery_term::{Term, parse_key};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const FIRST: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#first";
const REST: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#rest";

/// Names so far from each other that no damaged character makes one of another.
const NAMES: [&str; 12] = [
    "abacus", "bobbin", "cackle", "dodder", "effigy", "faffed", "gaggle", "hehaw", "iodine",
    "jujube", "kicker", "lolling",
];

/// What is put where something is damaged.
const DAMAGES: &[u8] = b"\"'<>.;,[](){}@^\\:&= \n/a-!?";

/// A small generator of numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    pub(crate) fn is(&mut self, one_of: usize) -> bool {
        self.below(one_of) == 0
    }

    pub(crate) fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// Subject, predicate, object, graph: as terms are told.
type Told = [String; 4];

fn told(document: &Document) -> Vec<Told> {
    let terms: Vec<String> = document
        .terms()
        .map(|term| match term {
            DocumentTerm::DefaultGraph => String::new(),
            DocumentTerm::BlankNode(label) => format!("_:{label}"),
            DocumentTerm::Inline(id) => format!("{id:?}"),
            DocumentTerm::Key(key) => match parse_key(key).unwrap() {
                Term::Iri(iri) => iri.into_owned(),
                other => format!("{other:?}"),
            },
            DocumentTerm::Triple(term) => format!("{term:?}"),
            DocumentTerm::Unused => "unused".to_owned(),
        })
        .collect();
    let told = |number: u32| terms[number as usize].clone();
    document.quads().map(|quad| quad.map(told)).collect()
}

fn is_named(quad: &Told) -> bool {
    !quad.iter().any(|term| term.starts_with("_:"))
}

/// A document with a style of its own.
fn written(format: Format, random: &mut Random) -> String {
    match format {
        Format::Turtle => turtle(random, false),
        Format::TriG => turtle(random, true),
        Format::RdfXml => xml(random),
        Format::JsonLd => json(random),
        Format::NTriples | Format::NQuads => lines(random, format == Format::NQuads),
    }
}

fn iri(random: &mut Random) -> String {
    match random.below(4) {
        0 => format!("<http://v.example/{}>", random.of(&NAMES)),
        1 => format!("b:{}", random.of(&NAMES[6..])),
        _ => format!("a:{}", random.of(&NAMES[..6])),
    }
}

/// A name of one of two namespaces, which have none in common: where one is declared as the other,
/// no name becomes another that there is.
fn name(random: &mut Random) -> String {
    match random.is(2) {
        true => format!("b:{}", random.of(&NAMES[6..])),
        false => format!("a:{}", random.of(&NAMES[..6])),
    }
}

fn text(random: &mut Random) -> String {
    let name = random.of(&NAMES);
    match random.below(7) {
        0 => format!("'{name} {name}'"),
        1 => format!("\"{name}. a:dodder a:effigy b:gaggle . {name}\"@en"),
        2 => format!("\"\"\"{name}\na:cackle a:bobbin b:jujube .\n\"{name}\" \"\"\""),
        3 => format!("\"{name} \\\"{name}\\\" \""),
        4 => format!("'''{name} \"\" a:effigy a:abacus b:kicker .\n'''"),
        5 => format!("\"{name}{name}\"^^a:gaggle"),
        _ => format!("\"{name} {{ a:cackle a:bobbin b:jujube }}\""),
    }
}

fn object(random: &mut Random, depth: usize) -> String {
    match random.below(if depth > 2 { 5 } else { 8 }) {
        0..3 => iri(random),
        3 | 4 => text(random),
        5 => format!("[ {} ]", properties(random, depth + 1)),
        6 => {
            let items: Vec<String> = (0..random.below(4))
                .map(|_| object(random, depth + 1))
                .collect();
            format!("( {} )", items.join(" "))
        }
        _ => random.of(&["12345", "123.45", "true"]).to_owned(),
    }
}

fn properties(random: &mut Random, depth: usize) -> String {
    let mut out = String::new();
    for number in 0..=random.below(3) {
        if number > 0 {
            out.push_str(random.of(&[" ; ", ";\n  ", " ;"]));
        }
        let objects: Vec<String> = (0..=random.below(2))
            .map(|_| object(random, depth))
            .collect();
        let _ = write!(
            out,
            "{} {}",
            iri(random),
            objects.join(random.of(&[" , ", ",\n"]))
        );
    }
    out
}

fn statement(random: &mut Random) -> String {
    let comment = match random.is(5) {
        true => random.of(&[" # a:cackle a:bobbin b:jujube .", " # see \"it", " # -> <"]),
        false => "",
    };
    format!("{} {}", iri(random), properties(random, 0))
        + random.of(&[" .", " .", "\n."])
        + comment
        + "\n"
}

fn turtle(random: &mut Random, has_graphs: bool) -> String {
    let mut out = "@prefix a: <http://a.example/> .\nPREFIX b: <http://b.example/>\n".to_owned();
    for _ in 0..2 + random.below(5) {
        if !has_graphs || random.is(3) {
            out.push_str(&statement(random));
            continue;
        }
        let keyword = random.of(&["", "GRAPH "]);
        let _ = write!(out, "{keyword}{} {{ ", iri(random));
        for _ in 0..random.below(4) {
            out.push_str(&statement(random));
        }
        if random.is(2) {
            let _ = write!(out, "{} {} ", iri(random), properties(random, 0));
        }
        out.push_str("}\n");
    }
    out
}

fn lines(random: &mut Random, has_graphs: bool) -> String {
    let mut out = String::new();
    for _ in 0..2 + random.below(6) {
        let full = |random: &mut Random| format!("<http://v.example/{}>", random.of(&NAMES));
        let object = match random.below(3) {
            0 => full(random),
            1 => format!("\"{} <http://v.example/dodder> .\"@en", random.of(&NAMES)),
            _ => format!("\"{}\"^^{}", random.of(&NAMES), full(random)),
        };
        let _ = write!(out, "{} {} {object} ", full(random), full(random));
        if has_graphs && random.is(2) {
            let _ = write!(out, "{} ", full(random));
        }
        out.push_str(random.of(&[".\n", ". # <http://v.example/dodder> .\n"]));
    }
    out
}

fn xml(random: &mut Random) -> String {
    let mut out = "<?xml version=\"1.0\"?>\n<!DOCTYPE rdf:RDF [<!ENTITY v \"http://v.example/\">]>\n\
                   <rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:a=\"http://a.example/\" \
                   xmlns:b=\"http://b.example/\">\n"
        .to_owned();
    for _ in 0..1 + random.below(4) {
        node(random, 0, &mut out);
    }
    out + "</rdf:RDF>\n"
}

fn node(random: &mut Random, depth: usize, out: &mut String) {
    let tag = match random.is(3) {
        true => format!("a:{}", random.of(&NAMES)),
        false => "rdf:Description".to_owned(),
    };
    let about = match random.below(4) {
        0 => String::new(),
        1 => format!(" rdf:about=\"&v;{}\"", random.of(&NAMES)),
        2 => format!(" rdf:ID='i{}-{}'", random.below(1 << 40), random.of(&NAMES)),
        _ => format!(" rdf:about=\"http://v.example/{}\"", random.of(&NAMES)),
    };
    let lang = if random.is(4) { " xml:lang=\"de\"" } else { "" };
    let _ = writeln!(out, "<{tag}{about}{lang}>");
    for _ in 0..random.below(4) {
        let name = name(random);
        match random.below(if depth > 2 { 4 } else { 7 }) {
            0 => {
                let _ = writeln!(
                    out,
                    "<{name} rdf:resource='http://v.example/{}'/>",
                    random.of(&NAMES)
                );
            }
            1 => {
                let word = random.of(&NAMES);
                let _ = writeln!(
                    out,
                    "<{name}>{word} <!-- <a:dodder/> --> &amp;{word}</{name}>"
                );
            }
            2 => {
                let word = random.of(&NAMES);
                let _ = writeln!(
                    out,
                    "<{name} xml:lang=\"en\"><![CDATA[<a:x>{word}</a:x>]]>{word}</{name}>"
                );
            }
            3 => {
                let word = random.of(&NAMES);
                let _ = writeln!(
                    out,
                    "<{name} rdf:parseType=\"Literal\"><a:{word}>{word}</a:{word}></{name}>"
                );
            }
            4 => {
                let _ = writeln!(out, "<{name}>");
                node(random, depth + 1, out);
                let _ = writeln!(out, "</{name}>");
            }
            5 => {
                let _ = writeln!(out, "<{name} rdf:parseType=\"Collection\">");
                for _ in 0..random.below(3) {
                    node(random, depth + 1, out);
                }
                let _ = writeln!(out, "</{name}>");
            }
            _ => {
                let inner = format!("a:{}", random.of(&NAMES));
                let word = random.of(&NAMES);
                let _ = writeln!(
                    out,
                    "<{name} rdf:parseType=\"Resource\"><{inner}>{word}{word}</{inner}></{name}>"
                );
            }
        }
    }
    let _ = writeln!(out, "</{tag}>");
}

fn json(random: &mut Random) -> String {
    let mut nodes = Vec::new();
    for _ in 0..1 + random.below(4) {
        let mut node = format!("{{\"@id\": \"http://v.example/{}\"", random.of(&NAMES));
        for _ in 0..random.below(4) {
            let word = random.of(&NAMES);
            let value = match random.below(4) {
                0 => format!("\"{word} {word}\""),
                1 => format!("{{\"@id\": \"a:{word}\"}}"),
                2 => format!("{{\"@list\": [\"{word}\", 12345, {{\"@id\": \"a:{word}\"}}]}}"),
                _ => format!("{{\"@value\": \"{word}\", \"@language\": \"en\"}}"),
            };
            let _ = write!(node, ", \"a:{}\": {value}", random.of(&NAMES));
        }
        nodes.push(node + "}");
    }
    format!(
        "{{\"@context\": {{\"a\": \"http://a.example/\"}}, \"@graph\": [\n{}\n]}}",
        nodes.join(",\n")
    )
}

/// One character added, taken away or changed, or all behind it cut off.
fn damaged(text: &str, random: &mut Random) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    let ends_comment = |at: usize| {
        let line = text[..at].rsplit('\n').next().unwrap_or_default();
        bytes[at] == b'\n' && line.contains('#')
    };
    let mut at = random.below(bytes.len());
    while ends_comment(at) {
        at = random.below(bytes.len());
    }
    let wrong = DAMAGES[random.below(DAMAGES.len())];
    match random.below(7) {
        0 | 1 => bytes.insert(at, wrong),
        2 | 3 => drop(bytes.remove(at)),
        4 | 5 => bytes[at] = wrong,
        _ => bytes.truncate(at),
    }
    bytes
}

fn lists_have_ends(quads: &[Told]) -> bool {
    let of = |predicate: &str| -> BTreeSet<&str> {
        let found = quads.iter().filter(|quad| quad[1] == predicate);
        found.map(|quad| quad[0].as_str()).collect()
    };
    let named = quads
        .iter()
        .filter(|quad| quad[1] == REST && quad[2].starts_with("_:"));
    let firsts = of(FIRST);
    firsts == of(REST)
        && named
            .into_iter()
            .all(|quad| firsts.contains(quad[2].as_str()))
}

fn hold(format: Format, documents: u64) {
    let times = std::env::var("ORRERY_DAMAGES")
        .ok()
        .and_then(|it| it.parse().ok());
    let mut judged = 0;
    for seed in 1..=documents * times.unwrap_or(1_u64) {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let text = written(format, &mut random);
        let Some((whole, errors)) = read_skipping(text.as_bytes(), format, true) else {
            panic!("{text}");
        };
        let whole = told(&whole);
        assert_eq!(errors, 0, "{text}");
        let plain = read_skipping(text.as_bytes(), format, false).unwrap();
        let count = |quads: &[Told]| quads.iter().filter(|quad| is_named(quad)).count();
        assert_eq!(count(&told(&plain.0)), count(&whole), "{text}");
        assert_eq!(plain.0.quads().count(), whole.len(), "{text}");
        let right: BTreeSet<&Told> = whole.iter().collect();
        let words: BTreeSet<&String> = whole.iter().flatten().collect();
        for _ in 0..20 {
            let damaged = damaged(&text, &mut random);
            if read_skipping(&damaged, format, false).is_some() {
                continue;
            }
            judged += 1;
            let Some((taken, errors)) = read_skipping(&damaged, format, true) else {
                continue;
            };
            let taken = told(&taken);
            let shown = || {
                format!(
                    "seed {seed}: {}\n---\n{text}",
                    String::from_utf8_lossy(&damaged)
                )
            };
            assert!(errors > 0, "{}", shown());
            assert!(lists_have_ends(&taken), "{}\n{taken:#?}", shown());
            for quad in taken.iter().filter(|quad| is_named(quad)) {
                let is_of_document = quad.iter().all(|term| words.contains(term));
                assert!(
                    !is_of_document || right.contains(quad),
                    "{quad:?}\n{}",
                    shown()
                );
            }
        }
    }
    assert!(judged > documents, "{judged} damages were errors");
}

#[test]
fn of_damaged_turtle_only_right_statements_are_taken() {
    hold(Format::Turtle, 300);
}

#[test]
fn of_damaged_trig_only_right_statements_are_taken_in_their_own_graphs() {
    hold(Format::TriG, 300);
}

#[test]
fn of_damaged_rdf_xml_only_right_statements_are_taken() {
    hold(Format::RdfXml, 300);
}

#[test]
fn of_damaged_json_ld_only_right_statements_are_taken() {
    hold(Format::JsonLd, 100);
}

#[test]
fn of_damaged_lines_only_right_statements_are_taken_in_their_own_graphs() {
    hold(Format::NTriples, 300);
    hold(Format::NQuads, 300);
}
