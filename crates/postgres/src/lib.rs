//! PostgreSQL's wire protocol (version 3.0) over SQL sessions, so that its drivers and tools work.
//!
//! ```text
//!   listen -> startup (TLS, password) -> connection: one message after the other
//!               cancel requests -> keys    |-> simple    text -> statements -> outcomes
//!                                          '-> extended  statements, portals, rows in portions
//!   wire: bytes of a client, both ways     encode: rows as text and in binary
//! ```
//!
//! A connection is a task with a [`Session`](orrery_sql::Session) of its own. Each of its
//! statements needs the same admission as the queries of `/sparql`
//! ([`Host::turn_of`](orrery_service::ports::host::Host::turn_of)), and runs on their threads. Rows
//! are written as they come: when a client does not read, its query waits. While a statement runs,
//! the client's further messages are read ahead, to notice when the client has left.
//!
//! The crate `pgwire` implements the password exchange (SCRAM) and TLS; messages are parsed here,
//! because a malformed one must be answered and not panic.

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
