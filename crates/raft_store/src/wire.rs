//! The encoding of messages, log entries and snapshots: a JSON header, then the bytes of objects.
//!
//! ```text
//! u32 bytes of the header | u32 number of blobs | u32 length of each blob .. | header: JSON | blobs, one after the other
//! ```
//!
//! Numbers are little-endian. In the header a blob is its length; they are met in the same order
//! when it is read. So an object's bytes are neither escaped nor copied: a blob that was read is a
//! slice of the message.

use std::collections::VecDeque;

use bytes::Bytes;
use orrery_wire_fields::{FieldReader, FieldWriter};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Result;
use crate::types::{finish_blobs, start_blobs};

/// Lays a value out.
pub(crate) fn pack<T: Serialize>(value: &T) -> Result<Bytes> {
    start_blobs(VecDeque::new());
    let header = serde_json::to_vec(value);
    let blobs = finish_blobs();
    let header = header?;
    let bytes = 8 + 4 * blobs.len() + header.len() + blobs.iter().map(Bytes::len).sum::<usize>();
    let mut fields = FieldWriter::with_capacity(bytes);
    fields.count(header.len())?;
    fields.count(blobs.len())?;
    for blob in &blobs {
        fields.count(blob.len())?;
    }
    fields.rest(&header);
    for blob in &blobs {
        fields.rest(blob);
    }
    Ok(fields.finish())
}

/// Reads what [`pack`] laid out.
pub(crate) fn unpack<T: DeserializeOwned>(message: &Bytes) -> Result<T> {
    let mut fields = FieldReader::new(message.clone());
    let header_bytes = fields.count()?;
    let number = fields.count()?;
    let mut lengths = FieldReader::new(fields.take(number.saturating_mul(4))?);
    let header = fields.take(header_bytes)?;
    let mut found = VecDeque::with_capacity(number);
    for _ in 0..number {
        found.push_back(fields.take(lengths.count()?)?);
    }
    fields.end()?;
    start_blobs(found);
    let value = serde_json::from_slice(&header);
    finish_blobs();
    Ok(value?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Batch, Command, Content, Mode, Request};

    fn batch() -> Batch {
        let put = |path: &str, bytes: &'static [u8]| Request {
            session: 3,
            number: 7,
            floor: 2,
            command: Command::Put {
                path: path.to_owned(),
                mode: Mode::Update(9),
                content: Content::Inline(Bytes::from_static(bytes)),
            },
        };
        Batch {
            now_us: 5,
            commands: vec![put("a", b"one"), put("b", b""), put("c", &[0, 255, 1])],
        }
    }

    #[test]
    fn what_is_packed_is_unpacked_alike() {
        assert_eq!(unpack::<Batch>(&pack(&batch()).unwrap()).unwrap(), batch());
    }

    #[test]
    fn a_message_that_is_cut_anywhere_is_an_error_and_no_panic() {
        let message = pack(&batch()).unwrap();
        for end in 0..message.len() {
            assert!(
                unpack::<Batch>(&message.slice(..end)).is_err(),
                "cut at {end}"
            );
        }
    }
}
