//! The errors of a load, by what the caller can do about them.

use crate::excerpt::{Excerpt, shown, shown_character};
use crate::sources::format::Format;
use crate::sources::looks::LooksLike;
use orrery_storage::{ByteCount, reason};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Offending text longer than this is cut in messages.
const SHOWN_CHARACTERS_MAX: usize = 60;

/// The reason why a load failed. The database is then as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A source is not there.
    #[error("cannot load {}: no such file; check the path", path.display())]
    NoSuchFile {
        /// The missing file.
        path: PathBuf,
    },
    /// A source is a directory.
    #[error("cannot load {}: it is a directory; name the files in it, or load all below it with --recursive", path.display())]
    IsDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// The operating system refuses access to a source.
    #[error("cannot load {}: permission denied; run as a user who may read it", path.display())]
    NoPermission {
        /// The refused file.
        path: PathBuf,
    },
    /// Neither the name of a source nor an option tells its format.
    #[error("cannot load {name}: its format is unknown; {}", format_advice(*looks_like))]
    UnknownFormat {
        /// The source.
        name: String,
        /// What it looks like.
        looks_like: Option<Format>,
    },
    /// A source holds no text of RDF.
    #[error("cannot load {name}: {what}")]
    NoRdf {
        /// The source.
        name: String,
        /// What it is, and what to do about it.
        what: &'static str,
    },
    /// Reading or decompressing a source failed.
    #[error("cannot load {name}: {}", reason(source))]
    Input {
        /// The source.
        name: String,
        /// What happened; for damaged compressed data also what to do.
        source: io::Error,
    },
    /// A statement is wrong.
    #[error("{}; nothing was loaded{}", .0, advice(.0))]
    Syntax(Box<SyntaxError>),
    /// A statement of Turtle, TriG, RDF/XML or JSON-LD does not fit into memory.
    #[error(
        "{name}:{line}: a statement that begins about here is longer than {}, which memory must hold; raise --memory, or convert the file to N-Triples or N-Quads, where a literal may have any length; nothing was loaded",
        ByteCount(*bytes_max as u64)
    )]
    StatementTooLong {
        /// The source.
        name: String,
        /// The line where it begins, counted from 1, as far as its parser tells.
        line: u64,
        /// How long it may be.
        bytes_max: usize,
    },
    /// An option names a graph or base that is no absolute IRI.
    #[error("the {option} '{iri}' is not usable: {message}")]
    InvalidIri {
        /// Which option.
        option: &'static str,
        /// What it was given.
        iri: String,
        /// What is wrong with it.
        message: String,
    },
    /// More distinct terms than a database can number.
    #[error(
        "{terms} distinct terms are more than the {limit} that one database can hold; load into several"
    )]
    TooManyTerms {
        /// How many there are at least.
        terms: u64,
        /// How many are possible.
        limit: u64,
    },
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] orrery_storage::Error),
    /// A file of the stage directory does not hold what was written to it.
    #[error("a file in load-stage/ was changed while the load ran; load again, and check the disk")]
    DamagedStage,
    /// Another part of the load failed; that failure is reported instead of this one.
    #[error("the load was interrupted by a failure in another of its threads")]
    Interrupted,
    /// Whoever asked for the work wants it no more; the database is as it was.
    #[error("the work was cancelled; the database is as it was before")]
    Cancelled,
    /// What came to a worker of a load is no request.
    #[error("the request of a load's coordinator cannot be read: {}; check that all nodes run the same version", reason(.0))]
    WorkerRequest(io::Error),
    /// The coordinator of a load does not take a worker's answer any more.
    #[error("the load's coordinator did not take this worker's answer: {}; check the network between the nodes", reason(.0))]
    WorkerAnswer(io::Error),
    /// The operating system gave no thread.
    #[error("cannot start a thread: {}; allow more threads, or ask for fewer", reason(.0))]
    Thread(io::Error),
}

impl LoadError {
    /// Whether the place failed (its disk, its files, its threads), and not what was to be loaded
    /// or changed, nor the wish to go on: what whoever runs the database is to be told.
    pub(crate) fn is_of_the_place(&self) -> bool {
        use orrery_storage::Error;
        match self {
            Self::Storage(error) => !matches!(
                error,
                Error::CommitConflict { .. }
                    | Error::Duplicate { .. }
                    | Error::HiddenGraphs { .. }
                    | Error::NotNull { .. }
                    | Error::KeepsHistory { .. }
                    | Error::Refused { .. }
                    | Error::Rows { .. }
                    | Error::StagedUnreadable
                    | Error::TransactionMemory { .. }
                    | Error::TransactionTooLarge { .. }
            ),
            Self::DamagedStage | Self::Interrupted | Self::Thread(_) => true,
            Self::NoSuchFile { .. }
            | Self::IsDirectory { .. }
            | Self::NoPermission { .. }
            | Self::UnknownFormat { .. }
            | Self::NoRdf { .. }
            | Self::Input { .. }
            | Self::Syntax(_)
            | Self::StatementTooLong { .. }
            | Self::InvalidIri { .. }
            | Self::TooManyTerms { .. }
            | Self::WorkerRequest(_)
            | Self::WorkerAnswer(_)
            | Self::Cancelled => false,
        }
    }

    pub(crate) fn input(name: &str, source: io::Error) -> Self {
        Self::Input {
            name: name.to_owned(),
            source,
        }
    }
}

fn format_advice(looks_like: Option<Format>) -> String {
    match looks_like {
        Some(format) => format!(
            "if it is {}, as it looks, give --format {}",
            format.name(),
            format.short_name()
        ),
        None => "give --format nt, nq, ttl, trig, rdf or jsonld".to_owned(),
    }
}

/// What can be done about a wrong statement.
fn advice(error: &SyntaxError) -> String {
    if error.is_past_skipping {
        return "; correct it: statements before it may be wrong, too, so that --skip-errors cannot tell which to leave out".to_owned();
    }
    match error.looks_like {
        Some(LooksLike::Format(format)) => format!(
            "; if it is {}, load it with --format {}",
            format.name(),
            format.short_name()
        ),
        Some(LooksLike::Html) => "; get the data themselves, not the page about them".to_owned(),
        None => match error.option {
            Some(LoadOption::Format(format)) => format!(
                "; correct it, load it with --format {}, or leave out wrong statements with --skip-errors",
                format.short_name()
            ),
            Some(LoadOption::LenientIris) => {
                "; correct it, take such IRIs as they are with --lenient-iris, or leave out wrong statements with --skip-errors".to_owned()
            }
            Some(LoadOption::Base) => {
                "; correct it, give a base with --base, or leave out wrong statements with --skip-errors".to_owned()
            }
            None => "; correct it, or leave out wrong statements with --skip-errors".to_owned(),
        },
    }
}

/// A wrong statement, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The file, or "standard input".
    pub source_name: String,
    /// Line, counted from 1, if the parser tells.
    pub line: Option<u64>,
    /// Column in characters, counted from 1, if the parser tells.
    pub column: Option<u64>,
    /// The offending text, cut if it is long; may be empty.
    pub text: String,
    /// What was expected.
    pub message: String,
    /// What would probably set it right.
    pub mend: Option<String>,
    /// The line with the place, if it is known.
    pub excerpt: Option<Excerpt>,
    /// What the whole text looks like, if that is not what it was read as.
    pub looks_like: Option<LooksLike>,
    /// What whoever loads the text may say of it to set it right; who it is, and how that is said,
    /// only they know.
    pub option: Option<LoadOption>,
    /// Whether not even a load that leaves out wrong statements can go on.
    pub is_past_skipping: bool,
}

/// An option of a load that messages suggest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadOption {
    /// That it has another format.
    Format(Format),
    /// Against which IRI its relative ones are resolved.
    Base,
    /// That IRIs are taken as they are written.
    LenientIris,
}

impl SyntaxError {
    /// An error of a source of which nothing else is known.
    pub(crate) fn new(source_name: &str, message: impl AsRef<str>) -> Self {
        Self {
            source_name: source_name.to_owned(),
            line: None,
            column: None,
            text: String::new(),
            // It may repeat what stands in the file.
            message: shown(message.as_ref()),
            mend: None,
            excerpt: None,
            looks_like: None,
            option: None,
            is_past_skipping: false,
        }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source_name)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        write!(f, ": {}", self.message)?;
        // A message that names it need not repeat it.
        if !self.text.is_empty() && !self.message.contains(&self.text) {
            write!(f, ", found '{}'", self.text)?;
        }
        if let Some(looks_like) = self.looks_like {
            return write!(f, "; the text looks like {}", looks_like.name());
        }
        // If it is another format altogether, nothing of it needs a mend.
        match &self.mend {
            Some(mend) => write!(f, "; {mend}"),
            None => Ok(()),
        }
    }
}

/// Text for a message: readable whatever the bytes are, on one line, and not too long.
pub(crate) fn clipped(bytes: &[u8]) -> String {
    // Four bytes a character at most.
    let head = &bytes[..bytes.len().min(SHOWN_CHARACTERS_MAX * 4)];
    let text = String::from_utf8_lossy(head);
    let mut shown: String = text
        .chars()
        .take(SHOWN_CHARACTERS_MAX)
        .map(shown_character)
        .collect();
    if text.chars().count() > SHOWN_CHARACTERS_MAX || head.len() < bytes.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syntax_error_reads_as_file_line_column_expectation_and_text() {
        let error = SyntaxError {
            line: Some(3),
            column: Some(7),
            text: clipped(b"<x y>\xff\n"),
            ..SyntaxError::new("a.nt", "expected an absolute IRI")
        };
        assert_eq!(
            error.to_string(),
            "a.nt:3:7: expected an absolute IRI, found '<x y>\u{FFFD}\u{FFFD}'"
        );
        assert_eq!(
            clipped("é".repeat(100).as_bytes()).chars().count(),
            SHOWN_CHARACTERS_MAX + 1
        );
    }
}
