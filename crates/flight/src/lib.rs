//! Arrow Flight SQL over SQL sessions: rows travel as the batches that they are computed in.
//!
//! ```text
//!   listen -> socket (TLS) -> guard (who asks: password, token) -> service: what is asked, each a call
//!                statements, parameters, ingestion -> work (a session, its turn, its time) -> answer -> batches of a ticket
//!                definitions (catalogs, tables, keys)  capabilities                        \-> count of rows
//! ```
//!
//! Calls of this protocol know no session. What outlives a call has a handle (`handles`): a transaction, a prepared statement, an answer that waits
//! to be fetched. Handles are random, limited in number, and go when nobody uses them; transactions and answers go with their client's connection, too.
//! Whatever is not in a transaction is committed by itself.
//!
//! A statement runs when `GetFlightInfo` asks for it, once: a change is done then, and of a query the first batches are computed, which wait for `DoGet`.
//! It takes its turn at the same door as the queries of `/sparql` ([`Host::turn_of`](orrery_service::ports::host::Host::turn_of)).
//!
//! Rooms: `listener` takes connections and hands on calls. `access` finds out who makes a call, and
//! `calls` holds what outlives it. `execution` runs statements, ingestion and transactions;
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
