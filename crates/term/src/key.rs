//! Term keys: the byte string under which a term stands in the dictionary.
//!
//! ```text
//! IRI                 'I' iri
//! language-tagged     'L' tag 0x00 lexical
//! ... with direction  'L' tag "--ltr" or "--rtl" 0x00 lexical
//! xsd:string          'S' lexical
//! any other datatype  'T' datatype 0x00 lexical
//! triple term         'X' subject predicate object, each as a part:
//!
//! IRI                 'I' iri 0x00
//! literal             its key with each zero byte of the lexical form doubled by 0x01
//!                     (0x00 0x01), then 0x00 0x00
//! blank node          'B' number, 12 hexadecimal digits
//! triple term         its key as it is
//! ```
//!
//! Keys are compared as bytes. The type comes before the lexical form, so all
//! literals of one type stand together in the dictionary, sorted by code point:
//! a range of ranks is a range of strings, and the shared beginning costs nothing
//! once it is front-coded. A tag or an IRI never holds a zero byte, so a key is
//! read back in one way only. Blank nodes have no key of their own: their number is in the id.
//!
//! A part ends where it says, so triple terms nest without ambiguity. They are sorted by subject,
//! then predicate, then object, each by its key; those with the same subject stand together.

use std::borrow::Cow;

use crate::TermId;
use crate::term::{Direction, Literal, LiteralKind, TRIPLE_DEPTH_MAX, Term, Triple};

const BLANK_NODE: u8 = b'B';
const IRI: u8 = b'I';
const LANGUAGE: u8 = b'L';
const STRING: u8 = b'S';
const TYPED: u8 = b'T';
const TRIPLE: u8 = b'X';

/// Between a language tag and a direction; no tag holds two hyphens in a row.
const DIRECTION_MARK: &str = "--";
/// Hexadecimal digits of a blank node's number within a triple term: 48 bits.
const BLANK_NODE_DIGITS: usize = 12;

/// The first byte that no IRI's key begins with: keys below are IRIs, the others literals and
/// triple terms.
pub const FIRST_LITERAL_KEY: &[u8] = &[LANGUAGE];
/// Where the keys of triple terms begin: keys below are IRIs and literals.
pub const FIRST_TRIPLE_KEY: &[u8] = &[TRIPLE];

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

/// Appends the key of a literal with a language tag, in lower case, and a base direction.
pub fn directional_key(lexical: &str, tag: &str, direction: Direction, out: &mut Vec<u8>) {
    out.push(LANGUAGE);
    out.extend_from_slice(tag.as_bytes());
    out.extend_from_slice(DIRECTION_MARK.as_bytes());
    out.extend_from_slice(direction.as_str().as_bytes());
    out.push(0);
    out.extend_from_slice(lexical.as_bytes());
}

/// Begins the key of a triple term; its three parts have to follow.
pub fn begin_triple_key(out: &mut Vec<u8>) {
    out.push(TRIPLE);
}

/// Appends a blank node as a part of a triple term's key.
pub fn blank_node_part(number: u64, out: &mut Vec<u8>) {
    debug_assert!(number < TermId::PAYLOAD_LIMIT);
    out.push(BLANK_NODE);
    for digit in (0..BLANK_NODE_DIGITS).rev() {
        let value = (number >> (4 * digit)) & 0xf;
        out.push(b"0123456789abcdef"[value as usize]);
    }
}

/// Appends the term of a key, which is not empty, as a part of a triple term's key.
pub fn key_part(key: &[u8], out: &mut Vec<u8>) {
    match key[0] {
        TRIPLE => out.extend_from_slice(key),
        IRI => {
            out.extend_from_slice(key);
            out.push(0);
        }
        kind => {
            // The zero byte after a tag or datatype is the first one and stands for itself.
            let typed = match kind {
                STRING => 1,
                _ => memchr_zero(key).map_or(key.len(), |zero| zero + 1),
            };
            out.extend_from_slice(&key[..typed]);
            for &byte in &key[typed..] {
                out.push(byte);
                if byte == 0 {
                    out.push(1);
                }
            }
            out.extend_from_slice(&[0, 0]);
        }
    }
}

/// The length of the IRI or literal that `parts`, the rest of a triple term's key, begins with;
/// `None` if it begins with something else, or ends too early.
pub fn leaf_part_length(parts: &[u8]) -> Option<usize> {
    let (&kind, rest) = parts.split_first()?;
    match kind {
        IRI => Some(memchr_zero(rest)? + 2),
        STRING => Some(lexical_part_length(rest)? + 1),
        LANGUAGE | TYPED => {
            let typed = memchr_zero(rest)? + 2;
            Some(typed + lexical_part_length(&parts[typed..])?)
        }
        _ => None,
    }
}

/// The length of a lexical form within a part, with the two zero bytes at its end.
fn lexical_part_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr_zero(&bytes[at..])? + 2;
        match bytes.get(at - 1)? {
            0 => return Some(at),
            1 => {}
            _ => return None,
        }
    }
}

fn memchr_zero(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| byte == 0)
}

/// Appends the key of a term. A blank node has none and appends nothing.
pub fn write_key(term: &Term<'_>, out: &mut Vec<u8>) {
    match term {
        Term::BlankNode(_) => {}
        Term::Iri(iri) => iri_key(iri, out),
        Term::Literal(Literal { lexical, kind }) => match kind {
            LiteralKind::String => string_key(lexical, out),
            LiteralKind::Language(tag) => language_key(lexical, tag, out),
            LiteralKind::Directional(tag, direction) => {
                directional_key(lexical, tag, *direction, out);
            }
            LiteralKind::Typed(datatype) => typed_key(lexical, datatype, out),
        },
        Term::Triple(triple) => {
            begin_triple_key(out);
            let mut key = Vec::new();
            for part in triple.parts() {
                match part {
                    Term::BlankNode(number) => blank_node_part(*number, out),
                    Term::Triple(_) => write_key(part, out),
                    Term::Iri(_) | Term::Literal(_) => {
                        key.clear();
                        write_key(part, &mut key);
                        key_part(&key, out);
                    }
                }
            }
        }
    }
}

/// Reads a key back; the term borrows from it.
pub fn parse_key(key: &[u8]) -> Result<Term<'_>, KeyError> {
    let (&kind, rest) = key.split_first().ok_or(KeyError::Empty)?;
    let text = std::str::from_utf8(rest).map_err(|_| KeyError::Malformed("not UTF-8"))?;
    match kind {
        IRI => Ok(Term::Iri(Cow::Borrowed(text))),
        STRING => Ok(literal(Cow::Borrowed(text), LiteralKind::String)),
        LANGUAGE | TYPED => {
            let (kind_text, lexical) = split_type(text)?;
            let kind = literal_kind(kind, kind_text);
            Ok(literal(Cow::Borrowed(lexical), kind))
        }
        TRIPLE => {
            let (triple, rest) = parse_triple(text, 1)?;
            match rest {
                "" => Ok(triple),
                _ => Err(KeyError::Malformed("text after the triple term")),
            }
        }
        other => Err(KeyError::UnknownKind(other)),
    }
}

/// Splits `type 0x00 lexical`.
fn split_type(text: &str) -> Result<(&str, &str), KeyError> {
    text.split_once('\0')
        .ok_or(KeyError::Malformed("no zero byte after the type"))
}

fn literal_kind(kind: u8, kind_text: &str) -> LiteralKind<'_> {
    if kind == TYPED {
        return LiteralKind::Typed(Cow::Borrowed(kind_text));
    }
    if let Some((tag, direction)) = kind_text.split_once(DIRECTION_MARK)
        && let Some(direction) = Direction::parse(direction)
    {
        return LiteralKind::Directional(Cow::Borrowed(tag), direction);
    }
    LiteralKind::Language(Cow::Borrowed(kind_text))
}

/// Reads the three parts of a triple term, `depth` levels deep; gives what follows.
fn parse_triple(text: &str, depth: usize) -> Result<(Term<'_>, &str), KeyError> {
    if depth > TRIPLE_DEPTH_MAX {
        return Err(KeyError::Malformed("triple terms nested too deeply"));
    }
    let (subject, rest) = parse_part(text, depth)?;
    let (predicate, rest) = parse_part(rest, depth)?;
    let (object, rest) = parse_part(rest, depth)?;
    let triple = Triple::new(subject, predicate, object)
        .map_err(|_| KeyError::Malformed("a triple term with a part out of place"))?;
    Ok((Term::from(triple), rest))
}

fn parse_part(text: &str, depth: usize) -> Result<(Term<'_>, &str), KeyError> {
    const CUT_SHORT: KeyError = KeyError::Malformed("a triple term ends too early");
    let kind = *text.as_bytes().first().ok_or(CUT_SHORT)?;
    if kind == BLANK_NODE {
        let digits = text.get(1..=BLANK_NODE_DIGITS).ok_or(CUT_SHORT)?;
        let is_number = digits
            .bytes()
            .all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        let number = u64::from_str_radix(digits, 16).ok().filter(|_| is_number);
        let number = number.ok_or(KeyError::Malformed("a blank node without a number"))?;
        return Ok((Term::BlankNode(number), &text[1 + BLANK_NODE_DIGITS..]));
    }
    if kind == TRIPLE {
        return parse_triple(&text[1..], depth + 1);
    }
    if !matches!(kind, IRI | LANGUAGE | STRING | TYPED) {
        return Err(KeyError::UnknownKind(kind));
    }
    let length = leaf_part_length(text.as_bytes()).ok_or(CUT_SHORT)?;
    // A part begins with a letter and ends with a zero byte, so this cuts between characters.
    let (part, rest) = text.split_at(length);
    let term = match kind {
        IRI => Term::Iri(Cow::Borrowed(&part[1..length - 1])),
        STRING => literal(unescaped(&part[1..length - 2]), LiteralKind::String),
        _ => {
            let (kind_text, lexical) = split_type(&part[1..length - 2])?;
            literal(unescaped(lexical), literal_kind(kind, kind_text))
        }
    };
    Ok((term, rest))
}

fn unescaped(lexical: &str) -> Cow<'_, str> {
    match lexical.contains('\0') {
        true => Cow::Owned(lexical.replace("\0\u{1}", "\0")),
        false => Cow::Borrowed(lexical),
    }
}

fn literal<'a>(lexical: Cow<'a, str>, kind: LiteralKind<'a>) -> Term<'a> {
    Term::Literal(Literal { lexical, kind })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Terms that have a key, with zero bytes in lexical forms and triple terms within each other.
    fn term() -> impl Strategy<Value = Term<'static>> {
        let iri = || "[a-z]{1,6}:[^\0<>\"{}|^`\\\\ ]{0,40}".prop_map(Term::iri);
        let lexical = || prop_oneof![".{0,40}", "[\0\u{1}a]{0,6}"];
        let tag = || "[a-z]{1,8}(-[a-z0-9]{1,8}){0,2}";
        let direction = prop_oneof![Just(Direction::LeftToRight), Just(Direction::RightToLeft)];
        let leaf = prop_oneof![
            iri(),
            lexical().prop_map(Term::string),
            (lexical(), tag()).prop_map(|(lexical, tag)| Term::language(lexical, tag)),
            (lexical(), tag(), direction)
                .prop_map(|(lexical, tag, direction)| Term::directional(lexical, tag, direction)),
            (lexical(), "[a-z]{1,6}:[a-zA-Z0-9/#]{0,20}")
                .prop_map(|(lexical, datatype)| Term::typed(lexical, datatype)),
        ];
        let blank = || (0..TermId::PAYLOAD_LIMIT).prop_map(Term::BlankNode);
        leaf.prop_recursive(3, 8, 2, move |object| {
            let subject = prop_oneof![iri(), blank()];
            let object = prop_oneof![3 => object, 1 => blank()];
            (subject, iri(), object).prop_map(|(subject, predicate, object)| {
                Term::from(Triple::new(subject, predicate, object).unwrap())
            })
        })
    }

    fn key_of(term: &Term<'_>) -> Vec<u8> {
        let mut key = Vec::new();
        write_key(term, &mut key);
        key
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

        #[test]
        fn a_damaged_triple_key_is_read_or_refused(
            term in term(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
        ) {
            let mut key = key_of(&term);
            let at = at.index(key.len());
            key[at] = byte;
            if let Ok(Term::Triple(triple)) = parse_key(&key) {
                let again = key_of(&Term::Triple(triple));
                prop_assert!(again == key || key.contains(&TYPED));
            }
            let _read_or_refused = parse_key(&key[..at]);
        }

        #[test]
        fn the_parts_of_a_triple_key_can_be_told_apart(term in term()) {
            if let Term::Triple(triple) = &term {
                let key = key_of(&term);
                let mut rest = &key[1..];
                for part in triple.parts() {
                    let mut expected = Vec::new();
                    match part {
                        Term::BlankNode(number) => blank_node_part(*number, &mut expected),
                        _ => key_part(&key_of(part), &mut expected),
                    }
                    prop_assert!(rest.starts_with(&expected));
                    if matches!(part, Term::Iri(_) | Term::Literal(_)) {
                        prop_assert_eq!(leaf_part_length(rest), Some(expected.len()));
                    }
                    rest = &rest[expected.len()..];
                }
                prop_assert!(rest.is_empty());
            }
        }
    }

    #[test]
    fn triple_terms_sort_last_and_by_their_parts() {
        let triple = |subject: Term<'static>, object: Term<'static>| {
            let triple = Triple::new(subject, Term::iri("urn:p"), object).unwrap();
            key_of(&Term::from(triple))
        };
        let ascending = [
            key_of(&Term::iri("urn:zzz")),
            key_of(&Term::language("zzz", "zz")),
            key_of(&Term::typed("zzz", "zzz:zzz")),
            triple(Term::BlankNode(9), Term::iri("urn:o")),
            triple(Term::BlankNode(10), Term::iri("urn:o")),
            triple(Term::iri("urn:a"), Term::string("b")),
            triple(Term::iri("urn:a"), Term::string("b\0")),
            triple(Term::iri("urn:a"), Term::string("bc")),
            triple(Term::iri("urn:ab"), Term::iri("urn:o")),
        ];
        assert!(ascending.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(ascending[2].as_slice() < FIRST_TRIPLE_KEY);
        assert!(ascending[3].as_slice() > FIRST_TRIPLE_KEY);
    }

    #[test]
    fn nesting_beyond_the_limit_is_refused() {
        let mut key = vec![];
        for _ in 0..=TRIPLE_DEPTH_MAX {
            key.push(TRIPLE);
            blank_node_part(1, &mut key);
            key.extend_from_slice(b"Iurn:p\0");
        }
        key.extend_from_slice(b"Iurn:o\0");
        assert!(matches!(parse_key(&key), Err(KeyError::Malformed(what)) if what.contains("deep")));
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
