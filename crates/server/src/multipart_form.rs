//! Queries in the other form that browsers and `curl -F` send: `multipart/form-data`, made into
//! `name=value&...`.
//!
//! Updates do not come so: a node that forwards them looks for `update` in plain forms only.

use axum::body::Body;
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::{HeaderMap, HeaderValue, header};
use bytes::Bytes;
use std::fmt;
use url::form_urlencoded::byte_serialize;

use crate::errors::ServerError;

/// The same as a plain form, and its headers.
///
/// # Errors
/// When the parts cannot be told apart, or one of them is an update or a file.
pub(crate) async fn as_plain_form(
    headers: &HeaderMap,
    body: Bytes,
) -> Result<(HeaderMap, Bytes), ServerError> {
    let bad = |error: &dyn fmt::Display| {
        ServerError::bad_request(format!("the multipart body is broken: {error}"))
    };
    let mut request = Request::new(Body::from(body));
    *request.headers_mut() = headers.clone();
    let multipart = Multipart::from_request(request, &()).await;
    let mut multipart = multipart.map_err(|error| bad(&error))?;
    let mut form = String::new();
    while let Some(field) = multipart.next_field().await.map_err(|error| bad(&error))? {
        let name = field.name().unwrap_or_default().to_owned();
        if name == "update" {
            return Err(ServerError::unsupported_media_type(
                "an update cannot be sent as multipart/form-data; use application/sparql-update"
                    .to_owned(),
            ));
        }
        let value = field.bytes().await.map_err(|error| bad(&error))?;
        form.extend(byte_serialize(name.as_bytes()));
        form.push('=');
        form.extend(byte_serialize(&value));
        form.push('&');
    }
    let mut headers = headers.clone();
    let plain = HeaderValue::from_static("application/x-www-form-urlencoded");
    headers.insert(header::CONTENT_TYPE, plain);
    Ok((headers, form.into()))
}
