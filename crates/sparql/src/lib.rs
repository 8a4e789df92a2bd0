//! The SPARQL planner: from text over algebra, statistics and optimizer to a physical plan.
//!
//! The way of a query:
//!
//! ```text
//!   text --parse--> spargebra's algebra --algebra::Normaliser--> groups of joined items and steps
//!        --plan::Planner (statistics, join order)--> DataFusion ExecutionPlan over our operators
//!        --prepared::PreparedQuery--> stream of id batches --results--> batches of terms
//! ```
//!
//! [`Engine::prepare`] does the first two lines; a short query spends well under a
//! millisecond there. [`PreparedQuery::execute`] starts the plan: nothing runs
//! until the result stream is polled, and dropping the stream stops the query.
//!
//! DataFusion's logical optimizer is not used: it costs more than a short query
//! may take. Its hash join, aggregation, sort, memory pool and spilling are.

mod algebra;
mod dataset;
mod divided;
mod edge_weights;
mod emptiness;
mod engine;
mod error;
mod execute;
mod explain;
mod foreign_terms;
mod hint;
mod looks;
pub mod mapped;
mod narrow;
mod options;
mod parse;
mod plan;
mod prepare;
mod prepared;
mod results;
mod statistics;
mod touch_reader;
mod travel;
mod update;
mod warnings;
mod work;
mod write_scope;

pub use datafusion_execution::memory_pool::MemoryPool;

pub use engine::Engine;
pub use error::QueryError;
pub use explain::{Measured, PlanNode, PlanPattern, PlanStep};
pub use hint::only_in_named_graphs;
pub use narrow::{Narrowing, NumberComparison, SelectedVariable, VariableCondition, VariableTest};
pub use options::{EngineOptions, QueryOptions, Tuning};
/// Where a plan is sent.
pub use orrery_operators::codec::Destination;
/// The seam through which `SERVICE` asks other endpoints.
pub use orrery_operators::service;
pub use orrery_runtime::{
    AccountShare, AdjacencyCounts, HeldMemory, OwnShare, Spending, Touched, Watched, WithinShares,
};
pub use orrery_syntax::{Suggestion, SyntaxError};
pub use parse::ShapeCounts;
pub use plan::{OrderCounts, PlanCounts};
pub use prepared::{Preparation, PreparedQuery, QueryKind};
pub use results::{
    QueryResults, SolutionBatch, SolutionStream, SolutionWriter, TripleBatch, TripleStream,
    WrittenCells, WrittenRows, WrittenStream, term_to_oxrdf,
};
pub use touch_reader::TouchReader;
pub use update::{
    DocumentSource, NumberedQuad, ParsedUpdate, Statements, TermNumber, TooMuchText, UpdateOptions,
    graph_exists,
};
pub use warnings::{Warning, warnings};
pub use write_scope::WriteScope;
