//! Errors and notices for clients, and the reasons why a statement or connection stops.

use std::io;

use bytes::BytesMut;
use orrery_sql::{Error, SqlState};

use crate::frontend::Malformed;
use crate::message::put_message;

/// An error or a notice, as the protocol reports it.
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

    /// An error that ends the connection.
    pub(crate) fn fatal(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: "FATAL",
            ..Self::new(code, message)
        }
    }

    /// A warning, which is no error.
    pub(crate) fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: "WARNING",
            ..Self::new(code, message)
        }
    }

    pub(crate) fn is_out_of_memory(&self) -> bool {
        self.code == SqlState::OutOfMemory.code()
    }

    pub(crate) fn is_fatal(&self) -> bool {
        self.severity == "FATAL"
    }

    /// Writes it as ErrorResponse, or as NoticeResponse.
    pub(crate) fn write(&self, output: &mut BytesMut) {
        let kind = if self.severity == "WARNING" {
            b'N'
        } else {
            b'E'
        };
        put_message(output, kind, |body| {
            let mut field = |kind: u8, text: &str| {
                body.extend_from_slice(&[kind]);
                // A zero would end the text.
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
            // Other errors make the rest unreadable.
            other => Self::fatal("08P01", other),
        }
    }
}

/// Why a statement or the connection ends.
#[derive(Debug)]
pub(crate) enum Stop {
    /// An error for the client, who goes on unless it is fatal.
    Refused(Refusal),
    /// The client has left.
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

/// The result of work that may be stopped.
pub(crate) type Stopped<T> = Result<T, Stop>;
