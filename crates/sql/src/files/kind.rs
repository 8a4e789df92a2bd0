//! The kind of a file, by its name.

use crate::delimited::{Dialect, Form};
use crate::{Error, Result, SqlState};

/// The kinds that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Delimited(Dialect),
    Parquet,
    Json,
}

impl Kind {
    /// Of a name; compressed text is decompressed.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let (_, extension) = name.rsplit_once('.')?;
        let csv = |delimiter| {
            Self::Delimited(Dialect {
                delimiter,
                has_header: true,
                ..Dialect::of(Form::Csv)
            })
        };
        Some(match extension {
            "csv" => csv(b','),
            "tsv" => csv(b'\t'),
            "parquet" | "pq" => Self::Parquet,
            "json" | "jsonl" | "ndjson" => Self::Json,
            _ => return None,
        })
    }

    /// Of the word behind `STORED AS`, with what `OPTIONS` say.
    pub(crate) fn stored_as(word: &str, options: &[(String, String)]) -> Result<Self> {
        let refuse = |option: &str| {
            Err(Error::unsupported(format!(
                "the option {option} of files stored as {word}"
            )))
        };
        match word.to_ascii_uppercase().as_str() {
            "CSV" => {
                let mut dialect = Dialect {
                    has_header: true,
                    ..Dialect::of(Form::Csv)
                };
                let mut escape = None;
                for (option, value) in options {
                    let name = option.to_ascii_lowercase();
                    match name.trim_start_matches("format.") {
                        "has_header" | "header" => dialect.has_header = boolean(option, value)?,
                        "delimiter" => dialect.delimiter = one_byte(option, value)?,
                        "quote" => dialect.quote = one_byte(option, value)?,
                        "escape" => escape = Some(one_byte(option, value)?),
                        "null" | "null_value" => dialect.null.clone_from(value),
                        _ => return refuse(option),
                    }
                }
                dialect.escape = escape.unwrap_or(dialect.quote);
                if dialect.delimiter == dialect.quote {
                    return Err(Error::new(
                        SqlState::InvalidParameterValue,
                        "delimiter and quote must be different",
                    ));
                }
                Ok(Self::Delimited(dialect))
            }
            "PARQUET" | "JSON" | "NDJSON" if !options.is_empty() => refuse(&options[0].0),
            "PARQUET" => Ok(Self::Parquet),
            "JSON" | "NDJSON" => Ok(Self::Json),
            other => Err(Error::unsupported(format!("files stored as {other}"))),
        }
    }
}

fn boolean(option: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(invalid(option, value)),
    }
}

fn one_byte(option: &str, value: &str) -> Result<u8> {
    match (value, value.as_bytes()) {
        ("\\t", _) => Ok(b'\t'),
        (_, [byte]) if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Ok(*byte),
        _ => Err(invalid(option, value)),
    }
}

fn invalid(option: &str, value: &str) -> Error {
    Error::new(
        SqlState::InvalidParameterValue,
        format!("the option {option} cannot be \"{value}\""),
    )
}
