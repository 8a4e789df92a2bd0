//! The file of a delta, which a checkpoint writes as a block file.
//!
//! Written from a [`QuadIndex`], whose deltas it holds as one, relative to the permutation's file.
//! Opened, it costs memory for its root only; chunks are read when they are needed, and some of
//! them are kept. All positions are known.
//!
//! The block file's content, little endian:
//!
//! ```text
//! chunk block     entries u16 | insertion or tombstone, a bit each, in bytes | column 0 | ... | column 3 | positions
//!   a column      width u8 | smallest value u64 | per entry the difference to it, of 0, 4 or 8 bytes
//! root block      per chunk: first row 4 x u64 | its position u64 | entries u32 | insertions minus tombstones i32
//!                 2,048 chunks to a block, behind the chunk blocks
//! metadata        entries u64 | rows of the permutation's file u64 | chunks u32 | permutation u8
//! ```

use crate::quads::delta::file_chunks::CHUNKS_HELD_MAX;
use crate::quads::delta::file_chunks::DeltaFile;
use std::path::Path;
use std::sync::Arc;

use orrery_term::TermId;
use parking_lot::Mutex;

use super::chunk::CHUNK_ENTRIES_MAX;
use super::chunk::PlacedEntry;
use super::{DeltaIndex, Root};
use crate::files::block_file::{BlockFile, BlockFileWriter, BlockNumber, FileKind, FileSummary};
use crate::files::io::FileSystem;
use crate::quads::index::{COLUMNS, Permutation, QuadIndex};
use crate::{Error, Result};

/// The kind of block file that a delta is in.
pub(crate) const DELTA_KIND: FileKind = FileKind(*b"DELT");
const ROOT_ENTRY_BYTES: usize = 48;
const CHUNKS_PER_ROOT_BLOCK: usize = 2048;
const METADATA_BYTES: usize = 21;
/// Writes all that changed over the file of `index` into one file, with the positions; syncs it.
pub(crate) fn write_delta(
    file_system: &dyn FileSystem,
    path: &Path,
    index: &Arc<QuadIndex>,
) -> Result<FileSummary> {
    let base = index.base();
    let mut cursor = base.cursor();
    let mut writer = Writer {
        file: BlockFileWriter::create(file_system, path, DELTA_KIND)?,
        entries: Vec::with_capacity(CHUNK_ENTRIES_MAX),
        root: Vec::new(),
        count: 0,
    };
    for entry in index.changes()? {
        let entry = entry?;
        let position = cursor.seek(&entry.row.map(TermId::from_bits))?.start;
        writer.push(PlacedEntry { entry, position })?;
    }
    writer.finish(&base)
}

impl DeltaIndex {
    /// Opens what [`write_delta`] wrote.
    pub(crate) fn open(file_system: &dyn FileSystem, path: &Path) -> Result<Self> {
        let file = BlockFile::open(file_system, path, DELTA_KIND)?;
        let corrupt = |what: &str| Error::corrupt(path, file.metadata_offset(), what);
        let metadata: &[u8; METADATA_BYTES] = file
            .metadata()
            .try_into()
            .map_err(|_| corrupt("the metadata of the delta are of the wrong length"))?;
        let mut fields = Fields(metadata);
        let (entries, base_rows, chunks) = (fields.u64(), fields.u64(), fields.u32());
        let permutation = Permutation::from_tag(metadata[METADATA_BYTES - 1])
            .ok_or_else(|| corrupt("the permutation is unknown"))?;
        let blocks = u64::from(chunks) + u64::from(chunks).div_ceil(CHUNKS_PER_ROOT_BLOCK as u64);
        if blocks != u64::from(file.block_count()) {
            return Err(corrupt(
                "the number of chunks and the number of blocks disagree",
            ));
        }
        let mut root = Root::with_capacity(chunks as usize);
        for number in chunks..file.block_count() {
            for bytes in file.block(BlockNumber(number))?.chunks(ROOT_ENTRY_BYTES) {
                if bytes.len() < ROOT_ENTRY_BYTES {
                    return Err(corrupt("an entry of the root is cut off"));
                }
                let mut fields = Fields(bytes);
                let first = std::array::from_fn(|_| fields.u64());
                root.push_stored(first, fields.u64(), fields.u32(), fields.u32() as i32);
            }
        }
        if root.chunks.len() != chunks as usize || root.starts.last() != Some(&entries) {
            return Err(corrupt("the root and the number of entries disagree"));
        }
        root.chunks.close();
        root.file = Some(Arc::new(DeltaFile {
            file,
            base_rows,
            held: (0..CHUNKS_HELD_MAX).map(|_| Mutex::default()).collect(),
        }));
        Ok(Self {
            permutation,
            root: Arc::new(root),
        })
    }

    /// Length and checksum of the file that the delta was opened from.
    pub fn file_summary(&self) -> Option<FileSummary> {
        self.root.file.as_ref().map(|file| file.file.summary())
    }

    /// Rows of the permutation's file that a delta opened from a file was written for.
    pub fn base_rows(&self) -> Option<u64> {
        self.root.file.as_ref().map(|file| file.base_rows)
    }

    /// Checks the file that the delta was opened from: checksums, that all chunks can be read,
    /// their order, and that they are what the root says. That the entries fit the permutation is
    /// checked by `QuadIndex::verify`.
    pub fn verify(&self) -> Vec<Error> {
        let Some(file) = &self.root.file else {
            return Vec::new();
        };
        let damage = file.file.verify_all();
        if !damage.is_empty() {
            return damage;
        }
        let checked =
            (0..self.chunk_count()).try_for_each(|number| self.verify_chunk(number, file));
        checked.err().into_iter().collect()
    }

    fn verify_chunk(&self, number: usize, file: &DeltaFile) -> Result<()> {
        let chunk = self.chunk(number)?;
        let is_sound = chunk.rows().is_sorted_by(|a, b| a < b)
            && chunk.rows()[0] == self.root.firsts[number]
            && chunk.placed(0).position == self.first_position(number)
            && chunk.net() == self.root.nets[number + 1] - self.root.nets[number]
            && chunk.len() as u64 == self.root.starts[number + 1] - self.root.starts[number]
            && chunk.rows().last()
                < self
                    .root
                    .firsts
                    .get(number + 1)
                    .or(Some(&[u64::MAX; COLUMNS]));
        match is_sound {
            true => Ok(()),
            false => Err(file.damage(number as u32, "a chunk is not what the root says")),
        }
    }
}

struct Writer {
    file: BlockFileWriter,
    /// The chunk being filled.
    entries: Vec<PlacedEntry>,
    root: Vec<u8>,
    count: u64,
}

impl Writer {
    fn push(&mut self, placed: PlacedEntry) -> Result<()> {
        self.entries.push(placed);
        self.count += 1;
        match self.entries.len() == CHUNK_ENTRIES_MAX {
            true => self.finish_chunk(),
            false => Ok(()),
        }
    }

    fn finish_chunk(&mut self) -> Result<()> {
        let Some(first) = self.entries.first() else {
            return Ok(());
        };
        for value in first.entry.row.into_iter().chain([first.position]) {
            self.root.extend_from_slice(&value.to_le_bytes());
        }
        let insertions = self
            .entries
            .iter()
            .filter(|placed| placed.entry.is_insertion);
        let net = 2 * insertions.count() as i32 - self.entries.len() as i32;
        self.root
            .extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        self.root.extend_from_slice(&net.to_le_bytes());
        self.file.append(&encode(&self.entries))?;
        self.entries.clear();
        Ok(())
    }

    fn finish(mut self, base: &QuadIndex) -> Result<FileSummary> {
        self.finish_chunk()?;
        let chunks = self.file.block_count();
        for block in self.root.chunks(CHUNKS_PER_ROOT_BLOCK * ROOT_ENTRY_BYTES) {
            self.file.append(block)?;
        }
        let mut metadata = Vec::with_capacity(METADATA_BYTES);
        metadata.extend_from_slice(&self.count.to_le_bytes());
        metadata.extend_from_slice(&base.rows().to_le_bytes());
        metadata.extend_from_slice(&chunks.to_le_bytes());
        metadata.push(base.permutation() as u8);
        self.file.finish(&metadata)
    }
}

fn encode(entries: &[PlacedEntry]) -> Vec<u8> {
    let mut bytes = (entries.len() as u16).to_le_bytes().to_vec();
    for eight in entries.chunks(8) {
        let bits = eight.iter().rev();
        bytes.push(bits.fold(0, |bits, placed| {
            bits << 1 | u8::from(placed.entry.is_insertion)
        }));
    }
    for column in 0..COLUMNS {
        encode_column(
            entries.iter().map(|placed| placed.entry.row[column]),
            &mut bytes,
        );
    }
    encode_column(entries.iter().map(|placed| placed.position), &mut bytes);
    bytes
}

fn encode_column(values: impl Iterator<Item = u64> + Clone, bytes: &mut Vec<u8>) {
    let smallest = values.clone().min().unwrap_or(0);
    let widest = values.clone().max().unwrap_or(0) - smallest;
    let width = match widest {
        0 => 0,
        1..=0xFFFF_FFFF => 4,
        _ => 8,
    };
    bytes.push(width as u8);
    bytes.extend_from_slice(&smallest.to_le_bytes());
    for value in values {
        bytes.extend_from_slice(&(value - smallest).to_le_bytes()[..width]);
    }
}

/// Little-endian numbers one after the other; the caller has checked the length.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.0[..N]);
        self.0 = &self.0[N..];
        bytes
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }
}
