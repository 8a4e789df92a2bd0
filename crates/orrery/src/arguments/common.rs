//! What several commands are told.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Args)]
pub(crate) struct DatabaseArgument {
    /// The database's directory
    #[arg(long = "db", value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ReportFormat {
    Text,
    Json,
}
