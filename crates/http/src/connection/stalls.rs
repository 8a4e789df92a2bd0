//! Closes a connection whose client reads nothing more of an answer for a while.
//!
//! A query notices by itself that its chunks are not taken (`output`), and ends. What it had
//! written by then, and answers written whole, would wait in hyper's buffers as long as the client
//! keeps the connection open: a client that sends request after request and reads no answer would
//! keep it for ever. While the client reads, this costs a comparison for each write.
//!
//! Within TLS a write is done when its bytes are in the buffer of TLS; the wait is in a flush, or
//! in the end of the connection, so those are timed as well.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// A stream on which no write, flush or end waits longer than a given time.
pub(crate) struct Unstalled<S> {
    stream: S,
    stall_max: Duration,
    /// The timer of a write, flush or end that waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Unstalled<S> {
    pub(crate) fn new(stream: S, stall_max: Duration) -> Self {
        Self {
            stream,
            stall_max,
            stalled: None,
        }
    }

    /// Fails what has waited too long.
    fn within_time<T>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let stall_max = self.stall_max;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(stall_max)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unstalled<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unstalled<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buffer);
        self.within_time(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.within_time(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.within_time(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.within_time(cx, polled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, BufWriter};

    #[tokio::test]
    async fn a_write_waits_so_long_and_not_longer() {
        let (near, mut far) = tokio::io::duplex(10);
        let mut near = Unstalled::new(near, Duration::from_millis(200));
        near.write_all(b"12345678901").await.unwrap_err();
        // Reading makes room; then the time begins anew.
        let mut taken = [0; 10];
        far.read_exact(&mut taken).await.unwrap();
        near.write_all(b"1234567890").await.unwrap();
        let error = near.write_all(b"1").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn what_waits_in_a_buffer_waits_no_longer() {
        let (near, mut far) = tokio::io::duplex(10);
        // Accepts all writes at once, as TLS does.
        let near = BufWriter::with_capacity(100, near);
        let mut near = Unstalled::new(near, Duration::from_millis(200));
        near.write_all(b"12345678901").await.unwrap();
        let error = near.flush().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let mut taken = [0; 10];
        far.read_exact(&mut taken).await.unwrap();
        near.flush().await.unwrap();
        near.write_all(b"1234567890").await.unwrap();
        let error = near.shutdown().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
