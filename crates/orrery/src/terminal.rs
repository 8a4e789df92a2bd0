//! Protection of a terminal from foreign text: replaces characters that a terminal takes for
//! commands.

use std::borrow::Cow;

/// A text without characters that a terminal obeys, or that reorder the rest of a line; line ends
/// and tabs stay.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let is_harmful = |c: char| !matches!(c, '\n' | '\t') && is_obeyed(c);
    match text.contains(is_harmful) {
        false => Cow::Borrowed(text),
        true => text
            .chars()
            .map(|c| if is_harmful(c) { '·' } else { c })
            .collect(),
    }
}

/// Whether a character is invisible: a control character, or one that changes the text direction.
pub(crate) fn is_obeyed(c: char) -> bool {
    // Unicode Standard Annex #9, explicit formatting characters.
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_told_what_to_do() {
        assert_eq!(harmless("a\tb\nc\u{e4}"), "a\tb\nc\u{e4}");
        assert_eq!(harmless("\u{1b}]0;x\u{7}\r"), "·]0;x··");
        assert_eq!(harmless("\u{9b}2J\u{7f}"), "·2J·");
        assert_eq!(harmless("\u{202e}cba\u{2066}"), "·cba·");
    }
}
