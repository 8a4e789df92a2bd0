//! Who asks, what they may see and change, and that nothing else shows.

pub(crate) mod access;
pub(crate) mod audit;
pub(crate) mod feeds_of_users;
pub(crate) mod flight_users;
pub(crate) mod graph_rules;
pub(crate) mod hidden;
pub(crate) mod hidden_texts;
pub(crate) mod oidc;
pub(crate) mod postgres_users;
pub(crate) mod routes;
pub(crate) mod scopes;
pub(crate) mod sql_rules;
