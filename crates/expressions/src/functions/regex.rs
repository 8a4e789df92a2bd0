//! `REGEX` and `REPLACE`.

use std::sync::Arc;

use crate::context::ExpressionContext;
use crate::error::Result;
use crate::values::value::Value;
use crate::xpath_regex::Pattern;

/// The pattern of arguments that hold it at `at`, with the flags after `flags_at`.
fn pattern(
    arguments: &[&Value],
    at: usize,
    flags_at: usize,
    context: &ExpressionContext,
) -> Result<Option<Arc<Pattern>>> {
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

pub(super) fn regex(
    arguments: &[&Value],
    context: &ExpressionContext,
    _: u64,
) -> Result<Option<Value>> {
    Ok(
        pattern(arguments, 1, 2, context)?
            .and_then(|pattern| matches(&pattern, arguments.first()?)),
    )
}

/// Whether the text of a value matches.
fn matches(pattern: &Pattern, text: &Value) -> Option<Value> {
    let (text, _) = text.as_text()?;
    Some(Value::Boolean(pattern.is_match(text)))
}

pub(super) fn replace(
    arguments: &[&Value],
    context: &ExpressionContext,
    _: u64,
) -> Result<Option<Value>> {
    let is_literal = arguments
        .get(3)
        .and_then(|flags| flags.as_plain_text())
        .is_some_and(|flags| flags.contains('q'));
    // err:FORX0003: what matches nothing at all matches everywhere.
    let pattern = pattern(arguments, 1, 3, context)?.filter(|pattern| !pattern.is_match(""));
    let [text, _, replacement, ..] = arguments else {
        return Ok(None);
    };
    let (Some(pattern), Some((text, language)), Some(replacement)) =
        (pattern, text.as_text(), replacement.as_plain_text())
    else {
        return Ok(None);
    };
    let Some(replacement) = pattern.replacement(replacement, is_literal) else {
        return Ok(None);
    };
    let replaced = pattern.replace(text, &replacement, context.count_all())?;
    Ok(Some(Value::text(replaced, language)))
}
