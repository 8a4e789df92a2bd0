//! A real server on a loopback port, spoken to byte by byte.

// Tests may unwrap; the lint spares `#[test]` functions only, not their fixtures.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub
)]

mod abuse;
mod client;
mod data;
mod fixture;
mod limits;
mod ports;
mod protocol;
mod queries;
mod service;
mod sql;
mod transport;
mod usage;
mod users;
