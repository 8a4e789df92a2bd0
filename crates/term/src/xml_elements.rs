//! The nesting depth of XML elements.
//!
//! A scan beside the parser, which knows tags, comments, CDATA, instructions and the document's
//! type, and nothing of what they mean; what is no XML the parser refuses. It jumps from one byte
//! that means something to the next: 0.03 s for 60 MB, of which a load's user time is 0.8 s (byte
//! by byte within tags it was 0.1 s).

use memchr::{memchr, memchr3};

/// Where in the text a scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// Behind `<`.
    Opened,
    /// Behind `<!`.
    Declared,
    /// In the tag with which an element begins, perhaps between quotes, with the byte before.
    StartTag {
        quote: Option<u8>,
        last: u8,
    },
    EndTag,
    /// In `<? .. ?>`, with the byte before; maybe within the document's type.
    Instruction {
        last: u8,
        around: Option<u32>,
    },
    /// In `<!-- .. -->`, behind so many dashes; maybe within the document's type.
    Comment {
        dashes: u8,
        around: Option<u32>,
    },
    /// In `<![CDATA[ .. ]]>`, behind so many brackets.
    CData {
        brackets: u8,
    },
    /// In `<!DOCTYPE .. >`, within so many brackets, perhaps between quotes, with the last four
    /// bytes.
    Doctype {
        brackets: u32,
        quote: Option<u8>,
        last: u32,
    },
}

/// The elements of a text that is given piece by piece.
#[derive(Debug)]
pub(crate) struct Elements {
    state: State,
    open: u64,
    /// As many were open at a time.
    deepest: u32,
}

impl Default for Elements {
    fn default() -> Self {
        Self {
            state: State::Text,
            open: 0,
            deepest: 0,
        }
    }
}

impl Elements {
    /// How many elements were open at a time, at the most.
    pub(crate) fn deepest(&self) -> u32 {
        self.deepest
    }

    /// Goes on with a piece of the text.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while !rest.is_empty() {
            let at = self.next(rest).unwrap_or(rest.len());
            if let State::StartTag { last, .. } = &mut self.state
                && let Some(&before) = rest[..at].last()
            {
                *last = before;
            }
            let Some(&byte) = rest.get(at) else { return };
            self.state = self.behind(byte);
            rest = &rest[at + 1..];
        }
    }

    /// Where the next byte stands that may change the state; of a tag begun, but for the byte
    /// before.
    fn next(&self, rest: &[u8]) -> Option<usize> {
        match self.state {
            State::Text => memchr(b'<', rest),
            State::EndTag => memchr(b'>', rest),
            State::StartTag { quote: None, .. } => memchr3(b'>', b'"', b'\'', rest),
            State::StartTag {
                quote: Some(quote), ..
            } => memchr(quote, rest),
            _ => Some(0),
        }
    }

    fn behind(&mut self, byte: u8) -> State {
        match self.state {
            State::Text => State::Opened,
            State::Opened => match byte {
                b'!' => State::Declared,
                b'?' => State::Instruction {
                    last: 0,
                    around: None,
                },
                b'/' => State::EndTag,
                _ => State::StartTag {
                    quote: None,
                    last: byte,
                },
            },
            State::Declared => match byte {
                // The second dash counts for none of the closing ones.
                b'-' => State::Comment {
                    dashes: u8::MAX,
                    around: None,
                },
                b'[' => State::CData { brackets: 0 },
                _ => State::Doctype {
                    brackets: 0,
                    quote: None,
                    last: 0,
                },
            },
            State::StartTag { quote, last } => match (quote, byte) {
                (Some(open), byte) if open == byte => State::StartTag {
                    quote: None,
                    last: byte,
                },
                (None, b'"' | b'\'') => State::StartTag {
                    quote: Some(byte),
                    last: byte,
                },
                (None, b'>') => {
                    self.open += u64::from(last != b'/');
                    self.deepest = self
                        .deepest
                        .max(u32::try_from(self.open).unwrap_or(u32::MAX));
                    State::Text
                }
                _ => State::StartTag { quote, last: byte },
            },
            State::EndTag => {
                self.open = self.open.saturating_sub(1);
                State::Text
            }
            State::Instruction { last: b'?', around } if byte == b'>' => behind_inner(around),
            State::Instruction { around, .. } => State::Instruction { last: byte, around },
            State::Comment { dashes, around } => comment(byte, dashes, around),
            State::CData { brackets } => match byte {
                b']' => State::CData {
                    brackets: brackets.saturating_add(1),
                },
                b'>' if brackets >= 2 => State::Text,
                _ => State::CData { brackets: 0 },
            },
            State::Doctype {
                brackets,
                quote,
                last,
            } => doctype(byte, brackets, quote, last),
        }
    }
}

/// Behind a comment or an instruction.
fn behind_inner(around: Option<u32>) -> State {
    around.map_or(State::Text, |brackets| State::Doctype {
        brackets,
        quote: None,
        last: 0,
    })
}

fn comment(byte: u8, dashes: u8, around: Option<u32>) -> State {
    let dashes = match byte {
        b'-' => match dashes {
            u8::MAX => 0,
            dashes => (dashes + 1).min(2),
        },
        b'>' if dashes == 2 => return behind_inner(around),
        _ => 0,
    };
    State::Comment { dashes, around }
}

fn doctype(byte: u8, brackets: u32, quote: Option<u8>, last: u32) -> State {
    let last = (last << 8) | u32::from(byte);
    let (brackets, quote) = match (quote, byte) {
        (Some(open), byte) if open == byte => (brackets, None),
        (Some(_), _) => (brackets, quote),
        (None, b'"' | b'\'') => (brackets, Some(byte)),
        (None, b'-') if last == u32::from_be_bytes(*b"<!--") => {
            return State::Comment {
                dashes: 0,
                around: Some(brackets),
            };
        }
        (None, b'?') if last.to_be_bytes().ends_with(b"<?") => {
            return State::Instruction {
                last: 0,
                around: Some(brackets),
            };
        }
        (None, b'[') => (brackets.saturating_add(1), None),
        (None, b']') => (brackets.saturating_sub(1), None),
        (None, b'>') if brackets == 0 => return State::Text,
        (None, _) => (brackets, None),
    };
    State::Doctype {
        brackets,
        quote,
        last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many are open behind a text, in whatever pieces it comes.
    fn open(text: &str) -> u64 {
        let opened = |length: usize| {
            let mut elements = Elements::default();
            for piece in text.as_bytes().chunks(length) {
                elements.push(piece);
            }
            elements.open
        };
        assert_eq!(opened(1), opened(text.len()), "{text}");
        assert_eq!(opened(3), opened(text.len()), "{text}");
        opened(1)
    }

    #[test]
    fn tags_are_counted_and_what_only_looks_like_them_is_not() {
        assert_eq!(open("<a>"), 1);
        assert_eq!(open("<a><b/></a>"), 0);
        assert_eq!(open("<a x='>' y=\"/>\"><b z='/'>"), 2);
        assert_eq!(open("<?xml version='1.0'?><a><!-- <b> - -- > --></a>"), 0);
        assert_eq!(open("<a><!----><b><![CDATA[<c> ]] > ]]></b>"), 1);
        let doctype = "<!DOCTYPE a [<!ENTITY e \"x > ]\"> <!-- it's -- ]> --> <!ELEMENT a ANY>]>";
        assert_eq!(open(&format!("{doctype}<a>&e;")), 1);
        assert_eq!(open(&format!("{doctype}<a>&e;</a>")), 0);
        assert_eq!(open("<!DOCTYPE a [<?x it's ]> \"?> <?y?>]><a><b/>"), 1);
        assert_eq!(open("<a><b x='1'/><c/ ></c></a >"), 0);
    }
}
