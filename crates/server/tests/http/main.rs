//! A real server on a loopback port, spoken to byte by byte.

// Tests may unwrap; the lint spares `#[test]` functions only, not their fixtures.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub
)]

mod abuse;
mod access;
mod audit;
mod bodies;
mod browser;
mod client;
mod conditions;
mod edge;
mod feeds;
mod feeds_of_tables;
mod feeds_of_users;
mod fixture;
mod flight_users;
mod form_loads;
mod forwarding;
mod freshness;
mod graph_rules;
mod hidden;
mod hidden_texts;
mod limits;
mod loads;
mod metering;
mod metrics;
mod oidc;
mod other_clients;
mod port_spending;
mod port_standby;
mod port_statements;
mod port_waiting;
mod postgres_users;
mod protocol;
mod queries;
mod query_log;
mod scopes;
mod service;
mod spending;
mod sql;
mod sql_rules;
mod stop;
mod streaming;
mod texts;
mod tls;
mod traces;
mod turn_ends;
mod updates;
mod writers_turn;
