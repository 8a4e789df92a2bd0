//! Parser of the messages that clients send.
//!
//! <https://www.postgresql.org/docs/current/protocol-message-formats.html>
//!
//! ```text
//!   a message   type (1 byte), length with itself (4 bytes, big endian), body
//!   a text      bytes, 0
//! ```
//!
//! Nothing in a body is trusted: each count and length is checked against the bytes that are there.

use bytes::{Buf, Bytes};

/// A message of a client after the start.
#[derive(Debug, PartialEq)]
pub(crate) enum Frontend {
    Query(String),
    Parse {
        name: String,
        text: String,
        types: Vec<u32>,
    },
    Bind(Bind),
    Describe(Target),
    Close(Target),
    Execute {
        portal: String,
        rows_max: usize,
    },
    Flush,
    Sync,
    Terminate,
    CopyData(Bytes),
    CopyDone,
    CopyFail(String),
    Password(Bytes),
    /// Ignored: it belongs to a failed message.
    Skipped,
}

/// A Bind message: values for a statement.
#[derive(Debug, PartialEq)]
pub(crate) struct Bind {
    pub(crate) portal: String,
    pub(crate) statement: String,
    pub(crate) formats: Vec<i16>,
    pub(crate) values: Vec<Option<Bytes>>,
    pub(crate) result_formats: Vec<i16>,
}

/// What Describe or Close names.
#[derive(Debug, PartialEq)]
pub(crate) enum Target {
    Statement(String),
    Portal(String),
}

/// The reason why a message is malformed.
#[derive(Debug, PartialEq)]
pub(crate) struct Malformed(pub(crate) &'static str);

type Read<T> = Result<T, Malformed>;

impl Frontend {
    /// Whether messages of a type are read after a failure: Sync and Terminate.
    pub(crate) fn ends_failure(kind: u8) -> bool {
        matches!(kind, b'S' | b'X')
    }

    /// Parses a message from its type and its body.
    pub(crate) fn read(kind: u8, body: Bytes) -> Read<Self> {
        let mut body = Body(body);
        let message = match kind {
            b'Q' => Self::Query(body.text()?),
            b'P' => Self::Parse {
                name: body.text()?,
                text: body.text()?,
                types: body.list(4, |body| Ok(body.0.get_u32()))?,
            },
            b'B' => Self::Bind(Bind {
                portal: body.text()?,
                statement: body.text()?,
                formats: body.list(2, |body| Ok(body.0.get_i16()))?,
                values: body.list(4, Body::value)?,
                result_formats: body.list(2, |body| Ok(body.0.get_i16()))?,
            }),
            b'D' => Self::Describe(body.target()?),
            b'C' => Self::Close(body.target()?),
            b'E' => Self::Execute {
                portal: body.text()?,
                rows_max: usize::try_from(body.number()?).unwrap_or(0),
            },
            b'H' => Self::Flush,
            b'S' => Self::Sync,
            b'X' => Self::Terminate,
            b'd' => Self::CopyData(std::mem::take(&mut body.0)),
            b'c' => Self::CopyDone,
            b'f' => Self::CopyFail(body.text()?),
            b'p' => Self::Password(std::mem::take(&mut body.0)),
            _ => return Err(Malformed("invalid frontend message type")),
        };
        match body.0.is_empty() {
            true => Ok(message),
            false => Err(Malformed("invalid message format")),
        }
    }
}

/// The unread rest of a body.
pub(crate) struct Body(pub(crate) Bytes);

impl Body {
    fn require(&self, bytes: usize) -> Read<()> {
        match self.0.remaining() >= bytes {
            true => Ok(()),
            false => Err(Malformed("insufficient data left in message")),
        }
    }

    pub(crate) fn text(&mut self) -> Read<String> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let end = end.ok_or(Malformed("invalid string in message"))?;
        let text = self.0.split_to(end);
        self.0.advance(1);
        match std::str::from_utf8(&text) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(Malformed("invalid byte sequence for encoding \"UTF8\"")),
        }
    }

    pub(crate) fn number(&mut self) -> Read<i32> {
        self.require(4)?;
        Ok(self.0.get_i32())
    }

    /// Parses a count, and that many elements of at least `bytes_min` bytes.
    fn list<T>(
        &mut self,
        bytes_min: usize,
        mut element: impl FnMut(&mut Self) -> Read<T>,
    ) -> Read<Vec<T>> {
        self.require(2)?;
        let count = usize::from(self.0.get_u16());
        self.require(count * bytes_min)?;
        (0..count)
            .map(|_| {
                self.require(bytes_min)?;
                element(self)
            })
            .collect()
    }

    fn value(&mut self) -> Read<Option<Bytes>> {
        match self.number()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length)
                    .map_err(|_| Malformed("insufficient data left in message"))?;
                self.require(length)?;
                Ok(Some(self.0.split_to(length)))
            }
        }
    }

    fn target(&mut self) -> Read<Target> {
        self.require(1)?;
        let kind = self.0.get_u8();
        let name = self.text()?;
        match kind {
            b'S' => Ok(Target::Statement(name)),
            b'P' => Ok(Target::Portal(name)),
            _ => Err(Malformed("invalid message subtype")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_are_read_and_what_is_too_short_or_too_long_is_refused() {
        let read = |kind, body: &'static [u8]| Frontend::read(kind, Bytes::from_static(body));
        assert_eq!(
            read(b'Q', b"select 1\0"),
            Ok(Frontend::Query("select 1".to_owned()))
        );
        let bind = b"\0s\0\0\x01\0\x01\0\x02\xff\xff\xff\xff\0\0\0\x02hi\0\0";
        let Ok(Frontend::Bind(bind)) = read(b'B', bind) else {
            panic!("it is a Bind");
        };
        assert_eq!(bind.statement, "s");
        assert_eq!(bind.formats, [1]);
        assert_eq!(bind.values, [None, Some(Bytes::from_static(b"hi"))]);
        assert!(read(b'Q', b"select 1").is_err());
        assert!(read(b'Q', b"select 1\0 ").is_err());
        assert!(read(b'Q', b"\xff\0").is_err());
        assert!(read(b'P', b"\0\0\xff\xff").is_err());
        assert!(read(b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff").is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(kind in any::<u8>(), body in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Frontend::read(kind, Bytes::from(body));
        }
    }
}
