//! The byte stream of one client, both ways: an output buffer, and reads up to the message limit.
//!
//! Output is buffered, and sent when the client waits for it or when the buffer is full: then its
//! writer waits for the client.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use pgwire::tokio::server::MaybeTls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::frontend::Frontend;
use crate::refusal::{Refusal, Stop, Stopped};

/// Bytes that are buffered before they are sent.
const OUTPUT_BYTES: usize = 64 << 10;
/// A larger buffer is not reused.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Bytes that are read at once.
const INPUT_BYTES: usize = 8 << 10;
/// Most bytes that are read ahead while a statement runs.
const AHEAD_BYTES_MAX: usize = 64 << 10;
/// A client that takes nothing for this long is given up.
const SEND_TIME_MAX: Duration = Duration::from_secs(60);
/// Bytes of a message's head: type and length.
const HEAD_BYTES: usize = 5;

/// The socket of a client, with its input and output buffers.
pub(crate) struct Wire {
    socket: MaybeTls,
    input: BytesMut,
    pub(crate) output: BytesMut,
    /// Whether the output buffer has grown too large to be reused.
    is_long: bool,
    message_bytes_max: usize,
    last_kind: u8,
    sent_bytes: u64,
}

impl Wire {
    pub(crate) fn new(socket: MaybeTls, message_bytes_max: usize) -> Self {
        Self {
            socket,
            input: BytesMut::with_capacity(INPUT_BYTES),
            output: BytesMut::with_capacity(INPUT_BYTES),
            is_long: false,
            message_bytes_max,
            last_kind: 0,
            sent_bytes: 0,
        }
    }

    /// The socket, if no unread bytes are buffered.
    pub(crate) fn into_socket(self) -> Option<MaybeTls> {
        self.input.is_empty().then_some(self.socket)
    }

    /// Sends the output buffer.
    ///
    /// May be dropped at any time: the rest is sent next. A client that takes nothing for too long
    /// is given up.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        self.is_long |= self.output.len() > KEPT_BYTES_MAX;
        while !self.output.is_empty() {
            let sent = self.socket.write_buf(&mut self.output);
            match tokio::time::timeout(SEND_TIME_MAX, sent).await {
                Ok(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => self.sent_bytes += sent? as u64,
                Err(_elapsed) => return Err(io::ErrorKind::TimedOut.into()),
            };
        }
        if std::mem::take(&mut self.is_long) {
            // Otherwise it would keep room for the longest value, as long as the client stays.
            self.output = BytesMut::with_capacity(INPUT_BYTES);
        }
        self.socket.flush().await
    }

    /// Bytes written for the client so far, sent or buffered.
    pub(crate) fn made_bytes(&self) -> u64 {
        self.sent_bytes + self.output.len() as u64
    }

    /// Whether the output buffer should be sent now.
    pub(crate) fn is_full(&self) -> bool {
        self.output.len() >= OUTPUT_BYTES
    }

    /// Reads some bytes into the input buffer.
    async fn fill(&mut self) -> io::Result<()> {
        self.input.reserve(INPUT_BYTES);
        match self.socket.read_buf(&mut self.input).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Reads ahead while a statement runs; completes only when the client has left. May be dropped
    /// at any time.
    pub(crate) async fn watch(&mut self) -> io::Error {
        loop {
            if self.input.len() >= AHEAD_BYTES_MAX {
                return std::future::pending().await;
            }
            if let Err(error) = self.fill().await {
                return error;
            }
        }
    }

    /// Reads exactly `count` bytes.
    pub(crate) async fn bytes(&mut self, count: usize) -> io::Result<Bytes> {
        while self.input.len() < count {
            self.fill().await?;
        }
        Ok(self.input.split_to(count).freeze())
    }

    /// The type of the next message, if it is buffered already.
    pub(crate) fn next_kind(&self) -> Option<u8> {
        self.input.first().copied()
    }

    /// Reads the next message. A malformed body is consumed nevertheless.
    pub(crate) async fn message(&mut self, bytes_max: usize) -> Stopped<Frontend> {
        let (kind, body) = self.body(bytes_max).await?;
        Ok(Frontend::read(kind, body)?)
    }

    /// Reads the type and the body of the next message.
    async fn body(&mut self, bytes_max: usize) -> Stopped<(u8, Bytes)> {
        while self.input.len() < HEAD_BYTES {
            self.fill().await?;
        }
        let kind = self.input[0];
        let length = [self.input[1], self.input[2], self.input[3], self.input[4]];
        let length = u32::from_be_bytes(length) as usize;
        if length < 4 || length > bytes_max.min(self.message_bytes_max) {
            // The next message could not be found.
            return Err(
                Refusal::fatal("08P01", format!("invalid message length: {length} bytes")).into(),
            );
        }
        while self.input.len() < length + 1 {
            self.fill().await?;
        }
        let mut message = self.input.split_to(length + 1).freeze();
        let body = message.split_off(HEAD_BYTES);
        self.last_kind = kind;
        Ok((kind, body))
    }

    /// Whether the last message is one of the extended protocol: after its error, nothing is sent
    /// until Sync.
    pub(crate) fn is_extended(&self) -> bool {
        matches!(self.last_kind, b'P' | b'B' | b'D' | b'C' | b'E')
    }

    /// Reads a message of any accepted length; after a failure it only parses those that end it.
    pub(crate) async fn any_message(&mut self, is_skipping: bool) -> Stopped<Frontend> {
        let (kind, body) = self.body(self.message_bytes_max).await?;
        match is_skipping && !Frontend::ends_failure(kind) {
            true => Ok(Frontend::Skipped),
            false => Ok(Frontend::read(kind, body)?),
        }
    }

    /// Sends the output buffer and closes the connection.
    pub(crate) async fn close(mut self) -> io::Result<()> {
        self.flush().await?;
        self.socket.shutdown().await
    }

    /// Writes an error to the output buffer; `Gone` is passed on.
    pub(crate) fn refuse(&mut self, stop: Stop) -> io::Result<Refusal> {
        match stop {
            Stop::Refused(refusal) => {
                refusal.write(&mut self.output);
                Ok(refusal)
            }
            Stop::Gone(error) => Err(error),
        }
    }
}
