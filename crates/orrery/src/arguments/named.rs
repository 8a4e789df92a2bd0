//! Commands about what a database has beside its data: prefixes, mapped graphs, an index of texts.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::common::{CacheArguments, DatabaseArgument, ReportFormat};
use crate::units::Bytes;

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
        /// What relative IRIs are resolved against; if not given, what the mapping's text says, else the address of its file, with --tables the
        /// graph's name
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

/// What to do with the index of texts.
#[derive(Subcommand)]
pub(crate) enum TextCommand {
    /// Make an index of the texts of literals, in place of the one that there is; without a server, nobody may write the database meanwhile
    Create {
        #[command(flatten)]
        place: PrefixPlace,
        /// Only literals that stand in a quad with this predicate; may be given several times
        #[arg(long = "property", value_name = "IRI")]
        properties: Vec<String>,
        /// Only literals of subjects that have this class by rdf:type, in any graph; may be given several times
        #[arg(long = "class", value_name = "IRI")]
        classes: Vec<String>,
        /// Only literals that stand in a quad in this graph; "" for the default graph; may be given several times
        #[arg(long = "graph", value_name = "IRI")]
        graphs: Vec<String>,
        /// Only literals in this language, with its regions; "" for those without a language; may be given several times
        #[arg(long = "language", value_name = "TAG")]
        languages: Vec<String>,
        /// With every three characters of each text, so that CONTAINS, REGEX, STRSTARTS and STRENDS look few literals up instead of reading all;
        /// makes the index larger
        #[arg(long)]
        grams: bool,
        /// Memory to use at most; a server takes a part of its own
        #[arg(long, value_name = "BYTES", default_value = "512M")]
        memory: Bytes,
    },
    /// Which literals are in the index, how many, and how many bytes it takes
    #[command(visible_alias = "stats")]
    List {
        #[command(flatten)]
        place: PrefixPlace,
        /// How to report
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
    },
    /// Make the index anew, of the same literals; without a server, nobody may write the database meanwhile
    Rebuild {
        #[command(flatten)]
        place: PrefixPlace,
        /// Memory to use at most; a server takes a part of its own
        #[arg(long, value_name = "BYTES", default_value = "512M")]
        memory: Bytes,
    },
    /// Give the index up; without a server, nobody may write the database meanwhile
    Drop {
        #[command(flatten)]
        place: PrefixPlace,
    },
}

/// Whose prefixes they are, or whose index of texts.
#[derive(Args)]
pub(crate) struct PrefixPlace {
    /// The database's directory, or its address in an object store, such as s3://bucket/prefix
    #[arg(
        long = "db",
        value_name = "DIR|URL",
        required_unless_present = "server"
    )]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheArguments,
    /// Those of a running server's database instead, such as http://127.0.0.1:7878
    #[arg(long, value_name = "URL", conflicts_with = "directory")]
    pub(crate) server: Option<String>,
}
