//! What changes data, and those who follow the changes.

pub(crate) mod feeds;
pub(crate) mod feeds_of_tables;
pub(crate) mod form_loads;
pub(crate) mod freshness;
pub(crate) mod loads;
pub(crate) mod texts;
pub(crate) mod updates;
