//! Users and their rights: authentication, rules by query, and repeated checks of a request's
//! credentials.

pub mod authentication;
pub mod graph_rules;
pub mod standing;
