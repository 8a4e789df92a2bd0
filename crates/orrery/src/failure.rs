//! What a command failed of: one line for people, written at the edge.

use std::io;
use std::path::{Path, PathBuf};

use orrery_loader::{Excerpt, LoadError};
use orrery_sparql::QueryError;
use orrery_storage::reason;

use crate::units::Counted;

/// Why a command did not do its work. Its `Display` is the line on standard error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Whoever read our standard output has gone.
    #[error("standard output was closed")]
    OutputClosed,
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A query or an update is wrong.
    #[error("{error}")]
    Text {
        error: QueryError,
        /// Its line and the place on it.
        line: u64,
        excerpt: Excerpt,
    },
    #[error(transparent)]
    Storage(#[from] orrery_storage::Error),
    #[error(transparent)]
    Serve(#[from] orrery_server::ServeError),
    #[error(transparent)]
    Remote(#[from] orrery_remote::Error),
    #[error(transparent)]
    Format(#[from] orrery_server::format::FormatError),
    #[error(transparent)]
    Bench(#[from] orrery_bench::drivers::BenchError),
    #[error(transparent)]
    Prefix(#[from] orrery_term::PrefixError),
    #[error(transparent)]
    Backup(#[from] orrery_backup::Error),
    #[error("{}: {}", path.display(), reason(source))]
    File { path: PathBuf, source: io::Error },
    #[error("standard output: {}", reason(.0))]
    Output(io::Error),
    /// `verify` found damage; the places have been printed.
    #[error("{} is damaged in {}, first {first}; restore it or load it anew", directory.display(), Counted(*places as u64, "place"))]
    Damaged {
        directory: PathBuf,
        places: usize,
        first: orrery_storage::Damage,
    },
    /// Anything else that is one sentence.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// The line of what was given, with carets under the place of the error, if it is about one.
    pub(crate) fn excerpt(&self) -> Option<[String; 2]> {
        match self {
            Self::Load(LoadError::Syntax(error)) => {
                let excerpt = error.excerpt.as_ref()?;
                Some(excerpt.lines(error.line))
            }
            Self::Text { line, excerpt, .. } => Some(excerpt.lines(Some(*line))),
            _ => None,
        }
    }

    /// What is wrong with a query or an update, with the place in its text if it is told.
    pub(crate) fn of_text(error: QueryError, text: &str) -> Self {
        let QueryError::Syntax {
            line,
            column,
            detail,
            ..
        } = &error
        else {
            return error.into();
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some(shown) = text.lines().nth(line.saturating_sub(1)) else {
            return error.into();
        };
        if shown.trim().is_empty() {
            return error.into();
        }
        let before = column.saturating_sub(1);
        let wrong = detail
            .as_ref()
            .and_then(|detail| text.get(detail.span.clone())?.lines().next());
        let width = wrong.map_or(0, |wrong| wrong.chars().count());
        Self::Text {
            line: *line as u64,
            excerpt: Excerpt::of_line(shown, before, width),
            error,
        }
    }

    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn output(source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Output(source)
        }
    }
}
