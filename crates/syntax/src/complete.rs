//! Completion: the tokens that may stand at a place of a text.

use std::ops::Range;

use crate::expected::ExpectedSet;
use crate::lexer::Lexer;
use crate::options::ParserOptions;
use crate::parser::Parser;
use crate::token::TokenKind;

/// What may stand at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The part of the text that is being typed: a word, a variable or a name that ends at the
    /// place; else empty.
    pub replaced: Range<usize>,
    /// What may stand there.
    pub expected: ExpectedSet,
    /// The variables before the place, without their marks.
    pub variables: Vec<String>,
    /// The prefixes before the place, without their colons.
    pub prefixes: Vec<String>,
}

/// What may stand at a byte of a query, or of an update. Whatever is behind it, and whatever is
/// wrong before it, does not matter, as long as the parser finds back.
pub fn completion(
    text: &str,
    place: usize,
    is_update: bool,
    options: &ParserOptions<'_>,
) -> Completion {
    let mut place = place.min(text.len());
    while !text.is_char_boundary(place) {
        place -= 1;
    }
    let start = typed_from(&text[..place]);
    let before = &text[..start];
    let mut completion = Completion {
        replaced: start..place,
        expected: ExpectedSet::default(),
        variables: Vec::new(),
        prefixes: Vec::new(),
    };
    let Ok(mut parser) = Parser::new(before, options, true) else {
        return completion;
    };
    let failure = match is_update {
        true => parser.update_unit().err(),
        false => parser.query_unit().err(),
    };
    completion.expected = parser.expected_at_end(failure.as_deref());
    completion.variables = parser
        .variables()
        .iter()
        .map(|it| (*it).to_owned())
        .collect();
    completion.prefixes = parser.declared_prefixes().map(str::to_owned).collect();
    completion.prefixes.sort();
    completion
}

/// Where what is being typed at the end of a text begins.
fn typed_from(text: &str) -> usize {
    let mut lexer = Lexer::new(text);
    loop {
        let token = lexer.next_token();
        if token.kind == TokenKind::End {
            return text.len();
        }
        if token.end as usize == text.len() {
            let is_typed = matches!(
                token.kind,
                TokenKind::Word
                    | TokenKind::Keyword(_)
                    | TokenKind::BuiltIn(_)
                    | TokenKind::Variable
                    | TokenKind::QuestionMark
                    | TokenKind::PrefixedName
            );
            return match is_typed {
                true => token.start as usize,
                false => text.len(),
            };
        }
    }
}
