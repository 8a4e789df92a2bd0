//! What a server was asked: the entries of its query log.
//!
//! ```text
//! server -> Entry -> a line of JSON -> files, named by FileName
//! ```
//!
//! What an entry is, is written down here alone; the server writes it.

mod entry;
mod file_name;
mod shape;
mod time;

pub use entry::{AGENT_BYTES_MAX, Entry, Kind, LINE_BYTES_MAX, Line, Outcome, TEXT_BYTES_MAX, cut};
pub use file_name::{FileName, Series};
pub use shape::{Shape, shape_of};
pub use time::{Day, Time};
