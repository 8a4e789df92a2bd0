//! Sources: files, standard input and uploads, as bytes or blocks of lines.
//!
//! A `source` has a format and a compression, told from its name or its first bytes. `decompress`
//! reads it. `parts` cuts large sources into ranges, and `blocks` cuts texts into whole lines for
//! parsers.

pub(crate) mod blocks;
pub(crate) mod decompress;
pub(crate) mod format;
pub(crate) mod looks;
pub(crate) mod parts;
pub(crate) mod source;
