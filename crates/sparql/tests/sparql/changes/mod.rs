//! Tests of updates against models.

pub(crate) mod update_rights;
pub(crate) mod update_service;
pub(crate) mod updates;
