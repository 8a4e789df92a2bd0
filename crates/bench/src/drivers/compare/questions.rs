//! The questions that both stores are asked, and what they answered.
//!
//! Explore questions are only compared; business intelligence and analytical questions are timed as well,
//! several times with the same parameters, and the best time counts.

use std::time::{Duration, Instant};

use super::super::answers::Rows;
use super::super::{BenchError, RESULTS_JSON};
use crate::bsbm::parameters::ParameterPool;
use crate::bsbm::templates::{ANALYTICAL, BUSINESS, EXPLORE, NamedTemplate, instantiate};
use crate::bsbm::{BusinessParameters, Catalog, Random};
use crate::http_client::{HttpClient, QueryEncoding};

/// How often each query is asked with the same parameters.
const RUNS: u32 = 3;
/// A query that takes longer is not asked again.
const REPEATED_MAX: Duration = Duration::from_secs(5);
/// Sets of parameters of each business intelligence query.
const PARAMETER_SETS: u32 = 3;
/// Sets of parameters of each explore query whose answers are compared.
pub(super) const COMPARED_SETS: u32 = 5;
/// The large answer is exported as a table.
const EXPORTED: &str = "product star";
const CSV: &str = "text/csv";

/// A query with its parameters in place.
pub(super) struct Question {
    pub(super) name: String,
    pub(super) text: String,
    /// The format in which it is timed; what is compared is JSON.
    accept: &'static str,
}

/// What one store answered to the questions, one after the other.
pub(super) struct Answers {
    best: Vec<Duration>,
    rows: Vec<Rows>,
}

/// Every business intelligence query with some sets of parameters, every analytical query with one.
pub(super) fn timed(catalog: &Catalog) -> Result<Vec<Question>, BenchError> {
    let parameters = BusinessParameters::new(catalog);
    let mut questions = Vec::new();
    let mut random = Random::new(1);
    let mut add = |template: &NamedTemplate, sets: u32| -> Result<(), BenchError> {
        for _ in 0..sets {
            let values = parameters.draw(template.text, &mut random);
            questions.push(Question {
                name: template.name.to_owned(),
                text: instantiate(template.text, &values)?,
                accept: match template.name {
                    EXPORTED => CSV,
                    _ => RESULTS_JSON,
                },
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
pub(super) fn explored(pool: &ParameterPool) -> Result<Vec<Question>, BenchError> {
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
                accept: RESULTS_JSON,
            });
        }
    }
    Ok(questions)
}

/// Asked when the updates are over.
pub(super) fn after_updates() -> Vec<Question> {
    vec![Question {
        name: "all triples after the updates".to_owned(),
        text: "SELECT (COUNT(*) AS ?count) WHERE { ?s ?p ?o }".to_owned(),
        accept: RESULTS_JSON,
    }]
}

/// Asks each question once and keeps the rows.
pub(super) fn ask(endpoint: &str, questions: &[Question]) -> Result<Answers, BenchError> {
    ask_often(endpoint, questions, 1)
}

/// Asks each question several times and keeps the best time and the rows.
pub(super) fn time(endpoint: &str, questions: &[Question]) -> Result<Answers, BenchError> {
    ask_often(endpoint, questions, RUNS)
}

fn ask_often(endpoint: &str, questions: &[Question], runs: u32) -> Result<Answers, BenchError> {
    let mut client = HttpClient::new(endpoint)?.with_encoding(QueryEncoding::Form);
    let mut answers = Answers {
        best: Vec::new(),
        rows: Vec::new(),
    };
    let mut body = Vec::new();
    for question in questions {
        let mut ask = |accept: &str, body: &mut Vec<u8>| -> Result<Duration, BenchError> {
            let start = Instant::now();
            client
                .query(&question.text, accept, body)
                .map_err(|source| BenchError::Query {
                    what: question.name.clone(),
                    source,
                })?;
            Ok(start.elapsed())
        };
        let mut best = Duration::MAX;
        for _ in 0..runs {
            best = best.min(ask(question.accept, &mut body)?);
            if best > REPEATED_MAX {
                break;
            }
        }
        if question.accept != RESULTS_JSON {
            ask(RESULTS_JSON, &mut body)?;
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

impl Answers {
    /// The mean over the sets of parameters of a query's best times, in milliseconds.
    pub(super) fn mean_ms(&self, questions: &[Question], name: &str) -> f64 {
        let times = questions.iter().zip(&self.best);
        let times: Vec<f64> = times
            .filter(|(question, _)| question.name == name)
            .map(|(_, time)| time.as_secs_f64() * 1e3)
            .collect();
        times.iter().sum::<f64>() / times.len().max(1) as f64
    }

    /// Where the peer's answers to the same questions differ.
    pub(super) fn differences(&self, questions: &[Question], peer: &Self) -> Vec<String> {
        questions
            .iter()
            .zip(self.rows.iter().zip(&peer.rows))
            .filter_map(|(question, (ours, peer))| {
                let difference = ours.difference(peer)?;
                Some(format!(
                    "{}: {difference}\n{}",
                    question.name, question.text
                ))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bsbm::GenerateOptions;

    fn catalog() -> Catalog {
        Catalog::new(&GenerateOptions {
            products: 120,
            seed: 1,
        })
    }

    #[test]
    fn explore_questions_have_no_limit() {
        let pool = ParameterPool::from_catalog(&catalog()).unwrap();
        let questions = explored(&pool).unwrap();
        assert_eq!(questions.len(), 9 * COMPARED_SETS as usize);
        assert!(
            questions
                .iter()
                .all(|question| !question.text.contains("LIMIT"))
        );
    }

    #[test]
    fn one_question_is_exported_as_a_table() {
        let questions = timed(&catalog()).unwrap();
        let exported = questions.iter().filter(|question| question.accept == CSV);
        assert_eq!(exported.count(), 1);
    }
}
