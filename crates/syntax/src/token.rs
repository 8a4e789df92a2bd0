//! The tokens of SPARQL.

use crate::word::{BuiltIn, Keyword};

/// A token: what it is, and which bytes of the text it takes. Its text is borrowed from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Its first byte.
    pub start: u32,
    /// Behind its last byte.
    pub end: u32,
}

impl Token {
    /// Its part of the text.
    pub fn text<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

/// Kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Behind the last one.
    End,
    /// `<http://example.com/>`, escapes perhaps inside.
    Iri,
    /// `prefix:local`, `prefix:`, `:local` or `:`.
    PrefixedName,
    /// `_:label`.
    BlankNodeLabel,
    /// `?x` or `$x`.
    Variable,
    /// A string of either quote, short or long.
    String,
    /// `@en`, `@en-GB`, `@ar--rtl`.
    LanguageTag,
    /// `12`.
    Integer,
    /// `1.2`.
    Decimal,
    /// `1e2`.
    Double,
    /// A word that the grammar knows.
    Keyword(Keyword),
    /// The name of a built-in function or aggregate.
    BuiltIn(BuiltIn),
    /// Another word.
    Word,
    /// `{`
    LeftBrace,
    /// `}`
    RightBrace,
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `[`
    LeftBracket,
    /// `]`
    RightBracket,
    /// `<<`
    LeftTriple,
    /// `>>`
    RightTriple,
    /// `<<(`
    LeftTripleTerm,
    /// `)>>`
    RightTripleTerm,
    /// `{|`
    LeftAnnotation,
    /// `|}`
    RightAnnotation,
    /// `.`
    Dot,
    /// `;`
    Semicolon,
    /// `,`
    Comma,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `|`
    Bar,
    /// `||`
    Or,
    /// `&&`
    And,
    /// `!`
    Not,
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `^`
    Caret,
    /// `^^`
    Datatype,
    /// `?` that begins no variable.
    QuestionMark,
    /// `~`
    Tilde,
    /// A string that is not closed where it must be: at the end of its line, or of the text.
    UnclosedString,
    /// A character that begins no token.
    Unknown,
}
