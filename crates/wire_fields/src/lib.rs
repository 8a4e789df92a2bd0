//! Length-prefixed fields: how messages between processes, and entries of the cluster's log, are
//! laid out in bytes.
//!
//! ```text
//! number   u32 or u64, little-endian
//! bytes    u32: their length   the bytes
//! json     a value as JSON, as bytes
//! rest     all that is left, without a length; the last field
//! ```
//!
//! [`FieldWriter`] lays a message out, [`FieldReader`] takes it apart: bytes are slices of the
//! message, nothing is copied. What the fields mean, their order and the version are the message's
//! own. Streams that must be checked while they are read have frames with checksums or signatures
//! around such messages (`raft_store/src/http/calls/frame.rs`, `loader/src/workers/wire.rs`).

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why a message cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FieldError {
    /// A field to be written does not fit its length of 32 bits.
    #[error("a field of {bytes} bytes does not fit a message")]
    TooLong {
        /// Bytes or items of the field.
        bytes: usize,
    },
    /// The message ends within a field.
    #[error("it is cut short")]
    Cut,
    /// There are bytes after the last field.
    #[error("there are bytes after its end")]
    Longer,
    /// A field is not the JSON that it must be.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

/// Result with [`FieldError`].
pub type Result<T> = std::result::Result<T, FieldError>;

/// A message being written.
#[derive(Debug, Default)]
pub struct FieldWriter(BytesMut);

impl FieldWriter {
    /// An empty message with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(BytesMut::with_capacity(bytes))
    }

    /// Writes a count or a length in 32 bits.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn count(&mut self, count: usize) -> Result<()> {
        let number = u32::try_from(count).map_err(|_| FieldError::TooLong { bytes: count })?;
        self.0.put_u32_le(number);
        Ok(())
    }

    /// Writes a number of 64 bits.
    pub fn number(&mut self, number: u64) {
        self.0.put_u64_le(number);
    }

    /// Writes bytes behind their length.
    ///
    /// # Errors
    /// When they are 4 GiB or more.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.count(bytes.len())?;
        self.0.put_slice(bytes);
        Ok(())
    }

    /// Writes a value as JSON behind its length.
    ///
    /// # Errors
    /// When it has no form in JSON.
    pub fn json(&mut self, value: &impl Serialize) -> Result<()> {
        self.bytes(&serde_json::to_vec(value)?)
    }

    /// Writes bytes without a length: the last field, or one whose length was written before.
    pub fn rest(&mut self, bytes: &[u8]) {
        self.0.put_slice(bytes);
    }

    /// The message.
    pub fn finish(self) -> Bytes {
        self.0.freeze()
    }
}

/// A message being read.
#[derive(Debug)]
pub struct FieldReader(Bytes);

impl FieldReader {
    /// Begins with the first field.
    pub fn new(message: Bytes) -> Self {
        Self(message)
    }

    /// Reads what [`FieldWriter::count`] wrote. Whoever makes room for as many items bounds it by
    /// [`Self::left`] first: the number is the sender's.
    ///
    /// # Errors
    /// When the message ends before it does.
    pub fn count(&mut self) -> Result<usize> {
        let count = self.0.try_get_u32_le().map_err(|_| FieldError::Cut)?;
        usize::try_from(count).map_err(|_| FieldError::Cut)
    }

    /// Reads a number of 64 bits.
    ///
    /// # Errors
    /// When the message ends before it does.
    pub fn number(&mut self) -> Result<u64> {
        self.0.try_get_u64_le().map_err(|_| FieldError::Cut)
    }

    /// Reads bytes behind their length.
    ///
    /// # Errors
    /// When the message ends before they do.
    pub fn bytes(&mut self) -> Result<Bytes> {
        let length = self.count()?;
        self.take(length)
    }

    /// Reads so many bytes.
    ///
    /// # Errors
    /// When the message ends before they do.
    pub fn take(&mut self, length: usize) -> Result<Bytes> {
        match length <= self.0.len() {
            true => Ok(self.0.split_to(length)),
            false => Err(FieldError::Cut),
        }
    }

    /// Reads a value as JSON behind its length.
    ///
    /// # Errors
    /// When the message ends before it does, or the JSON is none of such a value.
    pub fn json<T: DeserializeOwned>(&mut self) -> Result<T> {
        Ok(serde_json::from_slice(&self.bytes()?)?)
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.0.len()
    }

    /// All that is left.
    pub fn rest(self) -> Bytes {
        self.0
    }

    /// Ends a message whose last field was read.
    ///
    /// # Errors
    /// When there are bytes after it.
    pub fn end(self) -> Result<()> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(FieldError::Longer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Bytes {
        let mut writer = FieldWriter::with_capacity(0);
        writer.count(3).unwrap();
        writer.number(u64::MAX - 1);
        writer.bytes(b"ab").unwrap();
        writer.json(&("x", 7)).unwrap();
        writer.rest(b"rest");
        writer.finish()
    }

    type Read = (usize, u64, Bytes, (String, i32), Bytes);

    fn read(message: Bytes) -> Result<Read> {
        let mut reader = FieldReader::new(message);
        Ok((
            reader.count()?,
            reader.number()?,
            reader.bytes()?,
            reader.json()?,
            reader.rest(),
        ))
    }

    #[test]
    fn fields_come_back_in_the_layout_that_is_described() {
        let message = message();
        let expected =
            b"\x03\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\x02\0\0\0ab\x07\0\0\0[\"x\",7]rest";
        assert_eq!(&message[..], expected);
        let (count, number, bytes, json, rest) = read(message).unwrap();
        assert_eq!((count, number), (3, u64::MAX - 1));
        assert_eq!((&bytes[..], &rest[..]), (&b"ab"[..], &b"rest"[..]));
        assert_eq!(json, ("x".to_owned(), 7));
    }

    #[test]
    fn a_message_that_is_cut_anywhere_is_an_error() {
        let message = message();
        for end in 0..message.len() - b"rest".len() {
            assert!(read(message.slice(..end)).is_err(), "{end}");
        }
        // A length that is longer than the message.
        let long = Bytes::from_static(&[0xff, 0xff, 0xff, 0xff, 1]);
        assert!(matches!(
            FieldReader::new(long.clone()).bytes(),
            Err(FieldError::Cut)
        ));
        assert!(matches!(
            FieldReader::new(long).end(),
            Err(FieldError::Longer)
        ));
    }
}
