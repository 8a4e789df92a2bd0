//! Parser of `multipart/form-data` (RFC 7578) that yields the parts of a body as they come.
//!
//! ```text
//! chunks of a body -> push -> next: head of a part -> next: its bytes, in pieces -> next: next head
//!                                None: more has to come                  finish: whether all came
//! ```
//!
//! It holds the bytes that were pushed and not taken, the head of a part at most
//! ([`HEAD_BYTES_MAX`]), and the length of a boundary: pieces are returned as soon as no boundary
//! can begin in them. What stands before the first boundary and behind the last one is skipped.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memmem::find;
use percent_encoding::percent_decode_str;

use crate::request::media_type::MediaType;
use axum::http::HeaderMap;
use orrery_service::errors::ServiceError;

/// Most bytes of a part's head.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Most bytes of a boundary (RFC 2046, 5.1.1).
const BOUNDARY_BYTES_MAX: usize = 70;
/// Most white space behind a boundary.
const PADDING_BYTES_MAX: usize = 256;

/// The head of a part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PartHead {
    /// The name of the field.
    pub(crate) name: String,
    /// None if the part is no file.
    pub(crate) file_name: Option<String>,
    pub(crate) content_type: Option<String>,
}

/// A piece of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A new part begins; the one before has ended.
    Head(PartHead),
    /// Bytes of the part, at least one.
    Bytes(Bytes),
}

/// The reason why a body is no valid form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the multipart body is broken: {0}")]
pub(crate) struct BrokenForm(&'static str);

impl From<BrokenForm> for ServiceError {
    fn from(error: BrokenForm) -> Self {
        Self::bad_request(error.to_string())
    }
}

/// An incremental parser of the parts of a form.
#[derive(Debug)]
pub(crate) struct FormParts {
    /// A line end and the beginning of a boundary.
    delimiter: Vec<u8>,
    held: BytesMut,
    place: Place,
}

/// The position of the parser in the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Preamble,
    /// A boundary was passed.
    BehindBoundary,
    Head,
    Part,
    Epilogue,
}

impl FormParts {
    /// Makes a parser for a body with these headers.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, BrokenForm> {
        let boundary = MediaType::of_body(headers).and_then(|found| found.parameter("boundary"));
        let boundary = boundary.filter(|it| (1..=BOUNDARY_BYTES_MAX).contains(&it.len()));
        let boundary = boundary.ok_or(BrokenForm("its Content-Type has no boundary"))?;
        Ok(Self {
            delimiter: format!("\r\n--{boundary}").into_bytes(),
            // A body may begin with the first boundary.
            held: BytesMut::from(&b"\r\n"[..]),
            place: Place::Preamble,
        })
    }

    /// Adds bytes that have come.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        if self.place != Place::Epilogue {
            self.held.extend_from_slice(chunk);
        }
    }

    /// The next piece; `None` if more has to come first.
    pub(crate) fn next(&mut self) -> Result<Option<Piece>, BrokenForm> {
        loop {
            match self.place {
                Place::Preamble => {
                    if self.pass_boundary().is_none() {
                        return Ok(None);
                    }
                }
                Place::Part => {
                    let piece = match self.pass_boundary() {
                        Some(last) if last.is_empty() => continue,
                        Some(last) => last,
                        None => match self.before_boundary() {
                            safe if safe.is_empty() => return Ok(None),
                            safe => safe,
                        },
                    };
                    return Ok(Some(Piece::Bytes(piece)));
                }
                Place::BehindBoundary => match self.behind_boundary()? {
                    Some(place) => self.place = place,
                    None => return Ok(None),
                },
                Place::Head => {
                    let shown = &self.held[..self.held.len().min(HEAD_BYTES_MAX)];
                    let Some(end) = find(shown, b"\r\n\r\n") else {
                        return match self.held.len() < HEAD_BYTES_MAX {
                            true => Ok(None),
                            false => Err(BrokenForm("the head of a part is too long")),
                        };
                    };
                    let head = self.held.split_to(end + 4);
                    self.place = Place::Part;
                    return Ok(Some(Piece::Head(PartHead::of(&head))));
                }
                Place::Epilogue => {
                    self.held.clear();
                    return Ok(None);
                }
            }
        }
    }

    /// Checks, at the end of the body, that the form is complete.
    pub(crate) fn finish(&self) -> Result<(), BrokenForm> {
        match self.place {
            Place::Epilogue => Ok(()),
            Place::Preamble => Err(BrokenForm("its boundary does not stand in it")),
            Place::BehindBoundary | Place::Head | Place::Part => {
                Err(BrokenForm("it ends before its last boundary"))
            }
        }
    }

    /// Skips the next boundary, if it is there; returns what is before it.
    fn pass_boundary(&mut self) -> Option<Bytes> {
        let before = find(&self.held, &self.delimiter)?;
        let before = self.held.split_to(before).freeze();
        self.held.advance(self.delimiter.len());
        self.place = Place::BehindBoundary;
        match before.is_empty() {
            true => Some(Bytes::new()),
            false => Some(before),
        }
    }

    /// Held bytes that cannot be part of a boundary, whatever comes.
    fn before_boundary(&mut self) -> Bytes {
        let safe = (self.held.len() + 1).saturating_sub(self.delimiter.len());
        self.held.split_to(safe).freeze()
    }

    /// What follows a boundary; `None` while that is not known.
    fn behind_boundary(&mut self) -> Result<Option<Place>, BrokenForm> {
        if self.held.starts_with(b"--") {
            return Ok(Some(Place::Epilogue));
        }
        let is_padding = |byte: &&u8| matches!(**byte, b' ' | b'\t');
        let padding = self.held.iter().take_while(is_padding).count();
        let rest = self.held.get(padding..).unwrap_or_default();
        if rest.starts_with(b"\r\n") {
            // The line end stays: a head without lines is two of them.
            self.held.advance(padding);
            return Ok(Some(Place::Head));
        }
        let is_open = rest.is_empty() || rest == b"\r" || (padding == 0 && rest == b"-");
        match is_open && padding < PADDING_BYTES_MAX {
            true => Ok(None),
            false => Err(BrokenForm("something else stands behind a boundary")),
        }
    }
}

impl PartHead {
    /// Parses the lines of a head.
    fn of(head: &[u8]) -> Self {
        let text = String::from_utf8_lossy(head);
        let mut found = Self::default();
        for line in text.split("\r\n") {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            match name.trim().to_ascii_lowercase().as_str() {
                "content-disposition" => {
                    found.name = parameter(value, "name").unwrap_or_default();
                    found.file_name = parameter(value, "filename*")
                        .and_then(|value| extended(&value))
                        .or_else(|| parameter(value, "filename"));
                }
                "content-type" => found.content_type = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        found
    }
}

/// A parameter of `Content-Disposition`. Quotes in it come as `\"` or as `%22` (HTML, 4.10.21.8).
fn parameter(value: &str, wanted: &str) -> Option<String> {
    let mut rest = value.split_once(';')?.1;
    loop {
        let (name, behind) = rest.split_once('=')?;
        // Parameters without a value are skipped.
        let name = name.rsplit(';').next().unwrap_or_default().trim();
        let behind = behind.trim_start();
        let (value, after) = match behind.strip_prefix('"') {
            Some(quoted) => quoted_text(quoted),
            None => {
                let (value, after) = behind.split_once(';').unwrap_or((behind, ""));
                (value.trim().to_owned(), after)
            }
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value.replace("%22", "\""));
        }
        rest = after;
    }
}

/// The text up to its closing quote, and what is behind the parameter.
fn quoted_text(quoted: &str) -> (String, &str) {
    let mut text = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        let rest = quoted.get(at + 1..).unwrap_or_default();
        match character {
            '"' => return (text, rest.split_once(';').map_or("", |(_, after)| after)),
            // Any other backslash is part of a Windows file name.
            '\\' if rest.starts_with(['"', '\\']) => {
                text.extend(characters.next().map(|(_, escaped)| escaped));
            }
            _ => text.push(character),
        }
    }
    (text, "")
}

/// Decodes an RFC 8187 text: `UTF-8''caf%C3%A9.ttl`.
fn extended(value: &str) -> Option<String> {
    let (charset, rest) = value.split_once('\'')?;
    let (_, text) = rest.split_once('\'')?;
    let text = percent_decode_str(text).decode_utf8().ok()?;
    charset
        .eq_ignore_ascii_case("utf-8")
        .then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::extract::{FromRequest, Multipart, Request};
    use axum::http::{HeaderValue, header};
    use proptest::prelude::*;

    type Part = (Option<String>, Option<String>, Option<String>, Vec<u8>);

    fn headers(boundary: &str) -> HeaderMap {
        let text = format!("multipart/form-data; boundary={boundary}");
        let value = HeaderValue::try_from(text).unwrap();
        HeaderMap::from_iter([(header::CONTENT_TYPE, value)])
    }

    /// All parts of a body that comes in chunks of these lengths, again and again.
    fn parts(body: &[u8], chunks: &[usize]) -> Result<Vec<(PartHead, Vec<u8>)>, BrokenForm> {
        let mut form = FormParts::of(&headers("xyz"))?;
        let mut found: Vec<(PartHead, Vec<u8>)> = Vec::new();
        let mut rest = body;
        for length in chunks.iter().cycle() {
            while let Some(piece) = form.next()? {
                match piece {
                    Piece::Head(head) => found.push((head, Vec::new())),
                    Piece::Bytes(bytes) => found.last_mut().unwrap().1.extend_from_slice(&bytes),
                }
            }
            let held = form.held.len();
            assert!(held < HEAD_BYTES_MAX + 64, "{held} bytes are held");
            if rest.is_empty() {
                break;
            }
            let (chunk, after) = rest.split_at((*length).min(rest.len()));
            form.push(chunk);
            rest = after;
        }
        form.finish().map(|()| found)
    }

    /// What another parser makes of the body.
    async fn parts_by_another(body: Vec<u8>) -> Option<Vec<Part>> {
        let mut request = Request::new(Body::from(body));
        *request.headers_mut() = headers("xyz");
        let mut form = Multipart::from_request(request, &()).await.ok()?;
        let mut found = Vec::new();
        while let Some(field) = form.next_field().await.ok()? {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let head = (
                owned(field.name()),
                owned(field.file_name()),
                owned(field.content_type()),
            );
            found.push((head.0, head.1, head.2, field.bytes().await.ok()?.to_vec()));
        }
        Some(found)
    }

    fn content() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"\r\n".to_vec()),
            Just(b"\r\n--xy".to_vec()),
            Just(b"--xyz".to_vec()),
            Just(b"-".to_vec()),
            Just(b"\r".to_vec()),
            prop::collection::vec(any::<u8>(), 0..40),
        ];
        prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    /// Content that a part may have.
    fn lawful_content() -> impl Strategy<Value = Vec<u8>> {
        content().prop_filter("a boundary", |content| {
            find(content, b"\r\n--xyz").is_none()
        })
    }

    proptest! {
        #[test]
        fn parts_are_what_another_parser_finds_however_they_come(
            contents in prop::collection::vec(("[a-z]{1,8}", any::<bool>(), lawful_content()), 0..6),
            chunks in prop::collection::vec(1_usize..50, 1..6),
        ) {
            let mut body = Vec::new();
            for (name, is_file, content) in &contents {
                body.extend_from_slice(format!("--xyz\r\nContent-Disposition: form-data; name=\"{name}\"").as_bytes());
                if *is_file {
                    body.extend_from_slice(b"; filename=\"a b;c.ttl\"\r\nContent-Type: text/turtle");
                }
                body.extend_from_slice(b"\r\n\r\n");
                body.extend_from_slice(content);
                body.extend_from_slice(b"\r\n");
            }
            body.extend_from_slice(b"--xyz--\r\nbehind");
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let others = runtime.block_on(parts_by_another(body.clone()));
            let ours = parts(&body, &chunks).unwrap();
            let ours: Vec<Part> = ours
                .into_iter()
                .map(|(head, bytes)| (Some(head.name), head.file_name, head.content_type, bytes))
                .collect();
            prop_assert_eq!(Some(ours), others);
        }

        #[test]
        fn any_bytes_are_a_form_or_broken(
            body in prop::collection::vec(prop_oneof![Just(b"\r\n--xyz".to_vec()), Just(b"\r\n\r\n".to_vec()), content()], 0..12),
            chunks in prop::collection::vec(1_usize..50, 1..6),
        ) {
            let body = body.concat();
            let at_once = parts(&body, &[body.len().clamp(1, 4096)]);
            prop_assert_eq!(parts(&body, &chunks), at_once);
        }
    }

    #[test]
    fn heads_are_read_as_clients_write_them() {
        let head = |text: &str| {
            let found = PartHead::of(text.as_bytes());
            (found.name, found.file_name)
        };
        let named = |name: &str, file: &str| (name.to_owned(), Some(file.to_owned()));
        for (text, expected) in [
            (
                "Content-Disposition: form-data; name=\"f\"; filename=\"a;b=c.ttl\"",
                named("f", "a;b=c.ttl"),
            ),
            (
                "content-disposition:form-data;filename=a.nt;name=f",
                named("f", "a.nt"),
            ),
            (
                "Content-Disposition: form-data; name=f; filename=\"say \\\"hi\\\".nt\"",
                named("f", "say \"hi\".nt"),
            ),
            (
                "Content-Disposition: form-data; name=f; filename=\"say %22hi%22.nt\"",
                named("f", "say \"hi\".nt"),
            ),
            (
                "Content-Disposition: form-data; name=f; filename=\"C:\\in\\a.nt\"",
                named("f", "C:\\in\\a.nt"),
            ),
            (
                "Content-Disposition: form-data; name=f; filename=\"x\"; filename*=UTF-8''caf%C3%A9.nt",
                named("f", "café.nt"),
            ),
        ] {
            assert_eq!(head(text), expected, "{text}");
        }
        assert_eq!(head("X: y"), (String::new(), None));
        assert_eq!(
            head("Content-Disposition: form-data; x; name=\"open"),
            ("open".to_owned(), None)
        );
    }

    #[test]
    fn what_is_no_form_is_broken_and_a_head_has_an_end() {
        for (body, says) in [
            (&b""[..], "does not stand in it"),
            (b"--xy--\r\n", "does not stand in it"),
            (b"--xyz", "before its last boundary"),
            (b"--xyz\r\nA: b\r\n\r\ntext", "before its last boundary"),
            (b"--xyzz\r\n", "stands behind a boundary"),
        ] {
            let error = parts(body, &[7]).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let mut long = b"--xyz\r\nA: ".to_vec();
        long.resize(HEAD_BYTES_MAX * 3, b'x');
        let error = parts(&long, &[100]).unwrap_err().to_string();
        assert!(error.contains("head of a part is too long"), "{error}");
        assert!(FormParts::of(&headers("")).is_err());
        assert!(FormParts::of(&HeaderMap::new()).is_err());
    }
}
