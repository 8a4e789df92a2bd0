//! Functions that make terms and take them apart (SPARQL 1.2, 17.4.2), and the random ones. Those
//! on triple terms work on ids and stand with the expressions.

use orrery_term::vocabulary::rdf;
use orrery_term::{Direction, Term};
use oxiri::Iri;

use crate::context::ExpressionContext;
use crate::error::Result;
use crate::values::value::Value;

pub(super) fn str(arguments: &[&Value]) -> Option<Value> {
    Some(Value::string(arguments.first()?.lexical()?))
}

/// The tag as it is compared, in lower case: how it is written is not the term's, and somebody else
/// may have decided it.
pub(super) fn lang(arguments: &[&Value]) -> Option<Value> {
    match arguments {
        [Value::LanguageString { language, .. }] => Some(Value::String(language.clone())),
        [] | [Value::Iri(_) | Value::BlankNode(_) | Value::Triple(_), ..] => None,
        _ => Some(Value::string("")),
    }
}

pub(super) fn lang_dir(arguments: &[&Value]) -> Option<Value> {
    Some(match arguments.first()? {
        Value::Iri(_) | Value::BlankNode(_) | Value::Triple(_) => return None,
        Value::LanguageString { direction, .. } => {
            Value::string(direction.map_or("", Direction::as_str))
        }
        _ => Value::string(""),
    })
}

pub(super) fn has_lang(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Boolean(matches!(
        arguments.first()?,
        Value::LanguageString { .. }
    )))
}

pub(super) fn has_lang_dir(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Boolean(matches!(
        arguments.first()?,
        Value::LanguageString {
            direction: Some(_),
            ..
        }
    )))
}

pub(super) fn datatype(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Iri(arguments.first()?.datatype()?.into()))
}

pub(super) fn is_iri(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Boolean(matches!(arguments.first()?, Value::Iri(_))))
}

pub(super) fn is_blank(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Boolean(matches!(
        arguments.first()?,
        Value::BlankNode(_)
    )))
}

pub(super) fn is_literal(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Boolean(arguments.first()?.is_literal()))
}

pub(super) fn is_triple(arguments: &[&Value]) -> Option<Value> {
    Some(Value::Boolean(matches!(
        arguments.first()?,
        Value::Triple(_)
    )))
}

/// An IRI from a string, resolved against the query's base.
pub(super) fn iri(
    arguments: &[&Value],
    context: &ExpressionContext,
    _: u64,
) -> Result<Option<Value>> {
    let resolve = |text: &str| {
        let iri = match context.base_iri() {
            Some(base) => base.resolve(text),
            None => Iri::parse(text.to_owned()),
        };
        Some(Value::Iri(iri.ok()?.into_inner().into()))
    };
    Ok(match arguments {
        [Value::Iri(iri)] => Some(Value::Iri(iri.clone())),
        [Value::String(text)] => resolve(text),
        _ => None,
    })
}

/// A blank node: a new one, or the one of this label within this solution.
pub(super) fn bnode(
    arguments: &[&Value],
    context: &ExpressionContext,
    row: u64,
) -> Result<Option<Value>> {
    Ok(match arguments {
        [] => Some(Value::BlankNode(context.fresh_blank_node())),
        [Value::String(label)] => Some(Value::BlankNode(context.labelled_blank_node(row, label)?)),
        _ => None,
    })
}

/// The literal of a text and a datatype, as it is written: whatever the datatype, and whether or
/// not the text belongs to it. A datatype that goes with a language tag goes with nothing else.
pub(super) fn strdt(arguments: &[&Value]) -> Option<Term<'static>> {
    let [Value::String(lexical), Value::Iri(datatype)] = arguments else {
        return None;
    };
    if matches!(datatype.as_ref(), rdf::LANG_STRING | rdf::DIR_LANG_STRING) {
        return None;
    }
    Some(Term::typed(lexical.to_string(), datatype.to_string()))
}

pub(super) fn strlang(
    arguments: &[&Value],
    context: &ExpressionContext,
    _: u64,
) -> Result<Option<Value>> {
    Ok(match arguments {
        [Value::String(lexical), Value::String(tag)] => tagged(lexical, tag, None, context),
        _ => None,
    })
}

pub(super) fn strlangdir(
    arguments: &[&Value],
    context: &ExpressionContext,
    _: u64,
) -> Result<Option<Value>> {
    Ok(match arguments {
        [
            Value::String(lexical),
            Value::String(tag),
            Value::String(direction),
        ] => Direction::parse(direction)
            .and_then(|direction| tagged(lexical, tag, Some(direction), context)),
        _ => None,
    })
}

/// A literal with a language tag, which the query then writes as it is given here first.
fn tagged(
    lexical: &str,
    tag: &str,
    direction: Option<Direction>,
    context: &ExpressionContext,
) -> Option<Value> {
    if !is_language_tag(tag) {
        return None;
    }
    let language: Box<str> = tag.to_ascii_lowercase().into();
    context.note_language_tag(&language, tag);
    Some(Value::LanguageString {
        lexical: lexical.into(),
        language,
        direction,
    })
}

/// Whether a text is a well-formed language tag (RFC 5646, 2.1).
fn is_language_tag(tag: &str) -> bool {
    spargebra::term::Literal::new_language_tagged_literal("", tag).is_ok()
}

pub(super) fn now(_: &[&Value], context: &ExpressionContext, _: u64) -> Result<Option<Value>> {
    Ok(Some(Value::DateTime(context.now())))
}

pub(super) fn rand(_: &[&Value], _: &ExpressionContext, _: u64) -> Result<Option<Value>> {
    Ok(Some(Value::Double(rand::random::<f64>().into())))
}

pub(super) fn uuid(_: &[&Value], _: &ExpressionContext, _: u64) -> Result<Option<Value>> {
    let mut iri = String::with_capacity(45);
    iri.push_str("urn:uuid:");
    write_uuid(&mut iri);
    Ok(Some(Value::Iri(iri.into())))
}

pub(super) fn struuid(_: &[&Value], _: &ExpressionContext, _: u64) -> Result<Option<Value>> {
    let mut text = String::with_capacity(36);
    write_uuid(&mut text);
    Ok(Some(Value::string(text)))
}

/// A random UUID (RFC 9562, version 4).
fn write_uuid(out: &mut String) {
    let mut bytes = rand::random::<u128>().to_le_bytes();
    bytes[6] = (bytes[6] & 0x0F) | 0x40;
    bytes[8] = (bytes[8] & 0x3F) | 0x80;
    for (at, part) in [0..4, 4..6, 6..8, 8..10, 10..16].into_iter().enumerate() {
        if at > 0 {
            out.push('-');
        }
        write_hexadecimal(&bytes[part], out);
    }
}

/// Appends bytes in lower-case hexadecimal.
pub(super) fn write_hexadecimal(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_has_its_version_and_variant() {
        let mut text = String::new();
        write_uuid(&mut text);
        assert_eq!(text.len(), 36);
        assert_eq!(text.as_bytes()[14], b'4');
        assert!(matches!(text.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
    }

    #[test]
    fn language_tags_are_well_formed() {
        for tag in ["en", "en-gb", "zh-Hant-TW", "de-1996", "x-a"] {
            assert!(is_language_tag(tag), "{tag}");
        }
        for tag in ["", "-", "a", "en-", "e n", "1a", "abcdefghi", "en_GB"] {
            assert!(!is_language_tag(tag), "{tag}");
        }
    }
}
