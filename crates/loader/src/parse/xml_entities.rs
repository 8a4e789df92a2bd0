//! Limits for the expansion of XML entities.
//!
//! Thirty lines of `<!ENTITY b "&a;&a;&a;...">` make a text that no memory holds, and one long
//! entity that is used often makes a small text very large. So the text is looked through before
//! its parser sees it, and is refused where its entities get too long. Declarations are read as the
//! parser reads them (`rdf_xml/tag.rs`: internal ones without markup; it knows no external ones),
//! wherever they stand; of several of one name the longest counts. What is no declaration for the
//! parser costs nothing here.
//!
//! A scan by `memchr` for `<`, and for `&` as soon as there is an entity.

use std::collections::HashMap;
use std::io;

use memchr::{memchr, memchr2};

/// What one entity may stand for; mostly they are namespaces.
const ENTITY_BYTES_MAX: u64 = 4 << 10;
/// What a declaration may take.
const DECLARATION_BYTES_MAX: usize = 8 << 10;
/// Quotes of both kinds in a declaration: two are around its value.
const QUOTES_MAX: usize = 64;
/// The longest name that is looked up.
const NAME_BYTES_MAX: usize = 256;
/// What all of them together may stand for, beside so many times the text itself.
const FREE_BYTES: u64 = 1 << 20;
const TEXT_PART: u64 = 16;

/// What begins a declaration, behind `<`.
const KEYWORD: &[u8] = b"!ENTITY";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// Behind `<`, within the keyword.
    Opened,
    /// Behind the keyword.
    Declaration,
    /// Behind `&`.
    Reference,
}

/// The entities of a text that is given piece by piece.
#[derive(Debug)]
pub(crate) struct Entities {
    state: State,
    /// What was read in this state.
    token: Vec<u8>,
    quotes: usize,
    /// How long it is, what each stands for.
    lengths: HashMap<Box<[u8]>, u64>,
    read_bytes: u64,
    written_bytes: u64,
}

impl Default for Entities {
    fn default() -> Self {
        Self {
            state: State::Text,
            token: Vec::new(),
            quotes: 0,
            lengths: HashMap::new(),
            read_bytes: 0,
            written_bytes: 0,
        }
    }
}

impl Entities {
    /// What the parser has written for entities so far, at most.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Goes on with a piece of the text.
    ///
    /// # Errors
    /// Where the parser must not be given the piece.
    pub(crate) fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        self.read_bytes += piece.len() as u64;
        let mut rest = piece;
        while let Some(&byte) = rest.first() {
            if self.state == State::Text {
                let found = match self.lengths.is_empty() {
                    true => memchr(b'<', rest),
                    false => memchr2(b'<', b'&', rest),
                };
                let Some(at) = found else { break };
                self.begin(rest[at]);
                rest = &rest[at + 1..];
                continue;
            }
            self.go_on(byte)?;
            rest = &rest[1..];
        }
        if self.written_bytes > FREE_BYTES + TEXT_PART * self.read_bytes {
            return Err(too_much(
                "the entities of the document stand for far more than the document itself",
            ));
        }
        Ok(())
    }

    fn begin(&mut self, byte: u8) {
        self.token.clear();
        self.quotes = 0;
        self.state = match byte {
            b'<' => State::Opened,
            b'&' if !self.lengths.is_empty() => State::Reference,
            _ => State::Text,
        };
    }

    fn go_on(&mut self, byte: u8) -> io::Result<()> {
        if byte == b'<' {
            self.begin(byte);
            return Ok(());
        }
        match self.state {
            State::Text => {}
            State::Opened => {
                self.token.push(byte);
                if !KEYWORD.starts_with(&self.token) {
                    self.begin(byte);
                } else if self.token.len() == KEYWORD.len() {
                    self.token.clear();
                    self.state = State::Declaration;
                }
            }
            State::Declaration => return self.in_declaration(byte),
            State::Reference => match byte {
                b';' => {
                    let length = self.lengths.get(self.token.as_slice());
                    self.written_bytes += length.copied().unwrap_or(0);
                    self.state = State::Text;
                }
                b'&' => self.begin(byte),
                _ if self.token.len() == NAME_BYTES_MAX => self.state = State::Text,
                _ => self.token.push(byte),
            },
        }
        Ok(())
    }

    fn in_declaration(&mut self, byte: u8) -> io::Result<()> {
        if self.token.len() == DECLARATION_BYTES_MAX || self.quotes == QUOTES_MAX {
            return Err(too_much("a declaration of an entity is too long"));
        }
        self.token.push(byte);
        if !matches!(byte, b'"' | b'\'') {
            return Ok(());
        }
        self.quotes += 1;
        let text = String::from_utf8_lossy(&self.token);
        let Some((name, value)) = declaration(&text) else {
            return Ok(());
        };
        let length = self.length_of(value);
        if length > ENTITY_BYTES_MAX || name.len() > NAME_BYTES_MAX {
            return Err(too_much("an entity of the document stands for too much"));
        }
        let known = self.lengths.entry(name.as_bytes().into()).or_default();
        *known = length.max(*known);
        self.written_bytes += length;
        self.state = State::Text;
        Ok(())
    }

    /// How long a value is in which entities are written out.
    fn length_of(&self, value: &str) -> u64 {
        let mut length = value.len() as u64;
        for part in value.split('&').skip(1) {
            let name = part.split_once(';').map(|(name, _)| name.as_bytes());
            let known = name.and_then(|name| self.lengths.get(name));
            length = length.saturating_add(known.copied().unwrap_or(0));
        }
        length
    }
}

/// The name and the value of what stands behind the keyword, once the value is closed.
fn declaration(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let text = text.strip_prefix('%').unwrap_or(text).trim_start();
    let (name, rest) = text.split_once(|c: char| c.is_ascii_whitespace())?;
    let rest = rest.trim_start();
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (value, _) = rest[1..].split_once(quote)?;
    Some((name, value))
}

fn too_much(what: &str) -> io::Error {
    let message = format!("{what}; write out what they stand for");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, piece_bytes: usize) -> Result<u64, String> {
        let mut entities = Entities::default();
        for piece in text.as_bytes().chunks(piece_bytes) {
            entities.push(piece).map_err(|error| error.to_string())?;
        }
        Ok(entities.written_bytes())
    }

    /// The same in whatever pieces it comes.
    fn written(text: &str) -> Result<u64, String> {
        let whole = read(text, text.len());
        assert_eq!(read(text, 1).is_ok(), whole.is_ok(), "{text}");
        assert_eq!(read(text, 7).is_ok(), whole.is_ok(), "{text}");
        whole
    }

    #[test]
    fn entities_count_where_they_are_declared_and_where_they_are_used() {
        let doctype = "<!DOCTYPE r [<!ENTITY a \"12345\"> <!ENTITY % b\n \"&a;&lt;&a;\">]>";
        // The first, and the second with two of the first in it.
        assert_eq!(written(doctype), Ok(5 + 10 + 10));
        let used = format!("{doctype}<r x=\"&a;\">&b; &amp; &c; & a; &a <</r>");
        assert_eq!(written(&used), Ok(25 + 5 + 20));
        // Whichever of several is taken, and whatever stands between its quotes.
        let twice = "<!ENTITY a '1 \"2\"'><!-- <!ENTITY a ''> --><r>&a;</r>";
        assert_eq!(written(twice), Ok(5 + 5));
        assert_eq!(written("<r>&a; &lt; <![CDATA[<!ENT]]></r>"), Ok(0));
    }

    #[test]
    fn what_the_parser_refuses_is_no_declaration() {
        for text in [
            "<!ENTITY a SYSTEM \"file:///etc/passwd\"><r>&a;</r>",
            "<! ENTITY a \"12345\"><r>&a;</r>",
            "<!ENTITY a \"123<45\"><r>&a;</r>",
        ] {
            assert_eq!(written(text), Ok(0), "{text}");
        }
    }

    #[test]
    fn what_grows_with_each_line_is_refused_at_once() {
        let mut laughs = "<!DOCTYPE r [<!ENTITY a0 \"ha\">\n".to_owned();
        for line in 1..30 {
            let before = format!("&a{};", line - 1).repeat(10);
            laughs.push_str(&format!("<!ENTITY a{line} \"{before}\">\n"));
        }
        assert!(written(&laughs).is_err());
        let long = format!("<!ENTITY a \"{}\">", "x".repeat(5_000));
        assert!(written(&long).is_err());
        assert!(written(&format!("<!ENTITY a {}\"x\">", " ".repeat(9_000))).is_err());
        assert!(written(&format!("<!ENTITY {}", "\"".repeat(65))).is_err());
        assert!(written(&laughs.replace('"', "'")).is_err());
    }

    #[test]
    fn one_that_is_used_very_often_is_refused_and_namespaces_are_not() {
        let used = |value: &str, times: usize| {
            let uses = "&a;\n".repeat(times);
            written(&format!(
                "<!DOCTYPE r [<!ENTITY a \"{value}\">]><r>{uses}</r>"
            ))
        };
        assert!(used(&"x".repeat(4_000), 1_000).is_err());
        assert!(used("http://www.w3.org/2001/XMLSchema#", 100_000).is_ok());
    }
}
