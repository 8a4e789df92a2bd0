//! Delimited text in PostgreSQL's two formats: `text` (tabs, backslashes) and `csv` (commas,
//! quotes).
//!
//! ```text
//! chunks of bytes -> records (a line; with quotes several) -> fields -> batches of texts, each row with its line
//! ```
//!
//! The libraries' readers do not tell where a file is wrong, and know one form only. This one
//! counts lines, and whoever makes values out of the texts asks the batch for the line of a row. It
//! is fed: it reads nothing itself, and holds one record and one batch.

mod dialect;
mod reader;
mod stream;

pub(crate) use dialect::{Dialect, Form};
pub(crate) use reader::{Header, Reader, TextBatch, at_value, first_record};
pub(crate) use stream::text_batches;
