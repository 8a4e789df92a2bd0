//! Tests of functions and operators by table, and random expressions against the oracle.

mod casts;
mod functions;
mod long_texts;
mod physical;
mod places;
mod random;
