//! The reader of one Parquet file, which reserves memory for what it reads.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::parquet::CachedParquetFileReaderFactory;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::ObjectMeta;

use super::footer::{Footers, broken};
use super::pages::Chunk;
use super::thrift::Malformed;

/// Chunks may be beyond the memory by one part of so many of it, together, until a sort has
/// spilled.
const BEYOND_PART: usize = 4;

/// Makes the readers of a plan.
#[derive(Debug)]
pub(super) struct CountedReaders {
    of_engine: CachedParquetFileReaderFactory,
    footers: Footers,
    batch_rows: usize,
    beyond: Arc<Beyond>,
}

impl CountedReaders {
    pub(super) fn new(footers: Footers, batch_rows: usize) -> Self {
        let (store, cache) = (Arc::clone(&footers.store), Arc::clone(&footers.cache));
        let most = match footers.pool.memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / BEYOND_PART,
            MemoryLimit::Infinite | MemoryLimit::Unknown => 0,
        };
        Self {
            of_engine: CachedParquetFileReaderFactory::new(store, cache),
            footers,
            batch_rows,
            beyond: Arc::new(Beyond {
                most,
                bytes: AtomicUsize::new(0),
            }),
        }
    }
}

impl ParquetFileReaderFactory for CountedReaders {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        footer_bytes: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let of_file = file.object_meta.clone();
        let of_engine = self
            .of_engine
            .create_reader(partition, file, footer_bytes, metrics)?;
        let footer = MemoryConsumer::new("the footer of a Parquet file");
        Ok(Box::new(CountedReader {
            of_engine,
            file: of_file,
            footer: footer.register(&self.footers.pool),
            footers: self.footers.clone(),
            batch_rows: self.batch_rows,
            beyond: Arc::clone(&self.beyond),
            chunks: Arc::new([]),
        }))
    }
}

struct CountedReader {
    of_engine: Box<dyn AsyncFileReader + Send>,
    file: ObjectMeta,
    /// What is held of the file's footer.
    footer: MemoryReservation,
    footers: Footers,
    batch_rows: usize,
    beyond: Arc<Beyond>,
    /// By where they begin.
    chunks: Arc<[Chunk]>,
}

impl CountedReader {
    async fn read(&mut self, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>> {
        let mut held = Vec::with_capacity(ranges.len());
        for range in &ranges {
            let length = range.end.checked_sub(range.start);
            let length = length.filter(|_| range.end <= self.file.size);
            let length = length.ok_or_else(|| {
                broken(&self.file, "its footer names places that it does not have")
            })?;
            let mut memory = self.memory();
            memory.grow(length as usize)?;
            held.push(memory);
        }
        let read = self.of_engine.get_byte_ranges(ranges.clone()).await?;
        let read = ranges.iter().zip(read).zip(held);
        read.map(|((range, bytes), mut memory)| {
            if let Some(chunk) = self.chunk_at(range.start) {
                let of_batch = chunk.bytes_of_batch(&bytes, self.batch_rows);
                let of_batch = of_batch.map_err(|Malformed| {
                    broken(&self.file, "a page of it claims more than it has")
                })?;
                memory.grow(usize::try_from(of_batch).unwrap_or(usize::MAX))?;
            }
            Ok(Bytes::from_owner(HeldBytes {
                bytes,
                _memory: memory,
            }))
        })
        .collect()
    }

    fn memory(&self) -> Held {
        let reservation = MemoryConsumer::new("reading of a Parquet file");
        Held {
            reservation: reservation.register(&self.footers.pool),
            beyond: Arc::clone(&self.beyond),
            beyond_bytes: 0,
        }
    }

    /// The column chunk that a place lies in.
    fn chunk_at(&self, place: u64) -> Option<&Chunk> {
        let behind = self.chunks.partition_point(|it| it.start <= place);
        let chunk = self.chunks.get(behind.checked_sub(1)?)?;
        (place < chunk.end).then_some(chunk)
    }

    async fn look(&mut self) -> Result<()> {
        let footer = self.footers.of(&self.file).await?;
        self.footer.try_resize(footer.memory_size())?;
        let mut chunks = Vec::new();
        for group in footer.row_groups() {
            let of_group = group.columns().iter();
            chunks.extend(of_group.filter_map(|it| Chunk::new(it, group.num_rows())));
        }
        chunks.sort_by_key(|chunk| chunk.start);
        self.chunks = chunks.into();
        Ok(())
    }
}

impl AsyncFileReader for CountedReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move {
            let read = self.get_byte_ranges(vec![range]).await?;
            let only = read.into_iter().next();
            only.ok_or_else(|| ParquetError::General("nothing was read".to_owned()))
        }
        .boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move { self.read(ranges).await.map_err(external) }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            self.look().await.map_err(external)?;
            self.of_engine.get_metadata(options).await
        }
        .boxed()
    }
}

/// The engine finds what is within it again.
fn external(error: DataFusionError) -> ParquetError {
    ParquetError::External(Box::new(error))
}

/// What the readers of a plan hold beyond the memory.
#[derive(Debug)]
struct Beyond {
    most: usize,
    bytes: AtomicUsize,
}

/// Memory of a chunk, given back when it is dropped.
struct Held {
    reservation: MemoryReservation,
    beyond: Arc<Beyond>,
    /// What of it the pool did not have.
    beyond_bytes: usize,
}

impl Held {
    fn grow(&mut self, bytes: usize) -> Result<()> {
        let Err(refused) = self.reservation.try_grow(bytes) else {
            return Ok(());
        };
        let most = self.beyond.most;
        let taken = self
            .beyond
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                let held = held.checked_add(bytes)?;
                (held <= most).then_some(held)
            });
        if taken.is_err() {
            return Err(refused);
        }
        self.beyond_bytes += bytes;
        // Sorts and groups find less than nothing now, and spill.
        self.reservation.grow(bytes);
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let bytes = self.beyond_bytes;
        self.beyond.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.reservation.size())
    }
}

struct HeldBytes {
    bytes: Bytes,
    _memory: Held,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
