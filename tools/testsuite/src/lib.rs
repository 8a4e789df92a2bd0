//! The test suite of the whole product through its public interfaces, and its shared helpers.
//!
//! - [`answer`]: an answer in a form in which two engines can be compared.
//! - [`mod@reference`]: `spareval`, the evaluator of the Oxigraph project, as an
//!   independent opinion on what a query's answer is.
//! - [`costs`]: instructions and allocations of the hot paths, compared with kept figures.
//! - [`engine`]: our own engine, from files through the loader to an answer.
//! - [`oracle`]: random queries over random data, against the reference and among our own plans.
//! - [`shared`]: where test data that is not ours is found, or said to be absent.
//! - [`w3c`]: the test suites of the W3C, read from their manifests.
//!
//! The tests themselves are in `tests/`; `src/bin/testsuite/` has
//! their long forms, and what wrote the golden answers under `golden/`.

pub mod answer;
pub mod costs;
pub mod engine;
pub mod explore;
pub mod oracle;
pub mod reference;
pub mod shared;
pub mod w3c;

/// Why a test's groundwork failed. Tests show it and stop.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Data or query text could not be parsed.
    #[error("syntax: {0}")]
    Syntax(String),
    /// The reference evaluator failed.
    #[error("reference evaluation: {0}")]
    Reference(String),
    /// Our engine failed.
    #[error("engine: {0}")]
    Engine(#[from] orrery_sparql::QueryError),
    /// Our loader failed.
    #[error("load: {0}")]
    Load(#[from] orrery_loader::LoadError),
    /// Our storage failed.
    #[error("storage: {0}")]
    Storage(#[from] orrery_storage::Error),
}
