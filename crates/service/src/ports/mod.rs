//! What listeners for SQL's protocols share, whichever they speak: who a client is, what each of its statements may do, its turn, its record.
//!
//! ```text
//! a name and SCRAM's exchange, a certificate, a header -> [users] -> Caller, for as long as the client is there
//! each statement: Caller -> Admitted -- hold(session), enter(session) --> Entered, held while it runs
//!                 Host::turn(session) -> the right to compute;  Host::record -> StatementRecord
//! statements of clients of other nodes -> [guests] -> the same
//! ```

pub mod connections;
pub mod denied;
pub mod guests;
pub mod host;
pub mod users;
