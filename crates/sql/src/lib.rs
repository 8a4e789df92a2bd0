//! SQL over the same engine as SPARQL: the same memory, the same threads, the same plans.
//!
//! ```text
//!   SQL text -> parse  -> statement -> plan -> logical plan -> physical plan -> run -> Arrow batches
//!               PostgreSQL's dialect   DataFusion's planner and optimizers, over the tables of a snapshot
//!                                 \-> change: transaction -> definitions | rows -> commit
//! ```
//!
//! A [`Session`] is what one client has: the database that it sees, its settings, its transaction. It takes threads, memory and place for spills from the engine's
//! [`Runtime`](orrery_runtime::Runtime), so that `--memory` holds for both languages together. A statement comes to an [`Outcome`]; what fails is an
//! [`Error`] with the code that PostgreSQL's clients know, and with the place in the text where the planner knows it.
//!
//! Solutions of SPARQL and the quads are tables, too (`graph`), which a session reads from whoever it is given.
//!
//! Statements that change something work on the storage's transaction (`change`): definitions of tables, indexes, views and schemas (`definitions`), and
//! rows (`changes`). Each is done as a whole or not at all. Where SQL means something else by an expression than DataFusion does, rules of the analyzer
//! mend it (`rules`): integers that run over, sums of decimals, times, bytes, zeros.

mod answer_max;
mod arguments;
mod arithmetic;
mod asked;
mod blocking;
mod branches;
mod bytes;
mod bytes_length;
mod casts;
mod catalog;
mod change;
mod changes;
mod column_names;
mod committing;
mod connections;
mod control;
mod copy;
mod copying;
mod counted;
mod counted_sets;
mod counted_windows;
mod cursor;
mod cursors;
mod decimal_sum;
mod definitions;
mod delimited;
mod described;
mod divided;
mod engine_state;
mod engine_words;
mod error;
mod evaluate;
mod facts;
mod files;
mod floats;
mod foreign;
mod forward;
mod graph;
mod grouping_rows;
mod host;
mod identifiers;
mod in_lists;
mod iri;
mod join_order;
mod kept;
mod key_sets;
mod kind;
mod load;
mod lone_selects;
mod long_planning;
mod looks;
mod lookup;
mod mapped;
mod mended;
mod named_in;
mod names;
mod no_row;
mod number_texts;
mod offered;
mod old_states;
mod on_its_way;
mod outcome;
mod outer_types;
mod own_bytes;
mod passing;
mod pg_catalog;
mod place;
mod plan_size;
mod planner;
mod prepared;
mod query_depth;
mod ready;
mod references;
mod rounding;
mod rows;
mod rows_at_once;
mod rules;
mod run_query;
mod scope;
mod second_run;
mod session;
mod settings;
mod sort_keys;
mod split;
mod state;
mod statement;
mod stopping;
mod strict_field;
mod suggested;
mod table_reader;
mod tag;
mod task_settings;
mod threads;
mod times;
mod transaction;
mod truncated;
mod turns;
mod types;
mod unit;
mod unknown_in;
mod users;
mod using;
mod value_bytes;
mod value_row;
mod values;
mod waiting_rows;
mod watch;
mod words;
mod writer_source;

pub use answer_max::WholeAnswer;
pub use catalog::catalog;
pub use committing::{Begun, Committing};
pub use connections::{Connections, OpenConnection};
pub use copy::{BatchesIn, CopyIn, CopyOut, CopyRows};
pub use datafusion::arrow::datatypes::DataType;
pub use datafusion::common::ScalarValue;
pub use error::{Error, ErrorObjects, Result};
pub use files::FileAccess;
pub use foreign::{ForeignDefinition, foreign_definition, foreign_definitions};
pub use forward::{ForwardAnswer, ForwardCalls, Guests};
pub use graph::{
    GraphColumn, GraphCondition, GraphLimits, GraphQuery, GraphRows, GraphSource, GraphTest,
};
pub use host::Host;
pub use kept::Kept;
pub use kind::StatementKind;
pub use mapped::{GraphMappings, MappedGraph, MappingSource};
pub use names::{CATALOG as DATABASE, SCHEMA as DEFAULT_SCHEMA};
pub use offered::{OfferedFunctions, offered_functions};
pub use orrery_foreign::ForeignAccess;
pub use orrery_runtime::{Paused, Spending};
pub use outcome::{Outcome, Rows};
pub use pg_catalog::VECTOR;
pub use prepared::Prepared;
pub use scope::SqlScope;
pub use session::{HeldValues, PlannedQuery, Session, SessionOptions};
pub use split::{Inside, Split, split};
pub use state::SqlState;
pub use statement::{SQL_BYTES_MAX, Statement};
pub use table_reader::TableReader;
pub use tag::Tag;
pub use transaction::TransactionStatus;
pub use turns::{Turn, Turns};
pub use types::name_of_type;
pub use unit::Unit;
pub use users::{
    Admitted, AnswerBound, AnswerMax, Caller, CallerLimits, Denied, Entered, RuledScope,
    ScramAttempt, ScramKeys, Spent, Users, spent,
};
pub use value_bytes::bytes_of_values;
pub use values::ValueTexts;
pub use waiting_rows::{HeldRows, WaitingRows};
pub use watch::{Ending, Watch, Watchable, Watched};
pub use writer_source::{WriterPlace, WriterSource};
