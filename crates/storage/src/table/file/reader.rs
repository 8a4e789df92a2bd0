//! An open projection file: its parts and their places.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use arrow::array::ArrayRef;
use orrery_column::VECTOR_ROWS;

use super::super::definition::{ColumnId, ProjectionColumn, ProjectionLayout};
use super::super::key::KeyEncoder;
use super::super::lanes::check_array;
use super::metadata::{ColumnMetadata, ColumnStatistics, Metadata, VERSION};
use super::vector::{ColumnBlock, Vector};
use super::{
    ColumnZones, Decoded, FENCES_PER_BLOCK, FileStatistics, GROUP_ROWS, GROUP_VECTORS, KIND,
    TextDictionary, ZoneKind, vectors_of,
};
use crate::files::block_file::{BlockFile, BlockNumber, FileSummary};
use crate::files::io::FileSystem;
use crate::{Error, Result};

/// The finished file of a projection, open for reading; shared between threads behind an `Arc`.
///
/// Columns are named by their position in the layout that it was opened with. One that the file
/// does not have reads as its initial value in every row.
#[derive(Debug)]
pub struct ProjectionFile {
    pub(super) file: Arc<BlockFile>,
    pub(super) metadata: Arc<Metadata>,
    pub(super) columns: Vec<Column>,
    pub(super) encoder: KeyEncoder,
    parts: Arc<[Parts]>,
}

/// A column of the layout.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) of: ProjectionColumn,
    pub(super) source: Source,
}

/// Where a column comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// A column of the file, by its position there.
    File(usize),
    /// One row with the value of all rows; NULL if there is none.
    Initial(Option<ArrayRef>),
}

/// What was read of a column of the file, once asked for.
#[derive(Debug, Default)]
struct Parts {
    zones: OnceLock<Arc<ColumnZones>>,
    dictionary: OnceLock<Arc<TextDictionary>>,
}

impl ProjectionFile {
    /// Opens the file. `initial` has the value, an array of one row, of columns that a file may
    /// lack; one that is in neither is NULL.
    pub fn open(
        file_system: &dyn FileSystem,
        path: &Path,
        layout: &ProjectionLayout,
        initial: &[(ColumnId, ArrayRef)],
    ) -> Result<Self> {
        let file = Arc::new(BlockFile::open(file_system, path, KIND)?);
        let metadata = Arc::new(read_metadata(&file)?);
        let parts = metadata.columns.iter().map(|_| Parts::default()).collect();
        Self::with_parts(file, metadata, parts, layout, initial)
    }

    /// Opens the file with the columns that it was written with.
    pub fn open_as_written(file_system: &dyn FileSystem, path: &Path) -> Result<Self> {
        let file = Arc::new(BlockFile::open(file_system, path, KIND)?);
        let metadata = Arc::new(read_metadata(&file)?);
        let columns = metadata.columns.iter().map(|column| ProjectionColumn {
            id: column.id,
            column_type: column.column_type,
            is_nullable: column.is_nullable,
        });
        let layout = ProjectionLayout {
            relation: metadata.relation,
            columns: columns.collect(),
            key_columns: metadata.key_columns,
        };
        let parts = metadata.columns.iter().map(|_| Parts::default()).collect();
        Self::with_parts(file, metadata, parts, &layout, &[])
    }

    /// The same file under another layout behind the key; cached parts are shared.
    pub fn with_layout(
        &self,
        layout: &ProjectionLayout,
        initial: &[(ColumnId, ArrayRef)],
    ) -> Result<Self> {
        let (file, metadata) = (Arc::clone(&self.file), Arc::clone(&self.metadata));
        Self::with_parts(file, metadata, Arc::clone(&self.parts), layout, initial)
    }

    fn with_parts(
        file: Arc<BlockFile>,
        metadata: Arc<Metadata>,
        parts: Arc<[Parts]>,
        layout: &ProjectionLayout,
        initial: &[(ColumnId, ArrayRef)],
    ) -> Result<Self> {
        let path = file.path();
        let corrupt = |what: String| Err(Error::corrupt(path, file.metadata_offset(), what));
        if metadata.relation != layout.relation || metadata.key_columns != layout.key_columns {
            return corrupt("it is the file of another table or index".to_owned());
        }
        let mut columns = Vec::with_capacity(layout.columns.len());
        for (position, of) in layout.columns.iter().enumerate() {
            let found = metadata
                .columns
                .iter()
                .position(|column| column.id == of.id);
            if let Some(column) = found.map(|found| &metadata.columns[found]) {
                let is_same = column.column_type.arrow() == of.column_type.arrow();
                let is_key = position < layout.key_columns;
                if !is_same || is_key && column.is_nullable != of.is_nullable {
                    return corrupt(format!("column {} is of another type", of.id.0));
                }
            }
            if position < layout.key_columns && found != Some(position) {
                return corrupt("its key is another one".to_owned());
            }
            let value = initial.iter().find(|(id, _)| *id == of.id);
            let source = match (found, value) {
                (Some(found), _) => Source::File(found),
                (None, Some((_, value))) => {
                    check_array(of.column_type, value)?;
                    Source::Initial(Some(value.clone()).filter(|value| !value.is_empty()))
                }
                (None, None) => Source::Initial(None),
            };
            columns.push(Column { of: *of, source });
        }
        Ok(Self {
            parts,
            encoder: KeyEncoder::new(layout.key()),
            file,
            metadata,
            columns,
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.metadata.rows
    }

    /// Number of vectors: every 1,024 rows one.
    pub fn vectors(&self) -> usize {
        vectors_of(self.metadata.rows)
    }

    /// The encoder of its keys.
    pub fn key_encoder(&self) -> &KeyEncoder {
        &self.encoder
    }

    /// Length and checksum of the file, to be compared with what the writer returned.
    pub fn summary(&self) -> FileSummary {
        self.file.summary()
    }

    /// The file's path, for messages.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The file's statistics.
    pub fn statistics(&self) -> FileStatistics {
        let statistics = |column: &Column| match column.source {
            Source::File(column) => Some(self.metadata.columns[column].statistics.clone()),
            Source::Initial(_) => None,
        };
        FileStatistics {
            rows: self.metadata.rows,
            columns: self.columns.iter().map(statistics).collect(),
        }
    }

    /// The statistics of a column; `None` if the file does not have it.
    pub fn column_statistics(&self, column: usize) -> Option<&ColumnStatistics> {
        match self.columns.get(column)?.source {
            Source::File(column) => Some(&self.metadata.columns[column].statistics),
            Source::Initial(_) => None,
        }
    }

    /// The zones of a column; `None` if the file does not have it. Read at the first call.
    pub fn zones(&self, column: usize) -> Result<Option<Arc<ColumnZones>>> {
        let Source::File(column) = self.columns[column].source else {
            return Ok(None);
        };
        let slot = &self.parts[column].zones;
        if let Some(zones) = slot.get() {
            return Ok(Some(Arc::clone(zones)));
        }
        let of = &self.metadata.columns[column];
        let kind = match of.dictionary {
            Some(dictionary) if dictionary.is_whole => ZoneKind::Codes,
            _ => ZoneKind::Values,
        };
        let block = BlockNumber(of.zones);
        let zones = ColumnZones::read(kind, self.file.block(block)?, self.vectors());
        let zones = Arc::new(self.sound(block, zones)?);
        Ok(Some(Arc::clone(slot.get_or_init(|| zones))))
    }

    /// The dictionary of a column whose rows all have codes; `None` if there is none. Read at the
    /// first call.
    pub fn dictionary(&self, column: usize) -> Result<Option<Arc<TextDictionary>>> {
        let Source::File(column) = self.columns[column].source else {
            return Ok(None);
        };
        let dictionary = self.any_dictionary(column)?;
        Ok(dictionary.filter(|dictionary| dictionary.is_whole))
    }

    /// The dictionary of a column of the file, some rows of which have codes.
    pub(super) fn any_dictionary(&self, column: usize) -> Result<Option<Arc<TextDictionary>>> {
        let of = &self.metadata.columns[column];
        let Some(place) = of.dictionary else {
            return Ok(None);
        };
        let slot = &self.parts[column].dictionary;
        if let Some(dictionary) = slot.get() {
            return Ok(Some(Arc::clone(dictionary)));
        }
        let (entries, codes) = (BlockNumber(place.entries), BlockNumber(place.codes));
        let dictionary = TextDictionary::read(
            of.column_type,
            place.count as usize,
            self.file.block(entries)?,
            place.groups as usize,
            self.file.block(codes)?,
        );
        let mut dictionary = self.sound(entries, dictionary)?;
        dictionary.is_whole = place.is_whole;
        let dictionary = Arc::new(dictionary);
        Ok(Some(Arc::clone(slot.get_or_init(|| dictionary))))
    }

    /// Whether it is worth while to say what will be read.
    #[inline]
    pub fn is_cold(&self) -> bool {
        self.file.is_cold()
    }

    /// Asks the disk for these rows of some columns, and does not wait.
    pub fn will_read(&self, rows: impl Iterator<Item = Range<u64>>, columns: &[usize]) {
        let mut blocks = Vec::new();
        let mut next = 0;
        for range in rows.filter(|range| !range.is_empty()) {
            let first = (range.start / GROUP_ROWS as u64).max(next);
            next = range.end.div_ceil(GROUP_ROWS as u64);
            for group in first..next {
                let Some(&start) = self.metadata.groups.get(group as usize) else {
                    break;
                };
                blocks.extend(columns.iter().filter_map(
                    |&column| match self.columns[column].source {
                        Source::File(column) => Some(BlockNumber(start + column as u32)),
                        Source::Initial(_) => None,
                    },
                ));
            }
        }
        self.file.will_touch(&mut blocks);
    }

    /// The block of a group of a column of the file.
    pub(super) fn column_block(
        &self,
        group: usize,
        column: usize,
    ) -> Result<(BlockNumber, ColumnBlock<'_>)> {
        // As many groups as there should be, `read_metadata` has seen to it.
        let block = BlockNumber(self.metadata.groups[group] + column as u32);
        let read = ColumnBlock::read(self.file.block(block)?);
        Ok((block, self.sound(block, read)?))
    }

    /// A vector of a column of the file.
    pub(super) fn vector(
        &self,
        vector: usize,
        column: usize,
    ) -> Result<(BlockNumber, ColumnBlock<'_>, Vector<'_>)> {
        let (number, block) = self.column_block(vector / GROUP_VECTORS, column)?;
        let read = block.vector(vector % GROUP_VECTORS, self.rows_of(vector));
        Ok((number, block, self.sound(number, read)?))
    }

    /// Rows of a vector.
    pub(super) fn rows_of(&self, vector: usize) -> usize {
        let before = (vector * VECTOR_ROWS) as u64;
        self.rows().saturating_sub(before).min(VECTOR_ROWS as u64) as usize
    }

    /// The fence of a vector: a beginning of its first key, behind the last key of the vector
    /// before.
    pub(super) fn fence(&self, vector: usize) -> Result<&[u8]> {
        let block = BlockNumber(self.metadata.fences + (vector / FENCES_PER_BLOCK) as u32);
        let bytes = self.file.block(block)?;
        let first = vector - vector % FENCES_PER_BLOCK;
        let count = (self.vectors() - first).min(FENCES_PER_BLOCK);
        self.sound(block, fence_of(bytes, count, vector - first))
    }

    /// What was decoded, or the damage of its block.
    #[inline]
    pub(super) fn sound<T>(&self, block: BlockNumber, decoded: Decoded<T>) -> Result<T> {
        decoded.map_err(|what| self.damage(block, what))
    }

    #[cold]
    pub(super) fn damage(&self, block: BlockNumber, what: &str) -> Error {
        let what = format!("block {}: {what}", block.0);
        Error::corrupt(self.path(), self.file.block_offset(block), what)
    }
}

fn fence_of(bytes: &[u8], count: usize, number: usize) -> Decoded<&[u8]> {
    const MISSING: &str = "a fence is missing";
    let (ends, bytes) = bytes.split_at_checked(count * 4).ok_or(MISSING)?;
    let ends = ends.as_chunks::<4>().0;
    let end = |number: usize| u32::from_le_bytes(ends[number]) as usize;
    let start = number.checked_sub(1).map_or(0, end);
    bytes.get(start..end(number)).ok_or(MISSING)
}

fn read_metadata(file: &BlockFile) -> Result<Metadata> {
    let corrupt = |what: String| Err(Error::corrupt(file.path(), file.metadata_offset(), what));
    let metadata: Metadata = match serde_json::from_slice(file.metadata()) {
        Ok(metadata) => metadata,
        Err(error) => return corrupt(format!("its metadata cannot be read: {error}")),
    };
    if metadata.version != VERSION {
        return Err(Error::FormatVersion {
            path: file.path().to_path_buf(),
            found: metadata.version,
            supported: VERSION,
        });
    }
    let groups = metadata.rows.div_ceil(GROUP_ROWS as u64);
    let fences = vectors_of(metadata.rows).div_ceil(FENCES_PER_BLOCK) as u64;
    let columns = metadata.columns.len() as u64;
    let has_block = |block: u32| block < file.block_count();
    let is_column_sound = |column: &ColumnMetadata| {
        let blocks = column.dictionary.map(|of| [of.entries, of.codes]);
        has_block(column.zones) && blocks.into_iter().flatten().all(has_block)
    };
    let is_sound = metadata.groups.len() as u64 == groups
        && metadata.key_columns <= metadata.columns.len()
        && u64::from(metadata.fences) + fences <= u64::from(file.block_count())
        && metadata.columns.iter().all(is_column_sound)
        && metadata
            .groups
            .iter()
            .all(|&group| u64::from(group) + columns <= u64::from(file.block_count()));
    match is_sound {
        true => Ok(metadata),
        false => corrupt("its metadata and its blocks disagree".to_owned()),
    }
}
