//! The search path: schemas of unqualified names.

/// The database.
pub const CATALOG: &str = "orrery";
/// The schema.
pub const SCHEMA: &str = "public";
/// The schema of what statements need beside the tables. No text can name it: names have no control
/// characters.
pub(crate) const WORK_SCHEMA: &str = "\u{1}work";
/// Both, as the engine writes them in its messages.
pub(crate) const DEFAULT_PREFIX: &str = "orrery.public.";
