//! Reads of large objects, from this node's disk or from another node's.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::files::PIECE_BYTES;
use crate::messages::{FileBytes, FileRange};
use crate::node::core::Core;
use crate::transport::paths;
use crate::types::{File, NodeId};

/// A range of a file, of at most [`PIECE_BYTES`]: from here, from a node that had it when it was
/// put, or from any other.
pub(crate) async fn range(core: &Arc<Core>, file: &File, start: u64, end: u64) -> Result<Bytes> {
    if let Some(bytes) = core.files.read(&file.id, start, end).await? {
        return Ok(bytes);
    }
    elsewhere(core, file, start, end).await
}

async fn elsewhere(core: &Arc<Core>, file: &File, start: u64, end: u64) -> Result<Bytes> {
    let members: BTreeSet<NodeId> = core
        .addresses()
        .into_keys()
        .filter(|&node| node != core.id)
        .collect();
    let (first, others): (Vec<NodeId>, Vec<NodeId>) = members
        .into_iter()
        .partition(|node| file.copies.contains(node));
    for node in first.into_iter().chain(others) {
        let request = FileRange {
            id: file.id.clone(),
            start,
            end,
        };
        match core
            .ask::<FileBytes>(node, paths::FILE_READ, &request, core.pace.request)
            .await
        {
            Ok(found) if found.found && found.data.len() as u64 == end - start => {
                return Ok(found.data);
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(node, file = file.id, %error, "a file was not fetched from there")
            }
        }
    }
    Err(Error::NoCopy(file.id.clone()))
}

/// Fetches a file that this node lacks.
pub(crate) async fn whole(core: &Arc<Core>, file: &File) -> Result<()> {
    for start in (0..file.bytes).step_by(PIECE_BYTES as usize) {
        let bytes = elsewhere(core, file, start, file.bytes.min(start + PIECE_BYTES)).await?;
        core.files.write(&file.id, start, bytes).await?;
    }
    core.files.finish(&file.id, file.bytes, file.crc).await
}

/// Files of objects that this node lacks.
pub(crate) async fn missing(core: &Core) -> Result<Vec<File>> {
    let here: BTreeSet<String> = core.files.names().await?.into_iter().collect();
    Ok(core
        .shared
        .state
        .read()
        .files()
        .filter(|file| !here.contains(&file.id))
        .cloned()
        .collect())
}
