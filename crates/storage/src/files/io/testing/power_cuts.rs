//! The states of a disk that a power cut at a given moment may leave.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::recording::{Operation, RecordingFileSystem};
use super::tree::{Change, Inode, Tree};

/// The fate of unsynced changes at a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsynced {
    /// All are lost.
    Dropped,
    /// All are there.
    Kept,
    /// All are there but the last write, of which only the first part is; the seed says how much.
    Torn(u64),
    /// Each is lost, kept or torn for itself, as the seed has it.
    Random(u64),
    /// The same, but where a file has become longer and its bytes did not reach the disk, there are
    /// those that stood in the blocks before: of the same file, before it was cut off, or of one
    /// that was removed.
    Stale(u64),
}

/// Removed files whose blocks may be used again.
const FREED_MAX: usize = 4;

/// Goes through a recording, one operation after the other, and gives the disk after a power cut at
/// each point.
#[derive(Debug)]
pub struct PowerCuts {
    operations: Vec<Operation>,
    done: usize,
    /// What is surely on the disk.
    durable: Tree,
    /// Changes that may be on the disk or not, oldest first, with whether a later sync can still
    /// save them.
    pending: Vec<(Change, bool)>,
    /// As a program sees it.
    now: Tree,
    /// What files held before they were cut off.
    former: BTreeMap<Inode, Arc<Vec<u8>>>,
    /// What removed files held, the last one first.
    freed: Vec<Arc<Vec<u8>>>,
}

impl RecordingFileSystem {
    /// All moments of a possible power cut, the first first.
    pub fn power_cuts(&self) -> PowerCuts {
        let disk = self.disk.lock();
        PowerCuts::new(disk.start.clone(), disk.operations.clone())
    }
}

impl PowerCuts {
    fn new(start: Tree, operations: Vec<Operation>) -> Self {
        Self {
            operations,
            done: 0,
            now: start.clone(),
            durable: start,
            pending: Vec::new(),
            former: BTreeMap::new(),
            freed: Vec::new(),
        }
    }

    /// Number of operations that were done before the power goes; at first none.
    pub fn position(&self) -> usize {
        self.done
    }

    /// Number of all operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Number of changes that a power cut may lose at this point.
    pub fn unsynced(&self) -> usize {
        self.pending.len()
    }

    /// Moves the power cut one operation later; `false` at the end.
    pub fn advance(&mut self) -> bool {
        let Some(operation) = self.operations.get(self.done).cloned() else {
            return false;
        };
        self.done += 1;
        match operation {
            Operation::Change(change) => {
                if let Change::Create {
                    inode,
                    is_directory,
                    ..
                } = &change
                {
                    self.durable.add(*inode, *is_directory);
                }
                self.keep_stale(&change);
                self.now.apply(&change);
                self.pending.push((change, true));
            }
            Operation::Sync(inode) => self.sync(inode),
            Operation::FailedSync(inode) => {
                for (change, can_be_saved) in &mut self.pending {
                    *can_be_saved &= !change.is_covered_by(inode);
                }
            }
        }
        true
    }

    /// Remembers what a change takes away, for it stays in the blocks.
    fn keep_stale(&mut self, change: &Change) {
        match change {
            Change::SetLength { inode, bytes } => {
                let content = self.now.content(*inode);
                if let Some(content) = content.filter(|content| content.len() > *bytes) {
                    self.former.insert(*inode, content);
                }
            }
            Change::Remove { entry } => {
                if let Some(content) = self
                    .now
                    .entry(entry)
                    .and_then(|inode| self.now.content(inode))
                {
                    self.freed.insert(0, content);
                    self.freed.truncate(FREED_MAX);
                }
            }
            Change::Create { .. } | Change::Write { .. } | Change::Rename { .. } => {}
        }
    }

    fn sync(&mut self, inode: Inode) {
        let is_saved =
            |(change, can_be_saved): &(Change, bool)| *can_be_saved && change.is_covered_by(inode);
        let (saved, pending): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(is_saved);
        self.pending = pending;
        for (change, _) in saved {
            self.durable.apply(&change);
            // What was given up before and stood in the same place is overwritten for good.
            self.pending
                .retain(|(given_up, can_be_saved)| *can_be_saved || !given_up.overlaps(&change));
        }
    }

    /// The disk as it is found after a power cut at this point.
    pub fn state(&self, unsynced: Unsynced) -> RecordingFileSystem {
        let mut tree = self.durable.clone();
        match unsynced {
            Unsynced::Dropped => {}
            Unsynced::Kept => self
                .pending
                .iter()
                .for_each(|(change, _)| tree.apply(change)),
            Unsynced::Torn(seed) => self.apply_torn(&mut tree, seed),
            Unsynced::Random(seed) => {
                let mut random = Random(seed);
                for (change, _) in &self.pending {
                    apply_perhaps(&mut tree, change, &mut random);
                }
            }
            Unsynced::Stale(seed) => {
                let mut random = Random(seed);
                for (change, _) in &self.pending {
                    match (change, random.below(4)) {
                        (_, 0) => {}
                        (Change::Write { .. }, 2..) => {
                            self.apply_stale(&mut tree, change, &mut random)
                        }
                        (_, _) => tree.apply(change),
                    }
                }
            }
        }
        RecordingFileSystem::starting_with(tree)
    }

    /// Applies the first part of a write; the rest has its length, and what stood in the blocks.
    fn apply_stale(&self, tree: &mut Tree, change: &Change, random: &mut Random) {
        let Change::Write {
            inode,
            offset,
            bytes,
        } = change
        else {
            return;
        };
        // Often nothing of it: then what stood there may be whole.
        let kept = match random.below(2) {
            0 => 0,
            _ => random.below(bytes.len() + 1),
        };
        tree.write(*inode, *offset, &bytes[..kept]);
        let source = match random.below(3) {
            0 => None,
            1 => self.former.get(inode),
            _ => self.freed.get(random.below(self.freed.len())),
        };
        // What is overwritten in place stays as it was.
        let length = tree.content(*inode).map_or(0, |content| content.len());
        let rest = length.max(offset + kept)..offset + bytes.len();
        let stale: Vec<u8> = rest
            .clone()
            .map(|place| {
                source
                    .and_then(|source| source.get(place))
                    .copied()
                    .unwrap_or(0)
            })
            .collect();
        if !stale.is_empty() {
            tree.write(*inode, rest.start, &stale);
        }
    }

    fn apply_torn(&self, tree: &mut Tree, seed: u64) {
        let is_write = |(change, _): &(Change, bool)| matches!(change, Change::Write { .. });
        let last = self.pending.iter().rposition(is_write);
        for (number, (change, _)) in self.pending.iter().enumerate() {
            match change {
                Change::Write {
                    inode,
                    offset,
                    bytes,
                } if Some(number) == last => {
                    let kept = Random(seed).below(bytes.len() + 1);
                    tree.write(*inode, *offset, &bytes[..kept]);
                }
                _ => tree.apply(change),
            }
        }
    }
}

/// Applies a change, or a part of it, or nothing.
fn apply_perhaps(tree: &mut Tree, change: &Change, random: &mut Random) {
    match (change, random.below(8)) {
        (_, 0..3) => {}
        (_, 3..6) => tree.apply(change),
        (
            Change::Write {
                inode,
                offset,
                bytes,
            },
            form,
        ) => {
            let kept = random.below(bytes.len() + 1);
            match form {
                6 => tree.write(*inode, *offset, &bytes[..kept]),
                // The length reached the disk, the end of the bytes did not.
                _ => {
                    let mut torn: Arc<[u8]> = Arc::clone(bytes);
                    Arc::make_mut(&mut torn)[kept..].fill(0);
                    tree.write(*inode, *offset, &torn);
                }
            }
        }
        (_, 6) => tree.apply(change),
        _ => {}
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same for ever.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    }
}
