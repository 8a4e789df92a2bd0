//! The decoder of `name=value&...` in URLs and forms; it is strict.
//!
//! Text must be UTF-8, also behind percent escapes, and a percent sign must begin an escape: a
//! lenient decoder would run another query than the one that was meant.

use orrery_service::errors::ServiceError;
use orrery_storage::{At, AtError};
use percent_encoding::percent_decode;

/// The decoded `name=value` pairs of a URL, in order.
pub(crate) fn url_parameters(
    url_query: Option<&str>,
) -> Result<Vec<(String, String)>, ServiceError> {
    pairs(url_query.unwrap_or_default().as_bytes())
        .map(|(name, value)| {
            let name = decode_name(name)?;
            let value = decode_value(&name, value)?;
            Ok((name, value))
        })
        .collect()
}

/// Splits `name=value&...` into names and values, still encoded.
pub(crate) fn pairs(encoded: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let pairs = encoded.split(|&byte| byte == b'&');
    pairs.filter(|pair| !pair.is_empty()).map(|pair| {
        let split = pair.iter().position(|&byte| byte == b'=');
        split.map_or((pair, &[][..]), |at| (&pair[..at], &pair[at + 1..]))
    })
}

/// Decodes the name of a parameter.
pub(crate) fn decode_name(encoded: &[u8]) -> Result<String, ServiceError> {
    decode_form(encoded, || "the name of a parameter".to_owned())
}

/// Decodes the value of the parameter with this name.
pub(crate) fn decode_value(name: &str, encoded: &[u8]) -> Result<String, ServiceError> {
    decode_form(encoded, || format!("parameter `{name}`"))
}

/// The error for a parameter that a path does not know.
pub(crate) fn unknown(name: &str, known: &str) -> ServiceError {
    ServiceError::bad_request(format!(
        "parameter `{name}` is unknown here; known are {known}"
    ))
}

/// Refuses all parameters of a URL.
pub(crate) fn none(url_query: Option<&str>) -> Result<(), ServiceError> {
    match url_parameters(url_query)?.first() {
        None => Ok(()),
        Some((name, _)) => Err(ServiceError::bad_request(format!(
            "parameter `{name}` is unknown here; there are none"
        ))),
    }
}

/// Parses a parameter that is `true` or `false`.
pub(crate) fn flag(name: &str, value: &str) -> Result<bool, ServiceError> {
    value.parse().map_err(|_| {
        ServiceError::bad_request(format!(
            "parameter `{name}` is true or false, not `{value}`"
        ))
    })
}

/// Checks that a parameter is an absolute IRI.
pub(crate) fn checked_iri(parameter: &str, iri: String) -> Result<String, ServiceError> {
    match oxrdf::NamedNode::new(&iri) {
        Ok(_) => Ok(iri),
        Err(error) => Err(ServiceError::bad_request(format!(
            "parameter `{parameter}`: `{iri}` is no absolute IRI: {error}"
        ))),
    }
}

/// Decodes `+` and `%XX` (application/x-www-form-urlencoded) into text.
fn decode_form(encoded: &[u8], what: impl Fn() -> String) -> Result<String, ServiceError> {
    let is_broken = |at: &usize| {
        let digits = encoded.get(at + 1..at + 3);
        encoded[*at] == b'%'
            && !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    // The decoder would leave these as they are.
    if let Some(at) = (0..encoded.len()).find(is_broken) {
        return Err(broken_escape(&encoded[at..], at, &what()));
    }
    let mut decoded = Vec::with_capacity(encoded.len());
    for (number, part) in encoded.split(|&byte| byte == b'+').enumerate() {
        if number > 0 {
            decoded.push(b' ');
        }
        decoded.extend(percent_decode(part));
    }
    String::from_utf8(decoded)
        .map_err(|_| ServiceError::bad_request(format!("{} is not UTF-8", what())))
}

fn broken_escape(rest: &[u8], at: usize, what: &str) -> ServiceError {
    let found = String::from_utf8_lossy(&rest[..rest.len().min(3)]);
    ServiceError::bad_request(format!(
        "{what} has broken percent-encoding at byte {at}: `{found}` is no % with two hexadecimal digits; a percent \
         sign itself is written %25"
    ))
}

/// Parses `at`: `at=17` is a commit, `at=2026-11-21T10:00:00Z` a time.
pub(crate) fn parse_at(text: &str) -> Result<At, ServiceError> {
    text.parse()
        .map_err(|error: AtError| ServiceError::bad_request(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(encoded: &str) -> Result<String, String> {
        decode_value("p", encoded.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn broken_escapes_are_named_with_their_place() {
        assert_eq!(decoded("a+b%20%c3%A4").unwrap(), "a b ä");
        assert_eq!(decoded("++%2B+").unwrap(), "  + ");
        assert_eq!(decoded("").unwrap(), "");
        for (encoded, place) in [
            ("ab%zz", "byte 2: `%zz`"),
            ("100%", "byte 3: `%`"),
            ("%2", "byte 0: `%2`"),
            ("a+%2+0", "byte 2: `%2+`"),
        ] {
            let message = decoded(encoded).unwrap_err();
            assert!(
                message.starts_with("parameter `p` has broken percent-encoding"),
                "{message}"
            );
            assert!(message.contains(place), "{message}");
        }
        assert_eq!(decoded("%ff").unwrap_err(), "parameter `p` is not UTF-8");
    }

    proptest! {
        #[test]
        fn any_text_survives_form_encoding(text in ".*") {
            let encoded: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
            prop_assert_eq!(decoded(&encoded).unwrap(), text);
        }
    }

    #[test]
    fn a_state_is_named_by_its_commit_or_by_a_time() {
        assert_eq!(parse_at("17").unwrap(), At::Commit(17));
        assert_eq!(
            parse_at("1970-01-01T00:00:01.5Z").unwrap(),
            At::Time(1_500_000)
        );
        assert_eq!(parse_at("1970-01-01T01:00:00+01:00").unwrap(), At::Time(0));
        let end_of_day = At::Time(24 * 60 * 60 * 1_000_000 - 1);
        assert_eq!(parse_at("1970-01-01").unwrap(), end_of_day);
        for bad in ["", "-1", "yesterday", "1970-02-30"] {
            assert!(parse_at(bad).is_err(), "{bad}");
        }
    }
}
