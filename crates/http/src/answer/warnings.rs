//! Headers with warnings about a valid query that surely means something else; the body holds the
//! answer alone.
//!
//! ```text
//! Orrery-Warning: line 1, column 33: the pattern `(` of REGEX is no regular expression ...
//! ```
//!
//! One header for each warning, in ASCII: other characters as `\u{e9}`. Answers to updates have
//! their warnings in the body, as `warnings`.

use axum::http::{HeaderName, HeaderValue};

pub(crate) const WARNING: HeaderName = HeaderName::from_static("orrery-warning");
/// Most warning headers of one answer; some clients and proxies accept few.
const HEADERS_MAX: usize = 4;

/// The warning headers for a query's text.
pub(crate) fn warnings_of(text: &str) -> Vec<HeaderValue> {
    let all = orrery_sparql::warnings(text).into_iter().take(HEADERS_MAX);
    all.filter_map(|warning| header_of(&warning.to_string()))
        .collect()
}

/// Most characters of a header: a warning may quote a pattern or an IRI of any length.
const HEADER_CHARACTERS_MAX: usize = 500;

/// The header with one warning, cut if it is long.
pub(crate) fn header_of(warning: &str) -> Option<HeaderValue> {
    let mut text = ascii(warning);
    if text.len() > HEADER_CHARACTERS_MAX {
        // Safe to cut anywhere: it is all ASCII.
        text.truncate(HEADER_CHARACTERS_MAX);
        text.push_str("...");
    }
    HeaderValue::try_from(text).ok()
}

fn ascii(text: &str) -> String {
    let written = |character: char| match character {
        ' '..='~' => character.to_string(),
        other => other.escape_default().to_string(),
    };
    text.chars().map(written).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_as_long_as_clients_take() {
        let header = header_of(&"é".repeat(10_000)).unwrap();
        assert_eq!(header.len(), HEADER_CHARACTERS_MAX + 3);
    }

    #[test]
    fn headers_are_ascii() {
        let all = warnings_of("ASK { FILTER regex('a', '(é\\n') }");
        assert_eq!(all.len(), 1);
        let text = all[0].to_str().unwrap();
        assert!(text.contains("column 25"), "{text}");
        assert!(text.contains("`(\\u{e9}`"), "{text}");
    }
}
