//! Row serializers of JSON, XML, CSV and TSV, and their serialized terms.
//!
//! A solution comes as terms, or as terms that are serialized already and only copied
//! ([`orrery_sparql::SolutionWriter`]).

use std::ops::Range;

use orrery_sparql::{SolutionWriter, WrittenCells};
use orrery_term::{LiteralKind, Term};

use super::json;
use super::text::{
    find_byte, write_blank_node_label, write_escaped, write_ntriples_term, write_turtle_term,
    write_xml_text,
};

/// A format, and what it writes of variables in each row.
#[derive(Debug)]
pub(super) enum RowFormat {
    Json { keys: Vec<Vec<u8>> },
    Xml { openings: Vec<Vec<u8>> },
    Csv,
    Tsv,
}

impl RowFormat {
    /// Appends a solution: for each variable, what `write` appends, or nothing. The first solution
    /// of an answer has no separator before it.
    #[inline]
    pub(super) fn row<T>(
        &self,
        row: impl Iterator<Item = Option<T>>,
        is_first: bool,
        out: &mut Vec<u8>,
        write: impl Fn(&mut Vec<u8>, T),
    ) {
        let write_if_bound = |out: &mut Vec<u8>, cell: Option<T>| {
            if let Some(cell) = cell {
                write(out, cell);
            }
        };
        match self {
            Self::Json { keys } => {
                if !is_first {
                    out.push(b',');
                }
                json::write_row(out, keys, row, write);
            }
            Self::Xml { openings } => xml_row(out, openings, row, write),
            Self::Csv => write_separated(out, b",", b"\r\n", row, write_if_bound),
            Self::Tsv => write_separated(out, b"\t", b"\n", row, write_if_bound),
        }
    }
}

impl SolutionWriter for RowFormat {
    #[inline]
    fn write_term(&self, term: &Term<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Json { .. } => json::write_term(out, term),
            Self::Xml { .. } => write_xml_term(out, term),
            Self::Csv => write_csv_term(out, term),
            Self::Tsv => write_turtle_term(out, term),
        }
    }

    fn row_bytes(&self, columns: usize) -> usize {
        const OF_COLUMN: usize = "</binding>".len();
        const OF_ROW: usize = "<result></result>".len();
        let names = match self {
            Self::Json { keys } => keys,
            Self::Xml { openings } => openings,
            Self::Csv | Self::Tsv => return columns + 1,
        };
        let names: usize = names.iter().map(Vec::len).sum();
        names + columns * OF_COLUMN + OF_ROW
    }

    fn write_rows(
        &self,
        cells: &WrittenCells,
        rows: Range<usize>,
        is_first: bool,
        out: &mut Vec<u8>,
    ) {
        let columns = cells.columns();
        let first = rows.start;
        for row in rows {
            let of_row = (0..columns).map(|column| cells.cell(row, column));
            self.row(of_row, is_first && row == first, out, |out, cell| {
                out.extend_from_slice(cell);
            });
        }
    }
}

/// Appends fields with a separator between them and a line end after them.
pub(super) fn write_separated<T>(
    out: &mut Vec<u8>,
    separator: &[u8],
    line_end: &[u8],
    fields: impl IntoIterator<Item = T>,
    write: impl Fn(&mut Vec<u8>, T),
) {
    for (index, field) in fields.into_iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(separator);
        }
        write(out, field);
    }
    out.extend_from_slice(line_end);
}

/// Appends a value as CSV has it: no types, no language tags, quoted if need be (RFC 4180).
fn write_csv_term(out: &mut Vec<u8>, term: &Term<'_>) {
    let text = match term {
        Term::BlankNode(number) => {
            out.extend_from_slice(b"_:");
            write_blank_node_label(out, *number);
            return;
        }
        Term::Iri(iri) => iri.as_bytes(),
        Term::Literal(literal) => literal.lexical.as_bytes(),
        Term::Triple(_) => {
            let mut text = Vec::new();
            write_ntriples_term(&mut text, term);
            return write_csv_field(out, &text);
        }
    };
    write_csv_field(out, text);
}

pub(super) fn write_csv_field(out: &mut Vec<u8>, text: &[u8]) {
    if find_byte(text, |byte| {
        (byte == b'"') | (byte == b',') | (byte == b'\n') | (byte == b'\r')
    })
    .is_none()
    {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    write_escaped(
        out,
        text,
        |byte| byte == b'"',
        |out, _| out.extend_from_slice(b"\"\""),
    );
    out.push(b'"');
}

/// The namespace of the attribute that tells a text's base direction.
pub(super) const ITS: &str = "http://www.w3.org/2005/11/its";

pub(super) const XML_OPENING: &[u8] =
    br#"<?xml version="1.0"?><sparql xmlns="http://www.w3.org/2005/sparql-results#">"#;

/// Appends the head; returns the opening `<binding>` tag of each variable.
pub(super) fn xml_head(out: &mut Vec<u8>, variables: &[String]) -> Vec<Vec<u8>> {
    out.extend_from_slice(XML_OPENING);
    out.extend_from_slice(b"<head>");
    let openings = variables
        .iter()
        .map(|variable| {
            let mut name = Vec::new();
            write_xml_text(&mut name, variable);
            out.extend_from_slice(b"<variable name=\"");
            out.extend_from_slice(&name);
            out.extend_from_slice(b"\"/>");
            [b"<binding name=\"", name.as_slice(), b"\">"].concat()
        })
        .collect();
    out.extend_from_slice(b"</head><results>");
    openings
}

fn xml_row<T>(
    out: &mut Vec<u8>,
    openings: &[Vec<u8>],
    row: impl Iterator<Item = Option<T>>,
    write: impl Fn(&mut Vec<u8>, T),
) {
    out.extend_from_slice(b"<result>");
    for (opening, term) in openings.iter().zip(row) {
        let Some(term) = term else { continue };
        out.extend_from_slice(opening);
        write(out, term);
        out.extend_from_slice(b"</binding>");
    }
    out.extend_from_slice(b"</result>");
}

fn write_xml_term(out: &mut Vec<u8>, term: &Term<'_>) {
    match term {
        Term::Iri(iri) => {
            out.extend_from_slice(b"<uri>");
            write_xml_text(out, iri);
            out.extend_from_slice(b"</uri>");
        }
        Term::BlankNode(number) => {
            out.extend_from_slice(b"<bnode>");
            write_blank_node_label(out, *number);
            out.extend_from_slice(b"</bnode>");
        }
        Term::Literal(literal) => {
            match &literal.kind {
                LiteralKind::String => out.extend_from_slice(b"<literal>"),
                LiteralKind::Language(tag) => {
                    out.extend_from_slice(b"<literal xml:lang=\"");
                    write_xml_text(out, tag);
                    out.extend_from_slice(b"\">");
                }
                LiteralKind::Directional(tag, direction) => {
                    out.extend_from_slice(b"<literal xml:lang=\"");
                    write_xml_text(out, tag);
                    out.extend_from_slice(b"\" its:dir=\"");
                    out.extend_from_slice(direction.as_str().as_bytes());
                    out.extend_from_slice(b"\" its:version=\"2.0\" xmlns:its=\"");
                    out.extend_from_slice(ITS.as_bytes());
                    out.extend_from_slice(b"\">");
                }
                LiteralKind::Typed(datatype) => {
                    out.extend_from_slice(b"<literal datatype=\"");
                    write_xml_text(out, datatype);
                    out.extend_from_slice(b"\">");
                }
            }
            write_xml_text(out, &literal.lexical);
            out.extend_from_slice(b"</literal>");
        }
        Term::Triple(triple) => {
            out.extend_from_slice(b"<triple>");
            for (name, part) in ["subject", "predicate", "object"]
                .into_iter()
                .zip(triple.parts())
            {
                out.extend_from_slice(format!("<{name}>").as_bytes());
                write_xml_term(out, part);
                out.extend_from_slice(format!("</{name}>").as_bytes());
            }
            out.extend_from_slice(b"</triple>");
        }
    }
}
