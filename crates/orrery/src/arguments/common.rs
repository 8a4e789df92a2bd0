//! Arguments that several commands share: the database, its cache, and the format of reports.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::units::Bytes;

/// The database of commands that have no other place to go to.
#[derive(Args)]
pub(crate) struct DatabaseArgument {
    /// Directory of the database, or its address in an object store: s3://bucket/prefix or
    /// file:///directory. S3 is set up by AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION,
    /// AWS_ENDPOINT
    #[arg(long = "db", value_name = "DIR|URL")]
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) cache: CacheArguments,
}

/// Where blocks of a database in an object store are kept on this machine.
#[derive(Args, Default)]
pub(crate) struct CacheArguments {
    /// Cache directory for an object store; ORRERY_CACHE, or ~/.cache/orrery/objects if not given.
    /// Each database has a directory in it, which one process at a time uses
    #[arg(long, value_name = "DIR", requires = "directory")]
    pub(crate) cache: Option<PathBuf>,
    /// Cache size for an object store, such as 100G; ORRERY_CACHE_SIZE, or 8G if not given
    #[arg(long, value_name = "BYTES", requires = "directory")]
    pub(crate) cache_size: Option<Bytes>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ReportFormat {
    Text,
    Json,
}
