//! The frames of requests and answers between coordinator and workers.
//!
//! ```text
//! "ORLW" version (u8)                                                      once, at the beginning
//! kind (u8) form (u8: 0 plain, 1 zstd) raw length (u32) length (u32) checksum (u32) bytes       per frame
//! ```
//!
//! Integers are little-endian. The checksum (CRC-32C) is of the frame's number, counted from 0, of
//! its head before the checksum and of its bytes: so a frame that is missing, twice or at the wrong
//! place is found as well as one that was changed. That the last frame is there only its kind
//! tells.

use std::io::{self, Read, Write};

/// The first bytes of a stream, with the version of all that follows.
const MAGIC: [u8; 5] = *b"ORLW\x01";

const HEAD_BYTES: usize = 14;

/// No frame is longer, packed or not.
const FRAME_BYTES_MAX: usize = 16 << 20;

/// Writers end a frame at about this length.
pub(super) const FRAME_BYTES: usize = 1 << 20;

/// zstd's level: the network is the bottleneck seldom enough.
const LEVEL: i32 = 1;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// What is asked for, as JSON.
    Task = 1,
    /// A piece of the text of a request.
    Text = 2,
    /// Rows: packed in a request, in order in an answer.
    Rows = 3,
    /// The beginning of a batch: how many terms and quads it has.
    Batch = 4,
    /// Keys of a batch.
    Terms = 5,
    /// A piece of the key of a large literal.
    Large = 6,
    /// The end of such a key.
    LargeEnd = 7,
    /// Quads of a batch.
    Quads = 8,
    /// The end of a batch.
    BatchEnd = 9,
    /// The end of an answer, as JSON.
    End = 10,
    /// Why there is no answer, as JSON; the last frame.
    Failed = 11,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        let all = [
            Self::Task,
            Self::Text,
            Self::Rows,
            Self::Batch,
            Self::Terms,
            Self::Large,
            Self::LargeEnd,
            Self::Quads,
            Self::BatchEnd,
            Self::End,
            Self::Failed,
        ];
        all.into_iter().find(|&kind| kind as u8 == byte)
    }
}

/// Whether a frame's bytes shall be packed, where that makes them shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Zstd,
    /// What packs badly is not tried.
    Plain,
}

/// Writes frames.
pub(super) struct FrameWriter<W> {
    out: W,
    number: u32,
    packed: Vec<u8>,
}

impl<W: Write> FrameWriter<W> {
    pub(super) fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        Ok(Self {
            out,
            number: 0,
            packed: Vec::new(),
        })
    }

    pub(super) fn frame(&mut self, kind: Kind, bytes: &[u8], packing: Packing) -> io::Result<()> {
        if bytes.len() > FRAME_BYTES_MAX {
            return Err(io::Error::other("a frame would be too long"));
        }
        self.packed.clear();
        let mut is_packed = false;
        if packing == Packing::Zstd {
            self.packed
                .resize(zstd::zstd_safe::compress_bound(bytes.len()), 0);
            let length = zstd::bulk::compress_to_buffer(bytes, &mut self.packed, LEVEL)?;
            self.packed.truncate(length);
            is_packed = length < bytes.len();
        }
        let stored = match is_packed {
            true => self.packed.as_slice(),
            false => bytes,
        };
        let mut head = [0; HEAD_BYTES];
        head[0] = kind as u8;
        head[1] = u8::from(is_packed);
        head[2..6].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        head[6..10].copy_from_slice(&(stored.len() as u32).to_le_bytes());
        let checksum = checksum(self.number, &head[..10], stored);
        head[10..].copy_from_slice(&checksum.to_le_bytes());
        self.number = self.number.wrapping_add(1);
        self.out.write_all(&head)?;
        self.out.write_all(stored)
    }

    /// Hands everything on.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub(super) fn into_inner(self) -> W {
        self.out
    }
}

fn checksum(number: u32, head: &[u8], bytes: &[u8]) -> u32 {
    let checksum = crc32c::crc32c(&number.to_le_bytes());
    let checksum = crc32c::crc32c_append(checksum, head);
    crc32c::crc32c_append(checksum, bytes)
}

/// What is wrong with a stream.
fn damaged(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Reads frames and checks them.
pub(super) struct FrameReader<R> {
    input: R,
    number: u32,
    stored: Vec<u8>,
    bytes: Vec<u8>,
}

impl<R: Read> FrameReader<R> {
    pub(super) fn new(mut input: R) -> io::Result<Self> {
        let mut magic = [0; MAGIC.len()];
        input.read_exact(&mut magic).map_err(cut)?;
        if magic != MAGIC {
            return Err(damaged(
                "it is of another version of Orrery, or of another program",
            ));
        }
        Ok(Self {
            input,
            number: 0,
            stored: Vec::new(),
            bytes: Vec::new(),
        })
    }

    /// The next frame. That the stream ends here is an error: the last frame says that it is the
    /// last.
    pub(super) fn next(&mut self) -> io::Result<(Kind, &[u8])> {
        let mut head = [0; HEAD_BYTES];
        self.input.read_exact(&mut head).map_err(cut)?;
        let length = |at: usize| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(&head[at..at + 4]);
            u32::from_le_bytes(bytes)
        };
        let (raw_bytes, stored_bytes) = (length(2) as usize, length(6) as usize);
        if raw_bytes > FRAME_BYTES_MAX || stored_bytes > FRAME_BYTES_MAX {
            return Err(damaged("a frame is too long"));
        }
        self.stored.resize(stored_bytes, 0);
        self.input.read_exact(&mut self.stored).map_err(cut)?;
        if checksum(self.number, &head[..10], &self.stored) != length(10) {
            return Err(damaged("a checksum does not fit"));
        }
        self.number = self.number.wrapping_add(1);
        let kind = Kind::of(head[0]).ok_or_else(|| damaged("a frame is of an unknown kind"))?;
        let bytes = match head[1] {
            0 => &self.stored,
            _ => {
                self.bytes.resize(raw_bytes, 0);
                let length = zstd::bulk::decompress_to_buffer(&self.stored, &mut self.bytes)?;
                self.bytes.truncate(length);
                &self.bytes
            }
        };
        if bytes.len() != raw_bytes {
            return Err(damaged("a frame has not the length that it says"));
        }
        Ok((kind, bytes))
    }
}

/// What it means that a stream ends within.
fn cut(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "it was cut off"),
        _ => error,
    }
}

/// Appends a number, seven bits a byte, the low ones first.
#[inline]
pub(super) fn push_varint(mut number: u128, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number from the beginning of `bytes`; `None` if there is none.
#[inline]
pub(super) fn take_varint(bytes: &mut &[u8]) -> Option<u128> {
    let mut number = 0;
    let mut shift = 0;
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if shift >= u128::BITS {
            return None;
        }
        number |= u128::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream() -> Vec<u8> {
        let mut writer = FrameWriter::new(Vec::new()).unwrap();
        writer.frame(Kind::Task, b"{}", Packing::Plain).unwrap();
        writer
            .frame(Kind::Text, &[b'x'; 5000], Packing::Zstd)
            .unwrap();
        writer.frame(Kind::End, b"{}", Packing::Zstd).unwrap();
        writer.into_inner()
    }

    fn read(bytes: &[u8]) -> io::Result<Vec<(Kind, Vec<u8>)>> {
        let mut reader = FrameReader::new(bytes)?;
        let mut frames = Vec::new();
        loop {
            let (kind, bytes) = reader.next()?;
            frames.push((kind, bytes.to_vec()));
            if kind == Kind::End {
                return Ok(frames);
            }
        }
    }

    #[test]
    fn frames_come_back_and_long_ones_are_packed() {
        let stream = stream();
        assert!(stream.len() < 200);
        let frames = read(&stream).unwrap();
        assert_eq!(frames[0], (Kind::Task, b"{}".to_vec()));
        assert_eq!(frames[1], (Kind::Text, vec![b'x'; 5000]));
        assert_eq!(frames.len(), 3);
    }

    #[test]
    fn a_stream_that_is_cut_anywhere_or_changed_in_any_bit_is_an_error() {
        let stream = stream();
        for end in 0..stream.len() {
            assert!(read(&stream[..end]).is_err(), "cut at {end}");
            for bit in 0..8 {
                let mut changed = stream.clone();
                changed[end] ^= 1 << bit;
                assert!(read(&changed).is_err(), "byte {end}, bit {bit}");
            }
        }
    }

    #[test]
    fn a_frame_that_is_left_out_is_an_error() {
        let mut writer = FrameWriter::new(Vec::new()).unwrap();
        writer.frame(Kind::Task, b"{}", Packing::Plain).unwrap();
        let first = MAGIC.len()..MAGIC.len() + HEAD_BYTES + 2;
        let mut stream = stream();
        stream.drain(first);
        assert!(read(&stream).is_err());
    }

    proptest! {
        #[test]
        fn varints_come_back(number: u128) {
            let mut bytes = Vec::new();
            push_varint(number, &mut bytes);
            prop_assert_eq!(take_varint(&mut bytes.as_slice()), Some(number));
        }
    }
}
