//! The excerpt of an error message: the line, cut around the place, without terminal control
//! characters.

/// Characters of a line that are shown.
const SHOWN_CHARACTERS_MAX: usize = 100;
/// Of these, so many may stand before the place.
const BEFORE_CHARACTERS_MAX: usize = 60;

/// A line and the place on it that a caret marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The line, cut at both ends if it is long.
    pub text: String,
    /// Characters of `text` before the place.
    pub before: usize,
    /// Characters of the place, at least one.
    pub width: usize,
}

impl Excerpt {
    /// The excerpt of a line around a place of `width` characters.
    pub fn of_line(line: &str, column: usize, width: usize) -> Self {
        let skipped = column.saturating_sub(BEFORE_CHARACTERS_MAX);
        let mut text = String::new();
        if skipped > 0 {
            text.push('…');
        }
        let before = column - skipped + usize::from(skipped > 0);
        let mut characters = line.chars().skip(skipped);
        text.extend(
            (&mut characters)
                .take(SHOWN_CHARACTERS_MAX)
                .map(shown_character),
        );
        if characters.next().is_some() {
            text.push('…');
        }
        let shown = text.chars().count();
        Self {
            width: width.min(shown.saturating_sub(before)).max(1),
            before,
            text,
        }
    }

    /// The line, and below it carets under the place; both begin with `margin` and end in a line
    /// feed.
    pub fn lines(&self, number: Option<u64>) -> [String; 2] {
        let number = number.map_or_else(String::new, |number| number.to_string());
        let margin = number.len().max(4);
        let text = self.text.trim_end();
        [
            format!("{number:>margin$} | {text}"),
            format!(
                "{:margin$} | {}{}",
                "",
                " ".repeat(self.before),
                "^".repeat(self.width)
            ),
        ]
    }
}

/// A text of which nothing steers a terminal.
pub(crate) fn shown(text: &str) -> String {
    text.chars().map(shown_character).collect()
}

pub(crate) fn shown_character(character: char) -> char {
    match character {
        '\t' => ' ',
        '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => '\u{FFFD}',
        other if other.is_control() => '\u{FFFD}',
        other => other,
    }
}

/// The line around a place of a text, with the place cut to it; none where nothing stands on the
/// line.
pub(crate) fn excerpt_of(text: &[u8], start: usize, end: usize) -> Option<Excerpt> {
    let start = start.min(text.len());
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let line_start = text[..start]
        .iter()
        .rposition(is_end)
        .map_or(0, |at| at + 1);
    let line_end = text[start..]
        .iter()
        .position(is_end)
        .map_or(text.len(), |at| start + at);
    let count = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().count();
    let line = String::from_utf8_lossy(&text[line_start..line_end]);
    (!line.trim().is_empty()).then(|| {
        Excerpt::of_line(
            &line,
            count(&text[line_start..start]),
            count(&text[start..end.clamp(start, line_end)]),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_place() {
        let excerpt = excerpt_of("a\nb é\tcd e\nf".as_bytes(), 7, 9).unwrap();
        assert_eq!(excerpt.lines(Some(2)), ["   2 | b é cd e", "     |     ^^"]);
        let carets =
            |text, start, end| excerpt_of(text, start, end).unwrap().lines(None)[1].clone();
        assert_eq!(carets(b"ab", 2, 2), "     |   ^");
        assert_eq!(carets(b"a\nb", 0, 3), "     | ^");
        assert_eq!(excerpt_of(b"a\n", 2, 2), None);
    }

    #[test]
    fn long_lines_are_cut_on_both_sides() {
        let line = "x".repeat(500) + "HERE" + &"y".repeat(500);
        let excerpt = Excerpt::of_line(&line, 500, 4);
        let place: String = excerpt
            .text
            .chars()
            .skip(excerpt.before)
            .take(excerpt.width)
            .collect();
        assert_eq!(place, "HERE");
        assert!(excerpt.text.starts_with('…') && excerpt.text.ends_with('…'));
        assert!(excerpt.text.chars().count() <= SHOWN_CHARACTERS_MAX + 2);
    }

    #[test]
    fn nothing_steers_the_terminal() {
        let excerpt = excerpt_of(b"a\x1b[31m\xff", 1, 2).unwrap();
        assert!(!excerpt.text.contains('\x1b'));
    }
}
