//! The header of a log file: the state that its records start from.

use std::io::Read;
use std::path::Path;

use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"ORRERYLG";
/// The version that this program writes. A record of a new kind, or a section that must be
/// understood, needs a new one: a program that does not know it must not take such a file. Files of
/// an older version are read, never appended to.
pub(super) const VERSION: u32 = 3;
/// The version whose records are commits and marks only.
const VERSION_MIN: u32 = 1;
/// Magic, length of the body, checksum.
const FIXED_BYTES: usize = 16;
/// Version, salt, first commit, generation.
const BODY_BYTES_MIN: usize = 24;
/// A name of a segment is much shorter.
const BODY_BYTES_MAX: usize = 4096;

/// The header of a log file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHeader {
    /// Name of the base segment's directory.
    pub base_segment: String,
    /// Generation of the manifest that brought the base segment.
    pub base_generation: u64,
    /// The commit number of the first record, whether there is one yet or not.
    pub first_commit: u64,
}

/// A header as it stands in a file.
pub(super) struct ReadHeader {
    pub(super) header: LogHeader,
    pub(super) version: u32,
    pub(super) salt: u32,
    /// Its length.
    pub(super) bytes: u64,
}

impl LogHeader {
    pub(super) fn to_bytes(&self, salt: u32) -> Vec<u8> {
        let mut body = Vec::with_capacity(BODY_BYTES_MIN + self.base_segment.len());
        body.extend_from_slice(&VERSION.to_le_bytes());
        body.extend_from_slice(&salt.to_le_bytes());
        body.extend_from_slice(&self.first_commit.to_le_bytes());
        body.extend_from_slice(&self.base_generation.to_le_bytes());
        body.extend_from_slice(self.base_segment.as_bytes());
        let mut bytes = Vec::with_capacity(FIXED_BYTES + body.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }

    /// Reads the header.
    pub(super) fn read(input: &mut dyn Read, path: &Path) -> Result<ReadHeader> {
        let damaged = |what: &str| Error::corrupt(path, 0, what);
        let mut fixed = Vec::with_capacity(FIXED_BYTES);
        read_up_to(input, FIXED_BYTES, &mut fixed, path)?;
        if fixed.first_chunk() != Some(MAGIC) {
            return Err(damaged("it does not begin as a log file"));
        }
        let (Some(length), Some(crc)) = (u32_at(&fixed, 8), u32_at(&fixed, 12)) else {
            return Err(damaged("the log's header is incomplete"));
        };
        let mut body = Vec::new();
        let length = length as usize;
        if (BODY_BYTES_MIN..=BODY_BYTES_MAX).contains(&length) {
            read_up_to(input, length, &mut body, path)?;
        }
        if body.len() != length || crc32c::crc32c(&body) != crc {
            return Err(damaged("the log's header does not match its checksum"));
        }
        let version = u32_at(&body, 0).unwrap_or(0);
        if !(VERSION_MIN..=VERSION).contains(&version) {
            return Err(Error::FormatVersion {
                path: path.to_path_buf(),
                found: version,
                supported: VERSION,
            });
        }
        let (Some(salt), Some(first_commit), Some(base_generation), Some(name)) = (
            u32_at(&body, 4),
            u64_at(&body, 8),
            u64_at(&body, 16),
            body.get(BODY_BYTES_MIN..),
        ) else {
            return Err(damaged("the log's header is incomplete"));
        };
        let base_segment = std::str::from_utf8(name)
            .map_err(|_| damaged("the base segment's name is not UTF-8"))?
            .to_owned();
        let header = Self {
            base_segment,
            base_generation,
            first_commit,
        };
        Ok(ReadHeader {
            header,
            version,
            salt,
            bytes: (FIXED_BYTES + length) as u64,
        })
    }
}

/// Reads `bytes` bytes, or fewer if the file ends before.
pub(super) fn read_up_to(
    input: &mut dyn Read,
    bytes: usize,
    out: &mut Vec<u8>,
    path: &Path,
) -> Result<()> {
    input
        .take(bytes as u64)
        .read_to_end(out)
        .map(|_| ())
        .map_err(|error| Error::from_io(path, "read", error))
}

pub(super) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

pub(super) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}
