//! Functions on strings (SPARQL 1.2, 17.4.3).
//!
//! A result keeps the language tag and base direction of the string it was cut from; two arguments
//! must be compatible: the second a plain string or of the same language and direction as the first
//! (17.4.3.1.2).

use num_bigint::Sign;

use crate::values::value::{Language, Value};

/// The texts of two compatible arguments, and the language of the first.
fn compatible<'a>(arguments: &[&'a Value]) -> Option<(&'a str, &'a str, Option<Language<'a>>)> {
    let &[first, second] = arguments else {
        return None;
    };
    let (text, language) = first.as_text()?;
    let (other, other_language) = second.as_text()?;
    (other_language.is_none() || other_language == language).then_some((text, other, language))
}

/// The text and language of the first argument.
fn first<'a>(arguments: &[&'a Value]) -> Option<(&'a str, Option<Language<'a>>)> {
    arguments.first()?.as_text()
}

pub(super) fn strlen(arguments: &[&Value]) -> Option<Value> {
    let (text, _) = first(arguments)?;
    Some(Value::integer(i64::try_from(text.chars().count()).ok()?))
}

pub(super) fn substr(arguments: &[&Value]) -> Option<Value> {
    let (text, language) = first(arguments)?;
    let integer = |value: &Value| match value {
        Value::Integer(value) => Some(i64::from(*value)),
        // Beyond the ends of any text.
        Value::LargeInteger(value) if value.sign() == Sign::Minus => Some(i64::MIN),
        Value::LargeInteger(_) => Some(i64::MAX),
        _ => None,
    };
    let start = integer(arguments.get(1)?)?;
    let length = match arguments.get(2) {
        Some(length) => Some(integer(length)?),
        None => None,
    };
    Some(Value::text(substring(text, start, length), language))
}

/// The characters from the one-based `start`, at most `length`.
fn substring(text: &str, start: i64, length: Option<i64>) -> &str {
    let start = i128::from(start) - 1;
    let end = length.map(|length| start + i128::from(length));
    // A character position as a byte position, the text's ends for those beyond them.
    let byte_at = |position: i128| {
        if position <= 0 {
            return 0;
        }
        usize::try_from(position)
            .ok()
            .and_then(|position| text.char_indices().nth(position))
            .map_or(text.len(), |(byte, _)| byte)
    };
    let from = byte_at(start);
    let to = end.map_or(text.len(), byte_at);
    text.get(from..to).unwrap_or_default()
}

pub(super) fn ucase(arguments: &[&Value]) -> Option<Value> {
    let (text, language) = first(arguments)?;
    Some(Value::text(text.to_uppercase(), language))
}

pub(super) fn lcase(arguments: &[&Value]) -> Option<Value> {
    let (text, language) = first(arguments)?;
    Some(Value::text(text.to_lowercase(), language))
}

pub(super) fn contains(arguments: &[&Value]) -> Option<Value> {
    let (text, part, _) = compatible(arguments)?;
    Some(Value::Boolean(text.contains(part)))
}

pub(super) fn strstarts(arguments: &[&Value]) -> Option<Value> {
    let (text, part, _) = compatible(arguments)?;
    Some(Value::Boolean(text.starts_with(part)))
}

pub(super) fn strends(arguments: &[&Value]) -> Option<Value> {
    let (text, part, _) = compatible(arguments)?;
    Some(Value::Boolean(text.ends_with(part)))
}

pub(super) fn strbefore(arguments: &[&Value]) -> Option<Value> {
    let (text, part, language) = compatible(arguments)?;
    Some(match text.find(part) {
        Some(at) => Value::text(&text[..at], language),
        None => Value::string(""),
    })
}

pub(super) fn strafter(arguments: &[&Value]) -> Option<Value> {
    let (text, part, language) = compatible(arguments)?;
    Some(match text.find(part) {
        Some(at) => Value::text(&text[at + part.len()..], language),
        None => Value::string(""),
    })
}

/// The texts one after another; with a language tag and direction if all have the same.
pub(super) fn concat(arguments: &[&Value]) -> Option<Value> {
    let bytes = arguments.iter().map(|argument| argument.heap_bytes()).sum();
    let mut all = String::with_capacity(bytes);
    let mut common: Option<Option<Language<'_>>> = None;
    for argument in arguments {
        let (text, language) = argument.as_text()?;
        all.push_str(text);
        common = match common {
            None => Some(language),
            Some(before) if before == language => common,
            Some(_) => Some(None),
        };
    }
    Some(Value::text(all, common.flatten()))
}

/// Percent-encodes all but RFC 3986's unreserved characters.
pub(super) fn encode_for_uri(arguments: &[&Value]) -> Option<Value> {
    const HEXADECIMAL: &[u8; 16] = b"0123456789ABCDEF";
    let (text, _) = first(arguments)?;
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => {
                encoded.push('%');
                encoded.push(char::from(HEXADECIMAL[usize::from(byte >> 4)]));
                encoded.push(char::from(HEXADECIMAL[usize::from(byte & 15)]));
            }
        }
    }
    Some(Value::string(encoded))
}

/// Basic filtering of RFC 4647, 3.3.1: a range matches a tag that it is, or begins at a hyphen.
pub(super) fn lang_matches(arguments: &[&Value]) -> Option<Value> {
    let &[tag, range] = arguments else {
        return None;
    };
    let (tag, range) = (tag.as_plain_text()?, range.as_plain_text()?);
    if range == "*" {
        return Some(Value::Boolean(!tag.is_empty()));
    }
    let mut subtags = tag.split('-');
    let matches = range.split('-').all(|wanted| {
        subtags
            .next()
            .is_some_and(|subtag| subtag.eq_ignore_ascii_case(wanted))
    });
    Some(Value::Boolean(matches))
}

#[cfg(test)]
mod tests {
    use super::substring;

    #[test]
    fn substring_counts_characters_from_one() {
        for (text, start, length, expected) in [
            ("motor car", 6, None, " car"),
            ("metadata", 4, Some(3), "ada"),
            ("12345", 0, Some(3), "12"),
            ("12345", 5, Some(-3), ""),
            ("12345", -3, Some(5), "1"),
            ("", 1, Some(3), ""),
            ("aé日z", 2, Some(2), "é日"),
            ("abc", 9, None, ""),
            ("12345", 2, Some(i64::MAX), "2345"),
            ("12345", i64::MAX, Some(i64::MAX), ""),
            ("12345", i64::MIN, Some(i64::MAX), ""),
            ("abc", i64::MIN, None, "abc"),
        ] {
            assert_eq!(substring(text, start, length), expected);
        }
    }
}
