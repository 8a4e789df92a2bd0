//! Graph patterns drawn by random walks, each with a solution.
//!
//! A walk starts at a random triple and takes further triples at the nodes that it has seen, so
//! stars, chains and trees come out. Nodes become variables, some of the last ones stay constants,
//! predicates mostly stay what they are. This is how benchmarks of cardinality estimation draw
//! their queries (Park et al.: G-CARE, SIGMOD 2020).

use std::fmt::Write;

use serde_json::Value;

use super::{BenchError, RESULTS_JSON};
use crate::http_client::HttpClient;
use orrery_bsbm::Random;

/// Triples of a node that are looked at.
const NEIGHBOURS_MAX: usize = 500;
const PATTERNS_MIN: u32 = 2;
const PATTERNS_MAX: u32 = 7;
/// Of a hundred leaves of a pattern, how many stay constants.
const CONSTANTS_PERCENT: u32 = 25;
/// Of a hundred predicates, how many become variables.
const FREE_PREDICATES_PERCENT: u32 = 3;
/// Starts that may fail one after the other before the data count as unfit.
const FAILURES_MAX: u32 = 1_000;

/// A triple in SPARQL's syntax; nodes may be blank, which patterns cannot name.
#[derive(Clone, Debug, PartialEq)]
struct Triple {
    subject: String,
    predicate: String,
    object: String,
}

/// Draws so many patterns, as `SELECT` queries.
pub(super) fn patterns(
    client: &mut HttpClient,
    count: u32,
    random: &mut Random,
) -> Result<Vec<String>, BenchError> {
    let triples = number_of_triples(client)?;
    let mut queries = Vec::new();
    let mut failures = 0;
    while queries.len() < count as usize && failures < FAILURES_MAX && triples > 0 {
        let wanted = random.between(PATTERNS_MIN, PATTERNS_MAX) as usize;
        let walk = walk(client, triples, wanted, random)?;
        if walk.len() < PATTERNS_MIN as usize {
            failures += 1;
            continue;
        }
        failures = 0;
        queries.push(query(&walk, random));
    }
    Ok(queries)
}

fn number_of_triples(client: &mut HttpClient) -> Result<u32, BenchError> {
    let text = "SELECT (COUNT(*) AS ?c) { ?s ?p ?o }";
    let rows = rows(client, text)?;
    let count = rows.first().and_then(|row| row.get("c")?.get("value"));
    let count = count
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok());
    Ok(count.unwrap_or(0))
}

/// Triples that hang together, the first one at random.
fn walk(
    client: &mut HttpClient,
    triples: u32,
    wanted: usize,
    random: &mut Random,
) -> Result<Vec<Triple>, BenchError> {
    let offset = random.below(triples);
    let start = format!("SELECT ?s ?p ?o {{ ?s ?p ?o }} OFFSET {offset} LIMIT 1");
    let mut walk: Vec<Triple> = triples_of(client, &start, None, None)?;
    for _ in 0..wanted * 2 {
        if walk.len() >= wanted {
            break;
        }
        let mut nodes: Vec<&String> = walk
            .iter()
            .flat_map(|triple| [&triple.subject, &triple.object])
            .filter(|node| node.starts_with('<'))
            .collect();
        nodes.dedup();
        let Some(node) = random.pick(&nodes).map(|node| (*node).clone()) else {
            break;
        };
        let next = if random.chance(70) {
            let text = format!("SELECT ?p ?o {{ {node} ?p ?o }} LIMIT {NEIGHBOURS_MAX}");
            triples_of(client, &text, Some(&node), None)?
        } else {
            let text = format!("SELECT ?s ?p {{ ?s ?p {node} }} LIMIT {NEIGHBOURS_MAX}");
            triples_of(client, &text, None, Some(&node))?
        };
        if let Some(triple) = random.pick(&next)
            && !walk.contains(triple)
        {
            walk.push(triple.clone());
        }
    }
    Ok(walk)
}

/// The triples with bindings `s`, `p`, `o`, as far as they are not given.
fn triples_of(
    client: &mut HttpClient,
    text: &str,
    subject: Option<&str>,
    object: Option<&str>,
) -> Result<Vec<Triple>, BenchError> {
    let triple = |row: &Value| {
        let part = |given: Option<&str>, name: &str| match given {
            Some(term) => Some(term.to_owned()),
            None => term(row.get(name)?),
        };
        Some(Triple {
            subject: part(subject, "s")?,
            predicate: part(None, "p")?,
            object: part(object, "o")?,
        })
    };
    Ok(rows(client, text)?.iter().filter_map(triple).collect())
}

fn rows(client: &mut HttpClient, text: &str) -> Result<Vec<Value>, BenchError> {
    let mut body = Vec::new();
    client
        .query(text, RESULTS_JSON, &mut body)
        .map_err(|source| BenchError::Query {
            what: text.to_owned(),
            source,
        })?;
    let result: Option<Value> = serde_json::from_slice(&body).ok();
    let rows =
        result.and_then(|result| Some(result.get("results")?.get("bindings")?.as_array()?.clone()));
    rows.ok_or_else(|| BenchError::Result {
        what: text.to_owned(),
    })
}

/// A term of a result in SPARQL's syntax; `_:name` for a blank node.
fn term(term: &Value) -> Option<String> {
    let value = term.get("value")?.as_str()?;
    Some(match term.get("type")?.as_str()? {
        "uri" => format!("<{value}>"),
        "bnode" => format!("_:{value}"),
        "literal" | "typed-literal" => {
            let mut text = String::from("\"");
            for letter in value.chars() {
                match letter {
                    '"' => text.push_str("\\\""),
                    '\\' => text.push_str("\\\\"),
                    '\n' => text.push_str("\\n"),
                    '\r' => text.push_str("\\r"),
                    other => text.push(other),
                }
            }
            text.push('"');
            if let Some(language) = term.get("xml:lang").and_then(Value::as_str) {
                let _ = write!(text, "@{language}");
            } else if let Some(datatype) = term.get("datatype").and_then(Value::as_str) {
                let _ = write!(text, "^^<{datatype}>");
            }
            text
        }
        _ => return None,
    })
}

/// The walk as a query.
fn query(walk: &[Triple], random: &mut Random) -> String {
    let mut nodes: Vec<&str> = Vec::new();
    for triple in walk {
        for node in [&triple.subject, &triple.object] {
            if !nodes.contains(&node.as_str()) {
                nodes.push(node);
            }
        }
    }
    let names: Vec<String> = nodes
        .iter()
        .enumerate()
        .map(|(number, node)| {
            let mentions = walk
                .iter()
                .flat_map(|triple| [&triple.subject, &triple.object])
                .filter(|other| other == node)
                .count();
            let can_stay = mentions == 1 && !node.starts_with("_:");
            match can_stay && random.chance(CONSTANTS_PERCENT) {
                true => (*node).to_owned(),
                false => format!("?v{number}"),
            }
        })
        .collect();
    let name = |node: &str| {
        let number = nodes.iter().position(|other| *other == node);
        number.map_or("", |number| names[number].as_str())
    };
    let mut text = String::from("SELECT * {");
    for (number, triple) in walk.iter().enumerate() {
        let predicate = match random.chance(FREE_PREDICATES_PERCENT) {
            true => format!("?p{number}"),
            false => triple.predicate.clone(),
        };
        let (subject, object) = (name(&triple.subject), name(&triple.object));
        let _ = write!(text, " {subject} {predicate} {object} .");
    }
    text.push_str(" }");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn terms_are_written_as_sparql_reads_them() {
        let quoted = json!({"type": "literal", "value": "a\"b\\", "xml:lang": "en"});
        assert_eq!(term(&quoted).as_deref(), Some("\"a\\\"b\\\\\"@en"));
        let typed = json!({"type": "literal", "value": "1", "datatype": "a:b"});
        assert_eq!(term(&typed).as_deref(), Some("\"1\"^^<a:b>"));
        assert_eq!(
            term(&json!({"type": "uri", "value": "a:b"})).as_deref(),
            Some("<a:b>")
        );
    }

    #[test]
    fn nodes_that_several_triples_share_become_one_variable() {
        let triple = |subject: &str, predicate: &str, object: &str| Triple {
            subject: subject.to_owned(),
            predicate: predicate.to_owned(),
            object: object.to_owned(),
        };
        let walk = [triple("<a>", "<p>", "<b>"), triple("<b>", "<q>", "_:c")];
        for seed in 0..50 {
            let text = query(&walk, &mut Random::new(seed));
            assert_eq!(text.matches("?v1").count(), 2, "{text}");
            assert!(!text.contains("_:"), "{text}");
        }
    }
}
