//! The conversion of tokens to IRIs, literals and labels.

use std::borrow::Cow;

use oxilangtag::LanguageTag;
use oxiri::Iri;
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BaseDirection, BlankNode, Literal, NamedNode};

use super::{Parsed, Parser, Prefix};
use crate::chars;
use crate::error::{ErrorKind, Hint};
use crate::expected::Thing;
use crate::lexer::Lexer;
use crate::suggest::prefix_for;
use crate::token::{Token, TokenKind};
use crate::word::Keyword;

/// Whether an IRI or a prefixed name is here.
pub(super) fn is_iri(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Iri | TokenKind::PrefixedName)
}

/// Whether a literal begins here; signs of numbers belong to them in some places only.
pub(super) fn is_literal(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::String
            | TokenKind::Integer
            | TokenKind::Decimal
            | TokenKind::Double
            | TokenKind::Keyword(Keyword::True | Keyword::False)
    )
}

impl<'t> Parser<'t, '_> {
    /// An IRI, full or with a prefix.
    pub(super) fn iri(&mut self) -> Parsed<NamedNode> {
        if !self.at_thing(Thing::Iri, is_iri) {
            return Err(self.no_iri());
        }
        let token = self.bump();
        let iri = match token.kind {
            TokenKind::Iri => self.full_iri(token)?,
            _ => self.prefixed(token)?,
        };
        Ok(NamedNode::new_unchecked(iri))
    }

    /// An IRI in angle brackets, resolved.
    pub(super) fn full_iri(&mut self, token: Token) -> Parsed<String> {
        let text = self.text_of(token);
        let text = &text[1..text.len() - 1];
        // Absolute, and its own resolution: what nearly all are.
        if is_plain_iri(text) {
            return Ok(text.to_owned());
        }
        let iri = self.unescaped(text, token.start as usize + 1, false)?;
        let resolved = match &self.base {
            Some(base) => base.resolve(&iri),
            None => Iri::parse(iri.clone().into_owned()),
        };
        let error = match resolved {
            Ok(resolved) => {
                self.copies(resolved.as_str().len())?;
                return Ok(resolved.into_inner());
            }
            Err(error) => error.to_string(),
        };
        let has_scheme = iri
            .find([':', '/', '?', '#'])
            .is_some_and(|at| iri[at..].starts_with(':'));
        let failure = match self.base.is_none() && !has_scheme {
            true => self
                .error_at(
                    token,
                    ErrorKind::RelativeIri {
                        iri: iri.into_owned(),
                    },
                )
                .with_hint(Hint::SetBase),
            false => self.error_at(
                token,
                ErrorKind::InvalidIri {
                    iri: iri.into_owned(),
                    reason: error,
                },
            ),
        };
        self.report(failure)?;
        Ok(HOLE.to_owned())
    }

    /// An IRI with a prefix.
    fn prefixed(&mut self, token: Token) -> Parsed<String> {
        let text = self.text_of(token);
        let colon = memchr::memchr(b':', text.as_bytes()).unwrap_or(0);
        let (prefix, local) = (&text[..colon], &text[colon + 1..]);
        if !self.prefixes.contains_key(prefix) && !self.assume(prefix) {
            if let Some(failure) = self.iri_without_signs(token) {
                return Err(failure);
            }
            let mut failure = self.error_at(
                token,
                ErrorKind::UndeclaredPrefix {
                    prefix: prefix.to_owned(),
                },
            );
            let prefix = prefix.to_owned();
            failure.hint = Some(match (prefix_for(&prefix), prefix.as_str()) {
                (Some(iri), _) => {
                    let at = Lexer::new(self.text).place() as usize;
                    Hint::DeclarePrefix { prefix, iri, at }
                }
                (None, "bif" | "sql") => Hint::Note(
                    "these are Virtuoso's own functions; CONTAINS(?text, \"word\") in a FILTER finds texts",
                ),
                (None, "hint") => {
                    Hint::Note("these are Blazegraph's hints to its planner; leave them out")
                }
                (None, _) => Hint::DeclareUnknownPrefix { prefix },
            });
            self.report(failure)?;
            return Ok(HOLE.to_owned());
        }
        let Some(known) = self.prefixes.get(prefix) else {
            return Ok(HOLE.to_owned());
        };
        let takes_plain_names = known.takes_plain_names;
        let mut iri = String::with_capacity(known.iri.len() + local.len());
        iri.push_str(&known.iri);
        self.copies(iri.len())?;
        if takes_plain_names && local.bytes().all(chars::is_plain) {
            iri.push_str(local);
            return Ok(iri);
        }
        iri.extend(local.split('\\'));
        if let Err(error) = Iri::parse(iri.as_str()) {
            let reason = error.to_string();
            let failure = self.error_at(token, ErrorKind::InvalidIri { iri, reason });
            self.report(failure)?;
            return Ok(HOLE.to_owned());
        }
        Ok(iri)
    }

    /// Whether a prefix needs no declaration; then it is known from here on.
    fn assume(&mut self, prefix: &'t str) -> bool {
        let assumed = self.options.prefixes.and_then(|assumed| assumed(prefix));
        let assumed = assumed.filter(|iri| Iri::parse(iri.as_str()).is_ok());
        assumed.map(|iri| self.declare(prefix, iri)).is_some()
    }

    pub(super) fn declare(&mut self, prefix: &'t str, iri: String) {
        let takes_plain_names = iri.ends_with(['/', '#']) && iri.contains("://") && {
            let behind = iri.split_once("://").map_or("", |(_, behind)| behind);
            behind.contains('/')
        };
        self.prefixes.insert(
            prefix,
            Prefix {
                iri,
                takes_plain_names,
            },
        );
    }

    /// The text of a string's token.
    pub(super) fn string_value(&mut self, token: Token) -> Parsed<String> {
        let text = self.text_of(token);
        let quotes = match text.len() >= 6 && text.as_bytes()[1] == text.as_bytes()[0] {
            true => 3,
            false => 1,
        };
        let inner = &text[quotes..text.len() - quotes];
        let value = self.unescaped(inner, token.start as usize + quotes, true)?;
        Ok(value.into_owned())
    }

    /// Takes a string.
    pub(super) fn string(&mut self) -> Parsed<String> {
        if !self.at_thing(Thing::String, |it| it == TokenKind::String) {
            return Err(self.unexpected());
        }
        let token = self.bump();
        self.string_value(token)
    }

    /// Resolves escapes of an inner text that stands at `at`.
    fn unescaped(&mut self, inner: &'t str, at: usize, is_string: bool) -> Parsed<Cow<'t, str>> {
        let Some(first) = memchr::memchr(b'\\', inner.as_bytes()) else {
            return Ok(Cow::Borrowed(inner));
        };
        let mut value = String::with_capacity(inner.len());
        value.push_str(&inner[..first]);
        let mut place = first;
        while let Some(length) = memchr::memchr(b'\\', &inner.as_bytes()[place..]) {
            value.push_str(&inner[place..place + length]);
            place += length;
            match escaped(&inner[place..], is_string) {
                Some((character, length)) => {
                    value.push(character);
                    place += length;
                }
                None => {
                    let length = inner[place..]
                        .chars()
                        .take(2)
                        .map(char::len_utf8)
                        .sum::<usize>();
                    let span = at + place..at + place + length;
                    let mut failure = self.error_in(span, ErrorKind::InvalidEscape);
                    failure.hint = Some(match is_string {
                        true => Hint::Replace {
                            span: at + place..at + place + 1,
                            text: "\\\\".to_owned(),
                        },
                        false => Hint::Note("an IRI has `\\uXXXX` and `\\UXXXXXXXX` only"),
                    });
                    self.report(failure)?;
                    place += length;
                }
            }
        }
        value.push_str(&inner[place..]);
        Ok(Cow::Owned(value))
    }

    /// A string with its language or datatype, a number without a sign, or a boolean.
    pub(super) fn literal(&mut self) -> Parsed<Literal> {
        let token = self.bump();
        let typed = |datatype: oxrdf::NamedNodeRef<'static>| {
            Literal::new_typed_literal(token.text(self.text), datatype)
        };
        Ok(match token.kind {
            TokenKind::Integer => typed(xsd::INTEGER),
            TokenKind::Decimal => typed(xsd::DECIMAL),
            TokenKind::Double => typed(xsd::DOUBLE),
            TokenKind::Keyword(Keyword::True) => Literal::new_typed_literal("true", xsd::BOOLEAN),
            TokenKind::Keyword(Keyword::False) => Literal::new_typed_literal("false", xsd::BOOLEAN),
            _ => return self.string_literal(token),
        })
    }

    fn string_literal(&mut self, token: Token) -> Parsed<Literal> {
        let value = self.string_value(token)?;
        if self.eat(TokenKind::Datatype) {
            if !self.at_thing(Thing::Iri, is_iri) {
                return Err(self.no_datatype());
            }
            let datatype = self.iri()?;
            return Ok(Literal::new_typed_literal(value, datatype));
        }
        if !self.at_thing(Thing::LanguageTag, |it| it == TokenKind::LanguageTag) {
            return Ok(Literal::new_simple_literal(value));
        }
        let token = self.bump();
        let tag = &self.text_of(token)[1..];
        // To set up a search for two bytes takes longer than to look at most tags.
        let direction = memchr::memchr(b'-', tag.as_bytes()).and_then(|_| tag.split_once("--"));
        let (language, direction) = match direction {
            Some((language, direction)) => (language, Some(direction)),
            None => (tag, None),
        };
        let language = language.to_ascii_lowercase();
        let is_plain = (2..=3).contains(&language.len()) && !language.contains('-');
        let is_valid = is_plain || LanguageTag::parse(language.as_str()).is_ok();
        let direction = match direction {
            None => Some(None),
            Some("ltr") => Some(Some(BaseDirection::Ltr)),
            Some("rtl") => Some(Some(BaseDirection::Rtl)),
            Some(_) => None,
        };
        Ok(match direction.filter(|_| is_valid) {
            Some(Some(direction)) => Literal::new_directional_language_tagged_literal_unchecked(
                value, language, direction,
            ),
            Some(None) => Literal::new_language_tagged_literal_unchecked(value, language),
            None => {
                let failure = self.error_at(token, ErrorKind::InvalidLanguageTag);
                self.report(failure)?;
                Literal::new_simple_literal(value)
            }
        })
    }

    /// Whether a number with its sign is here, without blanks in between.
    pub(super) fn at_signed_number(&self) -> bool {
        matches!(self.token.kind, TokenKind::Plus | TokenKind::Minus) && {
            let second = self.second();
            second.start == self.token.end
                && matches!(
                    second.kind,
                    TokenKind::Integer | TokenKind::Decimal | TokenKind::Double
                )
        }
    }

    /// Takes such a number.
    pub(super) fn signed_number(&mut self) -> Literal {
        let sign = self.bump();
        let number = self.bump();
        let text = &self.text[sign.start as usize..number.end as usize];
        let datatype = match number.kind {
            TokenKind::Integer => xsd::INTEGER,
            TokenKind::Decimal => xsd::DECIMAL,
            _ => xsd::DOUBLE,
        };
        Literal::new_typed_literal(text, datatype)
    }

    /// Takes a label. It stands for one node in one group of patterns.
    pub(super) fn label(&mut self) -> Parsed<BlankNode> {
        let token = self.bump();
        let label = &self.text_of(token)[2..];
        let group = *self.labels.entry(label).or_insert(self.label_group);
        if group != self.label_group {
            let label = label.to_owned();
            let failure = self.error_at(token, ErrorKind::SharedLabel { label });
            self.report(failure)?;
        }
        Ok(BlankNode::new_unchecked(label))
    }
}

/// The text that a string's token stands for; none if it is no string, or an escape is wrong.
pub fn string_of(token: &str) -> Option<String> {
    let quote = token.get(..1).filter(|it| matches!(*it, "\"" | "'"))?;
    let long = quote.repeat(3);
    let marks = match token.len() >= 6 && token.starts_with(&long) {
        true => long.as_str(),
        false => quote,
    };
    let mut rest = token.strip_prefix(marks)?.strip_suffix(marks)?;
    let mut value = String::with_capacity(rest.len());
    while let Some(length) = rest.find('\\') {
        value.push_str(&rest[..length]);
        let (character, escape) = escaped(&rest[length..], true)?;
        value.push(character);
        rest = &rest[length + escape..];
    }
    value.push_str(rest);
    Some(value)
}

/// `rdf:type`, for `a`.
pub(super) fn rdf_type() -> NamedNode {
    rdf::TYPE.into_owned()
}

/// What stands in the tree where an IRI could not be read.
const HOLE: &str = "urn:orrery:hole";

/// The character that an escape at the beginning stands for, and the length of the escape.
fn escaped(text: &str, is_string: bool) -> Option<(char, usize)> {
    let letter = *text.as_bytes().get(1)?;
    let character = match letter {
        b'u' => return code_point(text, 4),
        b'U' => return code_point(text, 8),
        _ if !is_string => return None,
        b't' => '\t',
        b'b' => '\u{8}',
        b'n' => '\n',
        b'r' => '\r',
        b'f' => '\u{c}',
        b'"' | b'\'' | b'\\' => char::from(letter),
        _ => return None,
    };
    Some((character, 2))
}

fn code_point(text: &str, digits: usize) -> Option<(char, usize)> {
    let hex = text.get(2..2 + digits)?;
    if !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let character = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32)?;
    Some((character, 2 + digits))
}

/// Whether an IRI is absolute, valid, and its own resolution, seen at a glance (RFC 3986, 3 and
/// 5.2.4).
pub fn is_plain_iri(iri: &str) -> bool {
    let bytes = iri.as_bytes();
    let Some(scheme) = memchr::memchr(b':', bytes) else {
        return false;
    };
    let is_scheme = bytes[0].is_ascii_alphabetic()
        && bytes[..scheme].iter().all(u8::is_ascii_alphanumeric)
        && bytes.get(scheme + 1..scheme + 3) == Some(b"//");
    let rest = bytes.get(scheme + 3..).unwrap_or_default();
    if !is_scheme || !rest.first().is_some_and(u8::is_ascii_alphanumeric) {
        return false;
    }
    let (mut before, mut fragments) = (0, 0);
    for &byte in rest {
        let is_part = chars::is_plain(byte) || matches!(byte, b'/' | b'.' | b'#');
        // Segments of dots are resolved.
        if !is_part || (byte == b'.' && before == b'/') {
            return false;
        }
        fragments += usize::from(byte == b'#');
        before = byte;
    }
    fragments <= 1
}
