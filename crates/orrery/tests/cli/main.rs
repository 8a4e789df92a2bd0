//! The binary as its users meet it: what goes in comes out, what is wrong is said in
//! one line, and what is killed leaves nothing half done.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail on the spot"
)]

mod access;
mod backup;
mod bad_input;
mod cluster;
mod common;
mod deploy;
mod divided;
mod documents;
mod edge_weights;
mod extreme_arguments;
mod first_contact;
mod flight;
mod forwarded;
mod history;
mod killed_load;
mod killed_server;
mod language_tags;
mod log_format;
mod long_texts;
mod mapping;
mod object_store;
mod oidc;
mod own_address;
mod port_users;
mod postgres;
mod prefixes;
mod report;
mod rolling;
mod round_trip;
mod s3_faults;
mod s3_server;
mod serve;
mod server_memory;
mod session_memory;
mod small_memory;
mod snb;
mod soak;
mod spb;
mod sql;
mod stand_by;
mod texts;
mod tls;
mod tpch;
mod vectors;
mod whole_graphs;
