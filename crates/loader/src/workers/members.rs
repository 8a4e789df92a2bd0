//! The workers of a distributed load, and the traffic with each.

use super::messages::{Failure, Task};
use super::wire::{FrameReader, FrameWriter, Kind, Packing};
use parking_lot::Mutex;
use serde::Serialize;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// After so many failures a member is asked no more in this load.
pub(crate) const FAILURES_MAX: u32 = 2;

/// A process that helps with loads, as its transport shows it. There
/// [`answer_load_request`](super::answer_load_request) does what is asked.
///
/// Both calls may wait for the network and are made on threads of the load, several at a time. They
/// must end: a transport needs its own limits of time, within which the next bytes have to come.
pub trait LoadWorker: Send + Sync {
    /// Its name, for messages.
    fn name(&self) -> String;

    /// Sends a request and gives the answer as it comes. Dropping the answer early tells the worker
    /// to stop, if the transport does.
    ///
    /// A request holds some ten MiB at most ([`WorkPieces`]). What arrives is checked: an answer
    /// that was cut off or damaged is found.
    fn request(&self, request: Vec<u8>) -> io::Result<Box<dyn Read + Send>>;

    /// Whether it can open the sources by their paths, as in a directory that all share; then parts
    /// of files are read there, and their bytes do not pass the coordinator. One that turns out not
    /// to be there is read by the coordinator.
    fn reads_files(&self) -> bool {
        false
    }
}

/// The sizes of the pieces of work. Tests have small ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkPieces {
    /// Bytes of a file's part that a worker reads itself, at most: large N-Triples and N-Quads that
    /// are not compressed are cut.
    pub part_bytes: u64,
    /// Bytes of text that are sent to a worker at a time, before compression. A document is sent
    /// only if it is shorter.
    pub request_bytes: usize,
    /// Rows that a worker sorts at a time.
    pub sort_rows: usize,
}

impl Default for WorkPieces {
    fn default() -> Self {
        Self {
            part_bytes: 256 << 20,
            request_bytes: 32 << 20,
            sort_rows: 4 << 20,
        }
    }
}

/// The workers of one load.
pub struct LoadWorkers {
    pub(crate) members: Vec<Member>,
    pub(crate) pieces: WorkPieces,
    /// Whether they sort, too.
    pub(crate) are_sorting: bool,
}

impl LoadWorkers {
    /// These, for one load: who fails is not asked again. They parse, and sort if `are_sorting`:
    /// that spares the coordinator's processor less than its network carries, so it is for those
    /// whose processor is the bottleneck.
    pub fn new(workers: Vec<Arc<dyn LoadWorker>>, are_sorting: bool, pieces: WorkPieces) -> Self {
        Self {
            members: workers.into_iter().map(Member::new).collect(),
            pieces,
            are_sorting,
        }
    }

    /// The traffic so far, by worker.
    pub fn counts(&self) -> Vec<WorkerCounts> {
        self.members.iter().map(Member::counts).collect()
    }

    /// What is to be told of members that failed: a sentence each.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        let members = self.members.iter();
        members
            .filter_map(|member| member.warning.lock().take())
            .collect()
    }
}

impl fmt::Debug for LoadWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.members.iter().map(|member| &member.name).collect();
        f.debug_tuple("LoadWorkers").field(&names).finish()
    }
}

/// The traffic between coordinator and one worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct WorkerCounts {
    /// The member's name.
    pub name: String,
    /// Requests that were answered.
    pub requests: u64,
    /// Requests that failed, and were done otherwise.
    pub failures: u64,
    /// Bytes of all requests.
    pub bytes_sent: u64,
    /// Bytes of all answers.
    pub bytes_received: u64,
}

/// One of them.
pub(crate) struct Member {
    worker: Arc<dyn LoadWorker>,
    name: String,
    reads_files: AtomicBool,
    failures: AtomicU32,
    requests: AtomicU64,
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
    warning: Mutex<Option<String>>,
}

impl Member {
    fn new(worker: Arc<dyn LoadWorker>) -> Self {
        Self {
            name: worker.name(),
            reads_files: AtomicBool::new(worker.reads_files()),
            worker,
            failures: AtomicU32::new(0),
            requests: AtomicU64::new(0),
            bytes_sent: AtomicU64::new(0),
            bytes_received: AtomicU64::new(0),
            warning: Mutex::default(),
        }
    }

    fn counts(&self) -> WorkerCounts {
        WorkerCounts {
            name: self.name.clone(),
            requests: self.requests.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed).into(),
            bytes_sent: self.bytes_sent.load(Ordering::Relaxed),
            bytes_received: self.bytes_received.load(Ordering::Relaxed),
        }
    }

    /// Whether it failed too often.
    pub(crate) fn is_given_up(&self) -> bool {
        self.failures.load(Ordering::Relaxed) >= FAILURES_MAX
    }

    /// Whether it is worth asking for a part of a file.
    pub(crate) fn reads_files(&self) -> bool {
        self.reads_files.load(Ordering::Relaxed)
    }

    /// It cannot read a file, which says nothing about what else it can do.
    pub(super) fn note_unreadable(&self, why: &str) {
        tracing::warn!(
            worker = self.name,
            why,
            "a worker cannot read the load's files itself"
        );
        self.reads_files.store(false, Ordering::Relaxed);
    }

    /// It did not answer, or wrongly.
    pub(super) fn note_failure(&self, why: &io::Error) {
        tracing::warn!(worker = self.name, %why, "a worker of the load failed");
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.warning.lock().get_or_insert_with(|| {
            let name = &self.name;
            format!("the worker {name} failed ({why}); what it was to do was done by others")
        });
    }

    pub(super) fn note_answered(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends a request.
    pub(super) fn ask(
        &self,
        request: Vec<u8>,
    ) -> io::Result<FrameReader<Counted<'_, Box<dyn Read + Send>>>> {
        self.bytes_sent
            .fetch_add(request.len() as u64, Ordering::Relaxed);
        let input = self.worker.request(request)?;
        FrameReader::new(Counted {
            input: io::BufReader::with_capacity(ANSWER_BUFFER_BYTES, input),
            bytes: &self.bytes_received,
        })
    }
}

/// An answer is read through a buffer of this size.
const ANSWER_BUFFER_BYTES: usize = 64 << 10;

/// Counts what comes.
pub(super) struct Counted<'a, R> {
    input: io::BufReader<R>,
    bytes: &'a AtomicU64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.bytes.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

/// Begins a request.
pub(super) fn begin_request(task: &Task) -> io::Result<FrameWriter<Vec<u8>>> {
    let mut writer = FrameWriter::new(Vec::new())?;
    writer.frame(Kind::Task, &serde_json::to_vec(task)?, Packing::Zstd)?;
    Ok(writer)
}

/// What the worker says of its failure.
pub(super) fn failure_of(bytes: &[u8]) -> io::Result<Failure> {
    Ok(serde_json::from_slice(bytes)?)
}

/// An answer that is not what was asked for.
pub(super) fn wrong_answer(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
