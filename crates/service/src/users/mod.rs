//! Who asks, and what they may see and change: users of the catalog, rules by query, credentials that are asked about again.

pub mod authentication;
pub mod graph_rules;
pub mod standing;
