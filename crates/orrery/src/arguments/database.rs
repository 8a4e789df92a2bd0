//! Commands about a database as a whole: load, dump, log, stats, verify, warm, compact, backup, restore.

use std::path::PathBuf;

use clap::Args;
use orrery_storage::At;

use super::common::{CacheArguments, DatabaseArgument, ReportFormat};
use crate::units::Bytes;

#[derive(Args)]
pub(crate) struct LoadArguments {
    /// The database's directory, or its address in an object store, such as s3://bucket/prefix
    #[arg(
        long = "db",
        value_name = "DIR|URL",
        required_unless_present = "server"
    )]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheArguments,
    /// Load through a running server instead, such as http://127.0.0.1:7878: all files in one request and one commit
    #[arg(long, value_name = "URL", conflicts_with_all = ["directory", "base", "skip_errors", "lenient_iris", "threads"])]
    pub(crate) server: Option<String>,
    /// With --server: let a document that is more than memory holds give up older states that the database keeps (with --db a load gives them up anyway)
    #[arg(long, requires = "server")]
    pub(crate) forget_history: bool,
    /// Put triples into this graph instead of the default graph
    #[arg(long, value_name = "IRI")]
    pub(crate) graph: Option<String>,
    /// Memory to use at most, such as 8G; more than that is sorted on disk
    #[arg(long, value_name = "BYTES", default_value = "4G")]
    pub(crate) memory: Bytes,
    /// Format, where the file name does not tell: nt, nq, ttl, trig, rdf, jsonld
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Base IRI for relative IRIs of Turtle, TriG, RDF/XML and JSON-LD; the file's own address if not given (none for
    /// standard input, with --server that of the graph)
    #[arg(long, value_name = "IRI")]
    pub(crate) base: Option<String>,
    /// Load all below directories too: the files whose names tell a format, or with --format every file
    #[arg(long, short)]
    pub(crate) recursive: bool,
    /// Leave out wrong statements whole, count and log them; where nobody can tell where the next one begins, the rest of the file
    #[arg(long)]
    pub(crate) skip_errors: bool,
    /// Take IRIs as they are written, with a warning: http://a/#b#c, http://a/100% (RFC 3987 does not allow them)
    #[arg(long)]
    pub(crate) lenient_iris: bool,
    /// Threads; all cores if not given
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// How to report at the end
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
    /// Files (also .gz .bz2 .zst), directories with --recursive; - for standard input with --format
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Args)]
pub(crate) struct DumpArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    /// nq, trig or jsonld; without named graphs also nt, turtle, rdf
    #[arg(long, value_name = "FORMAT", default_value = "nq")]
    pub(crate) format: String,
    /// Write each statement in the canonical form of N-Quads (RDF 1.2), language tags in lower case; blank nodes keep their numbers, and
    /// `LC_ALL=C sort` puts the lines into the order of code points
    #[arg(long)]
    pub(crate) canonical: bool,
    /// Write here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite the file if it is there
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Write the state after this commit, at this time (2026-11-21T10:00Z; UTC without a zone), or at the end of this
    /// day (2026-11-21, UTC), instead of the present one
    #[arg(long, value_name = "COMMIT|TIME")]
    pub(crate) at: Option<At>,
}

#[derive(Args)]
pub(crate) struct LogArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    /// How many commits to list
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
}

#[derive(Args)]
pub(crate) struct StatsArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    /// How many predicates to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) predicates: usize,
    /// How to report
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
    /// Read so much at most, such as 8G; what memory is available if not given, or what the cache of an object store takes
    #[arg(long, value_name = "BYTES")]
    pub(crate) memory: Option<Bytes>,
}

#[derive(Args)]
pub(crate) struct CompactArguments {
    /// The database's directory, or its address in an object store, such as s3://bucket/prefix
    #[arg(
        long = "db",
        value_name = "DIR|URL",
        required_unless_present = "server"
    )]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheArguments,
    /// Compact the database of a running server instead, such as http://127.0.0.1:7878
    #[arg(long, value_name = "URL", conflicts_with_all = ["directory", "memory", "threads", "forget_history"])]
    pub(crate) server: Option<String>,
    /// Give up all older states at once, and the files that only they need
    #[arg(long)]
    pub(crate) forget_history: bool,
    /// Memory to use at most, such as 8G; more than that is sorted on disk
    #[arg(long, value_name = "BYTES", default_value = "4G")]
    pub(crate) memory: Bytes,
    /// Threads; all cores if not given
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
}

#[derive(Args)]
pub(crate) struct BackupArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    /// A directory, or s3://bucket/prefix (with AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT and so on set).
    /// Files that an earlier backup put there are not copied again
    #[arg(long, value_name = "TARGET")]
    pub(crate) to: String,
    /// Then remove all backups but the last N, and the files that only they have
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep: Option<u32>,
}

#[derive(Args)]
pub(crate) struct RestoreArguments {
    /// What `orrery backup --to` was given
    #[arg(long, value_name = "TARGET")]
    pub(crate) from: String,
    /// The directory of the new database, or its address in an object store; it must be missing or empty
    #[arg(long = "db", value_name = "DIR|URL", required_unless_present = "list")]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheArguments,
    /// Number of the backup; the last one if not given
    #[arg(long, value_name = "N")]
    pub(crate) number: Option<u64>,
    /// Show which backups there are
    #[arg(long, conflicts_with_all = ["directory", "number"])]
    pub(crate) list: bool,
}
