//! The nesting limit of texts, whose values are dropped, copied and compared recursively. It is
//! looked through before the parser sees it.
//!
//! - Turtle, TriG and the solutions of TSV nest triple terms. One stands in another as its object,
//!   which is its end: as deep as they nest, so many `)>>` stand behind each other, and between
//!   them are only blanks and comments. A literal in which they do counts as well.
//! - JSON nests arrays and objects, XML elements.
//!
//! What nests deeper than a triple term may is refused with its place later; the limits here are
//! for the stack alone.

use std::io;

use memchr::{memchr, memchr2};

use crate::language::TagSyntax;
use crate::xml_elements::Elements;

/// So many `)>>` may stand behind each other, and so many elements of XML be open.
const DEPTH_MAX: u32 = 2_000;
/// So many arrays and objects may be open.
const JSON_DEPTH_MAX: u32 = 1_000;

/// The nesting of a text that is given piece by piece.
#[derive(Debug)]
pub struct Nesting(Of);

#[derive(Debug)]
enum Of {
    Turtle(Closings),
    Json(Brackets),
    Xml(Elements),
}

impl Nesting {
    /// Of a text in which language tags are written so.
    pub fn of(syntax: TagSyntax) -> Self {
        Self(match syntax {
            TagSyntax::At => Of::Turtle(Closings::default()),
            TagSyntax::JsonLd | TagSyntax::JsonResults => Of::Json(Brackets::default()),
            TagSyntax::Xml => Of::Xml(Elements::default()),
        })
    }

    /// Goes on with a piece of the text.
    ///
    /// # Errors
    /// Where the parser must not be given the piece.
    pub fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Of::Turtle(closings) => closings.push(piece),
            Of::Json(brackets) => brackets.push(piece),
            Of::Xml(elements) => {
                elements.push(piece);
                match elements.deepest() > DEPTH_MAX {
                    true => Err(too_deep(DEPTH_MAX)),
                    false => Ok(()),
                }
            }
        }
    }
}

/// What a text gets that nests too deep.
fn too_deep(depth_max: u32) -> io::Error {
    let message = format!("it is nested deeper than {depth_max} levels");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// `)>>` behind each other.
#[derive(Debug, Default)]
struct Closings {
    run: u32,
    /// Bytes of the next one that were read.
    matched: u8,
    is_comment: bool,
}

impl Closings {
    fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        let mut rest = piece;
        while let Some(&byte) = rest.first() {
            if self.is_comment {
                let Some(end) = memchr2(b'\n', b'\r', rest) else {
                    return Ok(());
                };
                self.is_comment = false;
                rest = &rest[end + 1..];
                continue;
            }
            if self.run == 0 && self.matched == 0 {
                let Some(start) = memchr(b')', rest) else {
                    return Ok(());
                };
                self.matched = 1;
                rest = &rest[start + 1..];
                continue;
            }
            rest = &rest[1..];
            match (self.matched, byte) {
                (1, b'>') => self.matched = 2,
                (2, b'>') => {
                    self.matched = 0;
                    self.run += 1;
                    if self.run > DEPTH_MAX {
                        return Err(too_deep(DEPTH_MAX));
                    }
                }
                (0, b')') => self.matched = 1,
                (0, b'#') => self.is_comment = true,
                (0, b' ' | b'\t' | b'\r' | b'\n') => {}
                (_, byte) => {
                    self.run = 0;
                    self.matched = u8::from(byte == b')');
                }
            }
        }
        Ok(())
    }
}

/// Arrays and objects that are open.
#[derive(Debug, Default)]
struct Brackets {
    open: u32,
    is_string: bool,
    is_escaped: bool,
}

impl Brackets {
    fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        let mut rest = piece;
        while let Some(&byte) = rest.first() {
            if self.is_escaped {
                self.is_escaped = false;
            } else if self.is_string {
                let Some(at) = memchr2(b'"', b'\\', rest) else {
                    return Ok(());
                };
                rest = &rest[at..];
                self.is_escaped = rest[0] == b'\\';
                self.is_string = self.is_escaped;
            } else {
                match byte {
                    b'"' => self.is_string = true,
                    b'[' | b'{' => self.open += 1,
                    b']' | b'}' => self.open = self.open.saturating_sub(1),
                    _ => {}
                }
                if self.open > JSON_DEPTH_MAX {
                    return Err(too_deep(JSON_DEPTH_MAX));
                }
            }
            rest = &rest[1..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same in whatever pieces it comes.
    fn is_taken(syntax: TagSyntax, text: &str) -> bool {
        let taken = |length: usize| {
            let mut nesting = Nesting::of(syntax);
            let mut pieces = text.as_bytes().chunks(length);
            pieces.all(|piece| nesting.push(piece).is_ok())
        };
        let whole = taken(text.len());
        assert_eq!(taken(1), whole);
        assert_eq!(taken(5), whole);
        whole
    }

    #[test]
    fn triple_terms_nest_as_deep_as_their_ends_follow_each_other() {
        for (closing, is_allowed) in [
            (")>>", false),
            (" )>>\n", false),
            (")>># )>> . \r\n", false),
            (")>>.", true),
            ("))>>", true),
            (")>> <a>", true),
            (")> >", true),
            (")>>>", true),
        ] {
            let text = closing.repeat(2_001);
            assert_eq!(is_taken(TagSyntax::At, &text), is_allowed, "{closing:?}");
            assert!(is_taken(TagSyntax::At, &closing.repeat(2_000)));
        }
    }

    #[test]
    fn arrays_and_objects_nest_outside_of_strings() {
        assert!(!is_taken(TagSyntax::JsonLd, &"[".repeat(1_001)));
        assert!(!is_taken(TagSyntax::JsonLd, &"{\"a\\\"\":".repeat(1_001)));
        assert!(!is_taken(
            TagSyntax::JsonLd,
            &format!("\"]\\\\\"{}", "[".repeat(1_001))
        ));
        assert!(is_taken(TagSyntax::JsonLd, &"[]".repeat(1_001)));
        assert!(is_taken(
            TagSyntax::JsonLd,
            &format!("\"\\\"{}\"", "[".repeat(1_001))
        ));
    }

    #[test]
    fn elements_nest_until_they_are_closed() {
        assert!(!is_taken(TagSyntax::Xml, &"<a>".repeat(2_001)));
        let closed = format!("{}{}", "<a>".repeat(2_001), "</a>".repeat(2_001));
        assert!(!is_taken(TagSyntax::Xml, &closed));
        assert!(!is_taken(
            TagSyntax::Xml,
            &"<a><!-- </a></a> --><?x </a>?>".repeat(2_001)
        ));
        assert!(is_taken(TagSyntax::Xml, &"<a></a><b/>".repeat(2_001)));
    }
}
