//! A session that runs operations at an endpoint.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use super::catalog::{self, Catalog};
use super::insertions::{self, InsertionError};
use super::operation::{Kind, Operation};
use super::templates::{FRIENDSHIP, WAYS_BY_EDGE_WEIGHT, WEIGHTS, template};
use super::{answer, terms};
use crate::http_client::{HttpClient, HttpError};
use orrery_bsbm::templates::{MissingParameter, instantiate};

const RESULTS_JSON: &str = "application/sparql-results+json";

/// How far complex read 9 looks back, in days, before it looks at all that was before: a few days
/// have enough messages for most, and an index of times finds those of a few days quickly.
const DAYS_BACK: [i64; 3] = [2, 16, 128];
const DAY_MS: i64 = 86_400_000;
/// Before all times.
const BEGINNING_MS: i64 = 0;

/// Why an operation has no result.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The endpoint does not answer, or refuses.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// An answer is not what was asked for.
    #[error("the answer is not what was asked for")]
    Answer,
    /// A template cannot be filled.
    #[error(transparent)]
    Template(#[from] MissingParameter),
    /// An insertion has no text.
    #[error(transparent)]
    Insertion(#[from] InsertionError),
}

/// A client of the workload.
#[derive(Debug)]
pub struct Session {
    client: HttpClient,
    catalog: Arc<Catalog>,
    body: Vec<u8>,
    /// Whether complex read 14 goes by an edge weight.
    has_edge_weight: bool,
}

/// Persons on a way, from one end to the other.
type Way = Vec<u64>;
/// What pairs of persons wrote to each other.
type Weights = HashMap<(u64, u64), f64>;

impl Session {
    /// A client of an endpoint; reads the catalog from it.
    ///
    /// # Errors
    /// When the endpoint does not answer.
    pub fn open(endpoint: &str) -> Result<Self, SessionError> {
        let mut session = Self {
            client: HttpClient::new(endpoint)?,
            catalog: Arc::default(),
            body: Vec::new(),
            has_edge_weight: false,
        };
        let rows = session.select(catalog::QUERY)?;
        session.catalog = Arc::new(Catalog::read(&rows).ok_or(SessionError::Answer)?);
        Ok(session)
    }

    /// Another client of the same endpoint, with a connection of its own.
    ///
    /// # Errors
    /// When the address is wrong.
    pub fn another(&self, endpoint: &str) -> Result<Self, SessionError> {
        Ok(Self {
            client: HttpClient::new(endpoint)?,
            catalog: Arc::clone(&self.catalog),
            body: Vec::new(),
            has_edge_weight: self.has_edge_weight,
        })
    }

    /// Defines the weights of complex read 14 in the database, and lets it go by these.
    ///
    /// # Errors
    /// When the endpoint refuses the definition.
    pub fn define_edge_weight(&mut self) -> Result<(), SessionError> {
        self.client.update(FRIENDSHIP, &mut self.body)?;
        self.has_edge_weight = true;
        Ok(())
    }

    /// Runs an operation to its end and gives its result.
    ///
    /// # Errors
    /// When the endpoint refuses it.
    pub fn run(&mut self, operation: &Operation) -> Result<Value, SessionError> {
        match operation {
            Operation::Read {
                kind: Kind::Complex(9),
                parameters,
            } => self.latest(parameters),
            Operation::Read { kind, parameters } => {
                let text = instantiate(template(*kind).unwrap_or_default(), parameters)?;
                let rows = self.select(&text)?;
                answer::result(*kind, &rows).ok_or(SessionError::Answer)
            }
            Operation::Distance { from, to } => {
                let length = match self.distance(*from, *to)? {
                    Some(length) => i64::from(length),
                    None => -1,
                };
                Ok(serde_json::json!({ "shortestPathLength": length }))
            }
            Operation::Ways { from, to } => self.weighted_ways(*from, *to),
            Operation::Insert(insertion) => {
                let text = insertions::text(insertion, &self.catalog)?;
                self.client.update(&text, &mut self.body)?;
                Ok(Value::from("-1"))
            }
        }
    }

    /// Complex read 9: those of the last days if they are enough, for nothing before them can be
    /// later.
    fn latest(&mut self, parameters: &BTreeMap<String, String>) -> Result<Value, SessionError> {
        const KIND: Kind = Kind::Complex(9);
        let parameter = |name: &str| parameters.get(name).map(String::as_str).unwrap_or_default();
        let limit: usize = parameter("limit")
            .parse()
            .map_err(|_| SessionError::Answer)?;
        let end = parameter("maxDate").split('"').nth(1);
        let end = end
            .and_then(terms::milliseconds)
            .ok_or(SessionError::Answer)?;
        let mut parameters = parameters.clone();
        let mut rows = Vec::new();
        let starts = DAYS_BACK.iter().map(|days| end - days * DAY_MS);
        for start in starts.chain([BEGINNING_MS]) {
            parameters.insert("minDate".to_owned(), terms::date_time(start));
            rows = self.select(&instantiate(
                template(KIND).unwrap_or_default(),
                &parameters,
            )?)?;
            if rows.len() >= limit {
                break;
            }
        }
        answer::result(KIND, &rows).ok_or(SessionError::Answer)
    }

    /// Rows of a query of our own.
    ///
    /// # Errors
    /// When the endpoint refuses it.
    pub fn select(&mut self, text: &str) -> Result<Vec<Value>, SessionError> {
        self.client.query(text, RESULTS_JSON, &mut self.body)?;
        answer::bindings(&self.body).ok_or(SessionError::Answer)
    }

    /// The steps of the shortest way; none if there is no way.
    fn distance(&mut self, from: u64, to: u64) -> Result<Option<u32>, SessionError> {
        if from == to {
            return Ok(Some(0));
        }
        let rows = self.select(&between(Kind::Complex(13), from, to)?)?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let length = answer::text(row, "shortestPathLength").and_then(|it| it.parse().ok());
        length.map(Some).ok_or(SessionError::Answer)
    }

    fn weighted_ways(&mut self, from: u64, to: u64) -> Result<Value, SessionError> {
        let (ways, weights) = match self.has_edge_weight {
            true => self.ways_by_edge_weight(from, to)?,
            false => {
                let ways = self.ways(from, to)?;
                let weights = self.weights(&ways)?;
                (ways, weights)
            }
        };
        let weight = |way: &Way| -> f64 {
            let pairs = way.windows(2).map(|pair| (pair[0], pair[1]));
            let weights = pairs.filter_map(|pair| weights.get(&pair));
            // A sum of no floats would be -0.
            weights.fold(0.0, |sum, weight| sum + weight)
        };
        let mut weighted: Vec<(f64, Way)> =
            ways.into_iter().map(|way| (weight(&way), way)).collect();
        weighted.sort_by(|(left, _), (right, _)| right.total_cmp(left));
        let rows = weighted.into_iter().map(
            |(weight, way)| serde_json::json!({ "personIdsInPath": way, "pathWeight": weight }),
        );
        Ok(rows.collect())
    }

    /// All shortest ways, and the weights of those beside each other on them: by one query.
    fn ways_by_edge_weight(
        &mut self,
        from: u64,
        to: u64,
    ) -> Result<(Vec<Way>, Weights), SessionError> {
        let parameters = BTreeMap::from([
            ("from".to_owned(), terms::person(from)),
            ("to".to_owned(), terms::person(to)),
        ]);
        let rows = self.select(&instantiate(WAYS_BY_EDGE_WEIGHT, &parameters)?)?;
        let mut ways: BTreeMap<u64, BTreeMap<u64, u64>> = BTreeMap::new();
        let mut weights = Weights::new();
        for row in &rows {
            let number = |name| answer::text(row, name)?.parse::<u64>().ok();
            let person = |name| terms::number_of(answer::text(row, name)?);
            let (Some(way), Some(step)) = (number("way"), number("step")) else {
                return Err(SessionError::Answer);
            };
            let (Some(one), Some(other)) = (person("one"), person("other")) else {
                return Err(SessionError::Answer);
            };
            ways.entry(way).or_default().insert(step, other);
            if let Some(weight) = answer::text(row, "weight") {
                let weight = weight.parse().map_err(|_| SessionError::Answer)?;
                weights.insert((one, other), weight);
            }
        }
        let whole = ways.into_values();
        let whole = whole.map(|steps| [from].into_iter().chain(steps.into_values()).collect());
        let ways: BTreeSet<Way> = whole.collect();
        Ok((ways.into_iter().collect(), weights))
    }

    /// All shortest ways.
    fn ways(&mut self, from: u64, to: u64) -> Result<Vec<Way>, SessionError> {
        if from == to {
            return Ok(Vec::new());
        }
        let rows = self.select(&between(Kind::Complex(14), from, to)?)?;
        let step = |row: &Value| -> Option<(u64, u64, u64)> {
            let number = |name| answer::text(row, name)?.parse().ok();
            let other = terms::number_of(answer::text(row, "other")?)?;
            Some((number("way")?, number("step")?, other))
        };
        let steps: Option<BTreeSet<_>> = rows.iter().map(step).collect();
        let mut ways: BTreeMap<u64, Way> = BTreeMap::new();
        for (way, _, other) in steps.ok_or(SessionError::Answer)? {
            ways.entry(way).or_insert_with(|| vec![from]).push(other);
        }
        Ok(ways.into_values().collect())
    }

    /// How much those beside each other on the ways wrote to each other.
    fn weights(&mut self, ways: &[Way]) -> Result<Weights, SessionError> {
        let pairs: BTreeSet<(u64, u64)> = ways
            .iter()
            .flat_map(|way| way.windows(2).map(|pair| (pair[0], pair[1])))
            .collect();
        if pairs.is_empty() {
            return Ok(Weights::new());
        }
        let terms: Vec<String> = pairs
            .iter()
            .map(|&(one, other)| format!("({} {})", terms::person(one), terms::person(other)))
            .collect();
        let parameters = BTreeMap::from([("pairs".to_owned(), terms.join(" "))]);
        let rows = self.select(&instantiate(WEIGHTS, &parameters)?)?;
        let weight = |row: &Value| {
            let one = terms::number_of(answer::text(row, "one")?)?;
            let other = terms::number_of(answer::text(row, "other")?)?;
            Some(((one, other), answer::text(row, "weight")?.parse().ok()?))
        };
        let weights: Option<Weights> = rows.iter().map(weight).collect();
        weights.ok_or(SessionError::Answer)
    }
}

/// The text of a read that is told two persons.
fn between(kind: Kind, from: u64, to: u64) -> Result<String, MissingParameter> {
    let parameters = BTreeMap::from([
        ("from".to_owned(), terms::person(from)),
        ("to".to_owned(), terms::person(to)),
    ]);
    instantiate(template(kind).unwrap_or_default(), &parameters)
}
