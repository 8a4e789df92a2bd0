//! Arrow Flight SQL over SQL sessions: rows travel as the batches that they are computed in.
//!
//! ```text
//!   listen -> socket (TLS) -> guard (password, token) -> service: the calls of the protocol
//!      statements, parameters, ingestion -> work (session, admission, time) -> answer -> batches
//!      definitions (catalogs, tables, keys)  capabilities                         \-> count of rows
//! ```
//!
//! Calls of this protocol know no session. What outlives a call has a handle (`handles`): a
//! transaction, a prepared statement, an answer that waits for its fetch. Handles are random,
//! limited in number, and dropped when idle; transactions and answers end with their client's
//! connection, too. A statement outside of a transaction is committed by itself.
//!
//! A statement runs when `GetFlightInfo` asks for it, once: a change is done then, and the first
//! batches of a query are computed, which wait for `DoGet`. It needs the same admission as the
//! queries of `/sparql` ([`Host::turn_of`](orrery_service::ports::host::Host::turn_of)).
//!
//! Rooms: `listener` takes connections and hands on calls. `access` authenticates callers, and
//! `calls` holds what outlives a call. `execution` runs statements, ingestion and transactions;
//! `metadata` reports what there is.

mod access;
mod calls;
mod execution;
pub mod fuzzing;
mod handles;
mod life;
mod listener;
mod metadata;
mod options;
mod refusal;

pub use access::password::Password;
pub use listener::listen::Listener;
pub use options::{FlightOptions, PORT_DEFAULT, StartError};
