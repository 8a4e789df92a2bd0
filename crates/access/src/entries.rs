//! The rows of the catalog's table, and their JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Rows of the table: by kind and id, what it is.
pub(crate) type Entries = BTreeMap<(String, String), String>;

/// What something is, as it is kept.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| damaged(&error.to_string()))
}

/// The other way.
pub(crate) fn of_json<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| damaged(&error.to_string()))
}

pub(crate) fn damaged(what: &str) -> Error {
    Error::Kept {
        what: format!("the table of users: {what}"),
    }
}
