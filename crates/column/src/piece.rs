//! A piece: numbers packed at one width, with exceptions for the few that need more.
//!
//! ```text
//! width u8 | shift u8 | exceptions u8 | high width u8 | base u64
//! | low bits, packed at `width` | exceptions: rows packed at 10 bits | their high bits, packed at `high width`
//! ```
//!
//! A number is `base + ((low | high << width) << shift)`, wrapping; `high` is zero but for the
//! exceptions. The shift takes out trailing zero bits that all distances have in common (numbers of
//! one datatype, dates without fractions). The number of values is known from the context.

use std::cmp::Ordering;

use crate::bits::{
    bit_length, get, is_storable_width, mask, pack, packed_bytes, storable_width, unpack,
};
use crate::{DecodeError, VECTOR_ROWS};

const HEADER_BYTES: usize = 12;
/// Bits of a row number within a vector.
const ROW_BITS: u32 = VECTOR_ROWS.trailing_zeros();
const EXCEPTIONS_MAX: usize = u8::MAX as usize;
/// Values that are unpacked together where not all are wanted: a multiple of eight, so that they
/// begin at a whole byte.
pub(crate) const STRETCH_ROWS: usize = 64;

/// How many bytes a piece takes, and the parameters that make it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PiecePlan {
    pub(crate) base: u64,
    pub(crate) shift: u32,
    pub(crate) width: u32,
    high_width: u32,
    exceptions: usize,
    pub(crate) bytes: usize,
}

impl PiecePlan {
    /// The best parameters for values at or above `base` whose distances to it share `shift` zero
    /// bits.
    pub(crate) fn new(values: impl ExactSizeIterator<Item = u64>, base: u64, shift: u32) -> Self {
        let count = values.len();
        let shift = shift.min(63);
        let mut lengths = [0u16; 65];
        for value in values {
            lengths[bit_length(value.wrapping_sub(base) >> shift) as usize] += 1;
        }
        let longest = lengths.iter().rposition(|&n| n > 0).unwrap_or(0) as u32;
        let mut best = Self::sized(base, shift, count, storable_width(longest), 0, 0);
        let mut exceptions = 0;
        for width in (0..longest).rev() {
            exceptions += usize::from(lengths[width as usize + 1]);
            if exceptions > EXCEPTIONS_MAX {
                break;
            }
            if !is_storable_width(width) {
                continue;
            }
            let high_width = storable_width(longest - width);
            let candidate = Self::sized(base, shift, count, width, exceptions, high_width);
            if candidate.bytes < best.bytes {
                best = candidate;
            }
        }
        best
    }

    fn sized(
        base: u64,
        shift: u32,
        count: usize,
        width: u32,
        exceptions: usize,
        high_width: u32,
    ) -> Self {
        let bytes = HEADER_BYTES
            + packed_bytes(count, width)
            + packed_bytes(exceptions, ROW_BITS)
            + packed_bytes(exceptions, high_width);
        Self {
            base,
            shift,
            width,
            high_width,
            exceptions,
            bytes,
        }
    }

    /// Writes the same values that the plan was made for.
    pub(crate) fn write(
        &self,
        values: impl ExactSizeIterator<Item = u64> + Clone,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        out.extend_from_slice(&[
            self.width as u8,
            self.shift as u8,
            self.exceptions as u8,
            self.high_width as u8,
        ]);
        out.extend_from_slice(&self.base.to_le_bytes());
        let (base, shift) = (self.base, self.shift);
        let distance = move |value: u64| value.wrapping_sub(base) >> shift;
        pack(values.clone().map(distance), self.width, out);
        if self.exceptions > 0 {
            let low_mask = mask(self.width);
            let exceptions: Vec<(u64, u64)> = values
                .map(distance)
                .enumerate()
                .filter(|&(_, distance)| distance > low_mask)
                // The width is below 58 wherever there are exceptions.
                .map(|(row, distance)| (row as u64, distance >> self.width))
                .collect();
            debug_assert_eq!(exceptions.len(), self.exceptions);
            pack(exceptions.iter().map(|&(row, _)| row), ROW_BITS, out);
            pack(
                exceptions.iter().map(|&(_, high)| high),
                self.high_width,
                out,
            );
        }
        debug_assert_eq!(out.len() - start, self.bytes);
    }
}

/// A piece found in encoded bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    base: u64,
    shift: u32,
    width: u32,
    high_width: u32,
    exceptions: usize,
    count: usize,
    low: &'a [u8],
    exception_rows: &'a [u8],
    exception_highs: &'a [u8],
}

impl<'a> Piece<'a> {
    /// Reads a piece of `count` values from the start of `bytes`, and leaves the rest there.
    pub(crate) fn read(bytes: &mut &'a [u8], count: usize) -> Result<Self, DecodeError> {
        debug_assert!(count <= VECTOR_ROWS);
        let [width, shift, exceptions, high_width] = *take_array::<4>(bytes)?;
        let base = u64::from_le_bytes(*take_array::<8>(bytes)?);
        let (width, shift, high_width) =
            (u32::from(width), u32::from(shift), u32::from(high_width));
        let exceptions = usize::from(exceptions);
        if !is_storable_width(width) || !is_storable_width(high_width) || shift > 63 {
            return Err(DecodeError::new("a width or shift is out of range"));
        }
        if exceptions > 0 && width == 64 {
            return Err(DecodeError::new("exceptions where none can be"));
        }
        Ok(Self {
            base,
            shift,
            width,
            high_width,
            exceptions,
            count,
            low: take(bytes, packed_bytes(count, width))?,
            exception_rows: take(bytes, packed_bytes(exceptions, ROW_BITS))?,
            exception_highs: take(bytes, packed_bytes(exceptions, high_width))?,
        })
    }

    /// Number of values.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Writes the values to the start of `out`; entries up to the next multiple of eight are
    /// overwritten.
    pub(crate) fn decode(&self, out: &mut [u64]) {
        if self.shift == 0 {
            unpack(self.low, self.width, self.base, self.count, out);
        } else {
            unpack(self.low, self.width, 0, self.count, out);
            for value in &mut out[..self.count] {
                *value = self.base.wrapping_add(*value << self.shift);
            }
        }
        for index in 0..self.exceptions {
            let (row, high) = self.exception(index);
            // A row beyond the values is not written by us, but may be read from any bytes.
            if let Some(value) = out.get_mut(row) {
                *value = value.wrapping_add(high);
            }
        }
    }

    /// The value at `row`, without decoding the others; `None` beyond the end.
    pub(crate) fn get(&self, row: usize) -> Option<u64> {
        if row >= self.count {
            return None;
        }
        let low = get(self.low, self.width, row)? << self.shift;
        Some(self.base.wrapping_add(low).wrapping_add(self.high(row)))
    }

    /// The sum (wrapping) of the values before a row; of all if there is no such row.
    pub(crate) fn sum_before(&self, row: usize) -> u64 {
        let mut stretches = self.stretches();
        let (mut sum, mut rest) = (0u64, row);
        while rest > 0
            && let Some(stretch) = stretches.next_stretch()
        {
            let taken = rest.min(stretch.len());
            sum = match taken == stretch.len() {
                true => sum.wrapping_add(stretch.sum()),
                false => (0..taken).fold(sum, |sum, at| sum.wrapping_add(stretch.at(at))),
            };
            rest -= taken;
        }
        sum
    }

    /// The values in order, a stretch at a time.
    pub(crate) fn stretches(&self) -> Stretches<'_> {
        self.stretches_from(0)
    }

    /// The same from a row on.
    pub(crate) fn stretches_from(&self, row: usize) -> Stretches<'_> {
        Stretches {
            piece: self,
            row,
            exception: match row {
                0 => 0,
                _ => self.exceptions_before(row),
            },
            values: [0; STRETCH_ROWS],
        }
    }

    fn exceptions_before(&self, row: usize) -> usize {
        let (mut from, mut to) = (0, self.exceptions);
        while from < to {
            let middle = from.midpoint(to);
            match self.exception(middle).0 < row {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        from
    }

    /// What is to be added at a row. Exceptions ascend by row, so few of up to 255 are looked at.
    fn high(&self, row: usize) -> u64 {
        let (mut from, mut to) = (0, self.exceptions);
        while from < to {
            let middle = usize::midpoint(from, to);
            let (exception_row, high) = self.exception(middle);
            match exception_row.cmp(&row) {
                Ordering::Less => from = middle + 1,
                Ordering::Equal => return high,
                Ordering::Greater => to = middle,
            }
        }
        0
    }

    /// Row of an exception and what is to be added there.
    fn exception(&self, index: usize) -> (usize, u64) {
        let row = get(self.exception_rows, ROW_BITS, index).unwrap_or(0) as usize;
        let high = get(self.exception_highs, self.high_width, index).unwrap_or(0);
        // Width and shift are both below 64; bits shifted out belong to no value that was written.
        (row, (high << self.width) << self.shift)
    }
}

/// The values of a piece, a stretch at a time.
#[derive(Debug)]
pub(crate) struct Stretches<'p> {
    piece: &'p Piece<'p>,
    /// The next row.
    row: usize,
    /// The first exception that is not before the next row.
    exception: usize,
    values: [u64; STRETCH_ROWS],
}

/// Some successive values of a piece.
#[derive(Debug)]
pub(crate) enum Stretch<'s> {
    /// The same value several times.
    Equal {
        /// The value.
        value: u64,
        /// How often it stands there.
        count: usize,
    },
    /// These.
    Values(&'s [u64]),
}

impl Stretches<'_> {
    /// The values from the next row on: where they take no bits, all up to the next exception, or
    /// that alone; else [`STRETCH_ROWS`].
    pub(crate) fn next_stretch(&mut self) -> Option<Stretch<'_>> {
        let piece = self.piece;
        let rest = piece.count.checked_sub(self.row).filter(|&rest| rest > 0)?;
        let start = self.row;
        if piece.width == 0 {
            let (row, high) = match self.exception < piece.exceptions {
                true => piece.exception(self.exception),
                false => (usize::MAX, 0),
            };
            let (value, count) = match row <= start {
                true => {
                    self.exception += 1;
                    (piece.base.wrapping_add(high), 1)
                }
                false => (piece.base, rest.min(row - start)),
            };
            self.row += count;
            return Some(Stretch::Equal { value, count });
        }
        // Values begin at whole bytes by eights.
        let ahead = start % 8;
        let count = rest.min(STRETCH_ROWS - ahead);
        self.row += count;
        let low = piece.low.get(start / 8 * piece.width as usize..);
        let (base, is_shifted) = match piece.shift {
            0 => (piece.base, false),
            _ => (0, true),
        };
        let unpacked = ahead + count;
        unpack(
            low.unwrap_or(&[]),
            piece.width,
            base,
            unpacked,
            &mut self.values,
        );
        let values = &mut self.values[ahead..unpacked];
        if is_shifted {
            for value in &mut *values {
                *value = piece.base.wrapping_add(*value << piece.shift);
            }
        }
        while self.exception < piece.exceptions {
            let (row, high) = piece.exception(self.exception);
            if row >= start + count {
                break;
            }
            if let Some(value) = values.get_mut(row.wrapping_sub(start)) {
                *value = value.wrapping_add(high);
            }
            self.exception += 1;
        }
        Some(Stretch::Values(values))
    }
}

impl Stretch<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Equal { count, .. } => *count,
            Self::Values(values) => values.len(),
        }
    }

    /// The value at a position, which lies within.
    #[inline]
    pub(crate) fn at(&self, position: usize) -> u64 {
        match self {
            Self::Equal { value, .. } => *value,
            Self::Values(values) => values[position],
        }
    }

    /// How many zeros it begins with.
    pub(crate) fn leading_zeros(&self) -> usize {
        match self {
            Self::Equal { value: 0, count } => *count,
            Self::Equal { .. } => 0,
            Self::Values(values) => values.iter().take_while(|value| **value == 0).count(),
        }
    }

    /// The sum of the values, wrapping.
    pub(crate) fn sum(&self) -> u64 {
        match self {
            Self::Equal { value, count } => value.wrapping_mul(*count as u64),
            Self::Values(values) => values.iter().fold(0, |sum, value| sum.wrapping_add(*value)),
        }
    }
}

/// Takes bytes from the front.
pub(crate) fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], DecodeError> {
    bytes
        .split_off(..count)
        .ok_or(DecodeError::new("the bytes end too early"))
}

/// Takes a fixed number of bytes from the front.
pub(crate) fn take_array<'a, const COUNT: usize>(
    bytes: &mut &'a [u8],
) -> Result<&'a [u8; COUNT], DecodeError> {
    let (array, rest) = bytes
        .split_first_chunk::<COUNT>()
        .ok_or(DecodeError::new("the bytes end too early"))?;
    *bytes = rest;
    Ok(array)
}
