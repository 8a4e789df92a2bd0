//! The W3C's test suites, read from manifests and run through the real pipeline.
//!
//! ```text
//!   manifest.ttl --manifest--> tests --run--> data files --loader--> database
//!                                             query file --engine--> answer --server's serializer--> bytes
//!                              outcomes <--isomorphism-- bytes parsed again, and the expected file
//! ```
//!
//! The files in the shared test data stand for those under [`ROOT_IRI`], where the W3C
//! publishes them: relative IRIs of manifests, data and queries are resolved against it.
//!
//! A test passes, fails with what was seen, or waits: for a part of the database that
//! is not there yet. What fails must be listed in `w3c-known-failures.txt` with its reason.
//! A kind of test that this module does not know is an error, not a test left out.

mod endpoints;
mod engine;
mod evaluation;
mod expected;
mod http;
mod isomorphism;
mod known;
mod manifest;
mod manifest_graph;
mod manifest_http;
mod report;
mod run;
mod syntax;
mod update;

use std::path::{Path, PathBuf};

pub(crate) use isomorphism::{Cell, Numbers, Table};
pub use known::{KnownFailures, known_failures_path};
pub use report::{markdown, report_path, table, unexpected};
pub use run::run;

/// Where the W3C publishes the test suites; its files are those of the shared folder `w3c`.
pub const ROOT_IRI: &str = "https://w3c.github.io/rdf-tests/";

/// One line of the report: the tests of some manifests.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// What people call it.
    pub name: &'static str,
    /// Its manifests, below [`ROOT_IRI`].
    pub manifests: &'static [&'static str],
}

/// The suites that are run.
pub const SUITES: &[Suite] = &[
    Suite {
        name: "RDF 1.1 N-Triples",
        manifests: &["rdf/rdf11/rdf-n-triples/manifest.ttl"],
    },
    Suite {
        name: "RDF 1.1 N-Quads",
        manifests: &["rdf/rdf11/rdf-n-quads/manifest.ttl"],
    },
    Suite {
        name: "RDF 1.1 Turtle",
        manifests: &["rdf/rdf11/rdf-turtle/manifest.ttl"],
    },
    Suite {
        name: "RDF 1.1 TriG",
        manifests: &["rdf/rdf11/rdf-trig/manifest.ttl"],
    },
    Suite {
        name: "RDF 1.1 RDF/XML",
        manifests: &["rdf/rdf11/rdf-xml/manifest.ttl"],
    },
    Suite {
        name: "RDF 1.2 N-Triples",
        manifests: &[
            "rdf/rdf12/rdf-n-triples/syntax/manifest.ttl",
            "rdf/rdf12/rdf-n-triples/c14n/manifest.ttl",
        ],
    },
    Suite {
        name: "RDF 1.2 N-Quads",
        manifests: &[
            "rdf/rdf12/rdf-n-quads/syntax/manifest.ttl",
            "rdf/rdf12/rdf-n-quads/c14n/manifest.ttl",
        ],
    },
    Suite {
        name: "RDF 1.2 Turtle",
        manifests: &[
            "rdf/rdf12/rdf-turtle/syntax/manifest.ttl",
            "rdf/rdf12/rdf-turtle/eval/manifest.ttl",
        ],
    },
    Suite {
        name: "RDF 1.2 TriG",
        manifests: &[
            "rdf/rdf12/rdf-trig/syntax/manifest.ttl",
            "rdf/rdf12/rdf-trig/eval/manifest.ttl",
        ],
    },
    Suite {
        name: "RDF 1.2 RDF/XML",
        manifests: &["rdf/rdf12/rdf-xml/eval/manifest.ttl"],
    },
    Suite {
        name: "RDF 1.2 semantics",
        manifests: &["rdf/rdf12/rdf-semantics/manifest.ttl"],
    },
    Suite {
        name: "SPARQL 1.0 query syntax",
        manifests: &["sparql/sparql10/manifest-syntax.ttl"],
    },
    Suite {
        name: "SPARQL 1.0 query evaluation",
        manifests: &["sparql/sparql10/manifest-evaluation.ttl"],
    },
    Suite {
        name: "SPARQL 1.1 query syntax",
        manifests: &["sparql/sparql11/syntax-query/manifest.ttl"],
    },
    Suite {
        name: "SPARQL 1.1 query evaluation",
        manifests: &[
            "sparql/sparql11/aggregates/manifest.ttl",
            "sparql/sparql11/bind/manifest.ttl",
            "sparql/sparql11/bindings/manifest.ttl",
            "sparql/sparql11/cast/manifest.ttl",
            "sparql/sparql11/construct/manifest.ttl",
            "sparql/sparql11/exists/manifest.ttl",
            "sparql/sparql11/functions/manifest.ttl",
            "sparql/sparql11/grouping/manifest.ttl",
            "sparql/sparql11/negation/manifest.ttl",
            "sparql/sparql11/project-expression/manifest.ttl",
            "sparql/sparql11/property-path/manifest.ttl",
            "sparql/sparql11/subquery/manifest.ttl",
        ],
    },
    Suite {
        name: "SPARQL 1.1 update syntax and evaluation",
        manifests: &["sparql/sparql11/manifest-sparql11-update.ttl"],
    },
    Suite {
        name: "SPARQL 1.1 protocol",
        manifests: &["sparql/sparql11/protocol/manifest.ttl"],
    },
    Suite {
        name: "SPARQL 1.1 graph store protocol",
        manifests: &["sparql/sparql11/graph-store-protocol/manifest.ttl"],
    },
    Suite {
        name: "SPARQL 1.1 service description",
        manifests: &["sparql/sparql11/service-description/manifest.ttl"],
    },
    Suite {
        name: "SPARQL 1.1 result formats",
        manifests: &["sparql/sparql11/manifest-sparql11-results.ttl"],
    },
    Suite {
        name: "SPARQL 1.1 federation",
        manifests: &["sparql/sparql11/manifest-sparql11-fed.ttl"],
    },
    Suite {
        name: "SPARQL 1.1 entailment regimes",
        manifests: &["sparql/sparql11/entailment/manifest.ttl"],
    },
    Suite {
        name: "SPARQL 1.2 syntax",
        manifests: &[
            "sparql/sparql12/syntax/manifest.ttl",
            "sparql/sparql12/syntax-triple-terms-negative/manifest.ttl",
            "sparql/sparql12/syntax-triple-terms-positive/manifest.ttl",
            "sparql/sparql12/version/manifest.ttl",
        ],
    },
    Suite {
        name: "SPARQL 1.2 evaluation",
        manifests: &[
            "sparql/sparql12/codepoint-escapes/manifest.ttl",
            "sparql/sparql12/eval-triple-terms/manifest.ttl",
            "sparql/sparql12/expression/manifest.ttl",
            "sparql/sparql12/grouping/manifest.ttl",
            "sparql/sparql12/lang-basedir/manifest.ttl",
            "sparql/sparql12/rdf11/manifest.ttl",
        ],
    },
];

/// One test of a manifest.
#[derive(Clone, Debug)]
pub struct Test {
    /// Folder and name: `sparql/sparql10/sort#dawg-sort-1`.
    pub id: String,
    /// What is to be done.
    pub kind: TestKind,
}

/// What a test asks. Files are named by their IRIs.
#[derive(Clone, Debug)]
pub enum TestKind {
    /// The file loads, as what an independent parser reads in it.
    DataPositive {
        /// The file.
        data: String,
    },
    /// The file is refused.
    DataNegative {
        /// The file.
        data: String,
    },
    /// The file loads, and means the same as another.
    DataEvaluation {
        /// The file.
        data: String,
        /// A file in a simpler format.
        result: String,
    },
    /// The file loads, and its dump in N-Quads has the same lines as another, which is canonical.
    DataCanonical {
        /// The file.
        data: String,
        /// The canonical one.
        result: String,
    },
    /// The query is accepted.
    QueryPositive {
        /// The file of the query.
        query: String,
    },
    /// The query is refused for its syntax.
    QueryNegative {
        /// The file of the query.
        query: String,
    },
    /// The query has this answer.
    QueryEvaluation(QueryEvaluation),
    /// The update is accepted.
    UpdatePositive {
        /// The file of the update.
        update: String,
    },
    /// The update is refused for its syntax.
    UpdateNegative {
        /// The file of the update.
        update: String,
    },
    /// The update makes this of that.
    UpdateEvaluation(UpdateEvaluation),
    /// Requests to a server get these answers.
    Http(HttpTest),
    /// The server describes itself.
    ServiceDescription(ServiceDescriptionTest),
    /// Nothing yet: it needs what is not there.
    Waiting {
        /// What it waits for.
        reason: &'static str,
    },
}

/// A query over data, and its answer.
#[derive(Clone, Debug)]
pub struct QueryEvaluation {
    /// The file of the query.
    pub query: String,
    /// Files of the default graph.
    pub data: Vec<String>,
    /// Files of named graphs, each named by its IRI.
    pub graph_data: Vec<String>,
    /// The file of the answer.
    pub result: String,
    /// The other endpoints, by their IRIs, with the files of their default graphs.
    pub services: Vec<(String, Vec<String>)>,
    /// Whether duplicate solutions may be left out.
    pub is_lax: bool,
}

/// The files that some graphs are made of.
#[derive(Clone, Debug, Default)]
pub struct GraphFiles {
    /// Files of the default graph.
    pub default: Vec<String>,
    /// Files of named graphs, with their names.
    pub named: Vec<(String, String)>,
}

/// An update of data, and what is there then.
#[derive(Clone, Debug)]
pub struct UpdateEvaluation {
    /// The file of the update.
    pub request: String,
    /// The data before.
    pub before: GraphFiles,
    /// The data after.
    pub after: GraphFiles,
}

/// Requests to a server over some data, in order.
#[derive(Clone, Debug)]
pub struct HttpTest {
    /// The data.
    pub data: GraphFiles,
    /// The requests and their answers.
    pub exchanges: Vec<Exchange>,
}

/// A request and what its answer must be.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// `GET`, `POST` ...
    pub method: String,
    /// Path and query, with the path of the manifest.
    pub path: String,
    /// Headers of the request.
    pub headers: Vec<(String, String)>,
    /// The body in the encoding that the test wants.
    pub body: Option<Vec<u8>>,
    /// Names of the statuses that are right.
    pub statuses: Vec<String>,
    /// Headers that the answer must have.
    pub expected_headers: Vec<(String, String)>,
    /// Whether the answer must have a `Location`, which later requests use.
    pub has_location: bool,
    /// `boolean`, `tabular` or `RDF`.
    pub expected_format: Option<String>,
    /// The answer of an `ASK`.
    pub expected_boolean: Option<bool>,
    /// Turtle that means the same as the answer.
    pub expected_body: Option<String>,
}

/// The tests of the service description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceDescriptionTest {
    /// GET on the endpoint gives RDF.
    ReturnsRdf,
    /// It names the endpoint.
    HasEndpoint,
    /// It uses the vocabulary as it is defined.
    ConformsToSchema,
}

/// How a test went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Passed,
    /// Otherwise; with what was seen.
    Failed(String),
    /// It was not run.
    Waiting(&'static str),
}

/// How the tests of a suite went.
#[derive(Clone, Debug)]
pub struct SuiteReport {
    /// The name of the suite.
    pub name: &'static str,
    /// Test by test.
    pub outcomes: Vec<(Test, Outcome)>,
}

/// The shared files of the W3C's test suites.
#[derive(Clone, Debug)]
pub struct Files {
    root: PathBuf,
}

impl Files {
    /// The files, or `None` where the shared test data is not there.
    pub fn find() -> Option<Self> {
        crate::shared::find("w3c").map(|root| Self { root })
    }

    /// The path of a published file; fails if the IRI is not below [`ROOT_IRI`].
    pub(crate) fn path(&self, iri: &str) -> Result<PathBuf, String> {
        let relative = iri
            .strip_prefix(ROOT_IRI)
            .ok_or_else(|| format!("<{iri}> is none of the shared files"))?;
        Ok(self.root.join(Path::new(relative)))
    }

    /// The text of a published file.
    pub(crate) fn read(&self, iri: &str) -> Result<String, String> {
        String::from_utf8(self.read_bytes(iri)?).map_err(|error| format!("{iri}: {error}"))
    }

    /// The bytes of a published file.
    pub(crate) fn read_bytes(&self, iri: &str) -> Result<Vec<u8>, String> {
        let path = self.path(iri)?;
        std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    }
}
