//! Writes messages to clients: type (1 byte), length with itself (4 bytes), body.

use bytes::{BufMut, BytesMut};

/// Writes a message around its body.
pub(crate) fn put_message(output: &mut BytesMut, kind: u8, body: impl FnOnce(&mut BytesMut)) {
    output.put_u8(kind);
    let start = output.len();
    output.put_u32(0);
    body(output);
    // More than 2 GB are refused before: values by their size, rows by the batch.
    let length = u32::try_from(output.len() - start).unwrap_or(u32::MAX);
    output[start..start + 4].copy_from_slice(&length.to_be_bytes());
}
