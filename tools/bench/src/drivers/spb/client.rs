//! One client: runs operations and records outcomes.

use std::collections::BTreeMap;

use crate::drivers::target::failed;
use crate::drivers::{BenchError, N_TRIPLES, RESULTS_JSON};
use crate::http_client::{HttpClient, HttpError};
use crate::spb::answer::Answer;
use crate::spb::templates::{TextSearch, is_graph_query, template};
use orrery_bsbm::templates::instantiate;

/// A connection for queries and updates.
#[derive(Debug)]
pub(super) struct Client {
    http: HttpClient,
    body: Vec<u8>,
}

impl Client {
    pub(super) fn new(endpoint: &str) -> Result<Self, BenchError> {
        Ok(Self {
            http: HttpClient::new(endpoint)?,
            body: Vec::new(),
        })
    }

    /// Reads an answer whole; whether there is nothing in it.
    pub(super) fn query(&mut self, number: u8, text: &str) -> Result<bool, HttpError> {
        let is_graph = is_graph_query(number);
        let accept = if is_graph { N_TRIPLES } else { RESULTS_JSON };
        self.http.query(text, accept, &mut self.body)?;
        Ok(match is_graph {
            true => self.body.is_empty(),
            false => is_without_rows(&self.body),
        })
    }

    pub(super) fn update(&mut self, text: &str) -> Result<(), HttpError> {
        self.http.update(text, &mut self.body)
    }

    /// The answer to a query of the benchmark.
    pub(super) fn answer(
        &mut self,
        number: u8,
        text: &str,
        is_ordered: bool,
    ) -> Result<Answer, BenchError> {
        let what = format!("Q{number}");
        self.query(number, text)
            .map_err(|source| failed(&what, source))?;
        let answer = match is_graph_query(number) {
            true => Answer::of_triples(&self.body),
            false => Answer::of_results(&self.body, is_ordered),
        };
        answer.ok_or_else(|| failed(&what, "the answer is not what was asked for"))
    }

    /// The rows of another query.
    pub(super) fn rows(&mut self, what: &str, text: &str) -> Result<Answer, BenchError> {
        let asked = self.http.query(text, RESULTS_JSON, &mut self.body);
        asked.map_err(|source| failed(what, source))?;
        let rows = Answer::of_results(&self.body, false);
        rows.ok_or_else(|| failed(what, "the answer is not what was asked for"))
    }
}

/// Whether results in JSON end before there is a row.
fn is_without_rows(body: &[u8]) -> bool {
    const START: &[u8] = b"\"bindings\"";
    let start = body.windows(START.len()).position(|window| window == START);
    let rest = start.and_then(|start| body.get(start + START.len()..));
    let mut rest = rest.unwrap_or_default().iter();
    !rest.any(|letter| *letter == b'{')
}

/// The text of a query with its parameters.
pub(super) fn query_text(
    number: u8,
    search: TextSearch,
    parameters: &BTreeMap<String, String>,
) -> Result<String, BenchError> {
    Ok(instantiate(
        template(number, search).unwrap_or_default(),
        parameters,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_without_rows_are_told_apart() {
        let empty = br#"{"head":{"vars":["a"]},"results":{"bindings":[ ]}}"#;
        let one = br#"{"head":{"vars":["a"]},"results":{"bindings":[{"a":{}}]}}"#;
        assert!(is_without_rows(empty));
        assert!(!is_without_rows(one));
    }
}
