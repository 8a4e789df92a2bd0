//! The writer of a text or blob column, which stores each group of values as codes or as bytes.

use std::ops::Range;

use arrow::array::Array;
use orrery_column::{VECTOR_ROWS, encode};

use super::super::key::{Bytes, significant, write_bytes};
use super::super::types::ColumnType;
use super::bytes_block::{Compressor, GroupValue, LongValue};
use super::dictionary::{DictionaryBuilder, FinishedDictionary};
use super::distinct::{Distinct, hash_bytes};
use super::metadata::ColumnStatistics;
use super::vector::{BlockBuilder, BlockKind, Validity};
use super::zones::{ColumnZones, ZoneKind, prefix_lane};
use super::{LONG_BYTES, VALUE_BYTES_MAX};
use crate::files::block_file::BlockFileWriter;
use crate::{Error, Result};

/// A longer least or greatest value is not kept.
const BOUND_BYTES_MAX: usize = 256;
/// zstd's level for long values: little is won by higher ones.
const ZSTD_LEVEL: i32 = 3;
/// First byte of a long value's block.
pub(super) const STORED: u8 = 0;
pub(super) const ZSTD: u8 = 1;

/// A column of texts or blobs being written.
#[derive(Debug)]
pub(super) struct BytesColumn {
    column_type: ColumnType,
    /// The values of the group being filled; of a long value what zones need.
    bytes: Vec<u8>,
    rows: Vec<Row>,
    has_long: bool,
    /// All groups.
    dictionary: DictionaryBuilder,
    compressor: Compressor,
    groups: usize,
    /// By the first bytes, and by provisional numbers of the dictionary.
    zones: ColumnZones,
    number_zones: Vec<Option<(u32, u32)>>,
    distinct: Distinct,
    least: Option<Vec<u8>>,
    greatest: Option<Vec<u8>>,
    nulls: u64,
    value_bytes: u64,
    long_bytes: u64,
}

#[derive(Debug, Clone, Copy)]
enum Row {
    Null,
    Bytes { end: usize },
    Long { value: LongValue, prefix: u64 },
}

/// What a column has become.
#[derive(Debug)]
pub(super) struct FinishedBytes {
    pub(super) zones: ColumnZones,
    pub(super) statistics: ColumnStatistics,
    pub(super) dictionary: Option<FinishedDictionary>,
}

impl BytesColumn {
    pub(super) fn new(column_type: ColumnType) -> Self {
        Self {
            column_type,
            bytes: Vec::new(),
            rows: Vec::new(),
            has_long: false,
            dictionary: DictionaryBuilder::default(),
            compressor: Compressor::default(),
            groups: 0,
            zones: ColumnZones::new(ZoneKind::Values),
            number_zones: Vec::new(),
            distinct: Distinct::default(),
            least: None,
            greatest: None,
            nulls: 0,
            value_bytes: 0,
            long_bytes: 0,
        }
    }

    /// Appends rows. Long values are written at once.
    pub(super) fn push(
        &mut self,
        array: &dyn Array,
        rows: Range<usize>,
        file: &mut BlockFileWriter,
    ) -> Result<()> {
        let values = Bytes::new(self.column_type, array)?;
        let nulls = array.nulls();
        for row in rows {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                self.rows.push(Row::Null);
                continue;
            }
            let value = significant(self.column_type, values.value(row));
            self.value_bytes += value.len() as u64;
            if value.len() > LONG_BYTES {
                let long = self.push_long(value, file)?;
                self.rows.push(long);
                continue;
            }
            self.bytes.extend_from_slice(value);
            let end = self.bytes.len();
            self.rows.push(Row::Bytes { end });
        }
        Ok(())
    }

    fn push_long(&mut self, value: &[u8], file: &mut BlockFileWriter) -> Result<Row> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(Error::invalid_input(
                file.path(),
                format!(
                    "a value of {} bytes, more than {VALUE_BYTES_MAX}",
                    value.len()
                ),
            ));
        }
        self.has_long = true;
        self.distinct.insert(hash_bytes(value));
        // A long value is neither of the bounds that are kept, but may be the true one.
        self.look_at(value);
        let compressed = zstd::bulk::compress(value, ZSTD_LEVEL).ok();
        let smaller = compressed.filter(|compressed| compressed.len() < value.len());
        let (kind, content) = match &smaller {
            Some(compressed) => (ZSTD, &compressed[..]),
            None => (STORED, value),
        };
        let mut block = Vec::with_capacity(content.len() + 1);
        block.push(kind);
        block.extend_from_slice(content);
        self.long_bytes += block.len() as u64;
        Ok(Row::Long {
            value: LongValue {
                block: file.append(&block)?.0,
                bytes: value.len() as u32,
            },
            prefix: prefix_lane(value),
        })
    }

    /// The block of the group. `bytes_left` is what all dictionaries of the file may still take.
    pub(super) fn finish_group(&mut self, bytes_left: &mut usize) -> Vec<u8> {
        let rows = std::mem::take(&mut self.rows);
        let bytes = std::mem::take(&mut self.bytes);
        let mut start = 0;
        let values: Vec<GroupValue<'_>> = rows
            .iter()
            .map(|row| match row {
                Row::Null => GroupValue::Null,
                Row::Long { value, .. } => GroupValue::Long(*value),
                Row::Bytes { end } => {
                    let value = &bytes[start..*end];
                    start = *end;
                    GroupValue::Bytes(value)
                }
            })
            .collect();
        self.zone_prefixes(&rows, &values);
        let codes = match self.has_long {
            true => None,
            false => {
                let values = values.iter().map(|value| match value {
                    GroupValue::Bytes(bytes) => Some(*bytes),
                    GroupValue::Null | GroupValue::Long(_) => None,
                });
                self.dictionary.add_group(values, bytes_left)
            }
        };
        let block = match codes {
            Some(codes) => self.write_codes(&codes, &values),
            None => {
                self.look_at_group(&values);
                self.compressor.write_block(&values)
            }
        };
        self.groups += 1;
        self.has_long = false;
        // The room is used again.
        (self.rows, self.bytes) = (rows, bytes);
        self.rows.clear();
        self.bytes.clear();
        block
    }

    fn zone_prefixes(&mut self, rows: &[Row], values: &[GroupValue<'_>]) {
        for (rows, values) in rows.chunks(VECTOR_ROWS).zip(values.chunks(VECTOR_ROWS)) {
            let prefixes = rows.iter().zip(values).filter_map(|pair| match pair {
                (Row::Long { prefix, .. }, _) => Some(*prefix),
                (_, GroupValue::Bytes(value)) => Some(prefix_lane(value)),
                _ => None,
            });
            let nulls = rows.iter().filter(|row| matches!(row, Row::Null)).count();
            self.zones.push(prefixes, nulls);
            self.nulls += nulls as u64;
        }
    }

    /// A block of codes, and statistics of the values behind them.
    fn write_codes(&mut self, codes: &[u64], values: &[GroupValue<'_>]) -> Vec<u8> {
        let mut block = BlockBuilder::default();
        let mut valid = [true; VECTOR_ROWS];
        for (codes, values) in codes.chunks(VECTOR_ROWS).zip(values.chunks(VECTOR_ROWS)) {
            for (valid, value) in valid.iter_mut().zip(values) {
                *valid = !matches!(value, GroupValue::Null);
            }
            let validity = Validity::of(&valid[..values.len()]);
            let out = block.begin(&validity);
            if validity == Validity::AllNull {
                self.number_zones.push(None);
                continue;
            }
            encode(codes, out);
            let (least, greatest) = codes
                .iter()
                .zip(&valid)
                .filter(|(_, valid)| **valid)
                .fold((u64::MAX, 0), |(least, greatest), (&code, _)| {
                    (code.min(least), code.max(greatest))
                });
            let group = self.dictionary.last_group();
            let zone = (group[least as usize], group[greatest as usize]);
            self.number_zones.push(Some(zone));
        }
        let group = self.dictionary.last_group();
        for &number in group {
            self.distinct
                .insert(hash_bytes(self.dictionary.value(number)));
        }
        let bounds = [group.first(), group.last()]
            .map(|number| number.map(|&number| self.dictionary.value(number).to_vec()));
        for value in bounds.into_iter().flatten() {
            self.look_at(&value);
        }
        block.finish(BlockKind::Codes, &[])
    }

    fn look_at_group(&mut self, values: &[GroupValue<'_>]) {
        let bytes = values.iter().filter_map(|value| match value {
            GroupValue::Bytes(bytes) => Some(*bytes),
            GroupValue::Null | GroupValue::Long(_) => None,
        });
        let Some(first) = bytes.clone().next() else {
            return;
        };
        let (mut least, mut greatest) = (first, first);
        for value in bytes {
            self.distinct.insert(hash_bytes(value));
            if value < least {
                least = value;
            } else if value > greatest {
                greatest = value;
            }
        }
        self.look_at(least);
        self.look_at(greatest);
    }

    /// Whether a value is a bound.
    fn look_at(&mut self, value: &[u8]) {
        if self.least.as_ref().is_none_or(|least| value < &least[..]) {
            self.least = Some(value.to_vec());
        }
        if self
            .greatest
            .as_ref()
            .is_none_or(|greatest| value > &greatest[..])
        {
            self.greatest = Some(value.to_vec());
        }
    }

    /// Zones, dictionary and statistics of all rows.
    pub(super) fn finish(self) -> FinishedBytes {
        let is_whole = self.groups > 0 && self.dictionary.groups() == self.groups;
        let dictionary = self.dictionary.finish();
        let mut zones = self.zones;
        if let Some(dictionary) = dictionary.as_ref().filter(|_| is_whole) {
            zones.kind = ZoneKind::Codes;
            for (vector, zone) in self.number_zones.iter().enumerate() {
                if let Some((least, greatest)) = zone {
                    zones.least[vector] = u64::from(dictionary.ranks[*least as usize]);
                    zones.greatest[vector] = u64::from(dictionary.ranks[*greatest as usize]);
                }
            }
        }
        let exact = dictionary.as_ref().filter(|_| is_whole);
        let bound = |value: Option<Vec<u8>>| {
            let value = value.filter(|value| value.len() <= BOUND_BYTES_MAX)?;
            let mut key = Vec::new();
            write_bytes(&value, &mut key);
            Some(key)
        };
        let statistics = ColumnStatistics {
            nulls: self.nulls,
            distinct: match exact {
                Some(dictionary) => u64::from(dictionary.count),
                None => self.distinct.estimate(),
            },
            is_distinct_exact: exact.is_some(),
            least: bound(self.least),
            greatest: bound(self.greatest),
            bytes: self.long_bytes,
            value_bytes: self.value_bytes,
        };
        FinishedBytes {
            zones,
            statistics,
            dictionary,
        }
    }
}
