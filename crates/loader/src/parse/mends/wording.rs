//! Building blocks of messages about syntax errors: text around a place, and tokens, within bounds.

use std::borrow::Cow;

use orrery_term::prefixes::probably_meant;

use crate::error::LoadOption;

/// Longest token that is repeated in a message, in characters.
pub(super) const TOKEN_CHARACTERS_MAX: usize = 40;

/// Text behind a place that is looked at: no token that a message can tell of is longer, and a file
/// may have very many errors.
pub(super) const LOOKED_AT_BYTES: usize = 4 << 10;

/// What is said of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) message: String,
    pub(crate) mend: Option<String>,
    /// Bytes from the place that the parser told to the one that is meant.
    pub(crate) shift: usize,
    /// What whoever loads the text may say to set it right.
    pub(crate) option: Option<LoadOption>,
}

impl Said {
    pub(crate) fn new(message: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            mend: Some(mend.into()),
            shift: 0,
            option: None,
        }
    }

    pub(crate) fn plain(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            mend: None,
            shift: 0,
            option: None,
        }
    }

    pub(super) fn at(self, shift: usize) -> Self {
        Self { shift, ..self }
    }

    pub(super) fn with(self, option: LoadOption) -> Self {
        Self {
            option: Some(option),
            ..self
        }
    }
}

/// Where an error stands: the text of its line before the place, and from the place on, as far as
/// it is known (maybe several lines).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings<'t> {
    pub(crate) before: &'t str,
    pub(crate) from: &'t str,
}

impl<'t> Surroundings<'t> {
    /// Of a place in a text; what is no UTF-8 ends it, and so does what is too far away.
    pub(crate) fn of(text: &'t [u8], start: usize) -> Self {
        let start = start.min(text.len());
        let line_start = text[..start]
            .iter()
            .rposition(|byte| matches!(byte, b'\n' | b'\r'))
            .map_or(0, |at| at + 1);
        let end = text.len().min(start + LOOKED_AT_BYTES);
        let line_start = line_start.max(start.saturating_sub(LOOKED_AT_BYTES));
        Self {
            before: valid_end(&text[line_start..start]),
            from: valid_beginning(&text[start..end]),
        }
    }

    /// The token at the place.
    pub(super) fn token(&self) -> &'t str {
        let from = self.from;
        let end = match from.chars().next() {
            Some('<') => from.find('>').map(|at| at + 1),
            Some(quote @ ('"' | '\'')) => from[1..].find(quote).map(|at| at + 2),
            _ => None,
        };
        let is_end = |character: char| character.is_whitespace() || ";,[](){}".contains(character);
        let end = end.unwrap_or_else(|| from.find(is_end).unwrap_or(from.len()));
        let token = &from[..end];
        let token = match token.len() > 1 {
            true => token.strip_suffix('.').unwrap_or(token),
            false => token,
        };
        let end = token.char_indices().nth(TOKEN_CHARACTERS_MAX);
        end.map_or(token, |(at, _)| &token[..at])
    }

    /// A language tag right before the place: its text.
    pub(super) fn tag_before(&self) -> Option<&'t str> {
        let (_, tag) = self.before.rsplit_once('@')?;
        let is_tag = !tag.is_empty() && tag.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        is_tag.then_some(tag)
    }
}

pub(super) fn valid_end(bytes: &[u8]) -> &str {
    let is_first_of_character = |byte: &u8| !(0x80..0xC0).contains(byte);
    let start = bytes.iter().position(is_first_of_character).unwrap_or(0);
    std::str::from_utf8(&bytes[start..]).unwrap_or_default()
}

pub(super) fn valid_beginning(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

pub(crate) fn undeclared(name: &str, declaration: impl Fn(&str, &str) -> String) -> Said {
    let shown_name = cut(name, TOKEN_CHARACTERS_MAX);
    let message = format!("the prefix {shown_name}: is not declared");
    match probably_meant(name) {
        Some(iri) => Said::new(message, declaration(name, iri)),
        None => Said::new(message, declaration(&shown_name, "...")),
    }
}

pub(crate) fn quoted(token: &str) -> String {
    format!("`{}`", cut(token, TOKEN_CHARACTERS_MAX))
}

pub(super) fn cut(text: &str, characters_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters_max) {
        Some((at, _)) => format!("{}…", &text[..at]).into(),
        None => text.into(),
    }
}

pub(super) fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    text.strip_prefix(start)?.strip_suffix(end)
}
