//! Warnings about wrong constant arguments of `REGEX` and `REPLACE`.
//!
//! Nothing is compiled here: patterns are translated and parsed, which takes a small part of the
//! time.

use regex_syntax::Parser;

use super::pieces;
use super::translate::{Flags, LastLine, Refusal, translate};

/// Longer patterns are not looked at.
const PATTERN_BYTES_MAX: usize = 4_096;

/// An error of a pattern, its flags, or a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegexFault {
    /// A flag that there is not.
    Flag(char),
    /// The pattern is no regular expression.
    Pattern,
    /// The replacement is none.
    Replacement,
}

/// The error of a pattern and its flags, if it is found quickly.
pub fn pattern_fault(pattern: &str, flags: &str) -> Option<RegexFault> {
    let is_known = |flag: &char| Flags::parse(flag.encode_utf8(&mut [0; 4])).is_ok();
    if let Some(unknown) = flags.chars().find(|flag| !is_known(flag)) {
        return Some(RegexFault::Flag(unknown));
    }
    if pattern.len() > PATTERN_BYTES_MAX {
        return None;
    }
    let translated =
        Flags::parse(flags).and_then(|flags| translate(pattern, flags, LastLine::Open));
    match translated {
        Ok(translated) => {
            let is_wrong = Parser::new().parse(&translated).is_err();
            is_wrong.then_some(RegexFault::Pattern)
        }
        Err(Refusal::Wrong) => Some(RegexFault::Pattern),
        // The query ends with what is wrong.
        Err(Refusal::Unsupported(_)) => None,
    }
}

/// The error of a replacement.
pub fn replacement_fault(replacement: &str, flags: &str) -> Option<RegexFault> {
    let is_text = flags.contains('q');
    let is_wrong = !is_text && pieces(replacement, 0).is_none();
    is_wrong.then_some(RegexFault::Replacement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xpath_regex::RegexCache;

    #[test]
    fn faults_are_those_that_evaluation_has() {
        for (pattern, flags, fault) in [
            ("a.*b", "", None),
            ("(", "", Some(RegexFault::Pattern)),
            ("(", "q", None),
            ("[a-", "", Some(RegexFault::Pattern)),
            ("*", "", Some(RegexFault::Pattern)),
            ("a{2,1}", "", Some(RegexFault::Pattern)),
            ("\\p{IsGreek}", "i", None),
            ("a", "ig", Some(RegexFault::Flag('g'))),
            ("a", "I", Some(RegexFault::Flag('I'))),
            ("^a$", "smix", None),
        ] {
            assert_eq!(pattern_fault(pattern, flags), fault, "{pattern} {flags}");
            let compiled = RegexCache::default().get(pattern, flags);
            assert_eq!(compiled.unwrap().is_none(), fault.is_some(), "{pattern}");
        }
        assert_eq!(replacement_fault("$1 \\$", ""), None);
        assert_eq!(replacement_fault("$x", ""), Some(RegexFault::Replacement));
        assert_eq!(replacement_fault("$x", "q"), None);
    }
}
