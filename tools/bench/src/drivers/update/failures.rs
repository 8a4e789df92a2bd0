//! The failures of a measurement.

use std::path::Path;

use super::super::BenchError;
use crate::http_client::HttpError;

pub(super) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> BenchError {
    let path = path.to_owned();
    move |source| BenchError::File { path, source }
}

pub(super) fn failed(what: &str) -> impl FnOnce(HttpError) -> BenchError {
    let what = what.to_owned();
    move |source| BenchError::Query { what, source }
}
