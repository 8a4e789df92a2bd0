//! Reading of texts and blobs into Arrow arrays.

use std::sync::Arc;

use arrow::array::ArrayRef;
use orrery_column::VECTOR_ROWS;

use super::super::types::ColumnType;
use super::bytes_block::{BytesTable, LongValue, Places};
use super::bytes_column::{STORED, ZSTD};
use super::reader::ProjectionFile;
use super::vector::{BlockKind, NullBuilder, Vector};
use super::views::ViewBuilder;
use super::wanted::{LaneReader, Selection, Wanted, append_nulls};
use super::{Decoded, GROUP_VECTORS, TextDictionary};
use crate::Result;
use crate::files::block_file::BlockNumber;

/// Reads a column of texts or blobs.
pub(super) struct BytesReader<'f> {
    file: &'f ProjectionFile,
    column: usize,
    is_text: bool,
    dictionary: Option<Arc<TextDictionary>>,
    /// The table of a block, and which.
    table: Option<(BlockNumber, BytesTable<'f>)>,
    lanes: LaneReader,
    /// Decompressed values, and where they end.
    plain: Vec<u8>,
    ends: Vec<usize>,
}

impl<'f> BytesReader<'f> {
    /// Of a column of the file.
    pub(super) fn new(file: &'f ProjectionFile, column: usize) -> Result<Self> {
        Ok(Self {
            file,
            column,
            is_text: file.metadata.columns[column].column_type != ColumnType::Blob,
            dictionary: file.any_dictionary(column)?,
            table: None,
            lanes: LaneReader::default(),
            plain: Vec::new(),
            ends: Vec::with_capacity(VECTOR_ROWS),
        })
    }

    /// The values of all rows that are wanted.
    pub(super) fn read(&mut self, mut wanted: Wanted<'_>) -> Result<ArrayRef> {
        let dictionary = self.dictionary.clone();
        let values = dictionary.as_ref().map(|dictionary| &dictionary.values);
        let mut builder = ViewBuilder::new(self.is_text, values, wanted.len());
        let mut nulls = NullBuilder::default();
        while let Some((vector, selection)) = wanted.next() {
            let (block, column_block, read) = self.file.vector(vector, self.column)?;
            let appended = append_nulls(&read, selection, &mut nulls);
            self.file.sound(block, appended)?;
            if read.is_all_null() {
                builder.append_nulls(selection.len());
                continue;
            }
            match column_block.kind {
                BlockKind::Bytes => {
                    self.load_table(block, column_block.table)?;
                    self.append_values(block, &read, selection, &mut builder)?;
                }
                BlockKind::Codes => {
                    let group = vector / GROUP_VECTORS;
                    let appended = self.append_codes(group, &read, selection, &mut builder);
                    self.file.sound(block, appended)?;
                }
                BlockKind::Lanes => return Err(self.file.damage(block, "lanes instead of bytes")),
            }
        }
        Ok(builder.finish(nulls.finish()))
    }

    fn append_codes(
        &mut self,
        group: usize,
        vector: &Vector<'_>,
        selection: Selection<'_>,
        builder: &mut ViewBuilder,
    ) -> Decoded<()> {
        let dictionary = self.dictionary.as_ref();
        let dictionary = dictionary.ok_or("codes without a dictionary")?;
        let rows = self.lanes.read(&vector.lanes()?, selection, 0)?;
        builder.append_codes(&dictionary.values, dictionary.groups.group(group), rows)
    }

    /// The table of a block is unpacked once.
    fn load_table(&mut self, block: BlockNumber, table: &'f [u8]) -> Result<()> {
        if self.table.as_ref().is_none_or(|(of, _)| *of != block) {
            let table = self.file.sound(block, BytesTable::read(table))?;
            self.table = Some((block, table));
        }
        Ok(())
    }

    fn append_values(
        &mut self,
        block: BlockNumber,
        vector: &Vector<'_>,
        selection: Selection<'_>,
        builder: &mut ViewBuilder,
    ) -> Result<()> {
        let places = self.file.sound(block, Places::read(vector))?;
        let Some((_, table)) = &self.table else {
            return Ok(());
        };
        self.ends.clear();
        table.decode(
            &places,
            selection.iter(),
            &mut self.plain,
            0,
            &mut self.ends,
        );
        if places.longs.is_empty() {
            let appended = builder.append_values(&self.plain, 0, &self.ends);
            return self.file.sound(block, appended);
        }
        let mut start = 0;
        for (row, &end) in selection.iter().zip(&self.ends) {
            let appended = match places.long(row) {
                None => builder.append_values(&self.plain, start, &[end]),
                Some(number) => {
                    let long = self.file.sound(block, table.long(number))?;
                    let value = read_long(self.file, long)?;
                    builder.append_values(&value, 0, &[value.len()])
                }
            };
            self.file.sound(block, appended)?;
            start = end;
        }
        Ok(())
    }

    /// The value of one row, for a search. The vector is not of NULLs alone.
    pub(super) fn value(
        &mut self,
        block: BlockNumber,
        table: &'f [u8],
        places: &Places<'_>,
        row: usize,
    ) -> Result<Vec<u8>> {
        self.load_table(block, table)?;
        let Some((_, table)) = &self.table else {
            return Ok(Vec::new());
        };
        if let Some(number) = places.long(row) {
            return read_long(self.file, self.file.sound(block, table.long(number))?);
        }
        self.ends.clear();
        let rows = std::iter::once(row);
        let end = table.decode(places, rows, &mut self.plain, 0, &mut self.ends);
        Ok(self.plain[..end].to_vec())
    }
}

/// A long value.
fn read_long(file: &ProjectionFile, long: LongValue) -> Result<Vec<u8>> {
    let block = BlockNumber(long.block);
    let bytes = file.file.block(block)?;
    let length = long.bytes as usize;
    let value = match bytes.split_first() {
        Some((&STORED, value)) => Some(value.to_vec()),
        // The length was checked against the limit for values.
        Some((&ZSTD, frame)) => zstd::bulk::decompress(frame, length).ok(),
        _ => None,
    };
    let value = value.filter(|value| value.len() == length);
    value.ok_or_else(|| file.damage(block, "a long value is not what it should be"))
}
