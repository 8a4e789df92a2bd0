//! Serializers for SQL answers: Arrow batches of typed columns to bytes.
//!
//! ```text
//!   schema -> start    batch -> rows as they come    finish
//! ```
//!
//! The types of the columns are known before the first row, so no format buffers rows. JSON has a
//! list of columns with their types, and each row as a list, because an SQL answer may have two
//! columns of one name. NULL is `null` in JSON, nothing in CSV (an empty text is `""`), `\N` in
//! TSV, and no binding in SPARQL's formats, where values are literals of the XSD type that fits.
//! docs/formats.md describes all formats.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use orrery_sql::{ValueTexts, name_of_type};
use orrery_term::{Term, vocabulary::xsd};
use std::sync::Arc;

use super::columnar::{Container, Sink};
use super::json::write_string;
use super::rows::{write_csv_field, write_separated};
use super::text::write_escaped;
use super::{FormatError, SolutionFormat, SolutionSerializer};

/// A format for rows of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TableFormat {
    /// Columns with their types, and rows as lists.
    Json,
    /// A line of names, then one for each row (RFC 4180).
    Csv,
    /// The same with tabs, escaped as PostgreSQL's COPY does.
    Tsv,
    /// Apache Arrow IPC, streaming format.
    Arrow,
    /// Apache Parquet.
    Parquet,
    /// SPARQL 1.1 Query Results JSON.
    SparqlJson,
    /// SPARQL Query Results XML.
    Xml,
    /// Aligned columns for people at a terminal.
    Table,
}

impl TableFormat {
    /// All formats, the server's favourite first.
    pub const ALL: [Self; 8] = [
        Self::Json,
        Self::Csv,
        Self::Tsv,
        Self::Arrow,
        Self::Parquet,
        Self::SparqlJson,
        Self::Xml,
        Self::Table,
    ];

    /// The name for `?format=`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
            Self::SparqlJson => "srj",
            Self::Xml => "xml",
            Self::Table => "table",
        }
    }

    /// The format of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|format| name.eq_ignore_ascii_case(format.name()))
    }

    /// Media types under which a client may ask for this format, its own first.
    pub const fn media_types(self) -> &'static [&'static str] {
        match self {
            Self::Json => &["application/json"],
            Self::SparqlJson => &["application/sparql-results+json"],
            Self::Csv => SolutionFormat::Csv.media_types(),
            Self::Tsv => SolutionFormat::Tsv.media_types(),
            Self::Arrow => SolutionFormat::Arrow.media_types(),
            Self::Parquet => SolutionFormat::Parquet.media_types(),
            Self::Xml => SolutionFormat::Xml.media_types(),
            Self::Table => SolutionFormat::Table.media_types(),
        }
    }
}

/// A writer of one answer: [`start`](Self::start), then [`rows`](Self::rows) for each batch, then
/// [`finish`](Self::finish).
#[derive(Debug)]
pub struct TableSerializer {
    state: State,
    types: Vec<DataType>,
}

#[derive(Debug)]
enum State {
    Json { is_first: bool },
    Csv,
    Tsv,
    Solutions(Box<SolutionSerializer>),
    Columns(Box<Sink>, SchemaRef),
    Done,
}

impl TableSerializer {
    /// Begins an answer with these columns: appends the head.
    pub fn start(
        format: TableFormat,
        schema: &SchemaRef,
        out: &mut Vec<u8>,
    ) -> Result<Self, FormatError> {
        let fields = schema.fields();
        let names = || fields.iter().map(|field| field.name().clone());
        let solutions = |format, out: &mut Vec<u8>| {
            let names: Vec<String> = names().collect();
            State::Solutions(Box::new(SolutionSerializer::start(format, &names, out)))
        };
        let state = match format {
            TableFormat::Json => {
                write_json_head(schema, out);
                State::Json { is_first: true }
            }
            TableFormat::Csv => {
                write_separated(out, b",", b"\r\n", names(), |out, name| {
                    write_csv_field(out, name.as_bytes());
                });
                State::Csv
            }
            TableFormat::Tsv => {
                write_separated(out, b"\t", b"\n", names(), |out, name| {
                    write_tsv_field(out, &name);
                });
                State::Tsv
            }
            TableFormat::Arrow => columns(Container::Arrow, schema)?,
            TableFormat::Parquet => columns(Container::Parquet, schema)?,
            TableFormat::SparqlJson => solutions(SolutionFormat::Json, out),
            TableFormat::Xml => solutions(SolutionFormat::Xml, out),
            TableFormat::Table => solutions(SolutionFormat::Table, out),
        };
        let types = fields.iter().map(|field| field.data_type().clone());
        Ok(Self {
            state,
            types: types.collect(),
        })
    }

    /// Appends rows.
    ///
    /// # Errors
    /// When a value cannot be written, such as a date beyond the calendar.
    pub fn rows(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), FormatError> {
        if let State::Columns(sink, schema) = &mut self.state {
            let plain = batch.columns().iter().zip(schema.fields());
            let plain = plain.map(|(column, field)| cast(column, field.data_type()));
            let plain = plain.collect::<Result<Vec<ArrayRef>, _>>();
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let batch = RecordBatch::try_new_with_options(
                Arc::clone(schema),
                plain.map_err(failed)?,
                &options,
            );
            return sink.write(&batch.map_err(failed)?, out);
        }
        let texts = batch.columns().iter().map(ValueTexts::new);
        let texts: Vec<ValueTexts<'_>> = texts.collect::<Result<_, _>>().map_err(failed)?;
        let mut cells: Vec<Option<String>> = Vec::with_capacity(texts.len());
        for row in 0..batch.num_rows() {
            cells.clear();
            for column in &texts {
                let mut text = String::new();
                let is_there = column.write(row, &mut text).map_err(failed)?;
                cells.push(is_there.then_some(text));
            }
            self.row(&cells, out)?;
        }
        Ok(())
    }

    fn row(&mut self, cells: &[Option<String>], out: &mut Vec<u8>) -> Result<(), FormatError> {
        match &mut self.state {
            State::Json { is_first } => {
                out.extend_from_slice(if *is_first { b"\n[" } else { b",\n[" });
                *is_first = false;
                for (place, (cell, data_type)) in cells.iter().zip(&self.types).enumerate() {
                    if place > 0 {
                        out.push(b',');
                    }
                    write_json_value(cell.as_deref(), data_type, out);
                }
                out.push(b']');
            }
            State::Csv => write_separated(out, b",", b"\r\n", cells, |out, cell| match cell {
                None => {}
                Some(text) if text.is_empty() => out.extend_from_slice(b"\"\""),
                Some(text) => write_csv_field(out, text.as_bytes()),
            }),
            State::Tsv => write_separated(out, b"\t", b"\n", cells, |out, cell| match cell {
                None => out.extend_from_slice(b"\\N"),
                Some(text) => write_tsv_field(out, text),
            }),
            State::Solutions(serializer) => {
                let terms = cells.iter().zip(&self.types);
                let terms = terms.map(|(cell, data_type)| Some(term(cell.as_deref()?, data_type)));
                let terms: Vec<Option<Term<'_>>> = terms.collect();
                serializer.row(terms.iter().map(Option::as_ref), out)?;
            }
            State::Columns(..) | State::Done => {}
        }
        Ok(())
    }

    /// Appends what ends the answer.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Json { .. } => out.extend_from_slice(b"\n]}\n"),
            State::Csv | State::Tsv | State::Done => {}
            State::Solutions(mut serializer) => while !serializer.finish(out)? {},
            State::Columns(sink, _) => sink.finish(out)?,
        }
        Ok(())
    }
}

/// Readers of other programs know plain arrays; views and dictionaries are how the engine computes.
fn columns(container: Container, schema: &SchemaRef) -> Result<State, FormatError> {
    let fields = schema.fields().iter().map(|field| {
        let data_type = match field.data_type() {
            DataType::Utf8View => DataType::Utf8,
            DataType::BinaryView => DataType::Binary,
            DataType::Dictionary(_, values) => values.as_ref().clone(),
            other => other.clone(),
        };
        Field::new(field.name(), data_type, field.is_nullable())
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let sink = Sink::new(container, &schema)?;
    Ok(State::Columns(Box::new(sink), schema))
}

fn write_json_head(schema: &SchemaRef, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"columns\":[");
    for (place, field) in schema.fields().iter().enumerate() {
        out.extend_from_slice(if place > 0 {
            b",{\"name\":"
        } else {
            b"{\"name\":"
        });
        write_string(out, field.name());
        out.extend_from_slice(b",\"type\":");
        write_string(out, &name_of_type(field.data_type()));
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"rows\":[");
}

/// A value of a column as JSON, from its text.
pub fn write_json_value(text: Option<&str>, data_type: &DataType, out: &mut Vec<u8>) {
    match text {
        None => out.extend_from_slice(b"null"),
        Some(text) if *data_type == DataType::Boolean => {
            out.extend_from_slice(if text == "t" { b"true" } else { b"false" });
        }
        // Infinity and NaN are no numbers of JSON.
        Some(text) if data_type.is_numeric() && is_json_number(text) => {
            out.extend_from_slice(text.as_bytes());
        }
        Some(text) => write_string(out, text),
    }
}

fn is_json_number(text: &str) -> bool {
    serde_json::from_str::<serde_json::Number>(text).is_ok()
}

/// As `COPY ... TO` of PostgreSQL has it in its text format.
fn write_tsv_field(out: &mut Vec<u8>, text: &str) {
    write_escaped(
        out,
        text.as_bytes(),
        |byte| (byte == b'\t') | (byte == b'\n') | (byte == b'\r') | (byte == b'\\'),
        |out, byte| {
            out.extend_from_slice(match byte {
                b'\t' => b"\\t",
                b'\n' => b"\\n",
                b'\r' => b"\\r",
                _ => b"\\\\",
            });
        },
    );
}

/// A value as a literal of the XSD type that fits.
fn term<'t>(text: &'t str, data_type: &DataType) -> Term<'t> {
    let datatype = match data_type {
        DataType::Boolean => {
            let text = if text == "t" { "true" } else { "false" };
            return Term::typed(text, xsd::BOOLEAN);
        }
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let datatype = match data_type {
                DataType::Float64 => xsd::DOUBLE,
                _ => xsd::FLOAT,
            };
            let text = match text {
                "inf" => "INF",
                "-inf" => "-INF",
                other => other,
            };
            return Term::typed(text, datatype);
        }
        DataType::Timestamp(_, zone) => {
            let text = text.replacen(' ', "T", 1);
            return Term::typed(
                match zone {
                    None => text,
                    Some(_) => text.trim_end_matches("+00").to_owned() + "Z",
                },
                xsd::DATE_TIME,
            );
        }
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => {
            let digits = text.trim_start_matches("\\x").to_ascii_uppercase();
            return Term::typed(digits, format!("{}hexBinary", xsd::NAMESPACE));
        }
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => xsd::DECIMAL,
        DataType::Date32 | DataType::Date64 => xsd::DATE,
        other if other.is_integer() => xsd::INTEGER,
        _ => return Term::string(text),
    };
    Term::typed(text, datatype)
}

fn failed(error: impl std::fmt::Display) -> FormatError {
    FormatError::Columns {
        message: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        BooleanArray, Decimal128Array, Float64Array, Int64Array, StringArray, StringViewArray,
        TimestampMicrosecondArray,
    };

    fn written(format: TableFormat) -> String {
        let price = Decimal128Array::from(vec![Some(1990), None]);
        let price = price.with_precision_and_scale(10, 2).unwrap();
        let seen = TimestampMicrosecondArray::from(vec![Some(1_500_000), None]);
        let columns: Vec<(&str, ArrayRef, bool)> = vec![
            ("id", Arc::new(Int64Array::from(vec![Some(1), None])), true),
            (
                "name",
                Arc::new(StringViewArray::from(vec![Some("a\t\"b\"\\,\n"), Some("")])),
                true,
            ),
            ("price", Arc::new(price), true),
            (
                "ratio",
                Arc::new(Float64Array::from(vec![Some(f64::INFINITY), Some(0.5)])),
                true,
            ),
            (
                "is_new",
                Arc::new(BooleanArray::from(vec![Some(true), None])),
                true,
            ),
            ("seen", Arc::new(seen.with_timezone("UTC")), true),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let mut out = Vec::new();
        let mut serializer = TableSerializer::start(format, &batch.schema(), &mut out).unwrap();
        serializer.rows(&batch, &mut out).unwrap();
        serializer.finish(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_has_types_and_rows_as_lists() {
        let json: serde_json::Value = serde_json::from_str(&written(TableFormat::Json)).unwrap();
        let expected = serde_json::json!({
            "columns": [
                {"name": "id", "type": "bigint"}, {"name": "name", "type": "text"},
                {"name": "price", "type": "numeric(10,2)"}, {"name": "ratio", "type": "double precision"},
                {"name": "is_new", "type": "boolean"}, {"name": "seen", "type": "timestamp with time zone"},
            ],
            "rows": [
                [1, "a\t\"b\"\\,\n", 19.90, "inf", true, "1970-01-01 00:00:01.500+00"],
                [null, "", null, 0.5, null, null],
            ],
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn csv_and_tsv_tell_null_from_an_empty_text() {
        assert_eq!(
            written(TableFormat::Csv),
            "id,name,price,ratio,is_new,seen\r\n\
             1,\"a\t\"\"b\"\"\\,\n\",19.90,inf,t,1970-01-01 00:00:01.500+00\r\n\
             ,\"\",,0.5,,\r\n"
        );
        assert_eq!(
            written(TableFormat::Tsv),
            "id\tname\tprice\tratio\tis_new\tseen\n\
             1\ta\\t\"b\"\\\\,\\n\t19.90\tinf\tt\t1970-01-01 00:00:01.500+00\n\
             \\N\t\t\\N\t0.5\t\\N\t\\N\n"
        );
    }

    #[test]
    fn the_formats_of_sparql_have_literals_and_leave_null_out() {
        let json: serde_json::Value =
            serde_json::from_str(&written(TableFormat::SparqlJson)).unwrap();
        let rows = &json["results"]["bindings"];
        let typed = |name: &str| {
            (
                rows[0][name]["value"].clone(),
                rows[0][name]["datatype"].clone(),
            )
        };
        let of = |text: &str, local: &str| {
            let datatype = format!("{}{local}", xsd::NAMESPACE);
            (serde_json::json!(text), serde_json::json!(datatype))
        };
        assert_eq!(typed("id"), of("1", "integer"));
        assert_eq!(typed("price"), of("19.90", "decimal"));
        assert_eq!(typed("ratio"), of("INF", "double"));
        assert_eq!(typed("is_new"), of("true", "boolean"));
        assert_eq!(typed("seen"), of("1970-01-01T00:00:01.500Z", "dateTime"));
        assert!(rows[1].get("price").is_none());
        assert_eq!(rows[1]["name"]["value"], "");
        assert!(written(TableFormat::Xml).contains("<literal></literal>"));
        assert!(written(TableFormat::Table).contains("2 rows"));
    }

    #[test]
    fn arrow_has_plain_arrays() {
        let name: ArrayRef = Arc::new(StringViewArray::from(vec!["lamp"]));
        let batch = RecordBatch::try_from_iter([("name", name)]).unwrap();
        let mut out = Vec::new();
        let mut serializer =
            TableSerializer::start(TableFormat::Arrow, &batch.schema(), &mut out).unwrap();
        serializer.rows(&batch, &mut out).unwrap();
        serializer.finish(&mut out).unwrap();
        let mut reader = arrow::ipc::reader::StreamReader::try_new(&out[..], None).unwrap();
        let read = reader.next().unwrap().unwrap();
        let expected: ArrayRef = Arc::new(StringArray::from(vec!["lamp"]));
        assert_eq!(read.column(0), &expected);
    }
}
