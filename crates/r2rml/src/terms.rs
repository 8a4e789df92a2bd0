//! Term makers over batches of rows, and the ids of their terms.

use std::sync::Arc;

use arrow::array::RecordBatch;
use orrery_storage::table::ColumnType;
use orrery_term::{Term, TermId};
use oxiri::Iri;

use crate::error::{Error, Result};
use crate::lexical::Lexical;
use crate::rules::{Maker, MakerValue, TermKind};
use crate::template::{Piece, encode};

/// Who gives ids to terms.
pub(crate) trait Ids {
    /// The id of a term.
    fn intern(&mut self, term: &Term<'_>) -> Result<TermId>;
    /// The blank node of a label: one within a mapping, and no other's.
    fn blank_node(&mut self, label: &str) -> Result<TermId>;
}

/// A maker with its columns at their places, and its constant with its id.
pub(crate) struct BoundMaker {
    maker: Maker<usize>,
    constant: Option<TermId>,
}

/// The columns of a batch as lexical forms.
pub(crate) struct BatchTexts {
    columns: Vec<Lexical>,
    pub(crate) rows: usize,
}

impl BatchTexts {
    /// `types` are those of the columns that were selected.
    pub(crate) fn new(batch: &RecordBatch, types: &[ColumnType]) -> Result<Self> {
        let columns = batch.columns().iter().zip(types);
        let columns = columns.map(|(array, column_type)| Lexical::new(array, *column_type));
        Ok(Self {
            columns: columns.collect::<Result<_>>()?,
            rows: batch.num_rows(),
        })
    }
}

/// Texts that are made again and again.
#[derive(Default)]
pub(crate) struct Scratch {
    value: String,
    text: String,
}

impl BoundMaker {
    pub(crate) fn new(maker: Maker<usize>, ids: &mut dyn Ids) -> Result<Self> {
        let constant = match &maker.value {
            MakerValue::Constant(term) => Some(ids.intern(term)?),
            MakerValue::Column(_) | MakerValue::Template(_) => None,
        };
        Ok(Self { maker, constant })
    }

    /// The term of a row; none where one of its columns is NULL.
    pub(crate) fn id(
        &self,
        batch: &BatchTexts,
        row: usize,
        scratch: &mut Scratch,
        ids: &mut dyn Ids,
    ) -> Result<Option<TermId>> {
        if let Some(constant) = self.constant {
            return Ok(Some(constant));
        }
        let is_iri = matches!(self.maker.kind, TermKind::Iri { .. });
        let Scratch { value, text } = scratch;
        text.clear();
        match &self.maker.value {
            MakerValue::Constant(_) => {}
            MakerValue::Column(column) => {
                if !batch.columns[*column].write(row, text) {
                    return Ok(None);
                }
            }
            MakerValue::Template(template) => {
                for piece in &template.pieces {
                    match piece {
                        Piece::Text(piece) => text.push_str(piece),
                        Piece::Column(column) if is_iri => {
                            value.clear();
                            if !batch.columns[*column].write(row, value) {
                                return Ok(None);
                            }
                            encode(value, text);
                        }
                        Piece::Column(column) => {
                            if !batch.columns[*column].write(row, text) {
                                return Ok(None);
                            }
                        }
                    }
                }
            }
        }
        let id = match &self.maker.kind {
            TermKind::Iri { is_absolute } => {
                if !is_iri_or_resolved(text, &self.maker.base, *is_absolute) {
                    return Err(self.failed(format!("<{text}> is no IRI")));
                }
                ids.intern(&Term::iri(text.as_str()))?
            }
            TermKind::BlankNode => ids.blank_node(text)?,
            TermKind::Typed(None) => ids.intern(&Term::string(text.as_str()))?,
            TermKind::Typed(Some(datatype)) => {
                if !is_well_typed(text, datatype) {
                    return Err(self.failed(format!("{text:?} is no value of <{datatype}>")));
                }
                ids.intern(&Term::typed(text.as_str(), datatype.as_str()))?
            }
            TermKind::Language(tag) => ids.intern(&Term::language(text.as_str(), tag.as_str()))?,
        };
        Ok(Some(id))
    }

    fn failed(&self, message: String) -> Error {
        let term = match &self.maker.value {
            MakerValue::Constant(_) => "a constant",
            MakerValue::Column(_) => "a term of a column",
            MakerValue::Template(_) => "a term of a template",
        };
        Error::Data {
            triples_map: self.maker.triples_map.to_string(),
            term: term.to_owned(),
            message,
        }
    }
}

/// Whether a text is an absolute IRI, or becomes one with the base before it (R2RML, 11.2: it is
/// put there, and nothing is resolved).
fn is_iri_or_resolved(text: &mut String, base: &Arc<str>, is_absolute: bool) -> bool {
    if Iri::parse(text.as_str()).is_ok() {
        return true;
    }
    if is_absolute || base.is_empty() {
        return false;
    }
    text.insert_str(0, base);
    Iri::parse(text.as_str()).is_ok()
}

/// Whether a text is of a datatype, as far as this knows it. Natural literals always are.
fn is_well_typed(text: &str, datatype: &str) -> bool {
    use oxsdatatypes as xsd_types;
    let Some(name) = datatype.strip_prefix("http://www.w3.org/2001/XMLSchema#") else {
        return true;
    };
    let digits = |text: &str| {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_negative =
        |text: &str| text.starts_with('-') && text.bytes().any(|it| (b'1'..=b'9').contains(&it));
    let is_zero = |text: &str| !text.bytes().any(|it| (b'1'..=b'9').contains(&it));
    match name {
        "integer" => digits(text),
        "nonNegativeInteger" => digits(text) && !is_negative(text),
        "positiveInteger" => digits(text) && !is_negative(text) && !is_zero(text),
        "nonPositiveInteger" => digits(text) && (is_negative(text) || is_zero(text)),
        "negativeInteger" => digits(text) && is_negative(text),
        "long" => digits(text) && text.parse::<i64>().is_ok(),
        "int" => digits(text) && text.parse::<i32>().is_ok(),
        "short" => digits(text) && text.parse::<i16>().is_ok(),
        "byte" => digits(text) && text.parse::<i8>().is_ok(),
        "decimal" => {
            let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
            let is_of_digits = |byte: u8| byte.is_ascii_digit() || byte == b'.';
            unsigned.bytes().all(is_of_digits)
                && unsigned.bytes().any(|byte| byte.is_ascii_digit())
                && unsigned.bytes().filter(|byte| *byte == b'.').count() <= 1
        }
        "double" => orrery_term::lexical::parse_double(text).is_some(),
        "float" => orrery_term::lexical::parse_float(text).is_some(),
        "boolean" => matches!(text, "true" | "false" | "1" | "0"),
        "date" => text.parse::<xsd_types::Date>().is_ok(),
        "dateTime" => text.parse::<xsd_types::DateTime>().is_ok(),
        "time" => text.parse::<xsd_types::Time>().is_ok(),
        "hexBinary" => {
            text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        }
        _ => true,
    }
}
