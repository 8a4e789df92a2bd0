//! Trigrams of a text, which index substrings and regular expressions.
//!
//! ```text
//! text   --[fold]--> folded  -->  every three characters of it, as terms of one field
//! needle --[fold]--> folded  -->  the same of the needle: AND and OR of trigrams [gram_query]  --[gram_search]--> numbers of documents
//! ```
//!
//! A document that a query finds need not match: whoever asks looks at it again. What has to hold
//! is that each document which matches is found. For that folding is done character by character:
//! the folded needle is a part of the folded text wherever the needle is a part of the text, in
//! either case and in small or capital letters. Needles with fewer than three characters say
//! nothing.
//!
//! Here: how tantivy is told the grams of a text.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use crate::fold::fold_character;

/// Name of the field with the grams, and of what cuts texts into them.
pub(crate) const GRAMS: &str = "grams";
/// Characters of a gram.
pub(crate) const GRAM_CHARACTERS: usize = 3;

/// Cuts texts into grams.
#[derive(Clone, Default)]
pub(crate) struct GramTokenizer {
    folded: Vec<char>,
    token: Token,
}

/// The grams of one text.
pub(crate) struct GramStream<'a> {
    folded: &'a [char],
    next: usize,
    token: &'a mut Token,
}

impl Tokenizer for GramTokenizer {
    type TokenStream<'a> = GramStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> GramStream<'a> {
        self.folded.clear();
        for character in text.chars() {
            fold_character(character, &mut |character| self.folded.push(character));
        }
        self.token.reset();
        GramStream {
            folded: &self.folded,
            next: 0,
            token: &mut self.token,
        }
    }
}

impl TokenStream for GramStream<'_> {
    fn advance(&mut self) -> bool {
        let Some(gram) = self.folded.get(self.next..self.next + GRAM_CHARACTERS) else {
            return false;
        };
        self.next += 1;
        // Where it stands is not kept.
        self.token.position = 0;
        self.token.text.clear();
        self.token.text.extend(gram);
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}
