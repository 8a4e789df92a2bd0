//! The queries of the soak test, and their expected answers per state.
//!
//! Answers are compared as lines (CSV, N-Triples), sorted: the order of rows is the server's where
//! no text asks for one. Of a text with `LIMIT` the rows have to be among those without it, and as
//! many as the first time: of rows that compare equal any may be left out.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::changes::sql;
use super::model::Members;
use super::places::{PREFIXES, Place, Product, Role, TABLE};
use crate::drivers::{BenchError, N_TRIPLES};
use crate::http_client::{HttpClient, Request};
use orrery_bsbm::Random;
use orrery_bsbm::parameters::ParameterPool;
use orrery_bsbm::templates::{EXPLORE, instantiate};

const CSV: &str = "text/csv";
/// Sets of parameters of each explore query.
const SETS: usize = 8;
const SEED: u64 = 16;
/// What a query asks for, by `timeout`.
pub(super) const TIME_MAX: Duration = Duration::from_secs(30);

/// Queries over much of the static data.
const ANALYTICAL: [&str; 6] = [
    "SELECT ?c (COUNT(?r) AS ?n) { ?r rev:reviewer ?p . ?p bsbm:country ?c } GROUP BY ?c",
    "SELECT ?v (COUNT(?o) AS ?n) (MIN(?d) AS ?least) (MAX(?d) AS ?most) { ?o bsbm:vendor ?v ; bsbm:deliveryDays ?d } GROUP BY ?v",
    "SELECT ?f (COUNT(DISTINCT ?producer) AS ?n) { ?p bsbm:productFeature ?f ; bsbm:producer ?producer } GROUP BY ?f",
    "SELECT ?t (COUNT(*) AS ?n) { ?p a/rdfs:subClassOf* ?t ; bsbm:producer ?x } GROUP BY ?t",
    "SELECT (COUNT(*) AS ?n) { ?p bsbm:producer ?x FILTER NOT EXISTS { ?r bsbm:reviewFor ?p } }",
    "SELECT ?product (COUNT(?o) AS ?n) { ?o bsbm:product ?product } GROUP BY ?product ORDER BY DESC(?n) ?product LIMIT 20",
];

/// A long answer, of which who has limits gets a part.
const LONG: &str = "CONSTRUCT { ?o bsbm:price ?p } WHERE { ?o bsbm:price ?p }";

/// Queries that take much memory and time: what the first one that ends says of them is not looked
/// at, they are there for their load.
pub(super) const HEAVY: [&str; 10] = [
    "SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?o ?s ?p",
    "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?s ?o { ?s ?p ?o } }",
    "SELECT ?s (COUNT(*) AS ?n) (GROUP_CONCAT(STR(?o)) AS ?t) { ?s ?p ?o } GROUP BY ?s",
    "SELECT ?a ?b { ?a bsbm:productFeature ?f . ?b bsbm:productFeature ?f } ORDER BY ?a ?b LIMIT 100000",
    "SELECT (COUNT(*) AS ?n) { ?a bsbm:productFeature ?f OPTIONAL { ?a bsbm:productPropertyTextual4 ?x } \
     OPTIONAL { ?b bsbm:productFeature ?f . ?b bsbm:productPropertyTextual4 ?x } }",
    "SELECT ?o (COUNT(?s) AS ?n) { ?s ?p ?o } GROUP BY ?o ORDER BY DESC(?n) LIMIT 10",
    "SELECT (COUNT(DISTINCT CONCAT(STR(?s),STR(?o))) AS ?n) { ?s ?p ?o }",
    "SELECT (COUNT(*) AS ?n) { ?s (<e:p>|!<e:p>)* ?o }",
    "SELECT * { ?s ?p ?o . ?s ?q ?r } LIMIT 300000",
    "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
];

/// A question about data that nobody changes, and its answer.
pub(super) struct Static {
    pub(super) request: Request,
    /// All rows that may be in it, each as often as it may.
    rows: HashMap<String, usize>,
    /// How many there are.
    length: usize,
}

impl Static {
    /// Says what is wrong with an answer.
    pub(super) fn check(&self, body: &str, is_partial: bool) -> Result<(), String> {
        let mut found: HashMap<&str, usize> = HashMap::new();
        let mut length = 0;
        // What says that an answer is a part of one is a comment.
        for line in body.lines().filter(|line| !line.starts_with("# partial")) {
            length += 1;
            let times = found.entry(line).or_default();
            *times += 1;
            if self.rows.get(line).is_none_or(|right| *times > *right) {
                return Err(format!("the line {line} is not right"));
            }
        }
        match length == self.length || (is_partial && length < self.length) {
            true => Ok(()),
            false => Err(format!("{length} lines, there are {}", self.length)),
        }
    }
}

/// The questions about data that nobody changes.
pub(super) struct Statics {
    pub(super) explore: Vec<Static>,
    pub(super) analytical: Vec<Static>,
    pub(super) long: Static,
    pub(super) sql: Static,
    pub(super) products: Vec<Product>,
}

/// A query by POST.
pub(super) fn query(text: &str, accept: &str, parameters: &str) -> Request {
    Request {
        method: "POST",
        path: format!("/sparql?timeout={}{parameters}", TIME_MAX.as_secs()),
        headers: vec![
            ("Content-Type", "application/sparql-query".to_owned()),
            ("Accept", accept.to_owned()),
        ],
        body: text.to_owned(),
    }
}

impl Statics {
    /// Asks each once, of a database that nobody changes yet.
    pub(super) fn ask(client: &mut HttpClient, pool: &ParameterPool) -> Result<Self, BenchError> {
        let mut random = Random::new(SEED);
        let mut explore = Vec::new();
        for template in EXPLORE {
            let accept = if template.is_graph_query {
                N_TRIPLES
            } else {
                CSV
            };
            for _ in 0..SETS {
                let set = pool.draw(template.number, &mut random)?;
                let text = instantiate(template.text, &set.values)?;
                explore.push(answered(client, &text, accept)?);
            }
        }
        let mut analytical = Vec::new();
        for text in ANALYTICAL {
            analytical.push(answered(client, &format!("{PREFIXES}{text}"), CSV)?);
        }
        let long = answered(client, &format!("{PREFIXES}{LONG}"), N_TRIPLES)?;
        let text = "SELECT v AS vendor, count(*) AS n FROM sparql('PREFIX bsbm: \
            <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/> SELECT ?v { ?o bsbm:vendor ?v }') \
            AS s (v text) GROUP BY v";
        let request = sql(text.to_owned());
        let lines = lines_of(client, &request)?;
        let sql = of_lines(request, &lines, lines.len());
        let text = format!(
            "{PREFIXES}SELECT ?p (COUNT(?f) AS ?n) {{ ?p bsbm:productFeature ?f }} GROUP BY ?p ORDER BY ?p"
        );
        let products = lines_of(client, &query(&text, CSV, ""))?;
        let products = products.iter().skip(1).filter_map(|line| {
            let (iri, features) = line.rsplit_once(',')?;
            Some(Product {
                iri: format!("<{iri}>"),
                features: features.parse().ok()?,
            })
        });
        Ok(Self {
            explore,
            analytical,
            long,
            sql,
            products: products.collect(),
        })
    }
}

fn answered(client: &mut HttpClient, text: &str, accept: &str) -> Result<Static, BenchError> {
    let request = query(text, accept, "");
    let length = lines_of(client, &request)?.len();
    // Templates have them in lines of their own, the others at their end.
    let all = match text.find("LIMIT") {
        Some(at) => &text[..text.find("OFFSET").map_or(at, |offset| offset.min(at))],
        None => text,
    };
    let lines = lines_of(client, &query(all, accept, ""))?;
    Ok(of_lines(request, &lines, length))
}

fn of_lines(request: Request, lines: &[String], length: usize) -> Static {
    let mut rows = HashMap::new();
    for line in lines {
        *rows.entry(line.clone()).or_default() += 1;
    }
    Static {
        request,
        rows,
        length,
    }
}

fn lines_of(client: &mut HttpClient, request: &Request) -> Result<Vec<String>, BenchError> {
    let what = || format!("{} {}: {}", request.method, request.path, request.body);
    let answer = client.send(request).map_err(|source| BenchError::Query {
        what: what(),
        source,
    })?;
    let body = String::from_utf8_lossy(&answer.body);
    match answer.status == 200 && answer.is_whole {
        true => Ok(body.lines().map(str::to_owned).collect()),
        false => Err(BenchError::Output {
            command: what(),
            what: format!("status {}: {body}", answer.status),
        }),
    }
}

/// A question about what clients change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Number and sum of the members of a ring.
    Sum(Place),
    /// All of them.
    List(Place),
    /// Joined with the features of their products.
    Features(Place),
    /// Number and sum of each ring that is a graph.
    AllSums,
    /// Of each ring in the default graph.
    DefaultSums,
    /// Whether this member has this value.
    Ask(Place, u32, i64),
    /// The graph of a ring, by the graph store.
    Graph(Place),
    /// Number and sum of the members of a ring in the table.
    TableSum(usize),
    /// All of them.
    TableList(usize),
    /// Of all rings in the table, and the sum of a graph beside it: both of one state.
    TableAndGraph(usize, Place),
}

impl Question {
    /// One of those that who plays the role may ask, about a ring that it may not be able to see.
    pub(super) fn draw(
        random: &mut Random,
        role: Role,
        clients: usize,
        now: impl Fn(usize) -> Members,
    ) -> Self {
        let other = random.below(u32::try_from(clients).unwrap_or(u32::MAX)) as usize;
        let place = Place::of(other);
        match random.below(if role.changes_tables() { 12 } else { 8 }) {
            0 => Self::Sum(place),
            1 => Self::List(place),
            2 => Self::Features(place),
            3 => Self::AllSums,
            4 => Self::DefaultSums,
            5 => {
                let now = now(other);
                let place_of = random.below(48);
                let member = now.range(place_of..).next();
                let (number, value) =
                    member.map_or((0, 0), |(number, member)| (*number, member.value));
                Self::Ask(place, number, value)
            }
            6 | 7 => match place {
                Place::Graph(..) => Self::Graph(place),
                Place::Default(_) => Self::Sum(place),
            },
            8 | 9 => Self::TableSum(other),
            10 => Self::TableList(other),
            _ => Self::TableAndGraph(other, place),
        }
    }

    /// Whether it is asked of `/sparql`, where old states can be read.
    pub(super) fn is_sparql(self) -> bool {
        !matches!(
            self,
            Self::Graph(_) | Self::TableSum(_) | Self::TableList(_) | Self::TableAndGraph(..)
        )
    }

    /// The request; `parameters` of the query follow others.
    pub(super) fn request(self, parameters: &str) -> Request {
        let select = |text: String| query(&format!("{PREFIXES}{text}"), CSV, parameters);
        match self {
            Self::Sum(place) => select(format!(
                "SELECT (COUNT(?v) AS ?n) (SUM(?v) AS ?s) {{ {} }}",
                place.members("soak:value ?v")
            )),
            Self::List(place) => select(format!(
                "SELECT ?i ?v ?p {{ {} }}",
                place.members("soak:value ?v ; soak:about ?p")
            )),
            Self::Features(place) => select(format!(
                "SELECT (COUNT(*) AS ?n) (SUM(?v) AS ?s) {{ {} ?p bsbm:productFeature ?f }}",
                place.members("soak:value ?v ; soak:about ?p .")
            )),
            Self::AllSums => select(
                "SELECT ?g (COUNT(?v) AS ?n) (SUM(?v) AS ?s) { GRAPH ?g { ?i soak:value ?v } } GROUP BY ?g".to_owned(),
            ),
            Self::DefaultSums => select(
                "SELECT ?r (COUNT(?v) AS ?n) (SUM(?v) AS ?s) { ?i soak:ring ?r ; soak:value ?v } GROUP BY ?r".to_owned(),
            ),
            Self::Ask(place, number, value) => query(
                &format!(
                    "{PREFIXES}ASK {{ {} }}",
                    place.within(&format!("{} soak:value {value}", place.item(number)))
                ),
                "application/sparql-results+json",
                parameters,
            ),
            Self::Graph(place) => {
                let graph = place.graph().unwrap_or_default();
                let name: String = url::form_urlencoded::byte_serialize(graph.as_bytes()).collect();
                Request {
                    method: "GET",
                    path: format!("/graphs?graph={name}"),
                    headers: vec![("Accept", N_TRIPLES.to_owned())],
                    body: String::new(),
                }
            }
            Self::TableSum(ring) => sql(format!(
                "SELECT count(*) AS n, coalesce(sum(value), 0) AS s FROM {TABLE} WHERE ring = {ring}"
            )),
            Self::TableList(ring) => sql(format!(
                "SELECT number, value, product FROM {TABLE} WHERE ring = {ring} ORDER BY number"
            )),
            Self::TableAndGraph(ring, place) => {
                let pattern = place.members("<http://soak.example/value> ?v");
                let pattern = pattern.replace("soak:ring", "<http://soak.example/ring>");
                sql(format!(
                    "SELECT count(*) AS n, coalesce(sum(value), 0) AS s FROM {TABLE} WHERE ring = {ring} UNION ALL \
                     SELECT count(*), coalesce(sum(v), 0) FROM sparql('SELECT ?v {{ {pattern} }}') AS g (v bigint)"
                ))
            }
        }
    }

    /// The lines of the right answer, sorted, where the rings held what `graph_at` and `table_at`
    /// say. `None` if one of them does not know.
    pub(super) fn expected(
        self,
        role: Role,
        clients: usize,
        products: &[Product],
        graph_at: &dyn Fn(usize) -> Option<Arc<Members>>,
        table_at: &dyn Fn(usize) -> Option<Arc<Members>>,
    ) -> Option<Vec<String>> {
        let seen = |place: Place| match role.sees(place) {
            true => graph_at(place.ring()),
            false => Some(Arc::default()),
        };
        let sums = |members: Arc<Members>| {
            let sum: i64 = members.values().map(|member| member.value).sum();
            format!("{},{sum}", members.len())
        };
        let mut lines = match self {
            Self::Sum(place) => vec!["n,s".to_owned(), sums(seen(place)?)],
            Self::List(place) => {
                let members = seen(place)?;
                let line = |(number, member): (&u32, &super::model::Member)| {
                    let product = products
                        .get(member.product)
                        .map_or("", |product| &product.iri);
                    let unbracketed = |iri: &str| iri.trim_matches(['<', '>']).to_owned();
                    format!(
                        "{},{},{}",
                        unbracketed(&place.item(*number)),
                        member.value,
                        unbracketed(product)
                    )
                };
                std::iter::once("i,v,p".to_owned())
                    .chain(members.iter().map(line))
                    .collect()
            }
            Self::Features(place) => {
                let members = seen(place)?;
                let features =
                    |product: usize| products.get(product).map_or(0, |product| product.features);
                let rows: i64 = members
                    .values()
                    .map(|member| features(member.product))
                    .sum();
                let sum = members
                    .values()
                    .map(|member| features(member.product) * member.value);
                vec!["n,s".to_owned(), format!("{rows},{}", sum.sum::<i64>())]
            }
            Self::AllSums | Self::DefaultSums => {
                let mut lines = vec![
                    if self == Self::AllSums {
                        "g,n,s"
                    } else {
                        "r,n,s"
                    }
                    .to_owned(),
                ];
                for place in (0..clients).map(Place::of) {
                    let name = match (self, place) {
                        (Self::AllSums, Place::Graph(..)) => place.graph().unwrap_or_default(),
                        (Self::DefaultSums, Place::Default(ring)) => ring.to_string(),
                        _ => continue,
                    };
                    let members = seen(place)?;
                    if !members.is_empty() {
                        lines.push(format!("{name},{}", sums(members)));
                    }
                }
                lines
            }
            Self::Ask(place, number, value) => {
                let members = seen(place)?;
                let is_so = members
                    .get(&number)
                    .is_some_and(|member| member.value == value);
                vec![format!("{{\"head\":{{}},\"boolean\":{is_so}}}")]
            }
            Self::Graph(place) => {
                let members = seen(place)?;
                place.document(&members, products)
            }
            Self::TableSum(ring) => vec!["n,s".to_owned(), sums(table_at(ring)?)],
            Self::TableList(ring) => {
                let members = table_at(ring)?;
                let line = |(number, member): (&u32, &super::model::Member)| {
                    format!("{number},{},{}", member.value, member.product)
                };
                let head = "number,value,product".to_owned();
                std::iter::once(head)
                    .chain(members.iter().map(line))
                    .collect()
            }
            Self::TableAndGraph(ring, place) => {
                vec!["n,s".to_owned(), sums(table_at(ring)?), sums(seen(place)?)]
            }
        };
        lines.sort_unstable();
        Some(lines)
    }
}
