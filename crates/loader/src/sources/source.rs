//! A source of statements: a file or standard input, with its format and compression.

use crate::Format;
use crate::LoadOptions;
use crate::error::LoadError;
use crate::sources::decompress::{Compression, decompressed, is_compressed, upload_text};
use crate::sources::looks::{Looks, Peeked, peek};
use orrery_storage::io::FileSystem;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Something to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file, plain or compressed.
    File(PathBuf),
    /// Standard input, plain or compressed; [`crate::LoadOptions::format`] must be given.
    Stdin,
    /// A document that came in a request.
    Upload(Upload),
}

/// A document in a part of a file that is called something else; it says all of itself, and the
/// options about formats, graphs and bases are not for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// The file.
    pub path: PathBuf,
    /// Which bytes of it, plain or compressed.
    pub range: Range<u64>,
    /// Whether they are brotli data, which cannot be told by its first bytes.
    pub is_brotli: bool,
    /// What it is called in messages.
    pub name: Arc<str>,
    /// Its format.
    pub format: Format,
    /// The named graph for statements that name none; `None` is the default graph.
    pub graph: Option<Arc<str>>,
    /// What relative IRIs are resolved against.
    pub base_iri: Arc<str>,
}

impl Source {
    /// The name for messages.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Stdin => "standard input".to_owned(),
            Self::Upload(upload) => upload.name.to_string(),
        }
    }
}

/// A source whose format is known and which can be read.
#[derive(Debug, Clone)]
pub(crate) struct CheckedSource {
    source: Source,
    files: Arc<dyn FileSystem>,
    pub(crate) name: Arc<str>,
    pub(crate) format: Format,
    /// What its relative IRIs are resolved against: its own address, if it has one and no other is
    /// given.
    pub(crate) base_iri: Option<String>,
    /// The named graph for statements that name none.
    pub(crate) graph: Option<Arc<str>>,
    /// Bytes on disk, if it is an ordinary file.
    pub(crate) bytes: Option<u64>,
}

impl CheckedSource {
    /// Finds out the format and whether the source can be read, before any work is done.
    pub(crate) fn check(
        source: &Source,
        options: &LoadOptions,
        files: &Arc<dyn FileSystem>,
    ) -> Result<Self, LoadError> {
        let name: Arc<str> = source.name().into();
        let (from_name, bytes) = match source {
            Source::Upload(upload) => return Self::uploaded(upload, files),
            Source::Stdin => (None, None),
            Source::File(path) => {
                let metadata = files.metadata(path).map_err(cannot_open)?;
                let metadata =
                    metadata.ok_or_else(|| LoadError::NoSuchFile { path: path.clone() })?;
                if metadata.is_directory {
                    return Err(LoadError::IsDirectory { path: path.clone() });
                }
                if metadata.is_file {
                    // A pipe is opened only once, for its writer would not survive a close.
                    files.open(path).map_err(cannot_open)?;
                }
                let bytes = metadata.is_file.then_some(metadata.bytes);
                (Format::from_path(path), bytes)
            }
        };
        let Some(format) = options.format.or(from_name) else {
            return Err(unknown_format(source, &name, bytes.is_some(), files));
        };
        let own_address = || match source {
            Source::Stdin | Source::Upload(_) => None,
            Source::File(path) => file_iri(path),
        };
        Ok(Self {
            source: source.clone(),
            files: Arc::clone(files),
            name,
            format,
            base_iri: options.base_iri.clone().or_else(own_address),
            graph: options.graph.as_deref().map(Into::into),
            bytes,
        })
    }

    fn uploaded(upload: &Upload, files: &Arc<dyn FileSystem>) -> Result<Self, LoadError> {
        files.open(&upload.path).map_err(cannot_open)?;
        Ok(Self {
            source: Source::Upload(upload.clone()),
            files: Arc::clone(files),
            name: Arc::clone(&upload.name),
            format: upload.format,
            base_iri: Some(upload.base_iri.to_string()),
            graph: upload.graph.clone(),
            bytes: Some(upload.range.end.saturating_sub(upload.range.start)),
        })
    }

    /// A source as another process knows it.
    pub(crate) fn told(
        source: Source,
        files: &Arc<dyn FileSystem>,
        (name, format): (Arc<str>, Format),
        (base_iri, graph): (Option<String>, Option<Arc<str>>),
        bytes: Option<u64>,
    ) -> Self {
        Self {
            source,
            files: Arc::clone(files),
            name,
            format,
            base_iri,
            graph,
            bytes,
        }
    }

    /// Where others may find it: the path of an ordinary file that is nothing else.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.source {
            Source::File(path) if self.bytes.is_some() => Some(path),
            Source::File(_) | Source::Stdin | Source::Upload(_) => None,
        }
    }

    /// Whether an ordinary file is compressed.
    pub(crate) fn is_compressed(&self) -> Result<bool, LoadError> {
        let Some(path) = self.path() else {
            return Ok(false);
        };
        let input = self.files.open(path).map_err(cannot_open)?;
        is_compressed(input).map_err(|error| LoadError::input(&self.name, error))
    }

    /// Bytes of an ordinary file that is not compressed; at its beginning without its byte-order
    /// mark. Adds those that are read to `bytes_read`.
    pub(crate) fn open_range(
        &self,
        range: Range<u64>,
        bytes_read: &Arc<AtomicU64>,
    ) -> Result<Box<dyn Read + Send>, LoadError> {
        let Some(path) = self.path() else {
            return Ok(Box::new(io::empty()));
        };
        let input = self.files.open_at(path, range.start).map_err(cannot_open)?;
        let counted = Box::new(CountingReader {
            input: input.take(range.end - range.start),
            bytes_read: Arc::clone(bytes_read),
        });
        if range.start > 0 {
            return Ok(counted);
        }
        let peeked = peek(counted).map_err(|error| LoadError::input(&self.name, error))?;
        Ok(peeked.text)
    }

    /// What an ordinary file looks like, which is opened for it.
    pub(crate) fn look_again(&self) -> Option<Looks> {
        self.path()?;
        self.open(&Arc::default()).ok()?.1
    }

    /// The decompressed text, and what it looks like. Adds the bytes that are read (before
    /// decompression) to `bytes_read`.
    pub(crate) fn open(
        &self,
        bytes_read: &Arc<AtomicU64>,
    ) -> Result<(Box<dyn Read + Send>, Option<Looks>), LoadError> {
        let (input, named): (Box<dyn Read + Send>, _) = match &self.source {
            Source::Stdin => (Box::new(io::stdin()), None),
            Source::File(path) => {
                let input = self.files.open(path).map_err(cannot_open)?;
                (input, Compression::from_extension(path))
            }
            Source::Upload(upload) => {
                let input = self.files.open_at(&upload.path, upload.range.start);
                let bytes = upload.range.end.saturating_sub(upload.range.start);
                (Box::new(input.map_err(cannot_open)?.take(bytes)), None)
            }
        };
        let counted = CountingReader {
            input,
            bytes_read: Arc::clone(bytes_read),
        };
        let plain = match &self.source {
            Source::Upload(upload) => upload_text(counted, upload.is_brotli),
            Source::File(_) | Source::Stdin => decompressed(counted, named),
        };
        let Peeked { text, looks } = plain
            .and_then(peek)
            .map_err(|error| LoadError::input(&self.name, error))?;
        if let Some(what) = looks.and_then(|looks| looks.no_rdf(self.format)) {
            return Err(LoadError::NoRdf {
                name: self.name.to_string(),
                what,
            });
        }
        Ok((text, looks))
    }
}

/// What is said of a source whose name tells no format: what it looks like, if it is a file, which
/// can be opened again.
fn unknown_format(
    source: &Source,
    name: &str,
    is_file: bool,
    files: &Arc<dyn FileSystem>,
) -> LoadError {
    let looks = match source {
        Source::File(path) if is_file => files
            .open(path)
            .ok()
            .and_then(|input| decompressed(input, None).and_then(peek).ok())
            .and_then(|peeked| peeked.looks),
        Source::File(_) | Source::Stdin | Source::Upload(_) => None,
    };
    let name = name.to_owned();
    match looks {
        Some(Looks::NoRdf(what)) => LoadError::NoRdf { name, what },
        Some(Looks::Like(format)) => LoadError::UnknownFormat {
            name,
            looks_like: Some(format),
        },
        Some(Looks::Html | Looks::Utf16) | None => LoadError::UnknownFormat {
            name,
            looks_like: None,
        },
    }
}

/// What a path cannot hold as it is: all but unreserved characters (RFC 3986, 2.3) and the
/// separator.
const NOT_IN_PATHS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The address of a file, against which its relative IRIs are resolved: `file:///data/people.ttl`
/// (RFC 8089). None where the working directory is not known.
pub fn file_iri(path: &Path) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    let encoded = percent_encode(path.as_os_str().as_encoded_bytes(), NOT_IN_PATHS);
    Some(format!("file://{encoded}"))
}

/// What is wrong with a source, for the sentences of a load.
fn cannot_open(error: orrery_storage::Error) -> LoadError {
    match error {
        orrery_storage::Error::NotFound { path, .. } => LoadError::NoSuchFile { path },
        orrery_storage::Error::PermissionDenied { path, .. } => LoadError::NoPermission { path },
        orrery_storage::Error::IsADirectory { path, .. } => LoadError::IsDirectory { path },
        other => LoadError::Storage(other),
    }
}

/// Counts what passes, for the progress bar.
struct CountingReader<R> {
    input: R,
    bytes_read: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.bytes_read.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use orrery_storage::io::LocalFileSystem;

    #[test]
    fn the_format_is_told_by_the_ending_below_that_of_the_compression() {
        let format = |name: &str| Format::from_path(Path::new(name));
        assert_eq!(format("a/b.nt"), Some(Format::NTriples));
        assert_eq!(format("b.nq.gz"), Some(Format::NQuads));
        assert_eq!(format("b.TTL.zst"), Some(Format::Turtle));
        assert_eq!(format("b.gz"), None);
        assert_eq!(format("b"), None);
    }

    #[test]
    fn the_address_of_a_file_is_an_absolute_iri() {
        assert_eq!(
            file_iri(Path::new("/data/my people (é).ttl")).unwrap(),
            "file:///data/my%20people%20%28%C3%A9%29.ttl"
        );
        let relative = file_iri(Path::new("a.ttl")).unwrap();
        assert!(relative.starts_with("file:///") && relative.ends_with("/a.ttl"));
    }

    #[test]
    fn missing_files_and_directories_are_told_apart() {
        let check = |path: &Path| {
            let files: Arc<dyn FileSystem> = Arc::new(LocalFileSystem);
            CheckedSource::check(
                &Source::File(path.to_owned()),
                &LoadOptions::default(),
                &files,
            )
        };
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(
            check(directory.path()),
            Err(LoadError::IsDirectory { .. })
        ));
        let missing = directory.path().join("a.nt");
        assert!(matches!(check(&missing), Err(LoadError::NoSuchFile { .. })));
        let unknown = directory.path().join("a.txt");
        std::fs::write(&unknown, "").unwrap();
        assert!(matches!(
            check(&unknown),
            Err(LoadError::UnknownFormat { .. })
        ));
    }
}
