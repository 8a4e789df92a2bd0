//! What can be said on the command line. The names are fixed by the founding design:
//! tools and checks rely on them.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use orrery_bench::tpch::Scale;
use orrery_storage::At;

use crate::units::{Bytes, Seconds, listen_address};

/// A knowledge-graph database: billions of RDF statements, asked in SPARQL.
#[derive(Parser)]
#[command(name = "orrery", version, propagate_version = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Log more (on standard error; ORRERY_LOG=filter for detail)
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Bulk load files of RDF into a database, which is made if it is not there
    Load(LoadArguments),
    /// Answer one SPARQL query
    Query(QueryArguments),
    /// Change a database by SPARQL Update
    Update(UpdateArguments),
    /// Run SQL statements: tables of typed columns beside the quads
    Sql(SqlArguments),
    /// Show the plan of a query
    Explain(ExplainArguments),
    /// Serve a database over HTTP (SPARQL protocol) with a console
    Serve(ServeArguments),
    /// Write the whole database as N-Quads or TriG
    Dump(DumpArguments),
    /// List the commits that are kept, the newest first
    Log(LogArguments),
    /// What is in a database: counts, predicates, bytes
    Stats(StatsArguments),
    /// Read every byte and check every checksum
    Verify(VerifyArguments),
    /// Read a database into the system's file cache, so that its first queries need not wait for the disk
    Warm(WarmArguments),
    /// Take what updates changed into the base, so that reading is as fast as after a load
    Compact(CompactArguments),
    /// Copy a database, also while it is served, to a directory or an S3-compatible store
    Backup(BackupArguments),
    /// Make a database from a backup
    Restore(RestoreArguments),
    /// The prefixes that queries need not declare: list, add, remove
    #[command(subcommand)]
    Prefix(PrefixCommand),
    /// Graphs out of tables, by R2RML or the Direct Mapping: add, list, show, drop, copy
    #[command(subcommand)]
    Mapping(MappingCommand),
    /// Generate data and measure
    #[command(subcommand)]
    Bench(BenchSuite),
    /// Generate a data set, load it, serve it, print the address
    Demo(DemoArguments),
}

#[derive(Args)]
pub(crate) struct DatabaseArgument {
    /// The database's directory
    #[arg(long = "db", value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

#[derive(Args)]
pub(crate) struct LoadArguments {
    /// The database's directory
    #[arg(long = "db", value_name = "DIR", required_unless_present = "server")]
    pub(crate) directory: Option<PathBuf>,
    /// Load through a running server instead, such as http://127.0.0.1:7878
    #[arg(long, value_name = "URL", conflicts_with_all = ["directory", "base", "skip_errors", "threads"])]
    pub(crate) server: Option<String>,
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
    /// Leave out statements with syntax errors, count and log them
    #[arg(long)]
    pub(crate) skip_errors: bool,
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

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ReportFormat {
    Text,
    Json,
}

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
    /// The database's directory, made if it is not there
    #[arg(long = "db", value_name = "DIR", required_unless_present = "server")]
    pub(crate) directory: Option<PathBuf>,
    /// Update through a running server instead, such as http://127.0.0.1:7878
    #[arg(long, value_name = "URL", conflicts_with_all = ["directory", "base", "union_default_graph", "strict_prefixes", "timeout", "load_dir", "load_allow", "allow"])]
    pub(crate) server: Option<String>,
    /// The update
    #[arg(value_name = "UPDATE", required_unless_present = "file")]
    pub(crate) update: Option<String>,
    /// Read the update from a file; - for standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "update")]
    pub(crate) file: Option<PathBuf>,
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
    /// The database's directory, made if it is not there (not with --read-only)
    #[arg(long = "db", value_name = "DIR", required_unless_present = "server")]
    pub(crate) directory: Option<PathBuf>,
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

#[derive(Args)]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
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
    /// Let external tables be of this PostgreSQL server: host, host:port, address or network (* for every public host); may be repeated
    #[arg(long, value_name = "HOST")]
    pub(crate) foreign_allow: Vec<String>,
    /// Take no updates; another process may write the database meanwhile
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Take updates also when listening beyond this machine: there is no access control, so only
    /// behind a proxy that has
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
    pub(crate) postgres: PostgresArguments,
    #[command(flatten)]
    pub(crate) flight: FlightArguments,
}

/// How PostgreSQL's clients are served.
#[derive(Args)]
pub(crate) struct PostgresArguments {
    /// Answer SQL to PostgreSQL's clients at this address, such as 127.0.0.1:5433. Beyond this machine they need a password: that of the environment's
    /// ORRERY_PG_PASSWORD, or of a file
    #[arg(long, value_name = "HOST:PORT", value_parser = listen_address)]
    pub(crate) pg: Option<SocketAddr>,
    /// The password of PostgreSQL's clients is the first line of this file
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
    /// Answer SQL to clients of Arrow Flight SQL (ADBC, JDBC) at this address, such as 127.0.0.1:32010. Beyond this machine they need TLS and a password:
    /// that of the environment's ORRERY_FLIGHT_PASSWORD, or of a file
    #[arg(long, value_name = "HOST:PORT", value_parser = listen_address)]
    pub(crate) flight: Option<SocketAddr>,
    /// The password of these clients is the first line of this file
    #[arg(long, value_name = "FILE", requires = "flight")]
    pub(crate) flight_password_file: Option<PathBuf>,
    /// Certificate (PEM): with it all of them have to use TLS
    #[arg(long, value_name = "FILE", requires_all = ["flight", "flight_key"])]
    pub(crate) flight_certificate: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "flight_certificate")]
    pub(crate) flight_key: Option<PathBuf>,
}

/// What to do with prefixes.
#[derive(Subcommand)]
pub(crate) enum PrefixCommand {
    /// List the prefixes, and where each comes from
    List {
        #[command(flatten)]
        place: PrefixPlace,
        /// How to report
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },
    /// Give the database a prefix
    Add {
        #[command(flatten)]
        place: PrefixPlace,
        /// Its name, with or without the colon
        #[arg(value_name = "NAME")]
        name: String,
        /// What it stands for
        #[arg(value_name = "IRI")]
        iri: String,
        /// Also where it stands for another IRI already: queries that use it mean something else from now on
        #[arg(long)]
        replace: bool,
    },
    /// Remove a prefix that was added, or that a loaded file declared
    Remove {
        #[command(flatten)]
        place: PrefixPlace,
        /// Its name, with or without the colon
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// What to do with mapped graphs.
#[derive(Subcommand)]
pub(crate) enum MappingCommand {
    /// Define a graph out of tables: queries see its triples, nothing is copied
    Add {
        #[command(flatten)]
        database: DatabaseArgument,
        /// The graph's name
        #[arg(value_name = "IRI")]
        name: String,
        /// A mapping in R2RML (Turtle); - for standard input
        #[arg(long, short, value_name = "FILE")]
        file: Option<PathBuf>,
        /// The Direct Mapping of the tables of a schema instead
        #[arg(long, value_name = "SCHEMA", num_args = 0..=1, default_missing_value = "public", conflicts_with = "file")]
        tables: Option<String>,
        /// What relative IRIs are resolved against; that of the mapping's text if not given, with --tables the graph's name
        #[arg(long, value_name = "IRI")]
        base: Option<String>,
    },
    /// List the mapped graphs
    List {
        #[command(flatten)]
        database: DatabaseArgument,
    },
    /// Print the mapping of a graph
    Show {
        #[command(flatten)]
        database: DatabaseArgument,
        /// The graph's name
        #[arg(value_name = "IRI")]
        name: String,
    },
    /// Forget a mapped graph; its tables stay
    Drop {
        #[command(flatten)]
        database: DatabaseArgument,
        /// The graph's name
        #[arg(value_name = "IRI")]
        name: String,
    },
    /// Store the triples of a mapped graph as quads: in its own place, or as a copy under another name
    Materialize {
        #[command(flatten)]
        database: DatabaseArgument,
        /// The graph's name
        #[arg(value_name = "IRI")]
        name: String,
        /// The name of the copy; without it the graph is a stored one from now on
        #[arg(long, value_name = "IRI")]
        into: Option<String>,
        /// Memory to use at most
        #[arg(long, value_name = "BYTES", default_value = "4G")]
        memory: Bytes,
    },
}

/// Whose prefixes they are.
#[derive(Args)]
pub(crate) struct PrefixPlace {
    /// The database's directory
    #[arg(long = "db", value_name = "DIR", required_unless_present = "server")]
    pub(crate) directory: Option<PathBuf>,
    /// Those of a running server's database instead, such as http://127.0.0.1:7878
    #[arg(long, value_name = "URL", conflicts_with = "directory")]
    pub(crate) server: Option<String>,
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
    /// Read so much at most, such as 8G; what memory is available if not given
    #[arg(long, value_name = "BYTES")]
    pub(crate) memory: Option<Bytes>,
}

#[derive(Args)]
pub(crate) struct CompactArguments {
    /// The database's directory
    #[arg(long = "db", value_name = "DIR", required_unless_present = "server")]
    pub(crate) directory: Option<PathBuf>,
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

#[derive(Subcommand)]
pub(crate) enum BenchSuite {
    /// Berlin SPARQL Benchmark: data, queries, driver
    #[command(subcommand)]
    Bsbm(BsbmCommand),
    /// Load, size, open, point query, explore queries and count, against their bars
    Store(StoreBenchArguments),
    /// The least that a request costs: point queries over one kept connection
    Floor(FloorArguments),
    /// Transactions over HTTP, updates beside queries, opening after a kill, against their bars
    Update(UpdateBenchArguments),
    /// Readers and writers while checkpoints, compactions and bulk loads run: no failure, no wrong answer
    SoakUpdates(SoakArguments),
    /// The first queries when nothing of a database with BSBM data is in memory, against the same warm
    Cold(ColdArguments),
    /// Ours and another store, side by side on the same data, answers compared
    Compare(CompareArguments),
    /// The same data as triples and as DuckDB's tables, asked the same in SPARQL and SQL, answers compared
    Relational(RelationalArguments),
    /// How far the planner's estimates are from what its plans find
    Estimates(EstimatesArguments),
    /// TPC-H on tables: load, answers, power test, throughput test
    Tpch(TpchArguments),
    /// The lab of physical designs: TPC-H Q9 on five layouts of the data, as columns and as rows, with vectors of three sizes
    Vectors(VectorsArguments),
}

#[derive(Args)]
pub(crate) struct VectorsArguments {
    /// Scale factor: 1 stands for about 1 GB of text, and takes 6 GB of memory
    #[arg(long, value_name = "N", default_value = "0.1")]
    pub(crate) scale: Scale,
    /// Folder with the right answers, of which q09.csv is read; without it SQL's answer alone is believed
    #[arg(long, value_name = "DIR")]
    pub(crate) answers: Option<PathBuf>,
    /// Threads of each run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
    /// How often each cell is run; the quickest counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
    /// The time of a cell, all its runs together; where none of them ends within it, the table says so
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) cell_limit: Seconds,
    /// Memory of the engine that answers as SQL
    #[arg(long, value_name = "SIZE", default_value = "4G")]
    pub(crate) memory: Bytes,
    /// Where files and database are made
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
    /// Also write the table into this document, between `<!-- vectors SCALE -->` and
    /// `<!-- end of vectors SCALE -->`
    #[arg(long, value_name = "FILE")]
    pub(crate) document: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct TpchArguments {
    /// Scale factor: 1 stands for about 1 GB of text
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) scale: Scale,
    /// Folder with the right answers, q01.csv to q22.csv; without it they are not looked at
    #[arg(long, value_name = "DIR")]
    pub(crate) answers: Option<PathBuf>,
    /// Streams of the throughput test; as many as the specification asks for if not given, 0 leaves the test out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100))]
    pub(crate) streams: Option<u32>,
    /// Threads of the engine
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) threads: usize,
    /// Memory of the engine
    #[arg(long, value_name = "SIZE", default_value = "8G")]
    pub(crate) memory: Bytes,
    /// Where files and database are kept
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct EstimatesArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    /// The database has the BSBM data set of so many products: ask its queries too
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub(crate) products: Option<u32>,
    /// Sets of parameters of each BSBM query
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) sets: u32,
    /// Graph patterns drawn from the data by random walks
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub(crate) patterns: u32,
    /// The same seed draws the same parameters and patterns
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Queries that take longer are left out
    #[arg(long, value_name = "TIME", default_value = "20s")]
    pub(crate) timeout: Seconds,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct ColdArguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    /// How often each way to begin is measured
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) rounds: u32,
    /// The same seed draws the same parameters
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Another build of this program, measured in turn with this one
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) against: Option<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct CompareArguments {
    /// The other store: a script of this name in the folder of peers sets it up; `duckdb` for TPC-H on tables
    #[arg(long, value_name = "NAME", default_value = "virtuoso")]
    pub(crate) peer: String,
    /// Folder with the peers' scripts
    #[arg(long, value_name = "DIR", default_value = "bench/peers")]
    pub(crate) peers: PathBuf,
    /// Query mixes of the explore queries
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) mixes: u32,
    /// With duckdb: TPC-H's scale factor
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) scale: Scale,
    /// With duckdb: how often each query is asked of both; the quickest run counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
    /// With duckdb: threads, at both
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) threads: usize,
    /// With duckdb: memory of our engine
    #[arg(long, value_name = "SIZE", default_value = "8G")]
    pub(crate) memory: Bytes,
    /// Also write the table into this document, between `<!-- compare NAME -->` and
    /// `<!-- end of compare NAME -->`
    #[arg(long, value_name = "FILE")]
    pub(crate) document: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreBenchArguments,
}

#[derive(Args)]
pub(crate) struct RelationalArguments {
    /// The script that runs DuckDB
    #[arg(long, value_name = "FILE", default_value = "bench/peers/relational.py")]
    pub(crate) script: PathBuf,
    /// How often each question is asked; the quickest run counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
    /// Threads of one query, at both
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) threads: usize,
    /// Also write the table into this document, between `<!-- relational -->` and
    /// `<!-- end of relational -->`
    #[arg(long, value_name = "FILE")]
    pub(crate) document: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreBenchArguments,
}

#[derive(Subcommand)]
pub(crate) enum BsbmCommand {
    /// Write the data set as N-Triples
    Generate(GenerateArguments),
    /// Run the explore queries against an endpoint
    Explore(ExploreArguments),
}

#[derive(Args)]
pub(crate) struct GenerateArguments {
    /// Number of products: 2,785 give a million triples, 28,482 ten million
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub(crate) products: u32,
    /// The same seed gives the same data
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Write here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct ExploreArguments {
    /// Address of the SPARQL endpoint
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:7878/sparql"
    )]
    pub(crate) endpoint: String,
    /// Query mixes to run
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) mixes: u32,
    /// Query mixes to run first, unmeasured
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) warm_up: u32,
    /// The same seed draws the same parameters
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct FloorArguments {
    /// Directory of a database of BSBM data, which is served for the measurement
    #[arg(
        long = "db",
        value_name = "DIR",
        required_unless_present = "endpoint",
        conflicts_with = "endpoint"
    )]
    pub(crate) directory: Option<PathBuf>,
    /// Address of a SPARQL endpoint with BSBM data
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// Requests to measure
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) requests: u32,
    /// Endless queries that run beside them meanwhile
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000))]
    pub(crate) heavy: u32,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct UpdateBenchArguments {
    /// Number of products of the BSBM data set
    #[arg(long, value_name = "N", default_value_t = 2_785, value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub(crate) products: u32,
    /// Seconds that each rate is measured
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) seconds: u64,
    /// Query mixes to run with and without updates
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) mixes: u32,
    /// Measure only this part, or several such parts; all if not given
    #[arg(long = "part", value_enum, value_name = "PART")]
    pub(crate) parts: Vec<UpdateBenchPart>,
    /// Where data and databases are made: what is measured is the disk below
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Args)]
pub(crate) struct SoakArguments {
    /// For how long
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(crate) seconds: u64,
    /// Clients that query
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) readers: u32,
    /// Clients that transfer
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) writers: u32,
    /// Where the database is made
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum UpdateBenchPart {
    /// Rates and times of transactions, and opening after a kill
    Transactions,
    /// The explore queries beside updates
    Mix,
    /// Queries over changes that are not compacted yet
    Reading,
}

impl From<UpdateBenchPart> for orrery_bench::drivers::UpdatePart {
    fn from(part: UpdateBenchPart) -> Self {
        match part {
            UpdateBenchPart::Transactions => Self::Transactions,
            UpdateBenchPart::Mix => Self::Mix,
            UpdateBenchPart::Reading => Self::Reading,
        }
    }
}

#[derive(Args)]
pub(crate) struct StoreBenchArguments {
    /// Number of products
    #[arg(long, value_name = "N", default_value_t = 28_482, value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub(crate) products: u32,
    /// Where data and database are kept between runs
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) report: ReportFormat,
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
    /// The directory of the new database; it must be missing or empty
    #[arg(long = "db", value_name = "DIR", required_unless_present = "list")]
    pub(crate) directory: Option<PathBuf>,
    /// Number of the backup; the last one if not given
    #[arg(long, value_name = "N")]
    pub(crate) number: Option<u64>,
    /// Show which backups there are
    #[arg(long, conflicts_with_all = ["directory", "number"])]
    pub(crate) list: bool,
}
