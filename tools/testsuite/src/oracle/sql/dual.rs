//! SQL fragments in both dialects, and kinds of values.
//!
//! The two dialects differ in how bytes are written and in what a division of integers is; and
//! where DuckDB computes in the width of its operands, its integers are widened first. Everything
//! else is one text.

use std::fmt::Write;

/// What a value is, as far as expressions go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    /// An integer that may be the least or the greatest of its type, and is not computed with.
    Bound,
    /// A decimal with two digits behind the point, or four.
    Decimal,
    Double,
    Boolean,
    Date,
    Time,
    Text,
    Bytes,
}

impl Kind {
    pub(super) const ALL: [Self; 9] = [
        Self::Integer,
        Self::Bound,
        Self::Decimal,
        Self::Double,
        Self::Boolean,
        Self::Date,
        Self::Time,
        Self::Text,
        Self::Bytes,
    ];
}

/// A piece of a statement, in both dialects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sql {
    pub(super) ours: String,
    pub(super) theirs: String,
}

impl Sql {
    /// What is written alike.
    pub(super) fn same(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            ours: text.clone(),
            theirs: text,
        }
    }

    /// A text with a part in the place of each `{}`.
    pub(super) fn of(template: &str, parts: &[&Self]) -> Self {
        let mut whole = Self::default();
        let mut parts = parts.iter();
        for (at, piece) in template.split("{}").enumerate() {
            if at > 0
                && let Some(part) = parts.next()
            {
                whole.push(part);
            }
            whole.add(piece);
        }
        whole
    }

    /// Parts with the same text between each two.
    pub(super) fn join(parts: &[Self], between: &str) -> Self {
        let mut whole = Self::default();
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                whole.add(between);
            }
            whole.push(part);
        }
        whole
    }

    pub(super) fn add(&mut self, text: &str) {
        self.ours.push_str(text);
        self.theirs.push_str(text);
    }

    pub(super) fn push(&mut self, part: &Self) {
        self.ours.push_str(&part.ours);
        self.theirs.push_str(&part.theirs);
    }
}

/// A text in quotes.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Bytes as a literal.
pub(super) fn bytes(of: &[u8]) -> Sql {
    let (mut ours, mut theirs) = ("'\\x".to_owned(), "'".to_owned());
    for byte in of {
        // Writing to a String does not fail.
        let _ = write!(ours, "{byte:02x}");
        let _ = write!(theirs, "\\x{byte:02X}");
    }
    ours.push_str("'::bytea");
    theirs.push_str("'::blob");
    Sql { ours, theirs }
}
