//! The settings of a soak test.

use std::path::PathBuf;

use orrery_bsbm::GenerateOptions;

/// How to soak.
#[derive(Clone, Debug)]
pub struct SoakOptions {
    /// Where data are kept and the database is made, which is removed at the end.
    pub cache: PathBuf,
    /// The static data.
    pub data: GenerateOptions,
    /// For how long.
    pub seconds: u64,
    /// Clients.
    pub clients: usize,
    /// Of them, those that ask heavy queries alone.
    pub heavy: usize,
    /// `--memory` of the server.
    pub memory_bytes: u64,
}
