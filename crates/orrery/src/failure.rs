//! The failure of a command, as one line for people.

use std::io;
use std::path::{Path, PathBuf};

use orrery_loader::{Excerpt, LoadError};
use orrery_sparql::QueryError;
use orrery_storage::reason;

use crate::units::Counted;

/// A place in a text, as servers report it: line and column from 1, offset and length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub(crate) struct PlaceInText {
    line: usize,
    column: usize,
    offset: usize,
    #[serde(default)]
    length: usize,
}

impl PlaceInText {
    /// The same place in a longer text, in which `before` precedes this one.
    fn behind(self, before: &str) -> Self {
        let last_line = before.rsplit('\n').next().unwrap_or_default();
        let on_first_line = if self.line == 1 {
            last_line.chars().count()
        } else {
            0
        };
        Self {
            line: self.line + before.matches('\n').count(),
            column: self.column + on_first_line,
            offset: self.offset + before.len(),
            length: self.length,
        }
    }

    /// The line of the place; none if the line is blank.
    fn excerpt(self, text: &str) -> Option<Excerpt> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let shown = text.lines().nth(self.line.saturating_sub(1))?;
        let end = self.offset.saturating_add(self.length);
        let wrong = text.get(self.offset..end).and_then(|it| it.lines().next());
        let width = wrong.map_or(0, |wrong| wrong.chars().count());
        let excerpt = || Excerpt::of_line(shown, self.column.saturating_sub(1), width);
        (!shown.trim().is_empty()).then(excerpt)
    }
}

/// Why a command failed. Its `Display` is the line on standard error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The reader of our standard output has gone.
    #[error("standard output was closed")]
    OutputClosed,
    #[error(transparent)]
    Usage(#[from] orrery_query_log::Error),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A query or an update has an error.
    #[error("{error}")]
    Text {
        error: QueryError,
        /// The line's number, and the place on it.
        line: u64,
        excerpt: Excerpt,
    },
    /// An SQL statement failed.
    #[error("ERROR {}: {error}", error.state)]
    Sql {
        error: Box<orrery_sql::Error>,
        /// The line's number, and the place on it, if known.
        excerpt: Option<(u64, Excerpt)>,
    },
    /// A server refused a request.
    #[error("{message}")]
    Refused {
        message: String,
        /// The place in the text that was sent, if reported.
        place: Option<PlaceInText>,
        /// The line of the place.
        excerpt: Option<Excerpt>,
    },
    #[error(transparent)]
    Storage(#[from] orrery_storage::Error),
    #[error(transparent)]
    Serve(#[from] orrery_server::ServeError),
    #[error(transparent)]
    Remote(#[from] orrery_http_client::Error),
    #[error(transparent)]
    Format(#[from] orrery_formats::FormatError),
    #[error(transparent)]
    Prefix(#[from] orrery_term::PrefixError),
    #[error(transparent)]
    Users(#[from] orrery_access::Error),
    #[error(transparent)]
    Backup(#[from] orrery_backup::Error),
    /// An address in an object store is not valid, or cannot be used.
    #[error(transparent)]
    Objects(#[from] orrery_object_store::ObjectError),
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
    /// Any other failure, in one sentence.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// The line of the input with carets under the error, if the failure has a place.
    pub(crate) fn excerpt(&self) -> Option<[String; 2]> {
        match self {
            Self::Load(LoadError::Syntax(error)) => {
                let excerpt = error.excerpt.as_ref()?;
                Some(excerpt.lines(error.line))
            }
            Self::Sql { excerpt, .. } => {
                let (line, excerpt) = excerpt.as_ref()?;
                Some(excerpt.lines(Some(*line)))
            }
            Self::Text { line, excerpt, .. } => Some(excerpt.lines(Some(*line))),
            Self::Refused { place, excerpt, .. } => {
                let line = place.map(|place| place.line as u64);
                Some(excerpt.as_ref()?.lines(line))
            }
            _ => None,
        }
    }

    /// The failure of a query or an update, with its place in the text if known.
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
        let span = detail.as_ref().map_or(0..0, |it| it.span.clone());
        let place = PlaceInText {
            line: *line,
            column: *column,
            offset: span.start,
            length: span.len(),
        };
        match place.excerpt(text) {
            Some(excerpt) => Self::Text {
                line: place.line as u64,
                excerpt,
                error,
            },
            None => error.into(),
        }
    }

    /// Adds the line of the SQL text that has the error.
    pub(crate) fn with_sql_place(self, text: &str) -> Self {
        let Self::Sql { error, .. } = self else {
            return self;
        };
        let excerpt = error.place(text).and_then(|(line, column, offset)| {
            let place = PlaceInText {
                line,
                column,
                offset,
                length: 0,
            };
            Some((place.line as u64, place.excerpt(text)?))
        });
        // The line and the caret show the position.
        let position = error.position.filter(|_| excerpt.is_none());
        Self::Sql {
            error: Box::new(orrery_sql::Error { position, ..*error }),
            excerpt,
        }
    }

    /// Adds the line of the text in which a server found an error.
    pub(crate) fn of_sent_text(self, text: &str) -> Self {
        self.of_sent_part(text, 0)
    }

    /// The same if only the part of the text from this byte on was sent.
    pub(crate) fn of_sent_part(self, text: &str, start: usize) -> Self {
        match self {
            Self::Refused { message, place, .. } => {
                let place = place.map(|place| place.behind(&text[..start]));
                Self::Refused {
                    message,
                    place,
                    excerpt: place.and_then(|place| place.excerpt(text)),
                }
            }
            other => other,
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

impl From<orrery_sql::Error> for Failure {
    fn from(error: orrery_sql::Error) -> Self {
        Self::Sql {
            error: Box::new(error),
            excerpt: None,
        }
    }
}
