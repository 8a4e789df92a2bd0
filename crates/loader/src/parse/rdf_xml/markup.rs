//! The tokenizer of XML: tags, texts and comments with their places.
//!
//! What is not well formed is a fault after which nobody knows where the next element begins, so
//! reading ends there. A token stands in memory; who gives the text bounds it.

use super::fault::{Fault, Place, Position};
use crate::parse::held::InParts;
use memchr::{memchr, memchr3, memmem};
use std::io;

/// The text is asked for in pieces of so much.
const PIECE_BYTES: usize = 64 << 10;

/// A piece of markup; its text is what stands between its marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Start { is_empty: bool },
    End,
    Text,
    CData,
    Comment,
    Instruction,
    Doctype,
    EndOfFile,
}

/// Why there is no next token.
#[derive(Debug)]
pub(super) enum Ended {
    Input(io::Error),
    Fault(Fault),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Input(error)
    }
}

pub(super) struct Markup<R> {
    input: R,
    buffer: Vec<u8>,
    /// Where the next token begins in the buffer, and in the text.
    at: usize,
    position: Position,
    is_at_end: bool,
}

impl<R: InParts> Markup<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            at: 0,
            position: Position::default(),
            is_at_end: false,
        }
    }

    /// All of the text so far is understood.
    pub(super) fn end_part(&self) {
        self.input.end_part();
    }

    /// Where the next token begins.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// Puts the text of the next token into `text`; says which it is, and where its text begins.
    pub(super) fn next(&mut self, text: &mut String) -> Result<(Token, Position), Ended> {
        text.clear();
        if self.at >= PIECE_BYTES {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        while self.at == self.buffer.len() {
            if !self.fill()? {
                return Ok((Token::EndOfFile, self.position));
            }
        }
        if self.buffer[self.at] != b'<' {
            let end = self.find(self.at, b"<")?.unwrap_or(self.buffer.len());
            return self.token(Token::Text, (0, end - self.at, end - self.at), text);
        }
        const MARKS: [(&[u8], &[u8], Token); 3] = [
            (b"<!--", b"-->", Token::Comment),
            (b"<![CDATA[", b"]]>", Token::CData),
            (b"<?", b"?>", Token::Instruction),
        ];
        for (opening, closing, token) in MARKS {
            if self.starts_with(opening)? {
                let start = self.at + opening.len();
                let Some(end) = self.find(start, closing)? else {
                    let mark = String::from_utf8_lossy(closing);
                    let message = "the file ends within what begins here";
                    return Err(self.fault(
                        opening.len(),
                        message,
                        format!("close it by `{mark}`"),
                    ));
                };
                let inner = (start - self.at, end - self.at);
                if token == Token::Comment
                    && memmem::find(&self.buffer[start..end], b"--").is_some()
                {
                    let message = "`--` stands in a comment";
                    let mend = "close the comment by `-->`, or write `- -` in it";
                    return Err(self.fault(opening.len(), message, mend.to_owned()));
                }
                let length = end + closing.len() - self.at;
                return self.token(token, (inner.0, inner.1, length), text);
            }
        }
        if self.starts_with(b"<!DOCTYPE")? {
            let end = self.doctype_end()?;
            let length = end + 1 - self.at;
            return self.token(Token::Doctype, (9, length - 1, length), text);
        }
        if self.starts_with(b"<!")? {
            let mend = "write `<!-- -->` around a comment, and `&lt;` for the character";
            return Err(self.fault(2, "`<!` begins nothing that XML knows", mend.to_owned()));
        }
        let end = self.tag_end()?;
        let length = end + 1 - self.at;
        if self.buffer[self.at + 1] == b'/' {
            return self.token(Token::End, (2, length - 1, length), text);
        }
        let is_empty = self.buffer[end - 1] == b'/' && length > 3;
        let inner_end = length - 1 - usize::from(is_empty);
        self.token(Token::Start { is_empty }, (1, inner_end, length), text)
    }

    /// Takes a token of `length` bytes, whose text stands within.
    fn token(
        &mut self,
        token: Token,
        (start, end, length): (usize, usize, usize),
        text: &mut String,
    ) -> Result<(Token, Position), Ended> {
        let whole = &self.buffer[self.at..self.at + length];
        let begin = self.position.after(&whole[..start]);
        match std::str::from_utf8(&whole[start..end]) {
            Ok(inner) => text.push_str(inner),
            Err(error) => {
                let before = &whole[start..start + error.valid_up_to()];
                let place = begin.after(before).place(1);
                let message = "there are bytes that are no UTF-8";
                let mend = "the file is not UTF-8; convert it, e.g. `iconv -f latin1 -t utf-8`, or declare what it is, <?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>";
                return Err(Ended::Fault(
                    Fault::new(place, message, mend).ending_reading(),
                ));
            }
        }
        self.position = self.position.after(whole);
        self.at += length;
        Ok((token, begin))
    }

    /// A fault at the next token, of so many bytes.
    fn fault(&self, length: usize, message: &str, mend: String) -> Ended {
        let place: Place = self.position.place(length as u64);
        Ended::Fault(Fault::new(place, message, mend).ending_reading())
    }

    fn fault_at(&self, at: usize, message: &str, mend: &str) -> Ended {
        let place = self.position.after(&self.buffer[self.at..at]).place(1);
        Ended::Fault(Fault::new(place, message, mend).ending_reading())
    }

    /// Reads on; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        if self.is_at_end {
            return Ok(false);
        }
        let length = self.buffer.len();
        self.buffer.resize(length + PIECE_BYTES, 0);
        let read = self.input.read(&mut self.buffer[length..]);
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                self.buffer.truncate(length);
                return Err(error);
            }
        };
        self.buffer.truncate(length + read);
        self.is_at_end = read == 0;
        Ok(read > 0)
    }

    fn starts_with(&mut self, mark: &[u8]) -> io::Result<bool> {
        loop {
            let rest = &self.buffer[self.at..];
            if rest.len() >= mark.len() || !mark.starts_with(rest) {
                return Ok(rest.starts_with(mark));
            }
            if !self.fill()? {
                return Ok(false);
            }
        }
    }

    /// Where a mark stands next, from a place on.
    fn find(&mut self, from: usize, mark: &[u8]) -> io::Result<Option<usize>> {
        let mut from = from;
        loop {
            let found = match mark {
                [byte] => memchr(*byte, &self.buffer[from..]),
                _ => memmem::find(&self.buffer[from..], mark),
            };
            if let Some(found) = found {
                return Ok(Some(from + found));
            }
            from = from.max((self.buffer.len() + 1).saturating_sub(mark.len()));
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Where the tag ends that begins here.
    fn tag_end(&mut self) -> Result<usize, Ended> {
        let mut from = self.at + 1;
        loop {
            let rest = &self.buffer[from..];
            let Some(at) = rest
                .iter()
                .position(|byte| matches!(byte, b'>' | b'<' | b'"' | b'\''))
            else {
                from = self.buffer.len();
                if !self.fill()? {
                    let end = self.position.after(&self.buffer[self.at..]);
                    let mend = "it may have been cut; fetch or write it anew";
                    let fault = Fault::new(end.place(0), "the file ends within a tag", mend);
                    return Err(Ended::Fault(fault.ending_reading()));
                }
                continue;
            };
            let at = from + at;
            match self.buffer[at] {
                b'>' => return Ok(at),
                b'<' => {
                    let mend = "put `>` at the end of the tag before it, or write `&lt;` for the character";
                    return Err(self.fault_at(at, "`<` stands within a tag", mend));
                }
                quote => from = self.value_end(at, quote)? + 1,
            }
        }
    }

    /// Where the value ends that a quote opens.
    fn value_end(&mut self, opened_at: usize, quote: u8) -> Result<usize, Ended> {
        let mut from = opened_at + 1;
        loop {
            let Some(at) = memchr3(quote, b'<', b'<', &self.buffer[from..]) else {
                from = self.buffer.len();
                if !self.fill()? {
                    let mend = "put the same quote at its end";
                    let message = "the value that begins here is never closed";
                    return Err(self.fault_at(opened_at, message, mend));
                }
                continue;
            };
            let at = from + at;
            if self.buffer[at] == b'<' {
                let mend = "write `&lt;` for it, in an IRI %3C; or close the value before it";
                return Err(self.fault_at(at, "`<` stands in the value of an attribute", mend));
            }
            return Ok(at);
        }
    }

    /// Where the declaration of the document's type ends.
    fn doctype_end(&mut self) -> Result<usize, Ended> {
        let mut at = self.at + 1;
        let mut is_inside = false;
        loop {
            while at >= self.buffer.len() {
                if !self.fill()? {
                    let message = "the file ends within what begins here";
                    return Err(self.fault(9, message, "close it by `>`".to_owned()));
                }
            }
            match self.buffer[at] {
                b'[' => is_inside = true,
                b']' => is_inside = false,
                b'>' if !is_inside => return Ok(at),
                quote @ (b'"' | b'\'') => {
                    let Some(end) = self.find(at + 1, &[quote])? else {
                        let mend = "put the same quote at its end";
                        return Err(self.fault_at(
                            at,
                            "the value that begins here is never closed",
                            mend,
                        ));
                    };
                    at = end;
                }
                b'<' if is_inside => {
                    // Up to four bytes tell a comment, in which quotes stand as they like.
                    while self.buffer.len() < at + 4 && self.fill()? {}
                    if self.buffer[at..].starts_with(b"<!--") {
                        let Some(end) = self.find(at + 4, b"-->")? else {
                            let mend = "close it by `-->`";
                            return Err(self.fault_at(
                                at,
                                "the comment that begins here is never closed",
                                mend,
                            ));
                        };
                        at = end + 2;
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }
}
