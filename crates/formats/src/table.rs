//! Aligned columns for people at a terminal.
//!
//! The first [`SAMPLE_ROWS`] rows are buffered to learn the widths of the columns, then each row is
//! written as it comes: a long answer streams, and a later value that is wider than its column
//! shifts only its own line. A cell wider than [`CELL_WIDTH_MAX`] is cut and ends in `…`; csv, tsv
//! and json show everything. Control characters and direction marks are shown as escapes, so no
//! value can steer the terminal.

use std::sync::Arc;

use orrery_term::{LiteralKind, Shortener, Term, vocabulary::xsd};
use std::fmt::Write as _;

/// Rows that decide the widths.
const SAMPLE_ROWS: usize = 500;
/// Columns of the widest cell shown.
const CELL_WIDTH_MAX: usize = 80;

/// Rows of an answer on their way to a terminal.
#[derive(Debug)]
pub(super) struct Table {
    widths: Vec<usize>,
    header: Vec<String>,
    /// Rows that wait until the widths are known; `None` once they are.
    sample: Option<Vec<Vec<String>>>,
    rows: u64,
    shortener: Arc<Shortener>,
}

impl Table {
    pub(super) fn new(variables: &[String]) -> Self {
        let header: Vec<String> = variables.iter().map(|name| cell_of(name)).collect();
        Self {
            widths: header.iter().map(|name| width_of(name)).collect(),
            header,
            sample: Some(Vec::new()),
            rows: 0,
            shortener: Arc::default(),
        }
    }

    /// Prefixes instead of IRIs.
    pub(super) fn shorten_with(&mut self, shortener: Arc<Shortener>) {
        self.shortener = shortener;
    }

    pub(super) fn row<'a>(
        &mut self,
        row: impl Iterator<Item = Option<&'a Term<'a>>>,
        out: &mut Vec<u8>,
    ) {
        self.rows += 1;
        let shortener = &self.shortener;
        let cells: Vec<String> = row
            .map(|term| term.map_or_else(String::new, |term| show(term, shortener)))
            .collect();
        let Some(sample) = &mut self.sample else {
            write_line(out, &self.widths, &cells);
            return;
        };
        for (width, cell) in self.widths.iter_mut().zip(&cells) {
            *width = (*width).max(width_of(cell));
        }
        sample.push(cells);
        if sample.len() >= SAMPLE_ROWS {
            self.write_sample(out);
        }
    }

    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        self.write_sample(out);
        let noun = if self.rows == 1 { "row" } else { "rows" };
        out.extend_from_slice(format!("{} {noun}\n", self.rows).as_bytes());
    }

    fn write_sample(&mut self, out: &mut Vec<u8>) {
        let Some(sample) = self.sample.take() else {
            return;
        };
        write_line(out, &self.widths, &self.header);
        let rules: Vec<String> = self.widths.iter().map(|&width| "─".repeat(width)).collect();
        write_line(out, &self.widths, &rules);
        for cells in &sample {
            write_line(out, &self.widths, cells);
        }
    }
}

fn write_line(out: &mut Vec<u8>, widths: &[usize], cells: &[String]) {
    for (index, (cell, &width)) in cells.iter().zip(widths).enumerate() {
        if index > 0 {
            out.extend_from_slice(b"  ");
        }
        out.extend_from_slice(cell.as_bytes());
        // No blanks at the end of a line.
        if index + 1 < cells.len() {
            let padding = width.saturating_sub(width_of(cell));
            out.resize(out.len() + padding, b' ');
        }
    }
    out.push(b'\n');
}

/// Columns of a terminal that a cell takes.
fn width_of(cell: &str) -> usize {
    cell.chars().map(width_of_character).sum()
}

/// Two for the wide characters of East Asia and emoji, none for marks on the character before.
///
/// The ranges are those of Unicode's East Asian Width `W` and `F` and of general categories `Mn`
/// and `Me`, joined where only unassigned or rare characters lie between.
fn width_of_character(character: char) -> usize {
    const WIDE: [(u32, u32); 16] = [
        (0x1100, 0x115F),
        (0x231A, 0x231B),
        (0x2E80, 0x303E),
        (0x3041, 0xA4CF),
        (0xA960, 0xA97C),
        (0xAC00, 0xD7A3),
        (0xF900, 0xFAFF),
        (0xFE30, 0xFE6F),
        (0xFF01, 0xFF60),
        (0xFFE0, 0xFFE6),
        (0x16FE0, 0x18DFF),
        (0x1AFF0, 0x1B2FF),
        (0x1F300, 0x1F64F),
        (0x1F680, 0x1F6FF),
        (0x1F900, 0x1FAFF),
        (0x20000, 0x3FFFD),
    ];
    const MARKS: [(u32, u32); 12] = [
        (0x0300, 0x036F),
        (0x0483, 0x0489),
        (0x0591, 0x05BD),
        (0x0610, 0x061A),
        (0x064B, 0x065F),
        (0x0900, 0x0902),
        (0x0E34, 0x0E3A),
        (0x0E47, 0x0E4E),
        (0x1AB0, 0x1AFF),
        (0x1DC0, 0x1DFF),
        (0x20D0, 0x20F0),
        (0xFE00, 0xFE0F),
    ];
    let code = u32::from(character);
    let is_in = |ranges: &[(u32, u32)]| {
        let after = ranges.partition_point(|(first, _)| *first <= code);
        after > 0 && code <= ranges[after - 1].1
    };
    if code < 0x0300 {
        1
    } else if is_in(&MARKS) {
        0
    } else if is_in(&WIDE) {
        2
    } else {
        1
    }
}

/// How a term is shown: strings, numbers and dates as their text, other types in full.
fn show(term: &Term<'_>, shortener: &Shortener) -> String {
    match term {
        Term::Iri(iri) => cell_of(&short(iri, shortener)),
        Term::BlankNode(number) => format!("_:b{number}"),
        Term::Literal(literal) => match &literal.kind {
            LiteralKind::String => cell_of(&literal.lexical),
            LiteralKind::Language(tag) => cell_of(&format!("{}@{tag}", literal.lexical)),
            LiteralKind::Directional(tag, direction) => cell_of(&format!(
                "{}@{tag}--{}",
                literal.lexical,
                direction.as_str()
            )),
            LiteralKind::Typed(datatype) if is_plain(datatype) => cell_of(&literal.lexical),
            LiteralKind::Typed(datatype) => cell_of(&format!(
                "{}^^{}",
                literal.lexical,
                short(datatype, shortener)
            )),
        },
        Term::Triple(_) => cell_of(&term.to_string()),
    }
}

/// An IRI with its prefix, or in brackets.
fn short(iri: &str, shortener: &Shortener) -> String {
    match shortener.shorten(iri) {
        Some((number, local)) => format!("{}:{local}", shortener.prefix(number).0),
        None => format!("<{iri}>"),
    }
}

/// Types whose values speak for themselves.
fn is_plain(datatype: &str) -> bool {
    matches!(
        datatype,
        xsd::INTEGER | xsd::DECIMAL | xsd::DOUBLE | xsd::BOOLEAN | xsd::DATE | xsd::DATE_TIME
    )
}

/// One line, bounded, without characters that would steer the terminal.
fn cell_of(text: &str) -> String {
    let mut cell = String::with_capacity(text.len().min(CELL_WIDTH_MAX));
    let mut width = 0;
    // The length of the longest beginning that leaves room for the mark of a cut.
    let mut cut_at = 0;
    for character in text.chars() {
        let before = cell.len();
        match character {
            '\n' => cell.push_str("\\n"),
            '\r' => cell.push_str("\\r"),
            '\t' => cell.push_str("\\t"),
            other if other.is_control() || is_direction_mark(other) => {
                // Writing to a String cannot fail.
                let _ = write!(cell, "\\u{:04X}", u32::from(other));
            }
            other => cell.push(other),
        }
        width += width_of(&cell[before..]);
        if width > CELL_WIDTH_MAX {
            cell.truncate(cut_at);
            cell.push('…');
            break;
        }
        if width < CELL_WIDTH_MAX {
            cut_at = cell.len();
        }
    }
    cell
}

/// Characters that turn the direction of the text after them, up to the next cells.
fn is_direction_mark(character: char) -> bool {
    matches!(character, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns_and_marks_none() {
        assert_eq!(width_of("abc"), 3);
        assert_eq!(width_of("漢字かな"), 8);
        assert_eq!(width_of("한글"), 4);
        assert_eq!(width_of("e\u{301}"), 1);
        assert_eq!(width_of("\u{1F600}"), 2);
        assert_eq!(width_of("ÄΩЖ…─"), 5);
    }

    #[test]
    fn columns_of_wide_text_are_aligned() {
        let mut out = Vec::new();
        let mut table = Table::new(&["a".to_owned(), "b".to_owned()]);
        for text in ["漢字", "e\u{301}te\u{301}", "plain"] {
            let (term, x) = (Term::string(text), Term::string("x"));
            table.row([Some(&term), Some(&x)].into_iter(), &mut out);
        }
        table.finish(&mut out);
        let text = String::from_utf8(out).unwrap();
        let places: Vec<usize> = text
            .lines()
            .skip(2)
            .take(3)
            .map(|line| width_of(line.strip_suffix('x').unwrap()))
            .collect();
        assert_eq!(places, [7, 7, 7]);
    }

    #[test]
    fn long_cells_are_cut_at_their_width() {
        assert_eq!(cell_of(&"x".repeat(80)), "x".repeat(80));
        assert_eq!(cell_of(&"x".repeat(81)), "x".repeat(79) + "…");
        let wide = cell_of(&"漢".repeat(50));
        assert_eq!(wide, "漢".repeat(39) + "…");
        assert!(width_of(&wide) <= 80);
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(cell_of("a\u{1b}[31m\u{202E}b\n"), "a\\u001B[31m\\u202Eb\\n");
    }
}
