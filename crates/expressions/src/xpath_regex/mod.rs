//! `REGEX` and `REPLACE` (XPath Functions 3.1, fn:matches and fn:replace) on the `regex` crate.
//!
//! ```text
//!   pattern, flags --translate--> the regex crate's syntax --compile, bounded--> cache of the query
//! ```
//!
//! Matching takes time linear in the text whatever the pattern is. A wrong pattern or flag is an
//! error of the expression, as SPARQL has it. A pattern that may be right but cannot be run here
//! (one with back-references, or whose compiled form is too large) ends the query, for to go on
//! would give a wrong answer.
//!
//! What `REPLACE` makes of a text has a greatest length, for each match may become something long,
//! and it has a time: to find each of many matches may take as long as the text (`.*[^A-Z]|[A-Z]`
//! reads all of `AAA..` for each letter).
//!
//! Each pattern is compiled once per query: a [`RegexCache`] keeps the last ones, wrong ones too.

pub(crate) mod beginnings;
mod blocks;
pub(crate) mod fault;
pub(crate) mod grams;
mod required;
#[cfg(test)]
mod tests;
mod translate;

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ::regex::{Regex, RegexBuilder, bytes};
use hashbrown::HashMap;
use parking_lot::Mutex;

use self::required::{RequiredText, required};
use self::translate::{Flags, LastLine, Refusal};
use crate::error::{Error, Result};
use crate::limits::Counted;

/// A compiled pattern may take this many bytes.
const COMPILED_BYTES_MAX: usize = 1_000_000;
/// A pattern may have this many bytes.
const PATTERN_BYTES_MAX: usize = 100_000;
/// So many compiled patterns are kept; the cache is emptied when there are more.
const CACHED_PATTERNS_MAX: usize = 32;

/// The result of a `REPLACE` may have this many bytes, or twice those of its text if that is more.
const RESULT_BYTES_MAX: usize = 64 << 20;
/// The replacements of one text may take so long.
const REPLACE_TIME_MAX: Duration = Duration::from_secs(5);
/// Matches from one look at the clock to the next.
const MATCHES_PER_CLOCK: u32 = 16;
/// A byte that is no character, for [`LastLine::Ended`].
const NO_CHARACTER: u8 = 0xff;

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// With the flag `m`: for texts that end with a newline.
    of_ended_lines: Option<Box<bytes::Regex>>,
    ignores_case: bool,
    required: OnceLock<Option<RequiredText>>,
}

impl Pattern {
    /// Whether it matches somewhere in the text.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        match self.ended_lines(text) {
            Some((regex, text)) => regex.is_match(&text),
            None => self.regex.is_match(text),
        }
    }

    /// A text that is in all texts which it matches, if the pattern says so.
    pub(crate) fn required(&self) -> Option<&RequiredText> {
        let find = || required(self.regex.as_str(), self.ignores_case);
        self.required.get_or_init(find).as_ref()
    }

    /// What to match instead where the text needs it: with a byte behind it.
    fn ended_lines(&self, text: &str) -> Option<(&bytes::Regex, Vec<u8>)> {
        let regex = self.of_ended_lines.as_deref();
        let regex = regex.filter(|_| text.ends_with('\n'))?;
        Some((regex, [text.as_bytes(), &[NO_CHARACTER]].concat()))
    }

    /// What is to stand in the place of a match: this text, or what it means by `$` and `\\`; none
    /// if it is wrong.
    pub(crate) fn replacement(
        &self,
        text: &str,
        is_literal: bool,
    ) -> Option<Vec<ReplacementPiece>> {
        match is_literal {
            true => Some(vec![ReplacementPiece::Text(text.to_owned())]),
            false => pieces(text, self.regex.captures_len().saturating_sub(1)),
        }
    }

    /// The text with each match replaced. What is long is counted while it is made.
    pub(crate) fn replace(
        &self,
        text: &str,
        replacement: &[ReplacementPiece],
        counted: Counted<'_>,
    ) -> Result<String> {
        self.replace_within(text, replacement, counted, REPLACE_TIME_MAX)
    }

    fn replace_within(
        &self,
        text: &str,
        replacement: &[ReplacementPiece],
        counted: Counted<'_>,
        time_max: Duration,
    ) -> Result<String> {
        let mut replaced = Replaced {
            text,
            replacement,
            out: String::with_capacity(text.len()),
            copied: 0,
            bytes_max: RESULT_BYTES_MAX.max(2 * text.len()),
            counted,
            matches: 0,
            started: Instant::now(),
            time_max,
        };
        match self.ended_lines(text) {
            Some((regex, text)) => {
                for groups in regex.captures_iter(&text) {
                    replaced.push_match(|group| Some(groups.get(group)?.range()))?;
                }
            }
            None if !replacement
                .iter()
                .any(|piece| matches!(piece, ReplacementPiece::Group(_))) =>
            {
                for found in self.regex.find_iter(text) {
                    replaced.push_match(|_| Some(found.range()))?;
                }
            }
            None => {
                for groups in self.regex.captures_iter(text) {
                    replaced.push_match(|group| Some(groups.get(group)?.range()))?;
                }
            }
        }
        replaced.finish()
    }
}

/// A piece of what stands in the place of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReplacementPiece {
    Text(String),
    /// What a group matched; 0 for all that was matched.
    Group(usize),
}

/// A text in the making.
struct Replaced<'a> {
    text: &'a str,
    replacement: &'a [ReplacementPiece],
    out: String,
    /// So much of the text was dealt with.
    copied: usize,
    bytes_max: usize,
    counted: Counted<'a>,
    matches: u32,
    started: Instant,
    time_max: Duration,
}

impl Replaced<'_> {
    fn push_match(&mut self, group: impl Fn(usize) -> Option<Range<usize>>) -> Result<()> {
        self.look_at_the_clock()?;
        let text = self.text;
        let Some(matched) = group(0) else {
            return Ok(());
        };
        self.push(text.get(self.copied..matched.start).unwrap_or_default())?;
        self.copied = matched.end;
        for piece in self.replacement {
            match piece {
                ReplacementPiece::Text(text) => self.push(text)?,
                // A group that took no part is the empty text.
                ReplacementPiece::Group(number) => {
                    let part = group(*number).and_then(|range| text.get(range));
                    self.push(part.unwrap_or_default())?;
                }
            }
        }
        Ok(())
    }

    fn look_at_the_clock(&mut self) -> Result<()> {
        self.matches = self.matches.wrapping_add(1);
        if !self.matches.is_multiple_of(MATCHES_PER_CLOCK) {
            return Ok(());
        }
        self.counted.look()?;
        if self.started.elapsed() > self.time_max {
            return Err(Error::Unsupported(format!(
                "REPLACE that takes more than {:?} for a text of {} bytes",
                self.time_max,
                self.text.len()
            )));
        }
        Ok(())
    }

    fn push(&mut self, part: &str) -> Result<()> {
        if self.out.len() + part.len() > self.bytes_max {
            return Err(Error::Unsupported(format!(
                "REPLACE that makes more than {} bytes of a text of {}",
                self.bytes_max,
                self.text.len()
            )));
        }
        self.counted.add_bytes(part.len())?;
        self.out.push_str(part);
        Ok(())
    }

    fn finish(mut self) -> Result<String> {
        let rest = self.text.get(self.copied..).unwrap_or_default();
        self.push(rest)?;
        Ok(self.out)
    }
}

/// A pattern and its flags.
type PatternAndFlags = (Box<str>, Box<str>);

/// The compiled patterns of a query; `None` for wrong ones.
#[derive(Default)]
pub(crate) struct RegexCache {
    patterns: Mutex<HashMap<PatternAndFlags, Option<Arc<Pattern>>>>,
}

impl RegexCache {
    /// The compiled pattern, or `None` if it or the flags are wrong.
    pub(crate) fn get(&self, pattern: &str, flags: &str) -> Result<Option<Arc<Pattern>>> {
        let key = (Box::from(pattern), Box::from(flags));
        let mut patterns = self.patterns.lock();
        if let Some(compiled) = patterns.get(&key) {
            return Ok(compiled.clone());
        }
        if patterns.len() >= CACHED_PATTERNS_MAX {
            patterns.clear();
        }
        let compiled = match compile(pattern, flags) {
            Ok(pattern) => Some(Arc::new(pattern)),
            Err(Refusal::Wrong) => None,
            Err(Refusal::Unsupported(what)) => return Err(Error::Unsupported(what)),
        };
        patterns.insert(key, compiled.clone());
        Ok(compiled)
    }
}

fn compile(pattern: &str, flags: &str) -> Result<Pattern, Refusal> {
    let flags = Flags::parse(flags)?;
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(Refusal::Unsupported(format!(
            "a regular expression of {} bytes, more than {PATTERN_BYTES_MAX}",
            pattern.len()
        )));
    }
    let translated = translate::translate(pattern, flags, LastLine::Open)?;
    let regex = RegexBuilder::new(&translated)
        .case_insensitive(flags.ignores_case)
        .size_limit(COMPILED_BYTES_MAX)
        .build();
    let has_anchors = pattern.contains(['^', '$']);
    let of_ended_lines = match flags.multi_line && !flags.is_literal && has_anchors {
        true => {
            let translated = translate::translate(pattern, flags, LastLine::Ended)?;
            let regex = bytes::RegexBuilder::new(&translated)
                .case_insensitive(flags.ignores_case)
                .size_limit(COMPILED_BYTES_MAX)
                .build();
            Some(Box::new(regex.map_err(refusal)?))
        }
        false => None,
    };
    Ok(Pattern {
        regex: regex.map_err(refusal)?,
        of_ended_lines,
        ignores_case: flags.ignores_case,
        required: OnceLock::new(),
    })
}

fn refusal(error: ::regex::Error) -> Refusal {
    match error {
        ::regex::Error::CompiledTooBig(bytes) => Refusal::Unsupported(format!(
            "a regular expression that takes more than {bytes} bytes when compiled; \
             repeat less in it"
        )),
        _ => Refusal::Wrong,
    }
}

/// The pieces of XPath's replacement (`$1`, `\$`, `\\`). `None` if it is wrong (err:FORX0004).
/// `$12` means group 12 if there is one, else group 1 and the digit 2; a group that there is not is
/// empty.
fn pieces(replacement: &str, groups: usize) -> Option<Vec<ReplacementPiece>> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = replacement.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\\' => match rest.next() {
                Some(escaped @ ('$' | '\\')) => text.push(escaped),
                _ => return None,
            },
            '$' => {
                let mut group = rest.next()?.to_digit(10)? as usize;
                while let Some(digit) = rest.peek().and_then(|next| next.to_digit(10)) {
                    let longer = 10 * group + digit as usize;
                    if longer > groups {
                        break;
                    }
                    group = longer;
                    rest.next();
                }
                pieces.push(ReplacementPiece::Text(std::mem::take(&mut text)));
                pieces.push(ReplacementPiece::Group(group));
            }
            other => text.push(other),
        }
    }
    pieces.push(ReplacementPiece::Text(text));
    pieces.retain(|piece| !matches!(piece, ReplacementPiece::Text(text) if text.is_empty()));
    Some(pieces)
}
