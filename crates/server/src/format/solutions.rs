//! Serializers for the answers of SELECT and ASK.
//!
//! Own writers rather than `sparesults`': that crate builds a vector of events per row and
//! leaves an IRI with a comma unquoted in CSV. Nanoseconds per term of a three-column BSBM
//! answer, ours and `sparesults` 0.3.5: JSON 39 and 602, XML 47 and 470, CSV 26 and 71,
//! TSV 42 and 93 (`cargo bench -p orrery-server --bench solutions` repeats it). Its parsers are the oracle
//! in the tests, and the JSON is the same to the letter.
//!
//! XML 1.0 has no way to write most control characters; they come out as U+FFFD
//! there, and only there: JSON, TSV and CSV keep them. A whole answer lost for one odd
//! character would be worse. (RDF/XML refuses: a graph is often loaded elsewhere.)

use super::{
    FormatError, SolutionFormat,
    columnar::{Columnar, Container},
    json,
    rows::{XML_OPENING, write_csv_term, write_separated, xml_head, xml_row},
    table::Table,
    text::write_turtle_term,
};
use std::path::Path;

use orrery_term::{Prefixes, Shortener, Term};

/// Writes one answer: [`start`](Self::start), then [`row`](Self::row) for each
/// solution, then [`finish`](Self::finish) until it is done.
#[derive(Debug)]
pub struct SolutionSerializer {
    state: State,
}

#[derive(Debug)]
enum State {
    Json { keys: Vec<Vec<u8>>, is_first: bool },
    Xml { openings: Vec<Vec<u8>> },
    Csv,
    Tsv,
    Table(Table),
    Columnar(Box<Columnar>),
}

impl SolutionSerializer {
    /// Begins an answer with these variables (names without `?`): appends the head.
    pub fn start(format: SolutionFormat, variables: &[String], out: &mut Vec<u8>) -> Self {
        let state = match format {
            SolutionFormat::Json => {
                json::write_head(out, variables);
                State::Json {
                    keys: json::object_keys(variables),
                    is_first: true,
                }
            }
            SolutionFormat::Xml => State::Xml {
                openings: xml_head(out, variables),
            },
            SolutionFormat::Csv => {
                write_separated(out, b",", b"\r\n", variables, |out, name| {
                    out.extend_from_slice(name.as_bytes());
                });
                State::Csv
            }
            SolutionFormat::Tsv => {
                write_separated(out, b"\t", b"\n", variables, |out, name| {
                    out.push(b'?');
                    out.extend_from_slice(name.as_bytes());
                });
                State::Tsv
            }
            SolutionFormat::Table => State::Table(Table::new(variables)),
            SolutionFormat::Arrow | SolutionFormat::Parquet => {
                let container = container_of(format);
                let temp_dir = std::env::temp_dir();
                State::Columnar(Box::new(Columnar::new(container, variables, &temp_dir)))
            }
        };
        Self { state }
    }

    /// Shortens IRIs with these prefixes where the format is for people. Before the first row.
    pub fn with_prefixes(mut self, prefixes: &Prefixes) -> Self {
        if let State::Table(table) = &mut self.state {
            table.shorten_with(Shortener::new(prefixes));
        }
        self
    }

    /// Where rows go that must be kept and are too many for memory; the system's directory for temporary
    /// files if not said. Before the first row.
    pub fn spill_to(mut self, temp_dir: &Path) -> Self {
        if let State::Columnar(columnar) = &mut self.state {
            columnar.spill_to(temp_dir);
        }
        self
    }

    /// Appends one solution: a term or nothing for each variable, in their order.
    /// Fails only where rows must be kept and cannot be.
    pub fn row<'a>(
        &mut self,
        row: impl Iterator<Item = Option<&'a Term<'a>>>,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        match &mut self.state {
            State::Json { keys, is_first } => {
                if !std::mem::take(is_first) {
                    out.push(b',');
                }
                json::write_row(out, keys, row);
            }
            State::Xml { openings } => xml_row(out, openings, row),
            State::Csv => write_separated(out, b",", b"\r\n", row, |out, term| {
                if let Some(term) = term {
                    write_csv_term(out, term);
                }
            }),
            State::Tsv => write_separated(out, b"\t", b"\n", row, |out, term| {
                if let Some(term) = term {
                    write_turtle_term(out, term);
                }
            }),
            State::Table(table) => table.row(row, out),
            State::Columnar(columnar) => return columnar.row(row),
        }
        Ok(())
    }

    /// Appends what ends the answer, or a part of it; true with the last part. To be called, and
    /// `out` to be emptied, until then.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<bool, FormatError> {
        match &mut self.state {
            State::Json { .. } => json::write_tail(out),
            State::Xml { .. } => out.extend_from_slice(b"</results></sparql>"),
            State::Csv | State::Tsv => {}
            State::Table(table) => table.finish(out),
            State::Columnar(columnar) => return columnar.write(out),
        }
        Ok(true)
    }

    /// Appends the whole answer to an ASK.
    pub fn boolean(
        format: SolutionFormat,
        value: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        let word: &[u8] = if value { b"true" } else { b"false" };
        match format {
            SolutionFormat::Json => json::write_boolean(out, value),
            SolutionFormat::Xml => {
                out.extend_from_slice(XML_OPENING);
                out.extend_from_slice(b"<head></head><boolean>");
                out.extend_from_slice(word);
                out.extend_from_slice(b"</boolean></sparql>");
            }
            // The CSV and TSV recommendation leaves ASK open; one bare word is what others write.
            SolutionFormat::Csv | SolutionFormat::Tsv => out.extend_from_slice(word),
            SolutionFormat::Table => {
                out.extend_from_slice(word);
                out.push(b'\n');
            }
            SolutionFormat::Arrow | SolutionFormat::Parquet => {
                return Columnar::boolean(container_of(format), value, out);
            }
        }
        Ok(())
    }
}

fn container_of(format: SolutionFormat) -> Container {
    match format {
        SolutionFormat::Parquet => Container::Parquet,
        _ => Container::Arrow,
    }
}
