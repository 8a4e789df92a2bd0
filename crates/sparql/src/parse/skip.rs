//! What every scan of a text skips, and where in it something is wrong.

use crate::error::QueryError;

/// Last byte of the comment that starts at `at`.
pub(super) fn skip_comment(bytes: &[u8], at: usize) -> usize {
    let end = bytes[at..].iter().position(|&b| b == b'\n' || b == b'\r');
    end.map_or(bytes.len(), |length| at + length)
}

/// Last byte of the string literal that starts at `at`.
pub(super) fn skip_string(bytes: &[u8], at: usize) -> usize {
    let quote = bytes[at];
    let is_long = bytes.get(at + 1) == Some(&quote) && bytes.get(at + 2) == Some(&quote);
    let mut end = if is_long { at + 3 } else { at + 1 };
    while end < bytes.len() {
        match bytes[end] {
            b'\\' => end += 1,
            b'\n' if !is_long => return end,
            b if b == quote => {
                let closes = !is_long
                    || (bytes.get(end + 1) == Some(&quote) && bytes.get(end + 2) == Some(&quote));
                if closes {
                    return if is_long { end + 2 } else { end };
                }
            }
            _ => {}
        }
        end += 1;
    }
    end
}

/// Last byte of the IRI that starts at `at`, or `at` where `<` is an operator.
pub(super) fn skip_iri(bytes: &[u8], at: usize) -> usize {
    for (length, &byte) in bytes[at..].iter().enumerate().skip(1) {
        match byte {
            b'>' => return at + length,
            b'<' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`' | b'\\' | 0..=0x20 => return at,
            _ => {}
        }
    }
    at
}

/// A syntax error at a byte of the text.
pub(crate) fn error_at(text: &str, byte: usize, message: String) -> QueryError {
    let before = &text.as_bytes()[..byte];
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let line_start = before
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |p| p + 1);
    let column = String::from_utf8_lossy(&before[line_start..])
        .chars()
        .count()
        + 1;
    QueryError::Syntax {
        message,
        line,
        column,
    }
}
