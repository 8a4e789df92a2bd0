//! The options of `COPY`, as in PostgreSQL.

use datafusion::sql::sqlparser::ast::{CopyOption, Ident};

use crate::delimited::{Dialect, Form};
use crate::parse::identifiers::folded;
use crate::{Error, Result, SqlState};

/// What data look like outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Format {
    /// Lines of text, or CSV.
    Delimited(Dialect),
    /// Apache Parquet.
    Parquet,
}

/// Columns that an option is for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Chosen {
    #[default]
    None,
    All,
    Named(Vec<String>),
}

/// All of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) format: Format,
    pub(super) force_quote: Chosen,
    pub(super) force_not_null: Chosen,
    pub(super) force_null: Chosen,
}

impl Chosen {
    fn of(names: &[Ident]) -> Result<Self> {
        match names {
            [all] if all.quote_style.is_none() && all.value == "*" => Ok(Self::All),
            names => {
                let names = names.iter().map(folded);
                Ok(Self::Named(names.collect::<Result<_>>()?))
            }
        }
    }

    /// By column; fails where it names one that is not there.
    pub(super) fn flags(&self, option: &str, columns: &[String]) -> Result<Vec<bool>> {
        match self {
            Self::None => Ok(vec![false; columns.len()]),
            Self::All => Ok(vec![true; columns.len()]),
            Self::Named(names) => {
                if let Some(other) = names.iter().find(|name| !columns.contains(name)) {
                    return Err(Error::new(
                        SqlState::InvalidColumnReference,
                        format!("{option} column \"{other}\" not referenced by COPY"),
                    ));
                }
                let is_named = |column: &String| names.contains(column);
                Ok(columns.iter().map(is_named).collect())
            }
        }
    }
}

impl Options {
    /// Of a statement that reads or writes.
    pub(super) fn of(given: &[CopyOption], is_to: bool) -> Result<Self> {
        let mut seen = Vec::new();
        for option in given {
            let kind = std::mem::discriminant(option);
            if seen.contains(&kind) {
                return Err(Error::new(
                    SqlState::SyntaxError,
                    "conflicting or redundant options",
                ));
            }
            seen.push(kind);
        }
        let format = given.iter().find_map(|option| match option {
            CopyOption::Format(name) => Some(name.value.to_lowercase()),
            _ => None,
        });
        let form = match format.as_deref() {
            None | Some("text") => Form::Text,
            Some("csv") => Form::Csv,
            Some("parquet") => return Self::parquet(given),
            Some("binary") => return Err(Error::unsupported("COPY with the format binary")),
            Some(other) => {
                return Err(invalid(format!("COPY format \"{other}\" not recognized")));
            }
        };
        let mut options = Self {
            format: Format::Parquet,
            force_quote: Chosen::None,
            force_not_null: Chosen::None,
            force_null: Chosen::None,
        };
        let mut dialect = Dialect::of(form);
        let mut escape = None;
        for option in given {
            match option {
                CopyOption::Format(_) | CopyOption::Freeze(_) => {}
                CopyOption::Delimiter(delimiter) => {
                    dialect.delimiter = one_byte(*delimiter, "delimiter")?;
                }
                CopyOption::Null(null) => dialect.null.clone_from(null),
                CopyOption::Header(has_header) => dialect.has_header = *has_header,
                CopyOption::Quote(quote) => {
                    csv_alone(form, "QUOTE")?;
                    dialect.quote = one_byte(*quote, "quote")?;
                }
                CopyOption::Escape(given) => {
                    csv_alone(form, "ESCAPE")?;
                    escape = Some(one_byte(*given, "escape")?);
                }
                CopyOption::ForceQuote(columns) => {
                    csv_alone(form, "FORCE_QUOTE")?;
                    direction(is_to, true, "FORCE_QUOTE")?;
                    options.force_quote = Chosen::of(columns)?;
                }
                CopyOption::ForceNotNull(columns) => {
                    csv_alone(form, "FORCE_NOT_NULL")?;
                    direction(is_to, false, "FORCE_NOT_NULL")?;
                    options.force_not_null = Chosen::of(columns)?;
                }
                CopyOption::ForceNull(columns) => {
                    csv_alone(form, "FORCE_NULL")?;
                    direction(is_to, false, "FORCE_NULL")?;
                    options.force_null = Chosen::of(columns)?;
                }
                CopyOption::Encoding(encoding) => {
                    let name: String = encoding
                        .chars()
                        .filter(char::is_ascii_alphanumeric)
                        .collect();
                    if !matches!(name.to_lowercase().as_str(), "utf8" | "unicode") {
                        return Err(Error::unsupported(format!("the encoding {encoding}")));
                    }
                }
            }
        }
        dialect.escape = escape.unwrap_or(dialect.quote);
        check(&dialect)?;
        options.format = Format::Delimited(dialect);
        Ok(options)
    }

    fn parquet(given: &[CopyOption]) -> Result<Self> {
        let other = given
            .iter()
            .find(|option| !matches!(option, CopyOption::Format(_) | CopyOption::Freeze(_)));
        match other {
            Some(other) => Err(Error::unsupported(format!(
                "COPY {other} with the format parquet"
            ))),
            None => Ok(Self {
                format: Format::Parquet,
                force_quote: Chosen::None,
                force_not_null: Chosen::None,
                force_null: Chosen::None,
            }),
        }
    }
}

fn check(dialect: &Dialect) -> Result<()> {
    let Dialect {
        form,
        delimiter,
        null,
        quote,
        ..
    } = dialect;
    if form == &Form::Text && b"\\.abcdefghijklmnopqrstuvwxyz0123456789".contains(delimiter) {
        let delimiter = char::from(*delimiter);
        return Err(invalid(format!("COPY delimiter cannot be \"{delimiter}\"")));
    }
    if null.contains(['\r', '\n']) {
        return Err(invalid(
            "COPY null representation cannot use newline or carriage return",
        ));
    }
    if null.as_bytes().contains(delimiter) {
        return Err(invalid(
            "COPY delimiter character must not appear in the NULL specification",
        ));
    }
    if form == &Form::Csv {
        if delimiter == quote {
            return Err(invalid("COPY delimiter and quote must be different"));
        }
        if null.as_bytes().contains(quote) {
            return Err(invalid(
                "CSV quote character must not appear in the NULL specification",
            ));
        }
    }
    Ok(())
}

fn one_byte(character: char, what: &str) -> Result<u8> {
    match u8::try_from(character) {
        Ok(byte) if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Ok(byte),
        _ => Err(invalid(format!(
            "COPY {what} must be a single one-byte character, and neither newline nor carriage return"
        ))),
    }
}

fn csv_alone(form: Form, option: &str) -> Result<()> {
    match form {
        Form::Csv => Ok(()),
        Form::Text => Err(invalid(format!("COPY {option} requires CSV mode"))),
    }
}

fn direction(is_to: bool, wanted: bool, option: &str) -> Result<()> {
    let other = if wanted { "COPY FROM" } else { "COPY TO" };
    match is_to == wanted {
        true => Ok(()),
        false => Err(invalid(format!(
            "COPY {option} cannot be used with {other}"
        ))),
    }
}

fn invalid(words: impl Into<String>) -> Error {
    Error::new(SqlState::InvalidParameterValue, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(options: &[CopyOption], is_to: bool) -> &'static str {
        Options::of(options, is_to).unwrap_err().state.code()
    }

    #[test]
    fn defaults_are_those_of_the_form() {
        let csv = Options::of(
            &[CopyOption::Format("CSV".into()), CopyOption::Quote('\'')],
            false,
        );
        let Format::Delimited(csv) = csv.unwrap().format else {
            panic!("CSV is delimited");
        };
        assert_eq!(
            (csv.delimiter, csv.escape, csv.null.as_str()),
            (b',', b'\'', "")
        );
        let Format::Delimited(text) = Options::of(&[], true).unwrap().format else {
            panic!("text is delimited");
        };
        assert_eq!((text.delimiter, text.null.as_str()), (b'\t', "\\N"));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let csv = || CopyOption::Format("csv".into());
        assert_eq!(refused(&[CopyOption::Quote('\'')], false), "22023");
        assert_eq!(refused(&[CopyOption::Delimiter('a')], false), "22023");
        assert_eq!(refused(&[CopyOption::Delimiter('\n')], false), "22023");
        assert_eq!(refused(&[CopyOption::Delimiter('ä')], false), "22023");
        assert_eq!(
            refused(&[csv(), CopyOption::Delimiter('"')], false),
            "22023"
        );
        assert_eq!(
            refused(&[csv(), CopyOption::Null("a,b".into())], false),
            "22023"
        );
        assert_eq!(refused(&[csv(), csv()], false), "42601");
        assert_eq!(
            refused(&[csv(), CopyOption::ForceNull(Vec::new())], true),
            "22023"
        );
        assert_eq!(
            refused(&[CopyOption::Format("binary".into())], false),
            "0A000"
        );
        assert_eq!(refused(&[CopyOption::Format("odt".into())], false), "22023");
        assert_eq!(
            refused(&[CopyOption::Encoding("LATIN1".into())], false),
            "0A000"
        );
        assert_eq!(
            refused(
                &[
                    CopyOption::Format("parquet".into()),
                    CopyOption::Header(true)
                ],
                true
            ),
            "0A000"
        );
    }
}
