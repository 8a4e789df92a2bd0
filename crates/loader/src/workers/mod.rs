//! Distributed loads: workers parse shares and sort ranges; one coordinator writes and publishes.
//!
//! ```text
//! coordinator                                         worker (a member)
//! parts of files, or blocks of lines as bytes   -->   parse, intern, sort     `feed` asks, `answer` does
//! batches like those of its own parsers         <--   keys in order, quads of numbers
//! merge with the old dictionary: ids
//! rows of a range of ids, packed                -->   sort, drop duplicates   `sort` asks, `answer` does
//! merge with the old rows, write, publish once  <--   rows in order
//! ```
//!
//! * `members`: who helps, by a transport that is not ours: [`LoadWorker`] takes a request's bytes
//!   and gives a stream of bytes.
//! * `wire`: frames with lengths and checksums, so that what was cut off or damaged is an error.
//! * `messages`: what requests and ends of answers say.
//! * `batch_codec`, `row_codec`: batches and rows as frames; `join`: small batches become one.
//! * `feed` and `sort`: the coordinator's side; `answer`: the worker's.
//!
//! The blank nodes of a document are known by the number of its file, which the coordinator gives:
//! they are the same nodes whoever parses. So the segment is, to the byte, that of one process.
//!
//! # A member that fails
//!
//! Its share is done again: a part of a file goes back to those that wait, what was sent as bytes
//! is parsed or sorted by the coordinator. Batches that came whole before the failure stay: done
//! again, they are the same quads of the same terms, and duplicates fall out in the sort. After
//! [`members::FAILURES_MAX`] failures a member is asked no more. A failure is never one of the
//! load, unless the coordinator meets it as well.

mod answer;
mod batch_codec;
pub(crate) mod feed;
mod join;
pub(crate) mod members;
mod messages;
mod row_codec;
pub(crate) mod sort;
mod wire;

pub use answer::{WorkerPlace, answer_load_request};
pub use members::{LoadWorker, LoadWorkers, WorkPieces, WorkerCounts};
