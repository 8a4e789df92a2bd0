//! The lexer: from text to tokens.
//!
//! One pass, no allocation, no state but the place. Of several tokens that could stand at a place
//! the longest is taken (SPARQL 1.2, 19.8), so that `<` begins an IRI wherever one ends before a
//! character that it cannot hold; each `<` is looked at up to there only, which bounds the whole to
//! twice the text. Blanks and comments are skipped.

use orrery_term::names::{is_name_character, is_name_start};

use crate::chars;
use crate::token::{Token, TokenKind};
use crate::word::{self, Keyword, KnownWord};

/// A text without its byte-order mark.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Reads tokens one after the other. Copy it to look ahead.
#[derive(Clone, Copy, Debug)]
pub struct Lexer<'t> {
    text: &'t str,
    at: usize,
    /// Words before this place are known to be no prefixes: the run of name characters and dots
    /// that they stand in does not end with a colon.
    prefixes_from: usize,
}

impl<'t> Lexer<'t> {
    /// At the beginning of a text of less than 4 GiB; what is behind that is not read.
    pub fn new(text: &'t str) -> Self {
        // Some editors put a byte-order mark in front.
        Self::starting_at(text, text.len() - without_mark(text).len())
    }

    /// Where the next token, or blanks before it, begin.
    pub(crate) fn place(&self) -> u32 {
        self.at as u32
    }

    /// At a byte of the text, which must not be inside of a token.
    pub(crate) fn starting_at(text: &'t str, at: usize) -> Self {
        Self {
            text,
            at,
            prefixes_from: 0,
        }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn skip_blanks(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'#' => {
                    let rest = &bytes[self.at..];
                    self.at += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    /// The next token; `End` again and again behind the last.
    pub fn next_token(&mut self) -> Token {
        self.skip_blanks();
        let start = self.at;
        let kind = match self.byte(0) {
            None => TokenKind::End,
            Some(byte) => self.token_at(byte),
        };
        Token {
            kind,
            start: start as u32,
            end: self.at as u32,
        }
    }

    fn token_at(&mut self, byte: u8) -> TokenKind {
        match byte {
            b'?' | b'$' => self.variable(byte),
            b'<' => self.less(),
            b'"' | b'\'' => self.string(byte),
            b'0'..=b'9' => self.number(),
            b'.' if self.byte(1).is_some_and(|it| it.is_ascii_digit()) => self.number(),
            b'_' if self.byte(1) == Some(b':') => self.label(),
            b':' => self.local_name(1),
            b'@' => self.language_tag(),
            byte if chars::is_ascii_name_start(byte) || byte >= 0x80 => self.word(),
            byte => self.sign(byte),
        }
    }

    fn take(&mut self, bytes: usize, kind: TokenKind) -> TokenKind {
        self.at += bytes;
        kind
    }

    fn sign(&mut self, byte: u8) -> TokenKind {
        use TokenKind as T;
        let next = self.byte(1);
        match (byte, next) {
            (b'{', Some(b'|')) => self.take(2, T::LeftAnnotation),
            (b'{', _) => self.take(1, T::LeftBrace),
            (b'}', _) => self.take(1, T::RightBrace),
            (b'(', _) => self.take(1, T::LeftParen),
            (b')', Some(b'>')) if self.byte(2) == Some(b'>') => self.take(3, T::RightTripleTerm),
            (b')', _) => self.take(1, T::RightParen),
            (b'[', _) => self.take(1, T::LeftBracket),
            (b']', _) => self.take(1, T::RightBracket),
            (b'.', _) => self.take(1, T::Dot),
            (b';', _) => self.take(1, T::Semicolon),
            (b',', _) => self.take(1, T::Comma),
            (b'*', _) => self.take(1, T::Star),
            (b'/', _) => self.take(1, T::Slash),
            (b'+', _) => self.take(1, T::Plus),
            (b'-', _) => self.take(1, T::Minus),
            (b'|', Some(b'|')) => self.take(2, T::Or),
            (b'|', Some(b'}')) => self.take(2, T::RightAnnotation),
            (b'|', _) => self.take(1, T::Bar),
            (b'&', Some(b'&')) => self.take(2, T::And),
            (b'!', Some(b'=')) => self.take(2, T::NotEqual),
            (b'!', _) => self.take(1, T::Not),
            (b'=', _) => self.take(1, T::Equal),
            (b'>', Some(b'>')) => self.take(2, T::RightTriple),
            (b'>', Some(b'=')) => self.take(2, T::GreaterOrEqual),
            (b'>', _) => self.take(1, T::Greater),
            (b'^', Some(b'^')) => self.take(2, T::Datatype),
            (b'^', _) => self.take(1, T::Caret),
            (b'~', _) => self.take(1, T::Tilde),
            _ => self.take(1, T::Unknown),
        }
    }

    /// `<`, `<=`, `<<`, `<<(` where no IRI begins.
    pub(crate) fn less_sign(&mut self) -> TokenKind {
        match (self.byte(1), self.byte(2)) {
            (Some(b'='), _) => self.take(2, TokenKind::LessOrEqual),
            (Some(b'<'), Some(b'(')) => self.take(3, TokenKind::LeftTripleTerm),
            (Some(b'<'), _) => self.take(2, TokenKind::LeftTriple),
            _ => self.take(1, TokenKind::Less),
        }
    }

    fn less(&mut self) -> TokenKind {
        let bytes = self.text.as_bytes();
        let mut at = self.at + 1;
        loop {
            match bytes.get(at) {
                Some(&byte) if chars::is_ascii_iri(byte) || byte >= 0x80 => at += 1,
                // An escape; whether it is one is said where it is resolved.
                Some(b'\\') if matches!(bytes.get(at + 1), Some(b'u' | b'U')) => at += 2,
                Some(b'>') => {
                    self.at = at + 1;
                    return TokenKind::Iri;
                }
                _ => return self.less_sign(),
            }
        }
    }

    fn variable(&mut self, mark: u8) -> TokenKind {
        let end = self.end_of(self.at + 1, chars::is_ascii_variable);
        if end > self.at + 1 {
            self.at = end;
            return TokenKind::Variable;
        }
        match mark {
            b'?' => self.take(1, TokenKind::QuestionMark),
            _ => self.take(1, TokenKind::Unknown),
        }
    }

    /// Behind the last of the characters from `at` on that names hold.
    fn end_of(&self, mut at: usize, is_part: fn(u8) -> bool) -> usize {
        let bytes = self.text.as_bytes();
        let start = at;
        while let Some(&byte) = bytes.get(at) {
            if is_part(byte) {
                at += 1;
            } else if byte < 0x80 {
                break;
            } else {
                match self.wide(at) {
                    // What joins characters begins no name.
                    Some(it) if at == start && !is_name_start(it) => break,
                    Some(it) if is_name_character(it) => at += it.len_utf8(),
                    _ => break,
                }
            }
        }
        at
    }

    fn wide(&self, at: usize) -> Option<char> {
        self.text.get(at..)?.chars().next()
    }

    fn string(&mut self, quote: u8) -> TokenKind {
        let bytes = self.text.as_bytes();
        if self.byte(1) == Some(quote) && self.byte(2) == Some(quote) {
            return self.long_string(quote);
        }
        let mut at = self.at + 1;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            // Most strings are short, for which setting up a search would take longer.
            let Some(length) = rest
                .iter()
                .position(|&byte| byte == quote || matches!(byte, b'\\' | b'\n' | b'\r'))
            else {
                self.at = bytes.len();
                return TokenKind::UnclosedString;
            };
            at += length;
            match bytes[at] {
                b'\\' => at += 2,
                byte if byte == quote => {
                    self.at = at + 1;
                    return TokenKind::String;
                }
                _ => {
                    self.at = at;
                    return TokenKind::UnclosedString;
                }
            }
        }
    }

    fn long_string(&mut self, quote: u8) -> TokenKind {
        let bytes = self.text.as_bytes();
        let mut at = self.at + 3;
        while let Some(length) = memchr::memchr2(quote, b'\\', bytes.get(at..).unwrap_or_default())
        {
            at += length;
            if bytes[at] == b'\\' {
                at += 2;
            } else if bytes.get(at + 1) == Some(&quote) && bytes.get(at + 2) == Some(&quote) {
                self.at = at + 3;
                return TokenKind::String;
            } else {
                at += 1;
            }
        }
        self.at = bytes.len();
        TokenKind::UnclosedString
    }

    fn number(&mut self) -> TokenKind {
        let digits = |at: usize| {
            let rest = self.text.as_bytes().get(at..).unwrap_or_default();
            at + rest.iter().take_while(|it| it.is_ascii_digit()).count()
        };
        let at_byte = |at: usize| self.text.as_bytes().get(at).copied();
        let whole = digits(self.at);
        let mut end = whole;
        let mut kind = TokenKind::Integer;
        let mut mantissa = whole;
        if at_byte(whole) == Some(b'.') {
            let fraction = digits(whole + 1);
            mantissa = fraction;
            if fraction > whole + 1 {
                end = fraction;
                kind = TokenKind::Decimal;
            }
        }
        if matches!(at_byte(mantissa), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(at_byte(mantissa + 1), Some(b'+' | b'-')));
            let exponent = digits(mantissa + 1 + sign);
            if exponent > mantissa + 1 + sign {
                end = exponent;
                kind = TokenKind::Double;
            }
        }
        self.at = end;
        kind
    }

    fn label(&mut self) -> TokenKind {
        let bytes = self.text.as_bytes();
        let first = self.at + 2;
        let starts = match bytes.get(first) {
            Some(byte) if *byte < 0x80 => chars::is_ascii_variable(*byte),
            Some(_) => self.wide(first).is_some_and(is_name_start),
            None => false,
        };
        if !starts {
            return self.take(2, TokenKind::Unknown);
        }
        self.at = self.with_inner_dots(first, chars::is_ascii_name);
        TokenKind::BlankNodeLabel
    }

    /// Behind a name that may hold dots, but not end with one.
    fn with_inner_dots(&self, start: usize, is_part: fn(u8) -> bool) -> usize {
        let bytes = self.text.as_bytes();
        let mut end = self.name_part(start, is_part);
        let mut at = end;
        while bytes.get(at) == Some(&b'.') {
            at += 1;
            let next = self.name_part(at, is_part);
            if next > at {
                (at, end) = (next, next);
            }
        }
        end
    }

    fn name_part(&self, mut at: usize, is_part: fn(u8) -> bool) -> usize {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(at) {
            match byte {
                byte if is_part(byte) => at += 1,
                byte if byte < 0x80 => break,
                _ => match self.wide(at) {
                    Some(it) if is_name_character(it) => at += it.len_utf8(),
                    _ => break,
                },
            }
        }
        at
    }

    /// A keyword, another word, or a prefixed name.
    fn word(&mut self) -> TokenKind {
        let bytes = self.text.as_bytes();
        let start = self.at;
        if bytes[start] >= 0x80 && !self.wide(start).is_some_and(is_name_start) {
            let length = self.wide(start).map_or(1, char::len_utf8);
            return self.take(length, TokenKind::Unknown);
        }
        let ascii = bytes[start..]
            .iter()
            .take_while(|byte| chars::is_ascii_variable(**byte))
            .count();
        match bytes.get(start + ascii) {
            Some(b':') => return self.local_name(ascii + 1),
            Some(byte)
                if start >= self.prefixes_from
                    && (*byte >= 0x80 || matches!(byte, b'-' | b'.')) =>
            {
                let end = self.with_inner_dots(start, chars::is_ascii_name);
                if bytes.get(end) == Some(&b':') {
                    return self.local_name(end + 1 - start);
                }
                self.prefixes_from = end;
            }
            _ => {}
        }
        if ascii == 0 {
            self.at = self.name_part(start, chars::is_ascii_variable);
            return TokenKind::Word;
        }
        self.at = start + ascii;
        match word::known(&self.text[start..start + ascii]) {
            Some(KnownWord::Keyword(keyword)) => TokenKind::Keyword(keyword),
            Some(KnownWord::BuiltIn(function)) => TokenKind::BuiltIn(function),
            None => self.bound_run_together(start),
        }
    }

    /// `LIMIT10`: no token holds both (SPARQL 1.1, 19.1), so it is two. Other words run together
    /// are more likely misspelled.
    fn bound_run_together(&mut self, start: usize) -> TokenKind {
        let word = &self.text[start..self.at];
        let letters = word.trim_end_matches(|it: char| it.is_ascii_digit());
        match word::known(letters) {
            Some(KnownWord::Keyword(keyword @ (Keyword::Limit | Keyword::Offset))) => {
                self.at = start + letters.len();
                TokenKind::Keyword(keyword)
            }
            _ => TokenKind::Word,
        }
    }

    /// The local part, behind a prefix of so many bytes.
    fn local_name(&mut self, prefix: usize) -> TokenKind {
        let bytes = self.text.as_bytes();
        let start = self.at + prefix;
        let mut at = start;
        let mut end = start;
        while let Some(&byte) = bytes.get(at) {
            let length = match byte {
                b'.' if at > start => 1,
                b'-' if at == start => 0,
                b':' => 1,
                b'\\'
                    if bytes
                        .get(at + 1)
                        .is_some_and(|it| chars::is_local_escape(*it)) =>
                {
                    2
                }
                b'%' if self.is_percent(at) => 3,
                byte if chars::is_ascii_name(byte) => 1,
                byte if byte < 0x80 => 0,
                _ => match self.wide(at) {
                    Some(it) if at == start && !is_name_start(it) => 0,
                    Some(it) if is_name_character(it) => it.len_utf8(),
                    _ => 0,
                },
            };
            if length == 0 {
                break;
            }
            at += length;
            if byte != b'.' {
                end = at;
            }
        }
        self.at = end;
        TokenKind::PrefixedName
    }

    fn is_percent(&self, at: usize) -> bool {
        let digits = self.text.as_bytes().get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    }

    fn language_tag(&mut self) -> TokenKind {
        let bytes = self.text.as_bytes();
        let run = |at: usize, is_part: fn(&u8) -> bool| {
            let rest = bytes.get(at..).unwrap_or_default();
            at + rest.iter().take_while(|byte| is_part(byte)).count()
        };
        let mut end = run(self.at + 1, u8::is_ascii_alphabetic);
        if end == self.at + 1 {
            return self.take(1, TokenKind::Unknown);
        }
        while bytes.get(end) == Some(&b'-') {
            let part = run(end + 1, u8::is_ascii_alphanumeric);
            if part == end + 1 {
                break;
            }
            end = part;
        }
        if bytes.get(end..end + 2) == Some(b"--") {
            let direction = run(end + 2, u8::is_ascii_alphabetic);
            if direction > end + 2 {
                end = direction;
            }
        }
        self.at = end;
        TokenKind::LanguageTag
    }
}

#[cfg(test)]
mod tests;
