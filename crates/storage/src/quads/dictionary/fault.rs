//! The errors of decoding a block.

use crate::error::Error;

/// Why bytes could not be decoded.
#[derive(Debug)]
pub(super) enum Fault {
    /// The bytes of a block, whose checksum is right, make no sense here.
    Malformed(&'static str),
    /// Reading another block failed.
    Storage(Box<Error>),
}

/// The result of decoding.
pub(super) type Decoded<T> = Result<T, Fault>;

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Storage(Box::new(error))
    }
}
