//! Lexical forms of XML Schema's numbers: which texts are numbers, and the canonical text of a
//! double.
//!
//! Rust's own parsers accept more than XML Schema does (`inf`, `infinity`, `nan` in any case); a
//! literal that only they can read is ill-typed and no number (XML Schema 1.1, part 2, 3.3.4 and
//! 3.3.5). Forms are strict: white space around a number belongs to no lexical form. A cast from a
//! string removes it first ([`collapsed`]).

use std::fmt::LowerExp;

/// The value of an `xsd:double`.
#[inline]
pub fn parse_double(lexical: &str) -> Option<f64> {
    let value: f64 = lexical.parse().ok()?;
    (value.is_finite() || is_exceptional(lexical)).then_some(value)
}

/// The value of an `xsd:float`.
#[inline]
pub fn parse_float(lexical: &str) -> Option<f32> {
    let value: f32 = lexical.parse().ok()?;
    (value.is_finite() || is_exceptional(lexical)).then_some(value)
}

/// Whether a text that Rust reads as infinite or as no number is one of XML Schema: digits beyond
/// the range, or one of its four words.
#[cold]
fn is_exceptional(lexical: &str) -> bool {
    matches!(lexical, "INF" | "+INF" | "-INF" | "NaN")
        || lexical.bytes().any(|byte| byte.is_ascii_digit())
}

/// A text without the white space around it, as casts from strings read it (`whiteSpace` is
/// `collapse` for all of XML Schema's types that are cast to, and none of them has white space
/// inside).
#[inline]
pub fn collapsed(text: &str) -> &str {
    text.trim_matches(['\t', '\n', '\r', ' '])
}

/// The canonical form of a finite double or float: one digit before the point, at least one after
/// it, an exponent (`1.0E6`).
pub fn canonical_exponent(value: impl LowerExp) -> String {
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => {
            format!("{mantissa}.0E{exponent}")
        }
        Some((mantissa, exponent)) => format!("{mantissa}E{exponent}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_of_xml_schema_are_doubles() {
        for word in ["INF", "+INF", "-INF", "NaN"] {
            assert!(
                parse_double(word).is_some_and(|value| !value.is_finite()),
                "{word}"
            );
            assert!(
                parse_float(word).is_some_and(|value| !value.is_finite()),
                "{word}"
            );
        }
        for word in [
            "inf",
            "Inf",
            "infinity",
            "-infinity",
            "+Infinity",
            "nan",
            "NAN",
            "+NaN",
            "-NaN",
            "",
            " 1",
            "1 ",
            "1_0",
            "0x1",
            "1f",
            "e5",
            ".",
            "+",
            "--1",
        ] {
            assert_eq!(parse_double(word), None, "{word}");
            assert_eq!(parse_float(word), None, "{word}");
        }
        for number in [
            "1", "+1", "-1.", ".5", "1e5", "1E-5", "-0", "1e400", "00.10",
        ] {
            assert!(parse_double(number).is_some(), "{number}");
            assert!(parse_float(number).is_some(), "{number}");
        }
    }

    #[test]
    fn the_canonical_form_has_a_digit_behind_the_point() {
        assert_eq!(canonical_exponent(1e6), "1.0E6");
        assert_eq!(canonical_exponent(-1.25e-7), "-1.25E-7");
        assert_eq!(canonical_exponent(0.1f32), "1.0E-1");
    }

    #[test]
    fn only_white_space_of_xml_is_removed() {
        assert_eq!(collapsed(" \t\r\n7\n"), "7");
        assert_eq!(collapsed("\u{a0}7"), "\u{a0}7");
    }
}
