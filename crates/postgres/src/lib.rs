//! PostgreSQL's wire protocol (version 3.0) over SQL sessions, so that its drivers and tools work.
//!
//! ```text
//!   listen -> startup (TLS, password) -> connection: one message after the other -> simple   text -> statements -> outcomes
//!                cancel requests -> keys                                        \-> extended  statements, portals, rows in portions
//!                                                     wire: bytes of a client, both ways; values: rows as texts and in binary
//! ```
//!
//! A connection is a task with a [`Session`](orrery_sql::Session) of its own. Each of its statements takes its turn at the same door as the queries of
//! `/sparql` ([`Host::turn_of`](orrery_service::ports::host::Host::turn_of)), and computes where that door leads. Rows are written as they come: when a client does not read, its query waits.
//! While a statement runs, what the client sends meanwhile is read ahead, so that one that has gone is noticed.
//!
//! The crate `pgwire` brings the password exchange (SCRAM) and TLS; messages are read here, for a malformed one must be an answer and not a panic.

mod cancel;
mod connection;
mod copy;
mod encode;
mod extended;
mod frontend;
pub mod fuzzing;
mod guard;
mod listen;
mod message;
mod options;
mod parameters;
mod password;
mod portal;
mod refusal;
mod shared;
mod simple;
mod startup;
mod texts;
mod types;
mod watching;
mod wire;

pub use listen::Listener;
pub use options::{PORT_DEFAULT, PostgresOptions, StartError};
pub use password::Password;
