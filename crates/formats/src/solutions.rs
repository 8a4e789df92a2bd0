//! Serializers for the answers of SELECT and ASK.
//!
//! Own writers rather than `sparesults`': that crate builds a vector of events per row and leaves
//! an IRI with a comma unquoted in CSV. Nanoseconds per term of a three-column BSBM answer, ours
//! and `sparesults` 0.3.5: JSON 39 and 602, XML 47 and 470, CSV 26 and 71, TSV 42 and 93
//! (`cargo bench -p orrery-formats --bench solutions` repeats it). The parsers of `sparesults` are
//! the oracle in the tests, and the JSON is the same to the letter.
//!
//! XML 1.0 has no way to write most control characters; they come out as U+FFFD
//! there, and only there: JSON, TSV and CSV keep them. A whole answer lost for one odd
//! character would be worse. (RDF/XML refuses: a graph is often loaded elsewhere.)

use super::{
    FormatError, SolutionFormat,
    columnar::{Columnar, Container},
    json,
    rows::{RowFormat, XML_OPENING, write_separated, xml_head},
    table::Table,
};
use std::path::Path;
use std::sync::Arc;

use orrery_sparql::SolutionWriter;
use orrery_term::{Prefixes, Term};

/// Writes one answer: [`start`](Self::start), then [`row`](Self::row) for each
/// solution, then [`finish`](Self::finish) until it is done.
#[derive(Debug)]
pub struct SolutionSerializer {
    state: State,
}

#[derive(Debug)]
enum State {
    Rows {
        format: Arc<RowFormat>,
        is_first: bool,
    },
    Table(Table),
    Columnar(Box<Columnar>),
}

impl SolutionSerializer {
    /// Begins an answer with these variables (names without `?`): appends the head.
    pub fn start(format: SolutionFormat, variables: &[String], out: &mut Vec<u8>) -> Self {
        let rows = |format| State::Rows {
            format: Arc::new(format),
            is_first: true,
        };
        let state = match format {
            SolutionFormat::Json => {
                json::write_head(out, variables);
                rows(RowFormat::Json {
                    keys: json::object_keys(variables),
                })
            }
            SolutionFormat::Xml => rows(RowFormat::Xml {
                openings: xml_head(out, variables),
            }),
            SolutionFormat::Csv => {
                write_separated(out, b",", b"\r\n", variables, |out, name| {
                    out.extend_from_slice(name.as_bytes());
                });
                rows(RowFormat::Csv)
            }
            SolutionFormat::Tsv => {
                write_separated(out, b"\t", b"\n", variables, |out, name| {
                    out.push(b'?');
                    out.extend_from_slice(name.as_bytes());
                });
                rows(RowFormat::Tsv)
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
            table.shorten_with(prefixes.shortener());
        }
        self
    }

    /// Sets the directory for rows that must be buffered and are too many for memory; the system's
    /// temporary directory by default. To be called before the first row.
    pub fn spill_to(mut self, temp_dir: &Path) -> Self {
        if let State::Columnar(columnar) = &mut self.state {
            columnar.spill_to(temp_dir);
        }
        self
    }

    /// A writer of this answer's rows for use elsewhere, if the format writes row by row without
    /// buffering. The caller then puts all rows that it wrote, in their order, between the head and
    /// [`finish`](Self::finish).
    pub fn row_writer(&self) -> Option<Arc<dyn SolutionWriter>> {
        match &self.state {
            State::Rows { format, .. } => Some(Arc::<RowFormat>::clone(format)),
            State::Table(_) | State::Columnar(_) => None,
        }
    }

    /// Appends one solution: a term or nothing for each variable, in their order.
    /// Fails only where rows must be kept and cannot be.
    pub fn row<'a>(
        &mut self,
        row: impl Iterator<Item = Option<&'a Term<'a>>>,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        match &mut self.state {
            State::Rows { format, is_first } => {
                let is_first = std::mem::take(is_first);
                format.row(row, is_first, out, |out, term| format.write_term(term, out));
            }
            State::Table(table) => table.row(row, out),
            State::Columnar(columnar) => return columnar.row(row),
        }
        Ok(())
    }

    /// Appends what ends the answer, or a part of it; true with the last part. To be called, and
    /// `out` to be emptied, until then.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<bool, FormatError> {
        match &mut self.state {
            State::Rows { format, .. } => match &**format {
                RowFormat::Json { .. } => json::write_tail(out),
                RowFormat::Xml { .. } => out.extend_from_slice(b"</results></sparql>"),
                RowFormat::Csv | RowFormat::Tsv => {}
            },
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
