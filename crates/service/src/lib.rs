//! The service behind every protocol: who asks, what they may, what it costs, its turn, its record, the way of changes.
//!
//! HTTP (`orrery_server`), PostgreSQL's port (`orrery_postgres`) and Flight SQL (`orrery_flight`) stand above it and know nothing of each
//! other. Each reads its own messages and writes its own answers; what happens to a statement in between is here, once:
//!
//! ```text
//! users     who asks, what they may see and change       authentication, rules by query, OpenID tokens (oidc)
//! metering  what they may use                            accounts, budgets, rows, bytes, memory
//! admission a turn before the query threads              query_threads
//! writes    the way of every change                      seat (who writes), feeds (who follows), freshness (followers)
//! record    what is known of a statement                 metrics, query_log, traces, running_queries, audit
//! ports     the same for sessions of SQL                 Host, Caller, guests of other nodes
//! cluster   what nodes do for each other                 loads, statements, standing by
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
mod service;
pub mod sql_failure;
pub mod stages;
pub mod time_limit;
pub mod traces;
pub mod users;
pub mod writes;

pub use service::{Service, ServiceParts};
