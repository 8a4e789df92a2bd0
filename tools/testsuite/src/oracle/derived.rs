//! Random queries of derived indexes (texts, trigrams, places, paths), compared with and without
//! them. These queries have no reference: what is told about them is compared between databases
//! that differ in what the asker does not see.

use oxrdf::{Literal, NamedNode, Quad};

use super::data::{GRAPHS, NODES, named};
use super::random::Random;

/// Of searches of paths; the others are known without being declared.
const PATH_PREFIX: &str = "PREFIX path: <http://www.ontotext.com/path#> ";
const WKT: &str = "http://www.opengis.net/ont/geosparql#";
/// Words of texts that are seen, of hidden ones, and of none.
const WORDS: [&str; 12] = [
    "a", "b", "longer", "string", "text", "secret", "ab", "nowhere", "lon*", "sec*", "strin~1", "1",
];
/// Parts of texts, of three characters and more.
const PARTS: [&str; 7] = [
    "longer",
    "string",
    "a longer",
    "secret",
    "nowhere",
    "ger text",
    "example.org",
];
const PATTERNS: [&str; 5] = ["lon.*ring", "^a lon", "se(c|x)ret", "text$", "a.*b"];
const PREDICATES: [&str; 4] = ["?p", ":q", ":v", ":t"];

/// Places of some subjects of a data set, in the graphs of these. A few, so that hidden ones lie
/// among them.
pub(super) fn places(quads: &[Quad]) -> Vec<Quad> {
    let some = quads.iter().enumerate().step_by(3);
    let places = some.map(|(number, quad)| {
        let text = format!("POINT({} {})", number % 5, number % 3);
        let place =
            Literal::new_typed_literal(text, NamedNode::new_unchecked(format!("{WKT}wktLiteral")));
        let predicate = NamedNode::new_unchecked(format!("{WKT}asWKT"));
        Quad::new(
            quad.subject.clone(),
            predicate,
            place,
            quad.graph_name.clone(),
        )
    });
    let mut places: Vec<Quad> = places.collect();
    places.sort_by_key(ToString::to_string);
    places.dedup();
    places
}

/// A query.
pub(super) fn query(random: &mut Random) -> String {
    let inner = match random.below(10) {
        0..=3 => text_search(random),
        4 => format!(
            "?s ?p ?o . ?o <bif:contains> \"'{}'\"",
            random.pick(&["longer", "string", "secret", "nowhere", "a"])
        ),
        5 | 6 => text_test(random),
        7 => format!(
            "?s geo:asWKT ?o FILTER(geof:distance(?o, \"POINT({} {})\"^^geo:wktLiteral, uom:metre) < {})",
            random.below(6),
            random.below(4),
            random.pick(&["1", "120000", "400000"]),
        ),
        8 => path_search(random),
        _ => format!(
            "?s {} ?o FILTER(LANG(?o) = \"{}\")",
            random.pick(&PREDICATES),
            random.pick(&["en", "EN", "en-US", "fr", ""])
        ),
    };
    let inner = match random.below(6) {
        0 => format!("GRAPH ?g {{ {inner} }}"),
        1 => format!("GRAPH :{} {{ {inner} }}", random.pick(&GRAPHS)),
        2 => format!(
            "{inner} OPTIONAL {{ ?s :{} ?z }}",
            random.pick(&["p", "q", "k"])
        ),
        _ => inner,
    };
    let end = match random.below(6) {
        0 => " LIMIT 2".to_owned(),
        1 => " ORDER BY ?o ?s LIMIT 3".to_owned(),
        _ => String::new(),
    };
    let query = match random.below(5) {
        0 => format!("SELECT (COUNT(*) AS ?n) {{ {inner} }}"),
        1 => format!("ASK {{ {inner} }}"),
        _ => format!("SELECT * {{ {inner} }}{end}"),
    };
    match query.contains("path:") {
        true => format!("{PATH_PREFIX}{query}"),
        false => query,
    }
}

fn text_search(random: &mut Random) -> String {
    let word = |random: &mut Random| random.pick(&WORDS);
    let words = match random.below(6) {
        0 => format!("{} {}", word(random), word(random)),
        1 => format!("{} OR {}", word(random), word(random)),
        2 => format!("{} NOT {}", word(random), word(random)),
        3 => "\\\"a longer\\\"".to_owned(),
        _ => word(random).to_owned(),
    };
    let mut settings = format!("[] text:query \"{words}\" ; text:entity ?s ; text:literal ?o");
    if random.chance(40) {
        settings += " ; text:score ?score";
    }
    if random.chance(30) {
        settings += &format!(" ; text:property :{}", random.pick(&["q", "v", "none"]));
    }
    if random.chance(40) {
        settings += &format!(" ; text:limit {}", 1 + random.below(4));
    }
    if random.chance(20) {
        settings += &format!(" ; text:language \"{}\"", random.pick(&["en", "fr", ""]));
    }
    format!("SERVICE text:search {{ {settings} }}")
}

fn text_test(random: &mut Random) -> String {
    let subject = random.pick(&["?o", "?o", "LCASE(?o)", "STR(?o)"]);
    let test = match random.below(4) {
        0 => format!("REGEX({subject}, \"{}\")", random.pick(&PATTERNS)),
        1 => format!("STRSTARTS({subject}, \"{}\")", random.pick(&PARTS)),
        _ => format!("CONTAINS({subject}, \"{}\")", random.pick(&PARTS)),
    };
    let predicate = random.pick(&PREDICATES);
    let more = random.pick(&["", " . ?s :k ?k", " . ?s :p ?x"]);
    format!("?s {predicate} ?o{more} FILTER({test})")
}

fn path_search(random: &mut Random) -> String {
    let link = random.pick(&["p", "r", "l"]);
    let start = random.pick(&NODES);
    match random.chance(50) {
        true => format!("SERVICE path:search {{ :{start} :{link}+ ?o . [] path:length ?s }}"),
        false => format!(
            "SERVICE path:search {{ <urn:path> path:findPath path:shortestPath ; path:sourceNode :{start} ; path:destinationNode ?o ; path:pathIndex ?s ; path:startNode ?from ; path:endNode ?to . \
             SERVICE <urn:path> {{ ?from :{link} ?to }} }}"
        ),
    }
}

/// A literal that hidden graphs alone have, with words that are seen too.
pub(super) fn hidden_text(number: usize) -> String {
    format!("a secret, longer than a string {number}")
}

/// The name of what the place of a hidden subject is told by, and the place.
pub(super) fn hidden_place(number: usize) -> (String, String, String) {
    let point = format!("POINT({} 1.5)", number % 5);
    (format!("{WKT}asWKT"), point, format!("{WKT}wktLiteral"))
}

/// The predicate of hidden texts.
pub(super) fn text_predicate() -> String {
    named("q").into_string()
}
