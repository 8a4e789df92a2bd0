//! `/admin/usage`: reports what each user used on each day, from the query log.
//!
//! ```text
//! from, to, format -> files of the log (a blocking thread) -> JSON, or CSV
//! ```

use axum::Json;
use axum::http::header::{self, HeaderName};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use orrery_query_log::{Bill, Error, Period, bill};

use crate::request::parameters::{unknown, url_parameters};
use crate::route_table::HttpRequest;
use orrery_service::errors::{ServiceError, told_to_the_log};

/// Forbids caches to store the answer: it shows what each user used.
const NO_STORE: [(HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-store")];

/// Answers GET `/admin/usage`.
///
/// # Errors
/// The asker is no administrator, there is no query log, the log cannot be read, or the request is
/// wrong.
pub(crate) async fn answer(request: HttpRequest) -> Result<Response, ServiceError> {
    let (state, parts) = (&*request.state, &*request.parts);
    let Some(options) = &state.options.query_log else {
        return Err(ServiceError::Missing {
            message: "there is no query log; start the server with --query-log DIR".to_owned(),
        });
    };
    let asked = UsageRequest::parse(parts)?;
    let directory = options.directory.clone();
    let bill = tokio::task::spawn_blocking(move || bill(&directory, asked.period)).await;
    let unreadable = |error: &dyn std::fmt::Display| ServiceError::Internal {
        message: told_to_the_log("the query log cannot be read", error),
    };
    let bill = bill.map_err(|error| unreadable(&error))?;
    let bill = match bill {
        Ok(bill) => bill,
        // No log yet: nothing was asked so far.
        Err(Error::NoLog { .. }) => Bill::default(),
        Err(error @ Error::TooMuch { .. }) => {
            return Err(ServiceError::bad_request(error.to_string()));
        }
        Err(error) => return Err(unreadable(&error)),
    };
    Ok(match asked.is_csv {
        true => {
            let csv = [(header::CONTENT_TYPE, "text/csv; charset=utf-8")];
            (NO_STORE, csv, bill.to_csv()).into_response()
        }
        false => (NO_STORE, Json(bill)).into_response(),
    })
}

/// The days to add up, and the format of the answer.
#[derive(Default)]
struct UsageRequest {
    period: Period,
    is_csv: bool,
}

impl UsageRequest {
    fn parse(parts: &Parts) -> Result<Self, ServiceError> {
        let mut request = Self::default();
        for (name, value) in url_parameters(parts.uri.query())? {
            let day = || {
                value.parse().map_err(|error| {
                    ServiceError::bad_request(format!("parameter `{name}` is `{value}`: {error}"))
                })
            };
            match (name.as_str(), value.as_str()) {
                ("from", _) => request.period.from = Some(day()?),
                ("to", _) => request.period.to = Some(day()?),
                ("format", "csv") => request.is_csv = true,
                ("format", "json") => request.is_csv = false,
                ("format", _) => {
                    return Err(ServiceError::bad_request("formats are csv and json"));
                }
                _ => return Err(unknown(&name, "from, to, format")),
            }
        }
        Ok(request)
    }
}
