//! The exact conversion of PostgreSQL's binary `numeric` to decimals.
//!
//! ```text
//! i16 number of digits | i16 weight | u16 sign | u16 shown digits behind the point | digits of base 10,000, u16 each
//! value = sum of digit[i] * 10000 ^ (weight - i)
//! ```

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xc000;
const INFINITE: u16 = 0xd000;
const NEGATIVE_INFINITE: u16 = 0xf000;

/// The digits of a value with so many of them behind the point.
///
/// # Errors
/// In words, where it does not fit, or is no number.
pub(crate) fn digits(raw: &[u8], precision: u8, scale: u8) -> Result<i128, String> {
    let broken = || "the source sent no numeric".to_owned();
    let word = |place: usize| -> Result<u16, String> {
        let bytes = raw.get(2 * place..2 * place + 2).ok_or_else(broken)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    };
    let count = usize::from(word(0)?);
    let weight = i32::from(word(1)?.cast_signed());
    let sign = word(2)?;
    match sign {
        0 | NEGATIVE => {}
        NAN => return Err("NaN is no value of an exact number here".to_owned()),
        INFINITE => return Err("Infinity is no value of an exact number here".to_owned()),
        NEGATIVE_INFINITE => {
            return Err("-Infinity is no value of an exact number here".to_owned());
        }
        _ => return Err(broken()),
    }
    if raw.len() != 2 * (4 + count) {
        return Err(broken());
    }
    let misfit = || {
        let shown = written(raw).unwrap_or_default();
        format!("the value {shown} does not fit numeric({precision},{scale})")
    };
    let mut value: i128 = 0;
    for place in 0..count {
        let digit = i128::from(word(4 + place)?);
        if digit > 9999 {
            return Err(broken());
        }
        // The power of ten that one of this digit has, counted from the last digit of ours.
        let place = i32::try_from(place).map_err(|_| broken())?;
        let power = 4 * (weight - place) + i32::from(scale);
        let part = match u32::try_from(power) {
            Ok(power) => 10_i128
                .checked_pow(power)
                .and_then(|ten| digit.checked_mul(ten)),
            Err(_) => match 10_i128.checked_pow(power.unsigned_abs()) {
                Some(ten) => (digit % ten == 0).then_some(digit / ten),
                None => (digit == 0).then_some(0),
            },
        };
        let part = match digit {
            0 => Some(0),
            _ => part,
        };
        value = part
            .and_then(|part| value.checked_add(part))
            .ok_or_else(misfit)?;
    }
    let limit = 10_i128
        .checked_pow(u32::from(precision))
        .ok_or_else(misfit)?;
    if value >= limit {
        return Err(misfit());
    }
    Ok(if sign == NEGATIVE { -value } else { value })
}

/// For messages: the digits as far as there are not too many.
fn written(raw: &[u8]) -> Option<String> {
    const GROUPS_MAX: i32 = 16;
    let word = |place: usize| {
        let bytes = raw.get(2 * place..2 * place + 2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    };
    let count = i32::from(word(0)?);
    let weight = i32::from(word(1)?.cast_signed());
    let digit = |place: i32| match usize::try_from(place) {
        Ok(at) if place < count => word(4 + at).unwrap_or_default(),
        _ => 0,
    };
    if weight.abs() > GROUPS_MAX || count > 2 * GROUPS_MAX {
        return Some("with so many digits".to_owned());
    }
    let mut text = String::from(if word(2)? == NEGATIVE { "-" } else { "" });
    let mut whole = String::new();
    for place in 0..=weight.max(0) {
        let place = if weight < 0 { -1 } else { place };
        whole.push_str(&format!("{:04}", if place < 0 { 0 } else { digit(place) }));
    }
    let whole = whole.trim_start_matches('0');
    text.push_str(if whole.is_empty() { "0" } else { whole });
    let mut fraction = String::new();
    for place in weight + 1..count {
        let group = if place < 0 { 0 } else { digit(place) };
        fraction.push_str(&format!("{group:04}"));
    }
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(weight: i16, sign: u16, digits: &[u16]) -> Vec<u8> {
        let mut raw = Vec::new();
        raw.extend(u16::try_from(digits.len()).unwrap().to_be_bytes());
        raw.extend(weight.to_be_bytes());
        raw.extend(sign.to_be_bytes());
        raw.extend(0_u16.to_be_bytes());
        for digit in digits {
            raw.extend(digit.to_be_bytes());
        }
        raw
    }

    #[test]
    fn digits_are_exact_or_refused() {
        assert_eq!(digits(&sent(0, 0, &[]), 5, 2), Ok(0));
        assert_eq!(digits(&sent(0, 0, &[12, 3400]), 5, 2), Ok(1234));
        assert_eq!(digits(&sent(0, NEGATIVE, &[12, 3400]), 5, 2), Ok(-1234));
        assert_eq!(digits(&sent(-1, 0, &[500]), 5, 2), Ok(5));
        assert_eq!(digits(&sent(-2, 0, &[1]), 38, 8), Ok(1));
        assert_eq!(digits(&sent(1, 0, &[1]), 10, 2), Ok(1_000_000));
        let error = digits(&sent(0, 0, &[12, 3450]), 5, 2).unwrap_err();
        assert!(
            error.contains("12.345") && error.contains("numeric(5,2)"),
            "{error}"
        );
        let error = digits(&sent(0, NEGATIVE, &[1000]), 5, 2).unwrap_err();
        assert!(error.contains("-1000 "), "{error}");
        let error = digits(&sent(-3, 0, &[7]), 5, 2).unwrap_err();
        assert!(error.contains("0.000000000007"), "{error}");
        assert!(digits(&sent(30, 0, &[1]), 38, 0).is_err());
        for (sign, word) in [
            (NAN, "NaN"),
            (INFINITE, "Infinity"),
            (NEGATIVE_INFINITE, "-Infinity"),
        ] {
            assert!(
                digits(&sent(0, sign, &[]), 5, 2)
                    .unwrap_err()
                    .contains(word)
            );
        }
        assert!(digits(&[0, 1, 0, 0], 5, 2).is_err());
        assert!(digits(&[], 5, 2).is_err());
    }

    #[test]
    fn the_greatest_numbers_fit() {
        // 38 nines: 10 groups, of which the first has two.
        let mut groups = vec![99];
        groups.extend([9999; 9]);
        assert_eq!(digits(&sent(9, 0, &groups), 38, 0), Ok(10_i128.pow(38) - 1));
        assert!(digits(&sent(9, 0, &[100]), 38, 0).is_err());
    }
}
