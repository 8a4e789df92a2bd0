//! A request body whose signature is verified.

use axum::body::Body;
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use ring::digest::{Context, SHA256};

use crate::http::signature::hex;

/// Reads a request of at most so many bytes, and compares it with what was signed.
pub(crate) async fn read(
    body: Body,
    digest: &str,
    bytes_max: usize,
) -> Result<Bytes, (StatusCode, &'static str)> {
    let mut chunks = body.into_data_stream();
    let mut request = BytesMut::new();
    let mut found = Context::new(&SHA256);
    while let Some(chunk) = chunks.next().await {
        let Ok(chunk) = chunk else {
            return Err((StatusCode::BAD_REQUEST, "the request was cut off"));
        };
        if request.len() + chunk.len() > bytes_max {
            return Err((StatusCode::PAYLOAD_TOO_LARGE, "the request is too large"));
        }
        found.update(&chunk);
        request.extend_from_slice(&chunk);
    }
    if hex(found.finish().as_ref()) != digest {
        return Err((
            StatusCode::UNAUTHORIZED,
            "the request is not what was signed",
        ));
    }
    Ok(request.freeze())
}
