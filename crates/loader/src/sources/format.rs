//! The RDF formats that can be loaded, and their names.

use crate::sources::decompress::Compression;
use std::path::Path;
use std::str::FromStr;

/// A syntax of RDF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One triple a line.
    NTriples,
    /// One quad a line.
    NQuads,
    /// Turtle.
    Turtle,
    /// Turtle with named graphs.
    TriG,
    /// RDF/XML.
    RdfXml,
    /// JSON-LD.
    JsonLd,
}

impl Format {
    /// The format that a file name tells, below endings such as `.gz`.
    pub fn from_path(path: &Path) -> Option<Self> {
        let mut name = Path::new(path.file_name()?);
        if Compression::from_extension(name).is_some() {
            name = Path::new(name.file_stem()?);
        }
        let extension = name.extension()?.to_str()?;
        // Most files of JSON are no JSON-LD.
        let is_json = extension.eq_ignore_ascii_case("json");
        (!is_json).then(|| extension.parse().ok())?
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::NTriples => "N-Triples",
            Self::NQuads => "N-Quads",
            Self::Turtle => "Turtle",
            Self::TriG => "TriG",
            Self::RdfXml => "RDF/XML",
            Self::JsonLd => "JSON-LD",
        }
    }

    /// Its short name, as `--format` and [`Format::from_str`] take it.
    pub fn short_name(self) -> &'static str {
        match self {
            Self::NTriples => "nt",
            Self::NQuads => "nq",
            Self::Turtle => "ttl",
            Self::TriG => "trig",
            Self::RdfXml => "rdf",
            Self::JsonLd => "jsonld",
        }
    }

    /// Whether a statement stands on one line, so that the input can be cut at line ends.
    pub fn is_line_based(self) -> bool {
        match self {
            Self::NTriples | Self::NQuads => true,
            Self::Turtle | Self::TriG | Self::RdfXml | Self::JsonLd => false,
        }
    }
}

/// No such format: the name is none of those that [`Format::from_str`] knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format '{0}': expected nt, nq, ttl, trig, rdf or jsonld")]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        match name.to_ascii_lowercase().as_str() {
            "nt" | "ntriples" | "n-triples" => Ok(Self::NTriples),
            "nq" | "nquads" | "n-quads" => Ok(Self::NQuads),
            "ttl" | "turtle" => Ok(Self::Turtle),
            "trig" => Ok(Self::TriG),
            "rdf" | "xml" | "owl" | "rdfxml" | "rdf/xml" => Ok(Self::RdfXml),
            "jsonld" | "json-ld" | "json" => Ok(Self::JsonLd),
            _ => Err(UnknownFormat(name.to_owned())),
        }
    }
}
