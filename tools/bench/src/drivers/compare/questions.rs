//! The queries that both stores get, and their answers.
//!
//! Explore questions are only compared; the others are timed as well. The business intelligence
//! queries are asked in mixes, as the benchmark's own driver does: each mix has parameters of its
//! own, each question is asked once, the first mixes are not timed, the mean counts. An analytical
//! query is asked several times, and the best time counts. A question without an answer within the
//! limit counts as the limit; its server, which may still be at work on it, is started anew.

use std::time::{Duration, Instant};

use super::super::answers::Rows;
use super::super::{BenchError, RESULTS_JSON};
use super::figures::Mean;
use super::server::Server;
use crate::http_client::HttpError;
use orrery_bsbm::parameters::ParameterPool;
use orrery_bsbm::templates::{ANALYTICAL, BUSINESS, EXPLORE, NamedTemplate, instantiate};
use orrery_bsbm::{BusinessParameters, Catalog, Random};

/// How often each analytical query is asked.
const ANALYTICAL_RUNS: u32 = 3;
/// Mixes of the business intelligence queries that are timed, and those before them that are not.
const BUSINESS_MIXES: u32 = 10;
const WARM_UP_MIXES: u32 = 2;
/// Sets of parameters of the query that may take minutes.
const LAST_SETS: u32 = 3;
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
    /// How often it is asked; the best time counts.
    runs: u32,
    /// Whether its time counts.
    is_timed: bool,
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

/// The mixes of the business intelligence queries, then the analytical queries, and at the end the
/// query called `last` with some sets of parameters, which no mix has.
pub(super) fn timed(catalog: &Catalog, last: &str) -> Result<Vec<Question>, BenchError> {
    let parameters = BusinessParameters::new(catalog);
    let mut random = Random::new(1);
    let mut question = |template: &NamedTemplate| -> Result<Question, BenchError> {
        let values = parameters.draw(template.text, &mut random);
        let text = instantiate(template.text, &values)?;
        Ok(Question::new(template.name, text))
    };
    let mut questions = Vec::new();
    for mix in 0..WARM_UP_MIXES + BUSINESS_MIXES {
        for template in BUSINESS.iter().filter(|template| template.name != last) {
            questions.push(Question {
                is_timed: mix >= WARM_UP_MIXES,
                ..question(template)?
            });
        }
    }
    for template in &ANALYTICAL {
        questions.push(Question {
            runs: ANALYTICAL_RUNS,
            accept: match template.name {
                EXPORTED => CSV,
                _ => RESULTS_JSON,
            },
            ..question(template)?
        });
    }
    for template in BUSINESS.iter().filter(|template| template.name == last) {
        for _ in 0..LAST_SETS {
            questions.push(question(template)?);
        }
    }
    Ok(questions)
}

/// The SELECT queries of the explore use case, without LIMIT and OFFSET: ties would make the
/// answers ambiguous.
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
            questions.push(Question::new(
                format!("explore Q{}", template.number),
                lines.collect::<Vec<_>>().join("\n"),
            ));
        }
    }
    Ok(questions)
}

/// Asked when the updates are over.
pub(super) fn after_updates() -> Vec<Question> {
    vec![Question::new(
        "all triples after the updates",
        "SELECT (COUNT(*) AS ?count) WHERE { ?s ?p ?o }",
    )]
}

/// Asks each question as often as it wants and keeps its best time and its rows.
pub(super) fn ask(server: &mut Server<'_>, questions: &[Question]) -> Result<Answers, BenchError> {
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
            for _ in 0..question.runs {
                best = best.min(ask(question.accept, &mut body)?);
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

impl Question {
    /// A question that is asked once, and whose time counts.
    fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            accept: RESULTS_JSON,
            runs: 1,
            is_timed: true,
        }
    }
}

impl Answers {
    /// These answers and others after them.
    pub(super) fn followed_by(mut self, mut more: Self) -> Self {
        self.0.append(&mut more.0);
        self
    }

    /// The mean of the times of a query's questions that count.
    pub(super) fn mean(&self, questions: &[Question], name: &str) -> Mean {
        let answers: Vec<&Answer> = questions
            .iter()
            .zip(&self.0)
            .filter(|(question, _)| question.is_timed && question.name == name)
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
    use orrery_bsbm::GenerateOptions;

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

    #[test]
    fn a_question_without_answer_counts_as_the_limit_and_restarts_the_server() {
        let questions = [
            Question::new("BI Q4", "quick"),
            Question::new("BI Q4", "slow"),
            Question::new("BI Q5", "quick"),
        ];
        let limit = Duration::from_millis(100);
        let starts = std::cell::Cell::new(0);
        let start = || -> Result<Box<dyn Serving>, BenchError> {
            starts.set(starts.get() + 1);
            Ok(Box::new(Endpoint::start()))
        };
        let mut server = Server::start(&start, limit).unwrap();
        let peer = ask(&mut server, &questions).unwrap();
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
    }

    #[test]
    fn each_mix_has_its_parameters_and_the_first_do_not_count() {
        let questions = timed(&catalog(), "BI Q4").unwrap();
        let of = |name: &str| -> Vec<&Question> {
            let questions = questions.iter();
            questions.filter(|question| question.name == name).collect()
        };
        let asked = of("BI Q2");
        let counted = asked.iter().filter(|question| question.is_timed);
        assert_eq!(counted.count(), BUSINESS_MIXES as usize);
        assert!(!asked[0].is_timed && asked[0].text != asked[1].text);
        assert_eq!(of("BI Q4").len(), LAST_SETS as usize);
        let last = questions.len() - LAST_SETS as usize;
        assert!(
            questions[last..]
                .iter()
                .all(|question| question.name == "BI Q4")
        );
    }
}
