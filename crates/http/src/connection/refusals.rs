//! Adds a sentence to the refusals that hyper writes itself: bad heads (400), heads too large
//! (431), addresses too long (414).
//!
//! Such a request never reaches the router: hyper writes a head without a body, and closes. This
//! stream stands between hyper and the connection, recognizes that head when it is written, and
//! writes one with a sentence instead. No answer of ours looks like it: all have
//! `X-Content-Type-Options` in their heads.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Most bytes of a head that hyper writes itself.
const HEAD_BYTES_MAX: usize = 256;

/// A connection on which every refusal has a sentence.
pub(crate) struct Explained<S> {
    stream: S,
    /// The replacement for a head of hyper's, how much of it is written, and the length of that
    /// head.
    instead: Option<Instead>,
}

struct Instead {
    bytes: Vec<u8>,
    written: usize,
    stands_for: usize,
}

impl<S> Explained<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            instead: None,
        }
    }
}

/// The answer that replaces a head without a body, if that head is hyper's own.
fn explained(head: &[u8]) -> Option<Vec<u8>> {
    if !head.starts_with(b"HTTP/1.") || head.len() > HEAD_BYTES_MAX {
        return None;
    }
    let head = std::str::from_utf8(head).ok()?.strip_suffix("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status_line = lines.next()?;
    let (sentence, title) = match status_line.split(' ').nth(1)? {
        "400" => (
            "the request cannot be read as HTTP/1.1; look at its first line and its headers",
            "Bad Request",
        ),
        "414" => (
            "the address of the request is too long; send a long query by POST",
            "URI Too Long",
        ),
        "431" => (
            "the head of the request is larger, or has more headers, than this server reads; send a long query by POST",
            "Request Header Fields Too Large",
        ),
        _ => return None,
    };
    let is_own = lines.all(|line| {
        let name = line.split(':').next().unwrap_or_default();
        line.eq_ignore_ascii_case("content-length: 0")
            || name.eq_ignore_ascii_case("connection")
            || name.eq_ignore_ascii_case("date")
    });
    if !is_own {
        return None;
    }
    let (version, rest) = status_line.split_once(' ')?;
    let status = rest.get(..3)?;
    let date = head
        .split("\r\n")
        .find(|line| line.to_ascii_lowercase().starts_with("date:"));
    let date = date.map_or_else(String::new, |date| format!("{date}\r\n"));
    let length = sentence.len() + 1;
    Some(
        format!(
            "{version} {status} {title}\r\ncontent-type: text/plain; charset=utf-8\r\nx-content-type-options: nosniff\r\n\
             content-length: {length}\r\nconnection: close\r\n{date}\r\n{sentence}\n"
        )
        .into_bytes(),
    )
}

impl<S: AsyncWrite + Unpin> Explained<S> {
    /// Writes the replacement for a head, if there is one; returns the length of that head.
    fn poll_instead(
        &mut self,
        cx: &mut Context<'_>,
        head: &[u8],
    ) -> Poll<io::Result<Option<usize>>> {
        if self.instead.is_none() {
            let Some(bytes) = explained(head) else {
                return Poll::Ready(Ok(None));
            };
            self.instead = Some(Instead {
                bytes,
                written: 0,
                stands_for: head.len(),
            });
        }
        while let Some(instead) = &mut self.instead {
            let rest = &instead.bytes[instead.written..];
            if rest.is_empty() {
                let stands_for = instead.stands_for;
                self.instead = None;
                return Poll::Ready(Ok(Some(stands_for)));
            }
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            instead.written += written;
        }
        Poll::Ready(Ok(None))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Explained<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Explained<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        match ready!(self.poll_instead(cx, buffer))? {
            Some(length) => Poll::Ready(Ok(length)),
            None => Pin::new(&mut self.stream).poll_write(cx, buffer),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut filled = buffers.iter().filter(|buffer| !buffer.is_empty());
        if let (Some(head), None) = (filled.next(), filled.next())
            && let Some(length) = ready!(self.poll_instead(cx, head))?
        {
            return Poll::Ready(Ok(length));
        }
        Pin::new(&mut self.stream).poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const HEAD: &str = "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\
                        date: Sun, 22 Nov 2026 07:00:00 GMT\r\n\r\n";

    #[test]
    fn only_heads_of_hypers_own_are_explained() {
        assert!(explained(HEAD.as_bytes()).is_some());
        for other in [
            HEAD.replace("431", "404"),
            HEAD.replace("content-length: 0", "content-length: 5"),
            HEAD.replace("date:", "x-content-type-options: nosniff\r\ndate:"),
            format!("{HEAD}more"),
            "HTTP/1.1 400 Bad".to_owned(),
            "HTTP/1.1\r\n\r\n".to_owned(),
        ] {
            assert_eq!(explained(other.as_bytes()), None, "{other}");
        }
    }

    #[tokio::test]
    async fn a_head_is_replaced_however_slowly_the_client_reads() {
        let (near, mut far) = tokio::io::duplex(10);
        let mut near = Explained::new(near);
        let writing = async move {
            near.write_all(HEAD.as_bytes()).await.unwrap();
            near.write_all(b"after").await.unwrap();
        };
        let reading = async move {
            let mut text = String::new();
            far.read_to_string(&mut text).await.unwrap();
            text
        };
        let ((), text) = tokio::join!(writing, reading);
        assert!(
            text.contains("\r\n\r\nthe head of the request is larger"),
            "{text}"
        );
        assert!(text.contains("date: Sun, 22 Nov 2026"), "{text}");
        assert!(text.ends_with("POST\nafter"), "{text}");
    }
}
