//! Inline integers, decimals and doubles.

use crate::id::{TermId, TermKind};
use crate::lexical::canonical_exponent;
use crate::vocabulary::xsd;

/// Half of the 56-bit range: stored values are shifted up by it, so that they sort unsigned.
pub(super) const BIAS: i64 = 1 << 55;
/// Bits below the value: the datatype of an integer, the digits after the point of a decimal.
pub(super) const DETAIL_BITS: u32 = 4;
/// Digits after the point that a decimal can have inside an id.
const DECIMAL_DIGITS_MAX: usize = 6;

/// `xsd:integer` or which of the types derived from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are those of XML Schema")]
pub enum IntegerType {
    Integer = 0,
    Int = 1,
    Long = 2,
    Short = 3,
    Byte = 4,
    NonNegativeInteger = 5,
    PositiveInteger = 6,
    NonPositiveInteger = 7,
    NegativeInteger = 8,
    UnsignedLong = 9,
    UnsignedInt = 10,
    UnsignedShort = 11,
    UnsignedByte = 12,
}

impl IntegerType {
    #[inline]
    pub(super) fn from_local_name(name: &str) -> Option<Self> {
        Some(match name {
            "integer" => Self::Integer,
            "int" => Self::Int,
            "long" => Self::Long,
            "short" => Self::Short,
            "byte" => Self::Byte,
            "nonNegativeInteger" => Self::NonNegativeInteger,
            "positiveInteger" => Self::PositiveInteger,
            "nonPositiveInteger" => Self::NonPositiveInteger,
            "negativeInteger" => Self::NegativeInteger,
            "unsignedLong" => Self::UnsignedLong,
            "unsignedInt" => Self::UnsignedInt,
            "unsignedShort" => Self::UnsignedShort,
            "unsignedByte" => Self::UnsignedByte,
            _ => return None,
        })
    }

    const fn from_code(code: u64) -> Self {
        match code {
            1 => Self::Int,
            2 => Self::Long,
            3 => Self::Short,
            4 => Self::Byte,
            5 => Self::NonNegativeInteger,
            6 => Self::PositiveInteger,
            7 => Self::NonPositiveInteger,
            8 => Self::NegativeInteger,
            9 => Self::UnsignedLong,
            10 => Self::UnsignedInt,
            11 => Self::UnsignedShort,
            12 => Self::UnsignedByte,
            _ => Self::Integer,
        }
    }

    /// The type of a datatype's IRI, if it is `xsd:integer` or derived from it.
    pub fn of_datatype(datatype: &str) -> Option<Self> {
        Self::from_local_name(datatype.strip_prefix(xsd::NAMESPACE)?)
    }

    /// The datatype IRI.
    pub const fn iri(self) -> &'static str {
        match self {
            Self::Integer => xsd::INTEGER,
            Self::Int => xsd::INT,
            Self::Long => xsd::LONG,
            Self::Short => xsd::SHORT,
            Self::Byte => xsd::BYTE,
            Self::NonNegativeInteger => xsd::NON_NEGATIVE_INTEGER,
            Self::PositiveInteger => xsd::POSITIVE_INTEGER,
            Self::NonPositiveInteger => xsd::NON_POSITIVE_INTEGER,
            Self::NegativeInteger => xsd::NEGATIVE_INTEGER,
            Self::UnsignedLong => xsd::UNSIGNED_LONG,
            Self::UnsignedInt => xsd::UNSIGNED_INT,
            Self::UnsignedShort => xsd::UNSIGNED_SHORT,
            Self::UnsignedByte => xsd::UNSIGNED_BYTE,
        }
    }

    /// Whether a value belongs to the type. `"300"^^xsd:byte` is ill-typed: it has no
    /// value and must not compare as one, so it stays out of the id.
    const fn holds(self, value: i64) -> bool {
        match self {
            Self::Integer | Self::Long => true,
            Self::Int => value >= i32::MIN as i64 && value <= i32::MAX as i64,
            Self::Short => value >= i16::MIN as i64 && value <= i16::MAX as i64,
            Self::Byte => value >= i8::MIN as i64 && value <= i8::MAX as i64,
            Self::NonNegativeInteger | Self::UnsignedLong => value >= 0,
            Self::PositiveInteger => value > 0,
            Self::NonPositiveInteger => value <= 0,
            Self::NegativeInteger => value < 0,
            Self::UnsignedInt => value >= 0 && value <= u32::MAX as i64,
            Self::UnsignedShort => value >= 0 && value <= u16::MAX as i64,
            Self::UnsignedByte => value >= 0 && value <= u8::MAX as i64,
        }
    }

    /// Whether a value of any size belongs to the type; what is beyond 128 bits may be cut to their
    /// ends, which no type's bounds reach.
    pub const fn admits(self, value: i128) -> bool {
        if value >= i64::MIN as i128 && value <= i64::MAX as i128 {
            return self.holds(value as i64);
        }
        match self {
            Self::Integer => true,
            Self::NonNegativeInteger | Self::PositiveInteger => value > 0,
            Self::NonPositiveInteger | Self::NegativeInteger => value < 0,
            Self::UnsignedLong => value > 0 && value <= u64::MAX as i128,
            Self::Long
            | Self::Int
            | Self::Short
            | Self::Byte
            | Self::UnsignedInt
            | Self::UnsignedShort
            | Self::UnsignedByte => false,
        }
    }
}

#[inline]
pub(super) fn integer_payload(value: i64, integer_type: IntegerType) -> Option<u64> {
    if !(-BIAS..BIAS).contains(&value) {
        return None;
    }
    Some((((value + BIAS) as u64) << DETAIL_BITS) | integer_type as u64)
}

pub(super) fn encode_integer(lexical: &str, integer_type: IntegerType) -> Option<u64> {
    let value = parse_canonical_integer(lexical)?;
    if !integer_type.holds(value) {
        return None;
    }
    integer_payload(value, integer_type)
}

#[inline]
pub(super) fn decode_integer(payload: u64) -> (i64, IntegerType) {
    (
        (payload >> DETAIL_BITS) as i64 - BIAS,
        IntegerType::from_code(payload & 15),
    )
}

/// Digits without leading zeros, a minus only before a number other than zero.
fn parse_canonical_integer(lexical: &str) -> Option<i64> {
    let (is_negative, digits) = match lexical.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, lexical),
    };
    let bytes = digits.as_bytes();
    // 2^55 has 17 digits.
    if bytes.is_empty() || bytes.len() > 17 {
        return None;
    }
    if bytes[0] == b'0' && (bytes.len() > 1 || is_negative) {
        return None;
    }
    let magnitude = parse_digits(bytes)?;
    Some(if is_negative { -magnitude } else { magnitude })
}

/// At most 18 decimal digits.
fn parse_digits(bytes: &[u8]) -> Option<i64> {
    debug_assert!(bytes.len() <= 18);
    let mut value = 0i64;
    for byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(value)
}

pub(super) fn encode_decimal(lexical: &str) -> Option<u64> {
    let (is_negative, unsigned) = match lexical.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, lexical),
    };
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (unsigned, ""),
    };
    if whole.is_empty() || whole.len() > 11 || fraction.len() > DECIMAL_DIGITS_MAX {
        return None;
    }
    if whole.len() > 1 && whole.starts_with('0') {
        return None;
    }
    let scale = 10i64.pow((DECIMAL_DIGITS_MAX - fraction.len()) as u32);
    let magnitude = parse_digits(whole.as_bytes())? * DECIMAL_UNITS
        + parse_digits(fraction.as_bytes())? * scale;
    if magnitude == 0 && is_negative {
        return None;
    }
    let value = if is_negative { -magnitude } else { magnitude };
    if !(-BIAS..BIAS).contains(&value) {
        return None;
    }
    Some((((value + BIAS) as u64) << DETAIL_BITS) | fraction.len() as u64)
}

/// A decimal of so many millionths, with no more digits after the point than it needs.
pub(super) fn decimal_payload(millionths: i64) -> Option<u64> {
    if !(-BIAS..BIAS).contains(&millionths) {
        return None;
    }
    let mut digits = DECIMAL_DIGITS_MAX as u64;
    let mut rest = millionths;
    while digits > 0 && rest % 10 == 0 {
        rest /= 10;
        digits -= 1;
    }
    Some((((millionths + BIAS) as u64) << DETAIL_BITS) | digits)
}

#[inline]
pub(super) fn decode_decimal(payload: u64) -> i64 {
    (payload >> DETAIL_BITS) as i64 - BIAS
}

pub(super) fn render_decimal(payload: u64) -> String {
    let value = decode_decimal(payload);
    let digits = ((payload & 15) as usize).min(DECIMAL_DIGITS_MAX);
    let magnitude = value.unsigned_abs();
    let units = DECIMAL_UNITS as u64;
    let sign = if value < 0 { "-" } else { "" };
    let whole = magnitude / units;
    if digits == 0 {
        return format!("{sign}{whole}");
    }
    let fraction = (magnitude % units) / 10u64.pow((DECIMAL_DIGITS_MAX - digits) as u32);
    format!("{sign}{whole}.{fraction:0digits$}")
}

/// Doubles keep sign, 52 bits of fraction and seven bits of exponent: magnitudes from
/// 2^-62 to 2^64 and zero. Negative ones are complemented so that payloads ascend.
const EXPONENT_LOW: u64 = 1023 - 63;
const FRACTION_BITS: u32 = 52;
const MAGNITUDE_MASK: u64 = (1 << 59) - 1;

pub(super) fn double_payload(value: f64) -> Option<u64> {
    let bits = value.to_bits();
    let is_negative = bits >> 63 == 1;
    let magnitude = bits & (u64::MAX >> 1);
    let cut = if magnitude == 0 {
        if is_negative {
            return None;
        }
        0
    } else {
        let exponent = magnitude >> FRACTION_BITS;
        // Code 0 is zero's own.
        if exponent <= EXPONENT_LOW || exponent - EXPONENT_LOW > 127 {
            return None;
        }
        magnitude - (EXPONENT_LOW << FRACTION_BITS)
    };
    Some(if is_negative {
        MAGNITUDE_MASK - cut
    } else {
        (1 << 59) | cut
    })
}

#[inline]
pub(super) fn decode_double(payload: u64) -> f64 {
    let is_negative = payload >> 59 == 0;
    let cut = if is_negative {
        MAGNITUDE_MASK - (payload & MAGNITUDE_MASK)
    } else {
        payload & MAGNITUDE_MASK
    };
    let magnitude = if cut == 0 {
        0
    } else {
        cut + (EXPONENT_LOW << FRACTION_BITS)
    };
    f64::from_bits(magnitude | (u64::from(is_negative) << 63))
}

pub(super) fn encode_double(lexical: &str) -> Option<TermId> {
    // The longest plain form of a double in range has 20 digits before the point.
    if lexical.len() > 40 || !lexical.ends_with(|last: char| last.is_ascii_digit()) {
        return None;
    }
    let value: f64 = lexical.parse().ok()?;
    let payload = double_payload(value)?;
    if lexical.contains('E') {
        (canonical_exponent(value) == lexical).then(|| TermId::new(TermKind::Double, payload))
    } else {
        (value.to_string() == lexical).then(|| TermId::new(TermKind::DoublePlain, payload))
    }
}

/// How many units of [`InlineValue::Decimal`](super::InlineValue::Decimal) make one.
pub const DECIMAL_UNITS: i64 = 1_000_000;
