//! The bytes of column blocks, their vectors, and lists of numbers. Drawn in `mod.rs`.

use arrow::array::BooleanBufferBuilder;
use orrery_column::{DecodeError, EncodedVector, VECTOR_ROWS, VectorBuffer, encode};

use super::{Decoded, Fault, GROUP_VECTORS};

/// What the vectors of a column block contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum BlockKind {
    Lanes = 0,
    Codes = 1,
    Bytes = 2,
}

const HEADER_BYTES: usize = 6;
const END_BYTES: usize = 4;

const NO_NULL: u8 = 0;
const SOME_NULL: u8 = 1;
const ALL_NULL: u8 = 2;

pub(super) fn fault(error: DecodeError) -> Fault {
    error.what
}

/// A column block in the making.
#[derive(Debug, Default)]
pub(super) struct BlockBuilder {
    ends: Vec<u8>,
    vectors: Vec<u8>,
}

impl BlockBuilder {
    /// Begins a vector; what is appended to the bytes that come back, up to the next vector, is its
    /// content. There must be none where all rows are NULL.
    pub(super) fn begin(&mut self, valid: &Validity) -> &mut Vec<u8> {
        self.end();
        match valid {
            Validity::AllValues => self.vectors.push(NO_NULL),
            Validity::AllNull => self.vectors.push(ALL_NULL),
            Validity::Rows(valid) => {
                let lanes: Vec<u64> = valid.iter().map(|&valid| u64::from(valid)).collect();
                self.vectors.push(SOME_NULL);
                write_sized(&lanes, &mut self.vectors);
            }
        }
        &mut self.vectors
    }

    fn end(&mut self) {
        if !self.vectors.is_empty() {
            let end = self.vectors.len() as u32;
            self.ends.extend_from_slice(&end.to_le_bytes());
        }
    }

    /// The block, and everything empty again.
    pub(super) fn finish(&mut self, kind: BlockKind, table: &[u8]) -> Vec<u8> {
        self.end();
        let bytes = HEADER_BYTES + self.ends.len() + table.len() + self.vectors.len();
        let mut block = Vec::with_capacity(bytes);
        block.extend_from_slice(&[kind as u8, (self.ends.len() / END_BYTES) as u8]);
        block.extend_from_slice(&(table.len() as u32).to_le_bytes());
        block.append(&mut self.ends);
        block.extend_from_slice(table);
        block.append(&mut self.vectors);
        block
    }
}

/// Which rows of a vector have a value, as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Validity<'a> {
    AllValues,
    AllNull,
    Rows(&'a [bool]),
}

impl<'a> Validity<'a> {
    pub(super) fn of(valid: &'a [bool]) -> Self {
        let values = valid.iter().filter(|&&valid| valid).count();
        match values {
            0 => Self::AllNull,
            _ if values == valid.len() => Self::AllValues,
            _ => Self::Rows(valid),
        }
    }
}

/// Appends an encoded vector behind its length.
pub(super) fn write_sized(lanes: &[u64], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 2]);
    encode(lanes, out);
    // An encoded vector takes some bytes more than its values at most.
    let bytes = (out.len() - start - 2) as u16;
    out[start..start + 2].copy_from_slice(&bytes.to_le_bytes());
}

/// Reads an encoded vector of a known number of rows behind its length.
pub(super) fn read_sized<'a>(bytes: &mut &'a [u8], rows: usize) -> Decoded<EncodedVector<'a>> {
    let length = take_chunk::<2>(bytes)?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (vector, rest) = bytes
        .split_at_checked(length)
        .ok_or("a vector is cut off")?;
    *bytes = rest;
    read_vector(vector, rows)
}

/// Reads an encoded vector of a known number of rows.
pub(super) fn read_vector(bytes: &[u8], rows: usize) -> Decoded<EncodedVector<'_>> {
    let vector = EncodedVector::read(bytes).map_err(fault)?;
    match vector.rows() == rows {
        true => Ok(vector),
        false => Err("a vector has another number of rows"),
    }
}

/// Appends any number of numbers.
pub(super) fn write_list(numbers: &[u64], out: &mut Vec<u8>) {
    for chunk in numbers.chunks(VECTOR_ROWS) {
        write_sized(chunk, out);
    }
}

/// Reads so many numbers.
pub(super) fn read_list(bytes: &mut &[u8], count: usize) -> Decoded<Vec<u64>> {
    // Three bytes stand for a thousand numbers at best.
    let mut numbers = Vec::with_capacity(count.min(bytes.len().saturating_mul(VECTOR_ROWS)));
    let mut buffer: VectorBuffer = [0; VECTOR_ROWS];
    while numbers.len() < count {
        let rows = (count - numbers.len()).min(VECTOR_ROWS);
        let vector = read_sized(bytes, rows)?;
        vector.decode(&mut buffer).map_err(fault)?;
        numbers.extend_from_slice(&buffer[..rows]);
    }
    Ok(numbers)
}

pub(super) fn take_chunk<'a, const N: usize>(bytes: &mut &'a [u8]) -> Decoded<&'a [u8; N]> {
    let (chunk, rest) = bytes.split_first_chunk().ok_or("bytes are missing")?;
    *bytes = rest;
    Ok(chunk)
}

pub(super) fn take_u32(bytes: &mut &[u8]) -> Decoded<u32> {
    Ok(u32::from_le_bytes(*take_chunk::<4>(bytes)?))
}

/// A column block whose header has been read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnBlock<'a> {
    pub(super) kind: BlockKind,
    ends: &'a [[u8; END_BYTES]],
    pub(super) table: &'a [u8],
    vectors: &'a [u8],
}

impl<'a> ColumnBlock<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Decoded<Self> {
        let mut rest = bytes;
        let [kind, vectors] = *take_chunk::<2>(&mut rest)?;
        let kind = match kind {
            0 => BlockKind::Lanes,
            1 => BlockKind::Codes,
            2 => BlockKind::Bytes,
            _ => return Err("a column block is of no known kind"),
        };
        let table_bytes = take_u32(&mut rest)? as usize;
        let vectors = usize::from(vectors);
        let (ends, rest) = rest
            .split_at_checked(vectors * END_BYTES)
            .filter(|_| vectors <= GROUP_VECTORS)
            .ok_or("a column block has an impossible number of vectors")?;
        let (table, vectors) = rest
            .split_at_checked(table_bytes)
            .ok_or("the table of a column block is cut off")?;
        Ok(Self {
            kind,
            ends: ends.as_chunks().0,
            table,
            vectors,
        })
    }

    /// One of its vectors, which has so many rows.
    #[inline]
    pub(super) fn vector(&self, number: usize, rows: usize) -> Decoded<Vector<'a>> {
        const MISSING: Fault = "a column block lacks a vector";
        let end = |number: usize| match self.ends.get(number) {
            Some(end) => Ok(u32::from_le_bytes(*end) as usize),
            None => Err(MISSING),
        };
        let start = match number {
            0 => 0,
            _ => end(number - 1)?,
        };
        let bytes = self.vectors.get(start..end(number)?).ok_or(MISSING)?;
        Vector::read(bytes, rows)
    }
}

/// A vector of a column block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vector<'a> {
    pub(super) rows: usize,
    pub(super) nulls: Nulls<'a>,
    /// Empty where all rows are NULL.
    pub(super) content: &'a [u8],
}

/// Which rows of a vector are NULL, as it is read.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, on the stack: a box would cost each vector an allocation"
)]
pub(super) enum Nulls<'a> {
    None,
    All,
    /// 1 for a value.
    Some(EncodedVector<'a>),
}

impl<'a> Vector<'a> {
    fn read(bytes: &'a [u8], rows: usize) -> Decoded<Self> {
        let mut content = bytes;
        let [tag] = *take_chunk::<1>(&mut content)?;
        let nulls = match tag {
            NO_NULL => Nulls::None,
            ALL_NULL => Nulls::All,
            SOME_NULL => Nulls::Some(read_sized(&mut content, rows)?),
            _ => return Err("a vector has no known tag"),
        };
        Ok(Self {
            rows,
            nulls,
            content,
        })
    }

    /// Whether all rows are NULL, so that there is no content.
    pub(super) fn is_all_null(&self) -> bool {
        matches!(self.nulls, Nulls::All)
    }

    /// The content of a type with one lane, or of codes.
    #[inline]
    pub(super) fn lanes(&self) -> Decoded<EncodedVector<'a>> {
        read_vector(self.content, self.rows)
    }

    /// The content of a type with two lanes.
    pub(super) fn two_lanes(&self) -> Decoded<[EncodedVector<'a>; 2]> {
        let mut rest = self.content;
        let first = read_sized(&mut rest, self.rows)?;
        Ok([first, read_vector(rest, self.rows)?])
    }

    /// The content of bytes: lengths, and the compressed values.
    pub(super) fn bytes(&self) -> Decoded<(EncodedVector<'a>, &'a [u8])> {
        let mut rest = self.content;
        let lengths = read_sized(&mut rest, self.rows)?;
        Ok((lengths, rest))
    }
}

impl Nulls<'_> {
    /// Decodes them: true for a value. `None` where all rows have one.
    pub(super) fn decode(&self, rows: usize) -> Decoded<Option<Vec<bool>>> {
        Ok(match self {
            Self::None => None,
            Self::All => Some(vec![false; rows]),
            Self::Some(vector) => {
                let mut buffer: VectorBuffer = [0; VECTOR_ROWS];
                vector.decode(&mut buffer).map_err(fault)?;
                Some(buffer[..rows].iter().map(|&lane| lane & 1 == 1).collect())
            }
        })
    }
}

/// NULLs of the rows of an array in the making; takes nothing while there are none.
#[derive(Debug, Default)]
pub(super) struct NullBuilder {
    rows: usize,
    bits: Option<BooleanBufferBuilder>,
}

impl NullBuilder {
    /// Appends rows that all have a value, or none.
    pub(super) fn append(&mut self, rows: usize, is_valid: bool) {
        if is_valid && self.bits.is_none() {
            self.rows += rows;
            return;
        }
        self.bits().append_n(rows, is_valid);
    }

    /// Appends some rows.
    pub(super) fn append_rows(&mut self, valid: &[bool]) {
        self.bits().append_slice(valid);
    }

    fn bits(&mut self) -> &mut BooleanBufferBuilder {
        self.bits.get_or_insert_with(|| {
            let mut bits = BooleanBufferBuilder::new(self.rows);
            bits.append_n(self.rows, true);
            bits
        })
    }

    pub(super) fn finish(self) -> Option<arrow::buffer::NullBuffer> {
        let nulls = arrow::buffer::NullBuffer::new(self.bits?.finish());
        (nulls.null_count() > 0).then_some(nulls)
    }
}
