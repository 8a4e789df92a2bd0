//! Parsing of a line of N-Triples or N-Quads that exceeds a block.
//!
//! The line passes once, piece by piece. Whatever is not the body of a long string is kept as it
//! stands; the body of the string is unescaped, checked and written to a file, and an empty string
//! is left in its place. So what remains is a line that the ordinary parser reads: it has one
//! literal at most, and that is the text in the file.
//!
//! ```text
//! <s> <p> "......................"@en <g> .     the line
//! <s> <p> ""@en <g> .                           what remains; the text is in load-stage/literal-000001
//! ```
//!
//! Strings, IRIs and comments are told apart as the parser does it, so a line is accepted exactly
//! if the parser would accept it whole.

use crate::ingest::large_literals::{LargeLiterals, StagedText, TextWriter};
use crate::parse::ntriples::decode_escape;
use memchr::{memchr, memchr2, memchr3};
use orrery_storage::Error;
use std::borrow::Cow;

/// The longest escape: `\U0001F600`.
const ESCAPE_BYTES_MAX: usize = 10;

/// A line with an empty string in place of its long one.
#[derive(Debug)]
pub(crate) struct LongLine {
    /// Its number in the file, counted from 1.
    pub(crate) number: u64,
    /// What remains of it.
    pub(crate) remains: Vec<u8>,
    /// The text of its literal, if that was long.
    pub(crate) text: Option<StagedText>,
}

/// Why a line could not be taken in.
#[derive(Debug)]
pub(crate) enum LongLineError {
    /// It is wrong.
    Syntax(Cow<'static, str>),
    /// The stage directory failed.
    Storage(Error),
}

impl From<Error> for LongLineError {
    fn from(error: Error) -> Self {
        Self::Storage(error)
    }
}

/// Takes a line in, piece by piece.
#[derive(Debug)]
pub(crate) struct LongLineReader<'a> {
    large: &'a LargeLiterals,
    state: State,
    remains: Vec<u8>,
    text: Option<StagedText>,
}

/// Where in the line the reader is.
#[derive(Debug)]
enum State {
    /// Between terms, or in one that needs no telling.
    Between,
    /// After an opening angle bracket: of an IRI, or the first of a triple term.
    Opened,
    /// In an IRI.
    Iri,
    /// In a string.
    String {
        /// Whether the next byte belongs to an escape.
        is_escaped: bool,
        body: Body,
    },
    /// In a comment, which runs up to the end of the line.
    Comment,
}

/// The body of a string.
#[derive(Debug)]
enum Body {
    /// Kept as it stands, from this byte of what remains.
    Kept(usize),
    /// Written to a file.
    Staged(Box<Unescaped>),
    /// A second long one: the line is wrong, as the parser will see.
    Dropped,
}

impl<'a> LongLineReader<'a> {
    /// At the beginning of a line.
    pub(crate) fn new(large: &'a LargeLiterals) -> Self {
        Self {
            large,
            state: State::Between,
            remains: Vec::new(),
            text: None,
        }
    }

    /// Takes the next piece, without line ends.
    pub(crate) fn push(&mut self, mut piece: &[u8]) -> Result<(), LongLineError> {
        while let Some(&first) = piece.first() {
            let length = match &mut self.state {
                State::Between => {
                    let end = memchr3(b'"', b'<', b'#', piece);
                    self.state = match end.map(|end| piece[end]) {
                        Some(b'"') => State::String {
                            is_escaped: false,
                            body: Body::Kept(self.remains.len() + end.unwrap_or_default() + 1),
                        },
                        Some(b'<') => State::Opened,
                        Some(_) => State::Comment,
                        None => State::Between,
                    };
                    let is_comment = matches!(self.state, State::Comment);
                    let kept = end.map_or(piece.len(), |end| end + usize::from(!is_comment));
                    self.keep(&piece[..kept])?;
                    kept
                }
                State::Opened if first == b'<' => {
                    self.state = State::Between;
                    self.keep(&piece[..1])?;
                    1
                }
                State::Opened => {
                    self.state = State::Iri;
                    0
                }
                State::Iri => {
                    let end = memchr(b'>', piece);
                    if end.is_some() {
                        self.state = State::Between;
                    }
                    let kept = end.map_or(piece.len(), |end| end + 1);
                    self.keep(&piece[..kept])?;
                    kept
                }
                State::String { .. } => self.string(piece)?,
                State::Comment => piece.len(),
            };
            piece = &piece[length..];
        }
        Ok(())
    }

    /// Keeps what is not the body of a string.
    fn keep(&mut self, bytes: &[u8]) -> Result<(), LongLineError> {
        let bytes_max = 2 * self.large.key_bytes_max();
        if self.remains.len() + bytes.len() > bytes_max {
            return Err(LongLineError::Syntax(
                format!("expected a statement with at most {bytes_max} bytes beside its literal")
                    .into(),
            ));
        }
        self.remains.extend_from_slice(bytes);
        Ok(())
    }

    /// Takes what the piece has of a string; returns how much that is.
    fn string(&mut self, piece: &[u8]) -> Result<usize, LongLineError> {
        let State::String { is_escaped, body } = &mut self.state else {
            return Ok(0);
        };
        let mut at = 0;
        let mut is_ended = false;
        while at < piece.len() && !is_ended {
            if std::mem::take(is_escaped) {
                at += 1;
                continue;
            }
            match memchr2(b'"', b'\\', &piece[at..]).map(|n| at + n) {
                None => at = piece.len(),
                Some(stop) => {
                    at = stop + usize::from(piece[stop] == b'\\');
                    *is_escaped = piece[stop] == b'\\';
                    is_ended = piece[stop] == b'"';
                }
            }
        }
        let raw = &piece[..at];
        match body {
            Body::Kept(start) => {
                self.remains.extend_from_slice(raw);
                if self.remains.len() - *start > self.large.key_bytes_max() {
                    let raw = self.remains.split_off(*start);
                    *body = match self.text {
                        Some(_) => Body::Dropped,
                        None => {
                            let mut unescaped = Unescaped::new(self.large.text_writer()?);
                            unescaped.push(&raw)?;
                            Body::Staged(Box::new(unescaped))
                        }
                    };
                }
            }
            Body::Staged(unescaped) => unescaped.push(raw)?,
            Body::Dropped => {}
        }
        if !is_ended {
            return Ok(at);
        }
        if let State::String {
            body: Body::Staged(unescaped),
            ..
        } = std::mem::replace(&mut self.state, State::Between)
        {
            self.text = Some(unescaped.finish()?);
        }
        self.remains.push(b'"');
        Ok(at + 1)
    }

    /// The end of the line.
    pub(crate) fn finish(self, number: u64) -> LongLine {
        LongLine {
            number,
            remains: self.remains,
            text: self.text,
        }
    }
}

/// Unescapes and checks the body of a string on its way into a file.
#[derive(Debug)]
struct Unescaped {
    writer: TextWriter,
    /// The beginning of an escape or of a character, whose end is in the next piece.
    begun: Vec<u8>,
    /// Bytes of the body before that.
    position: u64,
}

impl Unescaped {
    fn new(writer: TextWriter) -> Self {
        Self {
            writer,
            begun: Vec::with_capacity(ESCAPE_BYTES_MAX),
            position: 0,
        }
    }

    /// Takes a piece of the body.
    fn push(&mut self, mut raw: &[u8]) -> Result<(), LongLineError> {
        while let Some(&first) = raw.first() {
            if self.begun.first() == Some(&b'\\') {
                self.begun.push(first);
                raw = &raw[1..];
                if self.begun.len() == escape_bytes(&self.begun) {
                    self.escape()?;
                }
                continue;
            }
            let end = memchr(b'\\', raw).unwrap_or(raw.len());
            self.plain(&raw[..end])?;
            raw = &raw[end..];
            if let Some((&backslash, rest)) = raw.split_first() {
                if !self.begun.is_empty() {
                    return Err(self.not_utf8(0));
                }
                self.begun.push(backslash);
                raw = rest;
            }
        }
        Ok(())
    }

    /// Takes bytes without escapes; a character at their end may go on in the next piece.
    fn plain(&mut self, mut bytes: &[u8]) -> Result<(), LongLineError> {
        while !self.begun.is_empty() {
            let Some((&next, rest)) = bytes.split_first() else {
                return Ok(());
            };
            self.begun.push(next);
            bytes = rest;
            match std::str::from_utf8(&self.begun) {
                Ok(_) => self.write_begun()?,
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(self.not_utf8(0)),
            }
        }
        let valid = match simdutf8::compat::from_utf8(bytes) {
            Ok(_) => bytes.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(error) => return Err(self.not_utf8(error.valid_up_to())),
        };
        self.writer.append(&bytes[..valid])?;
        self.position += valid as u64;
        self.begun.extend_from_slice(&bytes[valid..]);
        Ok(())
    }

    fn write_begun(&mut self) -> Result<(), LongLineError> {
        self.writer.append(&self.begun)?;
        self.position += self.begun.len() as u64;
        self.begun.clear();
        Ok(())
    }

    /// Decodes the escape that was begun, whole or not.
    fn escape(&mut self) -> Result<(), LongLineError> {
        let c = decode_escape(&self.begun).map_err(|message| self.wrong(0, &message))?;
        self.writer.append(c.encode_utf8(&mut [0; 4]).as_bytes())?;
        self.position += self.begun.len() as u64;
        self.begun.clear();
        Ok(())
    }

    fn not_utf8(&self, after: usize) -> LongLineError {
        self.wrong(after, "expected valid UTF-8")
    }

    fn wrong(&self, after: usize, message: &str) -> LongLineError {
        let byte = self.position + after as u64 + 1;
        LongLineError::Syntax(format!("{message}, at byte {byte} of the literal").into())
    }

    fn finish(mut self) -> Result<StagedText, LongLineError> {
        match self.begun.first() {
            None => Ok(self.writer.finish()?),
            Some(b'\\') => {
                self.escape()?;
                Ok(self.writer.finish()?)
            }
            Some(_) => Err(self.not_utf8(0)),
        }
    }
}

/// How long the escape is that begins with these bytes, as far as they tell.
fn escape_bytes(begun: &[u8]) -> usize {
    match begun.get(1) {
        Some(b'u') => 6,
        Some(b'U') => ESCAPE_BYTES_MAX,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::interner::{Interner, LocalQuad};
    use crate::ingest::staged_sink::StagedSink;
    use crate::parse::ntriples::{AfterError, parse_block};
    use orrery_storage::io::LocalFileSystem;
    use proptest::prelude::*;
    use std::io::Read as _;
    use std::path::Path;
    use std::sync::Arc;

    /// Keys and quads, or `None` for a wrong line.
    type Read = Option<(Vec<Vec<u8>>, Vec<LocalQuad>)>;

    /// The keys and quads of a batch; large literals by their whole keys.
    fn contents(mut interner: Interner, large: &LargeLiterals, is_wrong: bool) -> Read {
        interner.check().unwrap();
        let terms = interner.take();
        let keys = terms.keys.iter().map(|&key| {
            let key = terms.arena.get(key);
            let mut bytes = key.to_vec();
            if let Some(source) = large.source(key).filter(|_| large.is_large(key)) {
                bytes.clear();
                source.open().unwrap().read_to_end(&mut bytes).unwrap();
            }
            bytes
        });
        (!is_wrong).then(|| (keys.collect(), terms.quads.into_iter().flatten().collect()))
    }

    /// What the parser makes of a line that it is given whole.
    fn read_whole(line: &[u8], large: &LargeLiterals) -> Read {
        let mut interner = Interner::new(None);
        let mut is_wrong = false;
        parse_block(line, true, &mut interner, &mut |_| {
            is_wrong = true;
            AfterError::Stop
        });
        contents(interner, large, is_wrong)
    }

    /// What comes of a line in pieces of these lengths.
    fn read_in_pieces(line: &[u8], lengths: &[usize], large: &Arc<LargeLiterals>) -> Read {
        let mut reader = LongLineReader::new(large);
        let (mut rest, mut lengths) = (line, lengths.iter().cycle());
        while !rest.is_empty() {
            let length = lengths
                .next()
                .map_or(1, |&length| length.clamp(1, rest.len()));
            let (piece, after) = rest.split_at(length);
            rest = after;
            match reader.push(piece) {
                Ok(()) => {}
                Err(LongLineError::Syntax(message)) => {
                    assert!(message.starts_with("expected"), "{message}");
                    return None;
                }
                Err(LongLineError::Storage(error)) => panic!("{error}"),
            }
        }
        let line = reader.finish(1);
        let mut interner = Interner::with_large_literals(None, large);
        let mut is_wrong = false;
        let mut sink = StagedSink::new(&mut interner, line.text);
        parse_block(&line.remains, true, &mut sink, &mut |_| {
            is_wrong = true;
            AfterError::Stop
        });
        contents(interner, large, is_wrong)
    }

    fn large_literals(directory: &Path) -> Arc<LargeLiterals> {
        Arc::new(LargeLiterals::new(Arc::new(LocalFileSystem), directory, 0))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn a_line_in_pieces_is_read_or_refused_as_the_parser_does_it(
            before in proptest::sample::select(vec![
                "<urn:s> <urn:p> ", "_:s<urn:p>", "<urn:s> <urn:p\\u0041> ", "# ", "VERSION ", "", "<urn:s> <urn:p> \"x\" ",
            ]),
            unit in proptest::sample::select(vec![
                "abcdefgh", "é", "😀a", "\\n", "\\u00E9x", "\\U0001F600", "\\\"<", "\\\\", "#<>'", "中\\t",
            ]),
            length in prop_oneof![1 => 0..100_usize, 6 => 4000..9000_usize],
            other in proptest::sample::select(vec![
                &b""[..], b"", b"", b"\\\"", b"\xff", b"\xc3", b"\xe4\xb8", b"\\x", b"\\u12", b"\\uD800", b"\\", b"\"", b"\0", b"\xf0\x9f\x98\x80",
            ]),
            place in any::<prop::sample::Index>(),
            after in proptest::sample::select(vec![
                "\" .", "\"@en <urn:g> .", "\" ^^ <urn:t> _:g . # \"<", "\"^^<http://www.w3.org/2001/XMLSchema#string>.",
                "\"@en--rtl .", "\"^^<not absolute> .", "\"", "", "\" # .", "\"@ .", "\" \"second\" .", "\"^^<urn:t#\\u0041> <urn:g> .",
            ]),
            lengths in proptest::collection::vec(prop_oneof![1..8_usize, 1..5000_usize], 1..20),
        ) {
            let mut body = unit.repeat(length.div_ceil(unit.len())).into_bytes();
            let at = place.index(body.len() + 1);
            body.splice(at..at, other.iter().copied());
            let line = [before.as_bytes(), &body, after.as_bytes()].concat();
            let line = if before.contains(['<', 'V']) {
                [before.as_bytes(), b"\"", &body, after.as_bytes()].concat()
            } else {
                line
            };
            let directory = tempfile::tempdir().unwrap();
            let large = large_literals(directory.path());
            let whole = read_whole(&line, &large);
            let in_pieces = read_in_pieces(&line, &lengths, &large);
            prop_assert_eq!(whole.is_some(), in_pieces.is_some());
            prop_assert!(whole == in_pieces);
        }
    }

    #[test]
    fn long_ones_are_refused_where_they_cannot_be() {
        let directory = tempfile::tempdir().unwrap();
        let large = large_literals(directory.path());
        let long = "x".repeat(10_000);
        let iri = format!("<urn:a> <urn:{long}> <urn:c> .");
        assert!(read_in_pieces(iri.as_bytes(), &[999], &large).is_none());
        let comment = format!("<urn:a> <urn:b> <urn:c> . # {long} \"{long}");
        assert!(read_in_pieces(comment.as_bytes(), &[999], &large).is_some());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let two = format!("<urn:a> <urn:b> \"{long}\" \"{long}\" .");
        assert!(read_in_pieces(two.as_bytes(), &[999], &large).is_none());
        let triple = format!("<urn:a> <urn:b> <<( <urn:a> <urn:b> \"{long}\" )>> .");
        assert!(read_whole(triple.as_bytes(), &large).is_some());
        assert!(read_in_pieces(triple.as_bytes(), &[999], &large).is_none());
    }

    #[test]
    fn what_is_wrong_in_a_long_literal_is_told_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let large = large_literals(directory.path());
        let message = |bad: &[u8]| {
            let line = [b"<a> <b> \"", "é".repeat(3000).as_bytes(), bad, b"  \" ."].concat();
            let mut reader = LongLineReader::new(&large);
            let pieces = line.chunks(7).try_for_each(|piece| reader.push(piece));
            match pieces {
                Err(LongLineError::Syntax(message)) => message.into_owned(),
                other => panic!("{other:?}"),
            }
        };
        let place = "at byte 6001 of the literal";
        assert_eq!(message(b"\xff"), format!("expected valid UTF-8, {place}"));
        assert_eq!(
            message(b"\xe4\xb8"),
            format!("expected valid UTF-8, {place}")
        );
        assert!(message(b"\\x").ends_with(place));
        assert!(message(b"\\uD800").ends_with(place));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
