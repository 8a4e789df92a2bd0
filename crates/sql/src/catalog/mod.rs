//! The catalog: tables, views and functions, filtered by the asker's rights.
//!
//! `lookup` finds things by their names. `scope` leaves out what a user may not see. `provider`
//! gives the rest to DataFusion. `described` and `pg_catalog` give it to clients as tables.

pub(crate) mod described;
pub(crate) mod foreign;
pub(crate) mod lookup;
pub(crate) mod named_in;
pub(crate) mod pg_catalog;
pub(crate) mod provider;
pub(crate) mod scope;
