//! Case folding of texts.
//!
//! Each character by itself becomes a few others: its small letter, of that the capital one, of
//! that the small one again; the combining dot above is left out. So `ß`, `ẞ` and `SS` are `ss`,
//! the Kelvin sign is `k`, `İ`, `ı` and `I` are `i`. That is coarser than Unicode's simple case
//! folding, which regular expressions with the flag `i` use, and a text in small letters (`LCASE`)
//! or capitals (`UCASE`) is folded to the same as the text itself; a test looks at every character.

/// What Unicode's simple case folding has the same, but has no common capital letter of one
/// character.
const ALIKE: [(char, char); 3] = [
    ('\u{1fd3}', '\u{390}'),
    ('\u{1fe3}', '\u{3b0}'),
    ('\u{fb05}', '\u{fb06}'),
];
/// The small letter of `İ` is an `i` with it.
const DOT_ABOVE: char = '\u{307}';

/// A text without case. The folded form of two texts, one behind the other, is theirs, one behind
/// the other.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for character in text.chars() {
        fold_character(character, &mut |character| folded.push(character));
    }
    folded
}

/// Gives what a character becomes to `push`.
#[inline]
pub(crate) fn fold_character(character: char, push: &mut impl FnMut(char)) {
    match character.is_ascii() {
        true => push(character.to_ascii_lowercase()),
        false => fold_other(character, push),
    }
}

fn fold_other(character: char, push: &mut impl FnMut(char)) {
    let alike = ALIKE.iter().find(|(other, _)| *other == character);
    let character = alike.map_or(character, |(_, same)| *same);
    for small in character.to_lowercase() {
        for capital in small.to_uppercase() {
            for folded in capital.to_lowercase() {
                if folded != DOT_ABOVE {
                    push(folded);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_case_of_no_character_matters() {
        for character in '\0'..=char::MAX {
            let text = character.to_string();
            let folded = fold(&text);
            assert_eq!(fold(&text.to_lowercase()), folded, "{character:?} in small");
            assert_eq!(
                fold(&text.to_uppercase()),
                folded,
                "{character:?} in capitals"
            );
            assert_eq!(fold(&folded), folded, "{character:?} twice");
        }
    }

    #[test]
    fn words_are_folded() {
        assert_eq!(fold("STRASSE Straße"), "strasse strasse");
        assert_eq!(fold("\u{212a}İı"), "kii");
        assert_eq!(fold("ΟΔΟΣ οδος"), "οδοσ οδοσ");
    }
}
