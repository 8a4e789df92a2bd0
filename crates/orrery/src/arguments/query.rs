//! Arguments of commands that run statements: query, update, sql, explain.

use std::path::PathBuf;

use clap::Args;
use orrery_storage::At;

use super::common::{CacheArguments, DatabaseArgument, ReportFormat};
use crate::units::{Bytes, Seconds};

#[derive(Args)]
pub(crate) struct QueryText {
    /// Text of the query
    #[arg(value_name = "QUERY", required_unless_present = "file")]
    pub(crate) query: Option<String>,
    /// File with the query; - for standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "query")]
    pub(crate) file: Option<PathBuf>,
    /// Base IRI for relative IRIs in the query; with --file the file's address if not given
    #[arg(long, value_name = "IRI")]
    pub(crate) base: Option<String>,
    /// Query the union of all graphs as the default graph
    #[arg(long)]
    pub(crate) union_default_graph: bool,
    /// Require a declaration of every prefix, as the SPARQL standard does
    #[arg(long)]
    pub(crate) strict_prefixes: bool,
    /// Memory limit of the query, such as 8G
    #[arg(long, value_name = "BYTES", default_value = "4G")]
    pub(crate) memory: Bytes,
    /// Number of threads of a large query; all cores if not given
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Maximum length of a query's text, such as 8M
    #[arg(long, value_name = "BYTES", default_value = "1M")]
    pub(crate) query_bytes_max: Bytes,
    #[command(flatten)]
    pub(crate) endpoints: EndpointArguments,
}

/// Whom a query or an update may ask with `SERVICE`.
#[derive(Args)]
pub(crate) struct EndpointArguments {
    /// Host that SERVICE may send requests to; may be repeated. Also host:port, an address, a
    /// network, a URL prefix, or * for every public host
    #[arg(long = "service-allow", value_name = "HOST")]
    pub(crate) allow: Vec<String>,
    /// Timeout of one SERVICE request
    #[arg(
        id = "service-timeout",
        long = "service-timeout",
        value_name = "TIME",
        default_value = "30s"
    )]
    pub(crate) timeout: Seconds,
    /// Maximum solutions of one SERVICE answer, held or spilled within --memory
    #[arg(
        id = "service-rows-max",
        long = "service-rows-max",
        value_name = "N",
        default_value_t = 1_000_000
    )]
    pub(crate) rows_max: usize,
    /// Maximum bytes of one SERVICE answer
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
    /// Output format: json, xml, csv, tsv, arrow, parquet, table; for graphs ttl, nt, rdf, jsonld,
    /// nq, trig
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Timeout of the query, such as 30s; none if not given
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Seconds>,
    /// Query an older state: after a commit, at a time (2026-11-21T10:00Z; UTC without a zone), or
    /// at the end of a day (2026-11-21, UTC)
    #[arg(long, value_name = "COMMIT|TIME")]
    pub(crate) at: Option<At>,
}

#[derive(Args)]
pub(crate) struct UpdateArguments {
    /// Directory of the database, created if missing, or its address in an object store, such as
    /// s3://bucket/prefix
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
    /// Text of the update
    #[arg(value_name = "UPDATE", required_unless_present = "file")]
    pub(crate) update: Option<String>,
    /// File with the update; - for standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "update")]
    pub(crate) file: Option<PathBuf>,
    /// Allow an update larger than memory to drop the database's history
    #[arg(long)]
    pub(crate) forget_history: bool,
    /// Base IRI for relative IRIs in the update; with --file the file's address if not given
    #[arg(long, value_name = "IRI")]
    pub(crate) base: Option<String>,
    /// Query the union of all graphs as the default graph of WHERE
    #[arg(long)]
    pub(crate) union_default_graph: bool,
    /// Require a declaration of every prefix, as the SPARQL standard does
    #[arg(long)]
    pub(crate) strict_prefixes: bool,
    /// Memory limit of the update, such as 8G
    #[arg(long, value_name = "BYTES", default_value = "4G")]
    pub(crate) memory: Bytes,
    /// Timeout of each WHERE, such as 30s; none if not given
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Seconds>,
    #[command(flatten)]
    pub(crate) sources: LoadSourceArguments,
    #[command(flatten)]
    pub(crate) endpoints: EndpointArguments,
}

#[derive(Args)]
pub(crate) struct SqlArguments {
    /// Directory of the database, created if missing, or its address in an object store, such as
    /// s3://bucket/prefix
    #[arg(
        long = "db",
        value_name = "DIR|URL",
        required_unless_present = "server"
    )]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheArguments,
    /// Address of a running server instead, such as http://127.0.0.1:7878
    #[arg(long, value_name = "URL", conflicts_with_all = ["directory", "read_only", "memory"])]
    pub(crate) server: Option<String>,
    /// Statements to run, separated by semicolons, or one shell command such as \d. Without -c and
    /// -f: standard input, at a terminal a shell
    #[arg(short, long, value_name = "TEXT", conflicts_with = "file")]
    pub(crate) command: Option<String>,
    /// File with the statements; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Output format: table, csv, json; table if not given
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Open the database read-only; another process may write it
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Run all statements in one transaction
    #[arg(short = '1', long)]
    pub(crate) single_transaction: bool,
    /// Print the time of each statement on standard error
    #[arg(long)]
    pub(crate) timing: bool,
    /// Memory limit of the statements, such as 8G
    #[arg(long, value_name = "BYTES", default_value = "4G")]
    pub(crate) memory: Bytes,
}

/// What `LOAD` of an update may read.
#[derive(Args)]
pub(crate) struct LoadSourceArguments {
    /// Directory whose files LOAD may read, as file: IRIs
    #[arg(long, value_name = "DIR")]
    pub(crate) load_dir: Option<PathBuf>,
    /// Host that LOAD may fetch from (HOST, HOST:PORT, URL prefix); may be repeated
    #[arg(long, value_name = "HOST")]
    pub(crate) load_allow: Vec<String>,
}

#[derive(Args)]
pub(crate) struct ExplainArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    #[command(flatten)]
    pub(crate) text: QueryText,
    /// Run the query, and show actual rows and times beside the estimates
    #[arg(long)]
    pub(crate) analyze: bool,
    /// Timeout of the run, such as 30s; none if not given
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Seconds>,
    /// Output format: text, or a tree in JSON
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
}
