//! A permutation as readers see it: the file merged with its deltas.
//!
//! ```text
//! delta in memory      insertions and tombstones relative to all below
//! delta in a file      the same, relative to the permutation's file
//! mask                 rows of the file that are hidden, for their graphs were cleared
//! file                 vectors of 1,024 rows
//! ```
//!
//! Row numbers are those of the whole. A boundary stands at the file's row number plus the net
//! counts of the deltas before it, so look-ups and counts cost little more than in the file.
//! Reading a range goes down level by level: runs of rows between two entries of a delta are read
//! below, insertions are put between, rows with a tombstone are left out.

use std::path::Path;
use std::sync::Arc;

use orrery_term::TermId;

use super::file::FileIndex;
use super::mask::Mask;
use super::{Permutation, RowRange};
use crate::files::block_file::{BlockFile, FileSummary};
use crate::files::io::FileSystem;
use crate::quads::adjacency::AdjacencySlot;
use crate::quads::delta::{Changes, DeltaIndex};
use crate::quads::graph_set::GraphSet;
use crate::{Error, Result};

/// A permutation of all quads, open for reading; shared between threads as `Arc<QuadIndex>`.
#[derive(Debug)]
pub struct QuadIndex {
    file: Arc<FileIndex>,
    permutation: Permutation,
    mask: Option<Arc<Mask>>,
    /// From the file up.
    deltas: Vec<DeltaIndex>,
    rows: u64,
}

impl QuadIndex {
    /// Opens the file; costs the same for any number of rows.
    pub fn open(file_system: &dyn FileSystem, path: &Path) -> Result<Arc<Self>> {
        let file = FileIndex::open(file_system, path)?;
        Ok(Arc::new(Self {
            permutation: file.permutation(),
            rows: file.rows(),
            file,
            mask: None,
            deltas: Vec::new(),
        }))
    }

    /// GSPO of quads that are all in the default graph, from their SPOG: so a database without
    /// named graphs can get its first one by a delta. Costs nothing.
    pub fn by_default_graph(spog: &Arc<Self>) -> Result<Arc<Self>> {
        let is_whole = spog.deltas.is_empty() && spog.mask.is_none();
        if spog.permutation != Permutation::Spog || !is_whole {
            return Err(spog.misuse("only SPOG without changes can be read as GSPO"));
        }
        Ok(Arc::new(Self {
            permutation: Permutation::Gspo,
            rows: spog.rows,
            file: Arc::clone(&spog.file),
            mask: None,
            deltas: Vec::new(),
        }))
    }

    /// A permutation without changes as it is when the quads of some graphs are gone. Reads the
    /// column of the graph once, and nothing where all graphs go.
    pub(crate) fn hiding(self: &Arc<Self>, graphs: &GraphSet) -> Result<Arc<Self>> {
        if !self.deltas.is_empty() || self.mask.is_some() {
            return Err(self.misuse("only rows of a whole file can be hidden"));
        }
        if graphs.is_empty() {
            return Ok(Arc::clone(self));
        }
        let Some(mask) = Mask::new(&self.file, graphs)? else {
            return Ok(Arc::clone(self));
        };
        Ok(Arc::new(Self {
            file: Arc::clone(&self.file),
            permutation: self.permutation,
            rows: mask.rows(),
            mask: Some(Arc::new(mask)),
            deltas: Vec::new(),
        }))
    }

    /// The permutation after the changes of a delta that was made over it. Costs nothing.
    pub fn view(below: &Arc<Self>, delta: DeltaIndex) -> Result<Arc<Self>> {
        if delta.permutation() != below.permutation {
            return Err(below.misuse("the delta is of another permutation"));
        }
        if delta.base_rows().is_some_and(|rows| rows != below.rows) {
            return Err(below.misuse("the delta was written for another file"));
        }
        let Some(rows) = below.rows.checked_add_signed(delta.net()) else {
            return Err(below.misuse("the delta has more tombstones than there are rows"));
        };
        let mut deltas = below.deltas.clone();
        deltas.push(delta);
        Ok(Arc::new(Self {
            file: Arc::clone(&below.file),
            permutation: below.permutation,
            mask: below.mask.clone(),
            deltas,
            rows,
        }))
    }

    /// The order of the columns.
    pub fn permutation(&self) -> Permutation {
        self.permutation
    }

    /// Number of quads.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// All rows.
    pub fn all(&self) -> RowRange {
        RowRange::new(0, self.rows)
    }

    /// Length and checksum of the file, to be compared with what the writer returned.
    pub fn summary(&self) -> FileSummary {
        self.file.summary()
    }

    /// The file's path, for messages.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Rows of the file, hidden or not.
    pub(crate) fn base_file_rows(&self) -> u64 {
        self.file.rows()
    }

    /// Rows of the file that are hidden, for their graphs were cleared as a whole since it was
    /// written.
    pub fn hidden_rows(&self) -> u64 {
        self.mask.as_ref().map_or(0, |mask| mask.hidden())
    }

    /// Bytes of memory that tell which rows are hidden.
    pub(crate) fn mask_bytes(&self) -> u64 {
        self.mask.as_ref().map_or(0, |mask| mask.memory_bytes())
    }

    /// Whether the rows are those of the file.
    pub fn is_unchanged(&self) -> bool {
        self.deltas.is_empty() && self.mask.is_none()
    }

    /// The rows of the file that are not hidden, before all changes.
    pub fn base(&self) -> Arc<Self> {
        Arc::new(self.up_to(0))
    }

    /// The place for the adjacency of a predicate, which is of the rows before all changes; only
    /// PSOG and POSG have any, and none while rows of the predicate are hidden.
    pub fn adjacency_slot(&self, predicate: TermId) -> Result<Option<Arc<AdjacencySlot>>> {
        let has_any = matches!(self.permutation, Permutation::Psog | Permutation::Posg);
        if !has_any || self.hides_rows_of(predicate)? {
            return Ok(None);
        }
        let rows = || Ok(self.base().range(&[predicate])?.len());
        self.file.adjacencies().slot(predicate, rows).map(Some)
    }

    /// Whether rows of the file that begin with an id are hidden.
    fn hides_rows_of(&self, first: TermId) -> Result<bool> {
        if self.mask.is_none() {
            return Ok(false);
        }
        let file = Arc::new(Self {
            file: Arc::clone(&self.file),
            permutation: self.permutation,
            rows: self.file.rows(),
            mask: None,
            deltas: Vec::new(),
        });
        let in_file = file.range(&[first])?.len();
        Ok(self.base().range(&[first])?.len() != in_file)
    }

    /// The merged deltas since the file was written.
    pub fn changes(&self) -> Result<Changes> {
        Changes::new(&self.deltas)
    }

    /// The deltas, from the file up; empty where there is only the file.
    pub fn deltas(&self) -> &[DeltaIndex] {
        &self.deltas
    }

    /// Checks the whole file: checksums, that everything decodes, the order of the rows, and the
    /// fences. Then that each delta fits what it stands on.
    pub fn verify(self: &Arc<Self>) -> Vec<Error> {
        let damage = self.file.verify();
        if !damage.is_empty() {
            return damage;
        }
        self.verify_deltas().err().into_iter().collect()
    }

    /// Checks that each delta fits what it stands on.
    pub(crate) fn verify_deltas(self: &Arc<Self>) -> Result<()> {
        for level in 0..self.deltas.len() {
            if let Some(damage) = self.deltas[level].verify().pop() {
                return Err(damage);
            }
            let mut below = Arc::new(self.up_to(level)).cursor();
            let mut last = None;
            for entry in self.deltas[level].entries() {
                let entry = entry?;
                let is_below = !below.seek(&entry.row.map(TermId::from_bits))?.is_empty();
                if last >= Some(entry.row) || is_below == entry.is_insertion {
                    return Err(self.misuse("a delta does not fit what is below it"));
                }
                last = Some(entry.row);
            }
        }
        Ok(())
    }

    /// The permutation before the deltas from `level` on.
    fn up_to(&self, level: usize) -> Self {
        let net: i64 = self.deltas[level..].iter().map(DeltaIndex::net).sum();
        Self {
            file: Arc::clone(&self.file),
            permutation: self.permutation,
            mask: self.mask.clone(),
            deltas: self.deltas[..level].to_vec(),
            rows: self.rows.saturating_add_signed(-net),
        }
    }

    pub(super) fn file(&self) -> &Arc<FileIndex> {
        &self.file
    }

    pub(super) fn mask(&self) -> Option<&Arc<Mask>> {
        self.mask.as_ref()
    }

    /// Whether the file below all changes is of this permutation; a GSPO may be another reading of
    /// SPOG's.
    pub(crate) fn has_own_file(&self) -> bool {
        self.permutation == self.file.permutation()
    }

    /// The file below all changes, and how many of its blocks have rows; those with fences follow.
    pub(crate) fn block_file(&self) -> (&BlockFile, u32) {
        (self.file.block_file(), self.file.data_blocks())
    }

    /// The file, if its rows are the rows of the whole.
    pub(super) fn as_file(&self) -> Option<&Arc<FileIndex>> {
        let is_file = self.is_unchanged() && self.permutation == self.file.permutation();
        is_file.then_some(&self.file)
    }

    fn misuse(&self, what: &str) -> Error {
        Error::invalid_input(self.path(), what)
    }
}
