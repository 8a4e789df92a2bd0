//! Arguments of commands on a whole database: load, dump, log, stats, verify, warm, compact,
//! backup, restore.

use std::path::PathBuf;

use clap::Args;
use orrery_storage::At;

use super::common::{CacheArguments, DatabaseArgument, ReportFormat};
use crate::units::Bytes;

#[derive(Args)]
pub(crate) struct LoadArguments {
    /// Directory of the database, or its address in an object store, such as s3://bucket/prefix
    #[arg(
        long = "db",
        value_name = "DIR|URL",
        required_unless_present = "server"
    )]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheArguments,
    /// Load through a running server instead, such as http://127.0.0.1:7878. All files become one
    /// commit
    #[arg(long, value_name = "URL", conflicts_with_all = ["directory", "base", "skip_errors", "lenient_iris", "threads"])]
    pub(crate) server: Option<String>,
    /// With --server: allow a large load to drop the database's history; with --db a load always
    /// drops it
    #[arg(long, requires = "server")]
    pub(crate) forget_history: bool,
    /// Named graph for triples; the default graph if not given
    #[arg(long, value_name = "IRI")]
    pub(crate) graph: Option<String>,
    /// Memory limit, such as 8G; larger data are sorted on disk
    #[arg(long, value_name = "BYTES", default_value = "4G")]
    pub(crate) memory: Bytes,
    /// Format of the files: nt, nq, ttl, trig, rdf, jsonld; taken from file names if not given
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Base IRI for relative IRIs in the files; each file's own address if not given. Standard
    /// input has no default; --server uses that of the graph
    #[arg(long, value_name = "IRI")]
    pub(crate) base: Option<String>,
    /// Load directories: all files with a known ending, or with --format every file
    #[arg(long, short)]
    pub(crate) recursive: bool,
    /// Skip statements with errors, count and log them. Where the next statement cannot be found,
    /// the rest of the file is skipped
    #[arg(long)]
    pub(crate) skip_errors: bool,
    /// Accept IRIs that RFC 3987 forbids, with a warning, such as http://a/#b#c and http://a/100%
    #[arg(long)]
    pub(crate) lenient_iris: bool,
    /// Number of threads; all cores if not given
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Format of the report at the end
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
    /// Files to load (also .gz, .bz2, .zst); directories with --recursive; - for standard input
    /// with --format
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Args)]
pub(crate) struct DumpArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    /// Output format: nq, trig, jsonld; also nt, ttl, rdf where there are no named graphs
    #[arg(long, value_name = "FORMAT", default_value = "nq")]
    pub(crate) format: String,
    /// Write canonical N-Quads or N-Triples (RDF 1.2), language tags in lower case. Blank nodes
    /// keep their numbers; `LC_ALL=C sort` gives the canonical order of lines
    #[arg(long)]
    pub(crate) canonical: bool,
    /// Output file; standard output if not given
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite an existing output file
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Dump an older state: after a commit, at a time (2026-11-21T10:00Z; UTC without a zone), or
    /// at the end of a day (2026-11-21, UTC)
    #[arg(long, value_name = "COMMIT|TIME")]
    pub(crate) at: Option<At>,
}

#[derive(Args)]
pub(crate) struct LogArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    /// Maximum number of commits to list
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
}

#[derive(Args)]
pub(crate) struct StatsArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    /// Maximum number of predicates to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) predicates: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
}

#[derive(Args)]
pub(crate) struct VerifyArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
}

#[derive(Args)]
pub(crate) struct WarmArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    /// Maximum bytes to read, such as 8G; available memory, or the object store's cache size, if
    /// not given
    #[arg(long, value_name = "BYTES")]
    pub(crate) memory: Option<Bytes>,
}

#[derive(Args)]
pub(crate) struct CompactArguments {
    /// Directory of the database, or its address in an object store, such as s3://bucket/prefix
    #[arg(
        long = "db",
        value_name = "DIR|URL",
        required_unless_present = "server"
    )]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheArguments,
    /// Compact through a running server instead, such as http://127.0.0.1:7878
    #[arg(long, value_name = "URL", conflicts_with_all = ["directory", "memory", "threads", "forget_history"])]
    pub(crate) server: Option<String>,
    /// Drop the database's history at once, and the files that only history needs
    #[arg(long)]
    pub(crate) forget_history: bool,
    /// Memory limit, such as 8G; larger data are sorted on disk
    #[arg(long, value_name = "BYTES", default_value = "4G")]
    pub(crate) memory: Bytes,
    /// Number of threads; all cores if not given
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
}

#[derive(Args)]
pub(crate) struct BackupArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    /// Target of the backup: a directory or s3://bucket/prefix. Files that an earlier backup copied
    /// are not copied again. S3 is set up by AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION,
    /// AWS_ENDPOINT
    #[arg(long, value_name = "TARGET")]
    pub(crate) to: String,
    /// Number of backups to retain; older ones are removed afterwards. All if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep: Option<u32>,
}

#[derive(Args)]
pub(crate) struct RestoreArguments {
    /// Target that `orrery backup --to` wrote
    #[arg(long, value_name = "TARGET")]
    pub(crate) from: String,
    /// Directory of the new database, or its address in an object store; must be missing or empty
    #[arg(long = "db", value_name = "DIR|URL", required_unless_present = "list")]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheArguments,
    /// Number of the backup to restore; the last one if not given
    #[arg(long, value_name = "N")]
    pub(crate) number: Option<u64>,
    /// List the backups at the target
    #[arg(long, conflicts_with_all = ["directory", "number"])]
    pub(crate) list: bool,
}
