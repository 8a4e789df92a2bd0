//! Streaming decompression: gzip with several members, bzip2 with several streams, zstd with
//! several frames.
//!
//! What is compressed is told by its first bytes, so that it works from a pipe too. If a file's
//! name promises a compression that its bytes do not keep, that is an error, as is a
//! compressed stream that ends too early.

use bzip2::read::MultiBzDecoder;
use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

/// A way to compress files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Bzip2,
    Zstd,
    /// Only where somebody says so: it has no first bytes of its own.
    Brotli,
}

/// As many first bytes as it takes to tell the compression.
const MAGIC_BYTES: usize = 4;
/// How far back zstd data may refer, as a power of two: in files as far as `zstd --long` goes, in
/// requests 8 MiB.
const FILE_WINDOW_LOG: u32 = 27;
const BODY_WINDOW_LOG: u32 = 23;

impl Compression {
    /// What a file's last ending promises.
    pub(crate) fn from_extension(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "gz" | "gzip" => Some(Self::Gzip),
            "bz2" => Some(Self::Bzip2),
            "zst" | "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    fn from_magic(first: &[u8]) -> Option<Self> {
        match first {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Bzip2),
            // An ordinary frame, or a skippable one before it.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Zstd => "zstd",
            Self::Brotli => "brotli",
        }
    }
}

/// The plain text of a request's body, compressed or not: read as files are, but zstd data may look
/// back 8 MiB at most (RFC 9659), for that much memory goes to whoever sends a few bytes.
pub fn decompressed_text(input: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    decompressed_within(input, None, BODY_WINDOW_LOG)
}

/// Bytes of brotli data that are read at a time.
const BROTLI_BUFFER_BYTES: usize = 64 << 10;

/// What is wrong where more follows.
const BEHIND_BROTLI: &str = "something stands behind its end";

/// The window of brotli data that begin with this byte, which is what their decoder takes: 16 MiB
/// at most. None if no brotli data (RFC 7932, 9.1) begin so: those with a large window, a later
/// invention, do not.
pub fn brotli_window_bytes(first: u8) -> Option<usize> {
    let bits = match (first & 1, first >> 1 & 7, first >> 4 & 7) {
        (0, _, _) => 16,
        (_, 0, 0) => 17,
        (_, 0, 1) => return None,
        (_, 0, bits) => 8 + bits,
        (_, bits, _) => 17 + bits,
    };
    Some(1 << bits)
}

/// The plain text of brotli data, which are one stream: unlike gzip and zstd data they have no
/// members.
///
/// # Errors
/// When it does not begin as brotli data do; what comes later, behind the end of the stream too, is
/// told while it is read.
pub fn brotli_text(
    mut input: impl Read + Send + 'static,
) -> io::Result<impl Read + Send + 'static> {
    let compression = Compression::Brotli;
    let mut first = Vec::with_capacity(1);
    input.by_ref().take(1).read_to_end(&mut first)?;
    let window = first.first().and_then(|first| brotli_window_bytes(*first));
    if window.is_none() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is not brotli data",
        ));
    }
    let input = Cursor::new(first).chain(input);
    let decoder = BrotliStream {
        decoder: brotli::Decompressor::new(input, BROTLI_BUFFER_BYTES),
        is_over: false,
    };
    Ok(Checked {
        decoder,
        compression,
    })
}

/// One stream of brotli data, and an error where anything stands behind it: its decoder stops at
/// the end of the stream, whatever follows.
struct BrotliStream<R: Read> {
    decoder: brotli::Decompressor<R>,
    /// Nothing is behind it.
    is_over: bool,
}

impl<R: Read> Read for BrotliStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_over || buffer.is_empty() {
            return Ok(0);
        }
        let length = self.decoder.read(buffer)?;
        if length > 0 {
            return Ok(length);
        }
        // The second time, the decoder tells whether it has read more than it has used; then there
        // is what it has not read.
        let used = self.decoder.read(buffer);
        let is_all = used.is_ok() && self.decoder.get_mut().read(&mut [0])? == 0;
        if !is_all {
            return Err(io::Error::other(BEHIND_BROTLI));
        }
        self.is_over = true;
        Ok(0)
    }
}

/// The plain text of what was uploaded.
pub(crate) fn upload_text(
    input: impl Read + Send + 'static,
    is_brotli: bool,
) -> io::Result<Box<dyn Read + Send>> {
    match is_brotli {
        true => decompressed(brotli_text(input)?, None),
        false => decompressed(input, None),
    }
}

/// Whether the first bytes of `input` say that it is compressed.
pub(crate) fn is_compressed(input: impl Read) -> io::Result<bool> {
    let mut first = Vec::with_capacity(MAGIC_BYTES);
    input.take(MAGIC_BYTES as u64).read_to_end(&mut first)?;
    Ok(Compression::from_magic(&first).is_some())
}

/// The plain text of `input`. `promised` is what its name says.
pub(crate) fn decompressed(
    input: impl Read + Send + 'static,
    promised: Option<Compression>,
) -> io::Result<Box<dyn Read + Send>> {
    decompressed_within(input, promised, FILE_WINDOW_LOG)
}

fn decompressed_within(
    mut input: impl Read + Send + 'static,
    promised: Option<Compression>,
    window_log: u32,
) -> io::Result<Box<dyn Read + Send>> {
    let mut first = Vec::with_capacity(MAGIC_BYTES);
    input
        .by_ref()
        .take(MAGIC_BYTES as u64)
        .read_to_end(&mut first)?;
    let found = Compression::from_magic(&first);
    if let (Some(promised), None) = (promised, found) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "its name says {}, but it is not {} data",
                promised.name(),
                promised.name()
            ),
        ));
    }
    let input = Cursor::new(first).chain(input);
    Ok(match found {
        None => Box::new(input),
        Some(Compression::Gzip) => Box::new(Checked {
            decoder: GzipMembers::new(input),
            compression: Compression::Gzip,
        }),
        Some(Compression::Bzip2) => Box::new(Checked {
            decoder: MultiBzDecoder::new(input),
            compression: Compression::Bzip2,
        }),
        // It is not found by its first bytes.
        Some(Compression::Brotli) => Box::new(brotli_text(input)?),
        Some(Compression::Zstd) => {
            let mut decoder = zstd::stream::read::Decoder::new(input)?;
            decoder.window_log_max(window_log)?;
            Box::new(Checked {
                decoder,
                compression: Compression::Zstd,
            })
        }
    })
}

/// Members of gzip behind each other. Zeros behind one are passed over, as gzip(1) does: tapes and
/// object stores pad files.
struct GzipMembers<R> {
    /// None behind the last one.
    member: Option<GzDecoder<BufReader<R>>>,
}

impl<R: Read> GzipMembers<R> {
    fn new(input: R) -> Self {
        Self {
            member: Some(GzDecoder::new(BufReader::new(input))),
        }
    }
}

impl<R: Read> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let length = member.read(buffer)?;
            if length > 0 || buffer.is_empty() {
                return Ok(length);
            }
            // What is left behind the member.
            let Some(member) = self.member.take() else {
                break;
            };
            let mut rest = member.into_inner();
            if !pass_zeros(&mut rest)? {
                self.member = Some(GzDecoder::new(rest));
            }
        }
        Ok(0)
    }
}

/// Passes over zeros; says whether nothing is behind them.
fn pass_zeros(input: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        if bytes.is_empty() {
            return Ok(true);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let is_more = zeros < bytes.len();
        input.consume(zeros);
        if is_more {
            return Ok(false);
        }
    }
}

/// Makes a decoder's errors say what to make of them.
struct Checked<D> {
    decoder: D,
    compression: Compression,
}

impl<D: Read> Read for Checked<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.decoder.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.explain(&error)),
                Ok(length) => return Ok(length),
            }
        }
    }
}

impl<D> Checked<D> {
    fn explain(&self, error: &io::Error) -> io::Error {
        let name = self.compression.name();
        if error.raw_os_error().is_some() {
            return io::Error::new(error.kind(), error.to_string());
        }
        let message = match error.kind() {
            // Its decoder does not tell the one from the other.
            io::ErrorKind::InvalidData if self.compression == Compression::Brotli => {
                "the brotli data is corrupt or truncated; send it again".to_owned()
            }
            io::ErrorKind::UnexpectedEof => {
                format!("the {name} data is truncated: it ends too early; fetch the file again")
            }
            _ => format!("the {name} data is corrupt ({error}); fetch the file again"),
        };
        io::Error::new(io::ErrorKind::InvalidData, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn bzip2(text: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        zstd::encode_all(text, 1).unwrap()
    }

    fn read(bytes: Vec<u8>, promised: Option<Compression>) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        decompressed(Cursor::new(bytes), promised)?.read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn several_members_are_one_text() {
        for compress in [gzip, bzip2, zstd] {
            let mut bytes = compress(b"one ");
            bytes.extend(compress(b"two"));
            assert_eq!(read(bytes, None).unwrap(), b"one two");
        }
        assert_eq!(read(b"plain".to_vec(), None).unwrap(), b"plain");
        assert_eq!(read(b"p".to_vec(), None).unwrap(), b"p");
        assert_eq!(read(Vec::new(), None).unwrap(), b"");
    }

    fn brotli(text: &[u8]) -> Vec<u8> {
        let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
        encoder.write_all(text).unwrap();
        encoder.into_inner()
    }

    fn read_brotli(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        brotli_text(Cursor::new(bytes))?.read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn brotli_data_are_read_and_what_is_wrong_with_them_is_an_error() {
        let text: Vec<u8> = (0..20_000_u32)
            .flat_map(|n| (n * n).to_le_bytes())
            .collect();
        for text in [&text[..], b"", b"x"] {
            assert_eq!(read_brotli(brotli(text)).unwrap(), text);
        }
        let whole = brotli(&text);
        for end in [0, 1, 5, whole.len() / 2, whole.len() - 1] {
            assert!(read_brotli(whole[..end].to_vec()).is_err(), "{end}");
        }
        // Whether its decoder has read what is behind the end, or not.
        for text in [&text[..], b"", b"x"] {
            let whole = brotli(text);
            for behind in [&whole[..], b"\n", &[0; 3 * BROTLI_BUFFER_BYTES]] {
                let error = read_brotli([&whole[..], behind].concat()).unwrap_err();
                assert!(error.to_string().contains(BEHIND_BROTLI), "{error}");
            }
        }
        // Damage may leave a text, but never stops the process.
        for at in 0..whole.len().min(4000) {
            for bit in [1, 16, 128] {
                let mut damaged = whole.clone();
                damaged[at] ^= bit;
                drop(read_brotli(damaged));
            }
        }
    }

    #[test]
    fn the_window_of_brotli_data_is_known_by_their_first_byte() {
        for window_bits in 10..=24 {
            let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, window_bits);
            encoder.write_all(b"some text").unwrap();
            let first = encoder.into_inner()[0];
            let bytes = brotli_window_bytes(first).unwrap();
            assert_eq!(bytes, 1 << window_bits, "{first:x}");
        }
        // A window of a gigabyte, for a few bytes.
        assert_eq!(brotli_window_bytes(0x11), None);
        assert!(read_brotli(vec![0x11, 30, 0, 0]).is_err());
    }

    #[test]
    fn zeros_behind_gzip_data_are_passed_over_and_other_bytes_are_not() {
        for zeros in [1, 512, 100_000] {
            let mut bytes = gzip(b"one ");
            bytes.resize(bytes.len() + zeros, 0);
            assert_eq!(read(bytes.clone(), None).unwrap(), b"one ");
            bytes.extend(gzip(b"two"));
            bytes.push(0);
            assert_eq!(read(bytes.clone(), None).unwrap(), b"one two");
            bytes.extend(b"rest");
            assert!(read(bytes, None).is_err());
        }
    }

    #[test]
    fn truncated_data_is_an_error_wherever_it_ends() {
        let text: Vec<u8> = (0..20_000_u32)
            .flat_map(|n| (n * n).to_le_bytes())
            .collect();
        for compress in [gzip, bzip2, zstd] {
            let whole = compress(&text);
            for end in [5, 20, whole.len() / 2, whole.len() - 5, whole.len() - 1] {
                let error = read(whole[..end].to_vec(), None).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{end}: {error}");
                assert!(error.to_string().contains("truncated"), "{end}: {error}");
            }
        }
    }

    #[test]
    fn corrupt_data_and_false_names_are_errors() {
        let text: Vec<u8> = (0..20_000_u32)
            .flat_map(|n| (n * n).to_le_bytes())
            .collect();
        for compress in [gzip, bzip2] {
            let mut bytes = compress(&text);
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x55;
            assert!(read(bytes, None).is_err());
        }
        for promised in [Compression::Gzip, Compression::Bzip2, Compression::Zstd] {
            assert!(read(b"plain".to_vec(), Some(promised)).is_err());
            assert!(read(Vec::new(), Some(promised)).is_err());
        }
    }
}
