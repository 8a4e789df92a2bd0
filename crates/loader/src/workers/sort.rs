//! The coordinator's side of sorting: workers sort disjoint ranges of rows, which need no merge.
//!
//! ```text
//! rows --> a sample of them: where ranges begin
//! rows --> each to its range, in memory or in a file of the stage directory
//! ranges --> members sort them, some at a time --> in the order of the ranges: rows in order, each once
//! ```
//!
//! Whoever writes waits for the next range only, and tells that a further one may begin: so many
//! ranges are on their way at a time that every member has one, and one waits. A range whose member
//! fails is sorted here, by the thread that asked.
//!
//! Memory: all rows if they fit, else the ranges on their way; what is sampled.

use super::members::{LoadWorkers, Member, begin_request, failure_of, wrong_answer};
use super::messages::{Failure, SortEnd, SortRequest, Task};
use super::row_codec::{SortedReader, bytes_up_to, write_rows};
use super::wire::Kind;
use crate::error::LoadError;
use crate::ingest::stage_dir::StageDir;
use crate::merge::row_packing::PackedRow;
use crossbeam_channel::{Receiver, Sender, unbounded};
use orrery_storage::Result as StorageResult;
use orrery_storage::io::FileWriter;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::thread;

/// Rows that are looked at to find where ranges begin.
const SAMPLED_ROWS: u64 = 1 << 16;

/// Ranges at most: each has a file open while rows are divided.
const RANGES_MAX: u64 = 256;

/// Rows of a range in memory are kept in pieces of this part of it, so that growing copies nothing.
const PIECE_PART: usize = 8;

/// Rows of a range are held so many times while it is sorted: as they came, as bytes, as they come
/// back.
const HELD_TIMES: usize = 3;

/// Rows read from a file at once, and handed on at once.
const BLOCK_ROWS: usize = 1 << 12;

/// The rows that are to be sorted, in no order. They are asked for twice.
pub(crate) trait Rows<R> {
    /// How many there are.
    fn len(&self) -> u64;
    /// Hands all of them to `take`.
    fn for_each(&self, take: impl FnMut(R) -> StorageResult<()>) -> Result<(), LoadError>;
}

/// How to sort them.
pub(crate) struct RangeSort<'a> {
    pub(crate) workers: &'a LoadWorkers,
    pub(crate) stage: &'a StageDir,
    /// What the names of files begin with.
    pub(crate) name: &'static str,
    /// Rows to be held in memory at most.
    pub(crate) capacity_rows: usize,
}

impl RangeSort<'_> {
    /// Hands all rows to `take`, ascending and each once, in blocks.
    pub(crate) fn run<R: PackedRow>(
        &self,
        rows: &impl Rows<R>,
        mut take: impl FnMut(&[R]) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let members: Vec<&Member> = self.workers.members.iter().collect();
        // One with each member, and one that waits for it to be done.
        let window = 2 * members.len().max(1);
        let held_rows = self.capacity_rows / (window * HELD_TIMES);
        let range_rows = self.workers.pieces.sort_rows.min(held_rows).max(1);
        let ranges = rows.len().div_ceil(range_rows as u64).clamp(1, RANGES_MAX);
        let begins = begins(rows, ranges)?;
        let ranges = self.divide(rows, begins, range_rows)?;
        let ranges: Vec<Mutex<Option<Range<R>>>> = ranges
            .into_iter()
            .map(|range| Mutex::new(Some(range)))
            .collect();
        thread::scope(|scope| {
            // On an error they end with this closure, and the threads with them.
            let (tickets, to_sort) = unbounded();
            let (sorted, come_back) = unbounded();
            for (number, member) in members.into_iter().enumerate() {
                let (to_sort, sorted, ranges) = (to_sort.clone(), sorted.clone(), &ranges);
                thread::Builder::new()
                    .name(format!("load-range-{number}"))
                    .spawn_scoped(scope, move || {
                        self.let_sort(member, ranges, &to_sort, &sorted);
                    })
                    .map_err(LoadError::Thread)?;
            }
            drop((to_sort, sorted));
            let mut early = BTreeMap::new();
            let mut unsent = 0..ranges.len();
            for number in unsent.by_ref().take(window) {
                let _ = tickets.send(number);
            }
            for number in 0..ranges.len() {
                let rows = loop {
                    if let Some(rows) = early.remove(&number) {
                        break rows;
                    }
                    let (number, rows) = come_back.recv().map_err(|_| LoadError::Interrupted)?;
                    early.insert(number, rows?);
                };
                if let Some(number) = unsent.next() {
                    let _ = tickets.send(number);
                }
                for block in rows.chunks(BLOCK_ROWS) {
                    take(block)?;
                }
            }
            Ok(())
        })
    }

    /// Brings each row to its range.
    fn divide<R: PackedRow>(
        &self,
        rows: &impl Rows<R>,
        begins: Vec<R>,
        range_rows: usize,
    ) -> Result<Vec<Range<R>>, LoadError> {
        let in_memory = rows.len() <= self.capacity_rows as u64;
        let mut ranges = Vec::with_capacity(begins.len() + 1);
        for number in 0..=begins.len() {
            let held = match in_memory {
                true => Held::Memory(Vec::new()),
                false => {
                    let name = format!("{}-{number:06}.rows", self.name);
                    let writer = self.stage.writer(&name)?;
                    Held::File { name, writer }
                }
            };
            ranges.push(Range {
                least: None,
                greatest: None,
                rows: 0,
                held,
            });
        }
        let piece_rows = (range_rows / PIECE_PART).clamp(1, 1 << 16);
        rows.for_each(|row| {
            let range = begins.partition_point(|begin| *begin <= row);
            ranges[range].push(row, piece_rows)
        })?;
        for range in &mut ranges {
            if let Held::File { writer, .. } = &mut range.held {
                writer.flush()?;
            }
        }
        Ok(ranges)
    }

    /// Lets a member sort one range after the other, until no more are to be sorted.
    fn let_sort<R: PackedRow>(
        &self,
        member: &Member,
        ranges: &[Mutex<Option<Range<R>>>],
        to_sort: &Receiver<usize>,
        sorted: &Sender<(usize, Result<Vec<R>, LoadError>)>,
    ) {
        while let Ok(number) = to_sort.recv() {
            let range = ranges[number].lock().take();
            let rows = match range {
                Some(range) => self.sort(member, range),
                None => Err(LoadError::Interrupted),
            };
            // Whoever waited for it has failed.
            if sorted.send((number, rows)).is_err() {
                return;
            }
        }
    }

    fn sort<R: PackedRow>(&self, member: &Member, range: Range<R>) -> Result<Vec<R>, LoadError> {
        let (Some(least), Some(greatest)) = (range.least, range.greatest) else {
            return Ok(Vec::new());
        };
        let mut rows = range.into_rows(self.stage)?;
        if !member.is_given_up() {
            match sort_there(member, &rows, (least, greatest)) {
                Ok(sorted) => return Ok(sorted),
                Err(error) => member.note_failure(&error),
            }
        }
        rows.sort_unstable();
        rows.dedup();
        Ok(rows)
    }
}

/// Lets a member sort rows, none of which is below the first of the two or above the second.
fn sort_there<R: PackedRow>(
    member: &Member,
    rows: &[R],
    (least, greatest): (R, R),
) -> io::Result<Vec<R>> {
    let first = least.to_wide();
    let distance_max = greatest.to_wide() - first;
    let row_bytes = bytes_up_to(distance_max);
    let mut request = begin_request(&Task::Sort(SortRequest {
        rows: rows.len() as u64,
        row_bytes,
    }))?;
    write_rows(rows, first, row_bytes, &mut request)?;
    let mut frames = member.ask(request.into_inner())?;
    let mut sorted = SortedReader::new(first, distance_max, rows.len());
    loop {
        let (kind, bytes) = frames.next()?;
        match kind {
            Kind::Rows => {
                let read = sorted.frame(bytes);
                read.ok_or_else(|| wrong_answer("rows are not in order"))?;
            }
            Kind::End => {
                let end: SortEnd = serde_json::from_slice(bytes)?;
                let sorted = sorted.into_rows();
                // The least and the greatest are known, so a range that lost an end is found; all
                // else the checksums vouch for.
                let ends = (sorted.first(), sorted.last());
                if end.rows != sorted.len() as u64 || ends != (Some(&least), Some(&greatest)) {
                    return Err(wrong_answer("rows are missing"));
                }
                member.note_answered();
                return Ok(sorted);
            }
            Kind::Failed => {
                return Err(match failure_of(bytes)? {
                    Failure::Unable(why) => io::Error::other(why),
                    Failure::Syntax(_) | Failure::TooLong { .. } => {
                        wrong_answer("a sort has no statements")
                    }
                });
            }
            _ => return Err(wrong_answer("a frame is not of a sort")),
        }
    }
}

/// Where all ranges but the first begin, by a sample of the rows.
fn begins<R: PackedRow>(rows: &impl Rows<R>, ranges: u64) -> Result<Vec<R>, LoadError> {
    if ranges == 1 {
        return Ok(Vec::new());
    }
    let step = (rows.len() / SAMPLED_ROWS).max(1);
    let mut sample = Vec::new();
    let mut until_next = 0;
    rows.for_each(|row| {
        if until_next == 0 {
            sample.push(row);
            until_next = step;
        }
        until_next -= 1;
        Ok(())
    })?;
    sample.sort_unstable();
    sample.dedup();
    let count = sample.len() as u64;
    let places = (1..ranges).map(|range| (range * count / ranges) as usize);
    let mut begins: Vec<R> = places
        .filter_map(|place| sample.get(place).copied())
        .collect();
    begins.dedup();
    Ok(begins)
}

/// Rows between two bounds.
struct Range<R> {
    least: Option<R>,
    greatest: Option<R>,
    rows: usize,
    held: Held<R>,
}

enum Held<R> {
    /// In pieces of equal capacity.
    Memory(Vec<Vec<R>>),
    File {
        name: String,
        writer: Box<dyn FileWriter>,
    },
}

impl<R: PackedRow> Range<R> {
    #[inline]
    fn push(&mut self, row: R, piece_rows: usize) -> StorageResult<()> {
        if self.least.is_none_or(|least| row < least) {
            self.least = Some(row);
        }
        if self.greatest.is_none_or(|greatest| row > greatest) {
            self.greatest = Some(row);
        }
        self.rows += 1;
        match &mut self.held {
            Held::Memory(pieces) => match pieces.last_mut() {
                Some(piece) if piece.len() < piece_rows => piece.push(row),
                _ => {
                    let mut piece = Vec::with_capacity(piece_rows);
                    piece.push(row);
                    pieces.push(piece);
                }
            },
            Held::File { writer, .. } => writer.append(row.to_bytes().as_ref())?,
        }
        Ok(())
    }

    /// All rows, from wherever they are; a file goes.
    fn into_rows(self, stage: &StageDir) -> Result<Vec<R>, LoadError> {
        let mut rows = Vec::with_capacity(self.rows);
        match self.held {
            Held::Memory(pieces) => pieces.into_iter().for_each(|piece| rows.extend(piece)),
            Held::File { name, writer } => {
                drop(writer);
                let mut reader = stage.reader(&name, BLOCK_ROWS * size_of::<R>())?;
                for _ in 0..self.rows {
                    let mut bytes = R::Bytes::default();
                    reader.read_exact(bytes.as_mut())?;
                    rows.push(R::from_bytes(bytes));
                }
                drop(reader);
                stage.remove(&name)?;
            }
        }
        Ok(rows)
    }
}
