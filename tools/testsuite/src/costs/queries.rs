//! Cost paths of queries: preparation, execution by operator, and result formats.

use orrery_bsbm::Random;
use orrery_bsbm::templates::{EXPLORE, instantiate};
use orrery_formats::{GraphFormat, GraphSerializer, SolutionFormat, SolutionSerializer};
use orrery_sparql::{Engine, PreparedQuery, QueryOptions, QueryResults};
use tokio::runtime::{Builder, Runtime};

use super::Fixture;
use super::columns::ensure;
use super::path::CostPath;
use crate::Error;

const SEED: u64 = 1;
const PREFIXES: &str = "PREFIX bsbm: <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX rev: <http://purl.org/stuff/rev#>
";

/// A star of twelve patterns and what hangs on it.
const TWELVE_PATTERNS: &str = "SELECT ?product ?label ?country { ?product rdfs:label ?label ;
  rdfs:comment ?comment ; bsbm:producer ?producer ; bsbm:productFeature ?feature ;
  bsbm:productPropertyNumeric1 ?n1 ; bsbm:productPropertyTextual1 ?t1 .
  ?producer rdfs:label ?producerLabel ; bsbm:country ?country .
  ?offer bsbm:product ?product ; bsbm:price ?price ; bsbm:vendor ?vendor .
  ?vendor bsbm:country ?country }";

/// What the operators are asked: the path's name, and a query in which one of them does most of the
/// work.
const OPERATORS: [(&str, &str); 9] = [
    (
        "run scan of a predicate",
        "SELECT ?s ?o { ?s bsbm:productFeature ?o }",
    ),
    (
        "run look-up join",
        "SELECT ?offer ?producer { ?offer bsbm:product ?p . ?p bsbm:producer ?producer }",
    ),
    (
        "run star join",
        "SELECT ?l ?a ?b { ?p rdfs:label ?l ; bsbm:productPropertyNumeric1 ?a ; bsbm:productPropertyNumeric2 ?b }",
    ),
    (
        "run optional",
        "SELECT ?p ?n { ?p bsbm:producer ?m OPTIONAL { ?p bsbm:productPropertyNumeric4 ?n } }",
    ),
    (
        "run filter of numbers",
        "SELECT ?p { ?p bsbm:productPropertyNumeric1 ?a ; bsbm:productPropertyNumeric2 ?b FILTER(?a + 10 > ?b) }",
    ),
    (
        "run filter of strings",
        "SELECT ?p { ?p rdfs:label ?l FILTER(CONTAINS(?l, 'an')) }",
    ),
    (
        "run group and average",
        "SELECT ?v (AVG(?price) AS ?a) { ?o bsbm:vendor ?v ; bsbm:price ?price } GROUP BY ?v",
    ),
    (
        "run order and limit",
        "SELECT ?o ?d { ?o bsbm:deliveryDays ?d ; bsbm:price ?p } ORDER BY ?p ?o LIMIT 10",
    ),
    (
        "run path",
        "SELECT DISTINCT ?t { ?p a/rdfs:subClassOf* ?t }",
    ),
];

/// A query with its name.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// `point query`, `explore q01` and so on.
    pub(super) name: &'static str,
    /// The query.
    pub(super) text: String,
}

impl Asked {
    /// Prepares the query, runs it and writes its answer, as a server does, on this thread.
    ///
    /// # Errors
    /// When the query fails.
    pub(super) fn answer(&self, fixture: &Fixture, threads: &Threads) -> Result<Vec<u8>, Error> {
        let prepared = prepare(&fixture.engine, &self.text)?;
        threads.0.block_on(write_answer(&prepared))
    }
}

/// The one thread on which queries run here.
pub(super) struct Threads(Runtime);

impl Threads {
    /// A runtime that polls on the caller's thread only.
    ///
    /// # Errors
    /// When the system has no resources for it.
    pub(super) fn new() -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_time().build();
        runtime.map(Self).map_err(|source| Error::Io {
            path: "tokio runtime".into(),
            source,
        })
    }
}

const EXPLORE_NAMES: [(u8, &str); 11] = [
    (1, "explore q01"),
    (2, "explore q02"),
    (3, "explore q03"),
    (4, "explore q04"),
    (5, "explore q05"),
    (7, "explore q07"),
    (8, "explore q08"),
    (9, "explore q09"),
    (10, "explore q10"),
    (11, "explore q11"),
    (12, "explore q12"),
];

/// The point query of `orrery bench floor`, and the explore queries with one set of parameters
/// each.
///
/// # Errors
/// When a parameter is missing.
pub(super) fn asked_queries(fixture: &Fixture) -> Result<Vec<Asked>, Error> {
    let mut queries = vec![Asked {
        name: "point query",
        text: format!(
            "SELECT ?value {{ <{}> <http://www.w3.org/2000/01/rdf-schema#label> ?value }}",
            fixture.product
        ),
    }];
    let mut random = Random::new(SEED);
    for template in EXPLORE {
        let set = fixture.pool.draw(template.number, &mut random);
        let set = set.map_err(|error| Error::Syntax(error.to_string()))?;
        let text = instantiate(template.text, &set.values);
        let name = EXPLORE_NAMES
            .iter()
            .find(|(number, _)| *number == template.number);
        queries.push(Asked {
            name: name.map_or("explore", |(_, name)| name),
            text: text.map_err(|error| Error::Syntax(error.to_string()))?,
        });
    }
    Ok(queries)
}

pub(super) fn paths(fixture: &Fixture) -> Result<Vec<CostPath<'_>>, Error> {
    let engine = &fixture.engine;
    let asked = asked_queries(fixture)?;
    let text_of = |name: &str| {
        let query = asked.iter().find(|query| query.name == name);
        query.map(|query| query.text.clone()).unwrap_or_default()
    };
    let mut paths = Vec::new();
    for (name, text) in [
        ("prepare point query", text_of("point query")),
        ("prepare explore q01", text_of("explore q01")),
        ("prepare explore q05", text_of("explore q05")),
        (
            "prepare twelve patterns",
            format!("{PREFIXES}{TWELVE_PATTERNS}"),
        ),
    ] {
        paths.push(CostPath::new(name, move || {
            let prepared = prepare(engine, &text)?;
            ensure(
                !prepared.variables().is_empty(),
                "a query lost its variables",
            )
        }));
    }
    for (name, text) in OPERATORS {
        let text = format!("{PREFIXES}{text}");
        let threads = Threads::new()?;
        paths.push(CostPath::new(name, move || {
            let rows = threads.0.block_on(run(&prepare(engine, &text)?))?;
            ensure(rows > 0, "a query has no rows")
        }));
    }
    for name in ["point query", "explore q01", "explore q12"] {
        let query = asked.iter().find(|query| query.name == name).cloned();
        let (Some(query), threads) = (query, Threads::new()?) else {
            continue;
        };
        let path_name = match name {
            "point query" => "answer point query",
            "explore q01" => "answer explore q01",
            _ => "answer explore q12",
        };
        paths.push(CostPath::new(path_name, move || {
            let answer = query.answer(fixture, &threads)?;
            ensure(!answer.is_empty(), "an answer is empty")
        }));
    }
    paths.push(serialize_path(fixture)?);
    Ok(paths)
}

fn prepare(engine: &Engine, text: &str) -> Result<PreparedQuery, Error> {
    Ok(engine.prepare(text, &QueryOptions::of_process())?)
}

/// Runs a SELECT to its end and counts its rows.
async fn run(prepared: &PreparedQuery) -> Result<usize, Error> {
    let mut rows = 0;
    if let QueryResults::Solutions(mut stream) = prepared.execute().await? {
        while let Some(batch) = stream.next().await {
            rows += batch?.rows();
        }
    }
    Ok(rows)
}

/// Runs a query and writes its answer as JSON or N-Triples.
async fn write_answer(prepared: &PreparedQuery) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let format = |error: orrery_formats::FormatError| Error::Syntax(error.to_string());
    match prepared.execute().await? {
        QueryResults::Boolean(value) => {
            SolutionSerializer::boolean(SolutionFormat::Json, value, &mut out).map_err(format)?;
        }
        QueryResults::Solutions(stream) => {
            let mut serializer =
                SolutionSerializer::start(SolutionFormat::Json, stream.variables(), &mut out);
            let writer = serializer.row_writer();
            let writer =
                writer.ok_or_else(|| Error::Syntax("JSON is written by rows".to_owned()))?;
            let mut stream = stream.written(writer);
            while let Some(rows) = stream.next().await {
                let mut rows = rows?;
                while let Some(piece) = rows.next_piece() {
                    out.extend_from_slice(&piece);
                }
            }
            while !serializer.finish(&mut out).map_err(format)? {}
        }
        QueryResults::Triples(mut stream) => {
            let mut serializer = GraphSerializer::start(GraphFormat::NTriples);
            while let Some(batch) = stream.next().await {
                for (subject, predicate, object) in batch?.iter() {
                    let written = serializer.triple(subject, predicate, object, &mut out);
                    written.map_err(format)?;
                }
            }
            serializer.finish(&mut out).map_err(format)?;
        }
    }
    Ok(out)
}

/// Writing rows that are there already.
fn serialize_path(fixture: &Fixture) -> Result<CostPath<'_>, Error> {
    let text = format!(
        "{PREFIXES}SELECT ?p ?label ?n ?date {{ ?p rdfs:label ?label ; bsbm:productPropertyNumeric1 ?n ; <http://purl.org/dc/elements/1.1/date> ?date }}"
    );
    let threads = Threads::new()?;
    let prepared = prepare(&fixture.engine, &text)?;
    let (variables, batches) = threads.0.block_on(async {
        let mut batches = Vec::new();
        let mut variables = Vec::new();
        if let QueryResults::Solutions(mut stream) = prepared.execute().await? {
            variables = stream.variables().to_vec();
            while let Some(batch) = stream.next().await {
                batches.push(batch?);
            }
        }
        Ok::<_, Error>((variables, batches))
    })?;
    let rows: usize = batches.iter().map(|batch| batch.rows()).sum();
    ensure(rows > 0, "there are no rows to write")?;
    let mut out = Vec::new();
    Ok(CostPath::new("serialize JSON", move || {
        out.clear();
        let mut serializer = SolutionSerializer::start(SolutionFormat::Json, &variables, &mut out);
        let format = |error: orrery_formats::FormatError| Error::Syntax(error.to_string());
        for batch in &batches {
            for row in 0..batch.rows() {
                let terms = (0..variables.len()).map(|column| batch.term(row, column));
                serializer.row(terms, &mut out).map_err(format)?;
            }
        }
        while !serializer.finish(&mut out).map_err(format)? {}
        ensure(out.len() > rows, "rows were not written")
    }))
}
