//! Test endpoints in memory: the graph of the endpoint's name is its default graph, and spareval
//! answers. So `SERVICE <g> { ... }` must answer as `GRAPH <g> { ... }` does.

#![allow(unreachable_pub, clippy::expect_used, reason = "shared by test files")]

use std::sync::Mutex;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use orrery_sparql::service::{RemoteAnswer, RemoteEndpoints, RemoteFailure};
use oxrdf::{Dataset, GraphName, NamedNode};
use sparesults::{QueryResultsFormat, QueryResultsSerializer};

/// Bytes of one piece of an answer: small, so that every answer comes in several.
const PIECE_BYTES: usize = 64;

/// The graphs of a dataset as endpoints.
#[derive(Debug)]
pub struct Endpoints {
    pub dataset: Dataset,
    pub format: QueryResultsFormat,
    /// What was asked.
    pub asked: Mutex<Vec<String>>,
    /// Where the answer of `:broken` ends.
    pub cut_bytes: usize,
}

impl Endpoints {
    pub fn new(dataset: Dataset, format: QueryResultsFormat) -> Self {
        Self {
            dataset,
            format,
            asked: Mutex::default(),
            cut_bytes: usize::MAX,
        }
    }

    fn answer(&self, endpoint: &str, query: &str) -> Vec<u8> {
        // An endpoint that is asked to ask another one looks into that graph.
        let query = query
            .replace("SERVICE SILENT <", "GRAPH <")
            .replace("SERVICE <", "GRAPH <");
        let query = spargebra::SparqlParser::new()
            .parse_query(&query)
            .unwrap_or_else(|error| panic!("{error} in\n{query}"));
        let mut dataset = self.dataset.clone();
        dataset.retain_default(&NamedNode::new_unchecked(endpoint).into());
        let evaluator = spareval::QueryEvaluator::new();
        let results = evaluator.prepare(&query).execute(&dataset);
        let spareval::QueryResults::Solutions(solutions) = results.expect("an answer") else {
            panic!("not a SELECT query");
        };
        let serializer = QueryResultsSerializer::from_format(self.format);
        let mut writer = serializer
            .serialize_solutions_to_writer(Vec::new(), solutions.variables().to_vec())
            .expect("a serializer");
        for solution in solutions {
            let solution = solution.expect("a solution");
            writer.serialize(solution.iter()).expect("a row");
        }
        writer.finish().expect("an end")
    }
}

/// Makes one graph the default graph.
trait RetainDefault {
    fn retain_default(&mut self, graph: &GraphName);
}

impl RetainDefault for Dataset {
    fn retain_default(&mut self, graph: &GraphName) {
        let quads: Vec<oxrdf::Quad> = self.iter().map(oxrdf::QuadRef::into_owned).collect();
        for quad in quads {
            if quad.graph_name == GraphName::DefaultGraph {
                self.remove(&quad);
            }
            if quad.graph_name == *graph {
                let (s, p, o) = (quad.subject, quad.predicate, quad.object);
                self.insert(&oxrdf::Quad::new(s, p, o, GraphName::DefaultGraph));
            }
        }
    }
}

impl RemoteEndpoints for Endpoints {
    fn ask(
        &self,
        endpoint: &str,
        query: String,
        _accept: &'static str,
    ) -> BoxFuture<'static, Result<RemoteAnswer, RemoteFailure>> {
        self.asked.lock().expect("a lock").push(query.clone());
        if endpoint.ends_with("dead") {
            let failure = RemoteFailure::new("nobody is there");
            return futures::future::ready(Err(failure)).boxed();
        }
        let is_broken = endpoint.ends_with("broken");
        let graph = if is_broken {
            "http://example.org/g1"
        } else {
            endpoint
        };
        let mut bytes = self.answer(graph, &query);
        if is_broken {
            bytes.truncate(self.cut_bytes);
        }
        let mut pieces: Vec<_> = bytes
            .chunks(PIECE_BYTES)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        if is_broken {
            pieces.push(Err(RemoteFailure::new("the connection broke")));
        }
        let answer = RemoteAnswer {
            content_type: Some(format!("{}; charset=utf-8", self.format.media_type())),
            body: futures::stream::iter(pieces).boxed(),
        };
        futures::future::ready(Ok(answer)).boxed()
    }
}
