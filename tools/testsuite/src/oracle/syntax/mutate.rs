//! The mutator of texts: lost, doubled, swapped and foreign tokens and characters.

use std::mem::discriminant;
use std::ops::Range;

use orrery_syntax::{Lexer, Token, TokenKind};

use super::super::random::Random;

/// Texts, and tokens of them all.
pub(super) struct Mutations<'t> {
    texts: &'t [(String, bool)],
    tokens: Vec<(TokenKind, &'t str)>,
}

/// How often a text is damaged at most.
const DAMAGES_MAX: usize = 3;
/// Signs that are put in anywhere.
const SIGNS: &[u8] = b" .;,(){}[]<>?:#|/*+-!=&^@'\"a1\\\n~_";

fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer::new(text);
    let tokens = std::iter::from_fn(|| {
        let token = lexer.next_token();
        (token.kind != TokenKind::End).then_some(token)
    });
    tokens.collect()
}

fn range(token: Token) -> Range<usize> {
    token.start as usize..token.end as usize
}

impl<'t> Mutations<'t> {
    pub(super) fn of(texts: &'t [(String, bool)]) -> Self {
        let of_text = |(text, _): &'t (String, bool)| {
            tokens(text)
                .into_iter()
                .map(|token| (token.kind, token.text(text)))
        };
        Self {
            texts,
            tokens: texts.iter().flat_map(of_text).collect(),
        }
    }

    /// A damaged text, and whether it was an update.
    pub(super) fn text(&self, random: &mut Random) -> (String, bool) {
        let (text, is_update) = &self.texts[random.below(self.texts.len())];
        let mut text = text.clone();
        for _ in 0..=random.below(DAMAGES_MAX) {
            self.damage(&mut text, random);
        }
        (text, *is_update)
    }

    fn damage(&self, text: &mut String, random: &mut Random) {
        let here = tokens(text);
        if here.is_empty() {
            return;
        }
        let token = here[random.below(here.len())];
        let mut place = random.below(text.len());
        while !text.is_char_boundary(place) {
            place -= 1;
        }
        match random.below(8) {
            0 => text.replace_range(range(token), ""),
            1 => text.insert_str(token.start as usize, &format!("{} ", self.any(random))),
            2 => text.replace_range(range(token), self.any(random)),
            // Likes for likes, which often leaves the text right.
            3 | 4 => text.replace_range(range(token), self.like(token.kind, random)),
            5 => {
                let other = here[random.below(here.len())];
                if token.end <= other.start {
                    let (first, second) =
                        (token.text(text).to_owned(), other.text(text).to_owned());
                    text.replace_range(range(other), &first);
                    text.replace_range(range(token), &second);
                }
            }
            6 => {
                let lost = text[place..].chars().next().map_or(0, char::len_utf8);
                text.replace_range(place..place + lost, "");
            }
            _ => text.insert(place, char::from(random.pick(SIGNS))),
        }
    }

    fn any(&self, random: &mut Random) -> &'t str {
        self.tokens[random.below(self.tokens.len())].1
    }

    /// A token of the same kind, if one is found soon.
    fn like(&self, kind: TokenKind, random: &mut Random) -> &'t str {
        let mut last = "";
        for _ in 0..64 {
            let (other, text) = self.tokens[random.below(self.tokens.len())];
            last = text;
            if discriminant(&other) == discriminant(&kind) {
                break;
            }
        }
        last
    }
}
