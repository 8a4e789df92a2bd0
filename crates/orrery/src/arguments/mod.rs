//! The command line of `orrery`: its commands and their arguments. The names are fixed by the
//! founding design: tools and checks rely on them.

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

/// A knowledge-graph database: billions of RDF statements, queried in SPARQL and SQL.
#[derive(Parser)]
#[command(name = "orrery", version, propagate_version = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Log more detail on standard error; ORRERY_LOG sets a filter
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
    /// Format of log lines: text, or one JSON object per line
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Bulk load RDF files into a database, which is created if missing
    Load(LoadArguments),
    /// Run a SPARQL query
    Query(QueryArguments),
    /// Run a SPARQL update
    Update(UpdateArguments),
    /// Run SQL statements, or start a SQL shell
    Sql(SqlArguments),
    /// Show the plan of a SPARQL query
    Explain(ExplainArguments),
    /// Serve a database over HTTP, with a console; PostgreSQL and Flight SQL if asked for
    Serve(ServeArguments),
    /// Manage nodes of a cluster: status, add, remove
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Write all quads to a file or standard output
    Dump(DumpArguments),
    /// List commits, the newest first
    Log(LogArguments),
    /// Show statistics of a database: counts, predicates, bytes
    Stats(StatsArguments),
    /// Verify all checksums of a database
    Verify(VerifyArguments),
    /// Read a database into the file cache, so that first queries need no disk
    Warm(WarmArguments),
    /// Compact a database: merge changes into the base files
    Compact(CompactArguments),
    /// Back up a database, also a running one, to a directory or S3
    Backup(BackupArguments),
    /// Restore a database from a backup
    Restore(RestoreArguments),
    /// Manage predeclared prefixes: list, add, remove
    #[command(subcommand)]
    Prefix(PrefixCommand),
    /// Manage users: add, list, password, lock, unlock, promote, demote, remove
    #[command(subcommand)]
    User(UserCommand),
    /// Manage groups of users: add, list, join, leave, remove
    #[command(subcommand)]
    Group(GroupCommand),
    /// Manage API keys: add, list, remove
    #[command(subcommand)]
    Key(KeyCommand),
    /// Manage rights on graphs and tables: add, list, remove
    #[command(subcommand)]
    Grant(GrantCommand),
    /// Manage limits of users, groups and keys: set, list, remove
    #[command(subcommand)]
    Limit(LimitCommand),
    /// Manage running queries of a server: list, kill
    #[command(subcommand)]
    Queries(QueriesCommand),
    /// Manage graphs mapped from tables: add, list, show, drop, materialize
    #[command(subcommand)]
    Mapping(MappingCommand),
    /// Manage the full-text index: create, list, rebuild, drop
    #[command(subcommand)]
    Text(TextCommand),
    /// Report on a server's query log
    #[command(subcommand)]
    Report(ReportCommand),
    /// Sum up usage per user and day from a server's query log
    Usage(BillArguments),
    /// Generate benchmark data and measure, by the program orrery-bench
    Bench(BenchArguments),
    /// Generate a data set, load it and serve it
    Demo(DemoArguments),
}
