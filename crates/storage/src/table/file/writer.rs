//! The writer of a projection file from sorted rows.

use std::cmp::Ordering;
use std::ops::Range;
use std::path::Path;

use arrow::array::ArrayRef;
use orrery_column::VECTOR_ROWS;
use parking_lot::Mutex;

use super::super::definition::{ProjectionColumn, ProjectionLayout};
use super::super::key::{KeyEncoder, KeyRows};
use super::super::lanes::check_array;
use super::super::types::Physical;
use super::bytes_column::{BytesColumn, FinishedBytes};
use super::lane_column::LaneColumn;
use super::metadata::{ColumnMetadata, DictionaryMetadata, Metadata, VERSION};
use super::{DICTIONARIES_BYTES_MAX, FENCES_PER_BLOCK, GROUP_ROWS, KIND};
use crate::files::block_file::{BlockFileWriter, FileSummary};
use crate::files::io::FileSystem;
use crate::{Error, Result};

/// Columns of lanes whose rows are kept for other threads; each takes a quarter of a MiB.
const KEPT_COLUMNS_MAX: usize = 64;

/// The writer of a projection file, from rows in key order. What memory it uses is said in the
/// room's first lines.
#[derive(Debug)]
pub struct ProjectionWriter {
    file: BlockFileWriter,
    layout: ProjectionLayout,
    rows: u64,
    columns: Vec<Column>,
    /// That encode a group.
    threads: usize,
    /// Bytes of each column so far.
    column_bytes: Vec<u64>,
    groups: Vec<u32>,
    /// What dictionaries may still take.
    dictionary_bytes_left: usize,
    encoder: KeyEncoder,
    /// Keys of the rows that were pushed last.
    keys: KeyRows,
    last_key: Option<Vec<u8>>,
    fences: KeyRows,
}

#[derive(Debug)]
enum Column {
    Lanes(Box<LaneColumn>),
    Bytes(Box<BytesColumn>),
}

/// The summary of a written projection file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectionSummary {
    /// Number of rows.
    pub rows: u64,
    /// What identifies the file.
    pub file: FileSummary,
}

impl ProjectionWriter {
    /// Creates the file.
    pub fn create(
        file_system: &dyn FileSystem,
        path: &Path,
        layout: &ProjectionLayout,
    ) -> Result<Self> {
        let column = |column: &ProjectionColumn| match column.column_type.physical() {
            Physical::Bytes => Column::Bytes(Box::new(BytesColumn::new(column.column_type))),
            Physical::Lane | Physical::TwoLanes => {
                Column::Lanes(Box::new(LaneColumn::new(column.column_type)))
            }
        };
        Ok(Self {
            file: BlockFileWriter::create(file_system, path, KIND)?,
            layout: layout.clone(),
            rows: 0,
            columns: layout.columns.iter().map(column).collect(),
            threads: 1,
            column_bytes: vec![0; layout.columns.len()],
            groups: Vec::new(),
            dictionary_bytes_left: DICTIONARIES_BYTES_MAX,
            encoder: KeyEncoder::new(layout.key()),
            keys: KeyRows::default(),
            last_key: None,
            fences: KeyRows::default(),
        })
    }

    /// Encodes with so many threads, of which one is the caller's. The file is the same.
    #[must_use]
    pub fn on_threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        let mut kept = KEPT_COLUMNS_MAX;
        for column in &mut self.columns {
            if let Column::Lanes(column) = column
                && threads > 1
                && kept > 0
            {
                column.keep_rows();
                kept -= 1;
            }
        }
        self
    }

    /// Number of rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends rows, an array for each column of the layout. Their keys must ascend strictly, from
    /// the last one before them on. On an error the file is of no use any more.
    pub fn push(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.push_distinct(columns)?.map_err(|row| {
            let row = self.rows + row as u64;
            self.wrong(format!("row {row} has the key of the one before"))
        })
    }

    /// Appends rows unless one has the key of the row before: then returns its number and appends
    /// none.
    pub fn push_distinct(&mut self, columns: &[ArrayRef]) -> Result<Result<(), usize>> {
        let rows = self.check_columns(columns)?;
        self.keys.clear();
        let keys = &columns[..self.layout.key_columns];
        self.encoder.encode_rows(keys, &mut self.keys)?;
        if let Some(row) = self.equal_row()? {
            return Ok(Err(row));
        }
        let mut row = 0;
        while row < rows {
            let within = (self.rows % GROUP_ROWS as u64) as usize;
            let end = rows.min(row + GROUP_ROWS - within);
            self.push_to_group(columns, row..end)?;
            row = end;
        }
        if let Some(last) = rows.checked_sub(1) {
            let key = self.last_key.get_or_insert_default();
            key.clear();
            key.extend_from_slice(self.keys.get(last));
        }
        Ok(Ok(()))
    }

    fn wrong(&self, what: String) -> Error {
        Error::invalid_input(self.file.path(), what)
    }

    /// The number of rows, if the arrays are as many and as long as they should be, and NULL only
    /// where it may.
    fn check_columns(&self, columns: &[ArrayRef]) -> Result<usize> {
        let wrong = |what: String| Err(self.wrong(what));
        if columns.len() != self.layout.columns.len() {
            return wrong(format!(
                "{} columns instead of {}",
                columns.len(),
                self.layout.columns.len()
            ));
        }
        let rows = columns.first().map_or(0, |column| column.len());
        for (array, column) in columns.iter().zip(&self.layout.columns) {
            check_array(column.column_type, array)?;
            if array.len() != rows {
                return wrong("columns of different lengths".to_owned());
            }
            if !column.is_nullable && array.null_count() > 0 {
                return wrong(format!("NULL in column {}, which has none", column.id.0));
            }
        }
        Ok(rows)
    }

    /// The first row with the key of the one before; fails if one has a lesser key.
    fn equal_row(&self) -> Result<Option<usize>> {
        let mut last = self.last_key.as_deref();
        for (row, key) in self.keys.iter().enumerate() {
            match last.map(|last| last.cmp(key)) {
                None | Some(Ordering::Less) => last = Some(key),
                Some(Ordering::Equal) => return Ok(Some(row)),
                Some(Ordering::Greater) => {
                    return Err(Error::RowOrder {
                        path: self.file.path().to_path_buf(),
                        row: self.rows + row as u64,
                    });
                }
            }
        }
        Ok(None)
    }

    /// The fence of the vector that begins with a row of those that are pushed.
    fn push_fence(&mut self, row: usize) {
        let key = self.keys.get(row);
        let before = match row.checked_sub(1) {
            Some(before) => Some(self.keys.get(before)),
            None => self.last_key.as_deref(),
        };
        // The shortest beginning that is behind the key before.
        let fence = before.map_or(0, |before| {
            let equal = before.iter().zip(key).take_while(|(a, b)| a == b);
            equal.count() + 1
        });
        self.fences.push(&key[..fence.min(key.len())]);
    }

    /// Appends rows, no more than the group has room for.
    fn push_to_group(&mut self, columns: &[ArrayRef], rows: Range<usize>) -> Result<()> {
        let within = (self.rows % VECTOR_ROWS as u64) as usize;
        let first = rows.start + (VECTOR_ROWS - within) % VECTOR_ROWS;
        for row in (first..rows.end).step_by(VECTOR_ROWS) {
            self.push_fence(row);
        }
        for (column, array) in self.columns.iter_mut().zip(columns) {
            match column {
                Column::Lanes(column) => column.push(array, rows.clone())?,
                Column::Bytes(column) => column.push(array, rows.clone(), &mut self.file)?,
            }
        }
        self.rows += rows.len() as u64;
        match self.rows.is_multiple_of(GROUP_ROWS as u64) {
            true => self.finish_group(),
            false => Ok(()),
        }
    }

    fn finish_group(&mut self) -> Result<()> {
        self.groups.push(self.file.block_count());
        let blocks = self.encode_group();
        for (block, bytes) in blocks.iter().zip(&mut self.column_bytes) {
            *bytes += block.len() as u64;
            self.file.append(block)?;
        }
        Ok(())
    }

    /// The blocks of the group, by column. Columns do not look at each other, so threads take one
    /// after the other.
    fn encode_group(&mut self) -> Vec<Vec<u8>> {
        let mut parts: Vec<(&mut Column, Vec<u8>)> = self
            .columns
            .iter_mut()
            .map(|column| (column, Vec::new()))
            .collect();
        // What takes longest comes first.
        let (texts, lanes): (Vec<_>, Vec<_>) = parts
            .iter_mut()
            .partition(|(column, _)| matches!(column, Column::Bytes(_)));
        // What a column takes does not depend on which thread is first.
        let share = self.dictionary_bytes_left / texts.len().max(1);
        let waiting = Mutex::new(texts.into_iter().chain(lanes));
        let encode = || {
            let mut taken = 0;
            loop {
                let next = waiting.lock().next();
                let Some((column, block)) = next else {
                    return taken;
                };
                *block = match column {
                    Column::Lanes(column) => column.finish_group(),
                    Column::Bytes(column) => {
                        let mut left = share;
                        let block = column.finish_group(&mut left);
                        taken += share - left;
                        block
                    }
                };
            }
        };
        let taken = std::thread::scope(|scope| {
            let others: Vec<_> = (1..self.threads).map(|_| scope.spawn(encode)).collect();
            let own = encode();
            let others = others.into_iter().map(|other| match other.join() {
                Ok(taken) => taken,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            own + others.sum::<usize>()
        });
        self.dictionary_bytes_left -= taken;
        parts.into_iter().map(|(_, block)| block).collect()
    }

    /// Writes what is left, and syncs the file.
    pub fn finish(mut self) -> Result<ProjectionSummary> {
        if !self.rows.is_multiple_of(GROUP_ROWS as u64) {
            self.finish_group()?;
        }
        let has_one_key = self.layout.key_columns == 1;
        let mut columns = Vec::new();
        let parts = self.columns.into_iter().zip(&self.layout.columns);
        for ((column, of), bytes) in parts.zip(self.column_bytes) {
            let mut metadata = write_column(&mut self.file, column, of)?;
            metadata.statistics.bytes += bytes;
            if has_one_key && columns.is_empty() {
                metadata.statistics.distinct = self.rows - metadata.statistics.nulls;
                metadata.statistics.is_distinct_exact = true;
            }
            columns.push(metadata);
        }
        let metadata = Metadata {
            version: VERSION,
            relation: self.layout.relation,
            rows: self.rows,
            key_columns: self.layout.key_columns,
            groups: self.groups,
            fences: write_fences(&mut self.file, &self.fences)?,
            columns,
        };
        let path = self.file.path().to_path_buf();
        let json = serde_json::to_vec(&metadata)
            .map_err(|error| Error::invalid_input(&path, error.to_string()))?;
        Ok(ProjectionSummary {
            rows: self.rows,
            file: self.file.finish(&json)?,
        })
    }
}

/// Writes what is there once for a column.
fn write_column(
    file: &mut BlockFileWriter,
    column: Column,
    of: &ProjectionColumn,
) -> Result<ColumnMetadata> {
    let finished = match column {
        Column::Lanes(column) => {
            let (zones, statistics) = column.finish();
            FinishedBytes {
                zones,
                statistics,
                dictionary: None,
            }
        }
        Column::Bytes(column) => column.finish(),
    };
    let mut statistics = finished.statistics;
    let zones = finished.zones.write();
    statistics.bytes += zones.len() as u64;
    let zones = file.append(&zones)?.0;
    let dictionary = match finished.dictionary {
        None => None,
        Some(dictionary) => {
            statistics.bytes += (dictionary.entries.len() + dictionary.codes.len()) as u64;
            Some(DictionaryMetadata {
                count: dictionary.count,
                entries: file.append(&dictionary.entries)?.0,
                groups: dictionary.groups,
                codes: file.append(&dictionary.codes)?.0,
                is_whole: finished.zones.kind == super::ZoneKind::Codes,
            })
        }
    };
    Ok(ColumnMetadata {
        id: of.id,
        column_type: of.column_type,
        is_nullable: of.is_nullable,
        zones,
        dictionary,
        statistics,
    })
}

/// Writes the fences, and returns their first block.
fn write_fences(file: &mut BlockFileWriter, fences: &KeyRows) -> Result<u32> {
    let first = file.block_count();
    let mut row = 0;
    while row < fences.len() {
        let rows = row..fences.len().min(row + FENCES_PER_BLOCK);
        let (mut ends, mut bytes) = (Vec::new(), Vec::new());
        for fence in rows.clone() {
            bytes.extend_from_slice(fences.get(fence));
            let end = u32::try_from(bytes.len());
            let end = end.map_err(|_| Error::invalid_input(file.path(), "keys are too long"))?;
            ends.extend_from_slice(&end.to_le_bytes());
        }
        ends.append(&mut bytes);
        file.append(&ends)?;
        row = rows.end;
    }
    Ok(first)
}
