//! The questions that both stores are asked, and what they answered.
//!
//! Explore questions are only compared; business intelligence and analytical questions are timed as well,
//! several times with the same parameters, and the best time counts. A question without an answer within the
//! limit counts as the limit; its server, which may still be at work on it, is started anew.

use std::time::{Duration, Instant};

use super::super::answers::Rows;
use super::super::{BenchError, RESULTS_JSON};
use super::figures::Mean;
use super::server::Server;
use crate::bsbm::parameters::ParameterPool;
use crate::bsbm::templates::{ANALYTICAL, BUSINESS, EXPLORE, NamedTemplate, instantiate};
use crate::bsbm::{BusinessParameters, Catalog, Random};
use crate::http_client::HttpError;

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
#[derive(Default)]
pub(super) struct Answers(Vec<Answer>);

struct Answer {
    best: Duration,
    /// `None` if there was no answer within the limit, which is then the time.
    rows: Option<Rows>,
}

/// What came of comparing two stores' answers.
#[derive(Default)]
pub(super) struct Comparison {
    /// Answers that both stores gave.
    pub(super) compared: usize,
    /// Questions that a store did not answer in time.
    pub(super) timed_out: usize,
    /// Where the answers differ: query and difference.
    pub(super) differences: Vec<String>,
}

/// Every business intelligence query with some sets of parameters, every analytical query with one; first those
/// of other names than `last`.
pub(super) fn timed(catalog: &Catalog, last: &str) -> Result<Vec<Question>, BenchError> {
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
    questions.sort_by_key(|question| question.name == last);
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
pub(super) fn ask(server: &mut Server<'_>, questions: &[Question]) -> Result<Answers, BenchError> {
    ask_often(server, questions, 1)
}

/// Asks each question several times and keeps the best time and the rows.
pub(super) fn time(server: &mut Server<'_>, questions: &[Question]) -> Result<Answers, BenchError> {
    ask_often(server, questions, RUNS)
}

fn ask_often(
    server: &mut Server<'_>,
    questions: &[Question],
    runs: u32,
) -> Result<Answers, BenchError> {
    let mut client = server.client()?;
    let mut answers = Answers::default();
    let mut body = Vec::new();
    for question in questions {
        let mut ask = |accept: &str, body: &mut Vec<u8>| -> Result<Duration, HttpError> {
            let start = Instant::now();
            client.query(&question.text, accept, body)?;
            Ok(start.elapsed())
        };
        let mut ask_all = || -> Result<Duration, HttpError> {
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
            Ok(best)
        };
        answers.0.push(match ask_all() {
            Ok(best) => Answer {
                best,
                rows: Some(Rows::read(&body).ok_or_else(|| BenchError::Result {
                    what: question.name.clone(),
                })?),
            },
            Err(HttpError::TimedOut { .. }) => {
                server.restart()?;
                client = server.client()?;
                Answer {
                    best: server.limit(),
                    rows: None,
                }
            }
            Err(source) => {
                return Err(BenchError::Query {
                    what: question.name.clone(),
                    source,
                });
            }
        });
    }
    Ok(answers)
}

impl Answers {
    /// These answers and others after them.
    pub(super) fn followed_by(mut self, mut more: Self) -> Self {
        self.0.append(&mut more.0);
        self
    }

    /// The mean over the sets of parameters of a query's best times.
    pub(super) fn mean(&self, questions: &[Question], name: &str) -> Mean {
        let answers: Vec<&Answer> = questions
            .iter()
            .zip(&self.0)
            .filter(|(question, _)| question.name == name)
            .map(|(_, answer)| answer)
            .collect();
        let total: Duration = answers.iter().map(|answer| answer.best).sum();
        Mean {
            ms: total.as_secs_f64() * 1e3 / answers.len().max(1) as f64,
            has_timed_out: answers.iter().any(|answer| answer.rows.is_none()),
        }
    }

    /// Compares with the peer's answers to the same questions.
    pub(super) fn compare(&self, questions: &[Question], peer: &Self, result: &mut Comparison) {
        for (question, (ours, peer)) in questions.iter().zip(self.0.iter().zip(&peer.0)) {
            let (Some(ours), Some(peer)) = (&ours.rows, &peer.rows) else {
                result.timed_out += 1;
                continue;
            };
            result.compared += 1;
            if let Some(difference) = ours.difference(peer) {
                result.differences.push(format!(
                    "{}: {difference}\n{}",
                    question.name, question.text
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::super::server::Serving;
    use super::*;
    use crate::bsbm::GenerateOptions;

    /// An endpoint with one solution for every query, except that it is silent about `slow` ones.
    struct Endpoint(String);

    impl Serving for Endpoint {
        fn endpoint(&self) -> &str {
            &self.0
        }
    }

    impl Endpoint {
        fn start() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    std::thread::spawn(move || Self::answer(stream.unwrap()));
                }
            });
            Self(format!("http://{address}/sparql"))
        }

        fn answer(mut stream: TcpStream) {
            let rows = r#"{"head":{"vars":["a"]},"results":{"bindings":[{"a":{"type":"uri","value":"x:a"}}]}}"#;
            let mut request = [0; 1 << 12];
            // The client sends a request with one write, short enough for one read.
            while let Ok(bytes @ 1..) = stream.read(&mut request) {
                if String::from_utf8_lossy(&request[..bytes]).contains("slow") {
                    continue;
                }
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", rows.len());
                stream.write_all((head + rows).as_bytes()).unwrap();
            }
        }
    }

    fn question(name: &str, text: &str) -> Question {
        Question {
            name: name.to_owned(),
            text: text.to_owned(),
            accept: RESULTS_JSON,
        }
    }

    #[test]
    fn a_question_without_answer_counts_as_the_limit_and_restarts_the_server() {
        let questions = [
            question("BI Q4", "quick"),
            question("BI Q4", "slow"),
            question("BI Q5", "quick"),
        ];
        let limit = Duration::from_millis(100);
        let starts = std::cell::Cell::new(0);
        let start = || -> Result<Box<dyn Serving>, BenchError> {
            starts.set(starts.get() + 1);
            Ok(Box::new(Endpoint::start()))
        };
        let mut server = Server::start(&start, limit).unwrap();
        let peer = time(&mut server, &questions).unwrap();
        assert_eq!(starts.get(), 2);
        let slow = peer.mean(&questions, "BI Q4");
        assert!(slow.has_timed_out && slow.ms >= 50.0, "{slow:?}");
        assert!(!peer.mean(&questions, "BI Q5").has_timed_out);

        let ours = || Answer {
            best: Duration::from_millis(1),
            rows: Rows::read(br#"{"head":{"vars":["a"]},"results":{"bindings":[]}}"#),
        };
        let ours = Answers(vec![ours(), ours(), ours()]);
        let mut result = Comparison::default();
        ours.compare(&questions, &peer, &mut result);
        assert_eq!((result.compared, result.timed_out), (2, 1));
        assert_eq!(result.differences.len(), 2);
    }

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
        let questions = timed(&catalog(), "BI Q4").unwrap();
        let exported = questions.iter().filter(|question| question.accept == CSV);
        assert_eq!(exported.count(), 1);
        let last = questions.len() - PARAMETER_SETS as usize;
        assert!(
            questions[last..]
                .iter()
                .all(|question| question.name == "BI Q4")
        );
    }
}
