//! `REGEX` and `REPLACE` (XPath Functions 3.1, fn:matches and fn:replace) on the `regex` crate.
//!
//! ```text
//!   pattern, flags --translate--> the regex crate's syntax --compile, bounded--> cache of the query
//! ```
//!
//! Matching takes time linear in the text whatever the pattern is. A wrong pattern or flag is an error
//! of the expression, as SPARQL has it. A pattern that may be right but cannot be run here (one with
//! back-references, or whose compiled form is too large) ends the query, for to go on would give a
//! wrong answer.
//!
//! Each pattern is compiled once per query: a [`RegexCache`] keeps the last ones, wrong ones too.

pub(crate) mod beginnings;
mod blocks;
#[cfg(test)]
mod tests;
mod translate;

use std::sync::Arc;

use ::regex::{Regex, RegexBuilder};
use hashbrown::HashMap;
use parking_lot::Mutex;

use self::translate::{Flags, Refusal};
use crate::context::QueryContext;
use crate::error::{Error, Result};
use crate::expression::value::Value;

/// A compiled pattern may take this many bytes.
const COMPILED_BYTES_MAX: usize = 1_000_000;
/// A pattern may have this many bytes.
const PATTERN_BYTES_MAX: usize = 100_000;
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
    pub(crate) fn get(&self, pattern: &str, flags: &str) -> Result<Option<Arc<Regex>>> {
        let key = (Box::from(pattern), Box::from(flags));
        let mut patterns = self.patterns.lock();
        if let Some(compiled) = patterns.get(&key) {
            return Ok(compiled.clone());
        }
        if patterns.len() >= CACHED_PATTERNS_MAX {
            patterns.clear();
        }
        let compiled = match compile(pattern, flags) {
            Ok(regex) => Some(Arc::new(regex)),
            Err(Refusal::Wrong) => None,
            Err(Refusal::Unsupported(what)) => return Err(Error::Unsupported(what)),
        };
        patterns.insert(key, compiled.clone());
        Ok(compiled)
    }
}

fn compile(pattern: &str, flags: &str) -> Result<Regex, Refusal> {
    let flags = Flags::parse(flags)?;
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(Refusal::Unsupported(format!(
            "a regular expression of {} bytes, more than {PATTERN_BYTES_MAX}",
            pattern.len()
        )));
    }
    let translated = translate::translate(pattern, flags)?;
    let regex = RegexBuilder::new(&translated)
        .case_insensitive(flags.ignores_case)
        .size_limit(COMPILED_BYTES_MAX)
        .build();
    regex.map_err(|error| match error {
        ::regex::Error::CompiledTooBig(bytes) => Refusal::Unsupported(format!(
            "a regular expression that takes more than {bytes} bytes when compiled; \
             repeat less in it"
        )),
        _ => Refusal::Wrong,
    })
}

/// The pattern of arguments that hold it at `at`, with the flags after `flags_at`.
fn pattern(
    arguments: &[&Value],
    at: usize,
    flags_at: usize,
    context: &QueryContext,
) -> Result<Option<Arc<Regex>>> {
    let flags = match arguments.get(flags_at) {
        Some(flags) => flags.as_plain_text(),
        None => Some(""),
    };
    let pattern = arguments
        .get(at)
        .and_then(|pattern| pattern.as_plain_text());
    match (pattern, flags) {
        (Some(pattern), Some(flags)) => context.regexes().get(pattern, flags),
        _ => Ok(None),
    }
}

pub(super) fn regex(arguments: &[&Value], context: &QueryContext, _: u64) -> Result<Option<Value>> {
    Ok(pattern(arguments, 1, 2, context)?.and_then(|regex| matches(&regex, arguments.first()?)))
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
    // err:FORX0003: what matches nothing at all matches everywhere.
    let pattern = pattern(arguments, 1, 3, context)?.filter(|regex| !regex.is_match(""));
    Ok(pattern.and_then(|regex| {
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
