//! Text tests with constant patterns: `REGEX`, `CONTAINS`, `STRSTARTS`, `STRENDS`.
//!
//! They are compiled once for a query, and each text is looked at where the dictionary decodes it:
//! a copy of long texts costs more than the search in them. Of many texts only those are decoded
//! that contain what all that pass contain, which is searched for in their encoded form; for
//! `CONTAINS` that is the answer.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use memchr::memmem::Finder;
use orrery_storage::{Dictionary, KeySearch};
use orrery_term::{LiteralKind, Term};
use spargebra::algebra::Function;

use super::kept_searches::search_for;
use crate::values::value::Value;
use crate::xpath_regex::Pattern;

/// Texts searched before it is known whether that pays.
const SEARCHED_MIN: u32 = 1_024;

/// What is asked of a text, compiled.
pub(crate) struct TextTest {
    question: Question,
    search: OnceLock<Option<Arc<KeySearch>>>,
    /// How many texts were searched in their encoded form, ...
    searched: AtomicU32,
    /// ... and how many of them had to be decoded nevertheless.
    decoded: AtomicU32,
}

enum Question {
    Matches(Arc<Pattern>),
    Contains(Box<Finder<'static>>),
    StartsWith(Box<str>),
    EndsWith(Box<str>),
}

impl TextTest {
    fn new(question: Question) -> Self {
        Self {
            question,
            search: OnceLock::new(),
            searched: AtomicU32::new(0),
            decoded: AtomicU32::new(0),
        }
    }

    /// Whether a pattern matches.
    pub(crate) fn matches(pattern: Arc<Pattern>) -> Self {
        Self::new(Question::Matches(pattern))
    }

    /// The test that a function with this second argument is, if it is one. An argument with a
    /// language is none: what it may be compared with depends on the text's own.
    pub(crate) fn of_function(function: &Function, argument: &Value) -> Option<Self> {
        let text = argument.as_plain_text()?;
        let question = match function {
            Function::Contains => Question::Contains(Box::new(Finder::new(text).into_owned())),
            Function::StrStarts => Question::StartsWith(text.into()),
            Function::StrEnds => Question::EndsWith(text.into()),
            _ => return None,
        };
        Some(Self::new(question))
    }

    /// A search for what is in every text that passes, if there is such a thing and it pays so far.
    pub(crate) fn search(&self, dictionary: &Dictionary) -> Option<&KeySearch> {
        let (searched, decoded) = (&self.searched, &self.decoded);
        let (searched, decoded) = (
            searched.load(Ordering::Relaxed),
            decoded.load(Ordering::Relaxed),
        );
        if searched >= SEARCHED_MIN && decoded > searched / 4 * 3 {
            return None;
        }
        let make = || match &self.question {
            Question::Contains(finder) => search_for(dictionary, finder.needle(), false),
            Question::StartsWith(text) | Question::EndsWith(text) => {
                search_for(dictionary, text.as_bytes(), false)
            }
            Question::Matches(pattern) => {
                let required = pattern.required()?;
                search_for(dictionary, &required.bytes, required.ignores_case)
            }
        };
        self.search.get_or_init(make).as_deref()
    }

    /// Whether what the search finds is the answer, so that no text has to be decoded.
    pub(crate) fn is_answered_by_search(&self) -> bool {
        matches!(self.question, Question::Contains(_))
    }

    /// Takes how many texts were searched in their encoded form, and how many of them had to be
    /// decoded nevertheless.
    pub(crate) fn note_search(&self, searched: usize, decoded: usize) {
        // A part of the texts tells enough.
        if self.searched.load(Ordering::Relaxed) < u32::MAX / 2 {
            let count = |texts| u32::try_from(texts).unwrap_or(u32::MAX / 2);
            self.searched.fetch_add(count(searched), Ordering::Relaxed);
            self.decoded.fetch_add(count(decoded), Ordering::Relaxed);
        }
    }

    /// The answer for a text.
    #[inline]
    fn holds(&self, text: &str) -> bool {
        match &self.question {
            Question::Matches(pattern) => pattern.is_match(text),
            Question::Contains(finder) => finder.find(text.as_bytes()).is_some(),
            Question::StartsWith(start) => text.starts_with(start.as_ref()),
            Question::EndsWith(end) => text.ends_with(end.as_ref()),
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
