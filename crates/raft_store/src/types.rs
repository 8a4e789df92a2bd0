//! The commands of the replicated state, their grouping into log entries, and their answers.

use std::collections::BTreeSet;

use bytes::Bytes;
use openraft::{BasicNode, EntryPayload};
use serde::{Deserialize, Serialize};

/// The number of a node.
pub(crate) type NodeId = u64;

/// An object of at most this many bytes travels in the entries of the log; a larger one is copied
/// as a file first.
pub(crate) const INLINE_BYTES_MAX: usize = 64 << 10;

openraft::declare_raft_types!(
    /// openraft's types, with ours in their places.
    pub(crate) TypeConfig:
        D = Batch,
        R = Vec<Answer>,
        NodeId = NodeId,
        Node = BasicNode,
        Entry = openraft::Entry<TypeConfig>,
        SnapshotData = std::io::Cursor<Vec<u8>>,
);

/// openraft's handle with our types.
pub(crate) type Raft = openraft::Raft<TypeConfig>;
/// An entry of the log.
pub(crate) type Entry = openraft::Entry<TypeConfig>;
/// Where an entry stands in the log.
pub(crate) type LogId = openraft::LogId<NodeId>;
/// A vote of a node.
pub(crate) type Vote = openraft::Vote<NodeId>;
/// Who votes and who learns, since which entry.
pub(crate) type StoredMembership = openraft::StoredMembership<NodeId, BasicNode>;
/// An error of the log or the state, as openraft takes it.
pub(crate) type StorageError = openraft::StorageError<NodeId>;

/// The commands of one entry of the log: what came in while the entry before was being written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// The leader's clock, in microseconds since 1970.
    pub now_us: u64,
    /// What to do, in this order.
    pub commands: Vec<Request>,
}

/// A command, and who sends it for the how-manieth time is not told: the number tells whether it
/// was done before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The session; 0 for commands that may be done twice.
    pub session: u64,
    /// The number of the command in its session.
    pub number: u64,
    /// Numbers below this one have their answers, and are never sent again.
    pub floor: u64,
    /// What to do.
    pub command: Command,
}

/// What the state can be asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Command {
    /// Opens a session, in which commands are done at most once.
    Open,
    /// Puts an object.
    Put {
        /// Its path.
        path: String,
        /// Under which condition.
        mode: Mode,
        /// Its bytes, or where they are.
        content: Content,
    },
    /// Removes objects; those that are not there are no error.
    Delete {
        /// Their paths.
        paths: Vec<String>,
    },
    /// Gives an object's content a second path.
    Copy {
        /// The object.
        from: String,
        /// The second path.
        to: String,
        /// Only if nothing is there.
        create: bool,
    },
}

/// The condition of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Mode {
    /// None.
    Overwrite,
    /// Nothing is at this path.
    Create,
    /// The object has this tag.
    Update(u64),
}

/// Bytes of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Content {
    /// They are here.
    Inline(#[serde(with = "blob")] Bytes),
    /// They are in a file that some nodes have.
    File(File),
}

/// A file with the bytes of one large object. It never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct File {
    /// Its name below `files/`; never used twice.
    pub id: String,
    /// How long it is.
    pub bytes: u64,
    /// CRC-32C of all of it.
    pub crc: u32,
    /// Nodes that have it on disk, as of the put.
    pub copies: BTreeSet<NodeId>,
}

impl Command {
    /// About how many bytes it takes in the log.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Put {
                path,
                content: Content::Inline(bytes),
                ..
            } => path.len() + bytes.len(),
            Self::Put { path, .. } => path.len(),
            Self::Delete { paths } => paths.iter().map(String::len).sum(),
            Self::Copy { from, to, .. } => from.len() + to.len(),
            Self::Open => 0,
        }
    }
}

impl Request {
    /// About how many bytes it takes in the log.
    pub(crate) fn bytes(&self) -> usize {
        self.command.bytes()
    }
}

impl Content {
    /// How many bytes the object has.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            Self::File(file) => file.bytes,
        }
    }
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The session's number.
    Opened(u64),
    /// Done, and this is the object's tag.
    Put(u64),
    /// Done.
    Deleted,
    /// Refused: something is at this path.
    AlreadyExists,
    /// Refused: the object has another tag, or is not there.
    Precondition,
    /// Refused: there is no such object.
    NotFound,
    /// Refused: the nodes that have the file are no majority of those that vote now.
    TooFewCopies,
    /// Refused: the session has been forgotten, or the number is no longer remembered.
    Forgotten,
}

/// The files that an entry of the log speaks of.
pub(crate) fn files_named(entry: &Entry) -> Vec<String> {
    let EntryPayload::Normal(batch) = &entry.payload else {
        return Vec::new();
    };
    let name = |request: &Request| match &request.command {
        Command::Put {
            content: Content::File(file),
            ..
        } => Some(file.id.clone()),
        _ => None,
    };
    batch.commands.iter().filter_map(name).collect()
}

/// Bytes inside of a header of JSON are told apart by their lengths; they follow the header
/// ([`crate::wire`]).
pub(crate) mod blob {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer};

    thread_local! {
        /// What was met while a header is written or read on this thread, in order.
        static BLOBS: RefCell<VecDeque<Bytes>> = const { RefCell::new(VecDeque::new()) };
    }

    /// Gives this thread the blobs of the header that is read next, or none before one is written.
    pub(crate) fn start(blobs: VecDeque<Bytes>) {
        BLOBS.with_borrow_mut(|slot| *slot = blobs);
    }

    /// Takes the blobs that were met.
    pub(crate) fn finish() -> VecDeque<Bytes> {
        BLOBS.with_borrow_mut(std::mem::take)
    }

    pub(crate) fn serialize<S: Serializer>(
        bytes: &Bytes,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        BLOBS.with_borrow_mut(|slot| slot.push_back(bytes.clone()));
        serializer.serialize_u64(bytes.len() as u64)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Bytes, D::Error> {
        let length = u64::deserialize(deserializer)?;
        match BLOBS.with_borrow_mut(VecDeque::pop_front) {
            Some(bytes) if bytes.len() as u64 == length => Ok(bytes),
            _ => Err(serde::de::Error::custom(
                "a blob is missing, or has another length",
            )),
        }
    }
}

pub(crate) use blob::{finish as finish_blobs, start as start_blobs};
