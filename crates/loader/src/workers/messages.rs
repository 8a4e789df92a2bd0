//! The messages between coordinator and workers, as JSON in frames.

use crate::error::{LoadOption, SyntaxError};
use crate::excerpt::Excerpt;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a worker is asked for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Task {
    Parse(ParseRequest),
    Sort(SortRequest),
}

/// Parse these pieces into batches.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ParseRequest {
    pub(super) graph: Option<String>,
    pub(super) skip_errors: bool,
    #[serde(default)]
    pub(super) lenient_iris: bool,
    pub(super) literal_bytes_max: usize,
    /// What a parser of a document may hold without making a statement of it.
    pub(super) statement_bytes: usize,
    /// A batch that reaches this size ends.
    pub(super) batch_bytes: usize,
    pub(super) pieces: Vec<Piece>,
}

/// A piece of the sources.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Piece {
    /// The number of its file among all sources: the scope of its blank nodes.
    pub(super) file_number: u32,
    /// What it is called in messages.
    pub(super) name: String,
    /// The short name of its format.
    pub(super) format: String,
    pub(super) base_iri: Option<String>,
    pub(super) input: PieceInput,
}

/// Where the text of a piece is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum PieceInput {
    /// In a file of this length, perhaps compressed, which the worker reads; whole lines of it
    /// where a range is given.
    File {
        path: PathBuf,
        bytes: u64,
        range: Option<(u64, u64)>,
    },
    /// In the request's text: so many bytes, whole lines from this number on.
    Lines { first_line: u64, bytes: u64 },
    /// In the request's text: a whole document of so many bytes, not compressed.
    Document { bytes: u64 },
}

/// Sort these rows: each a number of so many bytes, little-endian.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SortRequest {
    pub(super) rows: u64,
    pub(super) row_bytes: usize,
}

/// What all batches of a parse held together.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ParseEnd {
    pub(super) quads: u64,
    /// Wrong statements that were left out.
    pub(super) errors: u64,
    /// The first of them.
    pub(super) told: Vec<ToldError>,
    /// Statements of JSON-LD that were left out, and what is said of them.
    pub(super) left_out: u64,
    pub(super) warnings: Vec<String>,
    pub(super) has_named_graphs: bool,
    pub(super) language_tags: Vec<String>,
    /// Number of the file, name, IRI.
    pub(super) prefixes: Vec<(u32, String, String)>,
}

/// How many rows a sort gave.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SortEnd {
    pub(super) rows: u64,
}

/// Why there is no answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Failure {
    /// A statement is wrong.
    Syntax(ToldError),
    /// A statement is too long.
    TooLong {
        piece: usize,
        line: u64,
        bytes_max: usize,
    },
    /// Anything else: another may be able to do it.
    Unable(String),
}

/// A wrong statement.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ToldError {
    /// Of which piece of the request.
    pub(super) piece: usize,
    line: Option<u64>,
    column: Option<u64>,
    text: String,
    message: String,
    mend: Option<String>,
    excerpt: Option<(String, usize, usize)>,
    /// `base`, or the short name of a format.
    option: Option<String>,
}

/// The name of [`LoadOption::LenientIris`] in a message.
const LENIENT_IRIS: &str = "lenient-iris";
/// The name of [`LoadOption::Base`] in a message.
const BASE: &str = "base";

impl ToldError {
    pub(super) fn of(piece: usize, error: SyntaxError) -> Self {
        Self {
            piece,
            line: error.line,
            column: error.column,
            text: error.text,
            message: error.message,
            mend: error.mend,
            excerpt: error
                .excerpt
                .map(|excerpt| (excerpt.text, excerpt.before, excerpt.width)),
            option: error.option.map(|option| match option {
                LoadOption::Base => BASE.to_owned(),
                LoadOption::LenientIris => LENIENT_IRIS.to_owned(),
                LoadOption::Format(format) => format.short_name().to_owned(),
            }),
        }
    }

    /// The error of a source of this name; what the source looks like is for the coordinator to
    /// say.
    pub(super) fn into_error(self, name: &str) -> SyntaxError {
        let option = self.option.as_deref().and_then(|option| match option {
            BASE => Some(LoadOption::Base),
            LENIENT_IRIS => Some(LoadOption::LenientIris),
            format => format.parse().ok().map(LoadOption::Format),
        });
        SyntaxError {
            line: self.line,
            column: self.column,
            text: self.text,
            message: self.message,
            mend: self.mend,
            excerpt: self.excerpt.map(|(text, before, width)| Excerpt {
                text,
                before,
                width,
            }),
            option,
            ..SyntaxError::new(name, "")
        }
    }
}
