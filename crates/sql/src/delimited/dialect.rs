//! The dialect of delimited text: separator, quotes, escapes and NULL.

/// Which of the two forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Fields between tabs, special characters behind a backslash.
    Text,
    /// Fields between commas, special characters within quotes.
    Csv,
}

/// All that is said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) form: Form,
    pub(crate) delimiter: u8,
    /// A field that is just this, without quotes, is NULL.
    pub(crate) null: String,
    /// Whether the first record has the names of the columns.
    pub(crate) has_header: bool,
    /// Of `csv` alone.
    pub(crate) quote: u8,
    /// What stands before a quote, or before itself, within quotes.
    pub(crate) escape: u8,
}

impl Dialect {
    /// PostgreSQL's defaults of a form.
    pub(crate) fn of(form: Form) -> Self {
        let (delimiter, null) = match form {
            Form::Text => (b'\t', "\\N"),
            Form::Csv => (b',', ""),
        };
        Self {
            form,
            delimiter,
            null: null.to_owned(),
            has_header: false,
            quote: b'"',
            escape: b'"',
        }
    }
}
