//! The Semantic Publishing Benchmark: editors and readers side by side, and validation.

mod agents;
mod client;
mod database;
mod options;
mod report;
mod validate;
mod workload;

pub use options::SpbOptions;
pub use report::{SpbKindReport, SpbReport};
pub use validate::{
    SpbDifference, SpbValidateOptions, SpbValidated, SpbValidationReport, validate_spb,
};
pub use workload::spb;
