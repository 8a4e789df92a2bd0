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

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::types::{finish_blobs, start_blobs};

/// Lays a value out.
pub(crate) fn pack<T: Serialize>(value: &T) -> Result<Bytes> {
    start_blobs(VecDeque::new());
    let header = serde_json::to_vec(value);
    let blobs = finish_blobs();
    let header = header?;
    let bytes = 8 + 4 * blobs.len() + header.len() + blobs.iter().map(Bytes::len).sum::<usize>();
    let mut out = BytesMut::with_capacity(bytes);
    out.put_u32_le(length(header.len())?);
    out.put_u32_le(length(blobs.len())?);
    for blob in &blobs {
        out.put_u32_le(length(blob.len())?);
    }
    out.put_slice(&header);
    for blob in &blobs {
        out.put_slice(blob);
    }
    Ok(out.freeze())
}

/// Reads what [`pack`] laid out.
pub(crate) fn unpack<T: DeserializeOwned>(message: &Bytes) -> Result<T> {
    let header_bytes = u32_at(message, 0)?;
    let blobs = u32_at(message, 4)?;
    let mut at = blobs
        .checked_mul(4)
        .and_then(|bytes| bytes.checked_add(8))
        .ok_or_else(cut)?;
    let header = at..at.checked_add(header_bytes).ok_or_else(cut)?;
    if header.end > message.len() {
        return Err(cut());
    }
    at = header.end;
    let mut found = VecDeque::with_capacity(blobs);
    for number in 0..blobs {
        let end = at
            .checked_add(u32_at(message, 8 + 4 * number)?)
            .filter(|&end| end <= message.len())
            .ok_or_else(cut)?;
        found.push_back(message.slice(at..end));
        at = end;
    }
    if at != message.len() {
        return Err(Error::Message("there are bytes after its end".to_owned()));
    }
    start_blobs(found);
    let value = serde_json::from_slice(&message[header]);
    finish_blobs();
    Ok(value?)
}

fn length(value: usize) -> Result<u32> {
    u32::try_from(value).map_err(|_| Error::Message("a part has more than 4 GiB".to_owned()))
}

fn u32_at(message: &Bytes, at: usize) -> Result<usize> {
    let bytes = message
        .get(at..at + 4)
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(cut)?;
    Ok(u32::from_le_bytes(bytes) as usize)
}

fn cut() -> Error {
    Error::Message("it is cut short".to_owned())
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
