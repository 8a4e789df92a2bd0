//! What is in the data, read from the endpoint once by a few queries, and parameters of the
//! aggregation queries drawn by it: entities by how often works are about them, times of works,
//! words of their texts, places, entities that are related to others.
//!
//! Every query has a limit, so that a pool of any data has at most some hundred thousand rows.

use std::collections::BTreeMap;

use serde_json::Value;
use thiserror::Error;

use super::entities::{Category, Entities, Entity};
use super::maker::draw_kind;
use super::templates::TextSearch;
use super::vocabulary::{CWORK, number_of_graph, work};
use crate::http_client::{HttpClient, HttpError};
use orrery_bsbm::Random;
use orrery_bsbm::literals::{DAY_MS, date_time, milliseconds, string};

const RESULTS_JSON: &str = "application/sparql-results+json";
const HOUR_MS: i64 = 3_600_000;
/// The official driver's ranges.
const LIMIT_OF_DESCRIPTIONS: (u32, u32) = (5, 20);
const LIMIT_OF_SEARCHES: u32 = 1_000;
/// Of 100 runs of query 1, so many ask what works are about; the others, what they mention.
const ABOUT_OF_100: u32 = 85;
/// Words that are looked for have so many letters or more.
const WORD_LETTERS_MIN: usize = 5;

/// Why a pool cannot be read.
#[derive(Debug, Error)]
pub enum PoolError {
    /// The endpoint does not answer, or refuses.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// An answer is no SPARQL result.
    #[error("the answer is not a SPARQL result in JSON")]
    Answer,
    /// There are no works, or none that is about anything.
    #[error(
        "there are no creative works about anything; a server has to take the default graph as the union of all graphs \
         (orrery serve --union-default-graph)"
    )]
    NoWorks,
}

/// A place with its coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    latitude: f64,
    longitude: f64,
}

/// What is in the data.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    entities: Entities,
    /// Numbers of works.
    works: Vec<u64>,
    /// The highest number of a work.
    last_work: u64,
    words: Vec<String>,
    points: Vec<Point>,
    /// Places in a province, or all if there is no province.
    in_provinces: Vec<String>,
    /// Entities with a relation to what works are about or mention.
    related: Vec<String>,
    /// Times of works.
    created_ms: Vec<i64>,
    modified_ms: Vec<i64>,
    /// How the endpoint finds words.
    search: Option<TextSearch>,
}

const TOPICS: &str = "SELECT ?entity ?label ?type {
  { SELECT ?entity (COUNT(*) AS ?works) { ?work cwork:about ?entity }
    GROUP BY ?entity ORDER BY DESC(?works) ?entity LIMIT 100000 }
  OPTIONAL { ?entity rdfs:label|foaf:name|bbc:preferredLabel|domain:canonicalName|ldbcspb:prefLabel ?label }
  OPTIONAL { ?entity a ?type }
} ORDER BY DESC(?works) ?entity ?label ?type";
const PLACES: &str =
    "SELECT DISTINCT ?entity { ?work cwork:mentions ?entity } ORDER BY ?entity LIMIT 100000";
const WORKS: &str = "SELECT ?graph { GRAPH ?graph { ?work cwork:dateModified ?modified } } ORDER BY ?graph LIMIT 200000";
/// The numbers of works can be any, so that the highest is looked for among all.
const LAST: &str = "SELECT (MAX(?number) AS ?last) {
  GRAPH ?graph { ?work cwork:dateModified ?modified }
  BIND(<http://www.w3.org/2001/XMLSchema#integer>(STRBEFORE(STRAFTER(STR(?graph), \"/context/\"), \"#\")) AS ?number)
}";
const TEXTS: &str = "SELECT ?text { ?work cwork:description ?text } ORDER BY ?work LIMIT 2000";
const TIMES: &str =
    "SELECT ?created ?modified { ?work cwork:dateCreated ?created ; cwork:dateModified ?modified }
  ORDER BY ?work LIMIT 20000";
const POINTS: &str =
    "SELECT ?place ?lat ?long { ?place a geo-ont:Feature ; wgs:lat ?lat ; wgs:long ?long }
  ORDER BY ?place LIMIT 100000";
const IN_PROVINCES: &str = "SELECT DISTINCT ?entity {
  ?province geo-ont:featureCode geo-ont:A.ADM1 . ?entity geo-ont:parentFeature+ ?province
} ORDER BY ?entity LIMIT 100000";
const RELATED: &str = "SELECT DISTINCT ?entity {
  { SELECT DISTINCT ?tag { { ?work cwork:about ?tag } UNION { ?work cwork:mentions ?tag } } }
  { ?entity ?relation ?tag } UNION { ?tag ?relation ?entity }
  FILTER(ISIRI(?entity) && ?relation NOT IN (cwork:about, cwork:mentions, <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>))
} ORDER BY ?entity LIMIT 100000";
const SEARCH: &str = "PREFIX text: <https://orrery-db.org/text#>
SELECT ?work { SERVICE text:search { [] text:query \"a\" ; text:property cwork:title , cwork:description ;
  text:entity ?work ; text:limit 1 } }";

fn with_prefixes(text: &str) -> String {
    format!(
        "PREFIX cwork: <{CWORK}>
PREFIX bbc: <http://www.bbc.co.uk/ontologies/bbc/>
PREFIX domain: <http://www.bbc.co.uk/ontologies/domain/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX geo-ont: <http://www.geonames.org/ontology#>
PREFIX ldbcspb: <http://www.ldbcouncil.org/spb#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX wgs: <http://www.w3.org/2003/01/geo/wgs84_pos#>
{text}"
    )
}

fn value<'a>(row: &'a Value, name: &str) -> Option<&'a str> {
    row.get(name)?.get("value")?.as_str()
}

/// The addresses of a column, in angle brackets.
fn addresses(rows: &[Value]) -> Vec<String> {
    let values = rows.iter().filter_map(|row| value(row, "entity"));
    values.map(|iri| format!("<{iri}>")).collect()
}

fn category(class: &str) -> Category {
    match class.rsplit(['/', '#']).next() {
        Some("Person" | "Politician") => Category::Persons,
        Some("Company" | "Organisation") => Category::Company,
        _ => Category::Event,
    }
}

impl Pool {
    /// Reads what is in an endpoint.
    ///
    /// # Errors
    /// When it does not answer, or has no works.
    pub fn read(client: &mut HttpClient) -> Result<Self, PoolError> {
        let mut body = Vec::new();
        let mut select = |text: &str| -> Result<Vec<Value>, PoolError> {
            client.query(&with_prefixes(text), RESULTS_JSON, &mut body)?;
            let mut results: Value =
                serde_json::from_slice(&body).map_err(|_| PoolError::Answer)?;
            let bindings = results.pointer_mut("/results/bindings").map(Value::take);
            match bindings {
                Some(Value::Array(rows)) => Ok(rows),
                _ => Err(PoolError::Answer),
            }
        };
        let mut entities: Vec<Entity> = Vec::new();
        for row in select(TOPICS)? {
            let iri = format!("<{}>", value(&row, "entity").ok_or(PoolError::Answer)?);
            // Several names or types are several rows, one after the other.
            if entities.last().is_none_or(|last| last.iri != iri) {
                entities.push(Entity {
                    label: value(&row, "label").unwrap_or("Something").to_owned(),
                    category: value(&row, "type").map_or(Category::Event, category),
                    iri,
                });
            }
        }
        if entities.is_empty() {
            return Err(PoolError::NoWorks);
        }
        let mut pool = Self {
            entities: Entities::new(entities, addresses(&select(PLACES)?)),
            ..Self::default()
        };
        let graphs = select(WORKS)?;
        let graphs = graphs.iter().filter_map(|row| value(row, "graph"));
        pool.works = graphs.filter_map(number_of_graph).collect();
        let last = select(LAST)?;
        let last = last
            .first()
            .and_then(|row| value(row, "last")?.parse().ok());
        pool.last_work = last.unwrap_or_default();
        pool.words = words(&select(TEXTS)?);
        for row in select(TIMES)? {
            let time = |name: &str| milliseconds(value(&row, name)?);
            pool.created_ms.extend(time("created"));
            pool.modified_ms.extend(time("modified"));
        }
        if pool.created_ms.is_empty() || pool.modified_ms.is_empty() {
            return Err(PoolError::NoWorks);
        }
        pool.points = select(POINTS)?.iter().filter_map(point).collect();
        pool.in_provinces = addresses(&select(IN_PROVINCES)?);
        if pool.in_provinces.is_empty() {
            pool.in_provinces = pool.entities.places().to_vec();
        }
        pool.related = addresses(&select(RELATED)?);
        pool.search = Some(match select(SEARCH) {
            Ok(_) => TextSearch::Index,
            // No index, or another store, which knows nothing of such a service.
            Err(PoolError::Http(HttpError::Status { .. })) => TextSearch::Scan,
            Err(error) => return Err(error),
        });
        Ok(pool)
    }

    /// What new works can be about.
    pub fn entities(&self) -> &Entities {
        &self.entities
    }

    /// The numbers of works that are there, at most 200,000.
    pub fn works(&self) -> &[u64] {
        &self.works
    }

    /// A number above those of all works.
    pub fn next_work(&self) -> u64 {
        self.last_work + 1
    }

    /// How the endpoint finds words.
    pub fn search(&self) -> TextSearch {
        self.search.unwrap_or(TextSearch::Scan)
    }

    /// A time at about which works were created.
    pub fn draw_created_ms(&self, random: &mut Random) -> i64 {
        time_near(&self.created_ms, random)
    }

    /// Parameters of an aggregation query, by its number.
    pub fn draw(&self, number: u8, random: &mut Random) -> BTreeMap<String, String> {
        let mut parameters = BTreeMap::new();
        let mut set = |name: &str, value: String| {
            parameters.insert(name.to_owned(), value);
        };
        let popular = random.chance(30);
        let place = |random: &mut Random| self.entities.draw_place(random).cloned();
        let topic = |random: &mut Random| {
            let all = self.entities.all();
            let from = if popular {
                self.entities.popular()
            } else {
                all
            };
            let drawn = random.pick(from).map(|entity| entity.iri.clone());
            drawn.unwrap_or_default()
        };
        let (low, high) = LIMIT_OF_DESCRIPTIONS;
        match number {
            1 if random.chance(ABOUT_OF_100) => {
                set("relation", "cwork:about".to_owned());
                set("entity", topic(random));
            }
            1 => {
                set("relation", "cwork:mentions".to_owned());
                let place = place(random);
                set("entity", place.unwrap_or_else(|| topic(random)));
            }
            2 | 9 => {
                let number = random.pick(&self.works).copied();
                set("work", work(number.unwrap_or_default()));
            }
            3 | 4 => {
                set("topic", topic(random));
                set("limit", random.between(low, high).to_string());
                let kind = draw_kind(random);
                set("audience", format!("cwork:{}", kind.audience()));
                set("type", format!("cwork:{}", kind.class()));
                let format = super::maker::formats(kind, random);
                let format = random.pick(&format).copied().unwrap_or_default();
                set("format", format!("cwork:{format}"));
            }
            5 => {
                let kind = draw_kind(random);
                set("type", format!("cwork:{}", kind.class()));
                set("audience", format!("cwork:{}", kind.audience()));
                let from = time_near(&self.modified_ms, random);
                set("from", date_time(from));
                set("to", date_time(from + HOUR_MS));
            }
            6 => {
                let point = random.pick(&self.points);
                let point = point.copied().unwrap_or(Point {
                    latitude: 51.5,
                    longitude: 0.0,
                });
                // The official driver draws around anywhere: so near a place, but not at it.
                let mut near = |middle: f64| middle + f64::from(random.below(400)) / 1e3 - 0.2;
                set("latitude", format!("{:.3}", near(point.latitude)));
                set("longitude", format!("{:.3}", near(point.longitude)));
                let deviation = 0.2 + f64::from(random.below(50)) / 1e3;
                set("deviation", format!("{deviation:.3}"));
                set("limit", LIMIT_OF_SEARCHES.to_string());
            }
            7 => {
                set("type", format!("cwork:{}", draw_kind(random).class()));
                let from = time_near(&self.created_ms, random);
                set("from", date_time(from));
                set("to", date_time(from + HOUR_MS));
            }
            8 => {
                let word = random.pick(&self.words).map_or("news", String::as_str);
                set("word", string(word));
                set("limit", LIMIT_OF_SEARCHES.to_string());
            }
            10 => {
                let place = random.pick(&self.in_provinces).cloned();
                set("place", place.unwrap_or_else(|| topic(random)));
                let day = time_near(&self.modified_ms, random).div_euclid(DAY_MS);
                set("from", date_time(day * DAY_MS));
                set("to", date_time((day + 1) * DAY_MS - 1));
            }
            11 => {
                let entity = random.pick(&self.related).cloned();
                set("entity", entity.unwrap_or_else(|| topic(random)));
            }
            _ => {
                let place = place(random);
                set("tag", place.unwrap_or_else(|| topic(random)));
            }
        }
        parameters
    }
}

/// A time less than an hour before one of these. The official driver takes any time of the period,
/// so that most of its hours have no works in data as small as a million quads.
fn time_near(times_ms: &[i64], random: &mut Random) -> i64 {
    let time_ms = random.pick(times_ms).copied().unwrap_or_default();
    time_ms - i64::from(random.below(HOUR_MS as u32))
}

fn point(row: &Value) -> Option<Point> {
    Some(Point {
        latitude: value(row, "lat")?.parse().ok()?,
        longitude: value(row, "long")?.parse().ok()?,
    })
}

/// Words of texts, each once, in order.
fn words(rows: &[Value]) -> Vec<String> {
    let texts = rows.iter().filter_map(|row| value(row, "text"));
    let words = texts.flat_map(|text| text.split(|letter: char| !letter.is_alphanumeric()));
    let mut words: Vec<String> = words
        .filter(|word| word.len() >= WORD_LETTERS_MIN)
        .filter(|word| word.bytes().all(|letter| letter.is_ascii_lowercase()))
        .map(str::to_owned)
        .collect();
    words.sort();
    words.dedup();
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spb::templates::{QUERIES, template};
    use orrery_bsbm::templates::instantiate;

    #[test]
    fn every_query_gets_all_its_parameters_and_is_sparql() {
        let entity = Entity {
            iri: "<http://example.org/e>".to_owned(),
            label: "E".to_owned(),
            category: Category::Event,
        };
        let pool = Pool {
            entities: Entities::new(vec![entity], Vec::new()),
            works: vec![1],
            created_ms: vec![DAY_MS],
            modified_ms: vec![DAY_MS],
            ..Pool::default()
        };
        let mut random = Random::new(1);
        for _ in 0..20 {
            for number in 1..=QUERIES {
                let parameters = pool.draw(number, &mut random);
                for search in [TextSearch::Scan, TextSearch::Index] {
                    let text = instantiate(template(number, search).unwrap(), &parameters).unwrap();
                    spargebra::SparqlParser::new()
                        .parse_query(&text)
                        .unwrap_or_else(|error| panic!("Q{number}: {error}\n{text}"));
                }
            }
        }
    }

    #[test]
    fn queries_about_the_data_are_sparql() {
        let all = [
            TOPICS,
            PLACES,
            WORKS,
            TEXTS,
            TIMES,
            POINTS,
            IN_PROVINCES,
            RELATED,
            SEARCH,
        ];
        for text in all {
            let text = with_prefixes(text);
            let parsed = spargebra::SparqlParser::new().parse_query(&text);
            assert!(parsed.is_ok(), "{parsed:?}\n{text}");
        }
    }

    #[test]
    fn words_are_those_that_an_index_has_too() {
        let rows = [
            serde_json::json!({ "text": { "value": "captain's Captain cap café captain, 12345" } }),
        ];
        assert_eq!(words(&rows), ["captain"]);
    }
}
