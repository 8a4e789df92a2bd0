//! The buffered output of data and reports: a file or standard output, whose closing by the reader
//! is no error.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 1 << 16;

pub(crate) struct Output {
    sink: BufWriter<Box<dyn Write>>,
    path: Option<PathBuf>,
}

impl Output {
    /// A file, or standard output for `None`.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let sink: Box<dyn Write> = match path {
            Some(path) => Box::new(File::create(path).map_err(|error| Failure::file(path, error))?),
            None => Box::new(io::stdout().lock()),
        };
        Ok(Self {
            sink: BufWriter::with_capacity(BUFFER_BYTES, sink),
            path: path.map(Path::to_owned),
        })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.sink.write_all(bytes);
        written.map_err(|error| self.failure(error))
    }

    /// Writes what is still held back.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let flushed = self.sink.flush();
        flushed.map_err(|error| self.failure(error))
    }

    /// For generators that want an `io::Write`.
    pub(crate) fn sink(&mut self) -> &mut dyn Write {
        &mut self.sink
    }

    pub(crate) fn failure(&self, error: io::Error) -> Failure {
        match &self.path {
            Some(path) => Failure::file(path, error),
            None => Failure::output(error),
        }
    }
}
