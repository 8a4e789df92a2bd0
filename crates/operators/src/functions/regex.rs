//! `REGEX` and `REPLACE` (XPath 2.0, fn:matches and fn:replace) on the `regex` crate.
//!
//! Matching takes time linear in the text whatever the pattern is; a compiled pattern is bounded in
//! size, and one beyond the bound is an error, as is a wrong one. The flags are XPath's: `s` the dot
//! matches line ends, `m` anchors match at lines, `i` without case, `x` without white space, `q` the
//! pattern is plain text. Back-references in patterns are not supported, they cannot be
//! matched in linear time.
//!
//! Each pattern is compiled once per query: a [`RegexCache`] keeps the last ones, errors too.

use std::borrow::Cow;
use std::sync::Arc;

use ::regex::{Regex, RegexBuilder};
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::context::QueryContext;
use crate::error::Result;
use crate::expression::value::Value;

/// A compiled pattern may take this many bytes.
const COMPILED_BYTES_MAX: usize = 1_000_000;
/// So many compiled patterns are kept; the cache is emptied when there are more.
const CACHED_PATTERNS_MAX: usize = 32;

/// A pattern and its flags.
type PatternAndFlags = (Box<str>, Box<str>);

/// The compiled patterns of a query; `None` for wrong ones.
#[derive(Default)]
pub(crate) struct RegexCache {
    patterns: Mutex<HashMap<PatternAndFlags, Option<Arc<Regex>>>>,
}

impl RegexCache {
    /// The compiled pattern, or `None` if it or the flags are wrong.
    pub(crate) fn get(&self, pattern: &str, flags: &str) -> Option<Arc<Regex>> {
        let key = (Box::from(pattern), Box::from(flags));
        let mut patterns = self.patterns.lock();
        if let Some(compiled) = patterns.get(&key) {
            return compiled.clone();
        }
        if patterns.len() >= CACHED_PATTERNS_MAX {
            patterns.clear();
        }
        let compiled = compile(pattern, flags).map(Arc::new);
        patterns.insert(key, compiled.clone());
        compiled
    }
}

fn compile(pattern: &str, flags: &str) -> Option<Regex> {
    let pattern = if flags.contains('q') {
        Cow::Owned(::regex::escape(pattern))
    } else {
        Cow::Borrowed(pattern)
    };
    let mut builder = RegexBuilder::new(&pattern);
    builder.size_limit(COMPILED_BYTES_MAX);
    for flag in flags.chars() {
        match flag {
            's' => builder.dot_matches_new_line(true),
            'm' => builder.multi_line(true),
            'i' => builder.case_insensitive(true),
            'x' => builder.ignore_whitespace(true),
            'q' => &mut builder,
            _ => return None,
        };
    }
    builder.build().ok()
}

/// The pattern of arguments that hold it at `at`, with the flags after `flags_at`.
fn pattern(
    arguments: &[&Value],
    at: usize,
    flags_at: usize,
    context: &QueryContext,
) -> Option<Arc<Regex>> {
    let flags = match arguments.get(flags_at) {
        Some(flags) => flags.as_plain_text()?,
        None => "",
    };
    context
        .regexes()
        .get(arguments.get(at)?.as_plain_text()?, flags)
}

pub(super) fn regex(arguments: &[&Value], context: &QueryContext, _: u64) -> Result<Option<Value>> {
    Ok(pattern(arguments, 1, 2, context).and_then(|regex| matches(&regex, arguments.first()?)))
}

/// Whether the text of a value matches.
pub(crate) fn matches(regex: &Regex, text: &Value) -> Option<Value> {
    let (text, _) = text.as_text()?;
    Some(Value::Boolean(regex.is_match(text)))
}

pub(super) fn replace(
    arguments: &[&Value],
    context: &QueryContext,
    _: u64,
) -> Result<Option<Value>> {
    let is_literal = arguments
        .get(3)
        .and_then(|flags| flags.as_plain_text())
        .is_some_and(|flags| flags.contains('q'));
    Ok(pattern(arguments, 1, 3, context).and_then(|regex| {
        let (text, language) = arguments.first()?.as_text()?;
        let replacement = arguments.get(2)?.as_plain_text()?;
        let replacement = if is_literal {
            replacement.replace('$', "$$")
        } else {
            translate_replacement(replacement, regex.captures_len().saturating_sub(1))?
        };
        Some(Value::text(
            regex.replace_all(text, replacement.as_str()),
            language,
        ))
    }))
}

/// XPath's replacement (`$1`, `\$`, `\\`) as the regex crate's (`${1}`, `$$`, `\`). `None` if it
/// is wrong (err:FORX0004). `$12` means group 12 if there is one, else group 1 and the digit 2.
fn translate_replacement(replacement: &str, groups: usize) -> Option<String> {
    let mut translated = String::with_capacity(replacement.len() + 8);
    let mut rest = replacement.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\\' => match rest.next() {
                Some('$') => translated.push_str("$$"),
                Some('\\') => translated.push('\\'),
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
                translated.push_str(&format!("${{{group}}}"));
            }
            other => translated.push(other),
        }
    }
    Some(translated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replacement_is_translated() {
        for (xpath, groups, expected) in [
            ("plain", 0, Some("plain")),
            ("$1a", 1, Some("${1}a")),
            ("$12", 1, Some("${1}2")),
            ("$12", 12, Some("${12}")),
            ("\\$1", 1, Some("$$1")),
            ("a\\\\b", 0, Some("a\\b")),
            ("$", 0, None),
            ("$x", 0, None),
            ("\\n", 0, None),
        ] {
            assert_eq!(
                translate_replacement(xpath, groups).as_deref(),
                expected,
                "{xpath}"
            );
        }
    }

    #[test]
    fn wrong_patterns_and_flags_are_errors() {
        let cache = RegexCache::default();
        assert!(cache.get("a+", "").is_some());
        assert!(cache.get("(", "").is_none());
        assert!(cache.get("(", "q").is_some());
        assert!(cache.get("a", "k").is_none());
        assert!(cache.get("(((a{100}){100}){100}){100}", "").is_none());
        for number in 0..2 * CACHED_PATTERNS_MAX {
            assert!(cache.get(&format!("a{number}"), "").is_some());
        }
        assert!(cache.patterns.lock().len() <= CACHED_PATTERNS_MAX);
    }
}
