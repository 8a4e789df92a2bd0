//! The parser of media types in headers (RFC 9110, 8.3.1); nothing else takes one apart.
//!
//! ```text
//! Text/Turtle ; charset="UTF-8"   ->   text/turtle, and the parameters one by one
//! ```
//!
//! Lenient where clients are: an extra semicolon, or white space around one (RFC 9110, 5.6.6,
//! allows it; the crate `mime` does not), is harmless, and a parameter without `=` is skipped. The
//! parts are not judged here: an unknown type is unknown to the caller.

use axum::http::{HeaderMap, HeaderValue, header};

/// A media type: `type/subtype` in lower case, and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MediaType<'t> {
    essence: String,
    parameters: &'t str,
}

impl<'t> MediaType<'t> {
    /// Splits a media type; a text that is none matches nothing.
    pub(crate) fn parse(text: &'t str) -> Self {
        let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
        Self {
            essence: essence.trim().to_ascii_lowercase(),
            parameters,
        }
    }

    /// The media type of a request's body; `None` without a `Content-Type` in ASCII.
    pub(crate) fn of_body(headers: &'t HeaderMap) -> Option<Self> {
        let value: &HeaderValue = headers.get(header::CONTENT_TYPE)?;
        value.to_str().ok().map(Self::parse)
    }

    /// `type/subtype` in lower case.
    pub(crate) fn essence(&self) -> &str {
        &self.essence
    }

    /// Type and subtype in lower case, if it has both.
    pub(crate) fn main_and_sub(&self) -> Option<(&str, &str)> {
        let (main, sub) = self.essence.split_once('/')?;
        (!main.is_empty() && !sub.is_empty()).then_some((main, sub))
    }

    /// The first parameter with this name, without its quotes. Its case is the sender's.
    pub(crate) fn parameter(&self, name: &str) -> Option<&'t str> {
        let mut pairs = self
            .parameters
            .split(';')
            .filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(found, _)| found.trim().eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().trim_matches('"'))
    }

    /// Whether a body holds several files.
    pub(crate) fn is_multipart(&self) -> bool {
        self.essence == "multipart/form-data"
    }
}

/// Whether the body of a request is of this type, given in lower case.
pub(crate) fn is_body(headers: &HeaderMap, essence: &str) -> bool {
    MediaType::of_body(headers).is_some_and(|found| found.essence() == essence)
}

/// Whether the body of a request holds several files.
pub(crate) fn is_multipart(headers: &HeaderMap) -> bool {
    MediaType::of_body(headers).is_some_and(|found| found.is_multipart())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_white_space_and_parameters_do_not_change_a_type() {
        for text in [
            "text/turtle",
            " Text/TURTLE ",
            "text/turtle;",
            "text/turtle ; charset=UTF-8",
            "text/turtle;profile;charset=\"utf-8\"",
        ] {
            assert_eq!(MediaType::parse(text).essence(), "text/turtle", "{text}");
        }
        let with = MediaType::parse("a/b; Q = 0.5 ;charset=\"UTF-8\"; q=1");
        assert_eq!(with.parameter("q"), Some("0.5"));
        assert_eq!(with.parameter("charset"), Some("UTF-8"));
        assert_eq!(with.parameter("profile"), None);
        assert_eq!(with.main_and_sub(), Some(("a", "b")));
        for none in ["", "text", "/turtle", "text/", ";a=b"] {
            assert_eq!(MediaType::parse(none).main_and_sub(), None, "{none}");
        }
    }

    #[test]
    fn a_type_is_known_as_a_whole() {
        let mut headers = HeaderMap::new();
        assert!(!is_multipart(&headers));
        let mut is = |text: &'static str| {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(text));
            (
                is_multipart(&headers),
                is_body(&headers, "application/sparql-query"),
            )
        };
        assert_eq!(is("Multipart/Form-Data; boundary=x"), (true, false));
        assert_eq!(is("multipart/form-data-not"), (false, false));
        assert_eq!(is("application/sparql-query;charset=utf-8"), (false, true));
        assert_eq!(is("application/sparql-query-result"), (false, false));
    }
}
