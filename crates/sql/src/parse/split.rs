//! The splitter of a text into statements, without parsing.
//!
//! For what reads a text piece by piece, such as a shell that asks for another line, or a client
//! that sends one statement at a time. It knows what a semicolon may stand in: strings (also
//! `E'...'` and `$tag$...$tag$`), quoted names, comments (also within each other). It costs one
//! look at each byte.

use std::ops::Range;

/// A text cut at its semicolons.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The statements that are whole, without their semicolons, in their order. Such as have
    /// nothing but blanks and comments are left out.
    pub statements: Vec<Range<usize>>,
    /// What follows the last semicolon.
    pub rest: Range<usize>,
    /// What the end of the text stands in.
    pub inside: Inside,
}

/// The construct that a place in a text is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Inside {
    /// Between two statements: there are blanks and comments alone since the last.
    #[default]
    Nothing,
    /// A statement.
    Statement,
    /// Brackets of a statement.
    Brackets,
    /// A string.
    String,
    /// A name in quotes.
    Name,
    /// A comment with an end.
    Comment,
}

impl Split {
    /// Whether there are blanks and comments alone.
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty() && self.inside == Inside::Nothing
    }
}

/// Cuts a text at the semicolons that end statements.
pub fn split(text: &str) -> Split {
    let bytes = text.as_bytes();
    let mut found = Split::default();
    let (mut start, mut at, mut brackets, mut has_words) = (0, 0, 0_usize, false);
    let mut unfinished = None;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (length, inside) = match rest[0] {
            b';' => {
                if has_words {
                    found.statements.push(start..at);
                }
                (start, brackets, has_words) = (at + 1, 0, false);
                at += 1;
                continue;
            }
            b'-' if rest.starts_with(b"--") => {
                at += line(rest);
                continue;
            }
            b'/' if rest.starts_with(b"/*") => {
                let (length, is_whole) = comment(rest);
                at += length;
                unfinished = (!is_whole).then_some(Inside::Comment);
                continue;
            }
            b'\'' => (quoted(rest, b'\'', has_escapes(bytes, at)), Inside::String),
            b'"' => (quoted(rest, b'"', false), Inside::Name),
            b'$' if !is_in_word(bytes, at) => match dollar_tag(rest) {
                Some(tag) => (dollar_quoted(rest, tag), Inside::String),
                None => (Some(1), Inside::Nothing),
            },
            byte => {
                has_words |= !byte.is_ascii_whitespace();
                match byte {
                    b'(' | b'[' => brackets += 1,
                    b')' | b']' => brackets = brackets.saturating_sub(1),
                    _ => {}
                }
                at += 1;
                continue;
            }
        };
        has_words = true;
        match length {
            Some(length) => at += length,
            None => {
                unfinished = Some(inside);
                at = bytes.len();
            }
        }
    }
    found.rest = start..bytes.len();
    found.inside = match (unfinished, has_words) {
        (Some(inside), _) => inside,
        (None, true) if brackets > 0 => Inside::Brackets,
        (None, true) => Inside::Statement,
        (None, false) => Inside::Nothing,
    };
    found
}

/// What begins at a place and is passed over: a comment, a string or a name in quotes.
pub(super) struct Skipped {
    /// Its bytes; without an end, all of the text.
    pub(super) length: usize,
    pub(super) is_comment: bool,
    /// A comment to the end of the line is not.
    pub(super) has_end: bool,
}

/// What begins at this byte of a text and is passed over.
pub(super) fn skipped(text: &[u8], at: usize) -> Option<Skipped> {
    let rest = &text[at..];
    let of_comment = |(length, has_end)| Skipped {
        length,
        is_comment: true,
        has_end,
    };
    let length = match rest[0] {
        b'-' if rest.starts_with(b"--") => return Some(of_comment((line(rest), false))),
        b'/' if rest.starts_with(b"/*") => return Some(of_comment(comment(rest))),
        b'\'' => quoted(rest, b'\'', has_escapes(text, at)),
        b'"' => quoted(rest, b'"', false),
        b'$' if !is_in_word(text, at) => dollar_quoted(rest, dollar_tag(rest)?),
        _ => return None,
    };
    Some(Skipped {
        length: length.unwrap_or(rest.len()),
        is_comment: false,
        has_end: length.is_some(),
    })
}

/// The bytes of a comment to the end of its line.
fn line(text: &[u8]) -> usize {
    let end = text.iter().position(|&byte| byte == b'\n');
    end.unwrap_or(text.len())
}

/// The bytes of a comment, in which there may be others, and whether it ends.
fn comment(text: &[u8]) -> (usize, bool) {
    let (mut at, mut depth) = (2, 1);
    while at < text.len() {
        match &text[at..] {
            rest if rest.starts_with(b"/*") => (at, depth) = (at + 2, depth + 1),
            rest if rest.starts_with(b"*/") => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return (at, true);
        }
    }
    (text.len(), false)
}

/// The bytes of a string or a name from its first quote to its last, if there is one. A quote that
/// stands twice is within.
fn quoted(text: &[u8], quote: u8, has_escapes: bool) -> Option<usize> {
    let mut at = 1;
    while at < text.len() {
        at += match text[at] {
            b'\\' if has_escapes => 2,
            byte if byte == quote && text.get(at + 1) == Some(&quote) => 2,
            byte if byte == quote => return Some(at + 1),
            _ => 1,
        };
    }
    None
}

/// Whether the string that begins here is `E'...'`.
fn has_escapes(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| text[before]);
    matches!(before, Some(b'e' | b'E')) && !is_in_word(text, at - 1)
}

/// Whether what stands here goes on with a word.
fn is_in_word(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| text[before]);
    before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii())
}

/// `$tag$` or `$$`, with its dollars; none for a parameter such as `$1`.
fn dollar_tag(text: &[u8]) -> Option<&[u8]> {
    let end = text[1..].iter().position(|&byte| byte == b'$')? + 1;
    let name = &text[1..end];
    let is_name = name
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii());
    let is_number = name.first().is_some_and(u8::is_ascii_digit);
    (is_name && !is_number).then(|| &text[..=end])
}

fn dollar_quoted(text: &[u8], tag: &[u8]) -> Option<usize> {
    let within = &text[tag.len()..];
    let end = within.windows(tag.len()).position(|it| it == tag)?;
    Some(end + 2 * tag.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(text: &str) -> (Vec<&str>, &str, Inside) {
        let found = split(text);
        let statements = found.statements.into_iter().map(|it| text[it].trim());
        (statements.collect(), text[found.rest].trim(), found.inside)
    }

    #[test]
    fn semicolons_within_strings_names_and_comments_end_nothing() {
        for whole in [
            "select ';', 'it''s;', \";\" from t",
            "select E'\\';', e'a\\\\', U&';'",
            "select $$;$$, $a$ $$ ; $b$ ; $a$, $1, a$b$c",
            "select 1 -- one; two\n + 2",
            "select /* ; /* ; */ ; */ 1",
            "select (1)",
        ] {
            let text = format!("{whole}; {whole}");
            let (statements, rest, inside) = pieces(&text);
            assert_eq!((statements, rest), (vec![whole], whole), "{whole}");
            assert_eq!(inside, Inside::Statement);
        }
    }

    #[test]
    fn the_end_says_what_is_open() {
        for (text, inside) in [
            ("", Inside::Nothing),
            ("select 1; -- and; so on", Inside::Nothing),
            (";; ;", Inside::Nothing),
            ("select (1,", Inside::Brackets),
            ("select 'a;", Inside::String),
            ("select \"a;", Inside::Name),
            ("select $x$ ; $y$", Inside::String),
            ("select 1; /* a; /* b */", Inside::Comment),
            ("select 1", Inside::Statement),
        ] {
            assert_eq!(split(text).inside, inside, "{text}");
        }
        let (statements, ..) = pieces("select 1;; /* nothing */ ; select 2;");
        assert_eq!(statements, ["select 1", "select 2"]);
    }

    proptest! {
        #[test]
        fn any_text_is_cut_without_a_panic(text in "[-;'\"$/*ae \n\\\\é()]{0,40}") {
            let found = split(&text);
            for range in found.statements.into_iter().chain([found.rest]) {
                prop_assert!(text.get(range).is_some());
            }
        }
    }
}
