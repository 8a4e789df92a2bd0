//! The encoding of a range's rows as frames.
//!
//! A row is a number (`row_packing`). On the way to whoever sorts, each stands as its distance from
//! the beginning of its range, in as few bytes as the range needs; on the way back, in order, as
//! varints of the distances from one to the next.

use super::wire::{FRAME_BYTES, FrameWriter, Kind, Packing, push_varint, take_varint};
use crate::merge::row_packing::PackedRow;
use std::io::{self, Write};

/// Bytes of numbers up to this one.
pub(super) fn bytes_up_to(number: u128) -> usize {
    ((u128::BITS - number.leading_zeros()).div_ceil(8) as usize).max(1)
}

/// Writes rows that are not in order, each as its distance from `first`, which is less than
/// `2^(8 * row_bytes)`.
pub(super) fn write_rows<R: PackedRow, W: Write>(
    rows: &[R],
    first: u128,
    row_bytes: usize,
    out: &mut FrameWriter<W>,
) -> io::Result<()> {
    let mut frame = Vec::with_capacity(FRAME_BYTES);
    for rows in rows.chunks(FRAME_BYTES / size_of::<u128>()) {
        frame.clear();
        for row in rows {
            let bytes = (row.to_wide() - first).to_le_bytes();
            frame.extend_from_slice(&bytes[..row_bytes]);
        }
        // They are as random as terms are many: packing them wins a tenth at most.
        out.frame(Kind::Rows, &frame, Packing::Plain)?;
    }
    Ok(())
}

/// Takes the rows of a frame.
pub(super) fn read_rows<R: PackedRow>(
    bytes: &[u8],
    row_bytes: usize,
    rows: &mut Vec<R>,
) -> Option<()> {
    let mut chunks = bytes.chunks_exact(row_bytes);
    for chunk in &mut chunks {
        let mut wide = [0; size_of::<u128>()];
        wide[..row_bytes].copy_from_slice(chunk);
        rows.push(R::from_wide(u128::from_le_bytes(wide)));
    }
    chunks.remainder().is_empty().then_some(())
}

/// Writes rows that ascend.
pub(super) fn write_sorted<R: PackedRow, W: Write>(
    rows: &[R],
    out: &mut FrameWriter<W>,
) -> io::Result<()> {
    let mut frame = Vec::with_capacity(FRAME_BYTES + size_of::<u128>());
    let mut last = 0;
    for row in rows {
        let row = row.to_wide();
        push_varint(row - last, &mut frame);
        last = row;
        if frame.len() >= FRAME_BYTES {
            out.frame(Kind::Rows, &frame, Packing::Zstd)?;
            frame.clear();
        }
    }
    if !frame.is_empty() {
        out.frame(Kind::Rows, &frame, Packing::Zstd)?;
    }
    Ok(())
}

/// Reads rows that ascend, and checks that they do.
#[derive(Debug)]
pub(super) struct SortedReader<R> {
    rows: Vec<R>,
    first: u128,
    /// The greatest distance from `first` that a row can have.
    distance_max: u128,
    rows_max: usize,
    last: Option<u128>,
}

impl<R: PackedRow> SortedReader<R> {
    /// At most `rows_max` rows, from `first` on up to `distance_max` behind it.
    pub(super) fn new(first: u128, distance_max: u128, rows_max: usize) -> Self {
        Self {
            rows: Vec::with_capacity(rows_max),
            first,
            distance_max,
            rows_max,
            last: None,
        }
    }

    /// Takes a frame; `None` if its rows cannot be.
    pub(super) fn frame(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            let step = take_varint(&mut bytes)?;
            let distance = match self.last {
                None => step,
                Some(last) => last.checked_add(step).filter(|_| step > 0)?,
            };
            if distance > self.distance_max || self.rows.len() == self.rows_max {
                return None;
            }
            self.rows.push(R::from_wide(self.first + distance));
            self.last = Some(distance);
        }
        Some(())
    }

    pub(super) fn into_rows(self) -> Vec<R> {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::FrameReader;
    use super::*;
    use proptest::prelude::*;

    fn frames(stream: &[u8]) -> Vec<Vec<u8>> {
        let mut reader = FrameReader::new(stream).unwrap();
        std::iter::from_fn(|| reader.next().ok().map(|(_, bytes)| bytes.to_vec())).collect()
    }

    proptest! {
        #[test]
        fn rows_travel_there_in_few_bytes_and_come_back_in_order(
            mut rows in proptest::collection::vec(1_000_000_000_u64..1_000_070_000, 1..500)
        ) {
            let first = u128::from(*rows.iter().min().unwrap());
            let distance_max = u128::from(*rows.iter().max().unwrap()) - first;
            let row_bytes = bytes_up_to(distance_max);
            prop_assert!(row_bytes <= 3);
            let mut out = FrameWriter::new(Vec::new()).unwrap();
            write_rows(&rows, first, row_bytes, &mut out).unwrap();
            let mut there: Vec<u64> = Vec::new();
            for frame in frames(&out.into_inner()) {
                read_rows(&frame, row_bytes, &mut there).unwrap();
            }
            there.sort_unstable();
            there.dedup();
            let mut out = FrameWriter::new(Vec::new()).unwrap();
            write_sorted(&there, &mut out).unwrap();
            let mut back = SortedReader::<u64>::new(first, distance_max, rows.len());
            for frame in frames(&out.into_inner()) {
                back.frame(&frame).unwrap();
            }
            rows.sort_unstable();
            rows.dedup();
            prop_assert_eq!(back.into_rows(), rows);
        }
    }

    #[test]
    fn rows_that_do_not_ascend_or_are_beyond_their_range_are_refused() {
        let reader = || SortedReader::<u64>::new(100, 50, 3);
        assert!(reader().frame(&[0, 50]).is_some());
        assert!(reader().frame(&[0, 51]).is_none());
        assert!(reader().frame(&[7, 0]).is_none());
        assert!(reader().frame(&[0, 1, 1, 1]).is_none());
        assert!(reader().frame(&[0x80]).is_none());
    }
}
