//! JSON files with an object per line, read within a memory limit.
//!
//! DataFusion's reader holds a line as a whole, however long it is, and makes batches by rows
//! alone. Here memory is asked for before bytes are decoded.
//!
//! ```text
//! chunks of bytes -> pieces up to the end of a line -> what they may become (shape) -> memory for it -> arrow's decoder -> batch      read
//! the first lines -> memory for each and for its values -> columns                                                                   infer
//! ```
//!
//! A batch ends at so many rows, or when it has been charged `BATCH_BYTES`. One record may have
//! `RECORD_BYTES_MAX` bytes, and be nested as deep as `DEPTH_MAX`: arrow writes the value that is
//! none of its column into an error by recursion.
//!
//! Not bounded: what is done with a batch, for which its operators ask.

mod format;
mod infer;
mod read;
mod shape;

pub(super) use format::CountedJson;
