//! The console at `/`: one page, its script and its style, built into the program.
//!
//! The page loads nothing from elsewhere and runs no script of its own text, which the
//! `Content-Security-Policy` holds the browser to; the script puts terms into the
//! page as text nodes only, so data cannot become markup.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use orrery_service::errors::ServiceError;

use crate::route_table::HttpRequest;

const PAGE: &str = include_str!("console/index.html");
const SCRIPT: &str = include_str!("console/console.js");
const STYLE: &str = include_str!("console/console.css");

const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// The files change with the program only; browsers ask again so that an upgrade shows.
const CACHE: HeaderValue = HeaderValue::from_static("no-cache");

/// GET `/`
pub(crate) async fn page(_: HttpRequest) -> Result<Response, ServiceError> {
    Ok(file("text/html; charset=utf-8", PAGE))
}

/// GET `/console.js`
pub(crate) async fn script(_: HttpRequest) -> Result<Response, ServiceError> {
    Ok(file("text/javascript; charset=utf-8", SCRIPT))
}

/// GET `/console.css`
pub(crate) async fn style(_: HttpRequest) -> Result<Response, ServiceError> {
    Ok(file("text/css; charset=utf-8", STYLE))
}

fn file(content_type: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, CACHE),
    ];
    (headers, text).into_response()
}
