//! Tables of another PostgreSQL server, in SQL and as graphs: against Debian's server on a loopback port. Left out, with a word, where there is none.

#![expect(clippy::unwrap_used, reason = "a test")]

mod access;
mod cluster;
mod failures;
mod graphs;
mod pushed;
mod types;
