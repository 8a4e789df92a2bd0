//! Commands that serve: serve, demo.

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
    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,
}

#[derive(Args)]
pub(crate) struct ServerArguments {
    /// Address to listen on
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7878", value_parser = listen_address)]
    pub(crate) listen: SocketAddr,
    /// Memory for all running queries together; the process of `serve` stays within it (256M at least)
    #[arg(long, value_name = "BYTES", default_value = "4G")]
    pub(crate) memory: Bytes,
    /// Threads that queries keep busy together before large ones do with one each; all cores if not given
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Time a query may take, if it does not ask for another
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) timeout: Seconds,
    /// Longest time a query may ask for with timeout=
    #[arg(long, value_name = "TIME", default_value = "600s")]
    pub(crate) timeout_max: Seconds,
    /// Longest query, such as 8M
    #[arg(long, value_name = "BYTES", default_value = "1M")]
    pub(crate) query_bytes_max: Bytes,
    /// Answer also to this name when listening on a loopback address, as a proxy on this machine may call it; may be repeated
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// Take the word of this proxy for who asks through it (X-Forwarded-For, Forwarded): addresses or networks, such as 10.0.0.8,fd00::/8
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub(crate) trust_proxy: Vec<String>,
    /// Connections that one address may have open, beside this machine's and trusted proxies'; more are closed at once
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) connections_per_address: usize,
    /// Close an upload of a large document that comes more slowly than so many bytes a second, over 30 s
    #[arg(long, value_name = "BYTES", default_value = "1K")]
    pub(crate) upload_rate: Bytes,
    /// Let external tables be of this PostgreSQL server: host, host:port, address or network (* for every public host); may be repeated
    #[arg(long, value_name = "HOST")]
    pub(crate) foreign_allow: Vec<String>,
    /// Ask who asks: a database without users gets an administrator, whose password is printed once. With users it is so anyway
    #[arg(long)]
    pub(crate) auth: bool,
    /// Let users, groups, keys and rules be administered at this address, such as 127.0.0.1:7879, by those who have a right to
    #[arg(long, value_name = "HOST:PORT", value_parser = listen_address)]
    pub(crate) admin: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) tls: TlsArguments,
    #[command(flatten)]
    pub(crate) oidc: OidcArguments,
    /// Take no updates; another process may write the database meanwhile
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Write whenever nobody else does, and follow whoever does: with several such servers of one database one writes, and another takes its place when it ends. Where
    /// the database is in an object store, changes that come to the others are forwarded
    #[arg(long, conflicts_with = "read_only")]
    pub(crate) stand_by: bool,
    /// Where others reach this server to forward changes to it, such as http://10.0.0.7:7878; the address that it listens on if not given
    #[arg(long, value_name = "URL", value_parser = server_address)]
    pub(crate) advertise: Option<String>,
    /// Take updates also when listening beyond this machine from everybody, where the database has no users: only behind a proxy that knows who asks
    #[arg(long, conflicts_with = "read_only")]
    pub(crate) allow_writes: bool,
    /// Length of the log from which on it is put into files in the background
    #[arg(long, value_name = "BYTES", default_value = "64M")]
    pub(crate) checkpoint_bytes: Bytes,
    /// Changes in the log from which on it is put into files in the background
    #[arg(long, value_name = "N", default_value_t = 500_000)]
    pub(crate) checkpoint_quads: u64,
    /// Changes from which on, if they also are an eighth of the database, they are compacted in the background
    #[arg(long, value_name = "N", default_value_t = 250_000)]
    pub(crate) compact_quads: u64,
    /// Read the database into memory in the background, as far as there is memory
    #[arg(long)]
    pub(crate) warm: bool,
    #[command(flatten)]
    pub(crate) sources: LoadSourceArguments,
    /// Allow web pages of other origins to ask queries
    #[arg(long)]
    pub(crate) cors: bool,
    /// Let the default graph be the union of all graphs
    #[arg(long)]
    pub(crate) union_default_graph: bool,
    /// Assume no prefixes: each has to be declared in the text, as the standard has it
    #[arg(long)]
    pub(crate) strict_prefixes: bool,
    #[command(flatten)]
    pub(crate) endpoints: EndpointArguments,
    #[command(flatten)]
    pub(crate) query_log: QueryLogArguments,
    /// Append acts of administrators and denied requests to this file, one line of JSON each
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) watching: WatchingArguments,
    #[command(flatten)]
    pub(crate) postgres: PostgresArguments,
    #[command(flatten)]
    pub(crate) flight: FlightArguments,
}

/// How PostgreSQL's clients are served.
#[derive(Args)]
pub(crate) struct PostgresArguments {
    /// Answer SQL to PostgreSQL's clients at this address, such as 127.0.0.1:5433: to users of the database with their passwords. Where it has none, clients beyond this machine
    /// need a password: that of the environment's ORRERY_PG_PASSWORD, or of a file
    #[arg(long, value_name = "HOST:PORT", value_parser = listen_address)]
    pub(crate) pg: Option<SocketAddr>,
    /// The password of PostgreSQL's clients, where the database has no users, is the first line of this file
    #[arg(long, value_name = "FILE", requires = "pg")]
    pub(crate) pg_password_file: Option<PathBuf>,
    /// Certificate (PEM) for those of them that ask for TLS
    #[arg(long, value_name = "FILE", requires_all = ["pg", "pg_key"])]
    pub(crate) pg_certificate: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "pg_certificate")]
    pub(crate) pg_key: Option<PathBuf>,
}

/// How clients of Arrow Flight SQL are served.
#[derive(Args)]
pub(crate) struct FlightArguments {
    /// Answer SQL to clients of Arrow Flight SQL (ADBC, JDBC) at this address, such as 127.0.0.1:32010: to users of the database, beyond this machine within TLS. Where it has none,
    /// clients beyond this machine need TLS and a password: that of the environment's ORRERY_FLIGHT_PASSWORD, or of a file
    #[arg(long, value_name = "HOST:PORT", value_parser = listen_address)]
    pub(crate) flight: Option<SocketAddr>,
    /// The password of these clients, where the database has no users, is the first line of this file
    #[arg(long, value_name = "FILE", requires = "flight")]
    pub(crate) flight_password_file: Option<PathBuf>,
    /// Certificate (PEM): with it all of them have to use TLS
    #[arg(long, value_name = "FILE", requires_all = ["flight", "flight_key"])]
    pub(crate) flight_certificate: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "flight_certificate")]
    pub(crate) flight_key: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct DemoArguments {
    /// Products in the Berlin SPARQL Benchmark data set (2,785 make a million triples)
    #[arg(long, value_name = "N", default_value_t = 2785, value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub(crate) products: u32,
    /// Where to keep the database; a temporary directory, removed at the end, if not given
    #[arg(long = "db", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}
