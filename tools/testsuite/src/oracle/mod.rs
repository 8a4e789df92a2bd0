//! The oracle: random queries over random data, answered by our engine in several ways and by
//! `spareval`.
//!
//! ```text
//!   seed -> data set -> database                    our engine: rewrites on and off, vectors of all sizes
//!        -> query (a tree of the grammar)       ->  spareval: without its optimizer, all rows, sort keys
//!        -> compared: multisets up to blank nodes, order up to ties, limits by containment
//!        -> a difference is shrunk: quads and parts of the query go as long as it stays
//! ```
//!
//! Where the reference does not follow the specification, or where that leaves a choice, the query
//! is compared only among our own plans, or what differs is made alike; `docs/oracle.md` lists all
//! of these. Numbers have a reference of their own (`exact.rs`), which stands in for that of the
//! evaluator too.
//!
//! Updates are compared too, with a model of sets of quads (`updates`), and so is the parser, with
//! spargebra's (`syntax`). SQL has an oracle of its own, DuckDB (`sql`); what statements tell of
//! what is hidden from who sends them is compared between databases that differ in that
//! (`sql_under_rules`).
//!
//! `make oracle` runs 200,000 queries; 2,000 are run by the tests. The same seed gives the same
//! queries.

mod answer;
mod case;
mod compare;
mod data;
mod derived;
mod estimates;
mod exact;
mod grammar;
mod numbers;
mod order;
mod random;
mod reference;
mod refusals;
mod rewrite;
mod rules;
mod run;
mod shrink;
mod siblings;
mod sql;
mod sql_under_rules;
mod store;
mod syntax;
mod threads;
mod tree;
mod updates;
mod weights;

pub use case::Difference;
pub use data::Arrival;
pub use estimates::estimates;
pub use numbers::numbers;
pub use run::{FoundDifference, Options, Report, run};
pub use sql::{
    SqlDifference, SqlOptions, SqlOracleError, SqlReport, run_sql, sql_of_data_set, sql_plans_with,
};
pub use store::{Variant, VariantCounts};
pub use syntax::{SyntaxReport, syntax_of_damaged, syntax_of_suites};
pub use updates::{UpdateOptions, UpdateReport, UpdatesUnderRules, run_updates};
