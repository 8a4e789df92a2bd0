//! The bulk loader: from RDF files to sorted segments, in parallel and within a memory limit.
//!
//! ```text
//!             parse                        terms                  permutations        publish
//! files --> blocks --> batches of --> merged, numbered, --> sorted, merged with --> the manifest
//!                      terms, quads   the dictionary        what is there, written   names them
//! ```
//!
//! * **Parse** (`sources`, `parse`, `ingest`): reader threads decompress and cut N-Triples and
//!   N-Quads into blocks, workers parse blocks or whole documents and intern terms. A worker's
//!   batch that outgrows its share of the memory is sorted and written to `DIR/load-stage`.
//! * **Terms** (`merge`): the sorted terms of all batches and of the database's dictionary
//!   become the new dictionary, and each term gets its ordinal, the rank among all.
//! * **Permutations** (`merge`): quads of ordinals are sorted per permutation, in memory
//!   or by runs on disk, merged with the rows of the database, and written once, in order.
//! * **Publish** (`load`): the manifest is replaced; from then on readers see the new segment.
//!
//! # A killed or failed load
//!
//! Nothing is visible before the publish, and the publish is one rename. Killed during parse, it
//! leaves `DIR/load-stage`; during terms or permutations also a `DIR/segment-…` that no manifest
//! names; right after the publish perhaps the segment that was replaced. The next load removes
//! all of these and starts from the beginning; the database meanwhile stays as it was (empty, if
//! the load was its first). The lock of a killed writer ends with its process. A failed load
//! removes its files itself.
//!
//! # A database with updates
//!
//! Changes since the base was written are merged in: rows with a tombstone are left out, and
//! inserted quads are a further batch (`load::delta_batch`). [`load_into`] does this to a database
//! that is open for writing, and [`compact`] does it without any sources. An update that inserts
//! more than memory holds goes the same way ([`commit_in_bulk`]). Terms that no quad has any more
//! leave the dictionary (`merge::used_terms`).
//!
//! # Loads by several processes
//!
//! In a distributed load ([`load_by_workers`]) workers in other processes parse parts of the
//! sources, and may sort; their batches and rows go the way of those of local threads. One process
//! coordinates: it alone knows the database, and publishes once (`workers`, decision 0064).
//!
//! # Memory
//!
//! [`LoadOptions::memory_bytes`] bounds the memory: of batches while parsing, then of the sorts.
//! Below [`MEMORY_BYTES_MIN`], or a thousandth of the input, fixed buffers weigh more than the
//! bound. A literal of N-Triples or N-Quads may have any length: long ones never stand in memory
//! (`ingest::long_line`, `ingest::large_literals`). In the other formats what the parser holds
//! until a statement comes of it must: it may take a quarter of what batches may take, in JSON-LD
//! an eighth, for two parsers read it (`parse::json_ld`), and a token of it 16 MiB.

#[cfg(test)]
mod damage_tests;
mod error;
mod excerpt;
mod ingest;
mod load;
mod merge;
mod parse;
mod progress;
mod report;
mod sources;
mod threads;
mod workers;

pub use error::{LoadError, LoadOption, SyntaxError};
pub use excerpt::Excerpt;
pub use load::bulk::{BulkCommit, commit_in_bulk};
pub use load::check::LoadCheck;
pub use load::compact::{
    BackgroundCompaction, BackgroundOptions, CompactOptions, compact, compact_tables,
};
pub use load::delta_batch::changes_of;
pub use load::document::{Document, DocumentBounds, DocumentError, DocumentTerm, read_document};
pub use load::run::{load, load_by_workers, load_into, load_into_by_workers, load_with};
pub use progress::{Progress, SilentProgress, Stage, TerminalProgress, WhileAwaited};
pub use report::{Effort, LoadReport, StageReport};
pub use sources::decompress::{brotli_text, brotli_window_bytes, decompressed_text};
pub use sources::format::{Format, UnknownFormat};
pub use sources::looks::LooksLike;
pub use sources::source::{Source, Upload, file_iri};
pub use workers::{
    LoadWorker, LoadWorkers, WorkPieces, WorkerCounts, WorkerPlace, answer_load_request,
};

/// The options of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOptions {
    /// Memory that the load may use, [`MEMORY_BYTES_MIN`] or more; beyond it, it works on disk.
    pub memory_bytes: u64,
    /// Threads that parse and sort.
    pub threads: usize,
    /// The named graph for statements that name none; `None` is the default graph.
    pub graph: Option<String>,
    /// The format of all sources; `None` tells it from each file's name.
    pub format: Option<Format>,
    /// Whether wrong statements are counted and left out instead of failing the load. A statement
    /// is left out whole; where nobody can tell where the next one begins, all up to the end of the
    /// file is.
    pub skip_errors: bool,
    /// Whether IRIs are taken as they are written, if only they have a scheme and characters that
    /// N-Triples can write: RFC 3987 does not allow `http://a/#b#c`, `http://a/[1]`,
    /// `http://a/100%`, and dumps have them. They are counted in a warning.
    pub lenient_iris: bool,
    /// What relative IRIs of Turtle, TriG, RDF/XML and JSON-LD are resolved against; `None` is the
    /// address of each file.
    pub base_iri: Option<String>,
    /// Literals of more bytes (with tag or datatype; 4096 at least) are not held in memory but pass
    /// through files, and stand in the database as they are, not compressed. Tests have small ones.
    pub literal_bytes_max: usize,
    /// Whether the database takes the prefixes that sources declare.
    pub takes_prefixes: bool,
    /// Whether a load into a database that is open for writing fails with
    /// [`orrery_storage::Error::KeepsHistory`] rather than give up old states that are to be kept.
    /// A load into a directory gives them up anyway.
    pub keeps_history: bool,
    /// Looks at the new state of a database that is open for writing before it becomes visible.
    pub check: Option<LoadCheck>,
}

/// What [`LoadOptions::literal_bytes_max`] is if nothing else is said: 1 MiB.
const LITERAL_BYTES_MAX: usize = 1 << 20;

/// The least memory: a load with less works, but exceeds it by its file buffers, dictionary writer
/// and threads.
pub const MEMORY_BYTES_MIN: u64 = 128 << 20;

/// Set aside for what is not counted piece by piece: the dictionary's writer and its threads,
/// buffers of files, the program itself.
const RESERVED_BYTES_MAX: u64 = 32 << 20;

impl LoadOptions {
    /// The memory that batches, blocks and sorts may take: a part is set aside, and a tenth of the
    /// rest for tables that grow and what the allocator keeps.
    fn usable_bytes(&self) -> usize {
        let reserved = (self.memory_bytes / 3).min(RESERVED_BYTES_MAX);
        usize::try_from((self.memory_bytes - reserved) / 10 * 9).unwrap_or(usize::MAX)
    }
}

impl Default for LoadOptions {
    /// 4 GiB, all cores, everything else as the files say.
    fn default() -> Self {
        Self {
            memory_bytes: 4 << 30,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            graph: None,
            format: None,
            skip_errors: false,
            lenient_iris: false,
            base_iri: None,
            literal_bytes_max: LITERAL_BYTES_MAX,
            takes_prefixes: true,
            keeps_history: false,
            check: None,
        }
    }
}
