//! From files of statements to sorted segments, at the speed of the machine.

mod arena;
mod blocks;
mod decompress;
mod error;
mod interner;
mod key_sort;
mod ntriples;
mod source;

pub use error::{LoadError, SyntaxError};
pub use source::{Format, Source, UnknownFormat};
