//! Term keys: the byte string under which a term stands in the dictionary.
//!
//! ```text
//! IRI                 'I' iri
//! language-tagged     'L' tag 0x00 lexical
//! xsd:string          'S' lexical
//! any other datatype  'T' datatype 0x00 lexical
//! ```
//!
//! Keys are compared as bytes. The type comes before the lexical form, so all
//! literals of one type stand together in the dictionary, sorted by code point:
//! a range of ranks is a range of strings, and the shared beginning costs nothing
//! once it is front-coded. A tag or an IRI never holds a zero byte, so a key is
//! read back in one way only. Blank nodes have no key: their number is in the id.

use std::borrow::Cow;

use crate::term::{Literal, LiteralKind, Term};

const IRI: u8 = b'I';
const LANGUAGE: u8 = b'L';
const STRING: u8 = b'S';
const TYPED: u8 = b'T';

/// The first byte that no IRI's key begins with: keys below are IRIs, the others literals.
pub const FIRST_LITERAL_KEY: &[u8] = &[LANGUAGE];

/// Why bytes are not a term key. Only damage or a wrong offset leads here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The first byte names no kind of term.
    #[error("a term key starts with byte {0:#04x}, which names no kind of term")]
    UnknownKind(u8),
    /// No bytes at all.
    #[error("a term key is empty")]
    Empty,
    /// The text is not UTF-8, or the zero byte after the type is missing.
    #[error("a term key is malformed: {0}")]
    Malformed(&'static str),
}

/// Appends the key of an IRI.
#[inline]
pub fn iri_key(iri: &str, out: &mut Vec<u8>) {
    out.push(IRI);
    out.extend_from_slice(iri.as_bytes());
}

/// Appends the key of an `xsd:string`.
#[inline]
pub fn string_key(lexical: &str, out: &mut Vec<u8>) {
    out.push(STRING);
    out.extend_from_slice(lexical.as_bytes());
}

/// Appends the key of a literal with a language tag, which must be in lower case.
#[inline]
pub fn language_key(lexical: &str, tag: &str, out: &mut Vec<u8>) {
    out.push(LANGUAGE);
    out.extend_from_slice(tag.as_bytes());
    out.push(0);
    out.extend_from_slice(lexical.as_bytes());
}

/// Appends the key of a literal of any datatype but `xsd:string`.
#[inline]
pub fn typed_key(lexical: &str, datatype: &str, out: &mut Vec<u8>) {
    out.push(TYPED);
    out.extend_from_slice(datatype.as_bytes());
    out.push(0);
    out.extend_from_slice(lexical.as_bytes());
}

/// Appends the key of a term. A blank node has none and appends nothing.
pub fn write_key(term: &Term<'_>, out: &mut Vec<u8>) {
    match term {
        Term::BlankNode(_) => {}
        Term::Iri(iri) => iri_key(iri, out),
        Term::Literal(Literal { lexical, kind }) => match kind {
            LiteralKind::String => string_key(lexical, out),
            LiteralKind::Language(tag) => language_key(lexical, tag, out),
            LiteralKind::Typed(datatype) => typed_key(lexical, datatype, out),
        },
    }
}

/// Reads a key back; the term borrows from it.
pub fn parse_key(key: &[u8]) -> Result<Term<'_>, KeyError> {
    let (&kind, rest) = key.split_first().ok_or(KeyError::Empty)?;
    let text = std::str::from_utf8(rest).map_err(|_| KeyError::Malformed("not UTF-8"))?;
    Ok(match kind {
        IRI => Term::Iri(Cow::Borrowed(text)),
        STRING => literal(text, LiteralKind::String),
        LANGUAGE | TYPED => {
            let (kind_text, lexical) = text
                .split_once('\0')
                .ok_or(KeyError::Malformed("no zero byte after the type"))?;
            let kind = if kind == LANGUAGE {
                LiteralKind::Language(Cow::Borrowed(kind_text))
            } else {
                LiteralKind::Typed(Cow::Borrowed(kind_text))
            };
            literal(lexical, kind)
        }
        other => return Err(KeyError::UnknownKind(other)),
    })
}

fn literal<'a>(lexical: &'a str, kind: LiteralKind<'a>) -> Term<'a> {
    Term::Literal(Literal {
        lexical: Cow::Borrowed(lexical),
        kind,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn term() -> impl Strategy<Value = Term<'static>> {
        prop_oneof![
            "[a-z]{1,6}:[^\0<>\"{}|^`\\\\ ]{0,40}".prop_map(Term::iri),
            ".{0,40}".prop_map(Term::string),
            (".{0,40}", "[a-z]{1,8}(-[a-z0-9]{1,8}){0,2}")
                .prop_map(|(lexical, tag)| Term::language(lexical, tag)),
            (".{0,40}", "[a-z]{1,6}:[a-zA-Z0-9/#]{0,20}")
                .prop_map(|(lexical, datatype)| Term::typed(lexical, datatype)),
        ]
    }

    proptest! {
        #[test]
        fn a_key_reads_back_as_its_term(term in term()) {
            let mut key = Vec::new();
            write_key(&term, &mut key);
            prop_assert_eq!(parse_key(&key), Ok(term));
        }

        #[test]
        fn different_terms_have_different_keys(a in term(), b in term()) {
            let (mut key_a, mut key_b) = (Vec::new(), Vec::new());
            write_key(&a, &mut key_a);
            write_key(&b, &mut key_b);
            prop_assert_eq!(a == b, key_a == key_b);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(term) = parse_key(&bytes) {
                let mut key = Vec::new();
                write_key(&term, &mut key);
                // A stored xsd:string under 'T' reads back, but is never written.
                prop_assert!(key == bytes || bytes[0] == TYPED);
            }
        }
    }

    #[test]
    fn iris_sort_before_literals() {
        let mut iri = Vec::new();
        iri_key("zzz:zzz", &mut iri);
        assert!(iri.as_slice() < FIRST_LITERAL_KEY);
        let mut language = Vec::new();
        language_key("", "aa", &mut language);
        assert!(language.as_slice() >= FIRST_LITERAL_KEY);
    }
}
