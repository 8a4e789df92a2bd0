//! Random update requests: every operation but `LOAD`.
//!
//! Nothing that is another term each time (blank nodes of templates, `UUID()`) or whose value is
//! free (the order of `GROUP_CONCAT`) is inserted, so that states can be compared as sets of quads.

use oxrdf::{GraphName, Literal, Quad};
use spargebra::{Query, SparqlParser};

use super::super::data::{
    CLEAN_LINK, CLEAN_VALUE, DataSet, GRAPHS, Kind, LINKS, NODES, VALUES, literal, named,
};
use super::super::grammar::{self, PREFIXES};
use super::super::random::Random;
use super::super::reference::Question;

/// Operations of one request.
const OPERATIONS_MAX: usize = 3;
/// Attempts at a pattern that can be asked.
const ATTEMPTS_MAX: usize = 10;
/// Endpoints that answer.
const ENDPOINTS: [&str; 2] = ["e1", "e2"];
/// How the one ends that does not.
pub(super) const DEAD: &str = "dead";
/// What answers that may differ each time, or between engines, come of.
const NOT_INSERTED: [&str; 8] = [
    "GROUP_CONCAT",
    "SAMPLE",
    "BNODE",
    "UUID",
    "RAND",
    "NOW",
    "FROM",
    "LIMIT",
];

/// What other endpoints have: each its graph.
pub(super) fn endpoint_data(random: &mut Random) -> Vec<Quad> {
    let mut quads = Vec::new();
    for endpoint in ENDPOINTS {
        for _ in 0..random.below(20) {
            let graph = GraphName::from(named(endpoint));
            let node = |random: &mut Random| named(random.pick(&NODES));
            let quad = match random.chance(50) {
                true => {
                    let link = named(random.pick(&LINKS));
                    Quad::new(node(random), link, node(random), graph)
                }
                false => {
                    let number = i64::try_from(random.below(4)).unwrap_or_default();
                    Quad::new(
                        node(random),
                        named(CLEAN_VALUE),
                        Literal::from(number),
                        graph,
                    )
                }
            };
            if !quads.contains(&quad) {
                quads.push(quad);
            }
        }
    }
    quads
}

/// A request.
pub(super) fn request(random: &mut Random, data: &DataSet) -> String {
    let operations: Vec<String> = (0..=random.below(OPERATIONS_MAX))
        .map(|_| operation(random, data))
        .collect();
    operations.join(" ;\n")
}

/// A request that reads nothing.
pub(super) fn data_request(random: &mut Random) -> String {
    let keyword = random.pick(&["INSERT", "INSERT", "DELETE"]);
    format!("{keyword} DATA {{ {}}}", data_block(random))
}

fn operation(random: &mut Random, data: &DataSet) -> String {
    match random.below(20) {
        0..=3 => data_request(random),
        4..=6 => delete_where(random),
        7..=11 => modify_with_service(random),
        12..=16 => modify(random, data),
        _ => of_graphs(random),
    }
}

fn node(random: &mut Random) -> String {
    format!(":{}", random.pick(&NODES))
}

fn data_block(random: &mut Random) -> String {
    let mut block = String::new();
    for _ in 0..=random.below(5) {
        let triple = match random.chance(50) {
            true => format!(
                "{} :{} {} . ",
                node(random),
                random.pick(&LINKS),
                node(random)
            ),
            false => format!(
                "{} :{} {} . ",
                node(random),
                random.pick(&VALUES),
                literal(random, Kind::Canonical)
            ),
        };
        match random.chance(30) {
            true => block += &format!("GRAPH :{} {{ {triple}}} ", random.pick(&GRAPHS)),
            false => block += &triple,
        }
    }
    block
}

fn subject(random: &mut Random) -> String {
    match random.below(3) {
        0 => node(random),
        _ => random.pick(&["?v", "?w", "?x"]).to_owned(),
    }
}

/// A triple for patterns and templates alike.
fn triple(random: &mut Random) -> String {
    let predicate = match random.below(6) {
        0 => "?p".to_owned(),
        1 => format!(":{CLEAN_LINK}"),
        2 => format!(":{CLEAN_VALUE}"),
        _ => format!(":{}", random.pick(&LINKS)),
    };
    let object = match random.below(4) {
        0 => node(random),
        1 => "?y".to_owned(),
        _ => random.pick(&["?v", "?w", "?x"]).to_owned(),
    };
    format!("{} {predicate} {object} . ", subject(random))
}

/// Whole graphs, or what matches some patterns.
fn delete_where(random: &mut Random) -> String {
    let graph = random.pick(&GRAPHS);
    match random.below(6) {
        0 => "DELETE WHERE { ?s ?p ?o }".to_owned(),
        1 => format!("DELETE WHERE {{ GRAPH :{graph} {{ ?s ?p ?o }} }}"),
        2 => "DELETE WHERE { GRAPH ?g { ?s ?p ?o } }".to_owned(),
        3 => format!("DELETE WHERE {{ GRAPH ?g {{ {}}} }}", triple(random)),
        _ => format!("DELETE WHERE {{ {}{}}}", triple(random), triple(random)),
    }
}

fn of_graphs(random: &mut Random) -> String {
    let graph = |random: &mut Random| match random.below(4) {
        0 => "DEFAULT".to_owned(),
        _ => format!(":{}", random.pick(&GRAPHS)),
    };
    let target = |random: &mut Random| match random.below(8) {
        0 => "ALL".to_owned(),
        1 => "NAMED".to_owned(),
        2 | 3 => "DEFAULT".to_owned(),
        _ => format!("GRAPH :{}", random.pick(&GRAPHS)),
    };
    match random.below(9) {
        0 | 1 => format!("CLEAR {}", target(random)),
        2 => format!("DROP SILENT {}", target(random)),
        3 => format!("CREATE GRAPH :{}", random.pick(&GRAPHS)),
        4 => format!("CREATE SILENT GRAPH :{}", random.pick(&GRAPHS)),
        5 | 6 => format!("COPY SILENT {} TO {}", graph(random), graph(random)),
        7 => format!("ADD SILENT {} TO {}", graph(random), graph(random)),
        _ => format!("MOVE SILENT {} TO {}", graph(random), graph(random)),
    }
}

/// `DELETE`, `INSERT` or both, with templates over the variables of the patterns.
fn templates(random: &mut Random) -> String {
    let template = |random: &mut Random| {
        let triples: String = (0..=random.below(2)).map(|_| triple(random)).collect();
        match random.below(4) {
            0 => format!("GRAPH :{} {{ {triples}}} ", random.pick(&GRAPHS)),
            _ => triples,
        }
    };
    let with = match random.below(8) {
        0 => format!("WITH :{} ", random.pick(&GRAPHS)),
        _ => String::new(),
    };
    let delete = format!("DELETE {{ {}}} ", template(random));
    let insert = format!("INSERT {{ {}}} ", template(random));
    match random.below(3) {
        0 => with + &delete,
        1 => with + &insert,
        _ => with + &delete + &insert,
    }
}

/// Patterns here, joined to patterns that other endpoints answer.
fn modify_with_service(random: &mut Random) -> String {
    let service = |random: &mut Random| {
        let triples: String = (0..=random.below(2)).map(|_| triple(random)).collect();
        match random.below(8) {
            0 => format!("SERVICE SILENT :{DEAD} {{ {triples}}} "),
            1 | 2 => format!(
                "SERVICE SILENT :{} {{ {triples}}} ",
                random.pick(&ENDPOINTS)
            ),
            _ => format!("SERVICE :{} {{ {triples}}} ", random.pick(&ENDPOINTS)),
        }
    };
    let mut pattern = match random.below(5) {
        0 => String::new(),
        _ => triple(random),
    };
    for _ in 0..=random.below(2) {
        let asked = service(random);
        pattern += &match random.below(8) {
            0 => format!("OPTIONAL {{ {asked}}} "),
            1 => format!("MINUS {{ {asked}}} "),
            2 => format!("FILTER EXISTS {{ {asked}}} "),
            3 => format!("{{ {asked}}} UNION {{ {}}} ", triple(random)),
            _ => asked,
        };
        if random.chance(30) {
            pattern += &triple(random);
        }
    }
    format!("{}WHERE {{ {pattern}}}", templates(random))
}

/// A pattern of the whole grammar, as the oracle of queries has them.
fn modify(random: &mut Random, data: &DataSet) -> String {
    let pattern = (0..ATTEMPTS_MAX)
        .find_map(|_| subquery(random, data))
        .unwrap_or_else(|| triple(random));
    format!("{}WHERE {{ {pattern} }}", templates(random))
}

fn subquery(random: &mut Random, data: &DataSet) -> Option<String> {
    let tree = grammar::query(random, data.kind, data.has_graphs());
    let text = tree.to_text();
    if tree.has_ours_only() || NOT_INSERTED.iter().any(|word| text.contains(word)) {
        return None;
    }
    let query = SparqlParser::new()
        .parse_query(&format!("{PREFIXES}{text}"))
        .ok()?;
    let whole = Question::unmodified(&query).unwrap_or(query);
    let Query::Select { pattern, .. } = &whole else {
        return None;
    };
    let text = format!("{{ {pattern} }}");
    // Some patterns are written by spargebra as something else.
    let again = SparqlParser::new()
        .parse_query(&format!("SELECT * {{ {text} }}"))
        .ok()?;
    let Query::Select { pattern: again, .. } = again else {
        return None;
    };
    again
        .to_string()
        .contains(&pattern.to_string())
        .then_some(text)
}
