//! Buffered output of results to a file or standard output; a reader that has gone is no error.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::Path;

use crate::failure::Failure;

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 1 << 16;

/// An output for results. Serializers append to a buffer, [`Output::drain`] empties it.
pub(crate) struct Output {
    sink: Box<dyn Write>,
    path: Option<std::path::PathBuf>,
    /// At a terminal the next prompt must be on a line of its own, whatever the format ends with.
    ends_with_line: bool,
    last_byte: Option<u8>,
}

impl Output {
    /// Opens a file, or standard output for `None`.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let sink: Box<dyn Write> = match path {
            Some(path) => {
                let file = File::create(path).map_err(|error| Failure::file(path, error))?;
                Box::new(BufWriter::with_capacity(BUFFER_BYTES, file))
            }
            None => Box::new(BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock())),
        };
        let ends_with_line = path.is_none() && io::stdout().is_terminal();
        Ok(Self::new(sink, path, ends_with_line))
    }

    /// Creates a file that must not exist yet.
    pub(crate) fn create_new(path: &Path) -> Result<Self, Failure> {
        // Writing to a pipe or a device, such as /dev/stdout, overwrites nothing.
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return Self::open(Some(path));
        }
        let opened = OpenOptions::new().write(true).create_new(true).open(path);
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::Other(format!(
                "{} is there already; name another file, or overwrite it with --force",
                path.display()
            )),
            _ => Failure::file(path, error),
        })?;
        let sink = Box::new(BufWriter::with_capacity(BUFFER_BYTES, file));
        Ok(Self::new(sink, Some(path), false))
    }

    fn new(sink: Box<dyn Write>, path: Option<&Path>, ends_with_line: bool) -> Self {
        Self {
            sink,
            path: path.map(Path::to_owned),
            ends_with_line,
            last_byte: None,
        }
    }

    /// Writes the buffer and empties it.
    pub(crate) fn drain(&mut self, buffer: &mut Vec<u8>) -> Result<(), Failure> {
        let written = self.sink.write_all(buffer);
        self.last_byte = buffer.last().copied().or(self.last_byte);
        buffer.clear();
        written.map_err(|error| self.failure(error))
    }

    /// Writes and flushes all that is buffered.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        if self.ends_with_line && self.last_byte.is_some_and(|last| last != b'\n') {
            let written = self.sink.write_all(b"\n");
            written.map_err(|error| self.failure(error))?;
        }
        let flushed = self.sink.flush();
        flushed.map_err(|error| self.failure(error))
    }

    pub(crate) fn failure(&self, error: io::Error) -> Failure {
        match &self.path {
            Some(path) => Failure::file(path, error),
            None => Failure::output(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_answer_at_a_terminal_ends_its_line() {
        for (answer, is_terminal, expected) in [
            ("{}", true, "{}\n"),
            ("{}", false, "{}"),
            ("a\r\n", true, "a\r\n"),
            ("", true, ""),
        ] {
            let written = Written::default();
            let mut output = Output::new(Box::new(written.clone()), None, is_terminal);
            output.drain(&mut answer.as_bytes().to_vec()).unwrap();
            output.drain(&mut Vec::new()).unwrap();
            output.finish().unwrap();
            assert_eq!(*written.0.lock().unwrap(), expected.as_bytes(), "{answer}");
        }
    }
}
