//! Tests of sessions and statements over small databases, in one program for the sake of linking.
//! Each part by itself would take as long to link as all of them.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A test that cannot ask has failed.

mod common;
mod copy;
mod dense;
mod divided;
mod files;
mod forward;
mod functions;
mod joins;
mod naive;
mod nested;
mod planning;
mod prepared;
mod scan;
mod scope;
mod session;
mod statements;
mod touches;
mod transactions;
mod unknown;
