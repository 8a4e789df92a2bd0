//! Functions and operators by table, and random expressions against the oracle.

mod functions;
mod physical;
mod places;
mod random;
