//! Decodes the parameter values that a client has bound, from text or binary.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use bytes::{Buf, Bytes};
use orrery_sql::ScalarValue;

use crate::encode::{EPOCH_DAYS, EPOCH_MICROSECONDS};
use crate::refusal::Refusal;
use crate::types::{
    BOOL, BYTEA, DATE, FLOAT4, FLOAT8, INT2, INT4, INT8, INTERVAL, NUMERIC, OID, TIME, TIMESTAMP,
    TIMESTAMPTZ, UUID, element_of, told,
};

/// Most digits of a numeric.
const DIGITS_MAX: u8 = 38;
/// Most elements of an array.
const ELEMENTS_MAX: usize = 1 << 20;

/// Decodes a value of the type with this OID.
pub(crate) fn value(
    oid: u32,
    is_binary: bool,
    bytes: Option<&Bytes>,
) -> Result<ScalarValue, Refusal> {
    let Some(bytes) = bytes else {
        let data_type = told(oid).flatten().unwrap_or(DataType::Utf8);
        return ScalarValue::try_from(&data_type)
            .map_err(|error| Refusal::new("0A000", error.to_string()));
    };
    match is_binary {
        true => of_binary(oid, bytes),
        false => of_text(oid, text_of(bytes)?),
    }
}

fn text_of(bytes: &[u8]) -> Result<&str, Refusal> {
    let text = std::str::from_utf8(bytes).ok();
    text.filter(|text| !text.contains('\0'))
        .ok_or_else(|| Refusal::new("22021", "invalid byte sequence for encoding \"UTF8\""))
}

fn name_of(oid: u32) -> &'static str {
    match oid {
        BOOL => "boolean",
        BYTEA => "bytea",
        INT2 => "smallint",
        INT4 => "integer",
        INT8 => "bigint",
        OID => "oid",
        FLOAT4 => "real",
        FLOAT8 => "double precision",
        DATE => "date",
        TIME => "time",
        TIMESTAMP => "timestamp without time zone",
        TIMESTAMPTZ => "timestamp with time zone",
        INTERVAL => "interval",
        NUMERIC => "numeric",
        _ => "text",
    }
}

fn misfit(oid: u32, text: &str) -> Refusal {
    let code = match oid {
        DATE | TIME | TIMESTAMP | TIMESTAMPTZ | INTERVAL => "22007",
        _ => "22P02",
    };
    Refusal::new(
        code,
        format!("invalid input syntax for type {}: \"{text}\"", name_of(oid)),
    )
}

fn of_text(oid: u32, text: &str) -> Result<ScalarValue, Refusal> {
    let word = text.trim();
    Ok(match oid {
        BOOL => {
            let lower = word.to_ascii_lowercase();
            // PostgreSQL, bool.c: any unambiguous prefix.
            let is = |word: &str, least: usize| lower.len() >= least && word.starts_with(&lower);
            let value = match () {
                () if is("true", 1) || is("yes", 1) || is("on", 2) || lower == "1" => true,
                () if is("false", 1) || is("no", 1) || is("off", 2) || lower == "0" => false,
                () => return Err(misfit(oid, text)),
            };
            ScalarValue::Boolean(Some(value))
        }
        INT2 | INT4 | INT8 | OID => {
            let value: i128 = word.parse().map_err(|_| misfit(oid, text))?;
            let out_of_range = || {
                let of = name_of(oid);
                Refusal::new(
                    "22003",
                    format!("value \"{text}\" is out of range for type {of}"),
                )
            };
            match oid {
                INT2 => ScalarValue::from(i16::try_from(value).map_err(|_| out_of_range())?),
                INT4 => ScalarValue::from(i32::try_from(value).map_err(|_| out_of_range())?),
                _ => ScalarValue::from(i64::try_from(value).map_err(|_| out_of_range())?),
            }
        }
        FLOAT4 => ScalarValue::from(word.parse::<f32>().map_err(|_| misfit(oid, text))?),
        FLOAT8 => ScalarValue::from(word.parse::<f64>().map_err(|_| misfit(oid, text))?),
        NUMERIC => numeric(word).ok_or_else(|| misfit(oid, text))?,
        BYTEA => ScalarValue::Binary(Some(bytes_of(text).ok_or_else(|| misfit(oid, text))?)),
        DATE | TIME | TIMESTAMP | TIMESTAMPTZ | INTERVAL => {
            let array: ArrayRef = Arc::new(StringArray::from(vec![without_zone(oid, word)]));
            let target = told(oid).flatten().unwrap_or(DataType::Utf8);
            let options = CastOptions {
                safe: false,
                ..CastOptions::default()
            };
            let value =
                cast_with_options(&array, &target, &options).map_err(|_| misfit(oid, text))?;
            ScalarValue::try_from_array(&value, 0).map_err(|_| misfit(oid, text))?
        }
        other => match element_of(other) {
            Some(element) => {
                let texts = elements_of(text).ok_or_else(|| {
                    Refusal::new("22P02", format!("malformed array literal: \"{text}\""))
                })?;
                let values = texts.into_iter().map(|text| match text {
                    Some(text) => of_text(element, &text),
                    None => value(element, false, None),
                });
                list(element, values.collect::<Result<_, _>>()?)?
            }
            None => ScalarValue::from(text),
        },
    })
}

/// A date or a time without a zone that does not belong to it: PostgreSQL ignores it, and JDBC's
/// driver always sends one.
fn without_zone(oid: u32, text: &str) -> &str {
    let time = match text.find(':') {
        Some(colon) => colon,
        None => text.find([' ', 'T']).unwrap_or(text.len()),
    };
    match oid {
        DATE => text.split([' ', 'T']).next().unwrap_or(text),
        TIMESTAMP => {
            let zone = text[time..].find(['+', '-', 'Z']).map(|place| time + place);
            text[..zone.unwrap_or(text.len())].trim_end()
        }
        _ => text,
    }
}

fn list(element: u32, values: Vec<ScalarValue>) -> Result<ScalarValue, Refusal> {
    let element = told(element).flatten().unwrap_or(DataType::Utf8);
    let values: Vec<ScalarValue> = values
        .into_iter()
        .map(|value| value.cast_to(&element))
        .collect::<Result<_, _>>()
        .map_err(|error| Refusal::new("22P02", error.to_string()))?;
    Ok(ScalarValue::List(ScalarValue::new_list(
        &values, &element, true,
    )))
}

/// A decimal with the digits of a text.
fn numeric(text: &str) -> Option<ScalarValue> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, behind) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{whole}{behind}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut value: i128 = digits.parse().ok()?;
    let mut scale = i32::try_from(behind.len()).ok()? - exponent;
    if scale < 0 {
        value = value.checked_mul(10_i128.checked_pow(scale.unsigned_abs())?)?;
        scale = 0;
    }
    if scale > i32::from(DIGITS_MAX) || value >= 10_i128.pow(u32::from(DIGITS_MAX)) {
        return None;
    }
    Some(ScalarValue::Decimal128(
        Some(sign * value),
        DIGITS_MAX,
        scale as i8,
    ))
}

/// Decodes `\x0aff`, or PostgreSQL's older form: `\012\377`.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    if let Some(hex) = text.strip_prefix("\\x") {
        let hex = hex.as_bytes();
        let digit = |byte: u8| (byte as char).to_digit(16);
        return match hex.len() % 2 {
            0 => hex
                .chunks(2)
                .map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8))
                .collect(),
            _ => None,
        };
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (*first, tail) {
            (b'\\', [b'\\', tail @ ..]) => {
                bytes.push(b'\\');
                rest = tail;
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..]) => {
                bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = tail;
            }
            (b'\\', _) => return None,
            (byte, _) => bytes.push(byte),
        }
    }
    Some(bytes)
}

/// The elements of an array of one dimension: `{1,NULL,"a b"}`.
fn elements_of(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut elements = Vec::new();
    if inner.trim().is_empty() {
        return Some(elements);
    }
    let mut characters = inner.chars().peekable();
    loop {
        while characters.next_if(|it| it.is_whitespace()).is_some() {}
        let mut element = String::new();
        let is_quoted = characters.next_if_eq(&'"').is_some();
        loop {
            match characters.peek() {
                None if is_quoted => return None,
                None => break,
                Some('"') if is_quoted => {
                    characters.next();
                    while characters.next_if(|it| it.is_whitespace()).is_some() {}
                    break;
                }
                Some(',') if !is_quoted => break,
                Some('{' | '}' | '"') if !is_quoted => return None,
                Some('\\') => {
                    characters.next();
                    element.push(characters.next()?);
                }
                Some(other) => {
                    element.push(*other);
                    characters.next();
                }
            }
        }
        let is_null = !is_quoted && element.trim().eq_ignore_ascii_case("null");
        if !is_quoted {
            element.truncate(element.trim_end().len());
            if element.is_empty() {
                return None;
            }
        }
        elements.push((!is_null).then_some(element));
        match characters.next() {
            None => return Some(elements),
            Some(',') if elements.len() < ELEMENTS_MAX => {}
            Some(_) => return None,
        }
    }
}

fn of_binary(oid: u32, bytes: &Bytes) -> Result<ScalarValue, Refusal> {
    let wrong = || {
        Refusal::new(
            "22P03",
            format!("incorrect binary data format for type {}", name_of(oid)),
        )
    };
    fn fixed<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
        bytes.try_into().ok()
    }
    let eight = || fixed::<8>(bytes).map(i64::from_be_bytes);
    let four = || fixed::<4>(bytes).map(i32::from_be_bytes);
    let time = || eight().and_then(|time| time.checked_add(EPOCH_MICROSECONDS));
    let value = match oid {
        BOOL => fixed::<1>(bytes).map(|[byte]| ScalarValue::from(byte != 0)),
        INT2 => fixed::<2>(bytes).map(|it| ScalarValue::from(i16::from_be_bytes(it))),
        INT4 => four().map(ScalarValue::from),
        OID => fixed::<4>(bytes).map(|it| ScalarValue::from(i64::from(u32::from_be_bytes(it)))),
        INT8 => eight().map(ScalarValue::from),
        FLOAT4 => fixed::<4>(bytes).map(|it| ScalarValue::from(f32::from_be_bytes(it))),
        FLOAT8 => fixed::<8>(bytes).map(|it| ScalarValue::from(f64::from_be_bytes(it))),
        BYTEA => Some(ScalarValue::Binary(Some(bytes.to_vec()))),
        DATE => four()
            .and_then(|days| days.checked_add(EPOCH_DAYS))
            .map(|days| ScalarValue::Date32(Some(days))),
        TIME => eight().map(|time| ScalarValue::Time64Microsecond(Some(time))),
        TIMESTAMP => time().map(|time| ScalarValue::TimestampMicrosecond(Some(time), None)),
        TIMESTAMPTZ => {
            time().map(|time| ScalarValue::TimestampMicrosecond(Some(time), Some("+00:00".into())))
        }
        NUMERIC => numeric_text(bytes).and_then(|text| numeric(&text)),
        UUID => fixed::<16>(bytes).map(|it| ScalarValue::from(uuid_text(it))),
        INTERVAL => fixed::<16>(bytes).and_then(|it| interval(&it)),
        other => match element_of(other) {
            Some(element) => return elements_of_binary(element, bytes),
            None => return Ok(ScalarValue::from(text_of(bytes)?)),
        },
    };
    value.ok_or_else(wrong)
}

fn uuid_text(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

fn interval(mut bytes: &[u8]) -> Option<ScalarValue> {
    let microseconds = bytes.get_i64();
    let days = bytes.get_i32();
    let months = bytes.get_i32();
    let nanoseconds = microseconds.checked_mul(1_000)?;
    Some(ScalarValue::new_interval_mdn(months, days, nanoseconds))
}

/// The text of a binary numeric (PostgreSQL, numeric.c: numeric_recv).
///
/// `None` also for NaN and the infinities, which our decimals do not have.
pub(crate) fn numeric_text(mut bytes: &[u8]) -> Option<String> {
    if bytes.len() < 8 {
        return None;
    }
    let count = usize::from(bytes.get_u16());
    let weight = bytes.get_i16();
    let sign = bytes.get_u16();
    let scale = usize::from(bytes.get_u16());
    if bytes.len() != 2 * count || !matches!(sign, 0 | 0x4000) || scale > 38 || weight > 10 {
        return None;
    }
    let digits: Vec<u16> = (0..count).map(|_| bytes.get_u16()).collect();
    if digits.iter().any(|digit| *digit > 9_999) {
        return None;
    }
    let group = |place: i32| -> u16 {
        let index = i32::from(weight) - place;
        let index = usize::try_from(index).ok();
        index
            .and_then(|index| digits.get(index))
            .copied()
            .unwrap_or(0)
    };
    let mut text = String::new();
    if sign != 0 {
        text.push('-');
    }
    for place in (0..=i32::from(weight).max(0)).rev() {
        text.push_str(&format!("{:04}", group(place)));
    }
    if scale > 0 {
        text.push('.');
        let start = text.len();
        let mut place = -1;
        while text.len() < start + scale {
            text.push_str(&format!("{:04}", group(place)));
            place -= 1;
        }
        text.truncate(start + scale);
    }
    Some(text)
}

/// Decodes an array as `encode` writes it.
fn elements_of_binary(element: u32, bytes: &Bytes) -> Result<ScalarValue, Refusal> {
    let wrong = || Refusal::new("22P03", "incorrect binary data format for an array");
    let mut rest = bytes.clone();
    let four = |rest: &mut Bytes| match rest.remaining() >= 4 {
        true => Ok(rest.get_i32()),
        false => Err(wrong()),
    };
    let dimensions = four(&mut rest)?;
    let _has_nulls = four(&mut rest)?;
    let told_element = four(&mut rest)?;
    if u32::try_from(told_element) != Ok(element) {
        return Err(wrong());
    }
    let count = match dimensions {
        0 => 0,
        1 => {
            let count = four(&mut rest)?;
            let _lower_bound = four(&mut rest)?;
            usize::try_from(count).map_err(|_| wrong())?
        }
        _ => return Err(Refusal::new("0A000", "arrays have one dimension here")),
    };
    if count > ELEMENTS_MAX || rest.remaining() < 4 * count {
        return Err(wrong());
    }
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        let length = four(&mut rest)?;
        let bytes = match usize::try_from(length) {
            Err(_) => None,
            Ok(length) if length <= rest.remaining() => Some(rest.split_to(length)),
            Ok(_) => return Err(wrong()),
        };
        values.push(value(element, true, bytes.as_ref())?);
    }
    list(element, values)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, TimeUnit};

    use super::*;

    fn list_type(element: DataType) -> DataType {
        DataType::List(Arc::new(Field::new_list_field(element, true)))
    }

    fn text(oid: u32, text: &'static str) -> Result<ScalarValue, &'static str> {
        value(oid, false, Some(&Bytes::from_static(text.as_bytes()))).map_err(|it| it.code)
    }

    #[test]
    fn texts_are_read_as_their_types() {
        assert_eq!(text(BOOL, " TRUE "), Ok(ScalarValue::from(true)));
        assert_eq!(text(BOOL, "of"), Ok(ScalarValue::from(false)));
        assert_eq!(text(BOOL, "o"), Err("22P02"));
        assert_eq!(text(INT2, "32768"), Err("22003"));
        assert_eq!(text(INT4, "1x"), Err("22P02"));
        assert_eq!(text(DATE, "2026-13-01"), Err("22007"));
        assert_eq!(
            text(DATE, "1970-01-02 +02"),
            Ok(ScalarValue::Date32(Some(1)))
        );
        assert_eq!(
            text(TIMESTAMP, "1970-01-01 00:00:01.5+02"),
            Ok(ScalarValue::TimestampMicrosecond(Some(1_500_000), None))
        );
        assert_eq!(text(DATE, "1970-01-02"), Ok(ScalarValue::Date32(Some(1))));
        assert_eq!(
            text(NUMERIC, "-1.50"),
            Ok(ScalarValue::Decimal128(Some(-150), 38, 2))
        );
        assert_eq!(
            text(NUMERIC, "1e3"),
            Ok(ScalarValue::Decimal128(Some(1000), 38, 0))
        );
        assert_eq!(text(NUMERIC, "NaN"), Err("22P02"));
        assert_eq!(
            text(BYTEA, "\\x0aFF"),
            Ok(ScalarValue::Binary(Some(vec![10, 255])))
        );
        assert_eq!(
            text(BYTEA, "a\\\\\\377"),
            Ok(ScalarValue::Binary(Some(vec![b'a', b'\\', 255])))
        );
        assert_eq!(text(BYTEA, "\\x0"), Err("22P02"));
    }

    #[test]
    fn arrays_are_read_from_texts() {
        let Ok(value) = text(1009, "{a, NULL,\"b, \\\"c\"}") else {
            panic!("it is an array");
        };
        assert_eq!(value.data_type(), list_type(DataType::Utf8));
        let elements =
            [Some("a"), None, Some("b, \"c")].map(|it| ScalarValue::Utf8(it.map(str::to_owned)));
        let expected = ScalarValue::new_list(&elements, &DataType::Utf8, true);
        assert_eq!(value, ScalarValue::List(expected));
        assert_eq!(text(1007, "{1,2"), Err("22P02"));
        assert_eq!(text(1007, "{1,x}"), Err("22P02"));
        assert_eq!(told(1007), Some(Some(list_type(DataType::Int32))));
        assert_eq!(
            told(TIMESTAMP),
            Some(Some(DataType::Timestamp(TimeUnit::Microsecond, None)))
        );
    }

    #[test]
    fn binary_values_of_a_wrong_length_are_refused() {
        let binary = |oid, bytes: &'static [u8]| {
            value(oid, true, Some(&Bytes::from_static(bytes))).map_err(|it| it.code)
        };
        assert_eq!(binary(INT4, &[0, 0, 1, 0]), Ok(ScalarValue::from(256_i32)));
        assert_eq!(binary(INT4, &[1]), Err("22P03"));
        assert_eq!(binary(NUMERIC, &[0, 9, 0, 0, 0, 0, 0, 0]), Err("22P03"));
        assert_eq!(binary(1007, &[0, 0, 0, 1, 0, 0, 0, 0]), Err("22P03"));
        assert_eq!(binary(25, &[0xff]), Err("22021"));
    }
}
