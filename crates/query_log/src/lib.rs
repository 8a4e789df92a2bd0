//! The server's query log: its entries, and reports made from them.
//!
//! ```text
//! server -> Entry -> a line of JSON -> files, named by FileName
//! files -> lines -> tally (bounded) -> Report -> a page, or JSON
//!                -> day and user   -> Bill   -> CSV, or JSON
//! ```
//!
//! The format of an entry is defined here alone; the server writes it, the report reads it. A
//! report takes one pass over the files and memory with a bound: names beyond the most frequent
//! ones are forgotten, distinct things are counted up to a number, and the report says where that
//! has happened.

mod bill;
mod counts;
mod entry;
mod error;
mod figures;
mod file_name;
mod html;
mod kind;
mod log_files;
mod plot;
mod report;
mod shape;
mod shown;
mod tally;
mod time;
mod used;

pub use bill::{Bill, BillLine, Used, bill};
pub use counts::{
    Column, DISTINCT_MAX, DistinctCount, DurationFigures, LISTED_MAX, NAME_BYTES_MAX, NAMES_KEPT,
    NameCount, TopNames,
};
pub use entry::{AGENT_BYTES_MAX, Entry, LINE_BYTES_MAX, Line, TEXT_BYTES_MAX, cut};
pub use error::Error;
pub use figures::{DayFigures, KindFigures, LogFigures, ReadingFigures, Report, SlowQuery};
pub use file_name::{FileName, Series};
pub use kind::{Kind, Outcome};
pub use log_files::Period;
pub use report::report;
pub use shape::{Shape, shape_of};
pub use time::{Day, NotATime, Time};
