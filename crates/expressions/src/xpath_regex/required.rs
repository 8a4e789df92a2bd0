//! A substring that every match of a regular expression contains.
//!
//! The pattern, parsed, is a row of parts. Literals and letters in either case that follow each
//! other are a piece of text; repetitions, alternatives and larger classes end it. The longest
//! piece is the required one: `^[a-m].*ing` requires `ing`. Groups are looked into, and repetitions
//! of at least one.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Shorter pieces are in most texts anyway.
const BYTES_MIN: usize = 2;
/// As much of a longer piece is told.
const BYTES_MAX: usize = 64;
/// Parts inside each other that are looked at.
const DEPTH_MAX: usize = 100;

/// Bytes that are in every text that a pattern matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequiredText {
    pub(crate) bytes: Vec<u8>,
    /// The case of ASCII's letters does not matter; they are in lower case.
    pub(crate) ignores_case: bool,
}

/// The longest text that a pattern in the regex crate's syntax requires, if it is worth looking
/// for.
pub(super) fn required(pattern: &str, ignores_case: bool) -> Option<RequiredText> {
    let parsed = ParserBuilder::new()
        .case_insensitive(ignores_case)
        .build()
        .parse(pattern)
        .ok()?;
    let mut pieces = Pieces::default();
    pieces.add(&parsed, DEPTH_MAX);
    pieces.end();
    let longest = pieces.longest;
    (longest.bytes.len() >= BYTES_MIN).then_some(longest)
}

/// The pieces of a pattern, as far as it was walked.
#[derive(Default)]
struct Pieces {
    /// The piece that goes on.
    open: RequiredText,
    longest: RequiredText,
}

impl Pieces {
    fn end(&mut self) {
        let mut ended = std::mem::take(&mut self.open);
        ended.bytes.truncate(BYTES_MAX);
        if ended.ignores_case {
            ended.bytes.make_ascii_lowercase();
        }
        if ended.bytes.len() > self.longest.bytes.len() {
            self.longest = ended;
        }
    }

    fn add(&mut self, part: &Hir, depth: usize) {
        if depth == 0 {
            self.end();
            return;
        }
        match part.kind() {
            // They stand between two bytes and take none.
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => self.open.bytes.extend_from_slice(&literal.0),
            HirKind::Class(class) => match either_case(class) {
                Some(letter) => {
                    self.open.bytes.push(letter);
                    self.open.ignores_case = true;
                }
                None => self.end(),
            },
            HirKind::Capture(capture) => self.add(&capture.sub, depth - 1),
            HirKind::Repetition(repetition) => {
                self.end();
                if repetition.min > 0 {
                    self.add(&repetition.sub, depth - 1);
                    self.end();
                }
            }
            HirKind::Concat(parts) => {
                for part in parts {
                    self.add(part, depth - 1);
                }
            }
            HirKind::Alternation(_) => self.end(),
        }
    }
}

/// The ASCII letter, in lower case, of which a class is the two cases and nothing else: not so `k`,
/// which is the Kelvin sign, too.
fn either_case(class: &Class) -> Option<u8> {
    let Class::Unicode(class) = class else {
        return None;
    };
    let [capital, small] = class.ranges() else {
        return None;
    };
    let is_one = capital.start() == capital.end() && small.start() == small.end();
    let is_letter = capital.start().is_ascii_uppercase()
        && capital.start().to_ascii_lowercase() == small.start();
    (is_one && is_letter).then_some(small.start() as u8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::RegexCache;
    use super::*;

    /// The required text of an XPath pattern; in either case it stands after a tilde.
    fn shown(pattern: &str, flags: &str) -> Option<String> {
        let pattern = RegexCache::default().get(pattern, flags).ok()??;
        let required = pattern.required()?;
        let text = String::from_utf8_lossy(&required.bytes).into_owned();
        Some(match required.ignores_case {
            true => format!("~{text}"),
            false => text,
        })
    }

    #[test]
    fn the_longest_piece_that_must_be_there() {
        for (pattern, flags, expected) in [
            ("abc", "", Some("abc")),
            ("^abc$", "", Some("abc")),
            ("^[a-m].*ing", "", Some("ing")),
            ("^[a-m].*ing", "i", Some("~ing")),
            ("ab.*cde", "", Some("cde")),
            ("a(bc)d", "", Some("abcd")),
            ("a(bc)+d", "", Some("bc")),
            ("(abc)?de", "", Some("de")),
            ("abc|abd", "", None),
            ("(abc|abd)ef", "", Some("ef")),
            ("a[bc]d", "", None),
            ("x[Aa]bc", "", Some("~xabc")),
            // The Kelvin sign is a k, the long s an s.
            ("take", "i", Some("~ta")),
            ("stone", "i", Some("~tone")),
            ("élan", "", Some("élan")),
            ("a.c", "q", Some("a.c")),
            ("a b c", "x", Some("abc")),
            (r"a\.b", "", Some("a.b")),
            ("^a$", "m", None),
            (".*", "", None),
            ("", "", None),
        ] {
            assert_eq!(
                shown(pattern, flags).as_deref(),
                expected,
                "{pattern} {flags}"
            );
        }
        let long = "ab".repeat(1_000);
        assert_eq!(shown(&long, ""), Some("ab".repeat(BYTES_MAX / 2)));
    }

    proptest! {
        #[test]
        fn what_matches_has_the_required_text(
            pattern in r"\^?(\(?[abkKé.|]\)?[*+?]?|\[[ab]-?[bc]\]|ab|\{1,2\}){1,6}",
            flags in "[im]{0,2}",
            texts in proptest::collection::vec("[abkKABcé\u{212a}\n]{0,7}", 30),
        ) {
            if let Ok(Some(regex)) = RegexCache::default().get(&pattern, &flags)
                && let Some(required) = regex.required()
            {
                for text in texts.iter().filter(|text| regex.is_match(text)) {
                    let bytes = match required.ignores_case {
                        true => text.to_ascii_lowercase().into_bytes(),
                        false => text.clone().into_bytes(),
                    };
                    let is_there = bytes.windows(required.bytes.len()).any(|part| part == required.bytes);
                    prop_assert!(is_there, "{} matches {}: {:?}", pattern, text, required);
                }
            }
        }
    }
}
