//! Dictionary, sorted permutations, manifest, snapshots: the only place that knows files.

pub mod block_file;
pub mod index;
pub mod io;

mod error;

pub use error::{Error, Result};
