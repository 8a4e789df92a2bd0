//! The binary as its users meet it: what goes in comes out, what is wrong is said in
//! one line, and what is killed leaves nothing half done.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail on the spot"
)]

mod access;
mod bad_input;
mod benches;
mod clusters;
mod common;
mod deploy;
mod edge_weights;
mod history;
mod killed_server;
mod limits;
mod loads;
mod log_format;
mod mapping;
mod ports;
mod prefixes;
mod report;
mod serve;
mod sql;
mod stores;
mod texts;
