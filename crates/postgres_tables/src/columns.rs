//! The mapping of PostgreSQL's column types to ours.
//!
//! A type is read as itself, or as its text (`::text`), or not at all. What is kept of it in a
//! definition is one word (`SourceType`): it decides how the column is asked for, how its values
//! are read, and how conditions on it are written; a column that has become another is found by it.

use std::fmt;

use orrery_storage::table::{ColumnType, DECIMAL_DIGITS_MAX};
use tokio_postgres::types::Type;

use crate::error::{Error, Result};

/// Digits behind the point of a `numeric` that has no limits there.
const FRACTION_DIGITS: u8 = 10;
/// Behind the word of a text whose equal values may be different texts.
const NONDETERMINISTIC: char = '~';
/// Types that are read as their text.
const AS_TEXT: &[&str] = &[
    "json", "jsonb", "xml", "inet", "cidr", "macaddr", "macaddr8", "time", "timetz", "interval",
    "bit", "varbit", "name", "char", "citext", "oid",
];

/// A column of a table of another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignColumn {
    /// Its name, the same on both sides.
    pub name: String,
    /// Its type here.
    pub column_type: ColumnType,
    /// Its type there.
    pub source: SourceType,
    /// Whether it may be NULL.
    pub is_nullable: bool,
}

/// A type of PostgreSQL's as a definition keeps it: a word such as `int4`, or `text~` under a
/// collation that takes different texts for equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceType {
    pub(crate) kind: SourceKind,
    pub(crate) is_deterministic: bool,
}

/// The types that differ in how they are read or compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceKind {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Date,
    Timestamp,
    TimestampTz,
    Text,
    Varchar,
    Bpchar,
    Bytea,
    Uuid,
    /// Read as its text.
    Other,
}

const KINDS: [(SourceKind, &str); 16] = [
    (SourceKind::Bool, "bool"),
    (SourceKind::Int2, "int2"),
    (SourceKind::Int4, "int4"),
    (SourceKind::Int8, "int8"),
    (SourceKind::Float4, "float4"),
    (SourceKind::Float8, "float8"),
    (SourceKind::Numeric, "numeric"),
    (SourceKind::Date, "date"),
    (SourceKind::Timestamp, "timestamp"),
    (SourceKind::TimestampTz, "timestamptz"),
    (SourceKind::Text, "text"),
    (SourceKind::Varchar, "varchar"),
    (SourceKind::Bpchar, "bpchar"),
    (SourceKind::Bytea, "bytea"),
    (SourceKind::Uuid, "uuid"),
    (SourceKind::Other, "other"),
];

impl SourceKind {
    /// Of the name that the type has in `pg_type`; none of a type that is not read.
    pub(crate) fn of(name: &str, is_enum: bool) -> Option<Self> {
        let own = KINDS
            .iter()
            .find(|(_, word)| *word == name && name != "other");
        match own {
            Some((kind, _)) => Some(*kind),
            None => (is_enum || AS_TEXT.contains(&name)).then_some(Self::Other),
        }
    }

    fn word(self) -> &'static str {
        let known = KINDS.iter().find(|(kind, _)| *kind == self);
        known.map_or("other", |(_, word)| word)
    }

    /// The type in which values come.
    pub(crate) fn wire_type(self) -> Type {
        match self {
            Self::Bool => Type::BOOL,
            Self::Int2 => Type::INT2,
            Self::Int4 => Type::INT4,
            Self::Int8 => Type::INT8,
            Self::Float4 => Type::FLOAT4,
            Self::Float8 => Type::FLOAT8,
            Self::Numeric => Type::NUMERIC,
            Self::Date => Type::DATE,
            Self::Timestamp => Type::TIMESTAMP,
            Self::TimestampTz => Type::TIMESTAMPTZ,
            Self::Text | Self::Other => Type::TEXT,
            Self::Varchar => Type::VARCHAR,
            Self::Bpchar => Type::BPCHAR,
            Self::Bytea => Type::BYTEA,
            Self::Uuid => Type::UUID,
        }
    }

    /// Our type for values of it, with what its modifier says.
    ///
    /// # Errors
    /// In words, where no type of ours takes them.
    pub(crate) fn column_type(self, modifier: i32) -> std::result::Result<ColumnType, String> {
        let length = u32::try_from(modifier - 4)
            .ok()
            .filter(|length| *length > 0);
        let text = |length_max, is_padded| ColumnType::Text {
            length_max,
            is_padded,
        };
        Ok(match self {
            Self::Bool => ColumnType::Boolean,
            Self::Int2 => ColumnType::SmallInt,
            Self::Int4 => ColumnType::Integer,
            Self::Int8 => ColumnType::BigInt,
            Self::Float4 => ColumnType::Real,
            Self::Float8 => ColumnType::Double,
            Self::Numeric => decimal(modifier)?,
            Self::Date => ColumnType::Date,
            Self::Timestamp => ColumnType::Timestamp,
            Self::TimestampTz => ColumnType::TimestampWithTimeZone,
            Self::Varchar => text(length, false),
            Self::Bpchar => text(length, length.is_some()),
            Self::Text | Self::Uuid | Self::Other => text(None, false),
            Self::Bytea => ColumnType::Blob,
        })
    }

    /// Whether a type that a definition says may stand in the place of the one that follows from
    /// the source's.
    pub(crate) fn may_be(self, declared: ColumnType, found: ColumnType) -> bool {
        let is_text = matches!(
            declared,
            ColumnType::Text {
                length_max: None,
                ..
            }
        );
        match self {
            Self::Numeric => matches!(declared, ColumnType::Decimal { .. }),
            Self::Varchar => declared == found || is_text,
            _ => declared == found,
        }
    }
}

/// `numeric(p,s)`: with more digits than ours can have, or none said, as many as go; a value that
/// needs more is an error when it comes.
fn decimal(modifier: i32) -> std::result::Result<ColumnType, String> {
    let most = ColumnType::Decimal {
        precision: DECIMAL_DIGITS_MAX,
        scale: FRACTION_DIGITS,
    };
    if modifier < 4 {
        return Ok(most);
    }
    let modifier = modifier - 4;
    let precision = (modifier >> 16) & 0xffff;
    // Eleven bits with a sign.
    let scale = ((modifier & 0x7ff) ^ 0x400) - 0x400;
    let digits = match scale {
        scale if scale < 0 => precision - scale,
        scale => precision.max(scale),
    };
    let (digits, scale) = (u8::try_from(digits), u8::try_from(scale.max(0)));
    match (digits, scale) {
        (Ok(precision), Ok(scale)) if precision <= DECIMAL_DIGITS_MAX => {
            Ok(ColumnType::Decimal { precision, scale })
        }
        (_, Ok(scale)) if scale <= DECIMAL_DIGITS_MAX => Ok(ColumnType::Decimal {
            precision: DECIMAL_DIGITS_MAX,
            scale,
        }),
        _ => Err(format!(
            "more than {DECIMAL_DIGITS_MAX} digits behind the point"
        )),
    }
}

/// As a definition keeps it.
impl fmt::Display for SourceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.word())?;
        match self.is_deterministic {
            true => Ok(()),
            false => write!(f, "{NONDETERMINISTIC}"),
        }
    }
}

impl SourceType {
    /// Of the word that a definition keeps.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(word: &str) -> Result<Self> {
        let plain = word.strip_suffix(NONDETERMINISTIC);
        let known = KINDS.iter().find(|(_, it)| *it == plain.unwrap_or(word));
        let (kind, _) = known.ok_or_else(|| {
            Error::Invalid(format!("\"{word}\" is no type of a column of PostgreSQL's"))
        })?;
        Ok(Self {
            kind: *kind,
            is_deterministic: plain.is_none(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(precision: i32, scale: i32) -> std::result::Result<String, String> {
        let modifier = ((precision << 16) | (scale & 0x7ff)) + 4;
        let of = SourceKind::Numeric.column_type(modifier);
        of.map(|of| of.to_string())
    }

    #[test]
    fn numerics_have_the_digits_of_the_source_or_as_many_as_go() {
        assert_eq!(numeric(10, 2).unwrap(), "numeric(10,2)");
        assert_eq!(numeric(2, -3).unwrap(), "numeric(5,0)");
        assert_eq!(numeric(3, 5).unwrap(), "numeric(5,5)");
        assert_eq!(numeric(50, 10).unwrap(), "numeric(38,10)");
        assert!(numeric(60, 40).is_err());
        let unlimited = SourceKind::Numeric.column_type(-1).unwrap();
        assert_eq!(unlimited.to_string(), "numeric(38,10)");
    }

    #[test]
    fn words_of_types_come_back_as_they_were() {
        for (kind, _) in KINDS {
            for is_deterministic in [true, false] {
                let of = SourceType {
                    kind,
                    is_deterministic,
                };
                assert_eq!(SourceType::parse(&of.to_string()).unwrap(), of);
            }
        }
        assert!(SourceType::parse("money").is_err());
        assert_eq!(SourceKind::of("money", false), None);
        assert_eq!(SourceKind::of("mood", true), Some(SourceKind::Other));
        assert_eq!(SourceKind::of("_int4", false), None);
    }
}
