//! What can be said on the command line. The names are fixed by the founding design:
//! tools and checks rely on them.

mod access;
mod bench;
mod cluster;
mod common;
mod database;
mod limit;
mod named;
mod queries;
mod query;
mod query_log;
mod report;
mod serve;
mod vouching;
mod watching;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use access::{
    AccessPlace, GrantCommand, GroupCommand, KeyCommand, PasswordArguments, RightArgument,
    TargetArguments, UserCommand, WhomArguments,
};
pub(crate) use bench::BenchArguments;
pub(crate) use cluster::{ClusterArguments, ClusterCommand};
pub(crate) use common::{CacheArguments, DatabaseArgument, ReportFormat};
pub(crate) use database::{
    BackupArguments, CompactArguments, DumpArguments, LoadArguments, LogArguments,
    RestoreArguments, StatsArguments, VerifyArguments, WarmArguments,
};
pub(crate) use limit::{LimitArguments, LimitCommand, LimitedArguments};
pub(crate) use named::{MappingCommand, PrefixCommand, PrefixPlace, TextCommand};
pub(crate) use queries::QueriesCommand;
pub(crate) use query::{
    EndpointArguments, ExplainArguments, LoadSourceArguments, QueryArguments, QueryText,
    SqlArguments, UpdateArguments,
};
pub(crate) use report::{BillArguments, BillFormat, ReportCommand, UsageArguments, UsageFormat};
pub(crate) use serve::{DemoArguments, ServeArguments, ServerArguments};

/// A knowledge-graph database: billions of RDF statements, asked in SPARQL.
#[derive(Parser)]
#[command(name = "orrery", version, propagate_version = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Log more (on standard error; ORRERY_LOG=filter for detail)
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
    /// How lines of the log look: text for people, or JSON, one object a line, for programs
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

/// How lines of the log look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
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
    /// The nodes of a cluster: status, add, remove
    #[command(subcommand)]
    Cluster(ClusterCommand),
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
    /// The users of a database: add, list, password, lock, unlock, promote, demote, remove
    #[command(subcommand)]
    User(UserCommand),
    /// Groups of users: add, list, join, leave, remove
    #[command(subcommand)]
    Group(GroupCommand),
    /// Keys that let programs in: add, list, remove
    #[command(subcommand)]
    Key(KeyCommand),
    /// Who may do what with which graphs and tables: add, list, remove
    #[command(subcommand)]
    Grant(GrantCommand),
    /// How much somebody may use: set, list, remove
    #[command(subcommand)]
    Limit(LimitCommand),
    /// What a server runs now: list, kill
    #[command(subcommand)]
    Queries(QueriesCommand),
    /// Graphs out of tables, by R2RML or the Direct Mapping: add, list, show, drop, copy
    #[command(subcommand)]
    Mapping(MappingCommand),
    /// The index of texts, for searches: create, list, rebuild, drop
    #[command(subcommand)]
    Text(TextCommand),
    /// What a server was asked, from its query log
    #[command(subcommand)]
    Report(ReportCommand),
    /// What each user used on each day, from a server's query log: requests, time, rows, bytes, touches
    Usage(BillArguments),
    /// Generate data and measure, by the program orrery-bench
    Bench(BenchArguments),
    /// Generate a data set, load it, serve it, print the address
    Demo(DemoArguments),
}
