//! Our store and a peer, side by side in one run: load, size, the explore queries, the
//! business intelligence queries, eight analytical queries; same machine, same data, same
//! parameters, same client. The answers are compared row by row.
//!
//! First everything is measured on ours, then on the peer, for two servers at once would
//! share cores and file cache. The explore queries have parameters of their own for each run;
//! the other queries are asked with a few sets of parameters, several times each, and the best time of
//! each set counts (the first run of a set warms caches for both).

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::answers::Rows;
use super::peer::Peer;
use super::store::write_data;
use super::{
    BenchError, Binary, ExploreOptions, ExploreReport, LoadOptions, RESULTS_JSON, explore, load,
};
use crate::bsbm::parameters::ParameterPool;
use crate::bsbm::templates::{ANALYTICAL, BUSINESS, EXPLORE, NamedTemplate, instantiate};
use crate::bsbm::{BusinessParameters, Catalog, GenerateOptions, Random};
use crate::http_client::{HttpClient, QueryEncoding};
use crate::report::{Table, with_thousands};

const LOAD_MEMORY: &str = "4G";
/// How often each query is asked with the same parameters.
const RUNS: u32 = 3;
/// Sets of parameters of each business intelligence query.
const PARAMETER_SETS: u32 = 3;
/// Sets of parameters of each explore query whose answers are compared.
const COMPARED_SETS: u32 = 5;

/// What to compare.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// The data set.
    pub data: GenerateOptions,
    /// Where data and databases are kept.
    pub cache: PathBuf,
    /// Mixes of the explore queries.
    pub mixes: u32,
    /// The other store.
    pub peer: Peer,
}

/// One figure of both stores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// What was measured.
    pub what: String,
    /// The unit.
    pub unit: &'static str,
    /// Ours.
    pub ours: f64,
    /// The peer's.
    pub peer: f64,
    /// How many times better ours is: rates divided, times and sizes the other way round.
    pub factor: f64,
}

impl Pair {
    fn rate(what: impl Into<String>, unit: &'static str, ours: f64, peer: f64) -> Self {
        Self {
            what: what.into(),
            unit,
            ours,
            peer,
            factor: ours / peer,
        }
    }

    fn cost(what: impl Into<String>, unit: &'static str, ours: f64, peer: f64) -> Self {
        Self {
            what: what.into(),
            unit,
            ours,
            peer,
            factor: peer / ours,
        }
    }
}

/// Both stores' figures and whether their answers agree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompareReport {
    /// The peer's name.
    pub peer: String,
    /// Triples in the database.
    pub triples: u64,
    /// The figures.
    pub pairs: Vec<Pair>,
    /// The geometric mean of the factors of the eight analytical queries.
    pub analytical_factor: f64,
    /// How many answers were compared.
    pub answers_compared: usize,
    /// Where they differ: query and difference.
    pub differences: Vec<String>,
}

/// A query with its parameters in place.
struct Question {
    name: String,
    text: String,
}

/// What one store answered to the questions.
struct Answers {
    best: Vec<Duration>,
    rows: Vec<Rows>,
}

/// What was measured over HTTP.
struct Measured {
    explore: ExploreReport,
    /// Answers to explore queries, not timed.
    explored: Answers,
    answers: Answers,
}

/// Loads both stores with the same data and asks both the same questions.
///
/// # Errors
/// When any of it fails; answers that differ are no error but stand in the report.
pub fn compare(
    binary: &Binary,
    options: &CompareOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<CompareReport, BenchError> {
    let name = format!("bsbm-{}-{}", options.data.products, options.data.seed);
    let data = options.cache.join(format!("{name}.nt"));
    progress("generating the data");
    write_data(&options.data, &data)?;
    progress("setting up the peer");
    options.peer.setup()?;
    let catalog = Catalog::new(&options.data);
    let questions = questions(&catalog)?;
    let pool = ParameterPool::from_catalog(&catalog)?;
    let explored = explore_questions(&pool)?;

    progress("loading ours");
    let database = options.cache.join(format!("{name}.db"));
    let our_load = load(
        binary,
        &LoadOptions {
            database: database.clone(),
            files: vec![data.clone()],
            memory: LOAD_MEMORY.to_owned(),
        },
    )?;
    let measure = |endpoint: &str| -> Result<Measured, BenchError> {
        let explore = explore(&ExploreOptions {
            mixes: options.mixes,
            pool: Some(pool.clone()),
            encoding: QueryEncoding::Form,
            ..ExploreOptions::new(endpoint)
        })?;
        Ok(Measured {
            explore,
            explored: ask(endpoint, &explored, 1)?,
            answers: ask(endpoint, &questions, RUNS)?,
        })
    };
    progress("asking ours");
    let ours = measure(binary.serve(&database)?.endpoint())?;

    progress("loading the peer");
    let directory = options
        .cache
        .join(format!("{name}.{}", options.peer.name()));
    super::load::remove(&directory)?;
    let peer_load = options.peer.load(&directory, &data)?;
    progress("asking the peer");
    let peer = measure(options.peer.serve(&directory)?.endpoint())?;

    let triples = our_load.triples;
    let mut pairs = vec![
        Pair::rate(
            "bulk load",
            "triples/s",
            our_load.triples_per_second,
            our_load.triples_read as f64 / peer_load.seconds,
        ),
        Pair::cost(
            "database size",
            "bytes/triple",
            our_load.bytes_per_triple,
            peer_load.bytes as f64 / triples as f64,
        ),
        Pair::rate(
            "explore, one client",
            "mixes/h",
            ours.explore.query_mixes_per_hour,
            peer.explore.query_mixes_per_hour,
        ),
    ];
    for (ours, peer) in ours.explore.queries.iter().zip(&peer.explore.queries) {
        let what = format!("explore Q{}, mean", ours.query);
        pairs.push(Pair::cost(
            what,
            "ms",
            ours.times.mean_ms,
            peer.times.mean_ms,
        ));
    }
    let analytical_start = pairs.len() + BUSINESS.len();
    pairs.extend(query_pairs(&questions, &ours.answers, &peer.answers));
    let logarithms: Vec<f64> = pairs[analytical_start..]
        .iter()
        .map(|pair| pair.factor.ln())
        .collect();
    let mut differences = differences(&explored, &ours.explored, &peer.explored);
    differences.extend(self::differences(&questions, &ours.answers, &peer.answers));
    Ok(CompareReport {
        peer: options.peer.name().to_owned(),
        triples,
        pairs,
        analytical_factor: (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp(),
        answers_compared: questions.len() + explored.len(),
        differences,
    })
}

/// Every business intelligence query with some sets of parameters, every analytical query with one.
fn questions(catalog: &Catalog) -> Result<Vec<Question>, BenchError> {
    let parameters = BusinessParameters::new(catalog);
    let mut questions = Vec::new();
    let mut random = Random::new(1);
    let mut add = |template: &NamedTemplate, sets: u32| -> Result<(), BenchError> {
        for _ in 0..sets {
            let values = parameters.draw(template.text, &mut random);
            questions.push(Question {
                name: template.name.to_owned(),
                text: instantiate(template.text, &values)?,
            });
        }
        Ok(())
    };
    BUSINESS
        .iter()
        .try_for_each(|template| add(template, PARAMETER_SETS))?;
    ANALYTICAL
        .iter()
        .try_for_each(|template| add(template, 1))?;
    Ok(questions)
}

/// The SELECT queries of the explore use case, without LIMIT and OFFSET: ties would make the answers
/// ambiguous.
fn explore_questions(pool: &ParameterPool) -> Result<Vec<Question>, BenchError> {
    let mut questions = Vec::new();
    let mut random = Random::new(2);
    for template in EXPLORE.iter().filter(|template| !template.is_graph_query) {
        for _ in 0..COMPARED_SETS {
            let set = pool.draw(template.number, &mut random)?;
            let text = instantiate(template.text, &set.values)?;
            let lines = text.lines().filter(|line| {
                let line = line.trim_start();
                !line.starts_with("LIMIT") && !line.starts_with("OFFSET")
            });
            questions.push(Question {
                name: format!("explore Q{}", template.number),
                text: lines.collect::<Vec<_>>().join("\n"),
            });
        }
    }
    Ok(questions)
}

fn ask(endpoint: &str, questions: &[Question], runs: u32) -> Result<Answers, BenchError> {
    let mut client = HttpClient::new(endpoint)?.with_encoding(QueryEncoding::Form);
    let mut answers = Answers {
        best: Vec::new(),
        rows: Vec::new(),
    };
    let mut body = Vec::new();
    for question in questions {
        let mut best = Duration::MAX;
        for _ in 0..runs {
            let start = Instant::now();
            client
                .query(&question.text, RESULTS_JSON, &mut body)
                .map_err(|source| BenchError::Query {
                    what: question.name.clone(),
                    source,
                })?;
            best = best.min(start.elapsed());
        }
        answers.best.push(best);
        answers
            .rows
            .push(Rows::read(&body).ok_or_else(|| BenchError::Result {
                what: question.name.clone(),
            })?);
    }
    Ok(answers)
}

/// The mean of the best times over the sets of parameters, query by query.
fn query_pairs(questions: &[Question], ours: &Answers, peer: &Answers) -> Vec<Pair> {
    let names = BUSINESS
        .iter()
        .chain(&ANALYTICAL)
        .map(|template| template.name);
    let mean = |name: &str, answers: &Answers| {
        let times = questions.iter().zip(&answers.best);
        let times: Vec<f64> = times
            .filter(|(question, _)| question.name == name)
            .map(|(_, time)| time.as_secs_f64() * 1e3)
            .collect();
        times.iter().sum::<f64>() / times.len().max(1) as f64
    };
    names
        .map(|name| Pair::cost(name, "ms", mean(name, ours), mean(name, peer)))
        .collect()
}

fn differences(questions: &[Question], ours: &Answers, peer: &Answers) -> Vec<String> {
    questions
        .iter()
        .zip(ours.rows.iter().zip(&peer.rows))
        .filter_map(|(question, (ours, peer))| {
            let difference = ours.difference(peer)?;
            Some(format!(
                "{}: {difference}\n{}",
                question.name, question.text
            ))
        })
        .collect()
}

impl fmt::Display for CompareReport {
    /// A table in Markdown, as it stands in `docs/performance.md`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} triples\n", with_thousands(self.triples))?;
        let mut table = Table::markdown(["what", "unit", "Orrery", &self.peer, "factor"]);
        for pair in &self.pairs {
            table.row([
                pair.what.clone(),
                pair.unit.to_owned(),
                shown(pair.ours),
                shown(pair.peer),
                format!("{:.1}", pair.factor),
            ]);
        }
        table.fmt(formatter)?;
        writeln!(
            formatter,
            "\nAnalytical queries, geometric mean of the factors: {:.1}. {} answers compared, {} differ.",
            self.analytical_factor,
            self.answers_compared,
            self.differences.len()
        )?;
        for difference in &self.differences {
            writeln!(formatter, "\n{difference}")?;
        }
        Ok(())
    }
}

/// Rates as whole numbers, the others with two decimals.
fn shown(figure: f64) -> String {
    match figure {
        figure if figure >= 1_000.0 => with_thousands(figure.round() as u64),
        figure => format!("{figure:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_above_one_is_ours_being_better() {
        assert_eq!(Pair::rate("rate", "1/s", 6.0, 2.0).factor, 3.0);
        assert_eq!(Pair::cost("time", "ms", 2.0, 6.0).factor, 3.0);
    }

    #[test]
    fn explore_questions_have_no_limit() {
        let catalog = Catalog::new(&GenerateOptions {
            products: 120,
            seed: 1,
        });
        let pool = ParameterPool::from_catalog(&catalog).unwrap();
        let questions = explore_questions(&pool).unwrap();
        assert_eq!(questions.len(), 9 * COMPARED_SETS as usize);
        assert!(
            questions
                .iter()
                .all(|question| !question.text.contains("LIMIT"))
        );
    }
}
