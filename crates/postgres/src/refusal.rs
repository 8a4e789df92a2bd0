//! What goes wrong, and how a client is told.

use std::io;

use bytes::BytesMut;
use orrery_sql::Error;

use crate::frontend::Malformed;
use crate::message::put_message;

/// An error or a notice as a client is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) severity: &'static str,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) error: Option<Box<Error>>,
}

impl Refusal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: "ERROR",
            code,
            message: message.into(),
            error: None,
        }
    }

    /// One after which the connection ends.
    pub(crate) fn fatal(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: "FATAL",
            ..Self::new(code, message)
        }
    }

    /// What is no error.
    pub(crate) fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: "WARNING",
            ..Self::new(code, message)
        }
    }

    pub(crate) fn is_fatal(&self) -> bool {
        self.severity == "FATAL"
    }

    /// As ErrorResponse, or as NoticeResponse.
    pub(crate) fn write(&self, output: &mut BytesMut) {
        let kind = if self.severity == "WARNING" {
            b'N'
        } else {
            b'E'
        };
        put_message(output, kind, |body| {
            let mut field = |kind: u8, text: &str| {
                body.extend_from_slice(&[kind]);
                // A text cannot go on behind a zero.
                body.extend(text.bytes().filter(|byte| *byte != 0));
                body.extend_from_slice(&[0]);
            };
            field(b'S', self.severity);
            field(b'V', self.severity);
            field(b'C', self.code);
            field(b'M', &self.message);
            if let Some(error) = &self.error {
                let mut about = vec![
                    (b'D', error.detail.as_deref()),
                    (b'H', error.hint.as_deref()),
                    (b'W', error.context.as_deref()),
                ];
                if let Some(objects) = &error.objects {
                    about.extend([
                        (b's', Some(objects.schema.as_str())),
                        (b't', Some(objects.table.as_str())),
                        (b'c', objects.column.as_deref()),
                        (b'n', objects.constraint.as_deref()),
                    ]);
                }
                for (kind, text) in about {
                    if let Some(text) = text {
                        field(kind, text);
                    }
                }
                if let Some(position) = error.position {
                    field(b'P', &position.to_string());
                }
            }
            body.extend_from_slice(&[0]);
        });
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self {
            severity: "ERROR",
            code: error.state.code(),
            message: error.message.clone(),
            error: Some(Box::new(error)),
        }
    }
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        match malformed.0 {
            encoding if encoding.contains("UTF8") => Self::new("22021", encoding),
            // What follows is no better.
            other => Self::fatal("08P01", other),
        }
    }
}

/// Why a statement, or the connection, comes to its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The client is told, and goes on if it is not fatal.
    Refused(Refusal),
    /// The client has gone.
    Gone(io::Error),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Refused(error.into())
    }
}

impl From<Malformed> for Stop {
    fn from(malformed: Malformed) -> Self {
        Self::Refused(malformed.into())
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

/// What may stop.
pub(crate) type Stopped<T> = Result<T, Stop>;
