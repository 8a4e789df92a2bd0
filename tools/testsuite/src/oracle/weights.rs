//! The oracle of edge weights under rules: definitions, and queries that read them.
//!
//! The graph of definitions is one that rules show or hide, as any other. Where it is hidden, one
//! database has other definitions there than the other, of the same names and of more; where it is
//! shown, both have the same ones, over quads of which some are hidden. What is told about a query
//! is compared between the two.

use orrery_storage::SmallQuad;
use orrery_term::Term;

use super::data::{GRAPHS, NODES};
use super::random::Random;

/// The graph with the definitions.
pub(super) const DEFINITIONS: &str = "https://orrery-db.org/weight#definitions";
const DEFINITION: &str = "https://orrery-db.org/weight#definition";
const PREFIXES: &str =
    "PREFIX weight: <https://orrery-db.org/weight#> PREFIX path: <https://orrery-db.org/path#> ";
const EXAMPLE: &str = "PREFIX : <http://example.org/> ";

/// Names and what they mean where that is seen: of the default graph, of named ones, by paths, of
/// several quads, of one that is no definition.
const SHOWN: [(&str, &str); 6] = [
    (
        "w1",
        "SELECT ?x ?y (COUNT(*) AS ?weight) WHERE { ?x :p ?y } GROUP BY ?x ?y",
    ),
    (
        "w2",
        "SELECT ?x ?y (MIN(?n) AS ?weight) WHERE { GRAPH ?g { ?x :p ?y } ?x :k ?n } GROUP BY ?x ?y",
    ),
    (
        "w3",
        "SELECT ?a ?b (1.0 / COUNT(*) AS ?weight) WHERE { { ?a :p|^:r ?b } UNION { GRAPH ?g { ?a :l ?b } } } GROUP BY ?a ?b",
    ),
    (
        "w4",
        "SELECT ?x ?y (SUM(?n) AS ?weight) WHERE { ?x :r ?y OPTIONAL { GRAPH ?g { ?y :k ?n } } } GROUP BY ?x ?y",
    ),
    (
        "w5",
        "SELECT ?x ?y (MIN(-1) AS ?weight) WHERE { GRAPH :g1 { ?x :l ?y } } GROUP BY ?x ?y",
    ),
    ("w6", "no query"),
];
/// Of hidden ones: some of the same names, and one that is nowhere else.
const HIDDEN: [(&str, &str); 4] = [
    (
        "w1",
        "SELECT ?x ?y (7 AS ?weight) WHERE { ?x ?p ?y } GROUP BY ?x ?y",
    ),
    ("w2", "nothing that could be read"),
    (
        "w5",
        "SELECT ?x ?y (COUNT(*) AS ?weight) WHERE { ?x :r ?y } GROUP BY ?x ?y",
    ),
    (
        "secret",
        "SELECT ?x ?y (COUNT(*) AS ?weight) WHERE { ?x :p ?y } GROUP BY ?x ?y",
    ),
];
/// Names that queries name.
const NAMES: [&str; 9] = ["w1", "w1", "w2", "w3", "w3", "w4", "w5", "w6", "secret"];

/// The definitions that are seen where their graph is.
pub(super) fn shown() -> Vec<SmallQuad> {
    definitions(&SHOWN)
}

/// Those that are there where it is not.
pub(super) fn hidden() -> Vec<SmallQuad> {
    definitions(&HIDDEN)
}

fn definitions(list: &[(&str, &str)]) -> Vec<SmallQuad> {
    let quads = list.iter().map(|(name, text)| {
        (
            Term::iri(format!("http://example.org/{name}")),
            Term::iri(DEFINITION),
            Term::string(format!("{EXAMPLE}{text}")),
            Some(Term::iri(DEFINITIONS)),
        )
    });
    quads.collect()
}

/// A query that reads weights in a pattern, searches paths in one, or asks for paths alone.
pub(super) fn query(random: &mut Random) -> String {
    match random.below(7) {
        0..=2 => format!("{PREFIXES}{}", reading(random)),
        3 => format!("{PREFIXES}SELECT * {{ {} }}", search(random)),
        _ => format!("{PREFIXES}{}", paths(random)),
    }
}

/// The same as one that selects solutions, whose variables are `?s`, `?o` and perhaps others.
pub(super) fn reading(random: &mut Random) -> String {
    let name = random.pick(&NAMES);
    let mut settings = format!("[] weight:name :{name} ; weight:value ?w");
    for (setting, variable) in [("start", "?s"), ("end", "?o")] {
        match random.below(5) {
            0 => settings += &format!(" ; weight:{setting} :{}", random.pick(&NODES)),
            1 => {}
            _ => settings += &format!(" ; weight:{setting} {variable}"),
        }
    }
    let read = format!("SERVICE weight:read {{ {settings} }}");
    let inner = match random.below(12) {
        0 => format!("GRAPH ?g {{ {read} }}"),
        1 => format!("GRAPH :{} {{ {read} }}", random.pick(&GRAPHS)),
        2 => format!("?s :{} ?z . {read}", random.pick(&["p", "q", "k"])),
        3 => format!("{read} OPTIONAL {{ GRAPH ?g {{ ?o :p ?z }} }}"),
        _ => read,
    };
    let dataset = match random.below(6) {
        0 => format!("FROM :{} ", random.pick(&GRAPHS)),
        1 => format!(
            "FROM :{0} FROM NAMED :{0} ",
            random.pick(&["g1", "g2", "none"])
        ),
        _ => String::new(),
    };
    match random.below(5) {
        0 => format!("SELECT (COUNT(*) AS ?n) (SUM(?w) AS ?sum) {dataset}{{ {inner} }}"),
        1 => format!("SELECT * {dataset}{{ {inner} FILTER(?w < 2) }} ORDER BY ?w ?s ?o LIMIT 3"),
        _ => format!("SELECT * {dataset}{{ {inner} }}"),
    }
}

/// What an edge weighs: a name, or an expression over a pattern's variables, which may have no
/// value, or be below zero.
fn paths(random: &mut Random) -> String {
    let kind = random.pick(&[
        "",
        "SHORTEST ",
        "ANY SHORTEST ",
        "SHORTEST 2 ",
        "ALL ",
        "ALL CYCLIC ",
    ]);
    let end = |random: &mut Random, variable: &str| match random.below(5) {
        0 => format!("{variable} {{ {variable} :k ?n }}"),
        1 => variable.to_owned(),
        _ => format!("{variable} = :{}", random.pick(&NODES)),
    };
    let (from, to) = (end(random, "?s"), end(random, "?o"));
    let via = match random.below(5) {
        0 => "VIA :p|:r ".to_owned(),
        1 => format!("VIA {{ ?s :{} ?o }} ", random.pick(&["p", "r", "l"])),
        2 => "VIA { GRAPH ?g { ?s :p ?o } } ".to_owned(),
        _ => String::new(),
    };
    let end = random.pick(&["", "", " MAX LENGTH 3", " LIMIT 2", " ORDER BY ?cost"]);
    if random.chance(35) {
        let (pattern, weight) = random.pick(&[
            ("?s :p|:l ?o . ?o :k ?n", "?n"),
            ("?s :p ?o OPTIONAL { ?o :k ?n }", "COALESCE(?n, 0.5)"),
            ("GRAPH ?g { ?s :r|:l ?o . ?s :k ?n }", "1 + ?n"),
            ("?s :p ?o . ?s :q ?n", "?n"),
        ]);
        return format!(
            "PATHS {kind}START {from} END {to} VIA {{ {pattern} }} WEIGHT {weight}{end}"
        );
    }
    let name = random.pick(&NAMES);
    format!("PATHS {kind}START {from} END {to} {via}WEIGHT :{name}{end}")
}

fn search(random: &mut Random) -> String {
    let (start, name) = (random.pick(&NODES), random.pick(&NAMES));
    let kind = random.pick(&["shortestPath", "oneShortestPath", "allPaths"]);
    let (weight, edges) = match random.below(3) {
        0 => (
            format!(":{name}"),
            "SERVICE <urn:path> { ?from :p ?to }".to_owned(),
        ),
        1 => (
            "?n".to_owned(),
            "SERVICE <urn:path> { ?from :p|:l ?to . ?to :k ?n }".to_owned(),
        ),
        _ => (format!(":{name}"), String::new()),
    };
    format!(
        "SERVICE path:search {{ <urn:path> path:findPath path:{kind} ; path:sourceNode :{start} ; path:destinationNode ?o ; path:pathIndex ?s ; path:cost ?cost ; \
         path:startNode ?from ; path:endNode ?to ; path:weight {weight} . {edges} }}"
    )
}

/// A statement that defines a weight anew, or drops one.
pub(super) fn statement(random: &mut Random) -> String {
    let name = random.pick(&NAMES);
    let kind = random.pick(&["", "", "SILENT ", "OR REPLACE ", "OR REPLACE "]);
    match random.below(3) {
        0 => format!("DROP {}EDGE WEIGHT :{name}", random.pick(&["", "SILENT "])),
        1 => format!("CREATE {kind}EDGE WEIGHT :{name} FROM {{ ?x :p ?y }} AS COUNT(*)"),
        _ => format!(
            "CREATE {kind}EDGE WEIGHT :{name} START ?a END ?b BOTH WAYS FROM {{ GRAPH ?g {{ ?a :l ?b . ?a :k ?n }} }} AS ?n + 1"
        ),
    }
}
