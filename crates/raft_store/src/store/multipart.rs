//! Multipart uploads, whose parts go to the nodes' disks at once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use crc32c::{crc32c_append, crc32c_combine};
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};
use parking_lot::Mutex;

use crate::error::Error;
use crate::files::PIECE_BYTES;
use crate::node::upload::Upload;
use crate::node::write::Writer;
use crate::types::{Answer, Command, Content, Mode};

/// Parts that have arrived: by offset, their checksum and length.
type Parts = Arc<Mutex<BTreeMap<u64, (u32, usize)>>>;

/// An object on its way.
pub(super) struct QuorumUpload {
    upload: Upload,
    writer: Writer,
    path: String,
    /// Where the next part goes.
    end: u64,
    parts: Parts,
}

impl fmt::Debug for QuorumUpload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("QuorumUpload")
            .field("path", &self.path)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl QuorumUpload {
    pub(super) fn new(upload: Upload, writer: Writer, path: String) -> Self {
        Self {
            upload,
            writer,
            path,
            end: 0,
            parts: Parts::default(),
        }
    }
}

#[async_trait]
impl MultipartUpload for QuorumUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let start = self.end;
        self.end += data.content_length() as u64;
        let (upload, parts) = (self.upload.clone(), self.parts.clone());
        Box::pin(async move {
            let (mut offset, mut crc) = (start, 0);
            for chunk in &data {
                for piece in chunk.chunks(PIECE_BYTES as usize) {
                    crc = crc32c_append(crc, piece);
                    let bytes: Bytes = chunk.slice_ref(piece);
                    upload.piece(offset, bytes).await?;
                    offset += piece.len() as u64;
                }
            }
            parts.lock().insert(start, (crc, (offset - start) as usize));
            Ok(())
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let (mut bytes, mut crc) = (0, 0);
        for (&start, &(part, length)) in self.parts.lock().iter() {
            if start != bytes {
                break;
            }
            crc = crc32c_combine(crc, part, length);
            bytes += length as u64;
        }
        if bytes != self.end {
            return Err(Error::Message(format!(
                "a part of `{}` that begins at byte {bytes} has not arrived",
                self.path
            ))
            .into());
        }
        let file = self.upload.finish(bytes, crc).await?;
        let copies = file.copies.len();
        let command = Command::Put {
            path: self.path.clone(),
            mode: Mode::Overwrite,
            content: Content::File(file),
        };
        match self.writer.write(command).await? {
            Answer::Put(tag) => Ok(PutResult {
                e_tag: Some(tag.to_string()),
                version: None,
            }),
            _ => {
                let detail =
                    "the members have changed while it was copied; put it again".to_owned();
                Err(Error::TooFewCopies {
                    copies,
                    nodes: 0,
                    detail,
                }
                .into())
            }
        }
    }

    /// What has arrived is removed by the nodes in time.
    async fn abort(&mut self) -> Result<()> {
        Ok(())
    }
}
