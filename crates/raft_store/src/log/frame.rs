//! A frame: one atomic write to the log.
//!
//! ```text
//! u32 length of kind and body | u32 CRC-32C of length, kind and body | u8 kind | body
//!
//! kind 1, entries    u64 index of the first | u32 length | the last entry known to be committed: JSON
//!                    | u32 number | each: u32 length, wire
//! kind 2, cut        u64 index: this entry and those after it are no longer part of the log
//! kind 3, purged     JSON of a log id: entries up to it are part of a snapshot
//! ```
//!
//! Numbers are little-endian. Each write is one frame and is synced before the next one begins. So
//! a frame that is not whole is the last one of the last file (a torn tail, which nobody was told
//! of), or it is damage: then a whole frame follows somewhere behind it.

use bytes::{BufMut, Bytes, BytesMut};
use crc32c::{crc32c, crc32c_append};
use orrery_wire_fields::{FieldReader, FieldWriter};

use crate::error::{Error, Result};
use crate::types::{Entry, LogId};
use crate::wire;

/// Bytes in front of kind and body.
const HEADER_BYTES: usize = 8;
/// A frame is no longer than this.
pub(crate) const FRAME_BYTES_MAX: usize = 64 << 20;
/// A frame that has no entries is no longer than this.
const SHORT_FRAME_BYTES_MAX: usize = 256;
/// Indexes of neighbouring frames are no further apart than this.
const INDEX_DISTANCE_MAX: u64 = 1 << 24;

/// What a frame says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Frame {
    /// Entries that follow each other.
    Entries {
        /// The last entry known to be committed when this was written.
        committed: Option<LogId>,
        /// The entries, with the bytes that each takes here.
        entries: Vec<(Entry, usize)>,
    },
    /// The log ends before this index now.
    Cut(u64),
    /// The log begins after this entry now.
    Purged(LogId),
}

/// Lays a frame of entries out, and tells the bytes of each.
pub(crate) fn encode_entries(
    committed: Option<LogId>,
    entries: &[Entry],
) -> Result<(Bytes, Vec<usize>)> {
    let mut body = FieldWriter::default();
    body.number(entries.first().map_or(0, |entry| entry.log_id.index));
    body.json(&committed)?;
    body.count(entries.len())?;
    let mut sizes = Vec::with_capacity(entries.len());
    for entry in entries {
        let packed = wire::pack(entry)?;
        body.bytes(&packed)?;
        sizes.push(packed.len());
    }
    Ok((frame(1, &body.finish())?, sizes))
}

/// Lays out that the log is cut.
pub(crate) fn encode_cut(index: u64) -> Result<Bytes> {
    frame(2, &index.to_le_bytes())
}

/// Lays out that the log is purged.
pub(crate) fn encode_purged(upto: LogId) -> Result<Bytes> {
    frame(3, &serde_json::to_vec(&upto)?)
}

fn frame(kind: u8, body: &[u8]) -> Result<Bytes> {
    let bytes = 1 + body.len();
    if bytes > FRAME_BYTES_MAX {
        return Err(Error::Message(format!(
            "{bytes} bytes are too much for one write to the log"
        )));
    }
    let mut out = BytesMut::with_capacity(HEADER_BYTES + bytes);
    let length = length(bytes)?.to_le_bytes();
    out.put_slice(&length);
    out.put_u32_le(crc32c_append(crc32c_append(crc32c(&length), &[kind]), body));
    out.put_u8(kind);
    out.put_slice(body);
    Ok(out.freeze())
}

/// What stands at an offset of a file.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    /// A frame, and where it ends.
    Frame(Frame, usize),
    /// The end of the file.
    End,
    /// Neither.
    Broken,
}

/// Looks at an offset of a file.
pub(crate) fn decode(file: &Bytes, at: usize) -> Result<Found> {
    if at == file.len() {
        return Ok(Found::End);
    }
    let Some(end) = whole(file, at) else {
        return Ok(Found::Broken);
    };
    let body = file.slice(at + HEADER_BYTES + 1..end);
    let frame = match file[at + HEADER_BYTES] {
        1 => {
            let mut body = FieldReader::new(body);
            let _index = body.number()?;
            let committed = body.json()?;
            let mut entries = Vec::new();
            for _ in 0..body.count()? {
                let packed = body.bytes()?;
                entries.push((wire::unpack(&packed)?, packed.len()));
            }
            Frame::Entries { committed, entries }
        }
        2 => Frame::Cut(FieldReader::new(body).number()?),
        3 => Frame::Purged(serde_json::from_slice(&body)?),
        kind => {
            return Err(Error::Message(format!(
                "a frame of kind {kind}, which a newer program has written"
            )));
        }
    };
    Ok(Found::Frame(frame, end))
}

/// Whether a whole frame begins somewhere behind an offset: what is broken there is no torn tail
/// then.
pub(crate) fn another_follows(file: &Bytes, at: usize, next_index: u64) -> Option<usize> {
    (at + 1..file.len().saturating_sub(HEADER_BYTES))
        .find(|&start| plausible(file, start, next_index) && whole(file, start).is_some())
}

/// A cheap look at what may be a frame's beginning.
fn plausible(file: &Bytes, at: usize, next_index: u64) -> bool {
    let Some(length) = u32_at(file, at) else {
        return false;
    };
    match file.get(at + HEADER_BYTES) {
        Some(1) => match file
            .get(at + HEADER_BYTES + 1..at + HEADER_BYTES + 9)
            .and_then(|bytes| bytes.try_into().ok())
        {
            Some(index) => u64::from_le_bytes(index).abs_diff(next_index) < INDEX_DISTANCE_MAX,
            None => false,
        },
        Some(2 | 3) => length <= SHORT_FRAME_BYTES_MAX,
        _ => false,
    }
}

/// Where the frame at an offset ends, if it is whole.
fn whole(file: &Bytes, at: usize) -> Option<usize> {
    let length = u32_at(file, at)?;
    if length == 0 || length > FRAME_BYTES_MAX {
        return None;
    }
    let end = at + HEADER_BYTES + length;
    let rest = file.get(at + HEADER_BYTES..end)?;
    let stored = u32_at(file, at + 4)?;
    (crc32c_append(crc32c(&file[at..at + 4]), rest) as usize == stored).then_some(end)
}

fn u32_at(file: &Bytes, at: usize) -> Option<usize> {
    file.get(at..at + 4)
        .and_then(|bytes| bytes.try_into().ok())
        .map(|bytes| u32::from_le_bytes(bytes) as usize)
}

fn length(value: usize) -> Result<u32> {
    u32::try_from(value)
        .map_err(|_| Error::Message(format!("{value} bytes are too much for a frame")))
}
