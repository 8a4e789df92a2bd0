//! Tests of foreign PostgreSQL tables, in SQL and as graphs, skipped where no server is installed.
//! Left out, with a word, where there is none.

#![expect(clippy::unwrap_used, reason = "a test")]

mod access;
mod cluster;
mod failures;
mod graphs;
mod pushed;
mod types;
