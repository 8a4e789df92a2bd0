//! RDF terms as text, between parsers and serializers.

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
    /// A triple term (RDF 1.2).
    Triple(Box<Triple<'a>>),
}

/// Triple terms may stand within each other this many levels deep, the outermost counted: reading,
/// writing and comparing them recurses.
pub const TRIPLE_DEPTH_MAX: usize = 64;

/// A triple that is a term: subject an IRI or a blank node, predicate an IRI, object any term.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Triple<'a> {
    subject: Term<'a>,
    predicate: Term<'a>,
    object: Term<'a>,
}

/// Why three terms are not a triple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TripleError {
    /// The subject is a literal or a triple term.
    #[error("the subject of a triple term is neither an IRI nor a blank node")]
    Subject,
    /// The predicate is no IRI.
    #[error("the predicate of a triple term is not an IRI")]
    Predicate,
    /// The object is a triple term of [`TRIPLE_DEPTH_MAX`] levels.
    #[error("triple terms are nested more than {TRIPLE_DEPTH_MAX} levels deep")]
    Depth,
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
    /// With a language tag, in lower case but where the term is only shown
    /// ([`crate::LanguageTags::in_term`]).
    Language(Cow<'a, str>),
    /// With a language tag, in lower case, and a base direction (RDF 1.2).
    Directional(Cow<'a, str>, Direction),
    /// Any other datatype, by its IRI. Never `xsd:string`, `rdf:langString` or `rdf:dirLangString`.
    Typed(Cow<'a, str>),
}

/// The base direction of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// `ltr`.
    LeftToRight,
    /// `rtl`.
    RightToLeft,
}

impl Direction {
    /// `ltr` or `rtl`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LeftToRight => "ltr",
            Self::RightToLeft => "rtl",
        }
    }

    /// Reads `ltr` or `rtl`, in lower case.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "ltr" => Some(Self::LeftToRight),
            "rtl" => Some(Self::RightToLeft),
            _ => None,
        }
    }
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
        Self::Literal(Literal {
            lexical: lexical.into(),
            kind: LiteralKind::Language(lower_case(tag.into())),
        })
    }

    /// A literal with a language tag, which is put into lower case, and a base direction.
    pub fn directional(
        lexical: impl Into<Cow<'a, str>>,
        tag: impl Into<Cow<'a, str>>,
        direction: Direction,
    ) -> Self {
        Self::Literal(Literal {
            lexical: lexical.into(),
            kind: LiteralKind::Directional(lower_case(tag.into()), direction),
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

    /// The bytes of its texts: of an IRI, a literal's lexical form, tag and datatype, of a triple
    /// term those of its parts.
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::BlankNode(_) => 0,
            Self::Iri(iri) => iri.len(),
            Self::Literal(literal) => {
                let kind = match &literal.kind {
                    LiteralKind::String => 0,
                    LiteralKind::Language(tag) | LiteralKind::Directional(tag, _) => tag.len(),
                    LiteralKind::Typed(datatype) => datatype.len(),
                };
                literal.lexical.len() + kind
            }
            Self::Triple(triple) => triple.text_bytes(),
        }
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
                    LiteralKind::Directional(tag, direction) => {
                        LiteralKind::Directional(Cow::Borrowed(tag), *direction)
                    }
                    LiteralKind::Typed(datatype) => LiteralKind::Typed(Cow::Borrowed(datatype)),
                },
            }),
            Self::Triple(triple) => Term::Triple(Box::new(triple.borrowed())),
        }
    }

    /// The same term with text of its own.
    pub fn into_owned(self) -> Term<'static> {
        match self {
            Self::BlankNode(number) => Term::BlankNode(number),
            Self::Iri(iri) => Term::Iri(Cow::Owned(iri.into_owned())),
            Self::Literal(literal) => Term::Literal(literal.into_owned()),
            Self::Triple(triple) => Term::Triple(Box::new(triple.into_owned())),
        }
    }

    /// Levels of triple terms: 0 for any other term.
    fn triple_depth(&self) -> usize {
        let mut depth = 0;
        let mut term = self;
        while let Self::Triple(triple) = term {
            depth += 1;
            term = &triple.object;
        }
        depth
    }
}

fn lower_case(tag: Cow<'_, str>) -> Cow<'_, str> {
    match tag.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(tag.to_ascii_lowercase()),
        false => tag,
    }
}

impl<'a> From<Triple<'a>> for Term<'a> {
    fn from(triple: Triple<'a>) -> Self {
        Self::Triple(Box::new(triple))
    }
}

impl<'a> Triple<'a> {
    /// The triple of these terms, if they may stand where they do.
    pub fn new(
        subject: Term<'a>,
        predicate: Term<'a>,
        object: Term<'a>,
    ) -> Result<Self, TripleError> {
        if !matches!(subject, Term::Iri(_) | Term::BlankNode(_)) {
            return Err(TripleError::Subject);
        }
        if !matches!(predicate, Term::Iri(_)) {
            return Err(TripleError::Predicate);
        }
        if object.triple_depth() >= TRIPLE_DEPTH_MAX {
            return Err(TripleError::Depth);
        }
        Ok(Self {
            subject,
            predicate,
            object,
        })
    }

    /// The subject: an IRI or a blank node.
    pub fn subject(&self) -> &Term<'a> {
        &self.subject
    }

    /// The predicate: an IRI.
    pub fn predicate(&self) -> &Term<'a> {
        &self.predicate
    }

    /// The object, to be written otherwise: its kind stays.
    pub(crate) fn object_mut(&mut self) -> &mut Term<'a> {
        &mut self.object
    }

    /// The object.
    pub fn object(&self) -> &Term<'a> {
        &self.object
    }

    /// The same triple, borrowing from this one.
    pub fn borrowed(&self) -> Triple<'_> {
        Triple {
            subject: self.subject.as_ref(),
            predicate: self.predicate.as_ref(),
            object: self.object.as_ref(),
        }
    }

    /// The same triple with text of its own.
    pub fn into_owned(self) -> Triple<'static> {
        Triple {
            subject: self.subject.into_owned(),
            predicate: self.predicate.into_owned(),
            object: self.object.into_owned(),
        }
    }

    /// The bytes of its parts: their texts, and what each of them takes besides.
    pub fn text_bytes(&self) -> usize {
        let texts: usize = self.parts().map(Term::text_bytes).iter().sum();
        size_of::<Self>() + texts
    }

    /// Subject, predicate, object.
    pub fn parts(&self) -> [&Term<'a>; 3] {
        [&self.subject, &self.predicate, &self.object]
    }

    /// Subject, predicate, object, taken apart.
    pub fn into_parts(self) -> [Term<'a>; 3] {
        [self.subject, self.predicate, self.object]
    }
}

impl<'a> Literal<'a> {
    /// The datatype IRI; `rdf:langString` or `rdf:dirLangString` for a literal with a language tag.
    pub fn datatype(&self) -> &str {
        match &self.kind {
            LiteralKind::String => xsd::STRING,
            LiteralKind::Language(_) => rdf::LANG_STRING,
            LiteralKind::Directional(..) => rdf::DIR_LANG_STRING,
            LiteralKind::Typed(datatype) => datatype,
        }
    }

    /// The language tag, if there is one.
    pub fn language_tag(&self) -> Option<&str> {
        match &self.kind {
            LiteralKind::Language(tag) | LiteralKind::Directional(tag, _) => Some(tag),
            LiteralKind::String | LiteralKind::Typed(_) => None,
        }
    }

    /// The base direction, if there is one.
    pub fn direction(&self) -> Option<Direction> {
        match &self.kind {
            LiteralKind::Directional(_, direction) => Some(*direction),
            LiteralKind::String | LiteralKind::Language(_) | LiteralKind::Typed(_) => None,
        }
    }

    /// The same literal with text of its own.
    pub fn into_owned(self) -> Literal<'static> {
        Literal {
            lexical: Cow::Owned(self.lexical.into_owned()),
            kind: match self.kind {
                LiteralKind::String => LiteralKind::String,
                LiteralKind::Language(tag) => LiteralKind::Language(Cow::Owned(tag.into_owned())),
                LiteralKind::Directional(tag, direction) => {
                    LiteralKind::Directional(Cow::Owned(tag.into_owned()), direction)
                }
                LiteralKind::Typed(datatype) => {
                    LiteralKind::Typed(Cow::Owned(datatype.into_owned()))
                }
            },
        }
    }
}

impl fmt::Display for Term<'_> {
    /// Canonical N-Triples (RDF 1.2 N-Triples, section 4).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BlankNode(number) => write!(f, "_:b{number}"),
            Self::Iri(iri) => write!(f, "<{iri}>"),
            Self::Literal(literal) => literal.fmt(f),
            Self::Triple(triple) => {
                let [subject, predicate, object] = triple.parts();
                write!(f, "<<( {subject} {predicate} {object} )>>")
            }
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
            LiteralKind::Directional(tag, direction) => {
                write!(f, "@{tag}--{}", direction.as_str())
            }
            LiteralKind::Typed(datatype) => write!(f, "^^<{datatype}>"),
        }
    }
}

fn write_escaped(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // These two are no characters, and hardly any text has them.
    if let Some(at) = text.find(['\u{FFFE}', '\u{FFFF}']) {
        let (before, found) = text.split_at(at);
        let (first, rest) = found.split_at('\u{FFFE}'.len_utf8());
        write_escaped(before, f)?;
        f.write_str(if first == "\u{FFFE}" {
            "\\uFFFE"
        } else {
            "\\uFFFF"
        })?;
        return write_escaped(rest, f);
    }
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

    fn triple(object: Term<'static>) -> Term<'static> {
        let predicate = Term::iri("http://e/p");
        Term::from(Triple::new(Term::BlankNode(3), predicate, object).unwrap())
    }

    #[test]
    fn a_triple_takes_only_terms_in_their_places() {
        let iri = || Term::iri("http://e/a");
        let new = |subject, predicate| Triple::new(subject, predicate, iri()).map(drop);
        assert_eq!(new(Term::string("x"), iri()), Err(TripleError::Subject));
        assert_eq!(new(triple(iri()), iri()), Err(TripleError::Subject));
        assert_eq!(new(iri(), Term::BlankNode(1)), Err(TripleError::Predicate));
        let deepest = (0..TRIPLE_DEPTH_MAX).fold(iri(), |object, _| triple(object));
        let deeper = Triple::new(iri(), iri(), deepest);
        assert_eq!(deeper.map(drop), Err(TripleError::Depth));
    }

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
            (
                Term::directional("Hi", "en-GB", Direction::RightToLeft),
                "\"Hi\"@en-gb--rtl",
            ),
            (
                triple(triple(Term::string("x"))),
                "<<( _:b3 <http://e/p> <<( _:b3 <http://e/p> \"x\" )>> )>>",
            ),
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
