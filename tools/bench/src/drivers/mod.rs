//! The drivers: each measures one thing from outside, through the `orrery` binary or over HTTP.
//!
//! `orrery bench` calls them; they print nothing and return reports that show
//! themselves as a table and serialize to JSON.

mod answers;
mod binary;
mod cold;
mod compare;
mod count;
mod duckdb;
mod estimates;
mod explore;
mod floor;
mod guard;
mod load;
mod mixed;
mod open;
mod peer;
mod pool;
mod relational;
mod snb;
mod soak;
mod soak_updates;
mod spb;
mod store;
mod target;
mod tpch;
mod update;
mod vectors;
mod walks;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::http_client::HttpError;
use crate::tpch::TpchError;
use orrery_bsbm::parameters::ParameterError;
use orrery_bsbm::templates::MissingParameter;

pub use binary::{Binary, ServerProcess, processor_time, whole_processor_time};
pub use cold::{ColdOptions, ColdReport, ColdStart, cold};
pub use compare::{CompareOptions, CompareReport, Goal, Pair, compare};
pub use count::{CountReport, count};
pub use estimates::{
    Estimate, EstimatesOptions, EstimatesReport, Spread, collect_estimates, estimates,
};
pub use explore::{ExploreOptions, ExploreReport, QueryReport, explore, explore_clients};
pub use floor::{FloorOptions, FloorReport, floor};
pub use guard::{AskerReport, GuardOptions, GuardReport, guard};
pub use load::{LoadOptions, LoadReport, load};
pub use open::{OpenOptions, OpenReport, open};
pub use peer::Peer;
pub use pool::parameter_pool;
pub use relational::{RelationalOptions, RelationalReport, RelationalTimes, relational};
pub use snb::{
    Difference, KindReport, KindTimes, SnbOptions, SnbReport, SnbRun, ValidationReport, snb,
    validate,
};
pub use soak::{Figure, MemoryReport, SoakCount, SoakOptions, SoakReport, soak};
pub use soak_updates::{SoakUpdatesOptions, SoakUpdatesReport, soak_updates};
pub use spb::{
    SpbDifference, SpbKindReport, SpbOptions, SpbReport, SpbValidateOptions, SpbValidated,
    SpbValidationReport, spb, validate_spb,
};
pub use store::{Bar, StoreOptions, StoreReport, store};
pub use target::Target;
pub use tpch::{
    TpchCompareReport, TpchOptions, TpchPair, TpchQueryTimes, TpchReport, compare_duckdb, tpch,
};
pub use update::{
    MixReport, ReadingReport, ReadingTimes, TransactionReport, UpdateBenchOptions, UpdatePart,
    UpdateReport, update,
};
pub use vectors::{
    Design, DesignSpace, Store, VectorCell, VectorSize, VectorsOptions, VectorsReport, vectors,
};

/// Why a measurement failed.
#[derive(Debug, Error)]
pub enum BenchError {
    /// A program cannot be started.
    #[error("{}: cannot be started: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A program failed.
    #[error("`{command}` failed ({status}): {message}")]
    Failed {
        /// The command line.
        command: String,
        /// How it ended.
        status: String,
        /// The last line it wrote to standard error.
        message: String,
    },
    /// A program's output is not what it should be.
    #[error("`{command}`: unexpected output: {what}")]
    Output {
        /// The command line.
        command: String,
        /// What is wrong with it.
        what: String,
    },
    /// A server did not come up.
    #[error("`{command}` did not answer within {seconds} s: {source}")]
    NotServing {
        /// The command line.
        command: String,
        /// How long was waited.
        seconds: u64,
        /// What the last attempt said.
        source: HttpError,
    },
    /// A file cannot be written or read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A query over HTTP failed.
    #[error("{what}: {source}")]
    Query {
        /// Which query.
        what: String,
        /// Why.
        source: HttpError,
    },
    /// The endpoint's answer is not a SPARQL result.
    #[error("{what}: not a SPARQL result in JSON")]
    Result {
        /// Which query.
        what: String,
    },
    /// The address is wrong.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// There are no parameters for the queries.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// Data or answers of TPC-H.
    #[error(transparent)]
    Tpch(#[from] TpchError),
    /// The database in this process.
    #[error(transparent)]
    Storage(#[from] orrery_storage::Error),
    /// A statement of SQL failed.
    #[error("{statement} ...: {error}")]
    Sql {
        /// Its first characters.
        statement: String,
        /// Why.
        error: Box<orrery_sql::Error>,
    },
    /// The engine in this process cannot start.
    #[error("the engine cannot start: {message}")]
    Engine {
        /// Why.
        message: String,
    },
    /// A workload of LDBC: its files, or an operation.
    #[error("{what}: {message}")]
    Workload {
        /// Which file, or which operation.
        what: String,
        /// Why.
        message: String,
    },
    /// A query template cannot be filled.
    #[error(transparent)]
    Template(#[from] MissingParameter),
}

/// The media type of tables.
const RESULTS_JSON: &str = "application/sparql-results+json";
/// The media type of graphs.
const N_TRIPLES: &str = "application/n-triples";
