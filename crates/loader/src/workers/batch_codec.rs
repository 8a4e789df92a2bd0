//! The encoding of sorted batches as frames.
//!
//! ```text
//! Batch      number of terms (u32), number of quads (u64), little-endian
//! Terms      per term, in order: bytes shared with the one before in this frame, doubled; length of the rest; the rest
//!            of a large literal only the number 1, and the frame ends
//! Large      a piece of that literal's key; LargeEnd after the last
//! Quads      number of quads, then all subjects, all predicates, all objects, all graphs: places among the terms,
//!            each as the difference to the one before, sign in the lowest bit
//! BatchEnd   nothing
//! ```
//!
//! All numbers within frames are varints ([`push_varint`]). It is the format of the stage directory
//! (`batch`) but for what neighbours share: keys in order begin alike, and quads that stand side by
//! side have subjects and graphs in common.
//!
//! The labels of large literals hold within one process only (`large_literals`), so their bytes
//! travel. Whoever takes a batch gives them labels of its own, whose order is the same, so keys
//! stay in order and the numbers of terms stay theirs.
//!
//! What is read is checked: keys ascend and have their forms, numbers lie below that of the terms,
//! and counts fit.

use super::wire::{FRAME_BYTES, FrameWriter, Kind, Packing, push_varint, take_varint};
use crate::ingest::arena::{Arena, KeyRef};
use crate::ingest::batch::{MemoryBatch, SortedTerms};
use crate::ingest::interner::LocalQuad;
use crate::ingest::large_literals::{LargeLiterals, TextWriter, read_up_to};
use crate::ingest::sort_keys::{
    BLANK_NODE_KEY, DEFAULT_GRAPH_KEY, INLINE_KEY, NUMBERED_BLANK_NODE_KEY,
};
use std::io::{self, Write};

/// Quads of a frame: some 300 KiB before they are packed.
const FRAME_QUADS: usize = 1 << 16;

/// The number in place of a large literal's key.
const LARGE: u128 = 1;

/// Bytes of a [`Kind::Batch`].
const HEAD_BYTES: usize = 12;

/// The shortest sort key of a blank node: its first byte and the number of its file.
const BLANK_NODE_BYTES_MIN: usize = 5;

/// Bytes of the sort key of a term that lives in its id.
const INLINE_BYTES: usize = 9;

/// Why a batch could not be written.
#[derive(Debug)]
pub(super) enum WriteError {
    /// The other side does not take it.
    Wire(io::Error),
    /// A large literal could not be read.
    Stage(orrery_storage::Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Wire(error)
    }
}

impl From<orrery_storage::Error> for WriteError {
    fn from(error: orrery_storage::Error) -> Self {
        Self::Stage(error)
    }
}

/// Writes a batch.
pub(super) fn write_batch<W: Write>(
    batch: &MemoryBatch,
    large: &LargeLiterals,
    out: &mut FrameWriter<W>,
) -> Result<(), WriteError> {
    let terms = &batch.terms;
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&(terms.len() as u32).to_le_bytes());
    head[4..].copy_from_slice(&batch.quad_count.to_le_bytes());
    out.frame(Kind::Batch, &head, Packing::Plain)?;
    write_terms(terms, large, out)?;
    let ranks = terms.ranks();
    let mut frame = Vec::new();
    for quads in batch
        .quads
        .iter()
        .flat_map(|chunk| chunk.chunks(FRAME_QUADS))
    {
        frame.clear();
        push_varint(quads.len() as u128, &mut frame);
        for column in 0..4 {
            let mut last = 0;
            for quad in quads {
                let number = i64::from(ranks[quad[column] as usize]);
                let difference = number - last;
                // The sign goes to the lowest bit.
                push_varint(
                    ((difference << 1) ^ (difference >> 63)) as u64 as u128,
                    &mut frame,
                );
                last = number;
            }
        }
        out.frame(Kind::Quads, &frame, Packing::Zstd)?;
    }
    out.frame(Kind::BatchEnd, &[], Packing::Plain)?;
    Ok(())
}

fn write_terms<W: Write>(
    terms: &SortedTerms,
    large: &LargeLiterals,
    out: &mut FrameWriter<W>,
) -> Result<(), WriteError> {
    let mut frame = Vec::new();
    let mut last: &[u8] = &[];
    for rank in 0..terms.len() {
        let key = terms.key(terms.local_at(rank));
        if large.is_large(key) {
            push_varint(LARGE, &mut frame);
            out.frame(Kind::Terms, &frame, Packing::Zstd)?;
            frame.clear();
            last = &[];
            write_large(key, large, out)?;
            continue;
        }
        let shared = last.iter().zip(key).take_while(|(a, b)| a == b).count();
        push_varint((shared as u128) << 1, &mut frame);
        push_varint((key.len() - shared) as u128, &mut frame);
        frame.extend_from_slice(&key[shared..]);
        last = key;
        if frame.len() >= FRAME_BYTES {
            out.frame(Kind::Terms, &frame, Packing::Zstd)?;
            frame.clear();
            last = &[];
        }
    }
    if !frame.is_empty() {
        out.frame(Kind::Terms, &frame, Packing::Zstd)?;
    }
    Ok(())
}

fn write_large<W: Write>(
    order_key: &[u8],
    large: &LargeLiterals,
    out: &mut FrameWriter<W>,
) -> Result<(), WriteError> {
    let missing = || io::Error::other("a long literal is not in the stage directory");
    let source = large.source(order_key).ok_or_else(missing)?;
    let mut input = source.open()?;
    let mut piece = vec![0; FRAME_BYTES];
    loop {
        let length = read_up_to(&mut input, &mut piece)?;
        if length > 0 {
            out.frame(Kind::Large, &piece[..length], Packing::Zstd)?;
        }
        if length < piece.len() {
            break;
        }
    }
    out.frame(Kind::LargeEnd, &[], Packing::Plain)?;
    Ok(())
}

/// Why a batch was not taken.
#[derive(Debug)]
pub(super) enum ReadError {
    /// It is none.
    Damaged(&'static str),
    /// A large literal could not be staged here.
    Stage(orrery_storage::Error),
}

impl From<orrery_storage::Error> for ReadError {
    fn from(error: orrery_storage::Error) -> Self {
        Self::Stage(error)
    }
}

/// A batch that is being read.
pub(super) struct BatchReader<'a> {
    large: &'a LargeLiterals,
    term_count: usize,
    quad_count: u64,
    arena: Arena,
    keys: Vec<KeyRef>,
    quads: Vec<Vec<LocalQuad>>,
    quads_read: u64,
    key: Vec<u8>,
    text: Option<TextWriter>,
}

impl<'a> BatchReader<'a> {
    /// Begins with the bytes of a [`Kind::Batch`].
    pub(super) fn new(head: &[u8], large: &'a LargeLiterals) -> Result<Self, ReadError> {
        let (Some(terms), Some(quads)) = (head.first_chunk::<4>(), head.last_chunk::<8>()) else {
            return Err(ReadError::Damaged("the head of a batch is too short"));
        };
        if head.len() != HEAD_BYTES {
            return Err(ReadError::Damaged("the head of a batch has another length"));
        }
        Ok(Self {
            large,
            term_count: u32::from_le_bytes(*terms) as usize,
            quad_count: u64::from_le_bytes(*quads),
            arena: Arena::default(),
            keys: Vec::new(),
            quads: Vec::new(),
            quads_read: 0,
            key: Vec::new(),
            text: None,
        })
    }

    /// Takes the next frame; gives the batch with the last.
    pub(super) fn frame(
        &mut self,
        kind: Kind,
        bytes: &[u8],
    ) -> Result<Option<MemoryBatch>, ReadError> {
        match (kind, &mut self.text) {
            (Kind::Large, Some(text)) => text.append(bytes)?,
            (Kind::LargeEnd, text @ Some(_)) => {
                if let Some(text) = text.take() {
                    self.large_key(text)?;
                }
            }
            (Kind::Terms, None) => self.terms(bytes)?,
            (Kind::Quads, None) => {
                let read = self.quads(bytes);
                read.ok_or(ReadError::Damaged("a quad has a number that no term has"))?;
            }
            (Kind::BatchEnd, None) => return self.end().map(Some),
            _ => return Err(ReadError::Damaged("a batch has a frame out of its order")),
        }
        Ok(None)
    }

    /// Bytes that it holds so far.
    pub(super) fn memory_bytes(&self) -> usize {
        let quads = self.quads.iter().map(Vec::capacity).sum::<usize>();
        self.arena.allocated_bytes()
            + self.keys.capacity() * size_of::<KeyRef>()
            + quads * size_of::<LocalQuad>()
    }

    fn terms(&mut self, mut bytes: &[u8]) -> Result<(), ReadError> {
        let damaged = || ReadError::Damaged("a key of a batch cannot be read");
        self.key.clear();
        while !bytes.is_empty() {
            let shared = take_varint(&mut bytes).ok_or_else(damaged)?;
            if shared == LARGE && bytes.is_empty() {
                self.text = Some(self.large.text_writer()?);
                return Ok(());
            }
            let length = take_varint(&mut bytes).ok_or_else(damaged)?;
            let shared = usize::try_from(shared >> 1).map_err(|_| damaged())?;
            let length = usize::try_from(length).map_err(|_| damaged())?;
            let rest = bytes.split_at_checked(length);
            let (rest, after) = rest
                .filter(|_| shared <= self.key.len())
                .ok_or_else(damaged)?;
            bytes = after;
            self.key.truncate(shared);
            self.key.extend_from_slice(rest);
            if !is_key(&self.key) || self.large.is_large(&self.key) {
                return Err(ReadError::Damaged("a key of a batch is none"));
            }
            self.push_key()?;
        }
        Ok(())
    }

    fn large_key(&mut self, text: TextWriter) -> Result<(), ReadError> {
        let text = text.finish()?;
        if text.bytes() <= self.large.key_bytes_max() as u64 {
            return Err(ReadError::Damaged(
                "a large literal of a batch is not large",
            ));
        }
        let mut key = std::mem::take(&mut self.key);
        self.large.take_text(Vec::new(), text, &mut key)?;
        self.key = key;
        if !self.large.is_large(&self.key) {
            return Err(ReadError::Damaged("a large literal of a batch is none"));
        }
        self.push_key()
    }

    fn push_key(&mut self) -> Result<(), ReadError> {
        let last = self.keys.last().map(|&last| self.arena.get(last));
        if last.is_some_and(|last| last >= self.key.as_slice()) {
            return Err(ReadError::Damaged("the keys of a batch do not ascend"));
        }
        if self.keys.len() == self.term_count {
            return Err(ReadError::Damaged("a batch has more terms than it says"));
        }
        self.keys.push(self.arena.push(&self.key));
        Ok(())
    }

    /// Takes quads; `None` if they are damaged.
    fn quads(&mut self, mut bytes: &[u8]) -> Option<()> {
        let count = usize::try_from(take_varint(&mut bytes)?).ok()?;
        if count > FRAME_QUADS || self.keys.len() != self.term_count {
            return None;
        }
        let mut quads: Vec<LocalQuad> = vec![[0; 4]; count];
        for column in 0..4 {
            let mut last = 0_i64;
            for quad in &mut quads {
                let zigzag = u64::try_from(take_varint(&mut bytes)?).ok()?;
                let difference = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
                last = last.checked_add(difference)?;
                let number = u32::try_from(last).ok()?;
                if number as usize >= self.term_count {
                    return None;
                }
                quad[column] = number;
            }
        }
        self.quads_read += count as u64;
        self.quads.push(quads);
        bytes.is_empty().then_some(())
    }

    fn end(&mut self) -> Result<MemoryBatch, ReadError> {
        if self.keys.len() != self.term_count || self.quads_read != self.quad_count {
            return Err(ReadError::Damaged("a batch has less than it says"));
        }
        Ok(MemoryBatch {
            terms: SortedTerms::in_order(
                std::mem::take(&mut self.arena),
                std::mem::take(&mut self.keys),
            ),
            quads: std::mem::take(&mut self.quads),
            quad_count: self.quad_count,
        })
    }
}

/// Whether these bytes have the form of a sort key, as far as others lean on it.
fn is_key(key: &[u8]) -> bool {
    match key.first() {
        Some(&DEFAULT_GRAPH_KEY) => key.len() == 1,
        Some(&INLINE_KEY) => key.len() == INLINE_BYTES,
        Some(&BLANK_NODE_KEY) => key.len() >= BLANK_NODE_BYTES_MIN,
        Some(&NUMBERED_BLANK_NODE_KEY) | None => false,
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::FrameReader;
    use super::*;
    use crate::ingest::batch::seal;
    use crate::ingest::interner::Interner;
    use crate::parse::ntriples::TermSink;
    use orrery_storage::io::LocalFileSystem;
    use proptest::prelude::*;
    use std::sync::Arc;

    const LARGE_BYTES: usize = 4096;

    fn large(directory: &std::path::Path) -> Arc<LargeLiterals> {
        let files = Arc::new(LocalFileSystem);
        Arc::new(LargeLiterals::new(files, directory, LARGE_BYTES))
    }

    fn read(stream: &[u8], large: &LargeLiterals) -> Result<MemoryBatch, String> {
        let mut frames = FrameReader::new(stream).map_err(|error| error.to_string())?;
        let mut batch = None;
        loop {
            let (kind, bytes) = frames.next().map_err(|error| error.to_string())?;
            let Some(reader) = &mut batch else {
                assert_eq!(kind, Kind::Batch);
                batch = Some(BatchReader::new(bytes, large).map_err(|error| format!("{error:?}"))?);
                continue;
            };
            let read = reader.frame(kind, bytes);
            if let Some(batch) = read.map_err(|error| format!("{error:?}"))? {
                return Ok(batch);
            }
        }
    }

    /// The keys, large ones by their bytes, and the quads in keys.
    fn contents(batch: &MemoryBatch, large: &LargeLiterals) -> (Vec<Vec<u8>>, Vec<[Vec<u8>; 4]>) {
        let bytes = |local: u32| {
            let key = batch.terms.key(local);
            let Some(source) = large.source(key).filter(|_| large.is_large(key)) else {
                return key.to_vec();
            };
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut source.open().unwrap(), &mut bytes).unwrap();
            bytes
        };
        let keys = (0..batch.terms.len()).map(|rank| bytes(batch.terms.local_at(rank)));
        let quads = batch.quads.iter().flatten().map(|quad| quad.map(bytes));
        (keys.collect(), quads.collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn batches_come_back_whole_under_other_labels_of_their_large_literals(
            statements in proptest::collection::vec((0..40_u32, 0..5_u32, 0..60_u32), 0..300)
        ) {
            let [there, here] = [(); 2].map(|()| tempfile::tempdir().unwrap());
            let (large_there, large_here) = (large(there.path()), large(here.path()));
            // What is known here already has labels that differ from those there.
            let mut known = Interner::with_large_literals(None, &large_here);
            known.string(&"y".repeat(LARGE_BYTES + 3));
            known.string(&format!("{}b", "x".repeat(LARGE_BYTES + 9)));
            let mut interner = Interner::with_large_literals(None, &large_there);
            for (s, p, o) in statements {
                interner.set_file_number(s % 3);
                let subject = interner.blank_node(&format!("node{s}"));
                let predicate = interner.checked_iri(&format!("http://example.org/p{p}"));
                let object = match o % 4 {
                    0 => interner.string(&format!("{}{}", "x".repeat(LARGE_BYTES + 9), o % 8)),
                    1 => interner.string(&format!("s{o}")),
                    2 => interner.string(&format!("a longer string {o}")),
                    _ => subject,
                };
                interner.quad(subject, predicate, object, None);
            }
            let batch = seal(interner.take());
            let mut out = FrameWriter::new(Vec::new()).unwrap();
            write_batch(&batch, &large_there, &mut out).unwrap();
            let stream = out.into_inner();
            let back = read(&stream, &large_here).unwrap();
            prop_assert_eq!(contents(&back, &large_here), contents(&batch, &large_there));
            prop_assert_eq!(back.quad_count, batch.quad_count);
            let keys: Vec<_> = (0..back.terms.len()).map(|n| back.terms.key(n as u32)).collect();
            prop_assert!(keys.is_sorted_by(|a, b| a < b));
            prop_assert!(read(&stream[..stream.len() - 1], &large_here).is_err());
        }
    }

    #[test]
    fn what_is_no_batch_is_refused_though_its_checksums_fit() {
        let directory = tempfile::tempdir().unwrap();
        let large = large(directory.path());
        let refused = |frames: &[(Kind, &[u8])]| {
            let mut out = FrameWriter::new(Vec::new()).unwrap();
            for &(kind, bytes) in frames {
                out.frame(kind, bytes, Packing::Plain).unwrap();
            }
            read(&out.into_inner(), &large).unwrap_err()
        };
        let head =
            |terms: u32, quads: u64| [&terms.to_le_bytes()[..], &quads.to_le_bytes()].concat();
        let (batch, terms, quads) = (Kind::Batch, Kind::Terms, Kind::Quads);
        let (one, two) = (head(1, 1), head(2, 0));
        assert!(refused(&[(batch, &one[..5])]).contains("short"));
        assert!(
            refused(&[
                (batch, &one),
                (terms, b"\0\x01@"),
                (quads, b"\x01\0\0\x02\0")
            ])
            .contains("number")
        );
        assert!(refused(&[(batch, &two), (terms, b"\0\x02Ib\0\x02Ia")]).contains("ascend"));
        assert!(refused(&[(batch, &one), (terms, b"\0\x02~1")]).contains("none"));
        assert!(refused(&[(batch, &one), (terms, b"\0\x05Ia")]).contains("read"));
        assert!(refused(&[(batch, &one), (terms, b"\0\x02Ia\0\x02Ib")]).contains("more"));
        assert!(refused(&[(batch, &one), (Kind::BatchEnd, b"")]).contains("less"));
        assert!(refused(&[(batch, &one), (Kind::LargeEnd, b"")]).contains("order"));
    }
}
