//! The side file of a cached file: present pieces and their checksums.
//!
//! ```text
//! 0     8    magic "ORRERYCS"
//! 8     4    format version (1)
//! 12    4    length of the key
//! 16    8    length of the whole file
//! 24    4    crc32c of the bytes before and of the key
//! 28    n    the key; then zeros up to byte 1024
//! 1024  272  record of extent 0, then those of the others
//!            0    8    bit p: piece p of the extent is there
//!            8    256  64 times: crc32c of the piece
//!            264  4    crc32c of the bytes before and of the number of the extent
//!            268  4    zero
//! ```
//!
//! Numbers are little-endian. A record is written right after the bytes of its pieces, with no sync
//! anywhere: the checksums decide what is there, not the order of the writes. After a kill or a
//! power cut a record is old, new or torn. One that is torn (or a hole, for nothing was written
//! there) does not fit its checksum, and then nothing of the extent is there. An old one names
//! checksums that the bytes have, or have not any more. A piece that became a hole has the checksum
//! of zeros, which fits only if it consisted of zeros.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::pieces::PIECES_PER_EXTENT;

const MAGIC: &[u8; 8] = b"ORRERYCS";
const FORMAT_VERSION: u32 = 1;
const FIXED_BYTES: usize = 28;
const RECORDS_START: u64 = 1024;
/// Longest key that there is room for.
const KEY_BYTES_MAX: usize = RECORDS_START as usize - FIXED_BYTES;
const RECORD_BYTES: usize = 272;
const RECORD_CHECKED_BYTES: usize = 264;

/// A side file that is open.
#[derive(Debug)]
pub(super) struct Sums {
    file: File,
}

/// What a side file says about itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The key of the object.
    pub(super) key: String,
    /// Its length.
    pub(super) bytes: u64,
}

/// What it says about the pieces of one extent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// The pieces that are there.
    pub(super) held: u64,
    /// Their checksums; of no meaning for the others.
    pub(super) sums: [u32; PIECES_PER_EXTENT as usize],
}

impl Sums {
    /// Creates the side file of a file of which nothing is there.
    pub(super) fn create(path: &Path, header: &Header) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        file.write_all_at(&header.encode()?, 0)?;
        Ok(Self { file })
    }

    /// Opens a side file. `None` if it is none, or damaged.
    pub(super) fn open(path: &Path) -> io::Result<Option<(Self, Header)>> {
        let file = File::options().read(true).write(true).open(path)?;
        let mut bytes = vec![0; RECORDS_START as usize];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(error),
        }
        Ok(Header::decode(&bytes).map(|header| (Self { file }, header)))
    }

    /// The record of an extent; an empty one if there is none, or it cannot be read.
    pub(super) fn read(&self, extent: usize) -> Record {
        let mut bytes = [0; RECORD_BYTES];
        self.file
            .read_exact_at(&mut bytes, place(extent))
            .ok()
            .and_then(|()| Record::decode(&bytes, extent))
            .unwrap_or_default()
    }

    pub(super) fn write(&self, extent: usize, record: &Record) -> io::Result<()> {
        self.file
            .write_all_at(&record.encode(extent), place(extent))
    }
}

impl Header {
    fn encode(&self) -> io::Result<Vec<u8>> {
        let key = self.key.as_bytes();
        if key.len() > KEY_BYTES_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a key of {} bytes, the limit is {KEY_BYTES_MAX}", key.len()),
            ));
        }
        let mut bytes = Vec::with_capacity(RECORDS_START as usize);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.bytes.to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes), key);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(key);
        bytes.resize(RECORDS_START as usize, 0);
        Ok(bytes)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (fixed, rest) = bytes.split_at_checked(FIXED_BYTES)?;
        let key = rest.get(..read_u32(fixed, 12)? as usize)?;
        let crc = crc32c::crc32c_append(crc32c::crc32c(&fixed[..24]), key);
        let is_ours = fixed.starts_with(MAGIC)
            && read_u32(fixed, 8)? == FORMAT_VERSION
            && read_u32(fixed, 24)? == crc;
        let key = is_ours.then(|| std::str::from_utf8(key).ok())??;
        Some(Self {
            key: key.to_owned(),
            bytes: read_u64(fixed, 16)?,
        })
    }
}

impl Record {
    /// The checksum of a piece, by its number within the extent.
    pub(super) fn sum(&self, piece: u64) -> u32 {
        self.sums[piece as usize]
    }

    fn encode(&self, extent: usize) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(&self.held.to_le_bytes());
        for (place, sum) in bytes[8..RECORD_CHECKED_BYTES]
            .chunks_exact_mut(4)
            .zip(self.sums)
        {
            place.copy_from_slice(&sum.to_le_bytes());
        }
        let crc = record_crc(&bytes[..RECORD_CHECKED_BYTES], extent);
        bytes[RECORD_CHECKED_BYTES..RECORD_CHECKED_BYTES + 4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; RECORD_BYTES], extent: usize) -> Option<Self> {
        let checked = &bytes[..RECORD_CHECKED_BYTES];
        if read_u32(bytes, RECORD_CHECKED_BYTES)? != record_crc(checked, extent) {
            return None;
        }
        let mut sums = [0; PIECES_PER_EXTENT as usize];
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum = read_u32(checked, 8 + 4 * at)?;
        }
        let held = read_u64(checked, 0)?;
        Some(Self { held, sums })
    }
}

impl Default for Record {
    fn default() -> Self {
        Self {
            held: 0,
            sums: [0; PIECES_PER_EXTENT as usize],
        }
    }
}

fn place(extent: usize) -> u64 {
    RECORDS_START + extent as u64 * RECORD_BYTES as u64
}

fn record_crc(checked: &[u8], extent: usize) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(checked), &(extent as u64).to_le_bytes())
}

fn read_u32(bytes: &[u8], start: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(start..)?.first_chunk()?))
}

fn read_u64(bytes: &[u8], start: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(start..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_a_torn_one_is_empty() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.sums");
        let header = Header {
            key: "files/3-17".to_owned(),
            bytes: 1 << 20,
        };
        let sums = Sums::create(&path, &header).unwrap();
        let mut record = Record {
            held: 0b101,
            ..Record::default()
        };
        record.sums[2] = 7;
        sums.write(2, &record).unwrap();
        let (again, found) = Sums::open(&path).unwrap().unwrap();
        assert_eq!(found, header);
        assert_eq!(again.read(2), record);
        assert_eq!(again.read(1), Record::default(), "a hole");
        assert_eq!(again.read(3), Record::default(), "past the end");

        sums.file.write_all_at(b"x", place(2) + 100).unwrap();
        assert_eq!(again.read(2), Record::default());
        sums.file.write_all_at(b"x", 20).unwrap();
        assert!(Sums::open(&path).unwrap().is_none());
    }

    #[test]
    fn a_record_in_another_extents_place_is_empty() {
        let record = Record {
            held: 1,
            ..Record::default()
        };
        assert_eq!(Record::decode(&record.encode(4), 4), Some(record.clone()));
        assert_eq!(Record::decode(&record.encode(4), 5), None);
    }

    #[test]
    fn a_key_that_is_too_long_is_refused() {
        let header = Header {
            key: "k".repeat(KEY_BYTES_MAX + 1),
            bytes: 0,
        };
        assert!(header.encode().is_err());
    }
}
