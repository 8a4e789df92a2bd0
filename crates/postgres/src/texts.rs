//! Values as PostgreSQL's texts, where [`ValueTexts`](orrery_sql::ValueTexts) writes others.

use std::fmt::Write as _;

/// Writes a double as PostgreSQL does: the fewest digits that are read as the same number, and an
/// exponent below 1e-4 and from 1e15 on.
pub(crate) fn write_double(value: f64, text: &mut String) {
    write_float(
        value.is_finite(),
        value.to_string_kind(),
        &format!("{value:e}"),
        15,
        text,
    );
}

/// Writes a real like a double; its exponents begin at 1e6.
pub(crate) fn write_real(value: f32, text: &mut String) {
    write_float(
        value.is_finite(),
        f64::from(value).to_string_kind(),
        &format!("{value:e}"),
        6,
        text,
    );
}

trait StringKind {
    /// The text of a number that is not finite.
    fn to_string_kind(self) -> &'static str;
}

impl StringKind for f64 {
    fn to_string_kind(self) -> &'static str {
        match (self.is_nan(), self > 0.0) {
            (true, _) => "NaN",
            (false, true) => "Infinity",
            (false, false) => "-Infinity",
        }
    }
}

/// Writes a number from Rust's `scientific` form: `-1.25e-7`.
fn write_float(is_finite: bool, kind: &str, scientific: &str, digits: i32, text: &mut String) {
    if !is_finite {
        text.push_str(kind);
        return;
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let unsigned = mantissa.trim_start_matches('-');
    if mantissa.len() > unsigned.len() {
        text.push('-');
    }
    if !(-4..digits).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a String does not fail.
        let _ = write!(text, "{unsigned}e{sign}{:02}", exponent.abs());
        return;
    }
    let all: String = unsigned.chars().filter(|it| *it != '.').collect();
    match usize::try_from(exponent) {
        Ok(exponent) => {
            let whole = exponent + 1;
            if all.len() <= whole {
                text.push_str(&all);
                text.extend(std::iter::repeat_n('0', whole - all.len()));
            } else {
                text.push_str(&all[..whole]);
                text.push('.');
                text.push_str(&all[whole..]);
            }
        }
        Err(_) => {
            text.push_str("0.");
            let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
            text.extend(std::iter::repeat_n('0', zeros));
            text.push_str(&all);
        }
    }
}

/// Cuts trailing zeros of a time stamp's fraction: `00:00:01.500+00` becomes `00:00:01.5+00`.
pub(crate) fn cut_zeros(text: &mut String, start: usize) {
    let Some(point) = text[start..].find('.').map(|place| start + place) else {
        return;
    };
    let digits = text[point + 1..]
        .bytes()
        .take_while(u8::is_ascii_digit)
        .count();
    let end = point + 1 + digits;
    let kept = text[point + 1..end].trim_end_matches('0').len();
    let from = if kept == 0 { point } else { point + 1 + kept };
    text.replace_range(from..end, "");
}

/// Writes an element of an array, in quotes where it needs them.
pub(crate) fn write_element(element: &str, text: &mut String) {
    let needs_quotes = element.is_empty()
        || element.eq_ignore_ascii_case("null")
        || element
            .contains(|it: char| matches!(it, '"' | '\\' | '{' | '}' | ',') || it.is_whitespace());
    if !needs_quotes {
        text.push_str(element);
        return;
    }
    text.push('"');
    for character in element.chars() {
        if matches!(character, '"' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_postgresql_writes_them() {
        let double = |value: f64| {
            let mut text = String::new();
            write_double(value, &mut text);
            text
        };
        let expected = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (1234.5, "1234.5"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (1.25e300, "1.25e+300"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (value, text) in expected {
            assert_eq!(double(value), text);
        }
        let mut text = String::new();
        write_real(0.1, &mut text);
        text.push(' ');
        write_real(1e6, &mut text);
        assert_eq!(text, "0.1 1e+06");
    }

    #[test]
    fn zeros_behind_the_point_of_a_time_are_cut() {
        let cut = |text: &str| {
            let mut text = text.to_owned();
            cut_zeros(&mut text, 0);
            text
        };
        assert_eq!(
            cut("1970-01-01 00:00:01.500+00"),
            "1970-01-01 00:00:01.5+00"
        );
        assert_eq!(cut("1970-01-01 00:00:01.000"), "1970-01-01 00:00:01");
        assert_eq!(cut("1970-01-01 00:00:10"), "1970-01-01 00:00:10");
    }

    #[test]
    fn elements_of_arrays_have_quotes_where_they_need_them() {
        let element = |element: &str| {
            let mut text = String::new();
            write_element(element, &mut text);
            text
        };
        assert_eq!(element("a"), "a");
        assert_eq!(element("NULL"), "\"NULL\"");
        assert_eq!(element(""), "\"\"");
        assert_eq!(element("a\"b"), "\"a\\\"b\"");
    }
}
