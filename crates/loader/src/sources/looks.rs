//! A guess of a text's format by its first bytes, for messages about misnamed files.
//!
//! An archive or a text in UTF-16 is refused before anything is parsed. What merely looks like
//! another format of RDF is only told where a parser finds an error: first bytes are a guess, and
//! no reason to refuse what can be read.
//!
//! A byte-order mark is passed over here, before any parser sees the text.

use crate::sources::format::Format;
use std::io::{self, Cursor, Read};

/// So many first bytes are looked at: a tar archive has its mark behind the first name.
const PEEKED_BYTES: u64 = 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Where a tar archive says that it is one.
const TAR_MARK: (usize, &[u8]) = (257, b"ustar");

/// A guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looks {
    /// A format of RDF, and those that would read such a text, too.
    Like(Format),
    /// No RDF: what it is, and what to do about it.
    NoRdf(&'static str),
    /// A text in UTF-16, which XML may be in.
    Utf16,
    /// A page for people.
    Html,
}

impl Looks {
    /// Why nothing that begins so can be loaded in this format.
    pub(crate) fn no_rdf(self, format: Format) -> Option<&'static str> {
        match self {
            Self::NoRdf(what) => Some(what),
            Self::Utf16 if format != Format::RdfXml => Some(
                "its text is UTF-16; convert it to UTF-8, for example by `iconv -f UTF-16 -t UTF-8`",
            ),
            Self::Like(_) | Self::Html | Self::Utf16 => None,
        }
    }

    /// Names what a text that is no `format` looks like, if that is something else.
    pub(crate) fn instead_of(self, format: Format) -> Option<LooksLike> {
        match self {
            Self::NoRdf(_) | Self::Utf16 => None,
            Self::Html => Some(LooksLike::Html),
            Self::Like(other) => (!reads(format, other)).then_some(LooksLike::Format(other)),
        }
    }
}

/// The likely format of a text that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LooksLike {
    /// Another format of RDF.
    Format(Format),
    /// A web page.
    Html,
}

impl LooksLike {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Format(format) => format.name(),
            Self::Html => "a web page (HTML)",
        }
    }
}

/// Whether what looks like `text` may well be `format`.
fn reads(format: Format, text: Format) -> bool {
    use Format::{JsonLd, NQuads, NTriples, RdfXml, TriG, Turtle};
    match text {
        NTriples => matches!(format, NTriples | NQuads | Turtle | TriG),
        NQuads => format == NQuads,
        Turtle => matches!(format, Turtle | TriG),
        TriG => format == TriG,
        RdfXml => format == RdfXml,
        JsonLd => format == JsonLd,
    }
}

/// A text from its start, and what it looks like.
pub(crate) struct Peeked {
    pub(crate) text: Box<dyn Read + Send>,
    pub(crate) looks: Option<Looks>,
}

/// Looks at the first bytes of a plain text, and passes over its byte-order mark.
pub(crate) fn peek(mut input: Box<dyn Read + Send>) -> io::Result<Peeked> {
    let mut first = Vec::new();
    input.by_ref().take(PEEKED_BYTES).read_to_end(&mut first)?;
    let looks = look(&first);
    if first.starts_with(BYTE_ORDER_MARK) {
        first.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(Peeked {
        text: Box::new(Cursor::new(first).chain(input)),
        looks,
    })
}

fn look(first: &[u8]) -> Option<Looks> {
    if let Some(what) = binary(first) {
        return Some(Looks::NoRdf(what));
    }
    if matches!(first, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
        return Some(Looks::Utf16);
    }
    let text = first.strip_prefix(BYTE_ORDER_MARK).unwrap_or(first);
    let text = String::from_utf8_lossy(text);
    let text = text.trim_start();
    let lower = text.to_ascii_lowercase();
    if ["<!doctype html", "<html"]
        .iter()
        .any(|mark| lower.starts_with(mark))
    {
        return Some(Looks::Html);
    }
    let is_xml = ["<?xml", "<rdf:", "<!doctype", "<!--"];
    if is_xml.iter().any(|mark| lower.starts_with(mark)) {
        let is_page = lower.contains("<html") || lower.contains("<!doctype html");
        return Some(if is_page {
            Looks::Html
        } else {
            Looks::Like(Format::RdfXml)
        });
    }
    if let Some(rest) = text.strip_prefix(['{', '[']) {
        // A list of nodes in Turtle, or a graph in TriG, begins so, too, but goes on otherwise.
        let is_json = rest.trim_start().starts_with(['{', '"', '}', ']']);
        return is_json.then_some(Looks::Like(Format::JsonLd));
    }
    statements(text).map(Looks::Like)
}

/// What begins with bytes that no text has.
fn binary(first: &[u8]) -> Option<&'static str> {
    let (at, mark) = TAR_MARK;
    if first.get(at..at + mark.len()) == Some(mark) {
        return Some(
            "it is a tar archive; unpack it, and load the files in it (with --recursive all of a directory)",
        );
    }
    match first {
        [b'P', b'K', 3 | 5, 4 | 6, ..] => Some(
            "it is a zip archive; unpack it, and load the files in it (with --recursive all of a directory)",
        ),
        [b'7', b'z', 0xbc, 0xaf, ..] => {
            Some("it is a 7z archive; unpack it, and load the files in it")
        }
        [0xfd, b'7', b'z', b'X', b'Z', ..] => {
            Some("it is compressed by xz; unpack it, or compress it by gzip, bzip2 or zstd")
        }
        [b'$', b'H', b'D', b'T', ..] => Some("it is an HDT file; convert it to N-Triples"),
        [b'P', b'A', b'R', b'1', ..] => Some("it is a Parquet file; convert it to N-Triples"),
        _ => None,
    }
}

/// By the first line that is no comment: N-Triples, N-Quads, or one of those that may begin with a
/// directive.
fn statements(text: &str) -> Option<Format> {
    let is_comment = |line: &&str| line.is_empty() || line.starts_with('#');
    let mut lines = text.lines().map(str::trim).skip_while(is_comment);
    let line = lines.next()?;
    let word = line.split_whitespace().next()?.to_ascii_lowercase();
    if matches!(word.as_str(), "@prefix" | "@base" | "prefix" | "base") {
        let body = lines.find(|line| {
            let first = line.split_whitespace().next().unwrap_or("#");
            let first = first.to_ascii_lowercase();
            !first.starts_with('#') && !["@prefix", "@base", "prefix", "base"].contains(&&*first)
        });
        let is_trig = body.is_some_and(|line| {
            line.ends_with('{') || line.to_ascii_lowercase().starts_with("graph ")
        });
        return Some(if is_trig {
            Format::TriG
        } else {
            Format::Turtle
        });
    }
    let (subject, rest) = line.split_once(char::is_whitespace)?;
    let (predicate, rest) = rest.trim_start().split_once(char::is_whitespace)?;
    let is_iri = |text: &str| text.starts_with('<') && text.ends_with('>');
    if !(is_iri(subject) || subject.starts_with("_:")) || !is_iri(predicate) {
        return None;
    }
    let rest = rest.trim_start().strip_suffix('.')?;
    let object_end = match rest.strip_prefix('"') {
        Some(text) => 1 + closing_quote(text)?,
        None => 0,
    };
    // Behind the object's quote stands its tag or datatype.
    let mut behind = rest[object_end..].split_whitespace().skip(1);
    match (behind.next(), behind.next()) {
        (None, _) => Some(Format::NTriples),
        (Some(graph), None) if is_iri(graph) || graph.starts_with("_:") => Some(Format::NQuads),
        (Some(_), _) => None,
    }
}

/// Where the text of a literal ends, whose opening quote was taken.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, character)| {
        let is_end = character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        is_end.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_what_a_text_looks_like() {
        let like = |text: &str| look(text.as_bytes());
        let cases = [
            (
                "<?xml version=\"1.0\"?>\n<rdf:RDF>",
                Some(Looks::Like(Format::RdfXml)),
            ),
            (
                "\u{feff}  <rdf:RDF xmlns:rdf=\"\">",
                Some(Looks::Like(Format::RdfXml)),
            ),
            ("<!DOCTYPE html>\n<html>", Some(Looks::Html)),
            (
                "<?xml version=\"1.0\"?><html xmlns=\"\">",
                Some(Looks::Html),
            ),
            ("{\n  \"@context\": {}", Some(Looks::Like(Format::JsonLd))),
            ("[{\"@id\": \"a\"}]", Some(Looks::Like(Format::JsonLd))),
            ("[ <urn:p> 1 ] .", None),
            ("{ <urn:a> <urn:p> 1 }", None),
            (
                "# c\n@prefix a: <urn:a> .\na:b a a:c .",
                Some(Looks::Like(Format::Turtle)),
            ),
            (
                "PREFIX a: <urn:a>\nGRAPH a:g {",
                Some(Looks::Like(Format::TriG)),
            ),
            ("<a:s> <a:p> <a:o> .\n", Some(Looks::Like(Format::NTriples))),
            (
                "_:b <a:p> \"x y\"@en .\n",
                Some(Looks::Like(Format::NTriples)),
            ),
            (
                "<a:s> <a:p> \"1\"^^<a:t> .\n",
                Some(Looks::Like(Format::NTriples)),
            ),
            (
                "<a:s> <a:p> <a:o> <a:g> .\n",
                Some(Looks::Like(Format::NQuads)),
            ),
            (
                "<a:s> <a:p> \"x y\" <a:g> .\n",
                Some(Looks::Like(Format::NQuads)),
            ),
            ("nonsense", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(like(text), expected, "{text}");
        }
    }

    #[test]
    fn a_guess_is_told_only_where_the_format_would_not_read_it() {
        let turtle = Looks::Like(Format::Turtle);
        assert_eq!(turtle.instead_of(Format::TriG), None);
        assert_eq!(
            turtle.instead_of(Format::NTriples),
            Some(LooksLike::Format(Format::Turtle))
        );
        let triples = Looks::Like(Format::NTriples);
        assert_eq!(triples.instead_of(Format::Turtle), None);
        assert_eq!(
            triples.instead_of(Format::RdfXml),
            Some(LooksLike::Format(Format::NTriples))
        );
    }

    #[test]
    fn the_mark_goes_and_the_rest_stays() {
        for text in ["\u{feff}<a:s> .", "<a:s> .", "\u{feff}", ""] {
            let mut read = String::new();
            let peeked = peek(Box::new(Cursor::new(text.as_bytes().to_vec()))).unwrap();
            { peeked.text }.read_to_string(&mut read).unwrap();
            assert_eq!(read, text.trim_start_matches('\u{feff}'));
        }
    }
}
