//! The common part of SQL listeners, for PostgreSQL and Flight SQL: clients, rights and limits of
//! statements, turns, records.
//!
//! ```text
//! name and SCRAM exchange, certificate, header -> [users] -> Caller, while the client is connected
//! each statement: Caller -> Admitted -- hold(session), enter(session) --> Entered, until its end
//!                 Host::turn_of(session) -> the right to compute;  Host::record -> StatementRecord
//! statements of clients of other nodes -> [guests] -> the same
//! ```

pub mod connections;
pub mod denied;
pub mod guests;
pub mod host;
pub mod users;
