//! Decoding of a vector, whole or by single values.

use crate::piece::{Piece, take_array};
use crate::plan::{DICTIONARY_ENTRIES_MAX, GROUPS_MAX};
use crate::{Codec, DecodeError, VECTOR_ROWS, VectorBuffer};

/// Decodes a vector and returns its number of rows; further entries of `out` are of no meaning.
///
/// Bytes behind the vector are ignored.
pub fn decode(bytes: &[u8], out: &mut VectorBuffer) -> Result<usize, DecodeError> {
    let vector = EncodedVector::read(bytes)?;
    vector.decode(out)?;
    Ok(vector.rows())
}

/// An encoded vector whose header has been read: for access to single values.
#[derive(Debug, Clone, Copy)]
pub struct EncodedVector<'a> {
    codec: Codec,
    rows: usize,
    body: Body<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Body<'a> {
    Constant(u64),
    Frame(Piece<'a>),
    Delta(Delta<'a>),
    Dictionary {
        entries: Piece<'a>,
        codes: Piece<'a>,
    },
    Runs {
        values: List<'a>,
        lengths: Piece<'a>,
    },
    /// Read further only when decoded: single values are not to be had cheaply.
    Groups(&'a [u8]),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Delta<'a> {
    pub(crate) first: u64,
    /// One less than there are values.
    pub(crate) deltas: Piece<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum List<'a> {
    Plain(Piece<'a>),
    Delta(Delta<'a>),
}

impl<'a> EncodedVector<'a> {
    /// Reads the headers of a vector. Bytes behind it are ignored.
    pub fn read(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut bytes = bytes;
        let [tag] = *take_array::<1>(&mut bytes)?;
        let codec = Codec::from_tag(tag).ok_or(DecodeError::new("the codec is unknown"))?;
        let rows = read_count(&mut bytes)?;
        let body = match codec {
            Codec::Constant => Body::Constant(read_u64(&mut bytes)?),
            Codec::Frame => Body::Frame(Piece::read(&mut bytes, rows)?),
            Codec::Delta => Body::Delta(Delta::read(&mut bytes, rows)?),
            Codec::Dictionary => {
                let [last_entry] = *take_array::<1>(&mut bytes)?;
                Body::Dictionary {
                    entries: Piece::read(&mut bytes, usize::from(last_entry) + 1)?,
                    codes: Piece::read(&mut bytes, rows)?,
                }
            }
            Codec::Runs => {
                let runs = read_count(&mut bytes)?;
                Body::Runs {
                    values: List::read(&mut bytes, runs)?,
                    lengths: Piece::read(&mut bytes, runs)?,
                }
            }
            Codec::Groups => Body::Groups(bytes),
        };
        Ok(Self { codec, rows, body })
    }

    /// Number of values, at least one.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn body(&self) -> &Body<'a> {
        &self.body
    }

    /// How the vector is compressed.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// The value of all rows, when the vector is stored as a constant.
    #[inline]
    pub fn constant(&self) -> Option<u64> {
        match self.body {
            Body::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Whether [`get`](Self::get) answers, in a few nanoseconds.
    #[inline]
    pub fn has_random_access(&self) -> bool {
        matches!(
            self.body,
            Body::Constant(_) | Body::Frame(_) | Body::Dictionary { .. }
        )
    }

    /// The value of one row, where the codec allows to read it without the others.
    #[inline]
    pub fn get(&self, row: usize) -> Option<u64> {
        match &self.body {
            Body::Constant(value) => Some(*value),
            Body::Frame(piece) => piece.get(row),
            Body::Dictionary { entries, codes } => entries.get(codes.get(row)? as usize),
            Body::Delta(_) | Body::Runs { .. } | Body::Groups(_) => None,
        }
    }

    /// Decodes all rows to the start of `out`; further entries are of no meaning.
    pub fn decode(&self, out: &mut VectorBuffer) -> Result<(), DecodeError> {
        match &self.body {
            Body::Constant(value) => out[..self.rows].fill(*value),
            Body::Frame(piece) => piece.decode(out),
            Body::Delta(delta) => delta.decode(out),
            Body::Dictionary { entries, codes } => decode_dictionary(entries, codes, out),
            Body::Runs { values, lengths } => decode_runs(values, lengths, self.rows, out)?,
            Body::Groups(body) => decode_groups(body, self.rows, out)?,
        }
        Ok(())
    }
}

impl<'a> Delta<'a> {
    fn read(bytes: &mut &'a [u8], rows: usize) -> Result<Self, DecodeError> {
        Ok(Self {
            first: read_u64(bytes)?,
            deltas: Piece::read(bytes, rows - 1)?,
        })
    }

    /// Entries up to the next multiple of eight are overwritten.
    fn decode(&self, out: &mut [u64]) {
        self.deltas.decode(out);
        // The sums replace the differences in place, one row further on.
        let mut value = self.first;
        for slot in &mut out[..=self.deltas.count()] {
            let delta = *slot;
            *slot = value;
            value = value.wrapping_add(delta);
        }
    }
}

impl<'a> List<'a> {
    fn read(bytes: &mut &'a [u8], count: usize) -> Result<Self, DecodeError> {
        match take_array::<1>(bytes)? {
            [0] => Ok(Self::Plain(Piece::read(bytes, count)?)),
            [1] => Ok(Self::Delta(Delta::read(bytes, count)?)),
            _ => Err(DecodeError::new("a list is of no known form")),
        }
    }

    fn decode(&self, out: &mut [u64]) {
        match self {
            Self::Plain(piece) => piece.decode(out),
            Self::Delta(delta) => delta.decode(out),
        }
    }
}

fn decode_dictionary(entries: &Piece<'_>, codes: &Piece<'_>, out: &mut VectorBuffer) {
    let mut table = [0; DICTIONARY_ENTRIES_MAX];
    entries.decode(&mut table);
    codes.decode(out);
    for value in &mut out[..codes.count()] {
        // The mask changes no code that was written, and spares the bounds check.
        *value = table[*value as usize % DICTIONARY_ENTRIES_MAX];
    }
}

fn decode_runs(
    values: &List<'_>,
    lengths: &Piece<'_>,
    rows: usize,
    out: &mut VectorBuffer,
) -> Result<(), DecodeError> {
    /// Most vectors with runs have no more than so many, and clearing room for a thousand costs
    /// more than their decoding.
    const FEW_RUNS: usize = 128;
    match lengths.count() <= FEW_RUNS {
        true => decode_up_to::<FEW_RUNS>(values, lengths, rows, out),
        false => decode_up_to::<VECTOR_ROWS>(values, lengths, rows, out),
    }
}

/// Decodes runs of which there are no more than `RUNS_MAX`, a multiple of eight.
fn decode_up_to<const RUNS_MAX: usize>(
    values: &List<'_>,
    lengths: &Piece<'_>,
    rows: usize,
    out: &mut VectorBuffer,
) -> Result<(), DecodeError> {
    /// Rows written at once; most runs are shorter.
    const STRIDE: usize = 8;
    let mut run_values = [0; RUNS_MAX];
    let mut run_lengths = [0; RUNS_MAX];
    values.decode(&mut run_values);
    lengths.decode(&mut run_lengths);
    let mut start = 0usize;
    for (&value, &length) in run_values.iter().zip(&run_lengths[..lengths.count()]) {
        let end = start.saturating_add(length as usize).saturating_add(1);
        if end > rows {
            return Err(DecodeError::new("the runs are longer than the vector"));
        }
        // A fixed number of stores is several times faster than a loop over few rows; what
        // is written too far is overwritten by the next run.
        match out[start..].first_chunk_mut::<STRIDE>() {
            Some(chunk) if end - start <= STRIDE => *chunk = [value; STRIDE],
            _ => out[start..end].fill(value),
        }
        start = end;
    }
    if start < rows {
        return Err(DecodeError::new("the runs are shorter than the vector"));
    }
    Ok(())
}

fn decode_groups(body: &[u8], rows: usize, out: &mut VectorBuffer) -> Result<(), DecodeError> {
    let (counts, mut bytes) = read_groups(body)?;
    if counts.iter().sum::<usize>() != rows {
        return Err(DecodeError::new("the groups are not as long as the vector"));
    }
    let numbers = Piece::read(&mut bytes, rows)?;
    // Each group begins at a multiple of eight, as unpacking writes whole eights.
    let mut grouped = [0; VECTOR_ROWS + GROUPS_MAX * 8];
    let mut positions = [0usize; GROUPS_MAX];
    let mut start = 0;
    let groups = counts.iter().take_while(|&&count| count > 0);
    for (&count, position) in groups.zip(&mut positions) {
        *position = start;
        let end = start + count.next_multiple_of(8);
        Piece::read(&mut bytes, count)?.decode(&mut grouped[start..end]);
        start = end;
    }
    numbers.decode(out);
    // Tried and not faster: counters side by side in one register instead of in memory.
    for value in &mut out[..rows] {
        let position = &mut positions[*value as usize % GROUPS_MAX];
        *value = grouped.get(*position).copied().unwrap_or_default();
        *position += 1;
    }
    Ok(())
}

/// The number of rows in each group, each at least one as far as there are groups, and the bytes
/// behind.
pub(crate) fn read_groups(body: &[u8]) -> Result<([usize; GROUPS_MAX], &[u8]), DecodeError> {
    let mut bytes = body;
    let [last_group] = *take_array::<1>(&mut bytes)?;
    let groups = usize::from(last_group) + 1;
    if groups > GROUPS_MAX {
        return Err(DecodeError::new("there are more groups than can be"));
    }
    let mut counts = [0usize; GROUPS_MAX];
    for count in &mut counts[..groups] {
        *count = read_count(&mut bytes)?;
    }
    Ok((counts, bytes))
}

fn read_count(bytes: &mut &[u8]) -> Result<usize, DecodeError> {
    let count = usize::from(u16::from_le_bytes(*take_array::<2>(bytes)?)) + 1;
    if count > VECTOR_ROWS {
        return Err(DecodeError::new("there are more rows than a vector has"));
    }
    Ok(count)
}

fn read_u64(bytes: &mut &[u8]) -> Result<u64, DecodeError> {
    Ok(u64::from_le_bytes(*take_array::<8>(bytes)?))
}
