//! The oldest commit that a request accepts: `Orrery-Min-Commit: 17`, or `min-commit=17` in the
//! address.
//!
//! ```text
//! request -> user -> is the commit here? -> the handlers
//!                      no: look for a newer one, again and again, for a while
//!                          (orrery_service::writes::freshness)
//! ```
//!
//! The commit is the one that the answer to a change named. `/health` waits for nothing.

use axum::extract::Request;
use axum::http::{HeaderName, Uri};
use memchr::memmem;

use crate::request::parameters::{decode_name, decode_value, pairs};
use orrery_service::errors::ServiceError;

/// The header with the number of a commit.
pub(crate) const MIN_COMMIT: HeaderName = HeaderName::from_static("orrery-min-commit");
/// The URL parameter of the same meaning.
pub(crate) const MIN_COMMIT_PARAMETER: &str = "min-commit";

/// Whether a request may ask for a commit; a cheap check.
pub(crate) fn is_asked(request: &Request) -> bool {
    let is_in = |query: &str| memmem::find(query.as_bytes(), MIN_COMMIT_PARAMETER.as_bytes());
    request.headers().contains_key(MIN_COMMIT) || request.uri().query().and_then(is_in).is_some()
}

/// The commit that a request asks for.
pub(crate) fn asked(request: &Request) -> Result<Option<u64>, ServiceError> {
    let of_header = request.headers().get(MIN_COMMIT).map(|value| {
        let text = value.to_str().unwrap_or_default();
        parse_commit("header Orrery-Min-Commit", text)
    });
    match of_header {
        Some(commit) => commit.map(Some),
        None => of_address(request.uri()),
    }
}

fn of_address(uri: &Uri) -> Result<Option<u64>, ServiceError> {
    for (name, value) in pairs(uri.query().unwrap_or_default().as_bytes()) {
        if decode_name(name).is_ok_and(|name| name == MIN_COMMIT_PARAMETER) {
            let text = decode_value(MIN_COMMIT_PARAMETER, value)?;
            return parse_commit("parameter `min-commit`", &text).map(Some);
        }
    }
    Ok(None)
}

/// Parses the number of a commit; `what` names it in the error.
pub(crate) fn parse_commit(what: &str, text: &str) -> Result<u64, ServiceError> {
    text.parse().map_err(|_| {
        ServiceError::bad_request(format!(
            "{what} is the number of a commit, as the answer to a change has it, not `{text}`"
        ))
    })
}

/// Refuses the parameter in a body, which is not read yet when the request waits for a commit.
pub(crate) fn check_in_address(is_body: bool) -> Result<(), ServiceError> {
    match is_body {
        false => Ok(()),
        true => Err(ServiceError::bad_request(
            "parameter `min-commit` has to stand in the address, or as header Orrery-Min-Commit",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn of(address: &str, header: Option<&str>) -> Result<Option<u64>, String> {
        let mut request = Request::builder().uri(address);
        if let Some(header) = header {
            request = request.header(MIN_COMMIT, header);
        }
        asked(&request.body(Body::empty()).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_commit_is_asked_for_by_header_or_address() {
        assert_eq!(of("/sparql?query=ASK%7B%7D", None), Ok(None));
        assert_eq!(of("/sparql?query=min-commit", None), Ok(None));
        assert_eq!(of("/sparql?query=x&min-commit=17", None), Ok(Some(17)));
        assert_eq!(of("/graphs/x", Some("18")), Ok(Some(18)));
        for wrong in ["", "-1", "last", "17.5"] {
            let told = of("/graphs/x", Some(wrong)).unwrap_err();
            assert!(told.contains("number of a commit"), "{told}");
            assert!(of(&format!("/sparql?min-commit={wrong}"), None).is_err());
        }
    }
}
