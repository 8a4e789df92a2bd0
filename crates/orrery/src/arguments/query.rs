//! Commands that ask and change: query, update, sql, explain.

use std::path::PathBuf;

use clap::Args;
use orrery_storage::At;

use super::common::{CacheArguments, DatabaseArgument, ReportFormat};
use crate::units::{Bytes, Seconds};

#[derive(Args)]
pub(crate) struct QueryText {
    /// The query
    #[arg(value_name = "QUERY", required_unless_present = "file")]
    pub(crate) query: Option<String>,
    /// Read the query from a file; - for standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "query")]
    pub(crate) file: Option<PathBuf>,
    /// Base IRI for relative IRIs in the query; with --file the file's own address if not given
    #[arg(long, value_name = "IRI")]
    pub(crate) base: Option<String>,
    /// Let the default graph be the union of all graphs
    #[arg(long)]
    pub(crate) union_default_graph: bool,
    /// Assume no prefixes: each has to be declared in the text, as the standard has it
    #[arg(long)]
    pub(crate) strict_prefixes: bool,
    /// Memory for the query, such as 8G
    #[arg(long, value_name = "BYTES", default_value = "4G")]
    pub(crate) memory: Bytes,
    /// Threads over which a large query is spread; all cores if not given
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Longest query, such as 8M
    #[arg(long, value_name = "BYTES", default_value = "1M")]
    pub(crate) query_bytes_max: Bytes,
    #[command(flatten)]
    pub(crate) endpoints: EndpointArguments,
}

/// Whom a query or an update may ask with `SERVICE`.
#[derive(Args)]
pub(crate) struct EndpointArguments {
    /// Let SERVICE ask this host, host:port, address, network or URL prefix (* for every public host); may be repeated
    #[arg(long = "service-allow", value_name = "HOST")]
    pub(crate) allow: Vec<String>,
    /// Time that one request of SERVICE may take
    #[arg(
        id = "service-timeout",
        long = "service-timeout",
        value_name = "TIME",
        default_value = "30s"
    )]
    pub(crate) timeout: Seconds,
    /// Most solutions that one answer of SERVICE may have; they are held in memory or spilled, within --memory
    #[arg(
        id = "service-rows-max",
        long = "service-rows-max",
        value_name = "N",
        default_value_t = 1_000_000
    )]
    pub(crate) rows_max: usize,
    /// Most bytes that one answer of SERVICE may have
    #[arg(
        id = "service-bytes-max",
        long = "service-bytes-max",
        value_name = "BYTES",
        default_value = "256M"
    )]
    pub(crate) bytes_max: Bytes,
}

#[derive(Args)]
pub(crate) struct QueryArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    #[command(flatten)]
    pub(crate) text: QueryText,
    /// json, xml, csv, tsv, arrow, parquet, table; turtle, nt, rdf, jsonld, nq, trig for graphs
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Stop the query after this time, such as 30s
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Seconds>,
    /// Ask the state after this commit, at this time (2026-11-21T10:00Z; UTC without a zone), or at the end of this day
    /// (2026-11-21, UTC), instead of the present one
    #[arg(long, value_name = "COMMIT|TIME")]
    pub(crate) at: Option<At>,
}

#[derive(Args)]
pub(crate) struct UpdateArguments {
    /// The database's directory, made if it is not there, or its address in an object store, such as s3://bucket/prefix
    #[arg(
        long = "db",
        value_name = "DIR|URL",
        required_unless_present = "server"
    )]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheArguments,
    /// Update through a running server instead, such as http://127.0.0.1:7878
    #[arg(long, value_name = "URL", conflicts_with_all = ["directory", "base", "union_default_graph", "strict_prefixes", "timeout", "load_dir", "load_allow", "allow"])]
    pub(crate) server: Option<String>,
    /// The update
    #[arg(value_name = "UPDATE", required_unless_present = "file")]
    pub(crate) update: Option<String>,
    /// Read the update from a file; - for standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "update")]
    pub(crate) file: Option<PathBuf>,
    /// Let an update that is more than memory holds give up older states that the database keeps
    #[arg(long)]
    pub(crate) forget_history: bool,
    /// Base IRI for relative IRIs in the update; with --file the file's own address if not given (with --server the server's)
    #[arg(long, value_name = "IRI")]
    pub(crate) base: Option<String>,
    /// Let the default graph of WHERE be the union of all graphs
    #[arg(long)]
    pub(crate) union_default_graph: bool,
    /// Assume no prefixes: each has to be declared in the text, as the standard has it
    #[arg(long)]
    pub(crate) strict_prefixes: bool,
    /// Memory for the update, such as 8G
    #[arg(long, value_name = "BYTES", default_value = "4G")]
    pub(crate) memory: Bytes,
    /// Stop after this time in a WHERE, such as 30s
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Seconds>,
    #[command(flatten)]
    pub(crate) sources: LoadSourceArguments,
    #[command(flatten)]
    pub(crate) endpoints: EndpointArguments,
}

#[derive(Args)]
pub(crate) struct SqlArguments {
    /// The database's directory, made if it is not there (not with --read-only), or its address in an object store, such as s3://bucket/prefix
    #[arg(
        long = "db",
        value_name = "DIR|URL",
        required_unless_present = "server"
    )]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheArguments,
    /// Ask a running server instead, such as http://127.0.0.1:7878
    #[arg(long, value_name = "URL", conflicts_with_all = ["directory", "read_only", "memory"])]
    pub(crate) server: Option<String>,
    /// The statements, separated by semicolons; without -c and -f they come from standard input
    #[arg(short, long, value_name = "TEXT", conflicts_with = "file")]
    pub(crate) command: Option<String>,
    /// Read the statements from a file; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// table, csv, json
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Change nothing, and let another process write
    #[arg(long)]
    pub(crate) read_only: bool,
    /// All statements or none: one transaction
    #[arg(short = '1', long)]
    pub(crate) single_transaction: bool,
    /// Say how long each statement took, on standard error
    #[arg(long)]
    pub(crate) timing: bool,
    /// Memory for the statements, such as 8G
    #[arg(long, value_name = "BYTES", default_value = "4G")]
    pub(crate) memory: Bytes,
}

/// What `LOAD` of an update may read.
#[derive(Args)]
pub(crate) struct LoadSourceArguments {
    /// Let LOAD read files of this directory, as file: IRIs
    #[arg(long, value_name = "DIR")]
    pub(crate) load_dir: Option<PathBuf>,
    /// Let LOAD ask this host (HOST, HOST:PORT, URL prefix); may be given several times
    #[arg(long, value_name = "HOST")]
    pub(crate) load_allow: Vec<String>,
}

#[derive(Args)]
pub(crate) struct ExplainArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    #[command(flatten)]
    pub(crate) text: QueryText,
    /// Run the query too, and show actual rows and times beside the estimates
    #[arg(long)]
    pub(crate) analyze: bool,
    /// Stop the run after this time, such as 30s
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Seconds>,
    /// As text for people, or as a tree in JSON
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
}
