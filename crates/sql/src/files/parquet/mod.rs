//! Parquet files, read within a memory limit.
//!
//! DataFusion's reader believes a file's own figures: a footer of a few bytes may claim two
//! thousand million row groups, a page may claim to become two gigabytes, and no memory is asked
//! for. Here such figures are checked before memory is allocated.
//!
//! ```text
//! footer, page index   -> walked as thrift, no list longer than its bytes
//!                      -> memory for what they become -> decoded, cached                        footer
//! plan                 -> rows of one batch, so that it has about BATCH_BYTES                   format
//! column chunks        -> memory for their bytes -> read -> headers of their pages
//!                      -> memory for what a batch takes of them                                 reader, pages
//! ```
//!
//! A filter puts rows together until they are a batch; above such a scan it takes no more of them
//! than that has at once (`short_batches`).
//!
//! What is asked for is held as long as the bytes of the chunk are. A sort that has all of the
//! memory cannot be told to spill, so that chunks may go beyond by a part of it; then the sort
//! finds nothing for its next batch, and spills.
//!
//! Not bounded: a page that becomes more than its header says (zstd does not say before), and
//! values of DELTA_BYTE_ARRAY, which share their beginnings.

mod footer;
mod format;
mod pages;
mod reader;
mod thrift;

pub(super) use format::CountedParquet;
pub(crate) use format::short_batches;
