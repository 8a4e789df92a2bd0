//! Parquet footers and page indexes, measured before they are decoded and cached.
//!
//! ```text
//! "PAR1" ... column chunks ... column indices, offset indices ... FileMetaData, its length in 4 bytes, "PAR1"
//! ```

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::physical_plan::parquet::metadata::CachedParquetMetaData;
use datafusion::execution::cache::cache_manager::{CachedFileMetadataEntry, FileMetadataCache};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::parquet::DecodeResult;
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder,
    ParquetMetaDataReader,
};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};

use super::thrift::{Malformed, walk};
use crate::{Error, SqlState};

/// The length of the footer, and the letters behind it.
const TAIL_BYTES: u64 = 8;
const LETTERS: &[u8] = b"PAR1";
/// So much of the end is read at once: most footers are within it.
const END_BYTES: u64 = 64 << 10;
/// What a struct, a list or a text of a footer becomes in memory, at most: a column chunk has a
/// dozen of them.
const PART_BYTES: usize = 128;
/// Where a footer's schema says how many children an element has.
const CHILDREN: [i16; 2] = [2, 5];

/// Where the footers of files are found, and what is asked for their memory.
#[derive(Debug, Clone)]
pub(super) struct Footers {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) cache: Arc<FileMetadataCache>,
    pub(super) pool: Arc<dyn MemoryPool>,
}

impl Footers {
    /// What a file says of itself, from the cache if it is there; which it is after this, unless it
    /// is larger than the cache.
    ///
    /// # Errors
    /// When it cannot be read, claims more than it has, or there is no memory for what it becomes.
    pub(super) async fn of(&self, file: &ObjectMeta) -> Result<Arc<ParquetMetaData>> {
        if let Some(cached) = self.cache.get(&file.location)
            && cached.is_valid_for(file)
            && let Some(known) = cached
                .file_metadata
                .as_any()
                .downcast_ref::<CachedParquetMetaData>()
        {
            return Ok(Arc::clone(known.parquet_metadata()));
        }
        let memory = MemoryConsumer::new("the footer of a Parquet file").register(&self.pool);
        let footer = self.footer(file, &memory).await?;
        let footer = self.with_page_index(file, footer, &memory).await?;
        let footer = Arc::new(footer);
        let cached = CachedParquetMetaData::new(Arc::clone(&footer));
        let cached = CachedFileMetadataEntry::new(file.clone(), Arc::new(cached));
        self.cache.put(&file.location, cached);
        Ok(footer)
    }

    async fn footer(
        &self,
        file: &ObjectMeta,
        memory: &MemoryReservation,
    ) -> Result<ParquetMetaData> {
        let end = file.size.saturating_sub(END_BYTES)..file.size;
        let end = self.read(file, end).await?;
        let before_tail = end.len().checked_sub(TAIL_BYTES as usize);
        let before_tail = before_tail.ok_or_else(|| broken(file, "it is too short"))?;
        let (rest, tail) = end.split_at(before_tail);
        let length = match tail {
            [a, b, c, d, letters @ ..] if letters == LETTERS => {
                u64::from(u32::from_le_bytes([*a, *b, *c, *d]))
            }
            _ => return Err(broken(file, "it does not end with PAR1")),
        };
        let last = file.size - TAIL_BYTES;
        let first = last
            .checked_sub(length)
            .ok_or_else(|| broken(file, "its footer claims to be longer than the file"))?;
        let footer = match rest.len().checked_sub(length as usize) {
            Some(start) => end.slice(start..before_tail),
            None => {
                memory.try_grow(length as usize)?;
                self.read(file, first..last).await?
            }
        };
        let mut children = 0;
        let seen = walk(&footer, &mut |path, value| {
            if path == CHILDREN {
                children = children.max(value);
            }
        });
        let claims = || broken(file, "its footer claims more than it has");
        let seen = seen.map_err(|Malformed| claims())?;
        if children > footer.len() as i64 {
            return Err(claims());
        }
        memory.try_grow(seen.parts.saturating_mul(PART_BYTES))?;
        Ok(ParquetMetaDataReader::decode_metadata(&footer)?)
    }

    async fn with_page_index(
        &self,
        file: &ObjectMeta,
        footer: ParquetMetaData,
        memory: &MemoryReservation,
    ) -> Result<ParquetMetaData> {
        let columns = footer.row_groups().iter().flat_map(|it| it.columns());
        let places: Vec<_> = columns.flat_map(index_places).collect();
        if places.is_empty() {
            return Ok(footer);
        }
        let claims = || broken(file, "its page index claims more than it has");
        let decoder = ParquetMetaDataPushDecoder::try_new_with_metadata(file.size, footer)?;
        let mut decoder = decoder.with_page_index_policy(PageIndexPolicy::Optional);
        loop {
            let ranges = match decoder.try_decode()? {
                DecodeResult::Data(footer) => return Ok(footer),
                DecodeResult::Finished => return Err(claims()),
                DecodeResult::NeedsData(ranges) => ranges,
            };
            let mut read = Vec::with_capacity(ranges.len());
            for range in &ranges {
                if range.end > file.size || range.start > range.end {
                    return Err(claims());
                }
                memory.try_grow((range.end - range.start) as usize)?;
                let bytes = self.read(file, range.clone()).await?;
                for place in &places {
                    let within = place.start >= range.start && place.end <= range.end;
                    if !within {
                        continue;
                    }
                    let start = (place.start - range.start) as usize;
                    let index = bytes.slice(start..start + (place.end - place.start) as usize);
                    let seen = walk(&index, &mut |_, _| {}).map_err(|Malformed| claims())?;
                    memory.try_grow(seen.parts.saturating_mul(PART_BYTES))?;
                }
                read.push(bytes);
            }
            decoder.push_ranges(ranges, read)?;
        }
    }

    async fn read(&self, file: &ObjectMeta, range: Range<u64>) -> Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let read = self.store.get_range(&file.location, range).await;
        read.map_err(DataFusionError::from)
    }
}

/// Where the indices of a column chunk are.
fn index_places(column: &ColumnChunkMetaData) -> impl Iterator<Item = Range<u64>> {
    let place = |offset: Option<i64>, length: Option<i32>| {
        let start = u64::try_from(offset?).ok()?;
        let length = u64::try_from(length?).ok()?;
        Some(start..start.checked_add(length)?)
    };
    let of_columns = place(column.column_index_offset(), column.column_index_length());
    let of_offsets = place(column.offset_index_offset(), column.offset_index_length());
    of_columns.into_iter().chain(of_offsets)
}

/// What is said of a file that is none.
pub(super) fn broken(file: &ObjectMeta, what: &str) -> DataFusionError {
    Error::new(
        SqlState::IoError,
        format!(
            "/{} is no Parquet file that can be read: {what}",
            file.location
        ),
    )
    .into()
}
