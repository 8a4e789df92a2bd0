//! The outcome of a statement: rows, a tag, or a COPY stream.

use std::fmt;

use crate::answers::tag::Tag;
use crate::copy::{CopyIn, CopyOut};

/// Rows as they come.
pub use datafusion::execution::SendableRecordBatchStream as Rows;

/// Rows, or what was done.
pub enum Outcome {
    /// Rows of a query, as they come. What fails later is in the stream, of which
    /// [`Error::of_run`](crate::Error::of_run) makes one of ours.
    Query(Rows),
    /// Rows that a change gives back; it is done, and committed unless a transaction is open.
    Returned(Rows, Tag),
    /// `COPY ... TO STDOUT`: bytes of rows, for the client.
    CopyOut(CopyOut),
    /// `COPY ... FROM STDIN`: it takes what the client sends, and is done when that is finished.
    CopyIn(CopyIn),
    /// No rows.
    Done(Tag),
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(_) => f.write_str("Query"),
            Self::Returned(_, tag) => write!(f, "Returned({tag})"),
            Self::CopyOut(copy) => write!(f, "{copy:?}"),
            Self::CopyIn(copy) => write!(f, "{copy:?}"),
            Self::Done(tag) => write!(f, "Done({tag})"),
        }
    }
}
