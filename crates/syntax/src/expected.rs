//! The expected tokens at a place, in plain words.

use std::fmt;

use crate::token::TokenKind;
use crate::word::Keyword;

/// A sign of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign(u8);

macro_rules! signs {
    ($($kind:ident = $place:literal $text:literal),* $(,)?) => {
        const SIGNS: [&str; 33] = [$($text),*];

        /// The place of a sign in the list.
        #[inline]
        const fn sign_place(kind: TokenKind) -> Option<u32> {
            match kind {
                $(TokenKind::$kind => Some($place),)*
                _ => None,
            }
        }
    };
}

signs! {
    LeftBrace = 0 "{",
    RightBrace = 1 "}",
    LeftParen = 2 "(",
    RightParen = 3 ")",
    LeftBracket = 4 "[",
    RightBracket = 5 "]",
    LeftTriple = 6 "<<",
    RightTriple = 7 ">>",
    LeftTripleTerm = 8 "<<(",
    RightTripleTerm = 9 ")>>",
    LeftAnnotation = 10 "{|",
    RightAnnotation = 11 "|}",
    Dot = 12 ".",
    Semicolon = 13 ";",
    Comma = 14 ",",
    Star = 15 "*",
    Slash = 16 "/",
    Plus = 17 "+",
    Minus = 18 "-",
    Bar = 19 "|",
    Or = 20 "||",
    And = 21 "&&",
    Not = 22 "!",
    Equal = 23 "=",
    NotEqual = 24 "!=",
    Less = 25 "<",
    LessOrEqual = 26 "<=",
    Greater = 27 ">",
    GreaterOrEqual = 28 ">=",
    Caret = 29 "^",
    Datatype = 30 "^^",
    QuestionMark = 31 "?",
    Tilde = 32 "~",
}

impl Sign {
    /// How it is written.
    pub fn text(self) -> &'static str {
        SIGNS[usize::from(self.0)]
    }
}

/// What stands for many tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Thing {
    /// A variable.
    Variable,
    /// An IRI or prefixed name.
    Iri,
    /// An IRI in angle brackets.
    FullIri,
    /// The name of a prefix with its colon.
    Prefix,
    /// A variable, IRI, literal or blank node.
    Term,
    /// A predicate: a variable, an IRI, `a`, or a path.
    Predicate,
    /// A step of a path.
    Path,
    /// A value that stands for itself: no variable, no blank node.
    Data,
    /// What a filter or a function computes with.
    Expression,
    /// A function's name.
    Function,
    /// A string.
    String,
    /// A whole number from zero.
    WholeNumber,
    /// A language tag.
    LanguageTag,
    /// The end of the text.
    End,
}

const THINGS: [(Thing, &str); 14] = [
    (Thing::Variable, "a variable"),
    (Thing::Iri, "an IRI"),
    (Thing::FullIri, "an IRI in `<>`"),
    (Thing::Prefix, "a prefix with its colon"),
    (Thing::Term, "a term"),
    (Thing::Predicate, "a predicate"),
    (Thing::Path, "a path"),
    (Thing::Data, "a value"),
    (Thing::Expression, "an expression"),
    (Thing::Function, "a function"),
    (Thing::String, "a string"),
    (Thing::WholeNumber, "a whole number"),
    (Thing::LanguageTag, "a language tag"),
    (Thing::End, "the end"),
];

/// One of the things that may stand at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A word of the grammar.
    Keyword(Keyword),
    /// A sign.
    Sign(Sign),
    /// One of many tokens.
    Thing(Thing),
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keyword(keyword) => f.write_str(keyword.text()),
            Self::Sign(sign) => write!(f, "`{}`", sign.text()),
            Self::Thing(thing) => f.write_str(THINGS[*thing as usize].1),
        }
    }
}

const FIRST_SIGN: u32 = 64;
const FIRST_THING: u32 = FIRST_SIGN + SIGNS.len() as u32;

/// A set of [`Expected`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedSet(u128);

impl ExpectedSet {
    pub(crate) fn clear(&mut self) {
        self.0 = 0;
    }

    /// Adds a keyword or sign; other kinds of tokens are expected as things.
    #[inline]
    pub(crate) fn token(&mut self, kind: TokenKind) {
        match kind {
            TokenKind::Keyword(keyword) => self.0 |= 1 << (keyword as u32),
            kind => {
                if let Some(place) = sign_place(kind) {
                    self.0 |= 1 << (FIRST_SIGN + place);
                }
            }
        }
    }

    #[inline]
    pub(crate) fn thing(&mut self, thing: Thing) {
        self.0 |= 1 << (FIRST_THING + thing as u32);
    }

    /// Whether this keyword may stand there.
    pub fn has_keyword(self, keyword: Keyword) -> bool {
        self.0 & (1 << (keyword as u32)) != 0
    }

    /// Whether this may stand there.
    pub fn has_thing(self, thing: Thing) -> bool {
        self.0 & (1 << (FIRST_THING + thing as u32)) != 0
    }

    /// Whether nothing is known.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// All of it: things first, then signs, then keywords.
    pub fn iter(self) -> impl Iterator<Item = Expected> {
        let things = THINGS.iter().map(|(thing, _)| Expected::Thing(*thing));
        let signs = (0..SIGNS.len() as u8).map(|place| Expected::Sign(Sign(place)));
        let keywords = Keyword::ALL.iter().map(|it| Expected::Keyword(*it));
        let all = things.chain(signs).chain(keywords);
        all.filter(move |it| self.0 & (1 << bit(*it)) != 0)
    }
}

fn bit(expected: Expected) -> u32 {
    match expected {
        Expected::Keyword(keyword) => keyword as u32,
        Expected::Sign(sign) => FIRST_SIGN + u32::from(sign.0),
        Expected::Thing(thing) => FIRST_THING + thing as u32,
    }
}

/// The most that a sentence lists.
const LISTED_MAX: usize = 8;

/// A list for people: `a variable, an IRI or `{``.
impl fmt::Display for ExpectedSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<Expected> = self.iter().collect();
        let listed = &all[..all.len().min(LISTED_MAX)];
        for (place, expected) in listed.iter().enumerate() {
            match place {
                0 => {}
                _ if place + 1 == all.len() => f.write_str(" or ")?,
                _ => f.write_str(", ")?,
            }
            write!(f, "{expected}")?;
        }
        match all.len() > listed.len() {
            true => f.write_str(" …"),
            false => Ok(()),
        }
    }
}
