//! An in-memory tree of directories and files, as inodes and names.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::{Component, Path};
use std::sync::Arc;

/// Number of a file or directory; a name leads to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Inode(pub(super) u32);

pub(super) const ROOT: Inode = Inode(0);

#[derive(Debug, Clone)]
pub(super) enum Node {
    File(Arc<Vec<u8>>),
    Directory(BTreeMap<OsString, Inode>),
}

impl Node {
    pub(super) fn empty(is_directory: bool) -> Self {
        match is_directory {
            true => Self::Directory(BTreeMap::new()),
            false => Self::File(Arc::default()),
        }
    }
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) directory: Inode,
    pub(super) name: OsString,
}

/// A change to the tree.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// A new file or directory.
    Create {
        entry: Entry,
        inode: Inode,
        is_directory: bool,
    },
    Write {
        inode: Inode,
        offset: usize,
        bytes: Arc<[u8]>,
    },
    SetLength {
        inode: Inode,
        bytes: usize,
    },
    Rename {
        from: Entry,
        to: Entry,
        inode: Inode,
    },
    Remove {
        entry: Entry,
    },
}

impl Change {
    /// The file whose sync makes the change safe, or the directories of which any one's sync does.
    pub(super) fn is_covered_by(&self, synced: Inode) -> bool {
        match self {
            Self::Create { entry, .. } | Self::Remove { entry } => entry.directory == synced,
            Self::Rename { from, to, .. } => from.directory == synced || to.directory == synced,
            Self::Write { inode, .. } | Self::SetLength { inode, .. } => *inode == synced,
        }
    }
}

impl Change {
    /// Whether both change the same bytes or the same name.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        match (self.bytes(), other.bytes()) {
            (Some((inode, mine)), Some((other, others))) => {
                inode == other && mine.start < others.end && others.start < mine.end
            }
            _ => self
                .entries()
                .any(|entry| other.entries().any(|other| other == entry)),
        }
    }

    /// The bytes that are changed.
    fn bytes(&self) -> Option<(Inode, Range<usize>)> {
        match self {
            Self::Write {
                inode,
                offset,
                bytes,
            } => Some((*inode, *offset..*offset + bytes.len())),
            Self::SetLength { inode, .. } => Some((*inode, 0..usize::MAX)),
            Self::Create { .. } | Self::Rename { .. } | Self::Remove { .. } => None,
        }
    }

    /// The names that are changed.
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        let (first, second) = match self {
            Self::Create { entry, .. } | Self::Remove { entry } => (Some(entry), None),
            Self::Rename { from, to, .. } => (Some(from), Some(to)),
            Self::Write { .. } | Self::SetLength { .. } => (None, None),
        };
        first.into_iter().chain(second)
    }
}

/// All inodes, also those that no name leads to.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    nodes: BTreeMap<Inode, Node>,
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            nodes: BTreeMap::from([(ROOT, Node::empty(true))]),
        }
    }
}

impl Tree {
    pub(super) fn node(&self, inode: Inode) -> Option<&Node> {
        self.nodes.get(&inode)
    }

    /// What a file holds.
    pub(super) fn content(&self, inode: Inode) -> Option<Arc<Vec<u8>>> {
        match self.node(inode) {
            Some(Node::File(content)) => Some(Arc::clone(content)),
            _ => None,
        }
    }

    /// What a name leads to.
    pub(super) fn entry(&self, entry: &Entry) -> Option<Inode> {
        match self.node(entry.directory) {
            Some(Node::Directory(entries)) => entries.get(&entry.name).copied(),
            _ => None,
        }
    }

    pub(super) fn find(&self, path: &Path) -> Option<Inode> {
        let mut inode = ROOT;
        for name in names(path) {
            let Node::Directory(entries) = self.node(inode)? else {
                return None;
            };
            inode = *entries.get(name)?;
        }
        Some(inode)
    }

    /// An inode that was not used before.
    pub(super) fn unused(&self) -> Inode {
        let last = self.nodes.last_key_value();
        Inode(last.map_or(0, |(inode, _)| inode.0) + 1)
    }

    /// The node of a new file or directory, before any name leads to it.
    pub(super) fn add(&mut self, inode: Inode, is_directory: bool) {
        self.nodes.insert(inode, Node::empty(is_directory));
    }

    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Create {
                entry,
                inode,
                is_directory,
            } => {
                let node = || Node::empty(*is_directory);
                self.nodes.entry(*inode).or_insert_with(node);
                self.link(entry, *inode);
            }
            Change::Write {
                inode,
                offset,
                bytes,
            } => self.write(*inode, *offset, bytes),
            Change::SetLength { inode, bytes } => {
                if let Some(content) = self.content_mut(*inode) {
                    content.resize(*bytes, 0);
                }
            }
            Change::Rename { from, to, inode } => {
                self.unlink(from);
                self.link(to, *inode);
            }
            Change::Remove { entry } => self.unlink(entry),
        }
    }

    pub(super) fn write(&mut self, inode: Inode, offset: usize, bytes: &[u8]) {
        if let Some(content) = self.content_mut(inode) {
            let end = offset + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[offset..end].copy_from_slice(bytes);
        }
    }

    fn content_mut(&mut self, inode: Inode) -> Option<&mut Vec<u8>> {
        match self.nodes.get_mut(&inode) {
            Some(Node::File(content)) => Some(Arc::make_mut(content)),
            _ => None,
        }
    }

    fn link(&mut self, entry: &Entry, inode: Inode) {
        if let Some(Node::Directory(entries)) = self.nodes.get_mut(&entry.directory) {
            entries.insert(entry.name.clone(), inode);
        }
    }

    fn unlink(&mut self, entry: &Entry) {
        if let Some(Node::Directory(entries)) = self.nodes.get_mut(&entry.directory) {
            entries.remove(&entry.name);
        }
    }
}

/// The names on the way to a path; all paths are taken from the root.
pub(super) fn names(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name),
        _ => None,
    })
}
