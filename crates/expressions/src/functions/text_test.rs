//! Questions about a text whose other arguments are constant: `REGEX`, `CONTAINS`, `STRSTARTS`, `STRENDS`.
//!
//! They are compiled once for a query, and each text is looked at where the dictionary decodes it: a copy of long texts
//! costs more than the search in them.

use std::sync::Arc;

use memchr::memmem::Finder;
use orrery_term::{LiteralKind, Term};
use spargebra::algebra::Function;

use crate::values::value::Value;
use crate::xpath_regex::Pattern;

/// What is asked of a text.
pub(crate) enum TextTest {
    Matches(Arc<Pattern>),
    Contains(Box<Finder<'static>>),
    StartsWith(Box<str>),
    EndsWith(Box<str>),
}

impl TextTest {
    /// The test that a function with this second argument is, if it is one. An argument with a language is none: what it
    /// may be compared with depends on the text's own.
    pub(crate) fn of_function(function: &Function, argument: &Value) -> Option<Self> {
        let text = argument.as_plain_text()?;
        match function {
            Function::Contains => Some(Self::Contains(Box::new(Finder::new(text).into_owned()))),
            Function::StrStarts => Some(Self::StartsWith(text.into())),
            Function::StrEnds => Some(Self::EndsWith(text.into())),
            _ => None,
        }
    }

    /// The answer for a text.
    #[inline]
    fn holds(&self, text: &str) -> bool {
        match self {
            Self::Matches(pattern) => pattern.is_match(text),
            Self::Contains(finder) => finder.find(text.as_bytes()).is_some(),
            Self::StartsWith(start) => text.starts_with(start.as_ref()),
            Self::EndsWith(end) => text.ends_with(end.as_ref()),
        }
    }

    /// The answer for a value; `None`, SPARQL's error, for one that is no text.
    pub(crate) fn of_value(&self, value: &Value) -> Option<bool> {
        let (text, _) = value.as_text()?;
        Some(self.holds(text))
    }

    /// The answer for a term; `None`, SPARQL's error, for one that is no text.
    pub(crate) fn of_term(&self, term: &Term<'_>) -> Option<bool> {
        match term {
            Term::Literal(literal) => match &literal.kind {
                LiteralKind::String | LiteralKind::Language(_) | LiteralKind::Directional(..) => {
                    Some(self.holds(&literal.lexical))
                }
                LiteralKind::Typed(_) => self.of_value(&Value::from_term(term)),
            },
            Term::Iri(_) | Term::BlankNode(_) | Term::Triple(_) => None,
        }
    }
}
