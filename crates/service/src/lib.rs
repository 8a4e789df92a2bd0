//! The service behind every protocol: authentication, rights, metering, admission, records of
//! statements, and the path of changes.
//!
//! HTTP (`orrery_http`), PostgreSQL's port (`orrery_postgres`) and Flight SQL (`orrery_flight`)
//! stand above it and know nothing of each other. Each reads its own messages and writes its own
//! answers; what happens to a statement in between is here, once:
//!
//! ```text
//! users     who the sender is, what they may do authentication, rules by query, OpenID (oidc)
//! metering  how much the sender may use         accounts, budgets, rows, bytes, memory
//! admission a turn before the query threads     query_threads
//! writes    the path of every change            seat (writer role), feeds, freshness
//! record    the record of a statement           metrics, query_log, traces, running_queries, audit
//! ports     the same for sessions of SQL        Host, Caller, guests of other nodes
//! cluster   work that nodes do for each other   loads, statements, standing by
//! ```
//!
//! [`Service`] holds all of it.

pub mod admission;
pub mod audit;
pub mod cluster;
pub mod endpoints;
pub mod errors;
pub mod metering;
pub mod metrics;
pub mod oidc;
pub mod options;
pub mod ports;
pub mod query_log;
pub mod query_threads;
pub mod record;
pub mod running_queries;
pub mod second_try;
mod service;
pub mod sql_failure;
pub mod stages;
pub mod time_limit;
pub mod traces;
pub mod users;
pub mod writes;

pub use service::{Service, ServiceParts};
