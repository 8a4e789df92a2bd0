//! Result formats: from decoded terms to bytes.
//!
//! Every serializer appends to a `Vec<u8>` that its caller owns and empties: the
//! server cuts it into chunks for a bounded channel, the command line writes it
//! to standard output. So memory is bounded by one batch of rows, whatever the
//! size of the answer, and no serializer needs to know about sockets; only Arrow and Parquet
//! keep rows in a temporary file until the types of their columns are known.
//!
//! ```text
//! SELECT, ASK         SolutionFormat   SolutionSerializer   start, row*, finish+
//! CONSTRUCT, DESCRIBE, dump  GraphFormat   GraphSerializer   triple* or quad*, finish
//! SQL                 TableFormat      TableSerializer      start, rows*, finish
//! ```
//!
//! Blank nodes are written as `b<number>`. Terms are written exactly as they are
//! stored, with one exception that XML forces (see `solutions`).

mod columnar;
mod graph;
mod json;
mod rdf_xml;
mod rows;
mod solutions;
mod table;
mod tables;
mod text;
mod turtle;

pub use graph::GraphSerializer;
pub use json::write_string as write_json_text;
pub use solutions::SolutionSerializer;
pub use tables::write_json_value;
pub use tables::{TableFormat, TableSerializer};

/// Why an answer could not be written in the chosen format.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The format has no way to write this statement, e.g. a predicate IRI that
    /// is no XML name in RDF/XML, or a named graph in Turtle.
    #[error("{format} cannot express this result: {reason}; ask for another format")]
    Inexpressible {
        /// Name of the format.
        format: &'static str,
        /// What stood in the way.
        reason: String,
    },
    /// Rows could not be kept until the types of their columns are known.
    #[error("cannot keep the rows of the answer in {}: {message}; make room there, or ask for a format that needs none", directory.display())]
    Spill {
        /// Where they were to be kept.
        directory: std::path::PathBuf,
        /// What went wrong.
        message: String,
    },
    /// Columns could not be written.
    #[error("cannot write the columns of the answer: {message}; ask for another format")]
    Columns {
        /// What went wrong.
        message: String,
    },
}

/// A format for the solutions of SELECT and the boolean of ASK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SolutionFormat {
    /// SPARQL 1.1 Query Results JSON.
    Json,
    /// SPARQL Query Results XML.
    Xml,
    /// SPARQL 1.1 Query Results CSV: values without their types.
    Csv,
    /// SPARQL 1.1 Query Results TSV: terms in Turtle syntax.
    Tsv,
    /// Apache Arrow IPC, streaming format: typed columns (docs/formats.md).
    Arrow,
    /// Apache Parquet: typed columns.
    Parquet,
    /// Aligned columns for people at a terminal.
    Table,
}

impl SolutionFormat {
    /// All formats, the server's favourite first.
    pub const ALL: [Self; 7] = [
        Self::Json,
        Self::Xml,
        Self::Csv,
        Self::Tsv,
        Self::Arrow,
        Self::Parquet,
        Self::Table,
    ];

    /// The name for `--format` and `?format=`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Xml => "xml",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
            Self::Table => "table",
        }
    }

    /// The format of this name or file extension.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| {
            name.eq_ignore_ascii_case(format.name())
                || name.eq_ignore_ascii_case(format.file_extension())
        })
    }

    /// Media types under which a client may ask for this format, its own first.
    pub const fn media_types(self) -> &'static [&'static str] {
        match self {
            Self::Json => &["application/sparql-results+json", "application/json"],
            Self::Xml => &[
                "application/sparql-results+xml",
                "application/xml",
                "text/xml",
            ],
            Self::Csv => &["text/csv"],
            Self::Tsv => &["text/tab-separated-values"],
            Self::Arrow => &["application/vnd.apache.arrow.stream"],
            Self::Parquet => &["application/vnd.apache.parquet"],
            // Not negotiated: a browser that takes text/plain wants the data, not a drawing of it.
            Self::Table => &[],
        }
    }

    /// File extension, without the dot.
    pub const fn file_extension(self) -> &'static str {
        match self {
            Self::Json => "srj",
            Self::Xml => "srx",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Arrow => "arrows",
            Self::Parquet => "parquet",
            Self::Table => "txt",
        }
    }

    /// Whether it is not text, so that a terminal is no place for it.
    pub const fn is_binary(self) -> bool {
        matches!(self, Self::Arrow | Self::Parquet)
    }
}

/// A format for triples and quads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GraphFormat {
    /// Turtle.
    Turtle,
    /// N-Triples.
    NTriples,
    /// N-Quads.
    NQuads,
    /// TriG.
    TriG,
    /// RDF/XML.
    RdfXml,
    /// JSON-LD 1.1, in expanded form.
    JsonLd,
}

impl GraphFormat {
    /// All formats, the server's favourite first.
    pub const ALL: [Self; 6] = [
        Self::Turtle,
        Self::NTriples,
        Self::RdfXml,
        Self::JsonLd,
        Self::NQuads,
        Self::TriG,
    ];

    /// Those that hold named graphs, the server's favourite first.
    pub const WITH_GRAPHS: [Self; 3] = [Self::TriG, Self::NQuads, Self::JsonLd];

    /// The format of this name, if it holds named graphs.
    pub fn from_name_with_graphs(name: &str) -> Option<Self> {
        Self::from_name(name).filter(|format| format.has_named_graphs())
    }

    /// The name for `--format` and `?format=`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Turtle => "turtle",
            Self::NTriples => "ntriples",
            Self::NQuads => "nquads",
            Self::TriG => "trig",
            Self::RdfXml => "rdfxml",
            Self::JsonLd => "jsonld",
        }
    }

    /// The format of this name or file extension, the same names as `orrery load --format` takes.
    /// `json` and `xml` mean JSON-LD and RDF/XML here, so that one `--format json` fits every kind
    /// of query.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "ttl" | "turtle" => Self::Turtle,
            "nt" | "ntriples" | "n-triples" => Self::NTriples,
            "nq" | "nquads" | "n-quads" => Self::NQuads,
            "trig" => Self::TriG,
            "rdf" | "rdfxml" | "rdf/xml" | "xml" | "owl" => Self::RdfXml,
            "jsonld" | "json-ld" | "json" => Self::JsonLd,
            _ => return None,
        })
    }

    /// Media types under which a client may ask for this format, its own first.
    pub const fn media_types(self) -> &'static [&'static str] {
        match self {
            Self::Turtle => &["text/turtle", "application/x-turtle"],
            Self::NTriples => &["application/n-triples"],
            Self::NQuads => &["application/n-quads"],
            Self::TriG => &["application/trig"],
            Self::RdfXml => &["application/rdf+xml", "application/xml", "text/xml"],
            Self::JsonLd => &["application/ld+json", "application/json"],
        }
    }

    /// File extension, without the dot.
    pub const fn file_extension(self) -> &'static str {
        match self {
            Self::Turtle => "ttl",
            Self::NTriples => "nt",
            Self::NQuads => "nq",
            Self::TriG => "trig",
            Self::RdfXml => "rdf",
            Self::JsonLd => "jsonld",
        }
    }

    /// True if named graphs can be written.
    pub const fn has_named_graphs(self) -> bool {
        match self {
            Self::NQuads | Self::TriG | Self::JsonLd => true,
            Self::Turtle | Self::NTriples | Self::RdfXml => false,
        }
    }
}

/// All names of formats for solutions, for messages: `json, xml, csv, tsv, arrow, parquet, table`.
pub fn solution_format_names() -> String {
    SolutionFormat::ALL.map(SolutionFormat::name).join(", ")
}

/// The names of formats that hold named graphs, for messages.
pub fn dataset_format_names() -> String {
    GraphFormat::WITH_GRAPHS
        .map(GraphFormat::file_extension)
        .join(", ")
}

/// All names of formats for graphs, for messages: `ttl, nt, rdf, jsonld, nq, trig`.
pub fn graph_format_names() -> String {
    GraphFormat::ALL.map(GraphFormat::file_extension).join(", ")
}

#[cfg(test)]
mod tests;
