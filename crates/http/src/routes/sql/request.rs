//! Parses an HTTP request into its SQL statements.
//!
//! | request | statements | parameters |
//! | --- | --- | --- |
//! | POST, `application/sql` | are the body | in the URL |
//! | POST, `application/x-www-form-urlencoded` | `sql` (or `query`) in the body | in the body or the URL |
//!
//! Unknown parameters are refused by their names. Statements never come in the URL: addresses are
//! logged and stored.

use crate::request::min_commit::{MIN_COMMIT_PARAMETER, check_in_address};
use crate::request::parameters::{decode_name, decode_value, pairs, unknown};
use crate::request::protocol::{
    parse_durability, parse_partial, parse_timeout, text_of_body, type_of_body,
};
use axum::http::HeaderMap;
use orrery_service::errors::ServiceError;
use std::time::Duration;

/// The statements and parameters of a request.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct SqlRequest {
    pub(super) text: String,
    /// `timeout`: how long the client is willing to wait.
    pub(super) timeout: Option<Duration>,
    /// `format`, `output` or `results`: a format by name rather than by `Accept`.
    pub(super) format: Option<String>,
    /// `partial=true`: if a limit ends the query, the rows found so far are the answer.
    pub(super) partial: bool,
    /// `durability=relaxed`: the answer to a change does not wait for the disk.
    pub(super) is_relaxed: bool,
}

const KNOWN: &str = "sql (or query), format, timeout, partial, durability, min-commit";

const POST_TYPES: &str =
    "use application/sql, or application/x-www-form-urlencoded with a parameter `sql`";

/// Reads a request.
pub(super) fn parse(
    url_query: Option<&str>,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<SqlRequest, ServiceError> {
    let mut request = SqlRequest::default();
    for (name, value) in pairs(url_query.unwrap_or_default().as_bytes()) {
        let name = decode_name(name)?;
        // The request has waited for that commit before it came here.
        if name == MIN_COMMIT_PARAMETER {
            continue;
        }
        if matches!(name.as_str(), "sql" | "query") {
            return Err(ServiceError::bad_request(format!(
                "statements of SQL must stand in the body, not in the address; {POST_TYPES}"
            )));
        }
        request.set(&name, value)?;
    }
    match type_of_body(headers, POST_TYPES)?.essence() {
        "application/sql" => request.text = text_of_body("text", body)?,
        "application/x-www-form-urlencoded" => {
            let mut texts = 0;
            for (name, value) in pairs(body) {
                let name = decode_name(name)?;
                if matches!(name.as_str(), "sql" | "query") {
                    request.text = decode_value(&name, value)?;
                    texts += 1;
                } else {
                    request.set(&name, value)?;
                }
            }
            if texts != 1 {
                return Err(ServiceError::bad_request(format!(
                    "the request has {texts} texts of SQL; send one, which may have several statements, as parameter `sql`"
                )));
            }
        }
        other => {
            return Err(ServiceError::unsupported_media_type(format!(
                "SQL cannot be sent as `{other}`; {POST_TYPES}"
            )));
        }
    }
    Ok(request)
}

impl SqlRequest {
    fn set(&mut self, name: &str, value: &[u8]) -> Result<(), ServiceError> {
        let text = decode_value(name, value)?;
        match name {
            "timeout" => self.timeout = Some(parse_timeout(&text)?),
            "format" | "output" | "results" => self.format = Some(text),
            "partial" => self.partial = parse_partial(&text)?,
            "durability" => self.is_relaxed = parse_durability(&text)?,
            MIN_COMMIT_PARAMETER => check_in_address(true)?,
            _ => return Err(unknown(name, KNOWN)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderValue, header};

    fn asked(content_type: &str, url_query: &str, body: &[u8]) -> Result<SqlRequest, String> {
        let mut headers = HeaderMap::new();
        let content_type = HeaderValue::from_str(content_type).unwrap();
        headers.insert(header::CONTENT_TYPE, content_type);
        parse(Some(url_query), &headers, body).map_err(|error| error.to_string())
    }

    const FORM: &str = "application/x-www-form-urlencoded";

    #[test]
    fn the_two_ways_to_send_a_text_are_the_same() {
        let expected = SqlRequest {
            text: "select 1 + 1".to_owned(),
            timeout: Some(Duration::from_secs(3)),
            format: Some("csv".to_owned()),
            partial: true,
            is_relaxed: true,
        };
        let rest = "timeout=3&format=csv&partial=true&durability=relaxed";
        let direct = asked("application/sql; charset=utf-8", rest, b"select 1 + 1");
        assert_eq!(direct.unwrap(), expected);
        for name in ["sql", "query"] {
            let form = format!("{name}=select+1+%2B+1&{rest}");
            assert_eq!(asked(FORM, "", form.as_bytes()).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_not_known_or_not_in_its_place_is_refused() {
        let refused =
            |content_type, url, body: &str| asked(content_type, url, body.as_bytes()).unwrap_err();
        assert!(refused("application/sql", "sql=select+1", "").contains("in the body"));
        assert!(refused("application/sql", "at=3", "select 1").contains("`at` is unknown here"));
        assert!(refused(FORM, "", "sql=1&sql=2").contains("2 texts"));
        assert!(refused(FORM, "", "format=csv").contains("0 texts"));
        assert!(refused("text/plain", "", "select 1").contains("application/sql"));
        assert!(asked("application/sql", "", b"select '\xff'").is_err());
    }
}
