//! The spool of a client's data for `COPY ... FROM STDIN`, complete before it is loaded.
//!
//! ```text
//! chunks -> memory, up to 4 MiB of the engine's -> a spill file, deleted with the spool
//! end    -> all of them again, in order
//! ```
//!
//! So the writers' turn is taken when there is nothing to wait for any more: a client that dawdles
//! keeps nobody else from writing.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use super::stream::{Piece, Pieces, canceled};
use crate::execute::threads::on_own_thread;
use crate::{Error, Result, SqlState};
use bytes::Bytes;
use datafusion::common::DataFusionError;
use datafusion::execution::SpillFile;
use datafusion::execution::disk_manager::DiskManager;
use datafusion::execution::memory_pool::MemoryReservation;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

/// So much of what is sent is held in memory before it goes to a file.
const HELD_BYTES_MAX: usize = 4 << 20;

/// See the module.
pub(crate) struct Spool {
    held: Vec<Bytes>,
    memory: MemoryReservation,
    disk: Arc<DiskManager>,
    file: Option<Arc<dyn SpillFile>>,
}

impl Spool {
    pub(crate) fn new(memory: MemoryReservation, disk: Arc<DiskManager>) -> Self {
        Self {
            held: Vec::new(),
            memory,
            disk,
            file: None,
        }
    }

    /// Takes all that is sent; fails where the client gives up, goes, or sends nothing for longer
    /// than it may.
    pub(crate) async fn receive(
        &mut self,
        mut pieces: Pieces,
        idle_max: Option<Duration>,
    ) -> Result<()> {
        loop {
            let piece = match idle_max {
                None => pieces.recv().await,
                Some(idle_max) => {
                    let piece = tokio::time::timeout(idle_max, pieces.recv()).await;
                    piece.map_err(|_| {
                        Error::new(
                            SqlState::IdleInTransactionSessionTimeout,
                            "COPY was ended because nothing was sent for too long",
                        )
                    })?
                }
            };
            match piece {
                Some(Piece::Bytes(bytes)) => self.push(bytes).await?,
                Some(Piece::End) => return Ok(()),
                Some(Piece::Fail(reason)) => return Err(canceled(&reason)),
                None => return Err(canceled("the client has gone")),
            }
        }
    }

    async fn push(&mut self, bytes: Bytes) -> Result<()> {
        let is_full = self.memory.size() + bytes.len() > HELD_BYTES_MAX;
        let is_refused = self.memory.try_grow(bytes.len()).is_err();
        self.held.push(bytes);
        match is_full || is_refused {
            true => self.spill().await,
            false => Ok(()),
        }
    }

    /// Writes what is held behind what was written before.
    async fn spill(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => {
                let file = self.disk.create_tmp_file("the rows of a COPY");
                let file = file.map_err(|error| Error::of_run(&error))?;
                Arc::clone(self.file.insert(file))
            }
        };
        on_own_thread(move || {
            let written = || -> Result<_, DataFusionError> {
                let mut writer = file.open_writer()?;
                held.iter().try_for_each(|bytes| writer.write_all(bytes))?;
                writer.finish()
            };
            written().map_err(|error| Error::of_run(&error))
        })
        .await?;
        self.memory.free();
        Ok(())
    }

    /// All that was sent.
    pub(crate) fn into_bytes(self) -> Result<BoxStream<'static, Result<Bytes>>> {
        let Self {
            held, memory, file, ..
        } = self;
        let of_run = |error: DataFusionError| Error::of_run(&error);
        let written = match &file {
            Some(file) => file.read_stream().map_err(of_run)?.map_err(of_run).boxed(),
            None => futures::stream::empty().boxed(),
        };
        // The file and the memory are there until the stream is not.
        let held = futures::stream::iter(held).map(move |bytes| {
            let _kept = (&file, &memory);
            Ok(bytes)
        });
        Ok(written.chain(held).boxed())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::disk_manager::DiskManagerBuilder;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};

    use tokio::sync::mpsc;

    use super::*;

    fn spool(pool: &Arc<dyn MemoryPool>) -> Spool {
        let memory = MemoryConsumer::new("test").register(pool);
        Spool::new(
            memory,
            Arc::new(DiskManagerBuilder::default().build().unwrap()),
        )
    }

    #[tokio::test]
    async fn what_is_sent_comes_back_in_order_however_little_memory_there_is() {
        for memory_bytes in [64 << 20, 1 << 20, 10] {
            let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(memory_bytes));
            let mut spool = spool(&pool);
            let disk = Arc::clone(&spool.disk);
            let (sender, receiver) = mpsc::channel(1);
            let send = async move {
                for chunk in 0..200_u32 {
                    let bytes = Bytes::from(vec![chunk as u8; 40_000]);
                    sender.send(Piece::Bytes(bytes)).await.unwrap();
                }
                sender.send(Piece::End).await.unwrap();
            };
            let (received, ()) = tokio::join!(spool.receive(receiver, None), send);
            received.unwrap();
            assert!(pool.reserved() <= HELD_BYTES_MAX.min(memory_bytes));
            assert!(disk.used_disk_space() > 0);
            let bytes = spool.into_bytes().unwrap();
            let all = bytes.try_fold(Vec::new(), |mut all, bytes| async move {
                all.extend_from_slice(&bytes);
                Ok(all)
            });
            let all = all.await.unwrap();
            assert_eq!(all.len(), 200 * 40_000);
            assert!(
                all.chunks(40_000)
                    .enumerate()
                    .all(|(place, chunk)| { chunk.iter().all(|byte| usize::from(*byte) == place) })
            );
            assert_eq!((pool.reserved(), disk.used_disk_space()), (0, 0));
        }
    }

    #[tokio::test]
    async fn who_sends_nothing_for_too_long_is_given_up_where_that_matters() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 20));
        let (_sender, receiver) = mpsc::channel(1);
        let idle_max = Some(Duration::ZERO);
        let error = spool(&pool).receive(receiver, idle_max).await.unwrap_err();
        assert_eq!(error.state, SqlState::IdleInTransactionSessionTimeout);
        let (sender, receiver) = mpsc::channel(1);
        drop(sender);
        let error = spool(&pool).receive(receiver, None).await.unwrap_err();
        assert_eq!(error.state, SqlState::QueryCanceled);
    }
}
