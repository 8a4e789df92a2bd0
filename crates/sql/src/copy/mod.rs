//! `COPY`: rows from and to files and clients, in PostgreSQL's forms and as Parquet.
//!
//! ```text
//! FROM   bytes -> records -> texts -> values of the columns -> conditions
//!              -> the table: through memory and log, or, of many, new files of it
//! TO     query -> batches -> bytes
//! ```
//!
//! A statement that fails leaves nothing, wherever its data came from; what is wrong with them is
//! told with the place: file, line, column.

mod batches;
mod from;
mod options;
mod parse;
mod spool;
mod stream;
mod to;

pub use batches::BatchesIn;
pub(crate) use from::{CopyFrom, Source};
pub(crate) use parse::parse;
pub(crate) use spool::Spool;
pub use stream::{CopyIn, CopyOut, CopyRows};
pub(crate) use stream::{Piece, Pieces, canceled};
pub(crate) use to::{CopyTo, write_file};
