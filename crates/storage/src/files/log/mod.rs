//! The commit log: all commits since the last checkpoint, one record each.
//!
//! A commit is durable when its record is on the disk, so a [`LogWriter`] appends records at the
//! end of one file and lets all who wait share one fdatasync. After a crash a [`LogReader`] gives
//! the records back in order and finds where the file ends in truth. The ids in a record are
//! relative to the base segment and the delta dictionary that the file's header names; nothing here
//! knows what they mean.
//!
//! The file `DIR/log/000001.log`, little endian, `varint` as in LEB128:
//!
//! ```text
//! header     magic "ORRERYLG" | body length u32 | crc32c of the body u32
//!            body: format version u32 | salt u32 | first commit number u64 | base generation u64 | base segment's name, to the end
//! record     length u32, of all after the checksum | crc32c u32, of the same, begun with the salt
//!            durable u64 | kind u8 | content
//! content    of a mark (kind 2): nothing
//!            of a commit (kind 4): commit number u64 | time i64, microseconds since 1970 | sections, by ascending kind
//! section    kind u8 | length u32 | content:
//!            1 who: UTF-8
//!            2 next blank node: varint; always there
//!            3 new terms: index of the first varint | each: varint length, key; always there
//!            4 insertions, 5 deletions: count varint | rows
//!            6 graphs that were cleared first: flags u8 (1: all named graphs) | count varint | ids of graphs, varint each |
//!              added varint | removed varint
//!            128 how new language tags are written: each: varint length, UTF-8
//!            129 prefixes: each: u8 (0 removed, 1 of a loaded file, 2 given) | name: varint length, UTF-8 | unless removed, IRI: the same
//!            A section of another kind from 128 on is passed over, below it is an error.
//! content    of versions before 3, a commit (kind 1): commit number, time | who: varint length, UTF-8 | 2 |
//!            index of the first new term varint | count varint | each: varint length, key | 4 | 5
//!            a commit that cleared graphs (kind 3): the same, then 6
//! row        mask u8: which of s, p, o, g differ from the row before (the first: from zero)
//!            for each of these the difference, zigzag varint
//! ```
//!
//! `durable` is the position before which everything was on the disk when the record was written.
//! It tells a power cut from damage: a power cut may lose any part of what comes after the last
//! fdatasync, even the first of two records and not the second. So what cannot be read is a *torn
//! tail*, and is cut off, as long as no later record says that it was durable; if one does, it is
//! damage, and is reported. After each fdatasync that leaves nothing to do the writer puts a *mark*
//! at the end, a record that says only this; the next record overwrites it. So damage to the very
//! last commit is found as well. What stands behind a mark is searched in the same way, for the
//! mark may be an old one that came back in place of a commit.
//!
//! The salt makes records of one file invalid in any other, and keeps a literal that imitates a
//! record from being taken for one. A file whose torn tail was cut off is not written on, so what
//! was in the tail cannot come back behind a new record of the same salt.
//!
//! A record of an unknown kind, or with an unknown section below 128, with the right checksum was
//! written by a newer program: an error, never a torn tail. Whoever adds such a kind raises the
//! header's format version; a log of an older version is closed when a writer opens it, and a new
//! file begun.

use std::path::{Path, PathBuf};

mod header;
mod reader;
mod record;
mod tail;
mod writer;

pub use header::LogHeader;
pub use reader::{LogEnd, LogReader, LogTail, LoggedRecord};
pub use record::{ClearedGraphs, Keys, LogRecord};
pub use writer::{Appended, LogWriter};

#[cfg(test)]
mod tests;

/// Name of the directory with the log's files within the database's.
pub const LOG_DIRECTORY: &str = "log";

/// Longest record, without its length and checksum.
pub const RECORD_BYTES_MAX: usize = 1 << 30;

/// Length and checksum before a record.
const FRAME_BYTES: usize = 8;
/// The position that was durable, and the kind.
const PREFIX_BYTES: usize = 9;
const KIND_UNSECTIONED_COMMIT: u8 = 1;
const KIND_MARK: u8 = 2;
const KIND_UNSECTIONED_CLEARING_COMMIT: u8 = 3;
const KIND_COMMIT: u8 = 4;
/// Length of a mark.
const MARK_BYTES: usize = FRAME_BYTES + PREFIX_BYTES;

/// The path of a log file by its number.
pub fn log_file(directory: &Path, number: u64) -> PathBuf {
    directory
        .join(LOG_DIRECTORY)
        .join(format!("{number:06}.log"))
}

/// The length that a record's first bytes tell, if one may be so long.
fn frame_length(bytes: &[u8]) -> Option<usize> {
    let length = header::u32_at(bytes, 0)? as usize;
    (PREFIX_BYTES..=RECORD_BYTES_MAX)
        .contains(&length)
        .then_some(length)
}

/// Puts a record's bytes in place of what `out` holds.
fn frame(salt: u32, durable: u64, kind: u8, out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    out.clear();
    out.extend_from_slice(&[0; FRAME_BYTES]);
    out.extend_from_slice(&durable.to_le_bytes());
    out.push(kind);
    content(out);
    let length = (out.len() - FRAME_BYTES) as u32;
    let crc = crc32c::crc32c_append(salt, &out[FRAME_BYTES..]);
    out[..4].copy_from_slice(&length.to_le_bytes());
    out[4..FRAME_BYTES].copy_from_slice(&crc.to_le_bytes());
}

/// The mark at a position, before which everything is on the disk.
fn mark_bytes(salt: u32, position: u64) -> Vec<u8> {
    let mut mark = Vec::with_capacity(MARK_BYTES);
    frame(salt, position, KIND_MARK, &mut mark, |_| {});
    mark
}
