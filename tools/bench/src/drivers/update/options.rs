//! The settings of a measurement.

use std::path::PathBuf;

use orrery_bsbm::GenerateOptions;

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdatePart {
    /// Rates and times of transactions, and opening after a kill.
    Transactions,
    /// The explore queries beside updates.
    Mix,
    /// Queries over changes that are not compacted yet.
    Reading,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct UpdateBenchOptions {
    /// The BSBM data set that is updated.
    pub data: GenerateOptions,
    /// Where data and databases are kept; databases are removed.
    pub cache: PathBuf,
    /// How long each rate is measured.
    pub seconds: u64,
    /// Mixes of the explore queries, with and without updates.
    pub mixes: u32,
    /// The parts; all if none is named.
    pub parts: Vec<UpdatePart>,
}
