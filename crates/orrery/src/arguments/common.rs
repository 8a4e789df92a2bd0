//! What several commands are told.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::units::Bytes;

/// The database of commands that have no other place to go to.
#[derive(Args)]
pub(crate) struct DatabaseArgument {
    /// The database's directory, or its address in an object store: s3://bucket/prefix (with AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT and so
    /// on set), file:///directory
    #[arg(long = "db", value_name = "DIR|URL")]
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) cache: CacheArguments,
}

/// Where blocks of a database in an object store are kept on this machine.
#[derive(Args, Default)]
pub(crate) struct CacheArguments {
    /// With an address: keep what is read here, in a directory for each database; ORRERY_CACHE, or ~/.cache/orrery/objects if not given. One
    /// process at a time uses what is there
    #[arg(long, value_name = "DIR", requires = "directory")]
    pub(crate) cache: Option<PathBuf>,
    /// With an address: keep so much, such as 100G; ORRERY_CACHE_SIZE, or 8G if not given
    #[arg(long, value_name = "BYTES", requires = "directory")]
    pub(crate) cache_size: Option<Bytes>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ReportFormat {
    Text,
    Json,
}
