//! Arguments of `orrery prefix`, `mapping` and `text`: the parts of a database beside its data.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::common::{CacheArguments, DatabaseArgument, ReportFormat};
use crate::units::Bytes;

/// What to do with prefixes.
#[derive(Subcommand)]
pub(crate) enum PrefixCommand {
    /// List prefixes and their origin
    List {
        #[command(flatten)]
        place: PrefixPlace,
        /// Output format
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },
    /// Add a prefix to the database
    Add {
        #[command(flatten)]
        place: PrefixPlace,
        /// Name of the prefix, with or without the colon
        #[arg(value_name = "NAME")]
        name: String,
        /// IRI that the prefix stands for
        #[arg(value_name = "IRI")]
        iri: String,
        /// Replace an existing prefix; queries that use it then mean the new IRI
        #[arg(long)]
        replace: bool,
    },
    /// Remove a prefix that was added, or that a loaded file declared
    Remove {
        #[command(flatten)]
        place: PrefixPlace,
        /// Name of the prefix, with or without the colon
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// What to do with mapped graphs.
#[derive(Subcommand)]
pub(crate) enum MappingCommand {
    /// Map tables to a graph; queries see its triples, nothing is copied
    Add {
        #[command(flatten)]
        database: DatabaseArgument,
        /// IRI of the graph
        #[arg(value_name = "IRI")]
        name: String,
        /// File with an R2RML mapping in Turtle; - for standard input
        #[arg(long, short, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Schema whose tables are mapped by the Direct Mapping instead; public if no name is given
        #[arg(long, value_name = "SCHEMA", num_args = 0..=1, default_missing_value = "public", conflicts_with = "file")]
        tables: Option<String>,
        /// Base IRI for relative IRIs of the mapping. If not given: @base of the mapping, else the
        /// file's address; with --tables the graph's IRI
        #[arg(long, value_name = "IRI")]
        base: Option<String>,
    },
    /// List mapped graphs
    List {
        #[command(flatten)]
        database: DatabaseArgument,
    },
    /// Print the mapping of a graph
    Show {
        #[command(flatten)]
        database: DatabaseArgument,
        /// IRI of the graph
        #[arg(value_name = "IRI")]
        name: String,
    },
    /// Drop a mapped graph; its tables remain
    Drop {
        #[command(flatten)]
        database: DatabaseArgument,
        /// IRI of the graph
        #[arg(value_name = "IRI")]
        name: String,
    },
    /// Store the triples of a mapped graph as quads, in place or as a copy
    Materialize {
        #[command(flatten)]
        database: DatabaseArgument,
        /// IRI of the graph
        #[arg(value_name = "IRI")]
        name: String,
        /// IRI of the copy; if not given, the mapped graph becomes a stored graph
        #[arg(long, value_name = "IRI")]
        into: Option<String>,
        /// Memory limit
        #[arg(long, value_name = "BYTES", default_value = "4G")]
        memory: Bytes,
    },
}

/// What to do with the index of texts.
#[derive(Subcommand)]
pub(crate) enum TextCommand {
    /// Create the full-text index, replacing an existing one. With --db no other process may write
    /// the database meanwhile
    Create {
        #[command(flatten)]
        place: PrefixPlace,
        /// Index only literals with this predicate; may be repeated
        #[arg(long = "property", value_name = "IRI")]
        properties: Vec<String>,
        /// Index only literals of subjects of this class (rdf:type, in any graph); may be repeated
        #[arg(long = "class", value_name = "IRI")]
        classes: Vec<String>,
        /// Index only literals in this graph; "" for the default graph; may be repeated
        #[arg(long = "graph", value_name = "IRI")]
        graphs: Vec<String>,
        /// Index only literals in this language and its regions; "" for no language; may be
        /// repeated
        #[arg(long = "language", value_name = "TAG")]
        languages: Vec<String>,
        /// Index trigrams too, which speed up CONTAINS, REGEX, STRSTARTS and STRENDS; the index
        /// grows
        #[arg(long)]
        grams: bool,
        /// Memory limit; a server uses a part of its own --memory instead
        #[arg(long, value_name = "BYTES", default_value = "512M")]
        memory: Bytes,
    },
    /// Show what the full-text index holds, and its size
    #[command(visible_alias = "stats")]
    List {
        #[command(flatten)]
        place: PrefixPlace,
        /// Output format
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },
    /// Rebuild the full-text index with the same settings. With --db no other process may write the
    /// database meanwhile
    Rebuild {
        #[command(flatten)]
        place: PrefixPlace,
        /// Memory limit; a server uses a part of its own --memory instead
        #[arg(long, value_name = "BYTES", default_value = "512M")]
        memory: Bytes,
    },
    /// Drop the full-text index. With --db no other process may write the database meanwhile
    Drop {
        #[command(flatten)]
        place: PrefixPlace,
    },
}

/// Whose prefixes they are, or whose index of texts.
#[derive(Args)]
pub(crate) struct PrefixPlace {
    /// Directory of the database, or its address in an object store, such as s3://bucket/prefix
    #[arg(
        long = "db",
        value_name = "DIR|URL",
        required_unless_present = "server"
    )]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheArguments,
    /// Address of a running server instead, such as http://127.0.0.1:7878
    #[arg(long, value_name = "URL", conflicts_with = "directory")]
    pub(crate) server: Option<String>,
}
