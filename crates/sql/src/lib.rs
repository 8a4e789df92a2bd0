//! SQL in PostgreSQL's dialect, over the memory, threads and storage that SPARQL uses.
//!
//! ```text
//!   SQL text -> parse  -> statement -> plan -> logical plan -> physical plan -> run -> Arrow batches
//!               PostgreSQL's dialect   DataFusion's planner and optimizers, over the tables of a snapshot
//!                                 \-> change: transaction -> definitions | rows -> commit
//! ```
//!
//! A [`Session`] has one client's view of the database, settings and transaction. It takes threads,
//! memory and spill files from the engine's [`Runtime`](orrery_runtime::Runtime), so that
//! `--memory` holds for both languages together. A statement has an [`Outcome`], or fails with an
//! [`Error`], which has PostgreSQL's code, and the place in the text where it is known.
//!
//! The rooms, by the way of a statement:
//!
//! | room | what it does |
//! | --- | --- |
//! | `session` | the state of one client, and the way from a text to an outcome |
//! | `parse` | text to statement, within limits |
//! | `catalog` | tables, views and functions, filtered by rights |
//! | `plan` | statement to plan, over one state of the tables |
//! | `semantics`, `functions` | PostgreSQL's meaning, where DataFusion's differs |
//! | `optimizer` | optimizer rules beside DataFusion's: fixes, join order |
//! | `execute` | plan nodes and streams, with bounded memory and cancellation |
//! | `transactions` | transaction blocks, cursors, and their memory |
//! | `definitions`, `changes` | changes of tables, indexes and views; changes of rows |
//! | `copy`, `files`, `delimited` | rows from and to clients and files |
//! | `graph`, `mapped` | graphs as tables (from a [`GraphSource`]), and tables as graphs |
//! | `distributed` | statements over several processes |
//! | `answers` | outcomes, command tags, and answer size limits |
//! | `values`, `errors` | types and values; errors with PostgreSQL's codes |

mod answers;
mod catalog;
mod changes;
mod copy;
mod definitions;
mod delimited;
mod distributed;
mod errors;
mod execute;
mod facts;
mod files;
mod functions;
mod graph;
mod mapped;
mod names;
mod optimizer;
mod parse;
mod plan;
mod semantics;
mod session;
mod settings;
mod transactions;
mod values;

pub use answers::answer_max::{AnswerBound, AnswerMax};
pub use answers::outcome::{Outcome, Rows};
pub use answers::tag::Tag;
pub use catalog::foreign::{ForeignDefinition, foreign_definition, foreign_definitions};
pub use catalog::pg_catalog::VECTOR;
pub use catalog::provider::catalog;
pub use catalog::scope::SqlScope;
pub use copy::{BatchesIn, CopyIn, CopyOut, CopyRows};
pub use datafusion::arrow::datatypes::DataType;
pub use datafusion::common::ScalarValue;
pub use distributed::forward::{
    BeginGuest, ForwardAnswer, ForwardCalls, GuestHeld, GuestUser, Guests, KnowGuest,
};
pub use distributed::writer_source::{WriterPlace, WriterSource};
pub use errors::error::{Error, ErrorObjects, Result};
pub use errors::state::SqlState;
pub use files::FileAccess;
pub use functions::decimal_texts::require_short_decimals;
pub use functions::offered::{OfferedFunctions, offered_functions};
pub use graph::{
    GraphColumn, GraphCondition, GraphLimits, GraphQuery, GraphRows, GraphSource, GraphTest,
};
pub use mapped::{GraphMappings, MappedGraph, MappingSource};
pub use names::{CATALOG as DATABASE, SCHEMA as DEFAULT_SCHEMA};
pub use orrery_postgres_tables::ForeignAccess;
pub use orrery_runtime::{Paused, Spending};
pub use parse::split::{Inside, Split, split};
pub use parse::statement::{SQL_BYTES_MAX, Statement};
pub use plan::prepared::Prepared;
pub use session::client::{HeldValues, PlannedQuery, Session};
pub use session::kept::Kept;
pub use session::kind::StatementKind;
pub use session::options::SessionOptions;
pub use session::place::{Spent, Turn, spent};
pub use session::ruled::{RuledScope, ScopeIn};
pub use session::table_reader::TableReader;
pub use session::unit::Unit;
pub use transactions::block::TransactionStatus;
pub use transactions::committing::{Begun, Committing};
pub use transactions::waiting_rows::{HeldRows, WaitingRows};
pub use values::data_types::name_of_type;
pub use values::sizes::bytes_of_values;
pub use values::texts::ValueTexts;
