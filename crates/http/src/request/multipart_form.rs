//! Converts queries and updates in `multipart/form-data`, as browsers and `curl -F` send them, to
//! `name=value&...`.
//!
//! A node that does not write detects an update in it as in a plain form, by reading it, and
//! forwards the request as it came.

use axum::http::{HeaderMap, HeaderValue, header};
use bytes::Bytes;
use url::form_urlencoded::byte_serialize;

use crate::request::form_parts::{FormParts, Piece};
use orrery_service::errors::ServiceError;

/// Rewrites the body as a plain form, with its headers.
///
/// # Errors
/// When the parts cannot be told apart.
pub(crate) fn as_plain_form(
    headers: &HeaderMap,
    body: &[u8],
) -> Result<(HeaderMap, Bytes), ServiceError> {
    let mut parts = FormParts::of(headers)?;
    parts.push(body);
    let mut form = String::new();
    while let Some(piece) = parts.next()? {
        match piece {
            Piece::Head(head) => {
                if !form.is_empty() {
                    form.push('&');
                }
                form.extend(byte_serialize(head.name.as_bytes()));
                form.push('=');
            }
            Piece::Bytes(value) => form.extend(byte_serialize(&value)),
        }
    }
    parts.finish()?;
    let mut headers = headers.clone();
    let plain = HeaderValue::from_static("application/x-www-form-urlencoded");
    headers.insert(header::CONTENT_TYPE, plain);
    Ok((headers, form.into()))
}
