//! RDF terms as text: what comes from a parser and goes to a serializer.

use std::borrow::Cow;
use std::fmt;

use crate::vocabulary::{rdf, xsd};

/// An RDF term. Borrows its text where it can.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Term<'a> {
    /// A blank node, by its number in the database. Shown as `_:b17`.
    BlankNode(u64),
    /// An absolute IRI, without angle brackets.
    Iri(Cow<'a, str>),
    /// A literal.
    Literal(Literal<'a>),
}

/// A literal: lexical form and what it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Literal<'a> {
    /// The lexical form, unescaped.
    pub lexical: Cow<'a, str>,
    /// Plain string, language-tagged, or typed.
    pub kind: LiteralKind<'a>,
}

/// What kind of literal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LiteralKind<'a> {
    /// `xsd:string`.
    String,
    /// With a language tag, in lower case (RDF 1.1 Concepts, 3.3 allows that).
    Language(Cow<'a, str>),
    /// Any other datatype, by its IRI. Never `xsd:string` or `rdf:langString`.
    Typed(Cow<'a, str>),
}

impl<'a> Term<'a> {
    /// An IRI.
    pub fn iri(iri: impl Into<Cow<'a, str>>) -> Self {
        Self::Iri(iri.into())
    }

    /// A plain string literal.
    pub fn string(lexical: impl Into<Cow<'a, str>>) -> Self {
        Self::Literal(Literal {
            lexical: lexical.into(),
            kind: LiteralKind::String,
        })
    }

    /// A literal with a language tag; the tag is put into lower case.
    pub fn language(lexical: impl Into<Cow<'a, str>>, tag: impl Into<Cow<'a, str>>) -> Self {
        let mut tag = tag.into();
        if tag.bytes().any(|byte| byte.is_ascii_uppercase()) {
            tag = Cow::Owned(tag.to_ascii_lowercase());
        }
        Self::Literal(Literal {
            lexical: lexical.into(),
            kind: LiteralKind::Language(tag),
        })
    }

    /// A literal with a datatype; `xsd:string` gives a plain string.
    pub fn typed(lexical: impl Into<Cow<'a, str>>, datatype: impl Into<Cow<'a, str>>) -> Self {
        let datatype = datatype.into();
        let kind = if datatype == xsd::STRING {
            LiteralKind::String
        } else {
            LiteralKind::Typed(datatype)
        };
        Self::Literal(Literal {
            lexical: lexical.into(),
            kind,
        })
    }

    /// The same term, borrowing from this one.
    pub fn as_ref(&self) -> Term<'_> {
        match self {
            Self::BlankNode(number) => Term::BlankNode(*number),
            Self::Iri(iri) => Term::Iri(Cow::Borrowed(iri)),
            Self::Literal(literal) => Term::Literal(Literal {
                lexical: Cow::Borrowed(&literal.lexical),
                kind: match &literal.kind {
                    LiteralKind::String => LiteralKind::String,
                    LiteralKind::Language(tag) => LiteralKind::Language(Cow::Borrowed(tag)),
                    LiteralKind::Typed(datatype) => LiteralKind::Typed(Cow::Borrowed(datatype)),
                },
            }),
        }
    }

    /// The same term with text of its own.
    pub fn into_owned(self) -> Term<'static> {
        match self {
            Self::BlankNode(number) => Term::BlankNode(number),
            Self::Iri(iri) => Term::Iri(Cow::Owned(iri.into_owned())),
            Self::Literal(literal) => Term::Literal(literal.into_owned()),
        }
    }
}

impl<'a> Literal<'a> {
    /// The datatype IRI; `rdf:langString` for a literal with a language tag.
    pub fn datatype(&self) -> &str {
        match &self.kind {
            LiteralKind::String => xsd::STRING,
            LiteralKind::Language(_) => rdf::LANG_STRING,
            LiteralKind::Typed(datatype) => datatype,
        }
    }

    /// The language tag, if there is one.
    pub fn language_tag(&self) -> Option<&str> {
        match &self.kind {
            LiteralKind::Language(tag) => Some(tag),
            LiteralKind::String | LiteralKind::Typed(_) => None,
        }
    }

    /// The same literal with text of its own.
    pub fn into_owned(self) -> Literal<'static> {
        Literal {
            lexical: Cow::Owned(self.lexical.into_owned()),
            kind: match self.kind {
                LiteralKind::String => LiteralKind::String,
                LiteralKind::Language(tag) => LiteralKind::Language(Cow::Owned(tag.into_owned())),
                LiteralKind::Typed(datatype) => {
                    LiteralKind::Typed(Cow::Owned(datatype.into_owned()))
                }
            },
        }
    }
}

impl fmt::Display for Term<'_> {
    /// Canonical N-Triples (RDF 1.1 N-Triples, section 4).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BlankNode(number) => write!(f, "_:b{number}"),
            Self::Iri(iri) => write!(f, "<{iri}>"),
            Self::Literal(literal) => literal.fmt(f),
        }
    }
}

impl fmt::Display for Literal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        write_escaped(&self.lexical, f)?;
        f.write_str("\"")?;
        match &self.kind {
            LiteralKind::String => Ok(()),
            LiteralKind::Language(tag) => write!(f, "@{tag}"),
            LiteralKind::Typed(datatype) => write!(f, "^^<{datatype}>"),
        }
    }
}

fn write_escaped(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0x00..=0x1f | 0x7f => {
                f.write_str(&text[written..at])?;
                write!(f, "\\u{byte:04X}")?;
                written = at + 1;
                continue;
            }
            _ => continue,
        };
        f.write_str(&text[written..at])?;
        f.write_str(escape)?;
        written = at + 1;
    }
    f.write_str(&text[written..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_canonical_n_triples() {
        let cases = [
            (Term::iri("http://e/a"), "<http://e/a>"),
            (Term::BlankNode(3), "_:b3"),
            (
                Term::string("a\"b\\c\nd\u{7f}é"),
                "\"a\\\"b\\\\c\\nd\\u007Fé\"",
            ),
            (Term::language("Hi", "en-GB"), "\"Hi\"@en-gb"),
            (Term::typed("1", xsd::STRING), "\"1\""),
            (
                Term::typed("1", xsd::BYTE),
                "\"1\"^^<http://www.w3.org/2001/XMLSchema#byte>",
            ),
        ];
        for (term, text) in cases {
            assert_eq!(term.to_string(), text);
        }
    }
}
