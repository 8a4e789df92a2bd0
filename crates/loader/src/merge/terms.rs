//! The merge of all batches' sorted terms with the base's dictionary.
//!
//! Every run is sorted by key, so one pass sees each distinct term once, in the order of the new
//! dictionary. The pass gives out ordinals, tells every run which ordinals its terms got, and hands
//! the keys of the dictionary on. Because numbers within a run and ordinals have the same order,
//! spilled maps are written from start to end, and the rows of the database stay sorted under the
//! new numbers.
//!
//! Cost: each key is read once to be compared (`loser_tree`); memory: a buffer per spilled run.

use crate::error::LoadError;
use crate::ingest::batch::{SortedTerms, SpilledBatch};
use crate::ingest::stage_dir::{StageDir, StageReader};
use crate::merge::loser_tree::{LoserTree, RunKeys};
use crate::merge::ordinals::{DictionaryKey, Numbering, Ordinal, OrdinalSpace};
use orrery_storage::Result as StorageResult;
use orrery_storage::io::FileWriter;

/// Keys are handed on in blocks of about this many bytes.
const BLOCK_BYTES: usize = 256 << 10;

/// Terms between two reports of progress.
const PROGRESS_TERMS: u64 = 1 << 16;

/// Keys for the dictionary, in order.
pub(crate) enum KeyBlock {
    /// Copied: their bytes, and where each ends.
    Bytes { bytes: Vec<u8>, ends: Vec<u32> },
    /// Of batches in memory: which run, and the local number.
    References(Vec<(u32, u32)>),
}

/// The keys of an existing dictionary, in order.
pub(crate) trait KeyStream {
    /// Puts the next key in place of what `key` holds, and returns its rank; `None` at the end.
    fn next_key(&mut self, key: &mut Vec<u8>) -> StorageResult<Option<usize>>;
}

/// One sorted run.
pub(crate) enum Run<'a> {
    /// A batch in memory.
    Memory {
        terms: &'a SortedTerms,
        next: usize,
        /// Ordinals by local number.
        map: Vec<Ordinal>,
    },
    /// A batch in the stage directory.
    Spilled {
        terms: StageReader,
        term_count: usize,
        next: usize,
        key: Vec<u8>,
        map: Box<dyn FileWriter>,
        predicates: Picked<'a>,
        graphs: Picked<'a>,
    },
    /// The dictionary of the database.
    Existing {
        keys: Box<dyn KeyStream + 'a>,
        key: Vec<u8>,
        rank: usize,
        /// Ordinals by old rank; 0 for those that the stream left out.
        map: Vec<Ordinal>,
    },
}

/// The ordinals of some terms of a spilled batch.
pub(crate) struct Picked<'a> {
    /// Which terms, ascending; those that have their ordinals are gone.
    ranks: &'a [u32],
    ordinals: Vec<Ordinal>,
}

impl<'a> Picked<'a> {
    fn new(ranks: &'a [u32]) -> Self {
        Self {
            ranks,
            ordinals: Vec::with_capacity(ranks.len()),
        }
    }

    /// Hears the ordinals of all terms, in order.
    #[inline]
    fn assign(&mut self, rank: usize, ordinal: Ordinal) {
        if let Some((&next, rest)) = self.ranks.split_first()
            && next as usize == rank
        {
            self.ranks = rest;
            self.ordinals.push(ordinal);
        }
    }
}

impl<'a> Run<'a> {
    /// The run of a batch in memory.
    pub(crate) fn memory(terms: &'a SortedTerms) -> Self {
        Self::Memory {
            terms,
            next: 0,
            map: vec![0; terms.local_limit()],
        }
    }

    /// The run of a spilled batch, read through a buffer of this size.
    pub(crate) fn spilled(
        batch: &'a SpilledBatch,
        stage: &StageDir,
        buffer_bytes: usize,
    ) -> StorageResult<Self> {
        Ok(Self::Spilled {
            terms: stage.reader(&batch.terms_file(), buffer_bytes)?,
            term_count: batch.term_count,
            next: 0,
            key: Vec::new(),
            map: stage.writer(&batch.map_file())?,
            predicates: Picked::new(&batch.predicates),
            graphs: Picked::new(&batch.graphs),
        })
    }

    /// The run of an existing dictionary with this many terms.
    pub(crate) fn existing(keys: Box<dyn KeyStream + 'a>, terms: usize) -> Self {
        Self::Existing {
            keys,
            key: Vec::new(),
            rank: 0,
            map: vec![0; terms],
        }
    }

    /// The current key; only after [`Self::step`] said that there is one.
    #[inline]
    fn key(&self) -> &[u8] {
        match self {
            Self::Memory { terms, next, .. } => terms.key(terms.local_at(*next - 1)),
            Self::Spilled { key, .. } | Self::Existing { key, .. } => key,
        }
    }

    /// Goes to the next key; false at the end.
    fn step(&mut self) -> StorageResult<bool> {
        match self {
            Self::Memory { terms, next, .. } => {
                *next += 1;
                Ok(*next <= terms.len())
            }
            Self::Spilled {
                terms,
                term_count,
                next,
                key,
                ..
            } => {
                if *next == *term_count {
                    return Ok(false);
                }
                *next += 1;
                let mut length = [0; 4];
                terms.read_exact(&mut length)?;
                key.resize(u32::from_le_bytes(length) as usize, 0);
                terms.read_exact(key)?;
                Ok(true)
            }
            Self::Existing {
                keys, key, rank, ..
            } => {
                let next = keys.next_key(key)?;
                *rank = next.unwrap_or_default();
                Ok(next.is_some())
            }
        }
    }

    /// Notes the ordinal of the current key.
    fn assign(&mut self, ordinal: Ordinal) -> StorageResult<()> {
        match self {
            Self::Memory { terms, next, map } => {
                map[terms.local_at(*next - 1) as usize] = ordinal;
                Ok(())
            }
            Self::Spilled {
                map,
                next,
                predicates,
                graphs,
                ..
            } => {
                predicates.assign(*next - 1, ordinal);
                graphs.assign(*next - 1, ordinal);
                map.append(&ordinal.to_le_bytes())
            }
            Self::Existing { map, rank, .. } => {
                map[*rank] = ordinal;
                Ok(())
            }
        }
    }

    /// The ordinals of a spilled batch's predicates and graphs.
    pub(crate) fn roles(&self) -> Option<[&[Ordinal]; 2]> {
        match self {
            Self::Spilled {
                predicates, graphs, ..
            } => Some([&predicates.ordinals, &graphs.ordinals]),
            Self::Memory { .. } | Self::Existing { .. } => None,
        }
    }

    /// What the merge found out: ordinals by number, unless they stand in a file.
    pub(crate) fn into_map(self) -> Option<Vec<Ordinal>> {
        match self {
            Self::Memory { map, .. } | Self::Existing { map, .. } => Some(map),
            Self::Spilled { .. } => None,
        }
    }
}

impl RunKeys for [Run<'_>] {
    #[inline]
    fn key(&self, run: usize) -> &[u8] {
        self[run].key()
    }
}

/// Numbers all terms of `runs`; blank nodes from `first_blank_node`. Keys of the dictionary go to
/// `emit` in blocks. `progress` hears how many terms of runs are passed, and may end the merge.
pub(crate) fn merge_terms(
    runs: &mut [Run<'_>],
    first_blank_node: u64,
    emit: &mut dyn FnMut(KeyBlock) -> Result<(), LoadError>,
    progress: &mut dyn FnMut(u64) -> Result<(), LoadError>,
) -> Result<OrdinalSpace, LoadError> {
    let by_reference = runs.iter().all(|run| matches!(run, Run::Memory { .. }));
    let mut numbering = Numbering::new(first_blank_node);
    let mut block = BlockBuilder::new(by_reference);
    let has_key = runs
        .iter_mut()
        .map(Run::step)
        .collect::<StorageResult<Vec<_>>>()?;
    let mut tree = LoserTree::new(&has_key, &*runs);
    let mut current = Vec::new();
    let mut ordinal = 0;
    let mut passed = 0_u64;
    while let Some((top, is_new)) = tree.first() {
        let key = runs[top].key();
        debug_assert_eq!(is_new, current.as_slice() < key);
        if is_new {
            current.clear();
            current.extend_from_slice(key);
            let (number, key) = numbering.number(&current)?;
            ordinal = number;
            let ended = match key {
                DictionaryKey::None => None,
                DictionaryKey::Same => block.push(top, &runs[top]),
                DictionaryKey::Other(key) => block.push_bytes(key),
            };
            if let Some(ended) = ended {
                emit(ended)?;
            }
        }
        runs[top].assign(ordinal)?;
        let has_key = runs[top].step()?;
        tree.replace_first(has_key, &current, &*runs);
        passed += 1;
        if passed.is_multiple_of(PROGRESS_TERMS) {
            progress(passed)?;
        }
    }
    emit(block.take())?;
    for run in runs {
        if let Run::Spilled { map, .. } = run {
            map.flush()?;
        }
    }
    Ok(numbering.finish())
}

/// Gathers keys into blocks. A block is of one form; it ends when it is full or the form changes.
struct BlockBuilder {
    by_reference: bool,
    bytes: Vec<u8>,
    ends: Vec<u32>,
    references: Vec<(u32, u32)>,
}

impl BlockBuilder {
    fn new(by_reference: bool) -> Self {
        Self {
            by_reference,
            bytes: Vec::new(),
            ends: Vec::new(),
            references: Vec::new(),
        }
    }

    /// Appends the current key of a run; gives the block that ends before it.
    fn push(&mut self, run_number: usize, run: &Run<'_>) -> Option<KeyBlock> {
        match run {
            Run::Memory { terms, next, .. } if self.by_reference => {
                let is_full = self.references.len() * 64 >= BLOCK_BYTES;
                let ended = (is_full || !self.ends.is_empty()).then(|| self.take());
                self.references
                    .push((run_number as u32, terms.local_at(*next - 1)));
                ended
            }
            _ => self.push_bytes(run.key()),
        }
    }

    /// Appends a key; gives the block that ends before it.
    fn push_bytes(&mut self, key: &[u8]) -> Option<KeyBlock> {
        let is_full = self.bytes.len() >= BLOCK_BYTES;
        let ended = (is_full || !self.references.is_empty()).then(|| self.take());
        self.bytes.extend_from_slice(key);
        // A block ends soon after BLOCK_BYTES, and a key is shorter than 2^30 bytes.
        self.ends.push(self.bytes.len() as u32);
        ended
    }

    fn take(&mut self) -> KeyBlock {
        if self.ends.is_empty() {
            KeyBlock::References(std::mem::take(&mut self.references))
        } else {
            KeyBlock::Bytes {
                bytes: std::mem::take(&mut self.bytes),
                ends: std::mem::take(&mut self.ends),
            }
        }
    }
}
