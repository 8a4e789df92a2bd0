//! Readers' leases: the catalog a process has read, and the unreferenced objects it still maps.
//!
//! `readers/<random name>` is put by each process that has a database open for longer than a
//! moment, again and again. A writer deletes nothing that a living one may need. A process whose
//! lease could not be put for [`Timing::reader_lease`](crate::Timing) may find that an object is
//! gone.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::error::{Asked, ObjectError};
use crate::stores::store::Store;
use crate::{coordination::checksummed, random};

const FOLDER: &str = "readers";

/// What a process reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reading {
    /// The catalog that it has read.
    pub(crate) sequence: u64,
    /// Objects that it has mapped beside those of that catalog.
    pub(crate) held: BTreeSet<String>,
}

/// The object with the lease of a process.
pub(crate) fn object(process: &str) -> String {
    format!("{FOLDER}/{process}")
}

/// Says what is read.
pub(crate) async fn put(store: &Store, object: &str, reading: &Reading) -> Asked<()> {
    let bytes = checksummed::to_bytes(reading).map_err(|error| ObjectError::Task {
        what: error.to_string(),
    })?;
    store.put(object, Bytes::from(bytes)).await
}

/// What living readers read. Leases that are long over are removed.
pub(crate) async fn living(store: &Store) -> Asked<Vec<Reading>> {
    let leases = store.list(FOLDER).await?;
    if leases.is_empty() {
        return Ok(Vec::new());
    }
    let now = store.now(&random::name()).await?;
    let mut living = Vec::new();
    for (object, modified) in leases {
        let age = now.duration_since(modified).unwrap_or_default();
        if age > store.timing.reader_lease {
            if age > 10 * store.timing.reader_lease {
                store.delete(&object).await?;
            }
            continue;
        }
        if let Some(found) = store.get(&object).await? {
            let reading = checksummed::from_bytes(&found.bytes);
            living.push(reading.map_err(|what| store.damaged(&object, what))?);
        }
    }
    Ok(living)
}
