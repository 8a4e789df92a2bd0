//! Column types: their form in memory, in files, and as Arrow arrays.
//!
//! A value of fixed width is a *lane*: 64 bits whose order as unsigned numbers is the order of the
//! values, so that one set of codecs, zone maps and searches serves all of them. Decimals of more
//! than 18 digits have two lanes, the high one first. Texts and blobs are bytes, in the order of
//! their bytes (the collation `C` of PostgreSQL).
//!
//! ```text
//! boolean                   0 or 1
//! integers, decimals, dates, timestamps     the number with its sign bit turned over
//! real, double              IEEE 754 totalOrder: negative ones with all bits turned over, others with the sign bit; -0 is 0, one NaN
//! ```

use std::fmt::{self, Display, Formatter};

use arrow::datatypes::{DataType, TimeUnit};
use serde::{Deserialize, Serialize};

/// Digits of a decimal that fit one lane.
pub const LANE_DIGITS_MAX: u8 = 18;
/// Digits that a decimal may have.
pub const DECIMAL_DIGITS_MAX: u8 = 38;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// True or false.
    Boolean,
    /// 16 bits with sign.
    SmallInt,
    /// 32 bits with sign.
    Integer,
    /// 64 bits with sign.
    BigInt,
    /// An exact number.
    Decimal {
        /// Number of digits, from 1 to [`DECIMAL_DIGITS_MAX`].
        precision: u8,
        /// How many of these are behind the point.
        scale: u8,
    },
    /// IEEE 754 with 32 bits.
    Real,
    /// IEEE 754 with 64 bits.
    Double,
    /// Days since 1970-01-01.
    Date,
    /// Microseconds since 1970-01-01T00:00:00 of an unknown time zone.
    Timestamp,
    /// Microseconds since 1970-01-01T00:00:00Z.
    TimestampWithTimeZone,
    /// UTF-8.
    Text {
        /// The greatest number of characters; any if `None`.
        length_max: Option<u32>,
        /// Whether it is a `CHAR(n)`: trailing spaces do not count.
        is_padded: bool,
    },
    /// Any bytes.
    Blob,
}

/// The physical form of a type's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Physical {
    /// One lane.
    Lane,
    /// Two lanes.
    TwoLanes,
    /// Bytes of any length.
    Bytes,
}

impl ColumnType {
    /// The physical form of its values.
    pub fn physical(self) -> Physical {
        match self {
            Self::Decimal { precision, .. } if precision > LANE_DIGITS_MAX => Physical::TwoLanes,
            Self::Text { .. } | Self::Blob => Physical::Bytes,
            Self::Boolean
            | Self::SmallInt
            | Self::Integer
            | Self::BigInt
            | Self::Decimal { .. }
            | Self::Real
            | Self::Double
            | Self::Date
            | Self::Timestamp
            | Self::TimestampWithTimeZone => Physical::Lane,
        }
    }

    /// The arrays in which its values come and go.
    pub fn arrow(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::SmallInt => DataType::Int16,
            Self::Integer => DataType::Int32,
            Self::BigInt => DataType::Int64,
            Self::Decimal { precision, scale } => {
                DataType::Decimal128(precision, scale.cast_signed())
            }
            Self::Real => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Date => DataType::Date32,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::TimestampWithTimeZone => {
                DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
            }
            Self::Text { .. } => DataType::Utf8View,
            Self::Blob => DataType::BinaryView,
        }
    }
}

/// As SQL writes it.
impl Display for ColumnType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("boolean"),
            Self::SmallInt => f.write_str("smallint"),
            Self::Integer => f.write_str("integer"),
            Self::BigInt => f.write_str("bigint"),
            Self::Decimal { precision, scale } => write!(f, "numeric({precision},{scale})"),
            Self::Real => f.write_str("real"),
            Self::Double => f.write_str("double precision"),
            Self::Date => f.write_str("date"),
            Self::Timestamp => f.write_str("timestamp without time zone"),
            Self::TimestampWithTimeZone => f.write_str("timestamp with time zone"),
            Self::Text {
                length_max: None, ..
            } => f.write_str("text"),
            Self::Text {
                length_max: Some(length),
                is_padded: true,
            } => write!(f, "character({length})"),
            Self::Text {
                length_max: Some(length),
                is_padded: false,
            } => write!(f, "character varying({length})"),
            Self::Blob => f.write_str("bytea"),
        }
    }
}
