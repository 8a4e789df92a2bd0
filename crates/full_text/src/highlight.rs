//! Highlights: an excerpt of a text with its matches marked.
//!
//! The text is cut by the analyzer of its language, as it was for the index; words that one of the
//! query's words, phrases, beginnings or near words match are marked. The piece begins a little
//! before the first of them. It is HTML: marks are `<b>` and `</b>`, and what else means something
//! there is escaped.

use crate::analysis::{Analyzer, Word};
use crate::query::{Node, Query};

/// The options of highlights.
#[derive(Debug, Clone, Copy)]
pub struct HighlightOptions {
    /// Letters of the piece, without marks.
    pub letters_max: usize,
}

impl Default for HighlightOptions {
    fn default() -> Self {
        Self { letters_max: 200 }
    }
}

/// Marks what a query finds.
#[derive(Debug)]
pub struct Highlighter<'q> {
    query: &'q Query,
    options: HighlightOptions,
}

impl<'q> Highlighter<'q> {
    /// The highlighter of a query.
    pub fn new(query: &'q Query, options: HighlightOptions) -> Self {
        Self { query, options }
    }

    /// A piece of a text, with its language tag, in lower case.
    pub fn highlight(&self, text: &str, tag: Option<&str>) -> String {
        let marked = self.marked(text, Analyzer::of_language(tag));
        let (from, to) = self.piece(text, &marked);
        let mut out = String::with_capacity(to - from + 16);
        if from > 0 {
            out.push('…');
        }
        let mut at = from;
        for &(start, end) in marked
            .iter()
            .filter(|(start, end)| *start >= from && *end <= to)
        {
            escape(&text[at..start], &mut out);
            out.push_str("<b>");
            escape(&text[start..end], &mut out);
            out.push_str("</b>");
            at = end;
        }
        escape(&text[at..to], &mut out);
        if to < text.len() {
            out.push('…');
        }
        out
    }

    /// The bytes of the words that match, ascending.
    fn marked(&self, text: &str, analyzer: Analyzer) -> Vec<(usize, usize)> {
        let stems = analyzer.words(text);
        // Both are cut at the same places.
        let plain = match analyzer.has_stems() {
            true => Analyzer::PLAIN.words(text),
            false => stems.clone(),
        };
        let mut is_marked = vec![false; stems.len()];
        self.query.for_each_found(&mut |node| match node {
            Node::Words(words) => mark_phrase(&stems, &analyzer.words(words), &mut is_marked),
            Node::Prefix(beginning) => {
                mark(&plain, &mut is_marked, |word| word.starts_with(beginning));
            }
            Node::Fuzzy(near, distance) => {
                let near: Vec<char> = near.chars().collect();
                mark(&plain, &mut is_marked, |word| {
                    is_near(&near, word, usize::from(*distance))
                });
            }
            Node::All { .. } | Node::Any(_) => {}
        });
        let words = stems.iter().zip(is_marked);
        let words = words.filter(|(_, is_marked)| *is_marked);
        words.map(|(word, _)| (word.from, word.to)).collect()
    }

    /// From where to where the piece goes.
    fn piece(&self, text: &str, marked: &[(usize, usize)]) -> (usize, usize) {
        let first = marked.first().map_or(0, |(start, _)| *start);
        // A quarter of it before the first word, or more where little follows.
        let ahead = self.options.letters_max / 4;
        let behind = letters_behind(&text[first..], self.options.letters_max);
        let ahead = ahead.max(self.options.letters_max.saturating_sub(behind));
        let mut from = first;
        for (at, _) in text[..first].char_indices().rev().take(ahead) {
            from = at;
        }
        let rest = &text[from..];
        let to = rest.char_indices().nth(self.options.letters_max);
        let to = to.map_or(text.len(), |(at, _)| from + at);
        (
            at_word(text, from, first, true),
            at_word(text, to, text.len(), false),
        )
    }
}

fn letters_behind(text: &str, letters_max: usize) -> usize {
    text.chars().take(letters_max).count()
}

/// The next border of a word from there on, or back to the last one.
fn at_word(text: &str, at: usize, limit: usize, is_start: bool) -> usize {
    if at == 0 || at == text.len() {
        return at;
    }
    match is_start {
        true => {
            let space = text[at..limit]
                .char_indices()
                .find(|(_, char)| char.is_whitespace());
            space.map_or(at, |(found, char)| at + found + char.len_utf8())
        }
        false => {
            let space = text[..at]
                .char_indices()
                .rev()
                .find(|(_, char)| char.is_whitespace());
            // A text without spaces is cut where it is.
            space
                .filter(|(found, _)| at - found < 40)
                .map_or(at, |(found, _)| found)
        }
    }
}

fn mark(words: &[Word], is_marked: &mut [bool], matches: impl Fn(&str) -> bool) {
    for (word, is_marked) in words.iter().zip(is_marked) {
        *is_marked |= matches(&word.text);
    }
}

fn mark_phrase(words: &[Word], phrase: &[Word], is_marked: &mut [bool]) {
    let Some(first) = phrase.first() else { return };
    for start in 0..words.len() {
        let found = &words[start..words.len().min(start + phrase.len())];
        let follows = |(word, wanted): (&Word, &Word)| {
            word.text == wanted.text
                && word.position - words[start].position == wanted.position - first.position
        };
        if found.len() == phrase.len() && found.iter().zip(phrase).all(follows) {
            is_marked[start..start + phrase.len()].fill(true);
        }
    }
}

/// Whether a word is at most some letters away from another one: added, left out, other ones, or
/// neighbours that changed places.
pub(crate) fn is_near(wanted: &[char], word: &str, distance: usize) -> bool {
    let word: Vec<char> = word.chars().collect();
    if word.len().abs_diff(wanted.len()) > distance {
        return false;
    }
    // Three rows of the table of optimal string alignment.
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=word.len()).collect();
    for (row, &letter) in wanted.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, &other) in word.iter().enumerate() {
            let changed = last[column] + usize::from(letter != other);
            let mut best = changed.min(last[column + 1] + 1).min(next[column] + 1);
            if row > 0 && column > 0 && letter == word[column - 1] && wanted[row - 1] == other {
                best = best.min(before[column - 1] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut last, next);
    }
    last.last().is_some_and(|found| *found <= distance)
}

fn escape(text: &str, out: &mut String) {
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn highlight(query: &str, text: &str, tag: Option<&str>, letters_max: usize) -> String {
        let query = Query::parse(query).unwrap();
        Highlighter::new(&query, HighlightOptions { letters_max }).highlight(text, tag)
    }

    #[test]
    fn words_phrases_beginnings_and_near_words_are_marked() {
        let text = "Running & <red> wine, red win";
        let marked = highlight("run", text, Some("en"), 200);
        assert_eq!(marked, "<b>Running</b> &amp; &lt;red&gt; wine, red win");
        let marked = highlight("\"red win\" OR runing~1", text, None, 200);
        assert_eq!(
            marked,
            "<b>Running</b> &amp; &lt;red&gt; wine, <b>red</b> <b>win</b>"
        );
        let marked = highlight("wi* NOT red", text, Some("en"), 200);
        assert_eq!(
            marked,
            "Running &amp; &lt;red&gt; <b>wine</b>, red <b>win</b>"
        );
    }

    #[test]
    fn a_piece_is_around_the_first_match_and_ends_at_words() {
        let text = "one two three four five six seven eight nine ten eleven twelve";
        let marked = highlight("six", text, None, 24);
        assert_eq!(marked, "…five <b>six</b> seven eight…");
        assert_eq!(highlight("zero", text, None, 9), "one two…");
        assert_eq!(
            highlight("twelve", text, None, 20),
            "…ten eleven <b>twelve</b>"
        );
    }

    #[test]
    fn distances_count_letters_that_change_places_once() {
        let wanted: Vec<char> = "wine".chars().collect();
        for (word, distance) in [
            ("wine", 0),
            ("wnie", 1),
            ("win", 1),
            ("twines", 2),
            ("vino", 2),
        ] {
            assert!(is_near(&wanted, word, distance), "{word}");
            assert!(
                distance == 0 || !is_near(&wanted, word, distance - 1),
                "{word}"
            );
        }
    }
}
