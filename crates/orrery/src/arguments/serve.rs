//! Arguments of `orrery serve` and `orrery demo`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::cluster::ClusterArguments;
use super::common::DatabaseArgument;
use super::query::{EndpointArguments, LoadSourceArguments};
use super::query_log::QueryLogArguments;
use super::vouching::{OidcArguments, TlsArguments};
use super::watching::WatchingArguments;
use crate::units::{Bytes, Seconds, listen_address, server_address};

#[derive(Args)]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
    #[command(flatten, next_help_heading = "Cluster")]
    pub(crate) cluster: ClusterArguments,
}

/// The flags of a server, in the groups in which `--help` shows them.
#[derive(Args)]
pub(crate) struct ServerArguments {
    /// Address to listen on for HTTP
    #[arg(help_heading = "Network", long, value_name = "HOST:PORT", default_value = "127.0.0.1:7878", value_parser = listen_address)]
    pub(crate) listen: SocketAddr,
    /// Host name to accept on a loopback address, as from a local proxy; may be repeated
    #[arg(help_heading = "Network", long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// Proxies whose X-Forwarded-For and Forwarded headers are trusted: addresses or networks, such
    /// as 10.0.0.8,fd00::/8
    #[arg(
        help_heading = "Network",
        long,
        value_name = "ADDRESS",
        value_delimiter = ','
    )]
    pub(crate) trust_proxy: Vec<String>,
    /// Maximum open connections per address. This machine and trusted proxies have no such limit
    #[arg(
        help_heading = "Network",
        long,
        value_name = "N",
        default_value_t = 256
    )]
    pub(crate) connections_per_address: usize,
    /// Minimum rate of a large upload in bytes per second; slower ones are closed after 30 s
    #[arg(
        help_heading = "Network",
        long,
        value_name = "BYTES",
        default_value = "1K"
    )]
    pub(crate) upload_rate: Bytes,
    /// Allow queries from web pages of other origins (CORS)
    #[arg(help_heading = "Network", long)]
    pub(crate) cors: bool,
    /// Memory limit of the server process, at least 256M; shared by all queries
    #[arg(
        help_heading = "Memory and time",
        long,
        value_name = "BYTES",
        default_value = "4G"
    )]
    pub(crate) memory: Bytes,
    /// Busy-thread limit; beyond it each large query gets one thread. All cores if not given
    #[arg(help_heading = "Memory and time", long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Default timeout of a query
    #[arg(
        help_heading = "Memory and time",
        long,
        value_name = "TIME",
        default_value = "60s"
    )]
    pub(crate) timeout: Seconds,
    /// Maximum timeout that a query may ask for with timeout=
    #[arg(
        help_heading = "Memory and time",
        long,
        value_name = "TIME",
        default_value = "600s"
    )]
    pub(crate) timeout_max: Seconds,
    /// Maximum length of a query's text, such as 8M
    #[arg(
        help_heading = "Memory and time",
        long,
        value_name = "BYTES",
        default_value = "1M"
    )]
    pub(crate) query_bytes_max: Bytes,
    /// Read the database into the file cache in the background, as memory allows
    #[arg(help_heading = "Memory and time", long)]
    pub(crate) warm: bool,
    /// Require authentication. Without users, create an administrator and print the password once
    #[arg(help_heading = "Users", long)]
    pub(crate) auth: bool,
    /// Address of the admin socket, such as 127.0.0.1:7879, for users, rules, limits and running
    /// queries; none if not given
    #[arg(help_heading = "Users", long, value_name = "HOST:PORT", value_parser = listen_address)]
    pub(crate) admin: Option<SocketAddr>,
    #[command(flatten, next_help_heading = "Users")]
    pub(crate) oidc: OidcArguments,
    #[command(flatten, next_help_heading = "TLS")]
    pub(crate) tls: TlsArguments,
    /// Open the database read-only; another process may write it
    #[arg(help_heading = "Writing", long)]
    pub(crate) read_only: bool,
    /// Share the database with other servers, of which one has the writer role. Another takes the
    /// role when that one ends. In an object store, the others forward changes to the writer
    #[arg(help_heading = "Writing", long, conflicts_with = "read_only")]
    pub(crate) stand_by: bool,
    /// URL at which other servers forward changes to this one, such as http://10.0.0.7:7878; from
    /// --listen if not given
    #[arg(help_heading = "Writing", long, value_name = "URL", value_parser = server_address)]
    pub(crate) advertise: Option<String>,
    /// Accept updates from other machines without users. Use it only behind a proxy that
    /// authenticates
    #[arg(help_heading = "Writing", long, conflicts_with = "read_only")]
    pub(crate) allow_writes: bool,
    /// Log size that starts a checkpoint in the background
    #[arg(
        help_heading = "Writing",
        long,
        value_name = "BYTES",
        default_value = "64M"
    )]
    pub(crate) checkpoint_bytes: Bytes,
    /// Number of changes in the log that starts a checkpoint in the background
    #[arg(
        help_heading = "Writing",
        long,
        value_name = "N",
        default_value_t = 500_000
    )]
    pub(crate) checkpoint_quads: u64,
    /// Number of changes that starts a compaction, if they also are an eighth of the database
    #[arg(
        help_heading = "Writing",
        long,
        value_name = "N",
        default_value_t = 250_000
    )]
    pub(crate) compact_quads: u64,
    /// Query the union of all graphs as the default graph
    #[arg(help_heading = "SPARQL", long)]
    pub(crate) union_default_graph: bool,
    /// Require a declaration of every prefix, as the SPARQL standard does
    #[arg(help_heading = "SPARQL", long)]
    pub(crate) strict_prefixes: bool,
    #[command(flatten, next_help_heading = "Requests to other servers")]
    pub(crate) endpoints: EndpointArguments,
    #[command(flatten, next_help_heading = "Requests to other servers")]
    pub(crate) sources: LoadSourceArguments,
    /// PostgreSQL server that external tables may read; may be repeated. Also host:port, an
    /// address, a network, or * for every public host
    #[arg(help_heading = "Requests to other servers", long, value_name = "HOST")]
    pub(crate) foreign_allow: Vec<String>,
    #[command(flatten, next_help_heading = "Logs, metrics, traces")]
    pub(crate) query_log: QueryLogArguments,
    /// File for the audit log: administrators' acts and denied requests, one line of JSON each
    #[arg(help_heading = "Logs, metrics, traces", long, value_name = "FILE")]
    pub(crate) audit_log: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Logs, metrics, traces")]
    pub(crate) watching: WatchingArguments,
    #[command(flatten, next_help_heading = "PostgreSQL")]
    pub(crate) postgres: PostgresArguments,
    #[command(flatten, next_help_heading = "Arrow Flight SQL")]
    pub(crate) flight: FlightArguments,
}

/// How PostgreSQL's clients are served.
#[derive(Args)]
pub(crate) struct PostgresArguments {
    /// Address for PostgreSQL's clients, such as 127.0.0.1:5433; none if not given. Users log in
    /// with their passwords. Without users, other machines need the password of ORRERY_PG_PASSWORD
    /// or --pg-password-file
    #[arg(long, value_name = "HOST:PORT", value_parser = listen_address)]
    pub(crate) pg: Option<SocketAddr>,
    /// File whose first line is the password of PostgreSQL's clients, without users
    #[arg(long, value_name = "FILE", requires = "pg")]
    pub(crate) pg_password_file: Option<PathBuf>,
    /// TLS certificate (PEM) for PostgreSQL's clients
    #[arg(long, value_name = "FILE", requires_all = ["pg", "pg_key"])]
    pub(crate) pg_certificate: Option<PathBuf>,
    /// TLS private key (PEM)
    #[arg(long, value_name = "FILE", requires = "pg_certificate")]
    pub(crate) pg_key: Option<PathBuf>,
}

/// How clients of Arrow Flight SQL are served.
#[derive(Args)]
pub(crate) struct FlightArguments {
    /// Address for Arrow Flight SQL (ADBC, JDBC), such as 127.0.0.1:32010; none if not given. Other
    /// machines need TLS; without users also the password of ORRERY_FLIGHT_PASSWORD or
    /// --flight-password-file
    #[arg(long, value_name = "HOST:PORT", value_parser = listen_address)]
    pub(crate) flight: Option<SocketAddr>,
    /// File whose first line is the password of Flight SQL's clients, without users
    #[arg(long, value_name = "FILE", requires = "flight")]
    pub(crate) flight_password_file: Option<PathBuf>,
    /// TLS certificate (PEM) of Flight SQL; with it all its clients must use TLS
    #[arg(long, value_name = "FILE", requires_all = ["flight", "flight_key"])]
    pub(crate) flight_certificate: Option<PathBuf>,
    /// TLS private key (PEM)
    #[arg(long, value_name = "FILE", requires = "flight_certificate")]
    pub(crate) flight_key: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct DemoArguments {
    /// Number of products in the BSBM data set; 2,785 make a million triples
    #[arg(long, value_name = "N", default_value_t = 2785, value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub(crate) products: u32,
    /// Directory of the database; a temporary one, removed at the end, if not given
    #[arg(long = "db", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}
