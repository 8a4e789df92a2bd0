//! The parser of one tag: name, attributes, and texts with resolved references.

use super::fault::{Fault, Position};
use crate::parse::mends::quoted;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Beyond so many attributes, a name is looked up and not compared with all before it.
const NAMES_COMPARED_MAX: usize = 16;

/// An attribute, by its places in the text of its tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) name: Range<usize>,
    pub(super) value: Range<usize>,
}

/// The end of the tag's name, and its attributes.
pub(super) fn parts(begin: Position, tag: &str, found: &mut Vec<Written>) -> Result<usize, Fault> {
    found.clear();
    let is_blank = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let bytes = tag.as_bytes();
    let name_end = bytes
        .iter()
        .position(|&byte| is_blank(byte))
        .unwrap_or(bytes.len());
    if !is_name(&tag[..name_end]) {
        let place = begin.part(tag, 0..name_end);
        let message = format!("{} is no name of an element", quoted(&tag[..name_end]));
        return Err(
            Fault::new(place, message, "write `&lt;` where the character is meant")
                .ending_reading(),
        );
    }
    let mut at = name_end;
    let mut names = HashSet::new();
    loop {
        let before = at;
        while at < bytes.len() && is_blank(bytes[at]) {
            at += 1;
        }
        if at == bytes.len() {
            return Ok(name_end);
        }
        let start = at;
        while at < bytes.len() && bytes[at] != b'=' && !is_blank(bytes[at]) {
            at += 1;
        }
        let name = start..at;
        while at < bytes.len() && is_blank(bytes[at]) {
            at += 1;
        }
        let text = &tag[name.clone()];
        if !is_name(text) || before == start {
            let place = begin.part(tag, name.clone());
            let message = format!("{} is no name of an attribute", quoted(text));
            return Err(Fault::new(
                place,
                message,
                "write `name=\"value\"`, with a blank before it",
            )
            .ending_reading());
        }
        if bytes.get(at) != Some(&b'=') {
            let place = begin.part(tag, name.clone());
            let message = format!("the attribute {} has no value", quoted(text));
            return Err(Fault::new(place, message, "write `name=\"value\"`").ending_reading());
        }
        at += 1;
        while at < bytes.len() && is_blank(bytes[at]) {
            at += 1;
        }
        let quote = bytes.get(at).copied();
        let Some(quote @ (b'"' | b'\'')) = quote else {
            let end = tag[at..].find(|c: char| c.is_ascii_whitespace());
            let place = begin.part(tag, at..end.map_or(tag.len(), |end| at + end));
            let message = "the value of an attribute stands without quotes";
            return Err(Fault::new(place, message, "write `name=\"value\"`").ending_reading());
        };
        let start = at + 1;
        let Some(length) = memchr::memchr(quote, &bytes[start..]) else {
            let place = begin.part(tag, at..tag.len());
            let message = "the value that begins here is never closed";
            return Err(
                Fault::new(place, message, "put the same quote at its end").ending_reading()
            );
        };
        at = start + length + 1;
        let is_known = match found.len() {
            few if few < NAMES_COMPARED_MAX => {
                found.iter().any(|other| tag[other.name.clone()] == *text)
            }
            many => {
                if many == NAMES_COMPARED_MAX {
                    names.extend(found.iter().map(|other| &tag[other.name.clone()]));
                }
                !names.insert(text)
            }
        };
        if is_known {
            let place = begin.part(tag, name);
            let message = format!("the attribute {} stands twice in one tag", quoted(text));
            return Err(Fault::new(place, message, "take one of them away").ending_reading());
        }
        found.push(Written {
            name,
            value: start..start + length,
        });
    }
}

/// A part of a text, with characters for references; in the value of an attribute all blanks are
/// spaces (XML 1.0, 3.3.3).
pub(super) fn unescaped<'t>(
    begin: Position,
    text: &'t str,
    part: Range<usize>,
    entities: &HashMap<String, String>,
    is_value: bool,
) -> Result<Cow<'t, str>, Fault> {
    let raw = &text[part.clone()];
    let is_special = |byte: u8| match byte {
        b'&' | b'\r' => true,
        b'\n' | b'\t' => is_value,
        _ => false,
    };
    if !raw.bytes().any(is_special) {
        return Ok(Cow::Borrowed(raw));
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.bytes().position(is_special) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if !rest.starts_with('&') {
            // XML 1.0, 2.11: a carriage return, with a line feed behind it or not, is a line feed.
            rest = rest.strip_prefix("\r\n").unwrap_or(&rest[1..]);
            out.push(if is_value { ' ' } else { '\n' });
            continue;
        }
        let start = part.end - rest.len();
        let name_end = rest[1..].find(|c: char| !(c.is_alphanumeric() || "#._-:".contains(c)));
        let name = name_end.map_or("", |end| &rest[1..1 + end]);
        if name.is_empty() || !rest[1 + name.len()..].starts_with(';') {
            let place = begin.part(text, start..start + 1);
            return Err(Fault::new(place, "`&` stands by itself", "write `&amp;`"));
        }
        let length = name.len() + 2;
        let known = match name {
            "lt" => Some("<"),
            "gt" => Some(">"),
            "amp" => Some("&"),
            "quot" => Some("\""),
            "apos" => Some("'"),
            _ => entities.get(name).map(String::as_str),
        };
        match (known, character(name)) {
            (Some(text), _) => out.push_str(text),
            (None, Some(character)) => out.push(character),
            (None, None) => {
                let place = begin.part(text, start..start + length);
                let message = format!("there is no entity {}", quoted(&rest[..length]));
                let mend = "write the character itself; XML has &lt; &gt; &amp; &quot; &apos; and those that <!DOCTYPE declares";
                return Err(Fault::new(place, message, mend));
            }
        }
        rest = &rest[length..];
    }
    out.push_str(rest);
    Ok(Cow::Owned(out))
}

/// `#38`, `#x26`.
fn character(name: &str) -> Option<char> {
    let number = name.strip_prefix('#')?;
    let code = match number.strip_prefix('x') {
        Some(hexadecimal) if !hexadecimal.starts_with('+') => u32::from_str_radix(hexadecimal, 16),
        Some(_) => return None,
        None if number.starts_with('+') => return None,
        None => number.parse(),
    };
    let code = code
        .ok()
        .filter(|code| !matches!(code, 0..=8 | 11 | 12 | 14..=31))?;
    char::from_u32(code)
}

/// Takes the entities that the type of a document declares: those with a text. Others stay unknown,
/// and are refused where they are used.
pub(super) fn entities(
    begin: Position,
    doctype: &str,
    known: &mut HashMap<String, String>,
) -> Result<(), Fault> {
    const KEYWORD: &str = "<!ENTITY";
    let mut at = 0;
    while let Some(found) = doctype[at..].find('<') {
        at += found;
        let rest = &doctype[at..];
        if rest.starts_with("<!--") {
            at += rest.find("-->").unwrap_or(rest.len() - 1);
            continue;
        }
        let Some(declaration) = rest.strip_prefix(KEYWORD) else {
            at += 1;
            continue;
        };
        at += KEYWORD.len();
        let declaration = declaration.trim_start();
        let declaration = declaration
            .strip_prefix('%')
            .unwrap_or(declaration)
            .trim_start();
        let Some((name, value)) = declaration.split_once(|c: char| c.is_ascii_whitespace()) else {
            continue;
        };
        let value = value.trim_start();
        let Some(quote @ ('"' | '\'')) = value.chars().next() else {
            continue;
        };
        let start = doctype.len() - value.len() + 1;
        let Some(length) = doctype[start..].find(quote) else {
            continue;
        };
        if doctype[start..start + length].contains('<') {
            // Markup; whoever looks through the text first (`xml_entities`) counts none of it.
            at = start;
            continue;
        }
        let text = unescaped(begin, doctype, start..start + length, known, false)?;
        // Of several declarations the first holds (XML 1.0, 4.2).
        if !known.contains_key(name) {
            known.insert(name.to_owned(), text.into_owned());
        }
        at = start + length;
    }
    Ok(())
}

fn is_name_start(c: char) -> bool {
    matches!(c,
        ':' | 'A'..='Z' | '_' | 'a'..='z' | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}'
        | '\u{F8}'..='\u{2FF}' | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}'
        | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}'
        | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}'
        | '\u{10000}'..='\u{EFFFF}')
}

fn is_name_character(c: char) -> bool {
    is_name_start(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

/// XML 1.0, 2.3.
fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(is_name_start) && characters.all(is_name_character)
}

/// A name without a colon (Namespaces in XML, 4).
pub(super) fn is_plain_name(text: &str) -> bool {
    is_name(text) && !text.contains(':')
}
