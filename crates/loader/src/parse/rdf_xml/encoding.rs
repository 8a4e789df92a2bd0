//! Decoding of XML texts in any encoding to UTF-8.
//!
//! A byte-order mark, or bytes of zero around the first `<`, tell UTF-16; else the declaration does
//! (XML 1.0, 4.3.3 and appendix F). UTF-8 passes through as it is. What is declared and not known
//! is refused by the name of its encoding.

use std::io::{self, Read};

/// The declaration stands within so many first bytes.
const DECLARATION_BYTES_MAX: usize = 256;
const PIECE_BYTES: usize = 16 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16 {
        is_big: bool,
    },
    /// Latin-1, and us-ascii, which is a part of it; bytes beyond that are refused.
    Bytes {
        max: u8,
    },
    /// Latin-1 with more letters in the place of its controls.
    Windows1252,
}

/// The text in UTF-8, without a byte-order mark.
pub(crate) fn in_utf8(mut input: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut first = Vec::new();
    input
        .by_ref()
        .take(DECLARATION_BYTES_MAX as u64)
        .read_to_end(&mut first)?;
    let (encoding, mark_bytes) = encoding_of(&first)?;
    first.drain(..mark_bytes);
    let input = io::Cursor::new(first).chain(input);
    Ok(match encoding {
        Encoding::Utf8 => Box::new(input),
        encoding => Box::new(Decoder {
            input: Box::new(input),
            encoding,
            bytes: Vec::new(),
            text: Vec::new(),
            given: 0,
            high: None,
            is_at_end: false,
        }),
    })
}

/// What the first bytes tell, and how long their byte-order mark is.
fn encoding_of(first: &[u8]) -> io::Result<(Encoding, usize)> {
    let (big, little) = (
        Encoding::Utf16 { is_big: true },
        Encoding::Utf16 { is_big: false },
    );
    match first {
        [0xef, 0xbb, 0xbf, ..] => return Ok((Encoding::Utf8, 3)),
        [0xfe, 0xff, ..] => return Ok((big, 2)),
        [0xff, 0xfe, ..] => return Ok((little, 2)),
        [0, b'<', 0, _, ..] => return Ok((big, 0)),
        [b'<', 0, _, 0, ..] => return Ok((little, 0)),
        _ => {}
    }
    let Some(name) = declared(first) else {
        return Ok((Encoding::Utf8, 0));
    };
    let encoding = match name.to_ascii_lowercase().as_str() {
        "utf-8" | "utf8" | "unicode-1-1-utf-8" => Encoding::Utf8,
        "iso-8859-1" | "iso_8859-1" | "latin1" | "latin-1" | "l1" | "iso8859-1" => {
            Encoding::Bytes { max: 0xff }
        }
        "us-ascii" | "ascii" | "ansi_x3.4-1968" | "iso646-us" => Encoding::Bytes { max: 0x7f },
        "windows-1252" | "cp1252" => Encoding::Windows1252,
        // It says so in bytes that are no UTF-16: whoever converted it left the declaration as it
        // was.
        "utf-16" | "utf-16le" | "utf-16be" => Encoding::Utf8,
        _ => {
            let name: String = name.chars().take(40).collect();
            return Err(wrong(format!(
                "it is declared to be in {name}, and only UTF-8, UTF-16, ISO-8859-1, windows-1252 and US-ASCII are read; convert it to UTF-8, \
                 for example by `iconv -f {name} -t UTF-8`, and write encoding=\"UTF-8\" into its first line"
            )));
        }
    };
    Ok((encoding, 0))
}

/// The encoding that the declaration names.
fn declared(first: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(first);
    let (declaration, _) = text.strip_prefix("<?xml")?.split_once("?>")?;
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    Some(value[1..].split_once(quote)?.0.to_owned())
}

fn wrong(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

struct Decoder {
    input: Box<dyn Read + Send>,
    encoding: Encoding,
    /// What was read and is no whole character yet.
    bytes: Vec<u8>,
    text: Vec<u8>,
    given: usize,
    /// The first half of a character of UTF-16.
    high: Option<u16>,
    is_at_end: bool,
}

impl Decoder {
    /// Decodes some more.
    fn fill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.given = 0;
        while self.text.is_empty() && !self.is_at_end {
            let kept = self.bytes.len();
            self.bytes.resize(kept + PIECE_BYTES, 0);
            let read = self.input.read(&mut self.bytes[kept..])?;
            self.bytes.truncate(kept + read);
            self.is_at_end = read == 0;
            self.decode()?;
        }
        if self.is_at_end && (self.high.is_some() || !self.bytes.is_empty()) {
            return Err(wrong(
                "its text in UTF-16 ends within a character; fetch it again",
            ));
        }
        Ok(())
    }

    fn decode(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        match self.encoding {
            Encoding::Utf8 => self.text.extend_from_slice(&bytes),
            Encoding::Bytes { max } => {
                for &byte in &bytes {
                    if byte > max {
                        return Err(wrong(format!(
                            "it is declared to be in US-ASCII, and has the byte 0x{byte:02X}; declare the encoding that it is in"
                        )));
                    }
                    self.push(char::from(byte));
                }
            }
            Encoding::Windows1252 => {
                for &byte in &bytes {
                    self.push(windows_1252(byte));
                }
            }
            Encoding::Utf16 { is_big } => {
                let mut pairs = bytes.chunks_exact(2);
                for pair in pairs.by_ref() {
                    let pair = [pair[0], pair[1]];
                    let unit = match is_big {
                        true => u16::from_be_bytes(pair),
                        false => u16::from_le_bytes(pair),
                    };
                    self.unit(unit)?;
                }
                self.bytes = pairs.remainder().to_vec();
            }
        }
        Ok(())
    }

    fn unit(&mut self, unit: u16) -> io::Result<()> {
        let high = self.high.take();
        let units = match high {
            Some(high) => [high, unit],
            None if (0xd800..0xdc00).contains(&unit) => {
                self.high = Some(unit);
                return Ok(());
            }
            None => [unit, 0],
        };
        let units = &units[..1 + usize::from(high.is_some())];
        match char::decode_utf16(units.iter().copied()).next() {
            Some(Ok(character)) => self.push(character),
            _ => {
                return Err(wrong(
                    "its text in UTF-16 has half a character; fetch it again",
                ));
            }
        }
        Ok(())
    }

    fn push(&mut self, character: char) {
        let mut bytes = [0; 4];
        let bytes = character.encode_utf8(&mut bytes).as_bytes();
        self.text.extend_from_slice(bytes);
    }
}

/// A character of windows-1252; the five that it has not stand for themselves (WHATWG Encoding).
fn windows_1252(byte: u8) -> char {
    const LETTERS: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž',
        '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}',
        'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => LETTERS[usize::from(byte - 0x80)],
        other => char::from(other),
    }
}

impl Read for Decoder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.text.len() {
            self.fill()?;
        }
        let rest = &self.text[self.given..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.given += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: Vec<u8>) -> Result<String, String> {
        let told = |error: io::Error| error.to_string();
        let mut text = String::new();
        let mut input = in_utf8(Box::new(io::Cursor::new(bytes))).map_err(told)?;
        input.read_to_string(&mut text).map_err(told)?;
        Ok(text)
    }

    fn utf16(text: &str, is_big: bool, mark: bool) -> Vec<u8> {
        let units = mark
            .then_some(0xfeff)
            .into_iter()
            .chain(text.encode_utf16());
        units
            .flat_map(|unit| match is_big {
                true => unit.to_be_bytes(),
                false => unit.to_le_bytes(),
            })
            .collect()
    }

    #[test]
    fn texts_of_all_encodings_come_out_as_the_same_text() {
        let text = format!("<?xml version='1.0'?><r>é€𝄞{}</r>", "ü€".repeat(30_000));
        assert_eq!(read(text.clone().into_bytes()).unwrap(), text);
        for (is_big, mark) in [(true, true), (true, false), (false, true), (false, false)] {
            assert_eq!(read(utf16(&text, is_big, mark)).unwrap(), text);
        }
        let latin = b"<?xml version='1.0' encoding = \"ISO-8859-1\"?><r>\xe9</r>".to_vec();
        assert!(read(latin).unwrap().ends_with("<r>é</r>"));
        let windows = b"<?xml version='1.0' encoding='windows-1252'?><r>\x80\xe9</r>".to_vec();
        assert!(read(windows).unwrap().ends_with("<r>€é</r>"));
        let ascii = b"<?xml version='1.0' encoding='us-ascii'?><r>a</r>".to_vec();
        assert!(read(ascii).unwrap().ends_with("<r>a</r>"));
    }

    #[test]
    fn what_is_in_none_of_them_is_refused_by_its_name() {
        let ascii = b"<?xml version='1.0' encoding='us-ascii'?><r>\xe9</r>".to_vec();
        assert!(read(ascii).unwrap_err().contains("0xE9"));
        let unknown = b"<?xml version='1.0' encoding='koi8-r'?><r/>".to_vec();
        assert!(read(unknown).unwrap_err().contains("iconv -f koi8-r"));
        let mut cut = utf16("<r>a</r>", true, true);
        cut.pop();
        assert!(read(cut).unwrap_err().contains("ends within a character"));
        let mut half = utf16("<r>", false, true);
        half.extend([0x00, 0xd8, b'a', 0]);
        assert!(read(half).unwrap_err().contains("half a character"));
    }
}
