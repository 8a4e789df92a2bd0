//! Decoding of escapes: `\t`, `\u00E9`, `\U0001F600`.

use super::LineError;
use std::borrow::Cow;

/// Decodes the one escape of a string that these bytes are.
pub(crate) fn decode_escape(bytes: &[u8]) -> Result<char, Cow<'static, str>> {
    decode(bytes, 0, true)
        .map(|(c, _)| c)
        .map_err(|error| error.message)
}

/// Decodes the escape at `at`, which holds a backslash. Returns the character and where it ends.
///
/// `in_string` also allows the short escapes; an IRI may have only `\u` and `\U`.
pub(super) fn decode(bytes: &[u8], at: usize, in_string: bool) -> Result<(char, usize), LineError> {
    let short = match bytes.get(at + 1) {
        Some(b'u') => return decode_hex(bytes, at, 4),
        Some(b'U') => return decode_hex(bytes, at, 8),
        Some(b't') => '\t',
        Some(b'b') => '\u{8}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b'f') => '\u{c}',
        Some(b'"') => '"',
        Some(b'\'') => '\'',
        Some(b'\\') => '\\',
        _ => return Err(unknown(bytes, at, in_string)),
    };
    if in_string {
        Ok((short, at + 2))
    } else {
        Err(unknown(bytes, at, in_string))
    }
}

fn decode_hex(bytes: &[u8], at: usize, digits: usize) -> Result<(char, usize), LineError> {
    let start = at + 2;
    let end = (start + digits).min(bytes.len());
    let mut code = 0_u32;
    for (offset, &byte) in bytes[start..end].iter().enumerate() {
        let Some(digit) = char::from(byte).to_digit(16) else {
            return Err(LineError::new(
                at..start + offset,
                format!("expected {digits} hexadecimal digits in an escape"),
            ));
        };
        // Eight digits fit into 32 bits.
        code = code << 4 | digit;
    }
    if end - start < digits {
        return Err(LineError::new(
            at..end,
            format!("expected {digits} hexadecimal digits in an escape"),
        ));
    }
    match char::from_u32(code) {
        Some(c) => Ok((c, end)),
        None => Err(LineError::new(
            at..end,
            format!("expected a Unicode character, {code:X} is none (a surrogate or too large)"),
        )),
    }
}

fn unknown(bytes: &[u8], at: usize, in_string: bool) -> LineError {
    let end = (at + 2).min(bytes.len());
    LineError::new(
        at..end,
        if in_string {
            r#"expected one of the escapes \t \b \n \r \f \" \' \\ \uXXXX \UXXXXXXXX"#
        } else {
            r"expected one of the escapes \uXXXX \UXXXXXXXX in an IRI"
        },
    )
}
