//! The changes of a client to its rings, and their expected effect.

use super::model::{Member, Members};
use super::places::{PREFIXES, Place, Product, TABLE};
use crate::http_client::Request;
use orrery_bsbm::Random;

/// Members of a ring at most: data and memory stay as large.
const MEMBERS_MAX: u32 = 48;
/// Members that one change brings or removes, at most.
const AT_A_TIME_MAX: u32 = 8;
const VALUE_MAX: u32 = 1_000;

/// A change that is to be made.
pub(super) struct Change {
    pub(super) request: Request,
    /// What the ring holds if it is made.
    pub(super) next: Members,
}

/// An update of SPARQL.
pub(super) fn update(text: &str) -> Request {
    post(
        "/sparql",
        "application/sparql-update",
        format!("{PREFIXES}{text}"),
    )
}

/// Statements of SQL.
pub(super) fn sql(text: String) -> Request {
    let mut request = post("/sql", "application/sql", text);
    request.headers.push(("Accept", "text/csv".to_owned()));
    request
}

fn post(path: &str, media_type: &str, body: String) -> Request {
    Request {
        method: "POST",
        path: path.to_owned(),
        headers: vec![("Content-Type", media_type.to_owned())],
        body,
    }
}

/// Some members that are not there.
fn newcomers(now: &Members, random: &mut Random, products: &[Product]) -> Members {
    let wanted = random.below(AT_A_TIME_MAX) + 1;
    let start = random.below(MEMBERS_MAX);
    let numbers = (0..MEMBERS_MAX).map(|step| (start + step) % MEMBERS_MAX);
    let absent = numbers.filter(|number| !now.contains_key(number));
    let products = u32::try_from(products.len()).unwrap_or(u32::MAX).max(1);
    absent
        .take(wanted as usize)
        .map(|number| {
            let member = Member {
                value: i64::from(random.below(VALUE_MAX)),
                product: random.below(products) as usize,
            };
            (number, member)
        })
        .collect()
}

/// Some members that are there.
fn leavers(now: &Members, random: &mut Random) -> Members {
    let some = random.below(AT_A_TIME_MAX) as usize + 1;
    let from = random.below(MEMBERS_MAX);
    let members = now.iter().filter(|(number, _)| **number >= from);
    members
        .take(some)
        .map(|(number, member)| (*number, *member))
        .collect()
}

fn with(now: &Members, more: &Members) -> Members {
    now.iter()
        .chain(more)
        .map(|(number, member)| (*number, *member))
        .collect()
}

fn without(now: &Members, less: &Members) -> Members {
    let kept = now.iter().filter(|(number, _)| !less.contains_key(number));
    kept.map(|(number, member)| (*number, *member)).collect()
}

/// The values are others by what is told for each.
fn raised(now: &Members, by: impl Fn(Member) -> i64) -> Members {
    let raise = |(number, member): (&u32, &Member)| {
        let value = member.value + by(*member);
        (*number, Member { value, ..*member })
    };
    now.iter().map(raise).collect()
}

/// A change of a ring that is a graph, or a part of one. What changes nothing is `None`.
pub(super) fn of_graph(
    place: Place,
    now: &Members,
    random: &mut Random,
    products: &[Product],
) -> Option<Change> {
    let (more, less) = (newcomers(now, random, products), leavers(now, random));
    let by = i64::from(random.below(100)) - 30;
    let data = |members: &Members| place.within(&place.document(members, products).join(" "));
    let raise = |by: &str, and: &str| {
        let (old, new) = (
            place.within("?i soak:value ?v"),
            place.within("?i soak:value ?w"),
        );
        let found = place.members("soak:value ?v ; soak:about ?p .");
        update(&format!(
            "DELETE {{ {old} }} INSERT {{ {new} }} WHERE {{ {found} {and} BIND(?v + {by} AS ?w) }}"
        ))
    };
    let (request, next) = match (random.below(12), place.graph()) {
        (0..=2, _) => (
            update(&format!("INSERT DATA {{ {} }}", data(&more))),
            with(now, &more),
        ),
        (3, _) => (
            update(&format!("DELETE DATA {{ {} }}", data(&less))),
            without(now, &less),
        ),
        (4, _) => {
            let patterns: Vec<String> = less
                .keys()
                .map(|&number| {
                    format!(
                        "DELETE WHERE {{ {} }}",
                        place.within(&format!("{} ?p ?o", place.item(number)))
                    )
                })
                .collect();
            (update(&patterns.join(" ; ")), without(now, &less))
        }
        (5, _) => (raise(&format!("({by})"), ""), raised(now, |_| by)),
        (6, _) => {
            // Reads the static data, too.
            let and = format!(
                "{{ SELECT ?p (COUNT(DISTINCT ?f) AS ?n) {{ {} ?p bsbm:productFeature ?f }} GROUP BY ?p }}",
                place.members("soak:about ?p .")
            );
            let features = |member: Member| {
                products
                    .get(member.product)
                    .map_or(0, |product| product.features)
            };
            (raise("?n", &and), raised(now, features))
        }
        (7, Some(graph)) => (store("PUT", &graph, place.document(&more, products)), more),
        (8, Some(graph)) => (
            store("POST", &graph, place.document(&more, products)),
            with(now, &more),
        ),
        (9, Some(graph)) if random.below(4) == 0 => match random.below(2) {
            0 => (update(&format!("CLEAR GRAPH <{graph}>")), Members::new()),
            _ => (store("DELETE", &graph, Vec::new()), Members::new()),
        },
        (10, Some(graph)) => {
            let inside = |members: &Members| place.document(members, products).join(" ");
            let mut request = store("PATCH", &graph, Vec::new());
            request.headers = vec![("Content-Type", "application/sparql-update".to_owned())];
            request.body = format!(
                "DELETE DATA {{ {} }} ; INSERT DATA {{ {} }}",
                inside(&less),
                inside(&more)
            );
            (request, with(&without(now, &less), &more))
        }
        _ => {
            let text = format!(
                "DELETE DATA {{ {} }} ; INSERT DATA {{ {} }}",
                data(&less),
                data(&more)
            );
            (update(&text), with(&without(now, &less), &more))
        }
    };
    (next != *now).then_some(Change { request, next })
}

/// A request to the graph store.
fn store(method: &'static str, graph: &str, triples: Vec<String>) -> Request {
    let name: String = url::form_urlencoded::byte_serialize(graph.as_bytes()).collect();
    let mut request = Request {
        method,
        path: format!("/graphs?graph={name}"),
        ..Request::default()
    };
    if method != "DELETE" {
        request
            .headers
            .push(("Content-Type", "application/n-triples".to_owned()));
        request.body = triples.join("\n") + "\n";
    }
    request
}

/// A change of a ring that is rows of the table.
pub(super) fn of_table(
    ring: usize,
    now: &Members,
    random: &mut Random,
    products: &[Product],
) -> Option<Change> {
    let (more, less) = (newcomers(now, random, products), leavers(now, random));
    let by = i64::from(random.below(100)) - 30;
    let insert = || {
        let row = |(number, member): (&u32, &Member)| {
            format!("({ring}, {number}, {}, {})", member.value, member.product)
        };
        let rows: Vec<String> = more.iter().map(row).collect();
        format!("INSERT INTO {TABLE} VALUES {}", rows.join(", "))
    };
    let delete = || {
        let numbers: Vec<String> = less.keys().map(u32::to_string).collect();
        format!(
            "DELETE FROM {TABLE} WHERE ring = {ring} AND number IN ({})",
            numbers.join(", ")
        )
    };
    let raise = format!("UPDATE {TABLE} SET value = value + ({by}) WHERE ring = {ring}");
    let kind = random.below(5);
    if (kind != 1 && kind != 2 && more.is_empty()) || (matches!(kind, 1 | 4) && less.is_empty()) {
        return None;
    }
    let (text, next) = match kind {
        0 => (insert(), with(now, &more)),
        1 => (delete(), without(now, &less)),
        2 => (raise, raised(now, |_| by)),
        3 => (
            format!("{} ; {raise}", insert()),
            raised(&with(now, &more), |_| by),
        ),
        // Rows behind changes: the answer is written before the commit.
        _ => (
            format!("{} ; {} RETURNING number", delete(), insert()),
            with(&without(now, &less), &more),
        ),
    };
    (next != *now).then(|| Change {
        request: sql(text),
        next,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_bring_no_more_members_than_there_may_be() {
        let products = [Product {
            iri: "<urn:p>".to_owned(),
            features: 2,
        }];
        let mut random = Random::new(1);
        for place in [Place::Default(3), Place::Graph(4, 'a')] {
            let (mut now, mut made) = (Members::new(), 0);
            for _ in 0..500 {
                if let Some(change) = of_graph(place, &now, &mut random, &products) {
                    assert_ne!(change.next, now);
                    now = change.next;
                    made += 1;
                }
                if let Some(change) = of_table(3, &now, &mut random, &products) {
                    assert_ne!(change.next, now);
                }
                assert!(now.len() <= MEMBERS_MAX as usize);
            }
            assert!(made > 250, "{made}");
        }
    }
}
