//! The request handler of a node.

use std::sync::Arc;

use bytes::Bytes;
use openraft::raft::InstallSnapshotRequest;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::files::PIECE_BYTES;
use crate::messages::{FileBytes, FileFinish, FilePiece, FileRange, Member, Propose, SnapshotPart};
use crate::node::core::Core;
use crate::node::propose::Proposer;
use crate::node::{members, read};
use crate::transport::paths;
use crate::wire;

/// Answers requests; clones are the same.
#[derive(Clone)]
pub(crate) struct Service {
    pub core: Arc<Core>,
    pub proposer: Proposer,
}

impl Service {
    /// Answers a request. The error is what the other side is told.
    pub(crate) async fn answer(&self, path: &str, body: &Bytes) -> Result<Bytes> {
        let core = &self.core;
        match path {
            paths::APPEND => packed(core.raft.append_entries(wire::unpack(body)?).await),
            paths::VOTE => packed(core.raft.vote(wire::unpack(body)?).await),
            paths::SNAPSHOT => {
                let SnapshotPart {
                    vote,
                    meta,
                    offset,
                    data,
                    done,
                } = wire::unpack(body)?;
                packed(
                    core.raft
                        .install_snapshot(InstallSnapshotRequest {
                            vote,
                            meta,
                            offset,
                            data: data.to_vec(),
                            done,
                        })
                        .await,
                )
            }
            paths::PROPOSE => {
                let propose: Propose = wire::unpack(body)?;
                packed(self.proposer.propose(propose.requests).await)
            }
            paths::READ_INDEX => packed(read::read_index(core).await),
            paths::FILE_WRITE => {
                let FilePiece { id, offset, data } = wire::unpack(body)?;
                packed(core.files.write(&id, offset, data).await?)
            }
            paths::FILE_FINISH => {
                let FileFinish { id, bytes, crc } = wire::unpack(body)?;
                packed(core.files.finish(&id, bytes, crc).await?)
            }
            paths::FILE_READ => {
                let FileRange { id, start, end } = wire::unpack(body)?;
                if end.saturating_sub(start) > PIECE_BYTES {
                    return Err(Error::Message(
                        "more than a piece of a file is asked for".to_owned(),
                    ));
                }
                let data = core.files.read(&id, start, end).await?;
                packed(FileBytes {
                    found: data.is_some(),
                    data: data.unwrap_or_default(),
                })
            }
            paths::STATUS => packed(members::status(core).await?),
            paths::ADD | paths::REMOVE => {
                let member: Member = wire::unpack(body)?;
                packed(members::led(core, path, &member).await)
            }
            _ => Err(Error::Message(format!("there is nothing at {path}"))),
        }
    }
}

fn packed(answer: impl Serialize) -> Result<Bytes> {
    wire::pack(&answer)
}
