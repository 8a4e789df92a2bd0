//! The settings of a measurement.

use std::path::PathBuf;

/// How to measure.
#[derive(Clone, Debug)]
pub struct SpbOptions {
    /// Files and directories that are loaded, and served by us; without them there is an endpoint.
    pub data: Vec<PathBuf>,
    /// An endpoint for queries and updates that has the data.
    pub endpoint: Option<String>,
    /// Whether what is loaded gets an index of its texts.
    pub has_text_index: bool,
    /// Agents that write.
    pub editors: u32,
    /// Agents that read.
    pub aggregators: u32,
    /// Operations that begin before so many seconds have gone by do not count.
    pub warm_up_seconds: u32,
    /// Length of what counts.
    pub seconds: u32,
    /// The same seed draws the same operations.
    pub seed: u64,
}
