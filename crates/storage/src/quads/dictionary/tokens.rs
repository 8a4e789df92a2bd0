//! The tokenizer that cuts literals into words and separators for the vocabulary.
//!
//! A token is a longest run of word bytes (letters, digits, everything beyond
//! ASCII) or a longest run of other bytes. Tokens of both kinds alternate, so
//! two words never touch: the single blank between two words need not be
//! written ("spaceless words", Moura, Navarro, Ziviani, 1997), and is no token here
//! but a mark of the word after it.

/// Whether a byte belongs to a word.
#[inline]
pub(super) const fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// A token, with its first bytes also at hand as a number.
#[derive(Clone, Copy, Default)]
pub(super) struct Token<'a> {
    /// The token.
    pub(super) bytes: &'a [u8],
    /// The first 16 bytes, little-endian; zeros beyond the token's end.
    pub(super) head: u128,
    /// Whether this is a word and a single blank parts it from the word before.
    pub(super) is_after_blank: bool,
}

impl<'a> Token<'a> {
    /// A token on its own.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            head: load_head(bytes),
            is_after_blank: false,
        }
    }
}

/// Bytes of a token that are at hand as a number.
pub(super) const HEAD_BYTES: usize = 16;

#[inline]
fn load_head(bytes: &[u8]) -> u128 {
    if let Some(head) = bytes.first_chunk::<HEAD_BYTES>() {
        return u128::from_le_bytes(*head);
    }
    let mut head = [0; HEAD_BYTES];
    head[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(head)
}

/// The highest bit of each byte that belongs to a word: [`is_word_byte`] for 16
/// bytes at a time, without a branch. The encoder cuts 10 million words a
/// second and mispredicts each word's end otherwise.
#[inline]
const fn word_bytes(head: u128) -> u128 {
    const fn repeat(byte: u8) -> u128 {
        u128::from_le_bytes([byte; HEAD_BYTES])
    }
    /// Bytes of `low` (all below 0x80) within `first..=last`: no sum carries over.
    const fn within(low: u128, first: u8, last: u8) -> u128 {
        (low + repeat(0x80 - first)) & !(low + repeat(0x7F - last))
    }
    let low = head & repeat(0x7F);
    let letters = within(low | repeat(0x20), b'a', b'z');
    let digits = within(low, b'0', b'9');
    (head | letters | digits) & repeat(0x80)
}

/// The tokens of a byte string, in order.
pub(super) struct Tokens<'a> {
    rest: &'a [u8],
    /// Whether the last token was a word.
    is_after_word: bool,
}

impl<'a> Tokens<'a> {
    /// Tokens of `text`.
    pub(super) const fn new(text: &'a [u8]) -> Self {
        Self {
            rest: text,
            is_after_word: false,
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    #[inline]
    fn next(&mut self) -> Option<Token<'a>> {
        let is_after_blank = self.is_after_word
            && self.rest.first() == Some(&b' ')
            && self.rest.get(1).is_some_and(|&byte| is_word_byte(byte));
        if is_after_blank {
            self.rest = &self.rest[1..];
        }
        let is_word = is_word_byte(*self.rest.first()?);
        self.is_after_word = is_word;
        let head = load_head(self.rest);
        let same = word_bytes(head) ^ if is_word { 0 } else { u128::MAX };
        let other = !same & u128::from_le_bytes([0x80; HEAD_BYTES]);
        let mut length = (other.trailing_zeros() / 8) as usize;
        if length == HEAD_BYTES {
            length += self.rest[HEAD_BYTES.min(self.rest.len())..]
                .iter()
                .position(|&byte| is_word_byte(byte) != is_word)
                .unwrap_or(self.rest.len());
        }
        // The zeros beyond the end of the text count as no word.
        let (bytes, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        let unused_bits = 128 - 8 * bytes.len().min(HEAD_BYTES) as u32;
        Some(Token {
            bytes,
            head: head & (u128::MAX >> unused_bits),
            is_after_blank,
        })
    }
}

/// The largest place at or before `place` where encoding of `key` may begin
/// without cutting a word. The first byte of a key is its kind and stands alone.
pub(super) fn align_to_token(key: &[u8], place: usize) -> usize {
    let mut place = place.min(key.len());
    while place > 1 && place < key.len() {
        let (before, at) = (is_word_byte(key[place - 1]), is_word_byte(key[place]));
        if !(before && at) {
            break;
        }
        place -= 1;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_and_gaps_alternate() {
        let tokens: Vec<&[u8]> = Tokens::new("ab, çd 12 ".as_bytes())
            .map(|token| token.bytes)
            .collect();
        assert_eq!(
            tokens,
            [b"ab".as_slice(), b", ", "çd".as_bytes(), b"12", b" "]
        );
    }

    #[test]
    fn alignment_goes_back_to_the_start_of_a_word() {
        assert_eq!(align_to_token(b"Sfoo bar", 7), 5);
        assert_eq!(align_to_token(b"Sfoo bar", 8), 8);
        assert_eq!(align_to_token(b"Sfoo bar", 4), 4);
        assert_eq!(align_to_token(b"Sfoo bar", 3), 1);
        assert_eq!(align_to_token(b"Sfoo", 0), 0);
    }

    proptest! {
        #[test]
        fn tokens_are_the_runs_of_equal_class(text in "[a-f0-9 ,@`{\\[é\u{0}]{0,80}") {
            let mut rest = text.as_bytes();
            for token in Tokens::new(text.as_bytes()) {
                if token.is_after_blank {
                    prop_assert!(rest.len() < text.len() && rest[0] == b' ' && is_word_byte(token.bytes[0]));
                    rest = &rest[1..];
                }
                let class = is_word_byte(rest[0]);
                let length = rest.iter().take_while(|&&byte| is_word_byte(byte) == class).count();
                prop_assert_eq!(token.bytes, &rest[..length]);
                prop_assert_eq!(token.head, Token::new(token.bytes).head);
                prop_assert_eq!(is_word_byte(token.bytes[0]), class);
                rest = &rest[length..];
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn classes_of_many_bytes_agree_with_one(bytes: [u8; 16]) {
            let mask = word_bytes(u128::from_le_bytes(bytes)).to_le_bytes();
            for (byte, class) in bytes.iter().zip(mask) {
                prop_assert_eq!(class == 0x80, is_word_byte(*byte));
            }
        }
    }
}
