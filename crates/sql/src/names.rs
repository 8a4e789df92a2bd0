//! The names that stand before a table's where a text gives none.

/// The database.
pub const CATALOG: &str = "orrery";
/// The schema.
pub(crate) const SCHEMA: &str = "public";
/// Both, as the engine writes them in its messages.
pub(crate) const DEFAULT_PREFIX: &str = "orrery.public.";
