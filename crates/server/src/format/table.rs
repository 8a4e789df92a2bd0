//! Aligned columns for people at a terminal.
//!
//! The first [`SAMPLE_ROWS`] rows are kept to learn the widths of the columns, then
//! everything is written as it comes: a long answer streams, and a later value
//! that is wider than its column only shifts its own line. A cell longer than
//! [`CELL_CHARACTERS_MAX`] is cut and ends in `…`; csv, tsv and json show everything.
//! Control characters are shown as escapes, so no value can steer the terminal.

use orrery_term::{LiteralKind, Term, vocabulary::xsd};
use std::fmt::Write as _;

/// Rows that decide the widths.
const SAMPLE_ROWS: usize = 500;
/// Longest cell shown.
const CELL_CHARACTERS_MAX: usize = 80;

/// Rows of an answer on their way to a terminal.
#[derive(Debug)]
pub(super) struct Table {
    widths: Vec<usize>,
    header: Vec<String>,
    /// Rows that wait until the widths are known; `None` once they are.
    sample: Option<Vec<Vec<String>>>,
    rows: u64,
}

impl Table {
    pub(super) fn new(variables: &[String]) -> Self {
        let header: Vec<String> = variables.iter().map(|name| cell_of(name)).collect();
        Self {
            widths: header.iter().map(|name| width_of(name)).collect(),
            header,
            sample: Some(Vec::new()),
            rows: 0,
        }
    }

    pub(super) fn row<'a>(
        &mut self,
        row: impl Iterator<Item = Option<&'a Term<'a>>>,
        out: &mut Vec<u8>,
    ) {
        self.rows += 1;
        let cells: Vec<String> = row
            .map(|term| term.map_or_else(String::new, show))
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

    pub(super) fn finish(mut self, out: &mut Vec<u8>) {
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

/// Characters, not columns: wide scripts come out slightly ragged, which a table
/// of widths per character would cost more than it is worth.
fn width_of(cell: &str) -> usize {
    cell.chars().count()
}

/// How a term is shown: strings, numbers and dates as their text, other types in full.
fn show(term: &Term<'_>) -> String {
    match term {
        Term::Iri(iri) => cell_of(&format!("<{iri}>")),
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
            LiteralKind::Typed(datatype) => cell_of(&format!("{}^^<{datatype}>", literal.lexical)),
        },
        Term::Triple(_) => cell_of(&term.to_string()),
    }
}

/// Types whose values speak for themselves.
fn is_plain(datatype: &str) -> bool {
    matches!(
        datatype,
        xsd::INTEGER | xsd::DECIMAL | xsd::DOUBLE | xsd::BOOLEAN | xsd::DATE | xsd::DATE_TIME
    )
}

/// One line, bounded, without control characters.
fn cell_of(text: &str) -> String {
    let mut cell = String::with_capacity(text.len().min(CELL_CHARACTERS_MAX));
    for (index, character) in text.chars().enumerate() {
        if index + 1 >= CELL_CHARACTERS_MAX && text.chars().nth(CELL_CHARACTERS_MAX).is_some() {
            cell.push('…');
            break;
        }
        match character {
            '\n' => cell.push_str("\\n"),
            '\r' => cell.push_str("\\r"),
            '\t' => cell.push_str("\\t"),
            other if other.is_control() => {
                // Writing to a String cannot fail.
                let _ = write!(cell, "\\u{:04X}", u32::from(other));
            }
            other => cell.push(other),
        }
    }
    cell
}
