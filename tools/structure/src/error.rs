//! The errors of reading the source tree.

use std::path::PathBuf;

/// Why the structure could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// An option that there is not.
    #[error("unknown option {0}; use: structure [--write] [DIRECTORY]")]
    UnknownOption(String),
    /// A file or folder that could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A source that is not Rust.
    #[error("{}: {source}", path.display())]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// What the parser says.
        source: syn::Error,
    },
    /// `mod name;` without a file.
    #[error("{}: no file for `mod {module};`", path.display())]
    MissingModule {
        /// The file that declares it.
        path: PathBuf,
        /// Its name.
        module: String,
    },
    /// ARCHITECTURE.md has no place for the drawing.
    #[error("{}: no block between `{start}` and `{end}`", path.display())]
    NoDrawing {
        /// The document.
        path: PathBuf,
        /// The line before the drawing.
        start: &'static str,
        /// The line after it.
        end: &'static str,
    },
}

impl Error {
    /// For `map_err` at a file.
    pub(crate) fn at(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}
